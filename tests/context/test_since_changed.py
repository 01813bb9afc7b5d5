"""A summary that says what is not believed any more says so where it is shown; and every line of a summary has its days."""

from __future__ import annotations

import re

import pytest

from holdfast import Config, Memory, strategies
from holdfast.testing.fakes import FakeClock
from holdfast.testing.model import ScriptedModel

SUMMARY = "SUMMARY: Ana is vegetarian and lives in Lisbon. She plans a dinner.\nTHEMES: dinner\nCONCERNS: -\nACTIONS: -"


@pytest.fixture
def told():
    """A chunk with a summary, and two more messages after it."""
    model = ScriptedModel({"chunk_summary": [SUMMARY] * 3})
    with Memory(embedder=None, llm=model, clock=FakeClock(), config=Config(recent_messages=2)) as memory:
        chat = memory.conversation("a", user="ana")
        chat.record("I'm vegetarian and I live in Lisbon.", "Nice.")
        for number in range(4):
            chat.record(f"Tell me about dish number {number}.", "It is a dish.")
        chat.record("And what goes with rice?", "Beans.")
        memory.digest()
        yield memory, chat, model


def line(chat):
    return chat.context("What should I cook?", strategy=strategies.Summary(1)).section("summaries").items[0]


def test_a_line_has_the_days_of_its_messages(told):
    _, chat, _ = told
    (summary,) = chat.summaries()

    assert line(chat).startswith('"messages 1-10 (2026-01-05): Ana is vegetarian')
    assert summary.days == "2026-01-05"
    assert (summary.first_at, summary.last_at) == (chat.load(start_seq=1)[0].at, chat.load(start_seq=10)[0].at)


def test_a_replaced_value_is_noted_and_the_rest_is_not(told):
    memory, chat, _ = told
    before = line(chat)
    chat.record("I moved to Porto.", "Congratulations!")
    memory.digest()

    assert line(chat) == before[:-1] + ' (since changed: Lisbon: Lives in Porto)"'
    assert "since changed" not in chat.summaries()[0].text


def test_an_unchanged_summary_has_no_note(told):
    memory, chat, _ = told
    before = line(chat)
    chat.record("I like figs.", "Good.")
    memory.digest()

    assert line(chat) == before


def test_the_next_level_is_told_what_changed(told):
    memory, chat, model = told
    chat.record("I moved to Porto.", "Congratulations!")
    for number in range(11):
        chat.record(f"Tell me about place number {number}.", "It is a place.")
    memory.digest()
    (request,) = model.requests("meta_summary")

    assert "since changed: Lisbon: Lives in Porto" in request.text


def test_a_note_says_nothing_about_a_paused_subject_and_no_secret(tmp_path):
    def opened(*detectors):
        model = ScriptedModel({"chunk_summary": [SUMMARY.replace("Ana", "Rex")] * 3})
        config = Config(recent_messages=2, detectors=detectors)
        return Memory(tmp_path / "memory.db", embedder=None, llm=model, clock=FakeClock(), config=config)

    with opened() as memory:
        memory.user("ana").subject("rex", name="Rex")
        chat = memory.conversation("a", user="ana")
        chat.record("Rex lives in Lisbon.", "Nice.")
        for number in range(5):
            chat.record(f"Tell me about dish number {number}.", "It is a dish.")
        memory.digest()
        chat.record("Rex moved to Porto.", "Good dog.")
        memory.digest()
        assert "(since changed: Lisbon: Rex lives in Porto)" in line(chat)
        (hit,) = [hit for hit in memory.user("ana").search("Rex Lisbon") if hit.seq == 1 and hit.kind == "message"]
        assert "Porto" in hit.replaced_by

        memory.user("ana", subject="rex").pause()
        assert "since changed" not in line(chat)
        (hit,) = [hit for hit in memory.user("ana").search("Rex Lisbon") if hit.seq == 1 and hit.kind == "message"]
        assert not hit.replaced_by
        memory.user("ana", subject="rex").resume()

    with opened(City()) as memory:
        assert "(since changed: Lisbon: Rex lives in [city removed])" in line(memory.conversation("a", user="ana"))


class City:
    """A detector of one town, set up after it was learned."""

    kind = "city"

    def find(self, text):
        return [match.span() for match in re.finditer("Porto", text)]


def test_the_times_of_a_summary_are_those_of_the_messages_that_remain(clock):
    with Memory(embedder=None, clock=clock, config=Config(recent_messages=2)) as memory:
        chat = memory.conversation("a", user="ana")
        for number in range(12):
            chat.record(f"Tell me about lamp number {number}.", "It is a lamp.")
            clock.advance(days=1)
        memory.digest()
        chat.forget(1)
        chat.forget(2)
        summary = chat.summaries()[0]

        assert (summary.start_seq, summary.first_at) == (1, chat.load(start_seq=3)[0].at)
