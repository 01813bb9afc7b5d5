"""Nothing is lost in silence: rebuilds, two tabs, sessions that end, notices, long texts and names, the keyboard."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from holdfast import User
from holdfast.digest import rules

from .chromium import go, look
from .looks import picture, sticks_out, violations
from .served import Site, serve
from .story import opened

TALK = "/dashboard/conversations/priya/japan"
PRIYA = "/dashboard/users/priya"
LONG_NAME = "Donaudampfschifffahrtsgesellschaft" * 5 + "x" * 30


def in_view(page: Page, selector: str) -> bool:
    """Whether the element lies within the window."""
    box, size = page.locator(selector).bounding_box(), page.viewport_size
    assert box is not None
    assert size is not None
    return box["y"] >= 0 and box["y"] + box["height"] <= size["height"]


def living(user: User) -> list[str]:
    """Where the user herself lives; her sister's city is another fact."""
    return [fact.value for fact in user.facts("home") if fact.value != "Leeds"]


def test_a_rebuild_lists_the_facts_that_it_loses_and_one_revert_brings_them_back(fresh, visitor, monkeypatch):
    """Before it writes, and after; summaries and facts together are one revision."""
    chat, priya = fresh.memory.conversation("japan", user="priya"), fresh.memory.user("priya")
    before, real = sorted(fact.text for fact in priya.facts()), rules.extract_facts
    monkeypatch.setattr(
        rules, "extract_facts", lambda said, **given: [] if "Seattle" in said.content else real(said, **given)
    )
    someone = visitor(fresh, "operator")
    page = someone.open(TALK + "?make=chunk&first=1&last=60")
    foretold = page.locator(".estimate .facts-diff")
    expect(foretold).to_contain_text("lost")
    expect(foretold).to_contain_text("Seattle")
    assert chat.rebuilds() == []
    assert sorted(fact.text for fact in priya.facts()) == before
    assert violations(page) == []
    picture(page, "rebuild with losses")

    page.get_by_role("button", name="Rebuild this range").click()
    done = page.locator("#rebuild .callout.warn")
    expect(done).to_contain_text("lost")
    expect(done.locator(".facts-diff")).to_contain_text("Seattle")
    assert [made.layer for made in chat.rebuilds()] == ["chunk"]
    assert sorted(fact.text for fact in priya.facts()) != before
    picture(page, "rebuilt with losses")

    done.get_by_role("button", name="Revert this rebuild").click()
    expect(page.locator("#notice")).to_contain_text("Reverted")
    assert sorted(fact.text for fact in priya.facts()) == before
    assert someone.watch.all == []


def test_of_two_tabs_the_second_sees_both_words_and_chooses(fresh, visitor):
    """An operator corrects what the user has just changed; then Undo, which stands where it is seen."""
    someone = visitor(fresh, "operator")
    page = someone.open(PRIYA, width=390, height=800)
    home = page.locator(".belief", has_text="Lives in Seattle.")
    home.locator("summary", has_text="Correct").click()
    home.get_by_label("Correct value").fill("Spokane")
    user = fresh.memory.user("priya")
    lives = next(fact for fact in user.facts("home") if fact.value == "Seattle")
    user.correct(lives.id, value="Tacoma")
    home.get_by_role("button", name="Correct", exact=True).last.click()

    conflict = page.locator("#said .conflict")
    expect(conflict).to_contain_text("Not saved")
    expect(conflict).to_contain_text("Lives in Tacoma.")
    expect(conflict).to_contain_text("Spokane")
    assert in_view(page, "#said .conflict")
    assert living(user) == ["Tacoma"]
    assert "Spokane" not in [fact.value for fact in user.history()]
    assert violations(page) == []
    assert sticks_out(page) == []
    picture(page, "conflict 390")
    conflict.get_by_role("button", name="Use mine").click()
    expect(page.locator("#said")).to_contain_text("Corrected")
    assert living(user) == ["Spokane"]
    page.locator("#said").get_by_role("button", name="Undo").click()
    expect(page.locator("#said")).not_to_contain_text("Corrected")
    expect(page.locator("#facts")).to_contain_text("Lives in Tacoma.")
    assert living(user) == ["Tacoma"]
    assert [line for line in someone.watch.all if "409" not in line] == []


def test_on_a_phone_the_confirmation_and_undo_are_in_view(fresh, visitor):
    """A fact far down on the user's own page is changed, by the user, while the operator changes it, too."""
    someone = visitor(fresh, "user", "priya")
    page = someone.open("/me", width=390, height=740)
    last = page.locator(".belief", has=page.locator("summary", has_text="Change")).last
    last.locator("summary", has_text="Change").click()
    last.get_by_label("Correct value").fill("Something else entirely")
    last.get_by_role("button", name="Save").click()
    undo = page.locator("#said").get_by_role("button", name="Undo")
    expect(undo).to_be_visible()
    assert page.evaluate("scrollY") > 400
    assert in_view(page, "#said .notice")
    picture(page, "me undo 390")
    undo.click()
    expect(page.locator("#said")).not_to_contain_text("Undo")
    assert "Something else entirely" not in [fact.value for fact in fresh.memory.user("priya").facts()]
    assert someone.watch.all == []


