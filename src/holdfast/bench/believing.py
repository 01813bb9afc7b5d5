"""
What a memory believes, held against what is true: the scores of the belief benchmark.

Everything goes through the front door: a story's messages are appended as they come, background
work is run, and from time to time the live facts of the user are compared with the truth.  Pure of
any model: which one reads is the affair of the `Memory` that is given.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ..memory import Memory
from ..types import Fact
from .beliefs import Belief, Said, Story, Turn, messages

SAME: Mapping[str, str] = {
    "dad": "father", "mom": "mother", "mum": "mother", "grandma": "grandmother", "grandpa": "grandfather",
    "passed": "died", "two": "2", "three": "3", "four": "4", "five": "5", "favourite": "favorite",
}  # fmt: skip
_SMALL = frozenset("a an the to of in at my his her and".split())
_WORD = re.compile(r"[^\W_]+(?::\d+)?")


@dataclass(frozen=True, slots=True)
class Look:
    """
    What was found at one moment, after the message ``index``.

    ``live`` counts the live facts that were looked at, ``held`` the truths there were to know,
    ``over`` those that no longer hold.  Each list names what is wrong, in words for people.
    """

    index: int
    live: int
    held: int
    over: int
    stale: tuple[str, ...] = ()
    contradicting: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    junk: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Beliefs:
    """
    The scores of one story: at its end, and over all looks along the way.

    Rates: ``stale`` of what no longer holds, how much is still believed; ``contradicting`` of the
    addresses that hold one value, how many hold several; ``lost`` of what is true, how much is not
    known; ``merged`` of what is true and was once known, how much was destroyed or went to somebody
    else; ``junk`` of what is believed, how much nobody said.
    """

    exchanges: int
    seed: int
    half: str
    looks: tuple[Look, ...]
    missed: Mapping[str, int] = field(default_factory=dict)

    @property
    def end(self) -> Look:
        """The last look."""
        return self.looks[-1]

    def rate(self, name: str, *, end: bool) -> float:
        """One rate: ``stale``, ``contradicting``, ``lost``, ``merged`` or ``junk``."""
        looks = self.looks[-1:] if end else self.looks
        of = {"stale": "over", "junk": "live"}.get(name, "held")
        total = sum(getattr(look, of) for look in looks)
        return sum(len(getattr(look, name)) for look in looks) / total if total else 0.0

    def count(self, name: str, *, end: bool) -> int:
        """How many findings of one kind: at the end, or over all looks."""
        return sum(len(getattr(look, name)) for look in (self.looks[-1:] if end else self.looks))


RATES = ("stale", "contradicting", "merged", "lost", "junk")


class Progress(Protocol):
    """Told how many messages are in."""

    def __call__(self, done: int, total: int) -> None: ...


def believe(
    told: Story, memory: Memory, *, user: str = "somebody", every: int = 10, progress: Progress | None = None,
    set_clock: Callable[[Turn], None] | None = None,
) -> Beliefs:  # fmt: skip
    """
    Tell *memory* a story and look what it believes every so many messages of the user, and at the end.

    Args:
        told: from `story`.
        memory: an empty one; with a model, or without.
        user: whose story it is.
        every: messages of the user between two looks.
        progress: called after each message of the user.
        set_clock: told each turn before it is stored, for a memory with a clock of its own.
    """
    looks: list[Look] = []
    known: set[int] = set()
    count = 0
    for name, turns in messages(told):
        chat = memory.conversation(name, user=user)
        for turn in turns:
            if set_clock is not None:
                set_clock(turn)
            chat.append({"role": turn.role, "content": turn.text, "at": turn.at})
            if turn.role != "user":
                continue
            count += 1
            if count % every == 0:
                looks.append(_look(told, memory, user, turn.index, known))
            if progress is not None:
                progress(turn.index + 1, len(told.turns))
    last = len(told.turns) - 1
    looks.append(_look(told, memory, user, last, known))
    missed = Counter(
        f"{b.said.category}/{b.said.key}" for n, b in enumerate(told.beliefs) if n not in known and not b.said.implied
    )
    return Beliefs(len(told.turns) // 2, told.seed, told.half, tuple(looks), dict(missed.most_common()))


def _look(told: Story, memory: Memory, user: str, index: int, known: set[int]) -> Look:
    memory.digest()
    facts = [fact for fact in memory.user(user).facts() if fact.kind != "episode"]
    return look(told, facts, index, known)


def look(told: Story, facts: Iterable[Fact], index: int, known: set[int]) -> Look:
    """
    Compare *facts*, the live ones, with the truth after the message *index*.

    *known* holds the numbers of the story's beliefs that were found at earlier looks; those found
    now are added, so that what is destroyed later is told from what was never read.
    """
    facts = list(facts)
    holding = [(n, b) for n, b in enumerate(told.beliefs) if b.holds(index)]
    over = told.over(index)
    wanted = [(n, b) for n, b in holding if not b.said.implied]
    found = {n for n, b in holding if any(matches(b.said, fact) for fact in facts)}
    ended = [b.said for b in over if not b.said.implied]
    stale = [said for said in ended if any(matches(said, fact) and not _still(fact, holding) for fact in facts)]
    lost = [(n, b.said) for n, b in wanted if n not in found]
    elsewhere = [_shown(fact) for fact in facts if _of_somebody_else(fact, holding, told.beliefs)]
    true = {id(fact) for fact in facts if any(matches(b.said, fact) for b in told.beliefs)}
    merged = [_told(said) for n, said in lost if n in known] + elsewhere
    known |= found
    return Look(
        index,
        live=len(facts),
        held=len(wanted),
        over=len(ended),
        stale=tuple(map(_told, stale)),
        contradicting=tuple(_contradictions(facts)),
        lost=tuple(_told(said) for _, said in lost),
        merged=tuple(merged),
        junk=tuple(_shown(fact) for fact in facts if id(fact) not in true and _shown(fact) not in elsewhere),
    )


def _still(fact: Fact, holding: list[tuple[int, Belief]]) -> bool:
    """Whether what *fact* says is true now as well (of another address that may hold the same words)."""
    return any(matches(belief.said, fact) for _, belief in holding)


def _of_somebody_else(fact: Fact, holding: list[tuple[int, Belief]], ever: Iterable[Belief]) -> bool:
    """Whether *fact* is true of another subject than the one it stands with."""
    if any(matches(belief.said, fact) for belief in ever):
        return False
    return any(
        b.said.subject != fact.subject and _says(b.said, fact) for _, b in holding if b.said.category == fact.category
    )


def matches(said: Said, fact: Fact) -> bool:
    """Whether *fact* says what *said* says: the same subject, address and words."""
    return said.subject == fact.subject and _addressed(said, fact) and _says(said, fact)


def _addressed(said: Said, fact: Fact) -> bool:
    if fact.kind != "attribute":
        return True
    at = f"{fact.category}/{fact.key}"
    if fact.category == said.category and (said.joins == "exclusive" or _words(fact.key) == _words(said.key)):
        return True
    return at in said.alt or f"{fact.category}/*" in said.alt


def _says(said: Said, fact: Fact) -> bool:
    if said.joins == "exclusive" and fact.kind == "attribute":
        return _words(fact.key) == _words(said.key) and fact.value == "true"
    mine = _words(said.key if said.joins == "exclusive" else said.value)
    if fact.kind != "attribute":
        return mine <= _words(fact.text)
    theirs = _words(fact.value)
    return bool(theirs) and bool(mine) and (mine <= theirs or theirs <= mine)


def _words(text: str) -> frozenset[str]:
    """The words that count, without endings and spelling that do not."""
    out = set()
    for word in _WORD.findall(text.casefold()):
        word = SAME.get(word, word)
        if word not in _SMALL:
            out.add(word[:-1] if word.endswith("s") and len(word) > 3 else word)
    return frozenset(out)


def _contradictions(facts: Iterable[Fact]) -> list[str]:
    """Addresses of one value that hold several, and what is both liked and disliked."""
    facts = list(facts)
    seen: dict[tuple[str, ...], list[str]] = {}
    for fact in facts:
        if fact.kind == "attribute" and fact.cardinality != "multi":
            slot = (
                (fact.subject, fact.category)
                if fact.cardinality == "exclusive"
                else (fact.subject, fact.category, fact.key)
            )
            seen.setdefault(slot, []).append(fact.value)
    both = _tastes(facts, "likes") & _tastes(facts, "dislikes")
    found = [f"{' '.join(slot)}: {' and '.join(values)}" for slot, values in seen.items() if len(values) > 1]
    return found + [
        f"{subject}: likes and dislikes {' '.join(sorted(words))}" for subject, words in sorted(both, key=str)
    ]


def _tastes(facts: Iterable[Fact], key: str) -> set[tuple[str, frozenset[str]]]:
    return {(fact.subject, _words(fact.value)) for fact in facts if (fact.category, fact.key) == ("preference", key)}


def _told(said: Said) -> str:
    return f"{said.subject}: {said.category}/{said.key} = {said.value}"


def _shown(fact: Fact) -> str:
    return (
        f"{fact.subject}: {fact.category}/{fact.key} = {fact.value}"
        if fact.kind == "attribute"
        else f"{fact.subject}: {fact.text}"
    )
