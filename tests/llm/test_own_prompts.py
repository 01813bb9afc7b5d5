"""Six prompts can be replaced by a user's own text, and the model gets that."""

from __future__ import annotations

import pytest

from holdfast import Config, Memory, PromptVersion
from holdfast.errors import BadInput, Conflict
from holdfast.llm.prompts import SAFETY, load
from holdfast.testing.fakes import FakeClock
from holdfast.testing.model import ScriptedModel

from .moving import PHRASE, read, read_all

NAMES = ["chunk_summary", "meta_summary", "fact_extraction", "episodes", "character", "story"]


@pytest.fixture
def memory():
    with Memory(embedder=None, clock=FakeClock()) as opened:
        yield opened


@pytest.mark.parametrize("name", NAMES)
def test_own_words_are_used_until_they_are_reset(memory, name):
    prompts = memory.user("ana").prompts
    ours = prompts.get(name)
    first, second = prompts.set(name, "  In verse. "), prompts.set(name, "In prose.")

    assert ours == load(name).task
    assert prompts.get(name) == "In prose."
    third = prompts.reset(name)
    assert prompts.get(name) == ours
    assert prompts.versions(name) == [first, second, third]
    assert [(v.version, v.text) for v in prompts.versions(name)] == [(1, "In verse."), (2, "In prose."), (3, "")]
    assert third.digest == load(name).digest
    assert len({first.digest, second.digest, third.digest}) == 3
    assert isinstance(first, PromptVersion)
    assert first.since == FakeClock()()


def test_what_somebody_sets_is_theirs_alone(memory):
    memory.user("ana").prompts.set("chunk_summary", "In verse.")
    ours = load("chunk_summary").task

    for other in (memory.user("bo"), memory.user("ana", org="acme"), memory.user("ana", bot="other")):
        assert other.prompts.get("chunk_summary") == ours
    assert memory.user("ana").prompts.get("meta_summary") == load("meta_summary").task


@pytest.mark.parametrize("name", ["rolling_summary", "combined", "CHUNK_SUMMARY", "", None, 3])
def test_other_prompts_are_not_to_be_had(memory, name):
    prompts = memory.user("ana").prompts
    for call in (prompts.get, prompts.reset, prompts.versions, lambda name: prompts.set(name, "words")):
        with pytest.raises(
            BadInput, match="use chunk_summary, meta_summary, fact_extraction, episodes, character, story"
        ):
            call(name)


@pytest.mark.parametrize("text", ["", "  \n", None, 7, "x" * 4001])
def test_words_that_cannot_be_used_are_refused(memory, text):
    with pytest.raises(BadInput):
        memory.user("ana").prompts.set("chunk_summary", text)
    assert memory.admin.users() == []


def test_fifty_versions_are_kept(memory):
    prompts = memory.user("ana").prompts
    for number in range(60):
        prompts.set("chunk_summary", f"words {number}")

    assert [version.version for version in prompts.versions("chunk_summary")] == list(range(11, 61))


def test_who_opted_out_keeps_no_prompts(memory):
    ana = memory.user("ana")
    ana.prompts.set("chunk_summary", "In verse.")
    ana.opt_out()

    assert ana.prompts.get("chunk_summary") == load("chunk_summary").task
    with pytest.raises(Conflict, match="opt_in"):
        ana.prompts.set("chunk_summary", "In verse.")


def test_prompts_are_exported_erased_and_found_by_the_receipt(memory):
    ana = memory.user("ana")
    ana.prompts.set("chunk_summary", "Speak of quixotry.")
    ana.prompts.reset("chunk_summary")
    versions, data = ana.prompts.versions("chunk_summary"), ana.export()
    receipt = ana.erase()

    assert receipt.rows["prompts"] == 2
    assert ana.prompts.versions("chunk_summary") == []
    memory.import_(data)
    assert ana.prompts.versions("chunk_summary") == versions
    assert memory.doctor().ok


def spoken(memory, clock, turns=60):
    """A chat of some length in which somebody moves; the background has done its work."""
    chat = memory.conversation("c", user="ana")
    for turn in range(turns):
        chat.record(PHRASE if turn == 50 else f"The train was late again, {turn} minutes.", "Oh.")
        clock.advance(minutes=2)
        if turn in (49, 50):
            memory.digest()
    memory.digest()
    return chat