def test_text_that_was_typed_survives_the_end_of_the_session(fresh, chromium):
    """The key is revoked while a message is edited: after signing in again the words are back in their field."""
    context = chromium.new_context(reduced_motion="reduce")
    page = context.new_page()
    look(page, 1280, 800, "light")
    made = fresh.memory.admin.keys.create("operator")
    go(page, f"{fresh.origin}/sign-in?next=%2Fdashboard%2Fconversations%2Fpriya%2Fjapan")
    page.locator("#key").fill(made.key)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{fresh.origin}{TALK}")
    said = page.locator("#m61, .said.user").last
    said.locator("details.more-of > summary").click()
    said.get_by_label(re.compile("^New text of message")).fill("Words that took a long time to find.")
    fresh.memory.admin.keys.revoke(made.about.id)
    said.get_by_role("button", name="Save").click()
    page.wait_for_url(re.compile("/sign-in"))
    page.locator("#key").fill(fresh.key("operator"))
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(re.compile("/japan"))
    expect(page.locator("#notice.warn")).to_contain_text("Your text is back")
    field = page.get_by_label(re.compile("^New text of message")).locator("visible=true")
    expect(field).to_have_value("Words that took a long time to find.")
    field.locator("xpath=ancestor::form").get_by_role("button", name="Save").click()
    expect(page.locator("#transcript")).to_contain_text("Words that took a long time to find.")
    context.close()


def test_an_error_looks_like_one(fresh, visitor):
    """The server cannot be reached: red, with an icon, and it stays."""
    page = visitor(fresh, "operator").open(PRIYA)
    page.route(
        "**/dashboard/users/priya", lambda route: route.abort() if route.request.method == "POST" else route.continue_()
    )
    page.get_by_label("Category or words").fill("politics")
    page.get_by_role("button", name="Never remember").click()
    notice = page.locator("#notice.bad")
    expect(notice).to_contain_text("could not be reached")
    assert notice.get_attribute("role") == "alert"
    assert notice.locator("svg.icon").count() == 1
    assert page.get_by_label("Category or words").input_value() == "politics"


@pytest.fixture(scope="module")
def unusual() -> Iterator[Site]:
    """A message of a million characters, one from right to left, and names of 200 characters."""
    with opened() as memory:
        chat = memory.conversation(LONG_NAME, user=LONG_NAME)
        chat.append([{"role": "user", "content": "word " * 200_000}, {"role": "assistant", "content": "Noted."}])
        chat.append([{"role": "user", "content": "أنا أعيش في القاهرة. I live in Cairo."}])
        memory.user(LONG_NAME).remember(category="hobby", key="plays", value="x" * 300)
        memory.digest()
        with serve(memory, {"user": LONG_NAME, "conversation": LONG_NAME}) as site:
            yield site


@pytest.mark.parametrize("width", [390, 1440])
def test_long_texts_are_folded_and_long_names_stay_on_the_page(unusual, visitor, width):
    someone = visitor(unusual, "operator")
    talk = f"/dashboard/conversations/{LONG_NAME}/{LONG_NAME}"
    for path in ("/dashboard/conversations", f"/dashboard/conversations/{LONG_NAME}", "/dashboard/users"):
        page = someone.open(path, width=width)
        assert sticks_out(page) == [], path
    page = someone.open(f"/dashboard/users/{LONG_NAME}", width=width)
    assert sticks_out(page) == []
    picture(page, f"long names {width}")
    page = someone.open(talk, width=width)
    assert sticks_out(page) == []
    assert page.evaluate("document.body.scrollHeight") < 12_000
    assert len(page.content()) < 500_000
    assert page.locator(".words", has_text="القاهرة").get_attribute("dir") == "auto"
    page.get_by_role("link", name="Show all 1,000,000 characters").click()
    expect(page.get_by_role("link", name="Show all 1,000,000 characters")).to_have_count(0)
    assert len(page.content()) > 900_000
    assert someone.watch.all == []


def test_rebuilding_a_chunk_is_a_few_keys_away(sites, visitor):
    """The blocks are one stop of the Tab key, Enter moves the focus to the summary, Escape back to the block."""
    someone = visitor(sites("rich"), "operator")
    page = someone.open(TALK)
    page.locator("#main").focus()
    for _ in range(6):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.classList.contains('chunk')"):
            break
    block = page.evaluate("document.activeElement.id")
    assert block.startswith("c-")
    page.keyboard.press("Enter")
    expect(page.locator("#chunk h2")).to_be_focused()
    presses = 0
    while page.evaluate("document.activeElement.textContent.trim()") != "This summary":
        page.keyboard.press("Tab")
        presses += 1
        assert presses <= 10
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == block
    assert someone.watch.all == []
