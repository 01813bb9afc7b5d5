"""The whole conversation on one line, as wide as its messages: summaries, facts, rebuilds and hits as paths of a drawing.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ....reports import Rebuilt
from ....types import Fact, Summary

HEIGHT = 40
META_ROWS = 3  # of the highest levels
_PLACES = 1_000  # marks that are told apart, over the whole width


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
    for number, one, many in (
        (messages, "message", "messages"),
        (len(chunks), "chunk summary", "chunk summaries"),
        (meta, "meta summary", "meta summaries"),
        (stale, "summary out of date", "summaries out of date"),
        (waiting, "message not summarized yet", "messages not summarized yet"),
        (facts, "fact learned", "facts learned"),
        (rebuilds, "rebuild", "rebuilds"),
    ):
        if number:
            yield f"{number:,} {one if number == 1 else many}"
