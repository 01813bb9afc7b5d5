"""
New knowledge meets old: who wins, what joins, what becomes history.

Facts are addressed, not matched: a claim names (subject, category, key), the registry says how many
live facts that address may hold, and similarity has no say.  Later evidence wins by the order in
which things were *said*, not by which worker finished first; a late claim becomes history.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ..clock import from_ms, to_ms
from ..store.protocol import FactRow
from ..types import Candidate, Evidence, Fact, FactChange
from .agree import same_words
from .registry import Registry, Slot, same

ARCHIVED = "archived"
MERGED = "merged"
UNMERGED = "unmerged"
REBUILT = "rebuilt"
NEVER_HELD = ("never_true", MERGED, UNMERGED, REBUILT)
"""
Why facts ended that count as if they had held at no time: a user said so, another row says it for them, or a
later reading did not find them.
"""

_VERSIONED = re.compile(r"(.*[^\W\d_].*?) v?\d+(?:\.\d+)*")


@dataclass(frozen=True, slots=True)
class Claim:
    """A grounded candidate: its evidence, and the moment and place in which it was said."""

    candidate: Candidate
    evidence: Evidence
    said_at_ms: int
    unscoped: bool


@dataclass(frozen=True, slots=True)
class Decision:
    """
    What to write.

    ``add`` is a new row (live or already history), ``updates`` are existing rows with new columns,
    ``support`` names the existing fact that the evidence joins.  ``refused`` is set instead of all
    of these when nothing is to be believed.
    """

    change: FactChange | None = None
    add: FactRow | None = None
    updates: tuple[FactRow, ...] = ()
    support: str = ""
    refused: str = ""


def decide(
    claim: Claim, live: Sequence[FactRow], past: Sequence[FactRow], registry: Registry, *, fact_id: str, now_ms: int
) -> Decision:
    """
    What one claim does to the facts of its subject and category.

    Args:
        claim: what was said.
        live: the live facts of the claim's subject and category.
        past: those that no longer hold.
        registry: how addresses join.
        fact_id: the id of a new fact, should there be one.
        now_ms: when we learn it.
    """
    refusal = registry.refusal(claim.candidate) if claim.candidate.kind == "attribute" else ""
    if refusal:
        return Decision(refused=refusal)
    if claim.candidate.op == "retract":
        return _retract(claim, live, now_ms)
    slot = _slot(claim.candidate, registry)
    if any(rests_on(row, claim.evidence) and _says(row, claim.candidate) for row in (*live, *past)):
        return Decision()
    past = [row for row in past if row.fact.ended_because not in NEVER_HELD]
    holder = next((row for row in live if (row.slot_key, row.slot_value) == (slot.key, slot.value)), None)
    new = _row(claim, slot, fact_id, now_ms)
    if holder is None:
        return _into_empty_slot(claim, new, slot, live, past, now_ms)
    if _says(holder, claim.candidate):
        return confirm(claim, holder)
    if later(claim, holder):
        new = _after(new, holder, claim.said_at_ms)
        until = max(holder.fact.valid_from, new.fact.valid_from)
        ended = closed(holder, until, now_ms, "replaced", fact_id)
        return Decision(FactChange("replaced", new.fact, ended.fact), add=new, updates=(ended,))
    return late(
        claim, new, [holder, *(row for row in past if (row.slot_key, row.slot_value) == (slot.key, slot.value))], now_ms
    )


def states(row: FactRow, claim: Claim) -> bool:
    """Whether a fact, live or past, is what *claim* says, wherever it was said."""
    candidate = claim.candidate
    if (candidate.kind, candidate.subject) != (row.fact.kind, row.fact.subject):
        return False
    if candidate.kind != "attribute" and rests_on(row, claim.evidence) and same_words(candidate.text, row.fact.text):
        return True
    return candidate.category == row.fact.category and _says(row, candidate)


def ends_it(claim: Claim, row: FactRow) -> bool:
    """Whether a retraction is about a fact of its subject and category, and was said later."""
    return _meant(row, claim.candidate) and later(claim, row)


def believed_again(row: FactRow) -> FactRow:
    """An archived fact as if it was live: for what is learned it counts as believed.  Others as they are."""
    if row.fact.ended_because != ARCHIVED:
        return row
    return replace(row, fact=replace(row.fact, valid_to=None, ended_because=""), ended_at=None)


def _slot(candidate: Candidate, registry: Registry) -> Slot:
    if candidate.kind == "attribute":
        return registry.slot(candidate.category, candidate.key, candidate.value, candidate.join)
    return Slot("multi", candidate.key, same(candidate.text))


def _row(claim: Claim, slot: Slot, fact_id: str, now_ms: int) -> FactRow:
    candidate = claim.candidate
    fact = Fact(
        id=fact_id,
        kind=candidate.kind,
        subject=candidate.subject,
        category=candidate.category,
        key=candidate.key,
        value=candidate.value,
        text=candidate.text,
        confidence=candidate.confidence,
        cardinality=slot.cardinality,
        lifetime=candidate.lifetime,
        valid_from=from_ms(claim.said_at_ms if candidate.valid_from_ms is None else candidate.valid_from_ms),
        valid_to=None,
        recorded_at=from_ms(now_ms),
        superseded_by=None,
        evidence=(claim.evidence,),
        strength=1.0,
        last_used_at=None,
        uses=0,
        source=candidate.source,
    )
    return FactRow(
        fact=fact,
        slot_key=slot.key,
        slot_value=slot.value,
        unscoped=claim.unscoped,
        stated_at=claim.said_at_ms,
        stated_seq=claim.evidence.seq,
        doc=0,
        expires_at=candidate.valid_to_ms,
    )


def _after(new: FactRow, holder: FactRow, said_at_ms: int) -> FactRow:
    """
    *new* so that *holder* held for a while: "we moved last week", of somebody who told us on Monday where they lived.

    What was last said before counts as true when it was said; the new value then begins when it was told.
    """
    told = from_ms(said_at_ms)
    if new.fact.valid_from > from_ms(holder.stated_at) or told <= holder.fact.valid_from:
        return new
    return replace(new, fact=replace(new.fact, valid_from=told))


def _into_empty_slot(
    claim: Claim, new: FactRow, slot: Slot, live: Sequence[FactRow], past: Sequence[FactRow], now_ms: int
) -> Decision:
    """Nothing live stands at the address; a claim older than a retraction there goes to history."""
    ended = [row for row in past if (row.slot_key, row.slot_value) == (slot.key, slot.value) and row.fact.valid_to]
    after = [row for row in ended if row.fact.valid_to and to_ms(row.fact.valid_to) > claim.said_at_ms]
    if after:
        return late(claim, new, after, now_ms)
    joins = slot.cardinality == "multi" and any(row.slot_key == slot.key for row in live)
    return Decision(FactChange("joined" if joins else "new", new.fact), add=new)


def confirm(claim: Claim, holder: FactRow) -> Decision:
    """The claim says what *holder* says: one more quote for it."""
    fact = replace(
        holder.fact,
        confidence=max(holder.fact.confidence, claim.candidate.confidence),
        valid_from=min(holder.fact.valid_from, from_ms(claim.said_at_ms)),
        evidence=tuple(sorted((*holder.fact.evidence, claim.evidence), key=_order)),
    )
    newer = later(claim, holder)
    row = replace(
        holder,
        fact=fact,
        unscoped=holder.unscoped or claim.unscoped,
        stated_at=claim.said_at_ms if newer else holder.stated_at,
        stated_seq=claim.evidence.seq if newer else holder.stated_seq,
        expires_at=claim.candidate.valid_to_ms if newer else holder.expires_at,
    )
    return Decision(FactChange("confirmed", fact), updates=(row,), support=fact.id)


def late(claim: Claim, new: FactRow, others: Sequence[FactRow], now_ms: int) -> Decision:
    """An older statement arrives after a newer one: it held until the next one began, and is history."""
    begin = new.fact.valid_from
    held = next((row for row in others if row.fact.valid_to and row.fact.valid_from <= begin < row.fact.valid_to), None)
    if held is not None and _says(held, claim.candidate):
        return Decision(support=held.fact.id)
    following = [row for row in others if row.fact.valid_from > begin]
    after = min(following, key=_begin) if following else max(others, key=_begin)
    until = max(begin, held.fact.valid_to if held and held.fact.valid_to else after.fact.valid_from)
    past = closed(new, until, now_ms, "replaced", after.fact.id)
    updates: tuple[FactRow, ...] = ()
    if held is not None:
        inherited = held.fact.ended_because, held.fact.superseded_by
        past = closed(new, until, now_ms, *inherited)
        updates = (closed(held, begin, now_ms, "replaced", new.fact.id),)
    change = FactChange("replaced", after.fact, past.fact) if after.fact.live else None
    return Decision(change, add=past, updates=updates)


def _begin(row: FactRow) -> datetime:
    return row.fact.valid_from


def _retract(claim: Claim, live: Sequence[FactRow], now_ms: int) -> Decision:
    candidate = claim.candidate
    hit = [row for row in live if ends_it(claim, row)]
    if not hit:
        return Decision(refused="nothing-to-end: no such fact is believed")
    told = from_ms(claim.said_at_ms)
    at = told if candidate.valid_from_ms is None else from_ms(candidate.valid_from_ms)
    rows = tuple(
        closed(row, max(at if at > row.fact.valid_from else told, row.fact.valid_from), now_ms, "retracted", None)
        for row in hit
    )
    return Decision(FactChange("retracted", rows[0].fact, rows[0].fact), updates=rows)


def _meant(row: FactRow, candidate: Candidate) -> bool:
    """Whether a retraction means this fact: a statement by its words, an attribute by its address."""
    if candidate.kind != "attribute":
        return row.fact.kind == candidate.kind and same(row.fact.text) == same(candidate.text)
    if candidate.key and row.fact.key != candidate.key:
        return False
    return not candidate.value or same(row.fact.value) == same(candidate.value) or _names_it(row, candidate)


def closed(row: FactRow, valid_to: datetime, now_ms: int, because: str, successor: str | None) -> FactRow:
    """The row as history from *valid_to* on."""
    fact = replace(row.fact, valid_to=valid_to, superseded_by=successor, ended_because=because)
    return replace(row, fact=fact, ended_at=now_ms)


def _says(row: FactRow, candidate: Candidate) -> bool:
    if candidate.kind != "attribute":
        return same(row.fact.text) == same(candidate.text)
    return row.fact.key == candidate.key and (
        same(row.fact.value) == same(candidate.value) or _names_it(row, candidate)
    )


def _names_it(row: FactRow, candidate: Candidate) -> bool:
    """Whether the claim names without its version what *row* holds with one: "SQLite" after "SQLite 3.39"."""
    versioned = _VERSIONED.fullmatch(row.fact.value)
    return versioned is not None and same(versioned[1]) == same(candidate.value)


def rests_on(row: FactRow, evidence: Evidence) -> bool:
    """Whether these very words are a quote of the fact already."""
    here = (evidence.home, evidence.conversation, evidence.seq, evidence.start)
    return any((e.home, e.conversation, e.seq, e.start) == here for e in row.fact.evidence)


def later(claim: Claim, row: FactRow) -> bool:
    """Whether the claim was said after the fact's latest statement: by number in one conversation, else by time."""
    mine = claim.evidence
    here = [e.seq for e in row.fact.evidence if (e.home, e.conversation) == (mine.home, mine.conversation)]
    if here and row.stated_seq in here:
        return (mine.seq, mine.start) >= (row.stated_seq, 0)
    return (claim.said_at_ms, mine.seq) >= (row.stated_at, row.stated_seq)


def _order(evidence: Evidence) -> tuple[int, str, int, int]:
    return (to_ms(evidence.at) if evidence.at else 0, evidence.conversation, evidence.seq, evidence.start)
