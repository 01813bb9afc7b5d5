"""What an operator does on the pages about users."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from .chromium import Visitor
from .served import Site


@pytest.fixture
def desk(fresh: Site, visitor) -> Visitor:
    return visitor(fresh, "operator")


@pytest.fixture
def page(desk: Visitor) -> Page:
    opened = desk.open("/dashboard/users")
    yield opened
    assert desk.watch.all == []


def test_a_value_is_restored_from_the_timeline(fresh, page):
    """Search, open, look when a belief changed, put the old value back."""
    page.keyboard.press("/")
    page.keyboard.type("pri")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="priya").click()
    page.get_by_role("link", name="Eats fish but no meat: is pescatarian.").click()
    expect(page.locator("h1")).to_have_text("Dietary")
    expect(page.locator("svg.line rect")).to_have_count(2)
    widths = [page.locator("svg.line > svg").nth(n).evaluate("e => e.getBoundingClientRect().width") for n in (0, 1)]
    assert 0 < widths[0] < widths[1]
    expect(page.locator("#line tbody tr").first).to_contain_text(
        re.compile("Is vegetarian.*3 Mar 2026.*to 15 Mar 2026")
    )

    page.get_by_role("button", name="Restore this value: Is vegetarian.").click()
    believed = page.locator("#facts .belief").first
    expect(believed).to_contain_text("vegetarian")
    expect(believed).to_contain_text("active")
    assert [fact.key for fact in fresh.memory.user("priya").facts("dietary")] == ["vegetarian"]


def test_a_value_that_was_never_true_gives_way_to_the_one_before(fresh, desk):
    page = desk.open("/dashboard/users/priya/fact?category=dietary")
    page.get_by_role("button", name="This was never true").click()

    expect(page.locator("#line")).to_contain_text("never true")
    assert [fact.key for fact in fresh.memory.user("priya").facts("dietary")] == ["vegetarian"]


def test_the_quote_leads_to_the_message(page, desk):
    page.get_by_role("link", name="priya").click()
    home = page.locator(".belief", has_text="Lives in Seattle.")
    home.locator("summary", has_text="Evidence").click()
    home.get_by_role("link", name=re.compile("message 11 of japan")).click()

    page.wait_for_url("**/dashboard/conversations/priya/japan?at=11#m11")
    expect(page.locator("#m11")).to_contain_text("I live in Seattle")


def test_a_user_is_erased_with_a_typed_word_and_a_receipt(fresh, page):
    page.get_by_role("link", name="tomasz").click()
    page.locator("summary", has_text="Erase tomasz").click()
    page.get_by_label("Type").fill("eras")
    page.get_by_role("button", name="Erase everything").click()
    assert len(fresh.memory.user("tomasz").facts()) > 0  # the browser does not send half a word

    page.get_by_label("Type").fill("erase")
    page.get_by_role("button", name="Erase everything").click()
    expect(page.locator("#receipt")).to_contain_text("Erased: level E2")
    assert fresh.memory.user("tomasz").facts() == []
    assert fresh.memory.jobs("dead") == []


def test_a_pause_shows_everywhere(fresh, page):
    page.get_by_role("link", name="priya").click()
    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".callout")).to_contain_text("Paused since")
    page.get_by_role("link", name="Users").first.click()
    expect(page.locator("tr", has_text="priya")).to_contain_text("paused")


def test_a_fact_is_a_line_and_the_life_line_shows_all_with_their_evidence(fresh, desk):
    """Thirteen facts took 2,683 pixels, each with its buttons below it."""
    page = desk.open("/dashboard/users/priya", width=1440)
    rows = page.locator("#facts .belief")
    heights = [rows.nth(at).bounding_box()["height"] for at in range(rows.count())]
    assert rows.count() == len(fresh.memory.user("priya").facts())
    assert sorted(heights)[len(heights) // 2] < 48
    assert page.locator("#facts").bounding_box()["height"] < 2683

    life = page.locator("#life")
    expect(life.locator("svg rect.now")).to_have_count(rows.count())
    assert life.locator("rect.then").count() > 0  # vegetarian, before pescatarian
    assert life.locator("circle").count() >= rows.count()
    assert life.bounding_box()["y"] < page.locator("#facts").bounding_box()["y"]


def test_an_operator_forgets_several_at_once_by_keyboard_and_the_first_time_undone(fresh, desk):
    page = desk.open("/dashboard/users/priya")
    for name in ("Speaks English.", "Speaks Hindi."):
        page.get_by_role("checkbox", name=f"Choose: {name}").focus()
        page.keyboard.press("Space")
    expect(page.locator("[data-picked]")).to_have_text("2 are chosen.")
    page.get_by_role("button", name="Forget the chosen ones").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#several h2")).to_be_focused()
    page.get_by_role("button", name="Forget 2 facts").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Undo").press("Enter")
    assert len(fresh.memory.user("priya").facts("language")) == 2

    page.get_by_role("button", name="Forget 2 facts").press("Enter")
    expect(page.locator("#receipt")).to_contain_text("Erased")
    assert fresh.memory.user("priya").facts("language") == []
