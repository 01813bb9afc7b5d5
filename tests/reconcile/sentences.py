"""Users who say sentences that only a model reads: each message of theirs is one statement."""

from __future__ import annotations

from holdfast import Config, Memory
from holdfast.llm.protocol import Request
from holdfast.testing.fakes import FakeClock, HashEmbedder
from holdfast.testing.model import ScriptedModel
from holdfast.text.render import parse_blocks

SEA = [
    "The kids adore long walks by the sea.",
    "The children adore long walks by the sea.",
    "The children love long walks by the sea.",
]


def all_of_it(request: Request) -> str:
    """Every message of a user as a statement, word for word."""
    rows = []
    for name, items in parse_blocks(request.text):
        for item in items if name == "read" else ():
            head, _, words = item.partition(": ")
            if " user" in head:
                rows.append(f'context,,"{words}",0.95,,add,asserted,state,{head.split()[0]},"{words}"')
    return "\n".join(rows) or "NONE"


def never_joins(request: Request) -> str:
    """A model that leaves sentences as they are."""
    return "APART"


def listener(joins=never_joins) -> ScriptedModel:  # type: ignore[no-untyped-def]
    """A model that reads every sentence, and joins sentences as *joins* says."""
    return ScriptedModel({"facts": all_of_it, "statements": joins})


def opened(clock: FakeClock, location: str = ":memory:", joins=never_joins, **settings: object) -> Memory:  # type: ignore[no-untyped-def]
    """A memory with such a model; sentences with most words in common are near."""
    config = Config(**({"extract_every_user_turns": 1, "consolidate_similarity": 0.7} | settings))  # type: ignore[arg-type]
    return Memory(location, llm=listener(joins), embedder=HashEmbedder(), clock=clock, config=config)


def say(memory: Memory, *sentences: str, user: str = "ana", conversation: str = "a") -> None:
    """Say them and have them read, before there is any vector that they could be compared by."""
    chat = memory.conversation(conversation, user=user)
    for sentence in sentences:
        chat.record(sentence)
    chat.end()


def believed(memory: Memory, user: str = "ana") -> list[str]:
    """The sentences that are believed."""
    return sorted(fact.text for fact in memory.user(user).facts(kind="statement"))
