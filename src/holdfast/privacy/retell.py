"""
When messages change, the summaries over them are told anew, level by level, from what remains.

The drafts are made outside any transaction; putting them in place of the old rows is one part of
the transaction that changes the messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..clock import from_ms, new_id, to_ms
from ..digest.summarize import SummaryDraft, summarize_chunk, summarize_level
from ..jobs.summaries import into_index
from ..reconcile.erase import Fallen
from ..scope import SELF
from ..store.protocol import Derivation, SummaryRow, WriteView
from ..types import Message, Summary


def affected(rows: Sequence[SummaryRow], seqs: Sequence[int]) -> list[Summary]:
    """The live summaries whose range holds any of the messages *seqs*, lowest level first."""
    hit = [r.summary for r in rows if r.live and _holds(r.summary, seqs)]
    return sorted(hit, key=lambda summary: (summary.level, summary.start_seq))


def drafts(rows: Sequence[SummaryRow], seqs: Sequence[int], messages: Mapping[int, Message]) -> dict[str, SummaryDraft]:
    """
    What each affected summary says now, by its id.

    Args:
        rows: all summaries of the conversation.
        seqs: the messages that change.
        messages: what remains in the ranges of the affected level-1 summaries, secrets masked.
    """
    found: dict[str, SummaryDraft] = {}
    live = {row.summary.id: row.summary for row in rows if row.live}
    for summary in affected(rows, seqs):
        if summary.level == 1:
            inside = [messages[seq] for seq in range(summary.start_seq, summary.end_seq + 1) if seq in messages]
            found[summary.id] = summarize_chunk(inside)
            continue
        children = [
            _told(child, found[child.id]) if child.id in found else child
            for child in live.values()
            if child.parent == summary.id
        ]
        found[summary.id] = replace(summarize_level(children), exchanges=sum(child.exchanges for child in children))
    return found


def put_in_place(
    view: WriteView,
    rows: Sequence[SummaryRow],
    told: Mapping[str, SummaryDraft],
    seqs: Sequence[int],
    fallen: Fallen,
    now_ms: int,
) -> None:
    """Replace the affected summaries of the view's conversation; older versions of their ranges go for good."""
    subject, name = view.scope.subject or SELF, view.scope.conversation or ""
    doomed = [row for row in rows if row.summary.id in told or (not row.live and _holds(row.summary, seqs))]
    if not doomed:
        return
    fallen.count("summaries", len(doomed))
    fallen.texts += [row.summary.text for row in doomed]
    view.remove_docs(subject, "summary", [row.doc for row in doomed if row.live])
    view.remove_summaries([row.summary for row in doomed])
    names = {summary_id: new_id("sum", now_ms) for summary_id in told}
    kept = [row.summary for row in rows if row.live and row.summary.id not in told]
    for old in sorted((row.summary for row in doomed if row.live), key=lambda summary: summary.level):
        below = [row.summary for row in rows if row.live and row.summary.parent == old.id]
        children = [names.get(child.id, child.id) for child in below]
        new = replace(
            _told(old, told[old.id]),
            id=names[old.id],
            version=old.version + 1,
            parent=names.get(old.parent or "", old.parent),
            children=tuple(children),
            created_at=from_ms(now_ms),
        )
        (last,) = view.stored(start_seq=old.end_seq, end_seq=old.end_seq)
        at_ms = to_ms(last.message.at) if last.message.at else now_ms
        doc = into_index(view, new, subject, at_ms, now_ms)
        view.add_summary(new, doc, range(new.start_seq, new.end_seq + 1) if new.level == 1 else ())
        if new.level == 1:
            view.add_derivations([Derivation("summary", new.id, "message", subject, name, new.start_seq, new.end_seq)])
        view.set_parent([child.id for child in kept if child.parent == old.id], new.id)


def _holds(summary: Summary, seqs: Sequence[int]) -> bool:
    return any(summary.start_seq <= seq <= summary.end_seq for seq in seqs)


def _told(summary: Summary, draft: SummaryDraft) -> Summary:
    return replace(
        summary,
        text=draft.text,
        themes=draft.themes,
        concerns=draft.concerns,
        actions=draft.actions,
        exchanges=draft.exchanges,
        source=draft.source,
        stale=False,
    )
