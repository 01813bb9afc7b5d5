"""
A new sentence meets the sentences that are believed: said again, or ended by it.  Pure.

Similarity only finds candidates.  A near-duplicate becomes one more quote of the sentence that is
there; what a newer sentence contradicts becomes history.  Rules decide both, and when they do not
know, both sentences stay.  Attributes are never touched: those are addressed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..embed.protocol import Embedder, Thresholds
from ..store.protocol import FactRow
from ..text.terms import terms
from ..types import FactChange
from .agree import NUMBERS, OPPOSITES, Sense, comparable, disagreement, of_group, same_words, sense
from .facts import Claim, Decision, closed, confirm, late, later, rests_on
from .registry import same

Address = tuple[str, str]
"""(category, slot key) of an address that holds one value."""
Addresses = Callable[[str], Mapping[Address, str]]
"""What the rules read in a sentence, where it is of the kind that holds one value at a time."""


class Sentence(NamedTuple):
    """A sentence that is believed, and the fact that ``stands`` for it: its own, or the one it was merged into."""

    text: str
    stands: FactRow
    merged: bool = False


Believed = Sequence[Sentence]

# "I switched from A to B" ends "I use A"; moving house does not end "I love Lisbon".
_SWITCH = re.compile(
    r"\b(?P<verb>switch(?:ed)?|chang(?:e|ed)|migrated|moved|went|converted|relocated)\b[^.;!?]{0,40}?"
    r"\bfrom\s+(?P<old>[^.;!?]{1,60}?)\s+to\s+(?P<new>[^.;!?]{1,60})",
    re.IGNORECASE,
)
_USES = frozenset("use uses using run runs drive drives drink drinks eat eats take takes play plays wear wears".split())
_LIVES = frozenset("live lives living stay stays staying reside resides based".split())
# "I have two cats": a number that is a state's own, and not the name of something ("room 3 is free").
_STATE_NUMBER = re.compile(
    r"(?:\b(?:have|has|own|owns|am|is|are|weigh|weighs|costs?|earns?|pays?|owes?|got|turned)|['\u2019](?:m|ve|s|re))"
    r"\s+(?:about |only |now |already )?[\w.,]*$",
    re.IGNORECASE,
)
_ENDED = re.compile(r"\b(?:stopped|quit|gave up|no longer|any ?more|any longer)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Near:
    """Vectors of new sentences by their text, and the thresholds of the embedder that made them."""

    embedder: str
    thresholds: Thresholds
    vectors: Mapping[str, NDArray[np.float32]]


def near(embedder: Embedder | None, texts: Sequence[str], merge: float | None = None) -> Near | None:
    """Embed new sentences, outside any transaction; ``None`` without an embedder, or for no sentence."""
    if embedder is None or not texts:
        return None
    rows = embedder.embed(list(texts))
    limits = embedder.thresholds if merge is None else replace(embedder.thresholds, merge=merge)
    return Near(embedder.id, limits, dict(zip(texts, rows, strict=True)))


@dataclass(frozen=True, slots=True)
class Means:
    """What helps to compare sentences beside their words; each part may be missing."""

    near: Near | None = None
    addresses: Addresses | None = None


@dataclass(frozen=True, slots=True)
class Meeting:
    """
    What a new sentence is to those that are believed: ``again`` says one of them, ``ends`` others.

    ``parted``: memories that were merged of several sentences, of which it ends some.
    """

    again: FactRow | None = None
    ends: tuple[FactRow, ...] = ()
    parted: tuple[FactRow, ...] = ()


def meet(claim: Claim, believed: Believed, cosines: Mapping[str, float], means: Means = Means()) -> Meeting:
    """
    What the sentence of *claim* is to the *believed* ones about the same subject.

    *cosines* are those of the sentence with believed ones, by fact id, where an embedder is there.  What
    was said in a conversation about no subject in particular and what was not are never one row.
    """
    text, merge = claim.candidate.text, means.near.thresholds.merge if means.near else 2.0
    alike = [one for one in believed if one.stands.unscoped == claim.unscoped]
    again = [one.stands for one in alike if same_words(text, one.text)]
    if not again:
        near_by = [one for one in alike if cosines.get(one.stands.fact.id, 0.0) >= merge]
        again = [one.stands for one in near_by if _adds_nothing(text, one.text)]
    if again:
        return Meeting(again=max(again, key=lambda row: (cosines.get(row.fact.id, 0.0), row.stated_at, row.fact.id)))
    if claim.candidate.lifetime == "event":
        return Meeting()
    here = means.addresses(text) if means.addresses else {}
    wholes = {one.stands.fact.id for one in believed if one.merged}
    verdicts: dict[str, list[tuple[Sentence, bool]]] = {}
    for one in believed:
        if one.merged or one.stands.fact.id not in wholes:  # a merged memory is judged by its sentences
            verdict = (one, _ends(text, one, here, means.addresses))
            verdicts.setdefault(one.stands.fact.id, []).append(verdict)
    hit = [each for each in verdicts.values() if any(ended for _, ended in each)]
    return Meeting(
        ends=tuple(each[0][0].stands for each in hit if _all_of_it(each)),
        parted=tuple(each[0][0].stands for each in hit if not _all_of_it(each)),
    )


def _all_of_it(verdicts: Sequence[tuple[Sentence, bool]]) -> bool:
    """Whether what ends some sentences ends all of them: the others say the same."""
    ended = [one.text for one, hit in verdicts if hit]
    left = [one.text for one, hit in verdicts if not hit]
    return all(any(same_words(text, other) or may_merge(text, other) for other in ended) for text in left)


def settle(claim: Claim, base: Decision, meeting: Meeting, now_ms: int) -> Decision:
    """
    What to write of a sentence, given what its address says (*base*) and whom it met.

    The later of two that contradict each other stands, whichever was read first.
    """
    if base.add is None or not base.add.fact.live:
        return base
    if meeting.again is not None:
        return Decision() if rests_on(meeting.again, claim.evidence) else confirm(claim, meeting.again)
    newer = [row for row in meeting.ends if not later(claim, row)]
    if newer:
        return late(claim, base.add, newer, now_ms)
    if not meeting.ends:
        return base
    new = base.add.fact
    ended = tuple(
        closed(row, max(row.fact.valid_from, new.valid_from), now_ms, "replaced", new.id) for row in meeting.ends
    )
    return Decision(FactChange("replaced", new, ended[0].fact), add=base.add, updates=ended)


def may_merge(one: str, other: str) -> bool:
    """Whether two sentences that an embedder finds alike enough may be one; where in doubt, not."""
    return comparable(one) and comparable(other) and not disagreement(one, other)


def _adds_nothing(text: str, known: str) -> bool:
    return may_merge(text, known) and len(sense(text).words) <= len(sense(known).words)


def _ends(text: str, one: Sentence, here: Mapping[Address, str], addresses: Addresses | None) -> bool:
    """Whether the newer sentence *text* says that what *one* says does not hold any more."""
    old, row = one.text, one.stands
    if row.fact.lifetime == "event":
        return False
    if here and addresses is not None:
        there = addresses(old)
        shared = [same(here[address]) == same(there[address]) for address in here if address in there]
        if shared:
            return not any(shared)
    if not (comparable(text) and comparable(old)):
        return False
    a, b = sense(text), sense(old)
    if of_group(a.marks, "user") != of_group(b.marks, "user"):
        return False
    return _turned_round(a, b) or _other_number(text, a, old, b) or _stopped(text, a, b) or _switched(text, b)


def _turned_round(a: Sense, b: Sense) -> bool:
    """ "I don't like my job" after "I like my job"; "I hate it" after "I love it"."""
    core = _core(a.sequence)
    same_else = a.numbers == b.numbers and a.names == b.names and a.marks == b.marks
    return a.negated != b.negated and same_else and bool(core) and core == _core(b.sequence)


def _other_number(text: str, a: Sense, old: str, b: Sense) -> bool:
    """ "I have three cats" after "I have two cats"."""
    same_else = _but_numbers(a) == _but_numbers(b) and a.names == b.names and a.negated == b.negated
    one_each = len(a.numbers) == len(b.numbers) == 1 and a.numbers != b.numbers
    return same_else and one_each and _counts(text) and _counts(old)


def _but_numbers(a: Sense) -> list[str]:
    return ["#" if word in a.numbers else word for word in a.sequence]


def _counts(text: str) -> bool:
    """Whether the one number of a sentence follows a verb of having or being."""
    for found in re.finditer(r"[\w.,]+", text):
        word = found.group().casefold().strip(".,")
        if word and (word[0].isdigit() or word in NUMBERS):
            return bool(_STATE_NUMBER.search(text[: found.start()]))
    return False


def _stopped(text: str, a: Sense, b: Sense) -> bool:
    """ "I stopped smoking" after "I smoke"; "I no longer work at the bank" after "I work at the bank as a clerk"."""
    what, was = _core(a.sequence), _core(b.sequence)
    ended = a.negated and not b.negated and _ENDED.search(text) is not None and "time:past" not in b.marks
    return ended and len(what) > 1 and was[: len(what)] == what and a.names <= b.names and not b.numbers


def _switched(text: str, b: Sense) -> bool:
    """ "We switched from PostgreSQL to MySQL" after "I use PostgreSQL"."""
    found = _SWITCH.search(text)
    if found is None or b.negated or "time:past" in b.marks:
        return False
    before, after = set(sense(found["old"]).words), set(sense(found["new"]).words)
    moves = found["verb"].casefold() in ("moved", "relocated", "went")
    holds = b.plain & (_USES | _LIVES if moves else _USES)
    return bool(holds) and bool(before) and before <= set(b.words) and not after & set(b.words)


def _core(words: tuple[str, ...]) -> tuple[str, ...]:
    """The stems without those that only say that somebody likes it or not, or stopped."""
    stems = tuple((terms(word, "en")[:1] or [word])[0] for word in words)
    return tuple(stem for stem in stems if stem not in _ATTITUDES)


_ATTITUDES = frozenset(
    stem
    for word in (*OPPOSITES[0][0], *OPPOSITES[0][1], "stop", "stopped", "quit", "gave")
    for stem in terms(word, "en")
) | {"up", "not", "no"}
