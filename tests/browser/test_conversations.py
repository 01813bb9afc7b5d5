"""The stories of the conversation pages, in a browser: made again, live, by keyboard alone, without scripts, undone."""

from __future__ import annotations

import re
import threading

import pytest
from playwright.sync_api import Page, expect

from holdfast.server.pages import conversations

from .chromium import until
from .conftest import signed_in

TALK = "/dashboard/conversations/priya/japan"


def stays(page: Page) -> None:
    """Leave a mark that a reload would take away."""
    page.evaluate("window.stayed = true")


def stayed(page: Page) -> bool:
    """Whether the mark is still there."""
    return bool(page.evaluate("window.stayed === true"))


def count(page: Page, panel: str) -> int:
    return int(page.locator(f"#{panel} [data-count]").first.inner_text())


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (320, "light"), (320, "dark")])
def test_a_range_is_rebuilt_without_a_reload(fresh, visitor, width, scheme):
    """Estimate first, then the work, then the new version beside the old one, which can be put back."""
    someone = visitor(fresh, "operator")
    page = someone.open(TALK, width=width, scheme=scheme)
    stays(page)
    page.get_by_role("link", name=re.compile("^Level 1, summary 1,")).click()
    expect(page.locator("#chunk")).to_contain_text("in use")
    page.locator("#chunk").get_by_role("link", name="This summary", exact=True).click()
    expect(page.locator(".estimate")).to_contain_text("Model calls")
    chat = fresh.memory.conversation("japan", user="priya")
    assert chat.rebuilds() == []

    button, callout = page.get_by_role("button", name="Rebuild this range"), page.locator("#rebuild .callout")
    button.click()
    try:
        expect(callout).to_contain_text("Rebuilt", timeout=10_000)
    except AssertionError:  # the panel was put in place anew between the two halves of the click
        assert chat.rebuilds() == []
        button.click()
        expect(callout).to_contain_text("Rebuilt")
    expect(page.locator("#chunk")).to_contain_text("older version")  # what was chosen is not what is told any more
    made = chat.summaries(1)[0]
    assert made.version == 2
    first = page.get_by_role("link", name=re.compile("^Level 1, summary 1,"))
    expect(first).to_have_attribute("href", re.compile(made.id))  # each panel follows in its own time
    first.click()
    expect(page.locator("#chunk")).to_contain_text("in use")
    expect(page.locator(".versions a")).to_have_count(2)

    page.get_by_role("tab", name="Rebuild").click()
    page.locator("#rebuild .confirm summary").first.click()
    page.get_by_role("button", name="Revert to the previous version").first.click()
    until(page, lambda: len(chat.rebuilds()) == 2, what="putting back")
    assert stayed(page)
    assert someone.watch.all == []


def test_on_a_phone_the_rows_of_the_coverage_are_named_on_one_line(fresh, visitor):
    someone = visitor(fresh, "operator")
    page = someone.open(TALK, width=390)
    heads = page.locator(".strip th").all()

    assert len(heads) >= 3
    assert (
        max(
            head.evaluate(
                "e => { const r = document.createRange(); r.selectNodeContents(e); return r.getBoundingClientRect().height; }"
            )
            for head in heads
        )
        < 30
    )


def test_messages_added_elsewhere_appear_by_themselves(fresh, visitor):
    """A new message, a new fact and its badge, and the count of facts, while the page is open."""
    someone = visitor(fresh, "operator")
    page = someone.open("/dashboard/conversations/priya/web-42")
    stays(page)
    before = count(page, "facts")
    fresh.memory.conversation("web-42", user="priya").record("I moved to Ghent.", "Lovely.")
    expect(page.locator("#transcript")).to_contain_text("I moved to Ghent.")
    until(page, lambda: count(page, "facts") == before + 1, what="the badge")
    expect(page.locator("#transcript .learned-note").last).to_contain_text("Ghent")
    assert stayed(page)
    assert someone.watch.all == []


def test_a_click_is_not_lost_when_news_arrive_between_press_and_release(fresh, visitor):
    """The section stays while the button is down, and shows what came once it is let go."""
    someone = visitor(fresh, "operator")
    page = someone.open("/dashboard/users/priya")
    item = page.locator(".belief", has_text="Lives in Seattle.")
    summary = item.locator("summary", has_text="Correct")
    summary.scroll_into_view_if_needed()
    box = summary.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    with page.expect_response(lambda answer: "x-fragment" in answer.request.headers) as news:
        fresh.memory.user("priya").remember("Keeps a tortoise called Agnes.")
    news.value.finished()
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    expect(page.get_by_text("Agnes")).to_have_count(0)
    page.mouse.up()
    expect(item.get_by_label("Correct value")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".belief", has_text="Agnes")).to_be_visible()
    assert someone.watch.all == []


def test_the_keyboard_is_enough(fresh, visitor):
    """From the top of the page to a chunk and its summary, back to a message, with keys alone."""
    someone = visitor(fresh, "operator")
    page = someone.open(TALK)
    page.keyboard.press("Tab")
    page.wait_for_function("() => document.activeElement.className === 'skip'")
    page.keyboard.press("Enter")
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.classList.contains('chunk')"):
            break
    focused = "(start) => (document.activeElement.getAttribute('aria-label') ?? '').startsWith(start)"
    page.wait_for_function(focused, arg="Level ")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.wait_for_function(focused, arg="Level 1, summary 1,")
    page.keyboard.press("ArrowRight")
    page.wait_for_function(focused, arg="Level 1, summary 2,")
    page.keyboard.press("ArrowUp")
    page.wait_for_function(focused, arg="Level 2, summary 1,")
    page.keyboard.press("End")
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    expect(page.locator("#chunk h2")).to_contain_text("Meta summary 1")
    expect(page.locator("#chunk h2")).to_be_focused()
    page.keyboard.press("Escape")
    page.wait_for_function(focused, arg="Level 2, summary 1,")  # back at the block
    page.keyboard.press("j")
    page.wait_for_function("() => document.activeElement.closest('.said') !== null")
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#help")).to_be_hidden()
    assert someone.watch.all == []


