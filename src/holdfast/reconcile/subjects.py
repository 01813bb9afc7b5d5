"""
Facts change their subject: one subject becomes part of another, or a mention turns out to mean a known one.

What both said of the same address meets as when it is learned: later words replace earlier ones, and the same value
keeps the quotes of both.  All inside the caller's transaction.
"""

from __future__ import annotations

from dataclasses import replace

from ..store import FactRow, WriteView
from .archive import index_fact, unindex_fact
from .merging import add_quotes
from .registry import normalize_value


def move_facts(view: WriteView, subject: str, into: str, now_ms: int) -> tuple[list[FactRow], list[FactRow]]:
    """
    Move every fact about *subject* to *into*, live and past.

    Returns:
        The facts that moved, and those of either that are replaced, or said twice, by that.
    """
    view = view.at(None, None)
    rows = [row for row in view.all_facts() if row.fact.subject == subject]
    ended: list[FactRow] = []
    for row in sorted(rows, key=lambda row: (row.stated_at, row.stated_seq, row.fact.id)):
        unindex_fact(view, row)
        beside = view.of_owner(row.owner)
        there = beside.fact_at(into, row.fact.category, row.slot_key, row.slot_value) if row.fact.live else None
        moved = replace(row, fact=replace(row.fact, subject=into), doc=0)
        if there is not None:
            ended.append(_meet(view, moved, there, now_ms))
            continue
        view.move_fact(row, into)
        view.update_fact(index_fact(view, moved, now_ms))
    return rows, ended


def _meet(view: WriteView, row: FactRow, there: FactRow, now_ms: int) -> FactRow:
    """Let a live fact, whose *row* has the new subject, meet the one at its address there; return the one that ends."""
    old = view.fact(row.fact.id) or row
    if normalize_value(row.fact.value) == normalize_value(there.fact.value) and row.fact.kind == there.fact.kind:
        for older in view.replaced_by(old.fact.subject, row.fact.id):
            view.update_fact(replace(older, fact=replace(older.fact, superseded_by=there.fact.id)))
        view.remove_fact(old)
        add_quotes(view, there, row.fact.evidence, now_ms)
        view.update_fact(replace(there, unscoped=there.unscoped or row.unscoped))
        return old
    wins = (row.stated_at, row.stated_seq) > (there.stated_at, there.stated_seq)
    newer, older = (row, there) if wins else (there, row)
    until = max(newer.fact.valid_from, older.fact.valid_from)
    closed = replace(older.fact, valid_to=until, ended_because="replaced", superseded_by=newer.fact.id)
    if wins:
        unindex_fact(view, there)
        view.update_fact(replace(there, fact=closed, ended_at=now_ms, doc=0))
        view.move_fact(old, row.fact.subject)
        view.update_fact(index_fact(view, row, now_ms))
        return there
    view.update_fact(replace(old, fact=replace(closed, subject=old.fact.subject), ended_at=now_ms, doc=0))
    view.move_fact(old, row.fact.subject)
    return row
