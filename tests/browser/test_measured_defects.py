"""
Twelve defects of the pages that were measured once, and the tests that fail without their mends.

`MENDED` maps each to its tests, here and in the other files; those that had none in a browser are here.
"""

from __future__ import annotations

import importlib
import re
import threading
from datetime import UTC, datetime

import pytest
from playwright.sync_api import expect

from holdfast.server.pages import metrics

from .served import serve
from .story import opened

MENDED = {
    "1. a rebuild loses facts in silence, and takes three reverts": [
        "test_nothing_lost.test_a_rebuild_lists_the_facts_that_it_loses_and_one_revert_brings_them_back"
    ],
    "2. two tabs correct one fact": ["test_nothing_lost.test_of_two_tabs_the_second_sees_both_words_and_chooses"],
    "3. on a phone the message and Undo are out of sight": [
        "test_nothing_lost.test_on_a_phone_the_confirmation_and_undo_are_in_view"
    ],
    "4. jobs are capped at 1,000, green during an outage, one Retry each, reasons that say nothing": [
        "test_measured_defects.test_every_job_is_counted_and_an_outage_is_not_green",
    ],
    "5. up to date above stale blocks, a conversation cannot be erased, no Undo after Correct": [
        "test_measured_defects.test_stale_is_not_up_to_date_and_a_conversation_is_erased",
        "test_tasks_by_keyboard.test_five_tasks_of_an_operator",
    ],
    "6. corrections are a conversation with a quote that nobody said": [
        "test_measured_defects.test_facts_by_hand_are_no_conversation"
    ],
    "7. errors look like successes, and typed text is lost with the session": [
        "test_nothing_lost.test_an_error_looks_like_one",
        "test_nothing_lost.test_text_that_was_typed_survives_the_end_of_the_session",
    ],
    "8. empty pages name commands that fill another store": [
        "test_home.test_the_demo_is_loaded_into_an_empty_memory_only"
    ],
    "9. long texts are not folded, other directions not shown, long names overflow": [
        "test_nothing_lost.test_long_texts_are_folded_and_long_names_stay_on_the_page"
    ],
    "10. 56 Tabs to a rebuild, and the focus stays behind": [
        "test_nothing_lost.test_rebuilding_a_chunk_is_a_few_keys_away",
        "test_conversations.test_the_keyboard_is_enough",
    ],
    "11. rejected candidates and repeated questions lead nowhere": [
        "test_measured_defects.test_what_was_rejected_or_asked_again_leads_to_its_message"
    ],
    "12. metrics without progress, 1 messages, old dates without a year": [
        "test_measured_defects.test_metrics_say_that_they_count_and_old_dates_have_their_year"
    ],
}


def test_each_defect_has_its_tests():
    for defect, tests in MENDED.items():
        for test in tests:
            file, _, name = test.partition(".")
            module = importlib.import_module(f"{__package__}.{file}")
            assert callable(getattr(module, name, None)), (defect, test)
    assert len(MENDED) == 12


def test_every_job_is_counted_and_an_outage_is_not_green(visitor):
    """1,100 jobs that failed in one way are one line with one button and an advice; those held up are not "On time"."""
    with opened() as memory:
        for number in range(1100):
            memory.conversation("web", user=f"user{number:04}").append([{"role": "user", "content": "I like clocks."}])
        jobs = memory.jobs(limit=5000)
        for job in jobs:
            memory.cancel(job.id)
        with serve(memory) as site:
            someone = visitor(site, "operator")
            page = someone.open("/dashboard/jobs?state=cancelled")
            assert len(jobs) >= 1100
            expect(page.locator("#jobs [data-count]").first).to_have_text(f"{len(jobs):,}")
            assert page.locator("details.job-group").count() <= 4
            assert page.evaluate("document.body.scrollHeight") < 6000
            page.locator("details.job-group > summary").first.click()
            page.get_by_role("button", name=re.compile("Retry all 1,1")).first.click()
            expect(page.locator("#jobs option[value=ready]")).not_to_have_text("Ready (0)")
            assert someone.watch.all == []
        for job in memory.jobs("cancelled", limit=5000)[:5]:
            memory.retry(job.id)


