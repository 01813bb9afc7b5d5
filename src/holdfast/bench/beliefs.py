"""
The scores of the belief benchmark: the active facts of a memory, compared with the truth of a story.

Everything goes through the front door: a story's messages are appended as they come, background
work is run, and from time to time the live facts of the user are compared with the truth.  Pure of
any model: which one reads is the affair of the `Memory` that is given.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Protocol

from ..llm.protocol import Answer, Request
from ..memory import Memory
from ..scope import SELF
from ..testing.model import uneventful
from ..text import dataclass
from ..text.render import parse_blocks
from ..text.terms import count_tokens
from ..types import Fact
from .stories import BeliefStory, StoryClaim, StoryTurn, TrueBelief, turns_by_conversation

SAME: Mapping[str, str] = {
    "dad": "father", "mom": "mother", "mum": "mother", "grandma": "grandmother", "grandpa": "grandfather",
    "passed": "died", "two": "2", "three": "3", "four": "4", "five": "5", "favourite": "favorite",
}  # fmt: skip
_SMALL = frozenset("a an the to of in at my his her and".split())
_WORD = re.compile(r"[^\W_]+(?::\d+)?")


@dataclass(frozen=True, slots=True)
class BeliefCheck:
    """
    The findings at one moment, after the message ``index``.

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
class BeliefScores:
    """
    The scores of one story: at its end, and over all looks along the way.

    Rates: ``stale`` of what no longer holds, how much is still believed; ``contradicting`` of the
    addresses that hold one value, how many hold several; ``lost`` of what is true, how much is not
    known; ``merged`` of what is true and was once known, how much was destroyed or went to another
    user; ``junk`` of what is believed, how much has no source.
    """

    exchanges: int
    seed: int
    half: str
    looks: tuple[BeliefCheck, ...]
    missed: Mapping[str, int] = field(default_factory=dict)

    @property
    def end(self) -> BeliefCheck:
        """Return the last check."""
        return self.looks[-1]

    def rate(self, name: str, *, end: bool) -> float:
        """Return one rate: ``stale``, ``contradicting``, ``lost``, ``merged`` or ``junk``."""
        looks = self.looks[-1:] if end else self.looks
        of = {"stale": "over", "junk": "live"}.get(name, "held")
        total = sum(getattr(check_beliefs, of) for check_beliefs in looks)
        return sum(len(getattr(check_beliefs, name)) for check_beliefs in looks) / total if total else 0.0

    def count(self, name: str, *, end: bool) -> int:
        """Count the findings of one kind: at the end, or over all checks."""
        return sum(len(getattr(check_beliefs, name)) for check_beliefs in (self.looks[-1:] if end else self.looks))


RATES = ("stale", "contradicting", "merged", "lost", "junk")


class MessageProgress(Protocol):
    """Called with the number of stored messages."""

    def __call__(self, done: int, total: int) -> None: ...


