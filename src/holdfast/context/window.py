"""
Which messages are shown verbatim and which summaries stand for the others.  Pure.

The verbatim window starts where a chunk starts, so every message before it is inside a summary
that ends before it.  Where it starts depends on what is covered, never on how many messages came
since: it moves when a new chunk is closed, and only then.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from ..text.tokens import MESSAGE_OVERHEAD_TOKENS
from ..types import Summary

Range = tuple[int, int]


def verbatim_from(
    summaries: Sequence[Summary], total_messages: int, recent_messages: int, *, budget_tokens: int | None = None
) -> int:
    """
    The number of the first message that a context may show verbatim.

    It is the latest start of a chunk with at least *recent_messages* covered messages from there
    on; 1 before that many are covered.  With *budget_tokens*, messages so far back that they could
    not fit even if each were empty need not be loaded, and a later number is returned.
    """
    start = window_starts(summaries, recent_messages)[0]
    if budget_tokens is None:
        return start
    return max(start, total_messages - budget_tokens // MESSAGE_OVERHEAD_TOKENS + 1)


def window_starts(summaries: Sequence[Summary], recent_messages: int) -> list[int]:
    """Where the window may start, most messages first; the last is just after everything covered."""
    chunks = sorted((s.start_seq, s.end_seq) for s in summaries if s.level == 1)
    if not chunks:
        return [1]
    end = max(chunk_end for _, chunk_end in chunks)
    starts = [start for start, _ in chunks]
    first = bisect_right(starts, end - recent_messages + 1) - 1
    tail = starts[first:] if first >= 0 else [1, *(start for start in starts if start > 1)]
    return [*tail, end + 1]


def frontier(summaries: Iterable[Summary], before: int) -> list[Summary]:
    """
    The fewest summaries that tell messages 1 to *before* - 1, in order.

    At each message the highest level that starts there and ends in time is taken, so a summary is
    never beside one that it stands for.  Where nothing starts, the next one that does follows.
    """
    at: dict[int, Summary] = {}
    for summary in summaries:
        if summary.level < 1 or summary.end_seq >= before:
            continue
        there = at.get(summary.start_seq)
        if there is None or _height(summary) > _height(there):
            at[summary.start_seq] = summary
    chosen: list[Summary] = []
    reached = 0
    for start in sorted(at):
        if start > reached:
            chosen.append(at[start])
            reached = at[start].end_seq
    return chosen


def _height(summary: Summary) -> tuple[int, int, int, str]:
    return (summary.level, summary.end_seq, summary.version, summary.id)


def ranges(seqs: Iterable[int]) -> list[Range]:
    """Rising numbers as closed ranges."""
    found: list[Range] = []
    for seq in seqs:
        if found and found[-1][1] == seq - 1:
            found[-1] = (found[-1][0], seq)
        else:
            found.append((seq, seq))
    return found


def missing(shown: Iterable[Range], last: int) -> list[Range]:
    """What of 1 to *last* lies in none of *shown*."""
    found: list[Range] = []
    reached = 0
    for start, end in sorted(shown):
        if start > reached + 1:
            found.append((reached + 1, start - 1))
        reached = max(reached, end)
    if reached < last:
        found.append((reached + 1, last))
    return found
