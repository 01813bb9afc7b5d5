"""The sections of a layered context: summaries of both levels side by side, and the character, where they are asked for."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from holdfast import Config, Memory, strategies
from holdfast.testing.fakes import FakeClock
from holdfast.testing.model import ScriptedModel

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
BOTH = strategies.Layered(side_by_side=True)
ROW = "identity,name,Captain Flint,0.95,,set,asserted,permanent,2,I am Captain Flint"


def long_talk(memory: Memory, clock: FakeClock) -> None:
    chat = memory.conversation("a", user="ana")
    for day in range(70):
        chat.record(f"On day {day} I ran {day + 3} kilometers along the river to the mill.", "Well done, keep it up!")
        clock.advance(seconds=86_400)
    chat.end()
    memory.digest()


@pytest.fixture
def memory():
    clock = FakeClock(START)
    with Memory(embedder=None, clock=clock, config=Config(rollup_summaries=3)) as opened:
        long_talk(opened, clock)
        yield opened


def ranges(context, name):
    return [(s.start_seq, s.end_seq) for s in context.sources if s.section == name]


def test_meta_and_chunk_summaries_stand_side_by_side_when_asked_for(memory):
    chat = memory.conversation("a", user="ana")
    usual, both = chat.context(budget_tokens=6_000), chat.context(budget_tokens=6_000, strategy=BOTH)
    meta, chunks = ranges(both, "meta_summaries"), ranges(both, "chunk_summaries")

    assert [section.name for section in both.sections][:3] == ["meta_summaries", "chunk_summaries", "facts"]
    assert meta
    verbatim = ranges(both, "recent")[0][0]
    told = {(s.start_seq, s.end_seq) for s in chat.summaries(1) if s.end_seq <= meta[-1][1] and s.start_seq < verbatim}
    assert told == {one for one in chunks if one[1] <= meta[-1][1]}
    assert not {section.name for section in usual.sections} & {"meta_summaries", "chunk_summaries"}
    assert both.tokens <= 6_000
    assert "<meta_summaries>" in both.messages[0]["content"]


def test_a_meta_summary_is_shown_though_its_last_messages_are_shown_as_well():
    """After ten chunks the one meta summary tells of all of them; the last of these are among the recent messages."""
    with Memory(embedder=None, config=Config(chunk_exchanges=5, rollup_summaries=10)) as memory:
        chat = memory.conversation("a", user="ana")
        for day in range(52):
            chat.record(f"On day {day} I ran {day + 3} kilometers along the river.", "Well done, keep it up!")
        memory.digest()
        both = chat.context(budget_tokens=6_000, strategy=BOTH)

        assert [(s.start_seq, s.end_seq) for s in chat.summaries(2)] == [(1, 100)]
        assert ranges(both, "meta_summaries") == [(1, 100)]
        assert len(ranges(both, "chunk_summaries")) == 8
        assert both.section("recent").items[0].startswith("user: ")
        assert "meta_summaries" not in {s.name for s in chat.context().sections}


@pytest.mark.parametrize("budget", [300, 600, 900, 1_500, 3_000])
def test_the_budget_holds_and_meta_summaries_come_first(memory, budget):
    context = memory.conversation("a", user="ana").context("How far did I run?", budget_tokens=budget, strategy=BOTH)

    assert context.tokens <= budget
    assert context.tokens == sum(section.tokens for section in context.sections)
    if ranges(context, "chunk_summaries"):
        assert ranges(context, "meta_summaries")


def test_the_stable_part_stays_the_same_from_question_to_question(memory):
    chat = memory.conversation("a", user="ana")
    first = chat.context("How far did I run?", strategy=BOTH)
    second = chat.context("Where is the mill?", strategy=BOTH)

    assert first.prefix_sha256 == second.prefix_sha256
    assert second.prefix_changed_because is None


def test_the_character_has_a_section_of_its_own_that_can_be_left_out():
    model = ScriptedModel({"character": [ROW]})
    config = Config(extract_every_user_turns=1, character_facts=True)
    with Memory(embedder=None, llm=model, config=config) as memory:
        chat = memory.conversation("a", user="ana")
        chat.record("I live in Porto. Who are you?", "I am Captain Flint.")
        memory.digest()
        context = chat.context("And then?")
        without = chat.context("And then?", strategy=strategies.Layered(character=False))

        (line,) = map(json.loads, context.section("character").items)
        assert "Captain Flint" in line
        assert not line.startswith("assistant")
        assert "character that you play" in context.section("character").text
        assert "Captain Flint" not in context.section("facts").text
        assert "Porto" in context.section("facts").text
        assert "character" not in {section.name for section in without.sections}
        assert "Captain Flint" not in without.section("facts").text
        assert "Captain Flint" not in memory.user("ana").profile().text
        assert context.tokens == sum(section.tokens for section in context.sections)
