"""The command palette: users, conversations, facts and pages by keyboard; each role finds only what it may open."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from ..chromium import until
from ..conftest import signed_in
from ..looks import violations


def titles(page: Page) -> list[str]:
    return page.locator("#palette .found a").all_inner_texts()


def test_by_keyboard_to_a_users_fact(fresh, visitor):
    someone = visitor(fresh, "operator")
    page = someone.open("/dashboard/jobs")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("dialog", name="Find")).to_be_visible()
    expect(page.get_by_role("searchbox", name="Users, conversations, facts, pages")).to_be_focused()
    page.keyboard.type("priya seattle")
    expect(page.locator("#palette .found a")).to_have_text(["priya", "Lives in Seattle. priya"])
    expect(page.locator("#palette [role=status]")).to_have_text("2 results")
    assert violations(page) == []
    page.keyboard.press("ArrowDown")
    expect(page.locator("#palette .found a").first).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("searchbox", name="Users, conversations, facts, pages")).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(page.locator("#palette .found a").last).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/dashboard/users/priya\?q=Lives%20in%20Seattle\.#fact_\w+$"))
    assert someone.watch.all == []


def test_conversations_users_and_pages_and_back_with_escape(fresh, visitor):
    someone = visitor(fresh, "operator")
    page = someone.open("/dashboard/users/priya")
    button = page.get_by_role("link", name="Find")
    button.focus()
    page.keyboard.press("Enter")
    page.keyboard.type("jap")
    until(page, lambda: "japan priya" in [" ".join(one.split()) for one in titles(page)], what="the conversation")
    page.keyboard.press("Control+a")
    page.keyboard.type("elena")
    until(page, lambda: "elena" in titles(page), what="the user")
    page.keyboard.press("Control+a")
    page.keyboard.type("metr")
    until(page, lambda: titles(page) == ["Metrics"], what="the page")
    page.keyboard.press("Escape")
    expect(page.locator("#palette")).to_be_hidden()
    expect(button).to_be_focused()
    assert someone.watch.all == []


def test_users_find_their_own_facts_and_nothing_of_others(fresh, visitor):
    someone = visitor(fresh, "user", "priya")
    page = someone.open("/me")
    page.keyboard.press("Control+k")
    page.keyboard.type("seattle")
    until(page, lambda: titles(page) == ["Lives in Seattle."], what="the fact")
    page.keyboard.press("Enter")
    until(page, lambda: page.evaluate("document.activeElement.matches('.belief')"), what="the fact in focus")
    expect(page.locator("#palette")).to_be_hidden()
    for words in ("elena", "mochi", "tomasz", "metrics"):
        page.keyboard.press("Control+k")
        page.keyboard.press("Control+a")
        page.keyboard.type(words)
        expect(page.locator("#palette [role=status]")).to_have_text("0 results")
        page.keyboard.press("Escape")
    assert page.request.get(fresh.origin + "/dashboard/find?q=elena").status == 403
    assert someone.watch.all == []


def test_without_scripts_it_is_a_page(chromium, fresh):
    someone = signed_in(chromium, fresh, "operator", {}, java_script_enabled=False)
    try:
        page = someone.open("/dashboard/users/priya")
        page.get_by_role("link", name="Find").click()
        page.locator("main input[name=q]").fill("seattle")
        page.get_by_role("button", name="Search").click()
        expect(page.locator("#found")).to_contain_text("Lives in Seattle.")  # it still knows whose page it came from
    finally:
        someone.context.close()
