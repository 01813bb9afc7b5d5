"""Which messages are told by which summaries, as the columns and rows of a table.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from ...types import Fact, Summary

CellState = Literal["fresh", "stale", "waiting", "failed", "none"]
MOST_COLUMNS = 48


@dataclass(frozen=True, slots=True)
class Cell:
    """Messages ``start_seq`` to ``end_seq`` at one level, over ``span`` columns; with the summary that tells them."""

    start_seq: int
    end_seq: int
    span: int
    state: CellState
    summary: Summary | None = None


@dataclass(frozen=True, slots=True)
class Learned:
    """How many facts were first said in a column, and how many of them replaced another."""

    facts: int
    replaced: int


@dataclass(frozen=True, slots=True)
class Strip:
    """
    A stretch of the coverage: ``levels`` from the highest to level 1, and the facts of each column.

    ``before`` and ``after`` are messages in the stretches next to this one; ``None`` at the ends.
    """

    columns: tuple[Cell, ...]
    levels: tuple[tuple[int, tuple[Cell, ...]], ...]
    learned: tuple[Learned, ...]
    before: int | None
    after: int | None


def strip(
    summaries: Sequence[Summary],
    messages: int,
    learned: Iterable[tuple[int, Fact, bool]] = (),
    *,
    failed: bool = False,
    around: int | None = None,
    most: int = MOST_COLUMNS,
) -> Strip:
    """
    The stretch of the coverage that holds message *around*, or the last one.

    Args:
        summaries: the live ones, of all levels.
        messages: how many messages the conversation has.
        learned: ``(message, fact, whether it replaced another)``.
        failed: what is not summarised yet could not be.
        around: a message that is to be seen.
        most: columns at most.
    """
    columns = _columns(summaries, messages, failed)
    at = len(columns) - 1
    if around is not None:
        at = next((n for n, cell in enumerate(columns) if cell.end_seq >= around), at)
    first = max(0, min(at - most // 2, len(columns) - most))
    shown = columns[first : first + most]
    highest = max((summary.level for summary in summaries), default=1)
    levels = [(level, _row(summaries, level, shown)) for level in range(highest, 1, -1)]
    return Strip(
        columns=tuple(shown),
        levels=(*levels, (1, tuple(shown))),
        learned=tuple(_learned(shown, list(learned))),
        before=columns[first - 1].end_seq if first else None,
        after=columns[first + most].start_seq if first + most < len(columns) else None,
    )


def _columns(summaries: Sequence[Summary], messages: int, failed: bool) -> list[Cell]:
    """One column a chunk, and one for what lies between chunks or after the last one."""
    columns, place = [], 1
    for summary in sorted((s for s in summaries if s.level == 1), key=lambda s: s.start_seq):
        if summary.start_seq > place:
            columns.append(Cell(place, summary.start_seq - 1, 1, "waiting"))
        state: CellState = "stale" if summary.stale else "fresh"
        columns.append(Cell(summary.start_seq, summary.end_seq, 1, state, summary))
        place = summary.end_seq + 1
    if place <= messages:
        columns.append(Cell(place, messages, 1, "failed" if failed else "waiting"))
    return columns


def _row(summaries: Sequence[Summary], level: int, columns: Sequence[Cell]) -> tuple[Cell, ...]:
    """The cells of one level over the columns that are shown; a summary that begins before them is cut."""
    own = sorted((s for s in summaries if s.level == level), key=lambda s: s.start_seq)
    cells: list[Cell] = []
    for column in columns:
        over = next((s for s in own if s.start_seq <= column.start_seq and column.end_seq <= s.end_seq), None)
        last = cells[-1] if cells else None
        if last is not None and last.summary is over:
            cells[-1] = Cell(last.start_seq, column.end_seq, last.span + 1, last.state, over)
            continue
        state: CellState = "none" if over is None else "stale" if over.stale else "fresh"
        cells.append(Cell(column.start_seq, column.end_seq, 1, state, over))
    return tuple(cells)


def _learned(columns: Sequence[Cell], learned: Sequence[tuple[int, Fact, bool]]) -> Iterable[Learned]:
    for column in columns:
        here = [replaced for seq, _, replaced in learned if column.start_seq <= seq <= column.end_seq]
        yield Learned(len(here), sum(here))