@pytest.fixture
def desk(fresh, visitor):
    someone = visitor(fresh, "operator")
    yield someone
    assert someone.watch.all == []


def test_stale_is_not_up_to_date_and_a_conversation_is_erased(fresh, desk):
    chat = fresh.memory.conversation("japan", user="priya")
    chat.rebuild("summaries", end_seq=10)
    assert any(summary.stale for summary in chat.summaries())  # the one above
    page = desk.open("/dashboard/conversations/priya/japan")
    expect(page.locator("#head")).to_contain_text("out of date")
    expect(page.locator("#head")).not_to_contain_text("up to date")

    page.get_by_role("tab", name="Rebuild").click()
    page.locator("#erase summary").first.click()
    page.locator("#erase .confirm summary").click()
    page.locator("#erase").get_by_label("Type").fill("erase")
    page.get_by_role("button", name="Erase the conversation").click()
    page.wait_for_url("**/dashboard/conversations/priya?**")
    expect(page.locator("#list")).not_to_contain_text("japan")
    assert "japan" not in fresh.memory.user("priya").conversations()


def test_facts_by_hand_are_no_conversation(desk):
    page = desk.open("/dashboard/conversations")
    expect(page.locator("main")).not_to_contain_text("by hand")
    page = desk.open("/dashboard/users/priya")
    assert "(by hand)" not in page.locator("#conversations").inner_text()
    violin = page.locator(".belief", has_text="Plays the violin.")
    violin.locator("summary", has_text="Evidence").click()
    expect(violin).to_contain_text("Entered by hand")
    assert violin.locator("q").count() == 0  # nobody said it


def test_what_was_rejected_or_asked_again_leads_to_its_message(fresh, desk):
    page = desk.open("/dashboard/users/priya")
    page.locator("#rejected summary").click()
    link = page.locator("#rejected a").first
    number = re.search(r"message (\d+) of (\S+)", link.inner_text())
    link.click()
    expect(page.locator(f"#m{number[1]}")).to_be_visible()

    fresh.memory.conversation("again", user="sara").record("I live in Porto.", "Where do you live?")
    page.goto(fresh.origin + "/dashboard/metrics?user=sara")
    asked = page.locator("#again li", has_text="Where do you live?")
    expect(asked).to_have_count(1)
    asked.get_by_role("link").first.click()
    expect(page.locator("#m2")).to_contain_text("Where do you live?")


def test_metrics_say_that_they_count_and_old_dates_have_their_year(fresh, desk, monkeypatch):
    fresh.memory.conversation("old", user="omar").append(
        [{"role": "user", "content": "I live in Porto.", "at": datetime(2023, 4, 5, 9, tzinfo=UTC)}]
    )
    page = desk.open("/dashboard/conversations/omar/old")
    expect(page.locator("#m1 time")).to_contain_text("5 Apr 2023")
    for path in (
        "/dashboard/conversations",
        "/dashboard/conversations/omar",
        "/dashboard/users",
        "/dashboard/users/omar",
    ):
        page.goto(fresh.origin + path)
        assert not re.search(
            r"(?<![\d,.])1 (?:messages|facts|conversations|users|jobs)\b", page.locator("main").inner_text()
        )

    counted, measure = threading.Event(), metrics.measure
    monkeypatch.setattr(metrics, "measure", lambda *given: counted.wait(60) and measure(*given))
    page.goto(fresh.origin + "/dashboard/metrics?since=2020-01-01")
    expect(page.locator("#measures")).to_contain_text("Measuring")
    counted.set()  # and without a reload it is there
    expect(page.locator("#measures")).to_contain_text("Recall hit rate")
