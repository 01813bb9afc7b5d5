"""The page of one conversation as a workbench: the map, search, Markdown and tabs, by keyboard and without scripts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from ..chromium import Visitor, until
from ..conftest import signed_in
from ..looks import violations
from ..served import Site, serve
from ..story import opened

LONG = "/dashboard/conversations/ana/long"
HOSTILE = (
    '<img src="//elsewhere.test/x" onerror="canary(1)"> ![seen](https://elsewhere.test/pixel.png) '
    "[press](javascript:canary(2)) [map](https://maps.test/a?b=1) **bold** `x`"
)


@pytest.fixture(scope="module")
def long() -> Iterator[Site]:
    """A conversation of 450 messages with a fact, a place name in three of them, and a hostile one."""
    with opened() as memory:
        chat = memory.conversation("long", user="ana")
        said = {1: "I live in Porto.", 7: "The ferry to Faro was late.", 201: "Is Faro far?", 449: "Faro it is."}
        said[301] = HOSTILE
        chat.append(
            [
                {"role": "user" if n % 2 else "assistant", "content": said.get(n, f"Point {n} about the garden.")}
                for n in range(1, 451)
            ]
        )
        memory.digest()
        with serve(memory) as site:
            yield site


@pytest.fixture
def someone(long: Site, visitor) -> Visitor:
    return visitor(long, "operator")


def focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.closest('[id]')?.id ?? ''"))


def test_the_whole_conversation_is_on_the_map_wherever_one_reads(someone):
    page = someone.open(LONG + "?at=1")
    box = page.locator("#map svg")
    assert box.get_attribute("viewBox") == "0 0 450 40"
    areas = page.evaluate(
        "[...document.querySelectorAll('#map .area.l1')].map(p => p.getBBox()).map(b => [b.x, b.width])"
    )
    assert areas[0][0] == 0
    assert areas[0][1] > 400  # its width is that of the messages that are summarized
    assert page.locator("#map .learned").count() == 1
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        top = page.evaluate("document.getElementById('map').getBoundingClientRect().top")
        assert 0 <= top < 5
    page.locator("#m60").scroll_into_view_if_needed()
    until(page, lambda: int(page.locator("#map-at").input_value()) > 1, what="following on the map")
    assert someone.watch.all == []


def test_a_click_on_the_map_goes_there_without_a_reload(someone):
    page = someone.open(LONG + "?at=1")
    page.evaluate("window.stayed = true")
    box = page.locator("#map-at").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.75, box["y"] + box["height"] / 2)
    expect(page.locator("#transcript .card-head p")).to_contain_text("Messages 33")
    expect(page.locator("#map-now")).to_contain_text("Message 33")
    reached = page.locator(".said.reached")
    expect(reached).to_have_count(1)
    assert page.evaluate("window.stayed")
    below = page.evaluate("document.getElementById('map').getBoundingClientRect().bottom")
    assert reached.bounding_box()["y"] >= below - 1  # not under what stays in view
    page.go_back()
    expect(page.locator("#transcript .card-head p")).to_contain_text("Messages 1 to 100")
    assert someone.watch.all == []


def test_the_map_by_keyboard(someone):
    page = someone.open(LONG + "?at=1")
    slider = page.get_by_role("slider", name="Go to message")
    slider.focus()
    page.keyboard.press("End")
    expect(page.locator("#m450")).to_be_in_viewport()
    expect(slider).to_be_focused()
    page.keyboard.press("Home")
    expect(page.locator("#m1")).to_be_in_viewport()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    until(page, lambda: focused(page) == "m2", what="the focus in the message")
    assert someone.watch.all == []


def test_the_map_zooms_around_the_message_and_out_again(someone):
    page = someone.open(LONG + "?at=200")
    slider, box = page.get_by_role("slider", name="Go to message"), page.locator("#map svg")
    at = int(slider.input_value())
    page.get_by_role("button", name="Zoom in").press("Enter")
    start, _, span, _ = (int(part) for part in box.get_attribute("viewBox").split())
    assert span == 113  # a quarter of 450
    assert start < at <= start + span
    assert (slider.get_attribute("min"), slider.get_attribute("max")) == (str(start + 1), str(start + span))
    assert int(slider.input_value()) == at
    slider.press("End")
    expect(page.locator(f"#m{start + span}")).to_be_in_viewport()
    until(page, lambda: int(box.get_attribute("viewBox").split()[0]) > start, what="the map around where one went")

    page.get_by_role("button", name="Zoom out").press("Enter")
    expect(box).to_have_attribute("viewBox", "0 0 450 40")
    expect(page.get_by_role("button", name="Zoom out")).to_be_disabled()
    assert someone.watch.all == []


def test_the_messages_are_searched_on_the_server(someone):
    page = someone.open(LONG + "?at=1")
    page.keyboard.press("/")
    page.keyboard.type("faro")
    page.keyboard.press("Enter")
    expect(page.locator("#search-title")).to_have_text("3 messages contain “faro”")
    expect(page.locator("#search-title")).to_be_focused()
    page.wait_for_load_state()  # the heading has the focus before the keys are heard
    assert page.locator(".hits mark").all_inner_texts() == ["Faro"] * 3
    assert page.locator("#map .hit").count() == 1
    page.keyboard.press("Tab")
    page.keyboard.press("j")
    until(page, lambda: page.evaluate("document.activeElement.textContent") == "201", what="the focus on the hit")
    page.keyboard.press("Enter")
    until(page, lambda: focused(page) == "m201", what="the focus in the message")
    expect(page.locator("#m201")).to_be_in_viewport()
    page.get_by_role("link", name="Clear search").click()
    expect(page.locator(".hits")).to_have_count(0)
    assert someone.watch.all == []


def test_markdown_is_formatted_and_nothing_of_it_runs_or_is_fetched(someone):
    page = someone.open(LONG + "?at=301#m301")
    words = page.locator("#m301 .words")
    expect(words.locator("strong")).to_have_text("bold")
    expect(words.locator("code")).to_have_text("x")
    expect(words.locator("img")).to_have_count(0)
    expect(words).to_contain_text("[press](javascript:canary(2))")
    links = words.locator("a")
    assert [one.get_attribute("href") for one in links.all()] == [
        "https://elsewhere.test/pixel.png",
        "https://maps.test/a?b=1",
    ]
    assert {one.get_attribute("rel") for one in links.all()} == {"noopener noreferrer nofollow ugc"}
    page.get_by_role("link", name="Show as plain text").click()
    expect(words).to_have_text(HOSTILE)
    assert someone.watch.all == []


def test_tabs_by_keyboard_and_by_what_is_asked_for(someone):
    page = someone.open(LONG)
    tab = page.get_by_role("tab", name="Context")
    expect(tab).to_have_attribute("aria-selected", "true")
    tab.focus()
    for name, part in (("Summary", "#chunks"), ("Facts", "#facts"), ("Rebuild", "#rebuild")):
        page.keyboard.press("ArrowRight")
        expect(page.get_by_role("tab", name=name)).to_be_focused()
        expect(page.get_by_role("tabpanel", name=name).locator(part)).to_be_visible()
        assert page.get_by_role("tabpanel").count() == 1
    page.keyboard.press("Home")
    expect(page.locator("#context")).to_be_visible()
    page.locator(".strip .chunk[id]").last.click()
    expect(page.locator("#chunk h2")).to_be_focused()
    expect(page.get_by_role("tab", name="Summary")).to_have_attribute("aria-selected", "true")
    page.goto(page.url.partition("?")[0] + "?make=facts&first=1&last=20")
    expect(page.locator(".estimate")).to_be_visible()
    assert someone.watch.all == []


def test_without_scripts_the_map_the_search_and_the_parts_work(chromium, long):
    someone = signed_in(chromium, long, "operator", {}, java_script_enabled=False)
    try:
        page = someone.open(LONG + "?at=1")
        for part in ("#context", "#chunks", "#facts", "#rebuild"):
            expect(page.locator(part)).to_be_visible()
        page.get_by_role("slider", name="Go to message").fill("200")
        page.locator("[data-map-go]").click()
        expect(page.locator("#m200")).to_be_visible()
        page.get_by_label("Search in the messages").fill("faro")
        page.get_by_role("button", name="Search", exact=True).click()
        expect(page.locator("#search-title")).to_contain_text("3 messages contain")
        page.locator(".hits a").last.click()
        expect(page.locator("#m449")).to_be_in_viewport()
    finally:
        someone.context.close()


def test_what_was_sent_opens_beside_the_reply_by_keyboard(visitor):
    """The panel comes to the front with the focus in it, hostile words stay words, and axe finds nothing."""
    with opened() as memory:
        chat = memory.conversation("web", user="ana")
        for said in (HOSTILE, "I live in Porto.", "And now?"):
            chat.context(said)
            reply = chat.record(said, "Noted.").seqs[-1]
        with serve(memory) as site:
            someone = visitor(site, "operator")
            page = someone.open("/dashboard/conversations/ana/web")
            page.locator("#tab-facts").click()
            page.locator(f"#m{reply} a", has_text="What was sent").press("Enter")
            expect(page.locator("#sent-title")).to_be_visible()
            expect(page.locator("#sent")).to_contain_text("facts: 1 new")
            page.locator("#sent details").last.locator("summary").press("Enter")
            expect(page.locator("#sent")).to_contain_text("onerror")
            assert violations(page) == []
            assert someone.watch.all == []
