"""
Which sentences may become one memory.  Pure.

Only what is about the same user, lasts, and says the same (`alike`), or about the same thing and may
be joined by a model (`related`).  Everybody in a cluster must agree with everybody else, so that no
chain of small steps leads from one thing to another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ..store.protocol import FactRow
from ..types import BY_HAND_SOURCE, Evidence, Fact
from .agree import same_words, sense
from .facts import UNMERGED
from .statements import may_merge
from .wording import may_gather

MAX_RELATED = 6
NOTHING_ALIKE = 0.5  # sentences of the same words are far nearer to each other, to any embedder
LASTING = frozenset(("permanent", "state"))

Cluster = tuple[FactRow, ...]
Spot = tuple[str, str, int, int]
Cosines = NDArray[np.float32] | None
"""One row and column a sentence, or ``None`` where nobody can tell how near they are."""


def spot(evidence: Evidence) -> Spot:
    """The place of a quote."""
    return (evidence.home, evidence.conversation, evidence.seq, evidence.start)


def mergeable(rows: Iterable[FactRow]) -> list[FactRow]:
    """Live sentences about what lasts, whose own words set no end; by when they were first said."""
    lasting = [
        row
        for row in rows
        if row.fact.live and row.fact.kind == "statement" and row.fact.lifetime in LASTING and row.expires_at is None
    ]
    return sorted(lasting, key=lambda row: (row.fact.valid_from, row.fact.id))


def kept_apart(rows: Iterable[FactRow]) -> list[frozenset[Spot]]:
    """For each memory that somebody took apart: the places whose sentences must not be merged again."""
    return [frozenset(map(spot, row.fact.evidence)) for row in rows if row.fact.ended_because == UNMERGED]


def alike(rows: Sequence[FactRow], cosines: Cosines, merge: float, apart: Sequence[frozenset[Spot]]) -> list[Cluster]:
    """Clusters of sentences that say the same; *merge* is the embedder's threshold."""

    def near(i: int, j: int) -> bool:
        a, b = rows[i].fact.text, rows[j].fact.text
        if cosines is not None and cosines[i, j] < min(NOTHING_ALIKE, merge):
            return False
        return same_words(a, b) or (cosines is not None and float(cosines[i, j]) >= merge and may_merge(a, b))

    return _clusters(rows, cosines, near, apart, len(rows))


def related(
    rows: Sequence[FactRow], cosines: Cosines, gather: float, apart: Sequence[frozenset[Spot]]
) -> list[Cluster]:
    """Clusters that a model may join, a few sentences each; what users wrote by hand stays as it is."""

    def near(i: int, j: int) -> bool:
        a, b = rows[i].fact, rows[j].fact
        written = BY_HAND_SOURCE in (a.source, b.source)
        return not written and cosines is not None and float(cosines[i, j]) >= gather and may_gather(a.text, b.text)

    return _clusters(rows, cosines, near, apart, MAX_RELATED)


def speaks_for(cluster: Sequence[FactRow]) -> FactRow:
    """The sentence that stands for all: one written by hand, else the one that says most, else the latest."""

    def worth(row: FactRow) -> tuple[bool, int, int, int, str]:
        return (
            row.fact.source == BY_HAND_SOURCE,
            len(sense(row.fact.text).words),
            row.stated_at,
            row.stated_seq,
            row.fact.id,
        )

    return max(cluster, key=worth)


def _clusters(
    rows: Sequence[FactRow],
    cosines: Cosines,
    near: Callable[[int, int], bool],
    apart: Sequence[frozenset[Spot]],
    most: int,
) -> list[Cluster]:
    """Groups in which every pair is *near*, of at most *most*, begun by the nearest pairs; in the order of *rows*."""
    spots = [frozenset(map(spot, row.fact.evidence)) for row in rows]

    def together(i: int, j: int) -> bool:
        if _kind(rows[i]) != _kind(rows[j]) or any(spots[i] & bar and spots[j] & bar for bar in apart):
            return False
        return near(i, j)

    pairs = [(i, j) for i, j in combinations(range(len(rows)), 2) if together(i, j)]
    pairs.sort(key=lambda pair: (-float(cosines[pair]) if cosines is not None else 0.0, pair))
    linked = set(pairs)
    groups: dict[int, list[int]] = {}
    for i, j in pairs:
        mine, theirs = groups.get(i, [i]), groups.get(j, [j])
        if mine is theirs or len(mine) + len(theirs) > most:
            continue
        if all((min(a, b), max(a, b)) in linked for a in mine for b in theirs):
            joined = sorted(mine + theirs)
            groups.update(dict.fromkeys(joined, joined))
    unique = {id(group): group for group in groups.values()}
    return [tuple(rows[index] for index in group) for group in sorted(unique.values())]


def _kind(row: FactRow) -> tuple[str, bool, str]:
    fact: Fact = row.fact
    return (fact.subject, row.unscoped, fact.lifetime)
