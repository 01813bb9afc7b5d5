"""Which facts hold now, which held at another time, and what replaced what a recalled turn once stated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

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


TAKEN_BACK = "nothing, it was taken back"


def with_replacements(view: ReadView, hits: Sequence[Hit]) -> list[Hit]:
    """*hits*, and on turns that once stated what is not believed any more what replaced it."""
    said = {(hit.subject, hit.conversation, hit.seq) for hit in hits if hit.kind == "message"}
    notes: dict[tuple[str, str, int], list[str]] = {}
    for message, fact_id in view.past_facts_of(sorted(said)) if said else ():
        note = _replacement(view, fact_id)
        if note and note not in notes.setdefault(message, []):
            notes[message].append(note)
    return [
        replace(hit, replaced_by="; ".join(notes[hit.subject, hit.conversation, hit.seq]))
        if hit.kind == "message" and notes.get((hit.subject, hit.conversation, hit.seq))
        else hit
        for hit in hits
    ]


def _replacement(view: ReadView, fact_id: str) -> str:
    """What is believed in the place of a past fact; empty where that is unknown or the same again."""
    row = view.fact(fact_id)
    if row is None:
        return ""
    newest, replaced = row.fact, False
    while newest.superseded_by and (after := view.fact(newest.superseded_by)):
        # corrected counts as well; a sentence that was merged into another still holds
        replaced |= newest.ended_because in ("replaced", "never_true")
        newest = after.fact
    if newest.live:
        return newest.text if replaced and newest.text != row.fact.text else ""
    return TAKEN_BACK if newest.ended_because in ("retracted", "never_true") else ""
