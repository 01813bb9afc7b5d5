"""Forgetting one fact takes its own words, and leaves the facts beside it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from holdfast import Memory
from tests import keeping


def say(memory: Memory, text: str, reply: str = "Noted.") -> None:
    memory.conversation("chat", user="ana").record(text, reply)
    memory.digest()


def forget(memory: Memory, value: str, *, dry_run: bool = False):
    ana = memory.user("ana")
    (fact,) = (one for one in ana.facts() if value in (one.value, one.text))
    return ana.forget(fact.id, dry_run=dry_run)


def test_a_sibling_stays_with_its_evidence(memory: Memory) -> None:
    say(memory, "I'm allergic to nuts and shellfish.", "No nuts for you.")
    receipt = forget(memory, "nuts")
    ana = memory.user("ana")

    (left,) = ana.facts()
    assert left.value == "shellfish"
    (quote,) = left.evidence
    assert quote.quote == "I'm allergic to \u2588\u2588\u2588\u2588 and shellfish"
    said = memory.conversation("chat", user="ana").load()
    assert said[0].content[quote.start : quote.end] == quote.quote
    assert receipt.level == keeping.erased()
    assert "nuts" not in str(ana.export()) + str(said)
    assert not [hit for hit in ana.search("nuts") if "nuts" in hit.text]
    assert memory.doctor().ok


def test_what_was_forgotten_is_not_learned_again_and_the_rest_is(memory: Memory) -> None:
    say(memory, "I'm allergic to nuts and shellfish.")
    forget(memory, "nuts")
    memory.conversation("chat", user="ana").rebuild("facts")

    assert [fact.value for fact in memory.user("ana").facts()] == ["shellfish"]


@pytest.mark.parametrize(
    ("text", "value", "left"),
    [
        ("I'm allergic to nuts, eggs and shellfish.", "eggs", {"nuts", "shellfish"}),
        ("I speak Spanish and German.", "German", {"Spanish"}),
        ("My sister Meera lives in Rome.", "Rome", {"Meera"}),
        ("I have a dog named Rex.", "Rex", set()),
        ("I live in Porto. I'm allergic to nuts.", "nuts", {"Porto"}),
    ],
)
def test_only_what_says_the_same_goes_as_well(memory: Memory, text: str, value: str, left: set[str]) -> None:
    say(memory, text)
    plan = forget(memory, value, dry_run=True).preview
    before = {fact.id: fact for fact in memory.user("ana").facts()}
    forget(memory, value)
    after = {fact.id: fact for fact in memory.user("ana").facts()}

    assert {fact.value for fact in after.values()} == left
    assert {fact.id for fact in plan.facts} == before.keys() - after.keys()
    assert all(after[fact.id].evidence == fact.evidence for fact in plan.kept)
    assert [m.content for m in plan.messages] == [memory.conversation("chat", user="ana").load(limit=1)[0].content]


def test_a_dry_run_changes_nothing(memory: Memory) -> None:
    for number in range(24):
        say(memory, f"I'm allergic to nuts and shellfish, as I said {number} times.")
    ana = memory.user("ana")
    before, version = ana.export(), ana.last_event()
    receipt = forget(memory, "nuts", dry_run=True)

    assert (receipt.level, receipt.verified_at) == ("E0", None)
    assert receipt.preview.summaries
    assert (ana.export(), ana.last_event()) == (before, version)
    assert forget(memory, "nuts").rows == receipt.rows


def test_a_summary_is_written_anew_without_the_forgotten_word(memory: Memory) -> None:
    for number in range(24):
        say(memory, f"I'm allergic to nuts and shellfish, as I said {number} times.")
    forget(memory, "nuts")

    summaries = memory.conversation("chat", user="ana").summaries()
    assert summaries
    assert "nuts" not in str(summaries)


def test_a_receipt_of_an_erasure_has_no_preview(memory: Memory) -> None:
    say(memory, "I live in Porto.")

    assert forget(memory, "Porto").preview is None


def test_a_fact_that_the_fall_of_its_successor_brought_back_leaves_no_words_behind(tmp_path):
    """Both fall with one conversation; the successor first, as its id is the smaller one."""
    noon = datetime(2026, 3, 2, 12, tzinfo=UTC)
    clock = [noon]
    with Memory(tmp_path / "a.db", embedder=None, clock=lambda: clock[0]) as memory:
        chat, ana = memory.conversation("c", user="ana"), memory.user("ana")
        for text, now, said in (("I live in Porto.", 0, -60), ("I moved to Rome.", -30, -40)):
            clock[0] = noon + timedelta(minutes=now)
            at = (noon + timedelta(minutes=said)).isoformat()
            chat.append([{"role": "user", "content": text, "at": at}])
            memory.digest()
        clock[0] = noon + timedelta(hours=1)
        before = ana.facts(as_of=noon - timedelta(minutes=50))
        assert [fact.value for fact in ana.facts("home")] == ["Rome"]
        assert [fact.value for fact in before] == ["Porto"]
        assert ana.facts("home")[0].id < before[0].id

        chat.clear()

        assert memory.doctor().findings == ()
