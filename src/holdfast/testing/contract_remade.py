"""What every store must promise about versions of derived rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ..store.protocol import RebuiltRow, Side, Store, WriteView
from .remade import older_version, swapped
from .rows import ANA, say, summarise


def two_levels(view: WriteView) -> None:
    """Four messages in two chunks, under one higher summary."""
    say(view, "one", "two", "three", "four")
    summarise(view, 1, 4, [summarise(view, 1, 2), summarise(view, 3, 4)])


Spans = list[tuple[int, int]]


class RemadeContract:
    """Versions of summaries, rebuilt ranges, readings."""

    def test_versions_change_places_with_what_they_cover(self, store: Store) -> None:
        """The one that goes covers nothing and is no longer live; the one that comes covers its range."""

        def work(view: WriteView) -> str:
            say(view, "one", "two")
            new = summarise(view, 1, 2)
            old = older_version(view, new)
            rows = {row.summary.id: row for row in view.summary_rows()}
            swapped(view, rows[new.id], replace(rows[old.id], doc=0))
            view.rewrite_summary(replace(rows[new.id], summary=replace(new, parent=None), doc=0, live=False))
            return old.id

        with pytest.raises(_Undo):
            store.write(ANA, lambda view: _looked_at(view, work(view)))

    def test_a_mark_of_staleness_is_kept(self, store: Store) -> None:
        store.write(ANA, two_levels)

        def mark(view: WriteView) -> None:
            (row,) = (row for row in view.summary_rows() if row.summary.level == 2)
            view.rewrite_summary(replace(row, summary=replace(row.summary, stale=True)))

        store.write(ANA, mark)
        assert [s.stale for s in store.read(ANA, lambda view: view.summaries())] == [False, True, False]

    @pytest.mark.parametrize(
        ("spans", "kept"),
        [
            ([(1, 2), (3, 4)], [(1, 4)]),
            ([(1, 4), (2, 3)], [(1, 4)]),
            ([(1, 2), (4, 5)], [(1, 2), (4, 5)]),
            ([(1, 3), (1, 2)], [(1, 3)]),
            ([(4, 5), (1, 2), (3, 3)], [(1, 3), (4, 5)]),
        ],
    )
    def test_readings_that_join_become_one(self, store: Store, spans: Spans, kept: Spans) -> None:
        def work(view: WriteView) -> None:
            say(view, "one", "two", "three", "four", "five")
            for span in spans:
                view.add_reading("m:1", *span)
            view.add_reading("m:2", 2, 2)

        store.write(ANA, work)
        assert store.read(ANA, lambda view: view.readings()) == [*(("m:1", *span) for span in kept), ("m:2", 2, 2)]

    def test_rebuilt_ranges_come_back_in_the_order_of_their_making(self, store: Store) -> None:
        side = Side(("a", "b"), (("f", "rules 1"),), (("g", 3),))
        rows = [RebuiltRow("reb_2", part, "facts", 1, 2, side, Side(), "m 1", 5) for part in (0, 1)]
        rows.append(RebuiltRow("reb_1", 0, "meta", 1, 2, Side(), side, "m 1", 6))

        def work(view: WriteView) -> None:
            say(view, "one", "two")
            for row in (rows[2], rows[1], rows[0]):
                view.add_rebuilt(row)

        store.write(ANA, work)
        assert store.read(ANA, lambda view: view.rebuilt()) == rows
        assert store.read(ANA.about("rex").within("chat"), lambda view: view.rebuilt()) == []


class _Undo(Exception):
    """What was written is only looked at."""


def _looked_at(view: WriteView, now: str) -> None:
    assert view.covered(1, 2) == {1: now, 2: now}
    assert [summary.id for summary in view.summaries()] == [now]
    assert [row.doc for row in view.summary_rows()] == [0, 0]
    raise _Undo