def run_story(
    story: BeliefStory, memory: Memory, *, user: str = "somebody", every: int = 10, progress: MessageProgress | None = None,
    set_clock: Callable[[StoryTurn], None] | None = None,
) -> BeliefScores:  # fmt: skip
    """
    Store a story in *memory* and check its facts every so many messages of the user, and at the end.

    Args:
        story: from `write_story`.
        memory: an empty one; with a model, or without.
        user: the name of the user.
        every: messages of the user between two checks.
        progress: called after each message of the user.
        set_clock: called with each turn before it is stored, for a memory with its own clock.
    """
    looks: list[BeliefCheck] = []
    known: set[int] = set()
    count = 0
    for name, turns in turns_by_conversation(story):
        chat = memory.conversation(name, user=user)
        for turn in turns:
            if set_clock is not None:
                set_clock(turn)
            chat.append({"role": turn.role, "content": turn.text, "at": turn.at})
            if turn.role != "user":
                continue
            count += 1
            if count % every == 0:
                looks.append(_digest_and_check(story, memory, user, turn.index, known))
            if progress is not None:
                progress(turn.index + 1, len(story.turns))
    last = len(story.turns) - 1
    looks.append(_digest_and_check(story, memory, user, last, known))
    missed = Counter(
        f"{b.claim.category}/{b.claim.key}"
        for n, b in enumerate(story.beliefs)
        if n not in known and not b.claim.implied
    )
    return BeliefScores(len(story.turns) // 2, story.seed, story.half, tuple(looks), dict(missed.most_common()))


def _digest_and_check(story: BeliefStory, memory: Memory, user: str, index: int, known: set[int]) -> BeliefCheck:
    memory.digest()
    facts = [fact for fact in memory.user(user).facts() if fact.kind != "episode"]
    return check_beliefs(story, facts, index, known)


def check_beliefs(story: BeliefStory, facts: Iterable[Fact], index: int, known: set[int]) -> BeliefCheck:
    """
    Compare *facts*, the live ones, with the truth after the message *index*.

    *known* holds the numbers of the story's beliefs that were found at earlier looks; those found
    now are added, so that what is destroyed later can be distinguished from what was never read.
    """
    facts = list(facts)
    holding = [(n, b) for n, b in enumerate(story.beliefs) if b.holds(index)]
    over = story.over(index)
    wanted = [(n, b) for n, b in holding if not b.claim.implied]
    found = {n for n, b in holding if any(matches(b.claim, fact) for fact in facts)}
    ended = [b.claim for b in over if not b.claim.implied]
    stale = [claim for claim in ended if any(matches(claim, fact) and not _still_true(fact, holding) for fact in facts)]
    lost = [(n, b.claim) for n, b in wanted if n not in found]
    elsewhere = [_format_fact(fact) for fact in facts if _true_of_other_subject(fact, holding, story.beliefs)]
    true = {id(fact) for fact in facts if any(matches(b.claim, fact) for b in story.beliefs)}
    merged = [_format_claim(claim) for n, claim in lost if n in known] + elsewhere
    known |= found
    return BeliefCheck(
        index,
        live=len(facts),
        held=len(wanted),
        over=len(ended),
        stale=tuple(map(_format_claim, stale)),
        contradicting=tuple(_contradictions(facts)),
        lost=tuple(_format_claim(claim) for _, claim in lost),
        merged=tuple(merged),
        junk=tuple(
            _format_fact(fact) for fact in facts if id(fact) not in true and _format_fact(fact) not in elsewhere
        ),
    )


def _still_true(fact: Fact, holding: list[tuple[int, TrueBelief]]) -> bool:
    """Whether *fact* is true now (of another address that may hold the same words)."""
    return any(matches(belief.claim, fact) for _, belief in holding)


def _true_of_other_subject(fact: Fact, holding: list[tuple[int, TrueBelief]], ever: Iterable[TrueBelief]) -> bool:
    """Whether *fact* is true of another subject than its own."""
    if any(matches(belief.claim, fact) for belief in ever):
        return False
    return any(
        b.claim.subject != fact.subject and _same_value(b.claim, fact)
        for _, b in holding
        if b.claim.category == fact.category
    )


def matches(claim: StoryClaim, fact: Fact) -> bool:
    """Whether *fact* and *claim* have the same subject, address and words."""
    return claim.subject == fact.subject and _same_address(claim, fact) and _same_value(claim, fact)


def _same_address(claim: StoryClaim, fact: Fact) -> bool:
    if fact.kind != "attribute":
        return True
    at = f"{fact.category}/{fact.key}"
    if fact.category == claim.category and (claim.joins == "exclusive" or _words(fact.key) == _words(claim.key)):
        return True
    return at in claim.alt or f"{fact.category}/*" in claim.alt


def _same_value(claim: StoryClaim, fact: Fact) -> bool:
    if claim.joins == "exclusive" and fact.kind == "attribute":
        return _words(fact.key) == _words(claim.key) and fact.value == "true"
    mine = _words(claim.key if claim.joins == "exclusive" else claim.value)
    if fact.kind != "attribute":
        return mine <= _words(fact.text)
    theirs = _words(fact.value)
    return bool(theirs) and bool(mine) and (mine <= theirs or theirs <= mine)


def _words(text: str) -> frozenset[str]:
    """Return the significant words, without endings and variants of spelling."""
    out = set()
    for word in _WORD.findall(text.casefold()):
        word = SAME.get(word, word)
        if word not in _SMALL:
            out.add(word[:-1] if word.endswith("s") and len(word) > 3 else word)
    return frozenset(out)


def _contradictions(facts: Iterable[Fact]) -> list[str]:
    """Return addresses of one value that hold several, and values both liked and disliked."""
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
    both = _values_of_key(facts, "likes") & _values_of_key(facts, "dislikes")
    found = [f"{' '.join(slot)}: {' and '.join(values)}" for slot, values in seen.items() if len(values) > 1]
    return found + [
        f"{subject}: likes and dislikes {' '.join(sorted(words))}" for subject, words in sorted(both, key=str)
    ]


def _values_of_key(facts: Iterable[Fact], key: str) -> set[tuple[str, frozenset[str]]]:
    return {(fact.subject, _words(fact.value)) for fact in facts if (fact.category, fact.key) == ("preference", key)}


def _format_claim(claim: StoryClaim) -> str:
    return f"{claim.subject}: {claim.category}/{claim.key} = {claim.value}"


def _format_fact(fact: Fact) -> str:
    return (
        f"{fact.subject}: {fact.category}/{fact.key} = {fact.value}"
        if fact.kind == "attribute"
        else f"{fact.subject}: {fact.text}"
    )


_ITEM = re.compile(r"(\d+) user\b[^:]*?(?: \(\d{4}-\d\d-\d\d\))?: (.*)", re.DOTALL)
_OPS = {"multi": "add", "single": "set", "exclusive": "set"}


class HonestModel:
    """
    Answers for a story's facts from the story itself, found by the number and the words of each message.

    As the instructions ask, what is known already is left out, and what is known wrong is set right.
    """

    name = "honest:1"

    def __init__(self, story: BeliefStory) -> None:
        self.calls = 0
        self._turns: dict[tuple[int, str], StoryTurn] = {(turn.seq, turn.text): turn for turn in story.turns}

    def ask(self, request: Request) -> Answer:
        """Answer from the story."""
        self.calls += 1
        text = self._facts(request) if request.layer == "facts" else uneventful(request)
        if request.layer == "combined":
            text = text.replace("FACTS:\nNONE", f"FACTS:\n{self._facts(request)}")
        asked = count_tokens(request.system) + count_tokens(request.text)
        return Answer(text, self.name, input_tokens=asked, output_tokens=count_tokens(text), estimated=True)

    def _facts(self, request: Request) -> str:
        sections = dict(parse_blocks(request.text))
        known = sections.get("known", [])
        out = io.StringIO()
        rows = csv.writer(out, lineterminator="\n")
        for turn in self._read(sections.get("read", [])):
            for claim in turn.claims:
                if claim.implied:
                    continue
                rows.writerows(
                    _answer_row(turn, replace(claim, op="retract", value=wrong)) for wrong in _near_values(claim, known)
                )
                if claim.op == "retract" or _format_known(claim) not in known:
                    rows.writerow(_answer_row(turn, claim))
        return out.getvalue() or "NONE"

    def _read(self, items: list[str]) -> Iterator[StoryTurn]:
        for found in filter(None, map(_ITEM.fullmatch, items)):
            turn = self._turns.get((int(found[1]), found[2]))
            if turn is not None:
                yield turn


def _format_known(claim: StoryClaim) -> str:
    about = "" if claim.subject == SELF else f"{claim.subject}: "
    return f"{about}{claim.category}/{claim.key} = {claim.value}"


def _near_values(claim: StoryClaim, known: Sequence[str]) -> Iterator[str]:
    """Yield values at the same address that hold a part of the words, or more: "bee" for "bee stings"."""
    before = _format_known(claim).removesuffix(claim.value)
    mine = set(claim.value.casefold().split())
    for line in known:
        value = line.removeprefix(before)
        theirs = set(value.casefold().split())
        if value != line and mine != theirs and (mine < theirs or theirs < mine):
            yield value


def _answer_row(turn: StoryTurn, claim: StoryClaim) -> tuple[str, ...]:
    subject = "" if claim.subject == SELF else claim.subject
    op = "remove" if claim.op == "retract" else _OPS[claim.joins]
    return (
        claim.category,
        claim.key,
        claim.value,
        "0.95",
        subject,
        op,
        "asserted",
        "state",
        str(turn.seq),
        claim.quote,
    )
