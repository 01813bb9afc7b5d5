"""What is believed about a user, laid out for users: by subject, by topic, each with what it was before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from ...scope import SELF
from ...types import Fact

ARCHIVED = "archived"


@dataclass(slots=True)
class Belief:
    """A fact that holds, and what stood in its place before, the newest first."""

    fact: Fact
    earlier: list[Fact] = field(default_factory=list)


@dataclass(slots=True)
class Topic:
    """One category: what holds, and what held of which nothing is left."""

    category: str
    beliefs: list[Belief] = field(default_factory=list)
    past: list[Fact] = field(default_factory=list)


@dataclass(slots=True)
class Subject:
    """Whom or what it is about; the user themself is ``self``."""

    name: str
    topics: list[Topic]


def by_subject(live: Sequence[Fact], ever: Iterable[Fact], order: Sequence[str] = ()) -> list[Subject]:
    """
    *live* facts and what they were before, the user first, topics in *order* and then by name.

    Args:
        live: what is believed now.
        ever: everything that ever was; what is in *live* is passed over.
        order: categories in the order in which they are wanted.
    """
    standing = {fact.id: Belief(fact) for fact in live}
    subjects: dict[str, dict[str, Topic]] = defaultdict(dict)
    for belief in standing.values():
        _topic(subjects, belief.fact).beliefs.append(belief)
    past = [fact for fact in ever if fact.id not in standing and fact.ended_because != ARCHIVED]
    after = {fact.id: fact.superseded_by for fact in past if fact.superseded_by}
    places = {_place(belief.fact): belief for belief in standing.values() if belief.fact.cardinality != "multi"}
    for fact in sorted(past, key=_ended, reverse=True):
        holder = standing.get(_last(fact.id, after)) or places.get(_place(fact))
        if holder is not None:
            holder.earlier.append(fact)
        else:
            _topic(subjects, fact).past.append(fact)
    rank = {category: number for number, category in enumerate(order)}
    return [
        Subject(name, sorted(topics.values(), key=lambda topic: (rank.get(topic.category, len(rank)), topic.category)))
        for name, topics in sorted(subjects.items(), key=lambda item: (item[0] != SELF, item[0]))
    ]


def _topic(subjects: dict[str, dict[str, Topic]], fact: Fact) -> Topic:
    category = fact.category if fact.kind == "attribute" else fact.category or fact.kind
    return subjects[fact.subject].setdefault(category, Topic(category))


def _place(fact: Fact) -> tuple[str, str, str]:
    """Where at most one of several facts holds; a sentence has a place of its own."""
    if fact.kind != "attribute":
        return (fact.subject, fact.category, fact.id)
    return (fact.subject, fact.category, "" if fact.cardinality == "exclusive" else fact.key)


def _last(fact_id: str, after: dict[str, str]) -> str:
    seen = set()
    while fact_id in after and fact_id not in seen:
        seen.add(fact_id)
        fact_id = after[fact_id]
    return fact_id


def _ended(fact: Fact) -> tuple[datetime, datetime, str]:
    return (fact.valid_to or fact.recorded_at, fact.recorded_at, fact.id)


@dataclass(frozen=True, slots=True)
class Span:
    """One value on a line of time: where it begins and how wide it is, of 1,000, in which lane."""

    fact: Fact
    lane: int
    start: int
    width: int


def spans(facts: Sequence[Fact], now: datetime) -> tuple[list[Span], int]:
    """``(spans, number of lanes)``: what held at the same time stands in lanes of its own."""
    if not facts:
        return [], 0
    begin = min(fact.valid_from for fact in facts)
    whole = max((now - begin).total_seconds(), 1.0)
    free: list[datetime] = []
    placed = []
    for fact in sorted(facts, key=lambda fact: (fact.valid_from, fact.recorded_at)):
        end = max(fact.valid_to or now, fact.valid_from)
        lane = next((lane for lane, until in enumerate(free) if until <= fact.valid_from), len(free))
        free[lane : lane + 1] = [end]
        start = round(1000 * (fact.valid_from - begin).total_seconds() / whole)
        width = round(1000 * (end - fact.valid_from).total_seconds() / whole)
        placed.append(Span(fact, lane, min(max(start, 0), 992), max(8, width)))
    return placed, len(free)
