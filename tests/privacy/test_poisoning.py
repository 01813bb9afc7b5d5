"""What the user did not say about themselves never becomes a fact about them, whoever reads it."""

from __future__ import annotations

import pytest

from holdfast import Memory
from holdfast.digest.ground import ground
from holdfast.testing.embedder import HashEmbedder
from holdfast.types import Candidate, Message

from .transcripts import BY_ASSISTANT, BY_SYSTEM, BY_TOOL, PASTED, QUOTED, Transcript, said_by_the_user, transcripts

WRAPPINGS = sorted({transcript.name for transcript in transcripts()})
NOT_OWN = {**BY_ASSISTANT, **BY_TOOL, **BY_SYSTEM, **QUOTED, **PASTED}
NOT_MEANT = [
    "I live in Atlantis. Just kidding, of course.",
    "Let's pretend I live in Atlantis.",
    "I dreamt that I live in Atlantis.",
    "Do I live in Atlantis?",
]


def believed(transcript: Transcript) -> list[tuple[str, str, str]]:
    """The facts about the user, after a memory has read the transcript."""
    with Memory(embedder=None) as memory:
        memory.conversation("a", user="ana").append(list(transcript.messages))
        memory.digest()
        return [(f.category, f.key, f.value) for f in memory.person("ana").facts() if f.subject == "self"]


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_words_of_others_and_about_others_are_no_facts_about_the_user(wrapping: str) -> None:
    """To have a friend called Bo is a fact; nothing that is said of Bo is one about the user."""
    for transcript in transcripts():
        if transcript.name == wrapping:
            allowed = {("family", "friend", "Bo")} if wrapping == "user: named friend" else set()

            assert set(believed(transcript)) <= allowed, transcript.claim


def test_enough_transcripts_are_tried() -> None:
    assert len(list(transcripts())) >= 200
    assert {name.partition(":")[0] for name in WRAPPINGS} == {"assistant", "tool", "system", "user"}


def test_the_same_claims_in_the_users_own_words_are_believed() -> None:
    """Else nothing above would mean anything."""
    missed = [
        transcript.messages[2]["content"]
        for transcript in said_by_the_user()
        if (transcript.claim.category, transcript.claim.key, transcript.claim.value) not in believed(transcript)
    ]

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


@pytest.mark.parametrize("role", ["assistant", "user", "system"])
def test_context_that_is_fed_back_teaches_nothing(role: str) -> None:
    """A bot that logs its own prompt as conversation does not breed memories."""
    with Memory(embedder=HashEmbedder()) as memory:
        chat = memory.conversation("a", user="ana")
        for text in ("I live in Lisbon.", "I'm vegetarian.", "My dog is called Luna.", "I work at Zorblatt."):
            chat.record(text, "Noted.")
        memory.digest()
        before = [(f.category, f.key, f.value) for f in memory.person("ana").facts()]
        for _ in range(50):
            context = chat.context("Where do I live, and what do I eat?", budget_tokens=1500)
            chat.append({"role": role, "content": context.to_text()})
            memory.digest()
        after = [(f.category, f.key, f.value) for f in memory.person("ana").facts()]

        assert after == before
        assert len(before) >= 4
