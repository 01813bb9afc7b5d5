"""What the user did not say about themselves never becomes a fact about them, whoever reads it."""

from __future__ import annotations

import pytest

from holdfast import Config, Memory
from holdfast.digest.grounding import ground
from holdfast.testing.model import ScriptedModel
from holdfast.types import Candidate, Message

from .greedy import extracts_everything, notes_everything
from .transcripts import (
    BY_ASSISTANT,
    BY_SYSTEM,
    BY_TOOL,
    CLAIMS,
    PASTED,
    QUOTED,
    Transcript,
    said_by_the_user,
    transcripts,
)

WRAPPINGS = sorted({transcript.name for transcript in transcripts()})
NOT_OWN = {**BY_ASSISTANT, **BY_TOOL, **BY_SYSTEM, **QUOTED, **PASTED}
NOT_MEANT = [
    "I live in Atlantis. Just kidding, of course.",
    "Let's pretend I live in Atlantis.",
    "I dreamt that I live in Atlantis.",
    "Do I live in Atlantis?",
]


def greedy() -> ScriptedModel:
    return ScriptedModel({"facts": extracts_everything, "episodes": notes_everything})


def believed(transcript: Transcript, model: ScriptedModel | None = None) -> list[tuple[str, str, str]]:
    """The facts about the user, after a memory has read the transcript; a statement stands under its category."""
    with Memory(embedder=None, llm=model, config=Config(extract_every_user_turns=1)) as memory:
        chat = memory.conversation("a", user="ana")
        chat.append(list(transcript.messages))
        memory.digest()
        chat.end()
        memory.digest()
        assert memory.doctor().ok
        facts = [fact for fact in memory.user("ana").facts() if fact.subject == "self"]
        return [(fact.category, fact.key, fact.value or fact.text) for fact in facts]


def left_over(facts: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """To have a friend called Bo, or a neighbour called Mallory, is a fact about the user; the rest is none."""
    return [fact for fact in facts if fact[0] != "family" or fact[2] not in ("Bo", "Mallory")]


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_words_of_others_and_about_others_are_no_facts_about_the_user(wrapping: str) -> None:
    for transcript in transcripts():
        if transcript.name == wrapping:
            assert left_over(believed(transcript)) == [], transcript.claim


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_not_even_when_a_model_extracts_everything(wrapping: str) -> None:
    """It quotes the words where they stand, a bare value, another message, nothing; code finds it out each time."""
    for transcript in transcripts(CLAIMS[:6]):
        if transcript.name == wrapping:
            model = greedy()

            assert left_over(believed(transcript, model)) == [], transcript.claim
            assert model.requests("facts") or any(
                "facts: NONE" not in asked.text for asked in model.requests("combined")
            )


def test_enough_transcripts_are_tried() -> None:
    assert len(list(transcripts(CLAIMS[:6]))) >= 200
    assert {name.partition(":")[0] for name in WRAPPINGS} == {"assistant", "tool", "system", "user"}


@pytest.mark.parametrize("reader", ["rules", "model"])
def test_the_same_claims_in_the_users_own_words_are_believed(reader: str) -> None:
    """Else nothing above would mean anything."""
    missed = []
    for transcript in said_by_the_user():
        claim = transcript.claim
        facts = believed(transcript, greedy() if reader == "model" else None)
        if (claim.category, claim.key, claim.value) not in facts:
            missed.append(transcript.said["content"])

    assert missed == []


@pytest.mark.parametrize("said", NOT_MEANT)
def test_what_is_not_meant_is_not_believed(said: str) -> None:
    transcript = next(transcripts())

    assert believed(Transcript("own", ({"role": "user", "content": said},), transcript.claim)) == []


@pytest.mark.parametrize("wrapping", [name for name in WRAPPINGS if name.partition(": ")[2] in NOT_OWN])
def test_a_reader_that_believes_everything_is_refused_where_the_words_are_not_the_users_own(wrapping: str) -> None:
    """Whatever a model extracts, code looks at who said the words."""
    for transcript in transcripts():
        message = Message(transcript.said["role"], transcript.said["content"], seq=1)
        claim = transcript.claim
        if transcript.name == wrapping and claim.own in message.content:
            greedy = Candidate(
                "attribute", "self", claim.category, claim.key, claim.value, claim.own, 1.0, 1, claim.own, -1
            )
            grounded, rejected = ground([greedy], {1: message}, min_confidence=0.7)

            assert (grounded, len(rejected)) == ([], 1), message.content


@pytest.mark.parametrize("reader", ["rules", "model"])
@pytest.mark.parametrize("role", ["assistant", "user", "system"])
def test_context_that_is_fed_back_teaches_nothing(role: str, reader: str, full: bool) -> None:
    """A bot that logs its own prompt as conversation does not breed memories, whichever reader it has."""
    model = greedy() if reader == "model" else None
    with Memory(embedder=None, llm=model, config=Config(extract_every_user_turns=1)) as memory:
        chat = memory.conversation("a", user="ana")
        for claim in CLAIMS[:5]:
            chat.record(claim.own, "Noted.")
        chat.end()
        memory.digest()
        before = [(fact.id, fact.text, fact.evidence) for fact in memory.user("ana").facts()]
        for _ in range(50 if full else 20):
            context = chat.context("Where do I live, and what do I eat?", budget_tokens=500)
            chat.append({"role": role, "content": context.to_text()})
            memory.digest()
        chat.end()
        memory.digest()
        after = [(fact.id, fact.text, fact.evidence) for fact in memory.user("ana").facts()]

        assert after == before  # not even a quote more
        assert len(before) >= 5