def test_single_keys_can_be_turned_off(fresh, visitor):
    page = visitor(fresh, "operator").open("/dashboard/conversations")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.name") == "name"
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Keyboard shortcuts").click()
    page.get_by_label("Enable single-key shortcuts").uncheck()
    page.keyboard.press("Escape")
    page.reload()
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.name ?? ''") == ""
    page.get_by_role("button", name="Keyboard shortcuts").click()
    page.get_by_label("Enable single-key shortcuts").check()


def test_forgetting_can_be_taken_back_for_five_seconds(fresh, visitor):
    someone = visitor(fresh, "operator")
    page = someone.open("/dashboard/conversations/priya/web-42")
    chat = fresh.memory.conversation("web-42", user="priya")
    first = chat.load()[0]

    def forget() -> None:
        page.locator("#m1 .more-of > summary").click()
        page.locator("#m1").get_by_text("Forget this message").click()
        page.get_by_role("button", name="Forget it").click()

    forget()
    expect(page.locator("#m1")).to_be_hidden()
    page.get_by_role("button", name="Undo", exact=True).click()
    expect(page.locator("#m1")).to_be_visible()
    assert chat.load()[0] == first

    page.reload()
    forget()
    expect(page.locator("#m1")).to_contain_text("was forgotten")
    expect(page.locator("#notice")).to_contain_text("No trace of it is left")
    assert chat.load()[0].seq == 2
    assert someone.watch.all == []


def test_without_scripts_everything_can_be_done(chromium, fresh):
    someone = signed_in(chromium, fresh, "operator", {}, java_script_enabled=False)
    try:
        page = someone.open("/dashboard/conversations/priya/web-42")
        page.locator("#m1 .more-of > summary").click()
        page.locator("#m1 textarea").fill("My sister Asha lives in York.")
        page.locator("#m1").get_by_role("button", name="Save").click()
        expect(page.locator("#notice")).to_contain_text("Message changed")
        page.get_by_role("link", name="Rebuild", exact=True).click()  # an anchor: every part is there
        page.locator("select[name=make]").select_option("facts")
        page.get_by_role("button", name="Estimate first").click()
        page.get_by_role("button", name="Rebuild this range").click()
        expect(page.locator("#rebuild")).to_contain_text("Rebuilt")
        said = fresh.memory.conversation("web-42", user="priya").load()[0]
        assert said.content == "My sister Asha lives in York."
    finally:
        someone.context.close()


def test_without_scripts_a_slow_estimate_is_waited_for(chromium, fresh, monkeypatch):
    ready, made = threading.Event(), conversations._estimated

    def slow(chat, found):
        ready.wait(30)
        return made(chat, found)

    monkeypatch.setattr(conversations, "_estimated", slow)
    someone = signed_in(chromium, fresh, "operator", {}, java_script_enabled=False)
    try:
        page = someone.open("/dashboard/conversations/priya/web-42")
        page.locator("select[name=make]").select_option("facts")
        page.get_by_role("button", name="Estimate first").click()  # its answer's address ends in #rebuild
        expect(page.locator("#rebuild")).to_contain_text("Reading messages 1 to 4")
        ready.set()
        expect(page.get_by_role("button", name="Rebuild this range")).to_be_visible()
    finally:
        ready.set()
        someone.context.close()


def test_a_sign_in_link_signs_in_and_leaves_no_key_behind(chromium, fresh):
    someone = signed_in(chromium, fresh, None, {})
    try:
        key = fresh.key("operator")
        page = someone.open(f"/sign-in?next=%2Fdashboard%2Fconversations#key={key}")
        page.wait_for_url("**/dashboard/conversations")
        assert key not in page.content()
        (cookie,) = someone.context.cookies()
        assert (cookie["name"], cookie["httpOnly"], cookie["sameSite"]) == ("holdfast_key", True, "Strict")
        assert cookie["value"] != key
        page.get_by_role("button", name="Sign out").click()
        expect(page.locator("#notice")).to_contain_text("signed out")
        assert fresh.memory.admin.keys.check(cookie["value"]) is None
        assert someone.watch.all == []
    finally:
        someone.context.close()


def test_the_theme_that_was_chosen_stays_and_never_flashes(chromium, fresh):
    someone = signed_in(chromium, fresh, "operator", {})
    try:
        page = someone.open("/dashboard/conversations", scheme="light")
        ground = "getComputedStyle(document.body).backgroundColor"
        assert page.evaluate(ground) == "rgb(255, 255, 255)"
        page.get_by_title("Dark").click()
        assert page.evaluate(ground) == "rgb(15, 18, 22)"
        page.add_init_script(
            "addEventListener('DOMContentLoaded', () => window.first = getComputedStyle(document.body).backgroundColor)"
        )
        page.reload()
        assert page.evaluate("window.first") == "rgb(15, 18, 22)"
        assert page.get_by_label("Dark").is_checked()
    finally:
        someone.context.close()
