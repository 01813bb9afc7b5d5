"""The transcript of a conversation: its lines and badges, a search in them, the minimap beside them, and word diffs."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Literal

from ....conversation import Conversation
from ....reports import Rebuilt
from ....text import dataclass
from ....types import Fact, Message, Summary
from ..texts import mark, plural_of

MAX_DIFF_WORDS = 4_000  # that are compared one by one
CellState = Literal["fresh", "stale", "waiting", "failed", "none"]
MOST_COLUMNS = 48
HITS_A_PAGE = 50
READ = 1_000  # messages at a time
MAX_READ = 50_000  # of a longer conversation the rest is searched on the next page
AROUND = 70  # characters beside a hit
HEIGHT = 40
META_ROWS = 3  # of the highest levels
_PLACES = 1_000  # marks that are told apart, over the whole width


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


@dataclass(frozen=True, slots=True)
class MessageHit:
    """A message that contains the text: the words before it, the text as it is written there, and the words after."""

    seq: int
    speaker: str
    before: str
    found: str
    after: str


@dataclass(frozen=True, slots=True)
class MessageHits:
    """The hits of one page; ``after`` is the message behind which the next page begins, if there is one."""

    words: str
    hits: tuple[MessageHit, ...]
    after: int | None


def search_messages(chat: Conversation, words: str, messages: int, after: int = 0) -> MessageHits:
    """
    Return the messages that contain *words*, capitals or not, in order.

    Args:
        chat: the conversation.
        words: a text, not empty.
        messages: how many the conversation has.
        after: only messages behind this one.
    """
    pattern = re.compile(re.escape(words), re.IGNORECASE)
    hits: list[MessageHit] = []
    at, end = after + 1, min(messages, after + MAX_READ)
    while at <= end and (read := chat.load(start_seq=at, limit=READ)):
        for message in read:
            found = pattern.search(message.content) if message.seq <= end else None
            if found is None:
                continue
            if len(hits) == HITS_A_PAGE:
                return MessageHits(words, tuple(hits), hits[-1].seq)
            hits.append(_hit(message, found))
        at = read[-1].seq + 1
    return MessageHits(words, tuple(hits), end if end < messages else None)


def _hit(message: Message, found: re.Match[str]) -> MessageHit:
    begin, end = max(0, found.start() - AROUND), found.end() + AROUND
    before = ("…" if begin else "") + message.content[begin : found.start()]
    after = message.content[found.end() : end] + ("…" if end < len(message.content) else "")
    return MessageHit(message.seq, message.speaker, before, found[0], after)


@dataclass(frozen=True, slots=True)
class MinimapPath:
    """Marks of one kind as the ``d`` of a path: areas, or lines if ``kind`` says so."""

    kind: str
    d: str


@dataclass(frozen=True, slots=True)
class Minimap:
    """The drawing, ``messages`` wide, and what it shows in numbers."""

    messages: int
    paths: tuple[MinimapPath, ...]
    words: tuple[str, ...]


def minimap(
    summaries: Sequence[Summary],
    messages: int,
    learned: Sequence[tuple[int, Fact, bool]] = (),
    rebuilds: Sequence[Rebuilt] = (),
    *,
    hits: Iterable[int] = (),
    failed: bool = False,
) -> Minimap:
    """
    Draw a conversation.

    Args:
        summaries: the live ones, of all levels.
        messages: how many messages the conversation has.
        learned: ``(message, fact, whether it replaced another)``.
        rebuilds: the ranges that were rebuilt.
        hits: the messages that a search found.
        failed: what is not summarized yet could not be.
    """
    highest = max((one.level for one in summaries), default=1)
    areas: dict[str, list[str]] = {}
    chunks = sorted((one for one in summaries if one.level == 1), key=lambda one: one.start_seq)
    gap = messages / 2_000
    for one in chunks:
        _add(areas, "l1 stale" if one.stale else "l1 fresh", one.start_seq, one.end_seq, 15, 12, gap)
    for begin, end in _gaps(chunks, messages):
        _add(areas, "failed" if failed else "waiting", begin, end, 15, 12, gap)
    for one in summaries:
        row = highest - one.level
        if one.level > 1 and row < META_ROWS:
            tall = 12 / min(highest - 1, META_ROWS)
            _add(
                areas,
                "l2 stale" if one.stale else "l2 fresh",
                one.start_seq,
                one.end_seq,
                1 + row * tall,
                tall - 1,
                gap,
            )
    for made in rebuilds:
        _add(areas, "rebuilt", made.start_seq, min(made.end_seq, messages), 37, 3, 0)
    lines = {
        "learned": _lines((seq for seq, _, replaced in learned if not replaced), messages, 29, 6),
        "replacing": _lines((seq for seq, _, replaced in learned if replaced), messages, 28, 8),
        "hit": _lines(hits, messages, 0, HEIGHT),
    }
    paths = [MinimapPath(f"area {kind}", "".join(parts)) for kind, parts in areas.items()]
    paths += [MinimapPath(f"line {kind}", d) for kind, d in lines.items() if d]
    return Minimap(messages, tuple(paths), tuple(_words(summaries, chunks, messages, len(learned), len(rebuilds))))


def _add(areas: dict[str, list[str]], kind: str, first: int, last: int, y: float, tall: float, gap: float) -> None:
    wide = max(last - first + 1 - gap, (last - first + 1) / 2)
    areas.setdefault(kind, []).append(f"M{first - 1} {y:g}h{wide:g}v{tall:g}h-{wide:g}z")


def _gaps(chunks: Sequence[Summary], messages: int) -> list[tuple[int, int]]:
    """Return the ranges that no chunk summary covers."""
    found, place = [], 1
    for one in chunks:
        if one.start_seq > place:
            found.append((place, one.start_seq - 1))
        place = max(place, one.end_seq + 1)
    return [*found, (place, messages)] if place <= messages else found


def _lines(seqs: Iterable[int], messages: int, y: int, tall: int) -> str:
    """Draw upright lines in the middle of messages, one where several would overlap."""
    places = {seq * _PLACES // max(messages, _PLACES): seq for seq in sorted(seqs, reverse=True)}
    return "".join(f"M{seq - 0.5:g} {y}v{tall}" for seq in sorted(places.values()))


def _words(
    summaries: Sequence[Summary], chunks: Sequence[Summary], messages: int, facts: int, rebuilds: int
) -> Iterable[str]:
    """Yield what the drawing shows, in words."""
    stale, meta = sum(one.stale for one in summaries), len(summaries) - len(chunks)
    waiting = sum(end - begin + 1 for begin, end in _gaps(chunks, messages))
    for number, words in (
        (messages, mark("{count} message | {count} messages")),
        (len(chunks), mark("{count} chunk summary | {count} chunk summaries")),
        (meta, mark("{count} meta summary | {count} meta summaries")),
        (stale, mark("{count} summary out of date | {count} summaries out of date")),
        (waiting, mark("{count} message not summarized yet | {count} messages not summarized yet")),
        (facts, mark("{count} fact learned | {count} facts learned")),
        (rebuilds, mark("{count} rebuild | {count} rebuilds")),
    ):
        if number:
            yield plural_of(words, number)
