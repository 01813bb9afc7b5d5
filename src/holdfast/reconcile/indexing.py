"""What is believed can be searched, what is history cannot; inside the caller's transaction."""

from __future__ import annotations

from dataclasses import replace

from ..clock import to_ms
from ..scope import SELF
from ..store.protocol import DocRow, FactRow, WriteView
from ..text.terms import signals, terms


def into_index(view: WriteView, row: FactRow, now_ms: int) -> FactRow:
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


def leave_index(view: WriteView, row: FactRow) -> None:
    """What no longer holds is history: it can be read, and is never recalled."""
    if row.doc:
        view.remove_docs(row.fact.subject, "fact", [row.doc])
