"""A prompt is tried on stored chunks before it is used; nothing changes but the recorded usage."""

from __future__ import annotations

import pytest

from holdfast import Config, Memory, Price
from holdfast.errors import BadInput, ConfigError, Conflict, NotFound
from holdfast.llm.prompts import load
from holdfast.llm.protocol import BadAnswer
from holdfast.testing.fakes import FakeClock
from holdfast.testing.model import ScriptedModel

from .moving import PHRASE, read

NAMES = ["chunk_summary", "meta_summary", "fact_extraction", "episodes", "character"]


@pytest.fixture
def model():
    return ScriptedModel({"facts": read})


@pytest.fixture
def memory(model):
    """A chat of 120 messages, digested with the model: chunks, one summary of summaries, one fact."""
    config = Config(prices={model.name: Price(input=1.0, output=1.0)})
    clock = FakeClock()
    with Memory(llm=model, embedder=None, clock=clock, config=config) as opened:
        chat = opened.conversation("c", user="ana")
        for turn in range(60):
            chat.record(PHRASE if turn == 50 else f"The train was late again, {turn} minutes.", "Oh.")
            clock.advance(minutes=2)
        chat.end()
        opened.digest()
        yield opened


def held(memory):
    """All that is held about ana but what calls cost."""
    data = memory.user("ana").export()
    return {name: value for name, value in data.items() if name not in ("usage", "exported_at")}


def test_a_draft_is_kept_and_not_used_until_it_is_activated(memory):
    prompts = memory.user("ana").prompts
    used = prompts.set("chunk_summary", "In verse.")
    draft = prompts.draft("chunk_summary", "In prose.")

    assert (draft.draft, draft.version, used.draft) == (True, 2, False)
    assert prompts.get("chunk_summary") == "In verse."
    active = prompts.activate("chunk_summary", 2)
    assert (active.version, active.draft, active.text) == (3, False, "In prose.")
    assert prompts.get("chunk_summary") == "In prose."
    assert prompts.versions("chunk_summary") == [used, draft, active]


def test_rolling_back_is_activating_an_older_version(memory):
    prompts = memory.user("ana").prompts
    for words in ("In verse.", "In prose."):
        prompts.set("chunk_summary", words)
    prompts.reset("chunk_summary")

    assert prompts.activate("chunk_summary", 1).digest == prompts.versions("chunk_summary")[0].digest
    assert prompts.get("chunk_summary") == "In verse."
    prompts.activate("chunk_summary", 3)
    assert prompts.get("chunk_summary") == load("chunk_summary").task
    with pytest.raises(NotFound):
        prompts.activate("chunk_summary", 99)


def test_many_drafts_never_push_out_the_words_in_use(memory):
    prompts = memory.user("ana").prompts
    prompts.set("chunk_summary", "In verse.")
    for number in range(60):
        prompts.draft("chunk_summary", f"words {number}")

    assert prompts.get("chunk_summary") == "In verse."


def test_drafts_are_exported_as_drafts(memory):
    prompts = memory.user("ana").prompts
    prompts.set("chunk_summary", "In verse.")
    prompts.draft("chunk_summary", "In prose.")
    data = memory.user("ana").export()
    memory.user("ana").erase()
    memory.import_(data)

    assert prompts.get("chunk_summary") == "In verse."
    assert [version.draft for version in prompts.versions("chunk_summary")] == [False, True]


@pytest.mark.parametrize("name", NAMES)
def test_trying_asks_once_a_chunk_with_the_new_words_and_writes_nothing(memory, model, name):
    before, layer = held(memory), name.replace("fact_extraction", "facts")
    model.asked.clear()
    found = memory.user("ana").prompts.preview(name, "Only what matters to a gardener.", limit=2)
    asked = model.requests(layer)

    assert held(memory) == before
    assert len(asked) == found.calls == len(model.asked) == len(found.samples) > 0
    assert all(request.system.startswith("Only what matters to a gardener.") for request in asked)
    assert {request.prompt for request in asked} == {found.digest}
    assert found.tokens > 0
    assert found.cost == pytest.approx(found.tokens / 1e6)
    assert all(sample.error == "" for sample in found.samples)


def test_a_dry_run_asks_nothing_and_estimates_upwards(memory, model):
    model.asked.clear()
    prompts = memory.user("ana").prompts
    estimate = prompts.preview("chunk_summary", "In verse.", dry_run=True)
    assert model.asked == []
    found = prompts.preview("chunk_summary", "In verse.")

    assert (estimate.dry_run, estimate.calls) == (True, found.calls)
    assert estimate.tokens >= found.tokens
    assert [sample.new for sample in estimate.samples] == [""] * 3
    assert [sample.old for sample in estimate.samples] == [sample.old for sample in found.samples]


def test_the_newest_chunks_are_tried_and_what_stands_there_is_told(memory):
    chat = memory.conversation("c", user="ana")
    told = [summary for summary in chat.summaries(1)]
    found = memory.user("ana").prompts.preview("chunk_summary", "In verse.", dry_run=True)

    assert [(one.start_seq, one.end_seq, one.old, one.source) for one in found.samples] == [
        (s.start_seq, s.end_seq, s.text, s.source) for s in reversed(told[-3:])
    ]


def test_facts_that_new_words_find_or_lose_are_named(memory, model):
    prompts = memory.user("ana").prompts
    everything = prompts.preview("fact_extraction", "All of it.", limit=20)
    kept = [sample for sample in everything.samples if "Porto" in sample.old]
    assert [(sample.gained, sample.lost) for sample in kept] == [((), ())]
    assert "Porto" in kept[0].new

    model._functions["facts"] = lambda request: "NONE"
    nothing = prompts.preview("fact_extraction", "Only of gardens.", limit=20)
    assert [sample.lost for sample in nothing.samples if sample.old] == [(kept[0].old.removeprefix("- "),)]


def test_an_answer_that_cannot_be_had_is_told_and_the_others_are_shown(memory, model):
    model.say("chunk_summary", BadAnswer("it rambled"))
    found = memory.user("ana").prompts.preview("chunk_summary", "In verse.")

    assert [bool(sample.error) for sample in found.samples] == [True, False, False]
    assert found.samples[0].new == ""
    assert found.calls == 3


def test_what_cannot_be_tried_is_refused(memory):
    ana = memory.user("ana")
    for name, words in (("poem", "x"), ("chunk_summary", "  "), ("chunk_summary", "x" * 4001)):
        with pytest.raises(BadInput):
            ana.prompts.preview(name, words)
    ana.pause()
    with pytest.raises(Conflict):
        ana.prompts.preview("chunk_summary", "In verse.")


def test_without_a_model_it_says_what_is_needed():
    with Memory(embedder=None) as memory, pytest.raises(ConfigError, match="rules take no prompts") as refused:
        memory.user("ana").prompts.preview("chunk_summary", "In verse.")
    assert "llm=" in refused.value.hint


def test_somebody_without_chunks_has_nothing_to_try_on(memory, model):
    model.asked.clear()
    assert memory.user("nobody").prompts.preview("chunk_summary", "In verse.").samples == ()
    memory.conversation("n", user="new").record("Hello there.", "Hello!")
    assert memory.user("new").prompts.preview("chunk_summary", "In verse.").samples == ()
    facts = memory.user("new").prompts.preview("fact_extraction", "All.")
    assert [(one.start_seq, one.end_seq) for one in facts.samples] == [(1, 2)]