@pytest.mark.parametrize(
    ("name", "layer"), [(name, name.replace("fact_extraction", "facts")) for name in NAMES if name != "story"]
)
def test_the_model_is_told_own_words_from_the_next_call_on_and_the_rows_name_them(name, layer):
    model, clock = ScriptedModel({"facts": read}), FakeClock()
    with Memory(llm=model, embedder=None, clock=clock, config=Config(character_facts=True)) as memory:
        ana = memory.user("ana")
        for words in (None, "Only what matters to a gardener."):
            digest = ana.prompts.set(name, words).digest if words else load(name).digest
            chat = spoken(memory, clock)
            if name == "chunk_summary":
                chat.rebuild("summaries")
            if name == "episodes":  # asked for together with the rest of a chunk
                assert ("For the episodes: Only what matters" in model.requests("combined")[-1].system) == bool(words)
                ana.clear()
                continue
            asked = model.requests(layer)[-1]

            assert asked.system.startswith(f"{words or load(name).task}\n\n{load(name).shape}\n\n{SAFETY}")
            assert asked.prompt == digest
            if name not in ("episodes", "character"):  # nothing of theirs was said
                assert f"{model.name} {digest}" in {row.source for row in [*ana.facts(), *chat.summaries(live=False)]}
            ana.clear()


@pytest.mark.parametrize("layer", ["facts", "episodes", "character"])
def test_own_words_for_facts_reach_every_call_that_extracts(layer):
    model, clock = ScriptedModel({"facts": read}), FakeClock()
    with Memory(llm=model, embedder=None, clock=clock, config=Config(character_facts=True)) as memory:
        ana = memory.user("ana")
        ana.prompts.set("fact_extraction", "Only what matters to a gardener.")
        spoken(memory, clock)
        asked = "combined" if layer == "episodes" else layer
        assert "Only what matters to a gardener." in model.requests(asked)[-1].system
        if layer != "facts":
            ana.prompts.set(layer, "Only of roses.")
            spoken(memory, clock)
            assert "Only of roses." in model.requests(asked)[-1].system
            if layer == "character":  # the other call asks for the facts as well
                assert "gardener" not in model.requests(layer)[-1].system


def test_own_words_reach_the_one_call_of_economy_too():
    model, clock = ScriptedModel({"combined": read_all}), FakeClock()
    with Memory(llm=model, embedder=None, clock=clock, config=Config(economy=True)) as memory:
        prompts = memory.user("ana").prompts
        prompts.set("chunk_summary", "In two sentences.")
        prompts.set("fact_extraction", "Only addresses.")
        chat = spoken(memory, clock)
        asked = model.requests("combined")[-1]

        assert asked.system.startswith(
            f"{load('combined').task}\n\nFor the summary: In two sentences.\n\nFor the facts: Only addresses.\n\n"
            f"{load('combined').shape}\n\n{SAFETY}"
        )
        assert asked.prompt != load("combined").digest
        assert f"{model.name} {asked.prompt}" in {summary.source for summary in chat.summaries()}
        prompts.reset("chunk_summary")
        prompts.reset("fact_extraction")
        spoken(memory, clock)
        assert model.requests("combined")[-1].prompt == load("combined").digest


def test_prompts_of_a_bot_and_of_an_org_hold_for_users_without_their_own(memory):
    org, bot = memory.admin.prompts(org="acme"), memory.admin.prompts(org="acme", bot="tutor")
    ana, bo = memory.user("ana", org="acme", bot="tutor"), memory.user("bo", org="acme", bot="coach")
    other = memory.user("ana", org="umbrella", bot="tutor")

    def used():
        return [user.prompts.get("chunk_summary")[:9] for user in (ana, bo, other)]

    ours = load("chunk_summary").task[:9]
    assert used() == [ours, ours, ours]
    org.set("chunk_summary", "In verse.")
    assert used() == ["In verse.", "In verse.", ours]
    bot.set("chunk_summary", "In prose.")
    assert used() == ["In prose.", "In verse.", ours]
    ana.prompts.set("chunk_summary", "In rhyme.")
    assert used() == ["In rhyme.", "In verse.", ours]
    ana.prompts.reset("chunk_summary")
    bot.draft("chunk_summary", "In Latin.")
    assert used() == ["In prose.", "In verse.", ours]
    bot.reset("chunk_summary")
    assert used() == ["In verse.", "In verse.", ours]
    assert [(v.version, v.text, v.draft) for v in bot.versions("chunk_summary")] == [
        (1, "In prose.", False),
        (2, "In Latin.", True),
        (3, "", False),
    ]
    ana.erase()
    assert used()[0] == "In verse."
    assert memory.admin.users() == []
    assert memory.doctor().ok
    with pytest.raises(BadInput, match="one user"):
        org.preview("chunk_summary", "In verse.", dry_run=True)


def test_the_model_gets_the_prompt_of_the_org():
    model, clock = ScriptedModel({"facts": read}), FakeClock()
    with Memory(llm=model, embedder=None, clock=clock) as memory:
        memory.admin.prompts().set("fact_extraction", "Only what matters to a gardener.")
        spoken(memory, clock)

        assert model.requests("facts")[-1].system.startswith("Only what matters to a gardener.\n\n")
        assert "For the facts: Only what matters" in model.requests("combined")[-1].system
