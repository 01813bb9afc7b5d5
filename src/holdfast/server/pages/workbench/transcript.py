"""The transcript of a conversation, the coverage by summaries, and word diffs.  Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from ....types import Fact, Message, Summary

MAX_DIFF_WORDS = 4_000  # that are compared one by one


@dataclass(frozen=True, slots=True)
class FactBadge:
    """The effect of a message on a fact; ``previous`` is the fact it replaced."""

    kind: Literal["learned", "replaced", "confirmed", "over"]
    fact: Fact
    previous: Fact | None = None


@dataclass(frozen=True, slots=True)
class TranscriptLine:
    """One message; if ``message`` is ``None``, a range of forgotten messages."""

    start_seq: int
    end_seq: int
    message: Message | None
    badges: tuple[FactBadge, ...] = ()


def fact_badges(facts: Sequence[Fact], conversation: str) -> dict[int, list[FactBadge]]:
    """Return the badges of each message of *conversation*: learned, replaced, or mentioned again."""
    replaced_by = {fact.superseded_by: fact for fact in facts if fact.superseded_by}
    found: dict[int, list[FactBadge]] = {}
    for fact in facts:
        said = sorted({e.seq for e in fact.evidence if e.conversation == conversation})
        first = fact.evidence[0] if fact.evidence else None
        for seq in said:
            began = first is not None and (first.conversation, first.seq) == (conversation, seq)
            previous = replaced_by.get(fact.id) if began else None
            kind: Literal["learned", "replaced", "confirmed", "over"] = "confirmed"
            if fact.ended_because in ("never_true", "retracted", "rebuilt"):
                kind = "over"
            elif began:
                kind = "learned" if previous is None else "replaced"
            found.setdefault(seq, []).append(FactBadge(kind, fact, previous))
    return found


def transcript_lines(
    messages: Sequence[Message], first: int, last: int, learned: dict[int, list[FactBadge]]
) -> list[TranscriptLine]:
    """Return messages *first* to *last* as lines; numbers without a message were forgotten."""
    result, place = [], first
    for message in messages:
        if message.seq > place:
            result.append(TranscriptLine(place, message.seq - 1, None))
        result.append(TranscriptLine(message.seq, message.seq, message, tuple(learned.get(message.seq, ()))))
        place = message.seq + 1
    if place <= last:
        result.append(TranscriptLine(place, last, None))
    return result


def word_diff(before: str, after: str) -> list[tuple[Literal["same", "gone", "new"], str]]:
    """Compare two texts word by word, as stretches that are the same, gone or new."""
    old, new = re.findall(r"\S+\s*|\s+", before), re.findall(r"\S+\s*|\s+", after)
    if max(len(old), len(new)) > MAX_DIFF_WORDS:
        return [("gone", before), ("new", after)]
    said: list[tuple[Literal["same", "gone", "new"], str]] = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            said.append(("same", "".join(new[c:d])))
            continue
        if b > a:
            said.append(("gone", "".join(old[a:b])))
        if d > c:
            said.append(("new", "".join(new[c:d])))
    return said


@dataclass(frozen=True, slots=True)
class FactsDiff:
    """The active facts of a range before and after a rebuild: those lost, gained, and changed as ``(old, new)``."""

    before: int
    after: int
    lost: tuple[Fact, ...]
    gained: tuple[Fact, ...]
    changed: tuple[tuple[Fact, Fact], ...]


def facts_diff(before: Iterable[object], after: Iterable[object], active: Collection[str]) -> FactsDiff:
    """
    Compare the active facts of a range before and after a rebuild.

    Args:
        before: the rows before; those that are no facts are skipped.
        after: the rows after.
        active: the ids of those of *before* that were active then.
    """
    old = {fact.id: fact for fact in before if isinstance(fact, Fact) and fact.id in active}
    new = {fact.id: fact for fact in after if isinstance(fact, Fact) and fact.live}
    gone = [
        fact for name, fact in old.items() if name not in new and fact.text not in {one.text for one in new.values()}
    ]
    come = [
        fact for name, fact in new.items() if name not in old and fact.text not in {one.text for one in old.values()}
    ]
    there = {(fact.subject, fact.category, fact.key): fact for fact in come if fact.kind == "attribute"}
    changed = [
        (fact, other)
        for fact in gone
        if fact.kind == "attribute" and (other := there.pop((fact.subject, fact.category, fact.key), None))
    ]
    paired = {fact.id for pair in changed for fact in pair}
    lost, gained = ([fact for fact in facts if fact.id not in paired] for facts in (gone, come))
    return FactsDiff(len(old), len(new), tuple(lost), tuple(gained), tuple(changed))


def first_mentions(facts: Iterable[Fact], conversation: str) -> list[tuple[int, Fact, bool]]:
    """Return ``(message, fact, replaced another)`` for each fact first mentioned in *conversation*."""
    known = list(facts)
    replacing = {fact.superseded_by for fact in known if fact.superseded_by}
    return [
        (fact.evidence[0].seq, fact, fact.id in replacing)
        for fact in known
        if fact.evidence and fact.evidence[0].conversation == conversation
    ]


CellState = Literal["fresh", "stale", "waiting", "failed", "none"]
MOST_COLUMNS = 48


@dataclass(frozen=True, slots=True)
class CoverageCell:
    """Messages ``start_seq`` to ``end_seq`` at one level, over ``span`` columns, with their summary."""

    start_seq: int
    end_seq: int
    span: int
    state: CellState
    summary: Summary | None = None


@dataclass(frozen=True, slots=True)
class LearnedCount:
    """The number of facts first mentioned in a column, and how many replaced another."""

    facts: int
    replaced: int


@dataclass(frozen=True, slots=True)
class CoverageStrip:
    """
    A stretch of the coverage: ``levels`` from the highest to level 1, and the facts of each column.

    ``before`` and ``after`` are messages in the stretches next to this one; ``None`` at the ends.
    """

    columns: tuple[CoverageCell, ...]
    levels: tuple[tuple[int, tuple[CoverageCell, ...]], ...]
    learned: tuple[LearnedCount, ...]
    before: int | None
    after: int | None


def coverage_strip(
    summaries: Sequence[Summary],
    messages: int,
    learned: Iterable[tuple[int, Fact, bool]] = (),
    *,
    failed: bool = False,
    around: int | None = None,
    most: int = MOST_COLUMNS,
) -> CoverageStrip:
    """
    Return the stretch of the coverage that contains message *around*, or the last one.

    Args:
        summaries: the live ones, of all levels.
        messages: how many messages the conversation has.
        learned: ``(message, fact, whether it replaced another)``.
        failed: what is not summarized yet could not be.
        around: a message that is to be seen.
        most: columns at most.
    """
    columns = _level_one(summaries, messages, failed)
    at = len(columns) - 1
    if around is not None:
        at = next((n for n, cell in enumerate(columns) if cell.end_seq >= around), at)
    first = max(0, min(at - most // 2, len(columns) - most))
    shown = columns[first : first + most]
    highest = max((summary.level for summary in summaries), default=1)
    levels = [(level, _level_row(summaries, level, shown)) for level in range(highest, 1, -1)]
    return CoverageStrip(
        columns=tuple(shown),
        levels=(*levels, (1, tuple(shown))),
        learned=tuple(_learned_counts(shown, list(learned))),
        before=columns[first - 1].end_seq if first else None,
        after=columns[first + most].start_seq if first + most < len(columns) else None,
    )


def _level_one(summaries: Sequence[Summary], messages: int, failed: bool) -> list[CoverageCell]:
    """Return one column per chunk, and one for each gap and for the rest."""
    columns, place = [], 1
    for summary in sorted((s for s in summaries if s.level == 1), key=lambda s: s.start_seq):
        if summary.start_seq > place:
            columns.append(CoverageCell(place, summary.start_seq - 1, 1, "waiting"))
        state: CellState = "stale" if summary.stale else "fresh"
        columns.append(CoverageCell(summary.start_seq, summary.end_seq, 1, state, summary))
        place = summary.end_seq + 1
    if place <= messages:
        columns.append(CoverageCell(place, messages, 1, "failed" if failed else "waiting"))
    return columns


def _level_row(summaries: Sequence[Summary], level: int, columns: Sequence[CoverageCell]) -> tuple[CoverageCell, ...]:
    """Return the cells of one level; a summary that begins before the first column is cut."""
    own = sorted((s for s in summaries if s.level == level), key=lambda s: s.start_seq)
    cells: list[CoverageCell] = []
    for column in columns:
        over = next((s for s in own if s.start_seq <= column.start_seq and column.end_seq <= s.end_seq), None)
        last = cells[-1] if cells else None
        if last is not None and last.summary is over:
            cells[-1] = CoverageCell(last.start_seq, column.end_seq, last.span + 1, last.state, over)
            continue
        state: CellState = "none" if over is None else "stale" if over.stale else "fresh"
        cells.append(CoverageCell(column.start_seq, column.end_seq, 1, state, over))
    return tuple(cells)


def _learned_counts(
    columns: Sequence[CoverageCell], learned: Sequence[tuple[int, Fact, bool]]
) -> Iterable[LearnedCount]:
    for column in columns:
        here = [replaced for seq, _, replaced in learned if column.start_seq <= seq <= column.end_seq]
        yield LearnedCount(len(here), sum(here))
