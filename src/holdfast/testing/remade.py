"""A range that was made again, for tests of stores: both versions, and who read what."""

from __future__ import annotations

from dataclasses import replace

from ..clock import new_id
from ..store.protocol import RebuiltRow, Side, SummaryRow, WriteView
from ..types import Summary
from .rows import END_MS


def older_version(view: WriteView, of: Summary) -> Summary:
    """Keep an older version of a live summary of the view's conversation, as if that had been made again."""
    old = replace(of, id=new_id("sum", END_MS), version=of.version + 1, parent=None, text="how it was told before")
    view.add_summary(old, 0, (), live=False)
    return old


def made_again(view: WriteView) -> RebuiltRow:
    """Note that the first summary of the view's conversation was made again, and that a model read what it covers."""
    new = view.summaries()[0]
    old = older_version(view, new)
    span = (new.start_seq, new.end_seq)
    row = RebuiltRow(
        "reb_1", 0, "summaries", *span, Side((old.id,)), Side((new.id,), ends=(("f", 1),)), "test 1", END_MS
    )
    view.add_rebuilt(row)
    view.add_reading("test:1", *span)
    return row


def swapped(view: WriteView, now: SummaryRow, then: SummaryRow) -> None:
    """Let an older version of a summary without parent stand in the place of the live one."""
    view.remove_docs(view.scope.subject or "", "summary", [now.doc])
    view.rewrite_summary(replace(now, live=False, doc=0))
    view.rewrite_summary(replace(then, live=True))
