"""A conversation as lines on a page: messages, what was forgotten, what was learned where; versions side by side.  Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from ...types import Fact, Message

MOST_WORDS = 4_000  # that are compared one by one


@dataclass(frozen=True, slots=True)
class Badge:
    """What a message did to what is believed: ``previous`` is what it replaced."""

    kind: Literal["learned", "replaced", "confirmed", "over"]
    fact: Fact
    previous: Fact | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One message, or with ``message`` ``None`` the numbers of messages that were forgotten."""

    start_seq: int
    end_seq: int
    message: Message | None
    badges: tuple[Badge, ...] = ()


def badges(facts: Sequence[Fact], conversation: str) -> dict[int, list[Badge]]:
    """By message of *conversation*: what it taught, replaced, or said again."""
    replaced_by = {fact.superseded_by: fact for fact in facts if fact.superseded_by}
    found: dict[int, list[Badge]] = {}
    for fact in facts:
        said = sorted({e.seq for e in fact.evidence if e.conversation == conversation})
        first = fact.evidence[0] if fact.evidence else None
        for seq in said:
            began = first is not None and (first.conversation, first.seq) == (conversation, seq)
            previous = replaced_by.get(fact.id) if began else None
            kind: Literal["learned", "replaced", "confirmed", "over"] = "confirmed"
            if fact.ended_because in ("never_true", "retracted", "rebuilt"):
                kind = "over"
            elif began:
                kind = "learned" if previous is None else "replaced"
            found.setdefault(seq, []).append(Badge(kind, fact, previous))
    return found


def lines(messages: Sequence[Message], first: int, last: int, learned: dict[int, list[Badge]]) -> list[Line]:
    """Messages *first* to *last*; numbers without a message were forgotten."""
    told, place = [], first
    for message in messages:
        if message.seq > place:
            told.append(Line(place, message.seq - 1, None))
        told.append(Line(message.seq, message.seq, message, tuple(learned.get(message.seq, ()))))
        place = message.seq + 1
    if place <= last:
        told.append(Line(place, last, None))
    return told


def changed(before: str, after: str) -> list[tuple[Literal["same", "gone", "new"], str]]:
    """*after* against *before*, in stretches of words."""
    old, new = re.findall(r"\S+\s*", before), re.findall(r"\S+\s*", after)
    if max(len(old), len(new)) > MOST_WORDS:
        return [("gone", before), ("new", after)]
    said: list[tuple[Literal["same", "gone", "new"], str]] = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            said.append(("same", "".join(new[c:d])))
            continue
        if b > a:
            said.append(("gone", "".join(old[a:b])))
        if d > c:
            said.append(("new", "".join(new[c:d])))
    return said


def firsts(facts: Iterable[Fact], conversation: str) -> list[tuple[int, Fact, bool]]:
    """``(message, fact, whether it replaced another)`` for each fact that was first said in *conversation*."""
    known = list(facts)
    replacing = {fact.superseded_by for fact in known if fact.superseded_by}
    return [
        (fact.evidence[0].seq, fact, fact.id in replacing)
        for fact in known
        if fact.evidence and fact.evidence[0].conversation == conversation
    ]
