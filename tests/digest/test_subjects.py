"""Every fact is about the one that it was said of, by any of the names of that one, and about nobody else."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from holdfast import Memory
from holdfast.testing.clock import FakeClock

CHATS = tomllib.loads((Path(__file__).parent / "subjects.toml").read_text(encoding="utf-8"))["chat"]


def facts_of(said: list[str]) -> list[tuple[set[str], str]]:
    """Return the names of whom each fact is about, and its words."""
    with Memory(clock=FakeClock(), embedder=None) as memory:
        chat, user = memory.conversation("chat", user="ana"), memory.user("ana")
        for text in said:
            chat.record(text, "Okay.")
            memory.digest()
        names = {one.id: {name.casefold() for name in (one.id, one.name, *one.aliases)} for one in user.subjects()}
        return [
            (names.get(fact.subject, set()) | {fact.subject}, f"{fact.category}/{fact.key} {fact.value} {fact.text}")
            for fact in user.facts()
            if fact.kind != "episode"
        ]


@pytest.mark.parametrize("chat", CHATS, ids=lambda chat: " / ".join(chat["said"]))
def test_each_fact_is_about_whom_it_was_said_of(chat: dict[str, list[str]]) -> None:
    facts = facts_of(chat["said"])
    for wanted in chat["facts"]:
        whom, _, pattern = wanted.partition(": ")
        hits = [names for names, words in facts if re.search(pattern, words, re.IGNORECASE)]
        if whom.startswith("-"):
            assert not [names for names in hits if whom[1:] in names], facts
        else:
            assert hits, facts
            assert all(whom in names for names in hits), facts


def test_there_are_many_chats() -> None:
    assert len(CHATS) >= 50
