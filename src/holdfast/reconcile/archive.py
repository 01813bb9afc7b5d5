"""
Archived memories: not shown and not recalled, but not lost.

An archived fact is history with ``ended_because`` = ``archived`` and no document.  For what is
learned it counts as believed: said again it comes back, contradicted it is replaced, taken back it
has ended.  All inside the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..clock import from_ms, to_ms
from ..scope import SELF
from ..store import DocRow, FactRow, WriteView
from ..text.terms import signals, terms
from ..types import FactChange
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
    counts: dict[str, int] = {}
    for term in terms(words):
        counts[term] = counts.get(term, 0) + 1
    doc = user.next_doc
    view.save_user(replace(user, next_doc=doc + 1, version=user.version + 1), now_ms)
    view.add_docs(
        [
            DocRow(
                subject=fact.subject,
                kind="fact",
                doc=doc,
                conversation="",
                seq=0,
                ref=fact.id,
                session=0,
                speaker=SELF,
                role="user",
                at=to_ms(fact.valid_from),
                terms=sum(counts.values()),
                chars=len(fact.text),
                signals=signals(fact.text),
                unscoped=row.unscoped,
            )
        ]
    )
    view.add_postings((fact.subject, "fact", term, doc, count) for term, count in counts.items())
    return replace(row, doc=doc)


def unindex_fact(view: WriteView, row: FactRow) -> None:
    """Remove a past fact from search; it stays readable as history."""
    if row.doc:
        view.remove_docs(row.fact.subject, "fact", [row.doc])
