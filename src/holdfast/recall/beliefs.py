"""Which facts hold now, which held at another time, and what replaced what a recalled turn once stated."""

from __future__ import annotations

from collections.abc import Sequence

from ..clock import to_ms
from ..store.protocol import FactRow, ReadView
from ..types import Fact, Hit


def believed(row: FactRow, now_ms: int) -> bool:
    """A live fact whose own words did not set an end that has passed."""
    return row.fact.live and (row.expires_at is None or row.expires_at > now_ms)


def facts_at(rows: Sequence[FactRow], as_of_ms: int, known_at_ms: int) -> list[Fact]:
    """What held at one moment, as it was known at another; by address."""
    held = []
    for row in rows:
        fact = row.fact
        if to_ms(fact.recorded_at) > known_at_ms or to_ms(fact.valid_from) > as_of_ms:
            continue
        end = to_ms(fact.valid_to) if fact.valid_to and (row.ended_at or 0) <= known_at_ms else row.expires_at
        if end is None or end > as_of_ms:
            held.append(fact)
    return sorted(held, key=lambda fact: (fact.subject, fact.category, fact.key, fact.value))


def unexpired(view: ReadView, hits: Sequence[Hit], now_ms: int) -> list[Hit]:
    """*hits* without facts whose own words set an end that has passed."""
    if not any(hit.kind == "fact" for hit in hits):
        return list(hits)
    expired = view.expired(now_ms)
    return [hit for hit in hits if hit.kind != "fact" or hit.id not in expired]


def replaced_notes(view: ReadView, hits: Sequence[Hit]) -> dict[tuple[str, int], str]:
    """What replaced the facts that recalled turns once stated, so that none of them reads as current."""
    notes: dict[tuple[str, int], str] = {}
    for hit in hits:
        if hit.kind != "message" or view.scope.subject is None:
            continue
        for row in view.facts_of_message(hit.conversation, hit.seq):
            newest, replaced = row.fact, False
            while newest.superseded_by and (after := view.fact(newest.superseded_by)):
                replaced = replaced or newest.ended_because != "merged"  # merged, it says the same in other words
                newest = after.fact
            if replaced:
                notes[hit.conversation, hit.seq] = newest.text
    return notes
