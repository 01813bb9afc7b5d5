"""What an operator's open page shows while the world around it changes: another tab, a restart, a session that ends, a slow line."""

from __future__ import annotations

import re
import threading
from datetime import timedelta

import pytest
from playwright.sync_api import expect

from holdfast import Memory
from holdfast.conversation import Conversation

from .chromium import go, look
from .conftest import signed_in
from .served import serve

TALK = "/dashboard/conversations/priya/web-42"
PRIYA = "/dashboard/users/priya"


def editing(page, words):
    """Open the form that edits the last message of the user, and type into it."""
    said = page.locator("#transcript .said.user").last
    said.locator("details.more-of > summary").click()
    field = said.get_by_label(re.compile("^New text of message"))
    field.fill(words)
    return field


def test_what_one_tab_changes_the_other_shows_and_what_is_typed_there_stays(fresh, visitor):
    someone = visitor(fresh, "operator")
    reading, writing = someone.open(PRIYA), someone.open(PRIYA)
    reading.get_by_label("Category or words").fill("politics")
    fact = writing.locator(".belief", has_text="Plays the violin.")
    fact.locator("summary", has_text="Correct").click()
    fact.get_by_label("Correct value").fill("the cello")
    fact.get_by_role("button", name="Correct", exact=True).last.click()

    expect(reading.locator("#facts")).to_contain_text("the cello")
    expect(reading.locator("#facts")).to_contain_text(re.compile(r"Plays the violin\.\s*never true"))
    expect(reading.get_by_label("Category or words")).to_have_value("politics")
    assert someone.watch.all == []


def test_a_restart_is_said_and_what_happened_meanwhile_is_shown_by_itself(tmp_path, chromium):
    """The page says that it is not connected, keeps what is typed, and catches up once the server is back."""
    with Memory(tmp_path / "m.db") as memory:
        chat = memory.conversation("web-42", user="priya")
        chat.record("I live in Porto.", "Lovely.")
        with serve(memory) as site:
            someone = signed_in(chromium, site, "operator", {})
            page = someone.open(TALK)
            field = editing(page, "Words that took a long time.")
            chat.record("I have a cat.", "Nice.")
            expect(page.locator("#head")).to_contain_text("4 messages")
        try:
            expect(page.locator("#connection")).to_contain_text("Not connected", timeout=40_000)
            chat.record("I moved to Faro.", "Nice.")
            assert "Faro" not in page.locator("#head").inner_text()
            with serve(memory, port=int(site.origin.rpartition(":")[2])):
                expect(page.locator("#head")).to_contain_text("6 messages", timeout=40_000)
                expect(page.locator("#connection")).to_be_hidden()
                expect(page.locator("#facts")).to_contain_text("Faro")
                expect(field).to_have_value("Words that took a long time.")
        finally:
            someone.context.close()


@pytest.mark.parametrize("how", ["revoked", "expired"])
def test_a_session_that_ends_shows_nothing_more_and_keeps_what_was_typed(fresh, chromium, how):
    keys, clock = fresh.memory.admin.keys, fresh.memory._engine.clock
    made = keys.create("operator", expires_at=timedelta(hours=1))
    context = chromium.new_context(reduced_motion="reduce")
    page = context.new_page()
    look(page, 1280, 800, "light")
    go(page, f"{fresh.origin}/sign-in?next={TALK.replace('/', '%2F')}")
    page.locator("#key").fill(made.key)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{fresh.origin}{TALK}")
    editing(page, "Words that took a long time.")
    if how == "revoked":
        keys.revoke(made.about.id)
    else:
        clock.advance(hours=2)
    fresh.memory.conversation("web-42", user="priya").record("I have a cat named Miso.", "Lovely.")

    page.wait_for_url(re.compile("/sign-in"))
    assert "Miso" not in page.content()
    page.locator("#key").fill(fresh.key("operator"))
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(re.compile("/web-42"))
    expect(page.locator("#notice.warn")).to_contain_text("Your text is back")
    words = page.get_by_label(re.compile("^New text of message")).locator("visible=true")
    expect(words).to_have_value("Words that took a long time.")
    context.close()


def test_on_a_slow_line_two_presses_are_one_change(fresh, visitor):
    priya = fresh.memory.user("priya")
    page = visitor(fresh, "operator").open(PRIYA)
    network = page.context.new_cdp_session(page)
    slow = {"offline": False, "latency": 1000, "downloadThroughput": 50_000, "uploadThroughput": 20_000}
    network.send("Network.emulateNetworkConditions", slow)
    before = len(priya.history())
    fact = page.locator(".belief", has_text="Plays the violin.")
    fact.locator("summary", has_text="Correct").click()
    fact.get_by_label("Correct value").fill("the cello")
    save = fact.get_by_role("button", name="Correct", exact=True).last
    save.click()
    save.click(force=True, no_wait_after=True)

    expect(page.locator("#facts")).to_contain_text("the cello")
    assert len(priya.history()) == before + 1


def test_an_estimate_comes_by_itself_after_its_frame(fresh, visitor, monkeypatch):
    """Until it is there the page says what is read; Cancel closes it."""
    read, rebuild = threading.Event(), Conversation.rebuild
    monkeypatch.setattr(Conversation, "rebuild", lambda *given, **named: read.wait(60) and rebuild(*given, **named))
    someone = visitor(fresh, "operator")
    page = someone.open(TALK)
    page.get_by_role("tab", name="Rebuild").click()
    panel = page.locator("#rebuild")
    panel.get_by_label("What").select_option("facts")
    panel.get_by_role("button", name="Estimate first").click()
    expect(panel).to_contain_text("Reading messages")
    read.set()
    expect(panel.get_by_role("button", name="Rebuild this range")).to_be_visible()
    read.clear()
    page = someone.open(f"{TALK}?make=facts&first=2")
    expect(page.locator("#rebuild")).to_contain_text("Reading messages 2")
    page.locator("#rebuild").get_by_role("link", name="Cancel").click()
    expect(page.locator("#rebuild")).not_to_contain_text("Reading messages")
    read.set()
    assert someone.watch.all == []
