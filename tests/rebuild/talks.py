"""Conversations that are made again in tests."""

from __future__ import annotations

from typing import Any

from holdfast import Config, Conversation, Fact, Memory
from holdfast.testing.fakes import FakeClock

USER = "ana"
LINES = (
    "I'm vegetarian.",
    "I eat fish now.",
    "I live in Lisbon.",
    "We moved to Porto last week.",
    "I live in Faro.",
    "I no longer live in Porto.",
    "I speak Spanish.",
    "I don't speak Spanish any more.",
    "My dog is called Luna.",
    "I'm allergic to peanuts.",
    "What a lovely morning it is.",
)


def opened(location: Any = ":memory:", **given: Any) -> Memory:
    """A memory without an embedder whose clock stands still until it is moved."""
    config = given.pop("config", Config(durable=False))
    return Memory(location, embedder=given.pop("embedder", None), clock=FakeClock(), config=config, **given)


def walked(memory: Memory, exchanges: int = 24, name: str = "web-42") -> Conversation:
    """A talk that is summarized on two levels and states a few things."""
    chat = memory.conversation(name, user=USER)
    for day in range(exchanges):
        memory._clock.advance(seconds=60)  # type: ignore[attr-defined]
        line = LINES[day // 3 % len(LINES)] if day % 3 == 0 else f"On day {day} we walked for {day + 20} minutes."
        chat.record(line, "Lovely.")
    chat.end()
    memory.digest()
    return chat


def believed(memory: Memory) -> set[tuple[str, str, str, str]]:
    """What is believed now, without ids."""
    return {(f.subject, f.category, f.key, f.value) for f in memory.user(USER).facts()}


def ever(memory: Memory) -> list[tuple[Any, ...]]:
    """Every fact that held at some time, with when."""
    exported = memory.user(USER).export()["facts"]
    kept = [f for f in exported if f["ended_because"] not in ("rebuilt", "never_true")]
    return sorted(
        (f["subject"], f["category"], f["key"], f["value"], f["valid_from"], f["valid_to"] or 0, f["ended_because"])
        for f in kept
    )


def fact(memory: Memory, value: str) -> Fact:
    """The believed fact of a value."""
    return next(f for f in memory.user(USER).facts() if f.value == value)
