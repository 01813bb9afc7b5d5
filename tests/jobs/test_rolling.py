"""Contexts of a model's own rolling summary, and contexts that need no summary at all."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast import Config, Memory, strategies
from holdfast.testing.fakes import FakeClock
from holdfast.testing.model import ScriptedModel

SAYS = "They plan a trip from town to town."


def talk(memory: Memory, clock: FakeClock, turns: int, strategy):
    chat = memory.conversation("a", user="ana", strategy=strategy)
    for number in range(turns):
        chat.record(f"And then there is town number {number}, a nice place by the sea.", "Indeed, a nice one.")
        clock.advance(seconds=60)
        memory.digest()
    return chat


def summarizer():
    """Return a model that has a summary for each chunk of a talk."""
    model = ScriptedModel()
    for _ in range(9):
        model.say("chunk", SAYS)
        model.say("chunk_summary", SAYS)
    return model


def section(context, name):
    return next(part for part in context.sections if part.name == name)


def test_with_a_model_the_summary_is_its_own_with_times_and_no_extracts(clock):
    with Memory(embedder=None, llm=summarizer(), clock=clock, config=Config(chunk_tokens=600)) as memory:
        chat = talk(memory, clock, 20, strategies.Summary(2))
        context = chat.context("What now?")
        told = section(context, "summaries")
        shown = str(context.messages)

        assert told.items
        assert "extracts" not in told.text
        assert "2026-01-05" in told.text
        assert all(not one.source.startswith("rules") for one in chat.summaries())
        assert all(f"town number {number}," in shown for number in range(18, 20))
        assert len(section(context, "recent").items) < 30
        assert memory.doctor().findings == ()


def test_the_last_exchanges_are_shown_where_a_model_summarized_them_already(clock):
    with Memory(embedder=None, llm=summarizer(), clock=clock, config=Config(chunk_tokens=600)) as memory:
        chat = talk(memory, clock, 20, strategies.Summary(2))
        chat.end()
        memory.digest()
        context = chat.context("What now?")

        assert "town number 18," not in section(context, "summaries").text
        assert [f"town number {number}," in str(context.messages) for number in (17, 18, 19)] == [False, True, True]


def test_without_a_model_the_summary_is_extracts(memory, clock):
    chat = talk(memory, clock, 8, strategies.Summary(2))

    assert "extracts" in section(chat.context("What now?"), "summaries").text


def test_facts_and_the_last_two_turns_need_no_summary(memory, clock):
    chat = memory.conversation("a", user="ana", strategy=strategies.Facts(2))
    for text in ("I'm vegetarian.", "I live in Porto.", *(f"Nice weather, day {n}." for n in range(40))):
        chat.record(text, "Indeed.")
    assert "chunk" not in {job.kind for job in memory.jobs()}
    memory.digest()
    chat.end()
    assert "chunk" not in {job.kind for job in memory.jobs()}
    context = chat.context("What can I eat?")

    assert chat.summaries() == []
    assert [line for line in section(context, "facts").items if "vegetarian" in line or "Porto" in line]
    assert [line.split(":")[0] for line in section(context, "recent").items] == ["user", "assistant"] * 2 + ["user"]
    assert section(context, "summaries").items == section(context, "recalled").items == ()
    assert memory.doctor().findings == ()


def test_a_setting_makes_no_summaries_of_any_conversation(clock):
    with Memory(embedder=None, clock=clock, config=Config(summaries=False)) as memory:
        chat = talk(memory, clock, 30, None)
        chat.end()
        memory.digest()

        assert chat.summaries() == []
        assert memory.jobs() == []


def test_facts_and_turns_keep_a_small_budget(memory, clock):
    chat = memory.conversation("a", user="ana", strategy=strategies.Facts(2))
    chat.record("I'm vegetarian, and I live in Porto, and I'm allergic to nuts.", "Noted.")
    for budget in (1, 20, 60, 200):
        assert chat.context("What can I eat?", budget_tokens=budget).tokens <= max(budget, 1)


@pytest.mark.parametrize(("config", "strategy"), [({"summaries": False}, None), ({}, "facts/2")])
def test_where_no_summary_is_made_a_model_reads_short_and_long_conversations(config, strategy, clock):
    model = ScriptedModel()
    with Memory(embedder=None, llm=model, clock=clock, config=Config(**config)) as memory:
        old = memory.conversation("old", user="ana", strategy=strategy)
        old.append(
            [
                {
                    "role": "user",
                    "content": "I live in Porto and my sister Ana is a nurse.",
                    "at": clock() - timedelta(days=99),
                }
            ]
        )
        memory.digest()
        assert len(model.requests("facts")) == 1

        chat = memory.conversation("new", user="ana", strategy=strategy)
        for number in range(40):
            chat.record(
                f"I live in town {number} and my sister Ana is a nurse there. " + "We like it. " * 20, "Indeed."
            )
            clock.advance(minutes=1)
            memory.digest()
        clock.advance(days=1)
        memory.digest()

        read = " ".join(request.text.rpartition("<read>")[2] for request in model.requests("facts"))
        assert all(f"town {number} " in read for number in range(40))
