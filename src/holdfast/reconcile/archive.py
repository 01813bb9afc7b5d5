"""
Archived memories: not shown and not recalled, but not lost.

An archived fact is history with ``ended_because`` = ``archived`` and no document.  For what is
learned it counts as believed: said again it comes back, contradicted it is replaced, taken back it
has ended.  All inside the caller's transaction.

A fact is stored with its strength at the moment of its last use or statement, or when it was learned, whichever
was latest.  From there it halves with every half-life; a use adds one to what is left.  So what is used often or
was used lately is strong, and the rest fades.  To read a strength no clock has to tick in the store.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..clock import from_ms, to_ms
from ..scope import SELF
from ..store import DocRow, FactRow, UseRow, WriteView, pack_words
from ..text.terms import signals, terms
from ..types import BY_HAND_SOURCE, Fact, FactChange
from .decide import ARCHIVED

UPKEEP, CONSOLIDATE = "upkeep", "consolidate"
WITH_MODEL = "model"
# So many sentences are learned before they are looked through again, and before a model is asked about them.
EVERY_STATEMENTS = {"": 20, WITH_MODEL: 60}


def archive_facts(view: WriteView, rows: Iterable[FactRow], now_ms: int) -> list[FactRow]:
    """Archive live facts; returns them as they are now."""
    done = []
    for row in rows:
        unindex_fact(view, row)
        at = max(from_ms(now_ms), row.fact.valid_from)
        fact = replace(row.fact, valid_to=at, ended_because=ARCHIVED, superseded_by=None)
        done.append(replace(row, fact=fact, ended_at=now_ms, doc=0))
        view.update_fact(done[-1])
    if done:
        user = view.user()
        view.save_user(replace(user, version=user.version + 1), now_ms)
    return done


def request_upkeep(view: WriteView, changes: Sequence[FactChange], cap: int, now_ms: int) -> None:
    """Have the user's facts looked through when there are too many, and merged when there are many new sentences."""
    live = [change for change in changes if change.fact is not None and change.fact.live]
    if not live:
        return
    sentences = sum(c.op != "confirmed" and c.fact is not None and c.fact.kind != "attribute" for c in live)
    ever = view.count_statements() if sentences else 0
    here, wanted = view.at(None, None), view.user().version
    for key, every in EVERY_STATEMENTS.items():
        if sentences and ever // every != (ever - sentences) // every:
            here.want(CONSOLIDATE, key, wanted=wanted, run_at_ms=now_ms, now_ms=now_ms)
    if view.count_facts() > cap:
        here.want(UPKEEP, "", wanted=wanted, run_at_ms=now_ms, now_ms=now_ms)


def index_fact(view: WriteView, row: FactRow, now_ms: int) -> FactRow:
    """Give a live fact its document: its sentence, its address and its quote can all be searched."""
    if not row.fact.live:
        return row
    fact, user = row.fact, view.user()
    words = " ".join((fact.text, fact.category, fact.key.replace("_", " "), fact.value, fact.evidence[0].quote))
    counts = Counter(terms(words))
    doc = user.next_doc
    view.save_user(replace(user, next_doc=doc + 1, version=user.version + 1), now_ms)
    view.add_docs(
        [
            DocRow(
                subject=fact.subject,
                kind="fact",
                doc=doc,
                conversation=fact.only_in,
                seq=0,
                ref=fact.id,
                session=0,
                speaker=SELF,
                role="user",
                at=to_ms(fact.valid_from),
                terms=counts.total(),
                chars=len(fact.text),
                signals=signals(fact.text),
                unscoped=row.unscoped,
                words=pack_words(counts),
            )
        ]
    )
    return replace(row, doc=doc)


def unindex_fact(view: WriteView, row: FactRow) -> None:
    """Remove a past fact from search; it stays readable as history."""
    if row.doc:
        view.remove_docs(row.fact.subject, "fact", [row.doc])


# Below it a sentence has faded: for more than four half-lives nobody said it or asked for it.
FADED = 0.06
# From here on an event or a sentence is kept like what holds for good.
IMPORTANT = 0.8


def strength_at(strength: float, since_ms: int, now_ms: int, half_life_ms: float) -> float:
    """Return the rest of a *strength* that was counted at *since_ms*."""
    return strength * math.pow(0.5, max(0, now_ms - since_ms) / half_life_ms)


def record_uses(row: UseRow, times: int, at_ms: int, half_life_ms: float) -> UseRow:
    """Return the row after *times* more uses, the last at *at_ms*; an older use than the last known moves no time back."""
    since = max(row.stated_at, row.last_used_at or 0, row.recorded_at)
    at_ms = max(at_ms, row.last_used_at or 0)
    left = strength_at(row.strength, since, at_ms, half_life_ms)
    return replace(row, strength=left + times, last_used_at=at_ms, uses=row.uses + times)


def now_strength(row: FactRow, now_ms: int, half_life_ms: float) -> float:
    """Return the present strength of a fact; 1 for one that was just stated and never used."""
    last = 0 if row.fact.last_used_at is None else to_ms(row.fact.last_used_at)
    since = max(row.stated_at, last, to_ms(row.fact.recorded_at))
    return strength_at(row.fact.strength, since, now_ms, half_life_ms)


def as_of_now(row: FactRow, now_ms: int, half_life_ms: float) -> Fact:
    """Return the fact with its present strength, to three digits."""
    return replace(row.fact, strength=round(now_strength(row, now_ms, half_life_ms), 3))


def fading_bounds(now_ms: int, half_life_ms: float) -> dict[str, int]:
    """Return, for a strength of at most 1, of 4 and of 64, the latest count of a memory that has faded by now."""
    steps = {"once": 1.0, "seldom": 4.0, "often": 64.0}
    return {name: int(now_ms - half_life_ms * math.log2(1.001 * most / FADED)) for name, most in steps.items()}


def archive_order(row: FactRow, now_ms: int, half_life_ms: float) -> tuple[int, float, int, str]:
    """
    Return a sort key by which facts are archived, first to go first.

    What has run out goes first, then sentences and events, then attributes, then what says who the
    user is, and last what was written by hand; within each the weakest, the oldest.
    """
    return (_worth(row, now_ms), now_strength(row, now_ms, half_life_ms), row.stated_at, row.fact.id)


def over_cap(rows: Sequence[FactRow], cap: int, now_ms: int, half_life_ms: float) -> list[FactRow]:
    """Return the live *rows* to archive so that at most *cap* stay."""
    ordered = sorted(rows, key=lambda row: archive_order(row, now_ms, half_life_ms))
    return ordered[: max(0, len(rows) - cap)]


def faded(rows: Sequence[FactRow], now_ms: int, half_life_ms: float) -> list[FactRow]:
    """Return sentences and events that were not said, learned or used for long, unless they hold for good."""
    return [row for row in rows if _worth(row, now_ms) < 2 and now_strength(row, now_ms, half_life_ms) < FADED]


def _worth(row: FactRow, now_ms: int) -> int:
    fact = row.fact
    if row.expires_at is not None and row.expires_at <= now_ms:
        return 0
    if fact.source == BY_HAND_SOURCE:
        return 4
    if fact.kind != "attribute":
        return 2 if fact.lifetime == "permanent" or fact.importance >= IMPORTANT else 1
    identity = fact.category == "identity" or fact.lifetime == "permanent" or fact.cardinality != "multi"
    return 3 if identity else 2
