"""Answers that come late, and users who are in the middle of something: nothing newer is covered, nothing is lost."""

from __future__ import annotations

import re
from contextlib import suppress

from playwright.sync_api import Error, Locator, Page, Route, expect

from .chromium import until

TALK = "/dashboard/conversations/priya/japan"


def asked_to_forget(page: Page) -> Locator:
    """The button under the question whether the violin shall be forgotten, which is open now."""
    violin = page.locator("li", has_text="Plays the violin.").first
    violin.get_by_text("Forget", exact=True).click()
    button = violin.get_by_role("button", name="Forget it")
    expect(button).to_be_visible()
    return button


def test_an_answer_about_the_page_as_it_was_does_not_cover_what_was_chosen_since(fresh, visitor):
    """A slow answer to what an event made the page ask arrives after another chunk was chosen."""
    someone = visitor(fresh, "operator")
    page = someone.open(TALK)
    page.get_by_role("link", name=re.compile("^Level 1, summary 1,")).click()
    expect(page.locator("#chunk h2")).to_contain_text("Chunk summary 1")
    waiting: list[Route] = []
    released = False

    def hold(route: Route) -> None:
        if released or route.request.headers.get("x-fragment", "").startswith("chunk coverage"):
            route.continue_()  # what a click asks
        else:
            waiting.append(route)

    page.route("**/japan?*", hold)
    fresh.memory.conversation("japan", user="priya").record("We booked the ryokan.", "Good.")
    until(page, lambda: bool(waiting), what="asking again because of the event")
    page.get_by_role("link", name=re.compile("^Level 1, summary 2,")).click()
    expect(page.locator("#chunk h2")).to_contain_text("Chunk summary 2")
    released = True
    for route in waiting:
        with suppress(Error):  # nobody waits for it any more
            route.continue_()
    expect(page.locator("#coverage .chunk[aria-current]")).to_have_attribute(
        "aria-label", re.compile("^Level 1, summary 2,")
    )
    expect(page.locator("#transcript")).to_contain_text("of 70")  # what the event told is here all the same
    assert page.locator("#chunk h2").inner_text().startswith("Chunk summary 2")
    assert page.locator("#coverage .chunk[aria-current]").get_attribute("aria-label").startswith("Level 1, summary 2,")
    assert someone.watch.all == []


def test_who_goes_on_while_a_chosen_chunk_is_on_its_way_keeps_the_focus(fresh, visitor):
    """The chunk is shown when it arrives; the keyboard stays in the search field that was reached meanwhile."""
    someone = visitor(fresh, "operator")
    page = someone.open(TALK)
    waiting: list[Route] = []
    page.route("**/japan?chunk=*", lambda route: waiting.append(route))
    page.get_by_role("link", name=re.compile("^Level 1, summary 2,")).press("Enter")
    until(page, lambda: bool(waiting), what="asking for the chunk")
    page.keyboard.press("/")
    page.wait_for_function("() => document.activeElement.matches('[data-search]')")
    assert len(waiting) == 1, "a module that is loaded by two addresses runs twice"
    for route in waiting:
        route.continue_()
    expect(page.locator("#chunk h2")).to_contain_text("Chunk summary 2")
    assert page.evaluate("document.activeElement.matches('[data-search]')")
    assert someone.watch.all == []


def test_a_tab_picked_by_hand_stays_although_an_older_answer_comes(fresh, visitor):
    """Choosing a chunk opens its tab; not over the tab that was picked while the answer was on its way."""
    someone = visitor(fresh, "operator")
    page = someone.open(TALK)
    waiting: list[Route] = []
    page.route("**/japan?*chunk=*", lambda route: waiting.append(route))
    page.get_by_role("link", name=re.compile("^Level 1, summary 1,")).click()
    until(page, lambda: bool(waiting), what="asking for the chunk")
    tab = page.get_by_role("tab", name="Rebuild")
    tab.click()
    expect(tab).to_have_attribute("aria-selected", "true")
    waiting[0].continue_()
    expect(page.locator("#coverage .chunk[aria-current]")).to_have_count(1)
    expect(tab).to_have_attribute("aria-selected", "true")
    expect(tab).to_be_focused()
    assert someone.watch.all == []


def test_what_changed_during_a_question_is_shown_once_the_question_is_closed(fresh, visitor):
    """An open question is not taken away by an event, and what the event told is not lost either."""
    someone = visitor(fresh, "user", "priya")
    page = someone.open("/me")
    forget = asked_to_forget(page)
    with page.expect_response(lambda answer: "facts" in answer.request.headers.get("x-fragment", "")):
        fresh.memory.user("priya").remember("I like green tea.")
    page.wait_for_timeout(500)
    assert forget.is_visible()
    assert "tea" not in page.locator("#facts").inner_text()

    page.keyboard.press("Escape")
    expect(page.locator("#facts")).to_contain_text("tea")
    assert someone.watch.all == []


def test_what_is_forgotten_is_forgotten_although_the_page_is_left_at_once(fresh, visitor):
    """The moment in which it can be taken back ends when nobody looks any more."""
    someone = visitor(fresh, "user", "priya")
    page = someone.open("/me")
    asked_to_forget(page).click()
    expect(page.get_by_role("button", name="Undo")).to_be_focused()
    page.goto("about:blank")
    until(page, lambda: fresh.memory.user("priya").facts("hobby") == [], what="forgetting")
