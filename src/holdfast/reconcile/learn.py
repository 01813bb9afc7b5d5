"""Write what the decisions say: facts, evidence, index documents, edges; inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from ..embed.quantize import dequantize
from ..store.protocol import Derivation, FactRow, Partition, WriteView
from ..types import Candidate, FactChange
from .facts import MERGED, Claim, Decision, believed_again, decide
from .indexing import into_index, leave_index
from .merging import take_apart
from .registry import Registry
from .statements import Believed, Means, Meeting, Near, Sentence, meet, settle

WORDS_ALONE = Means()


def learn(
    view: WriteView,
    claims: Sequence[Claim],
    refused: Sequence[tuple[Candidate, str]],
    registry: Registry,
    *,
    new_id: Callable[[], str],
    now_ms: int,
    means: Means = WORDS_ALONE,
) -> list[FactChange]:
    """
    Reconcile grounded claims with what is believed, in the order in which they were said.

    Attributes meet at their addresses.  Sentences meet by what they say, see `statements`; *means* helps to
    compare them.

    Returns one change a claim that changed or confirmed something, and one of op ``rejected`` for
    everything that was refused.  Running the same claims again changes nothing.
    """
    changes: list[FactChange] = []
    for candidate, reason in refused:
        view.add_rejected(candidate, reason, now_ms)
        changes.append(FactChange("rejected", None, reason=reason))
    for claim in with_opposites(claims, registry):
        ever = [believed_again(row) for row in view.history_in(claim.candidate.subject, claim.candidate.category)]
        live = [row for row in ever if row.fact.live]
        past = [row for row in ever if not row.fact.live]
        decision = decide(claim, live, past, registry, fact_id=new_id(), now_ms=now_ms)
        if claim.candidate.kind == "statement" and decision.add is not None and decision.add.fact.live:
            believed, meeting = _meet(view, claim, means, now_ms)
            decision = settle(claim, decision, meeting, now_ms)
            ever += [one.stands for one in believed]
        if decision.refused and claim.candidate.modality == "negated":
            continue  # "not vegan" ends being vegan; where nobody said so there is nothing to tell
        if decision.refused:
            view.add_rejected(claim.candidate, decision.refused, now_ms)
            changes.append(FactChange("rejected", None, reason=decision.refused))
            continue
        write(view, claim, decision, ever, now_ms)
        if decision.change is not None:
            changes.append(decision.change)
    return changes


def with_opposites(claims: Iterable[Claim], registry: Registry) -> Iterator[Claim]:
    """
    Each claim, after it the end of what it excludes: who likes something does not dislike it any more.

    That end carries the modality ``negated``: where nothing is to be ended, nobody is told.
    """
    for claim in claims:
        yield claim
        candidate = claim.candidate
        key = registry.opposite(candidate.category, candidate.key)
        if key and candidate.op == "assert" and candidate.kind == "attribute":
            yield replace(claim, candidate=replace(candidate, key=key, op="retract", modality="negated"))


def write(view: WriteView, claim: Claim, decision: Decision, known: Sequence[FactRow], now_ms: int) -> None:
    """Carry out one decision about *claim*; *known* are the rows that it was made from, archived ones as believed."""
    before = {row.fact.id: row for row in known}
    for row in decision.updates:
        old = before[row.fact.id]
        widened = row.unscoped and not old.unscoped
        hidden = old.fact.live and not old.doc
        if not row.fact.live or widened:
            leave_index(view, row)
        view.update_fact(into_index(view, row, now_ms) if widened or hidden else row)
        if row.fact.ended_because == "retracted" and claim.candidate.op == "retract":
            view.add_derivations([_edge(row.fact.id, claim, "end")])
    if decision.add is not None:
        view.add_fact(into_index(view, decision.add, now_ms))
        view.add_derivations([_edge(decision.add.fact.id, claim)])
    if decision.support:
        view.add_evidence(claim.candidate.subject, decision.support, claim.evidence.home, claim.evidence, now_ms)
        view.add_derivations([_edge(decision.support, claim)])
        user = view.user()  # what a fact rests on is part of what search knows of it
        view.save_user(replace(user, version=user.version + 1), now_ms)


def _meet(view: WriteView, claim: Claim, means: Means, now_ms: int) -> tuple[Believed, Meeting]:
    """What the sentences are to the claim; a memory of which it contradicts a part is taken apart first."""
    while True:
        believed = _believed(view, claim.candidate.subject)
        meeting = meet(claim, believed, _cosines(view, claim, believed, means.near), means)
        if not meeting.parted:
            return believed, meeting
        for whole in meeting.parted:
            take_apart(view, whole, now_ms)


def _believed(view: WriteView, subject: str) -> list[Sentence]:
    """The sentences about *subject* with the fact that stands for each; what was merged stands by its whole."""
    rows = {row.fact.id: believed_again(row) for row in view.at(None, None).statements(subject)}
    found = []
    for row in rows.values():
        stands = rows.get(row.fact.superseded_by or "") if row.fact.ended_because == MERGED else row
        if stands is not None and stands.fact.live:
            found.append(Sentence(row.fact.text, stands, merged=stands is not row))
    return found


def _cosines(view: WriteView, claim: Claim, believed: Believed, near: Near | None) -> dict[str, float]:
    """How near the claim's sentence is to each believed one that has a vector of the same embedder."""
    vector = near.vectors.get(claim.candidate.text) if near is not None else None
    if near is None or vector is None:
        return {}
    stored = view.vectors(Partition(claim.candidate.subject, "fact"), near.embedder)
    rows = dequantize([(scale, data) for _, scale, data in stored], len(vector))
    by_doc = dict(zip([doc for doc, _, _ in stored], (rows @ vector).tolist(), strict=True))
    return {row.fact.id: by_doc[row.doc] for _, row, merged in believed if row.doc in by_doc and not merged}


def _edge(fact_id: str, claim: Claim, kind: str = "fact") -> Derivation:
    """What the message did: stated the fact, or (``end``) ended it."""
    said = claim.evidence
    return Derivation(kind, fact_id, "message", said.home, said.conversation, said.seq, said.seq)
