"""
Which messages are shown verbatim and which summaries stand for the others.  Pure.

The verbatim window starts where a chunk starts, so every message before it is inside a summary
that ends before it.  Where it starts depends on what is covered, never on how many messages came
since: it moves when a new chunk is closed, and only then.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ..text.tokens import MESSAGE_OVERHEAD_TOKENS
from ..types import Hit, Summary
from .material import Material
from .result import LeftOut
from .turns import QUERY_SEQ, Verbatim

Range = tuple[int, int]


def first_verbatim(
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


def covering_summaries(summaries: Iterable[Summary], before: int) -> list[Summary]:
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


def gaps(shown: Iterable[Range], last: int) -> list[Range]:
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


NO_ROOM = "no room in the budget"
NO_ROOM_FOR_SUMMARY = "no room in the budget for their summary"
NO_SUMMARY = "no summary covers them yet"


@dataclass(frozen=True, slots=True)
class Narrative:
    """
    One context's narrative: summaries that are shown and not, where verbatim starts, the turns.

    ``older``: why the strategy does not tell what stands before the start and is in no summary.
    """

    material: Material
    told: Sequence[Summary]
    untold: Sequence[Summary]
    start: int
    verbatim: Verbatim
    older: str = ""

    @property
    def verbatim_ranges(self) -> list[Range]:
        """Stored messages that are shown verbatim."""
        return ranges(seq for turn in self.verbatim.turns for seq in turn.seqs if seq != QUERY_SEQ)

    def unseen(self, facts: AbstractSet[str]) -> Iterator[Hit]:
        """
        The hits that are not shown anyway, best first, each once.

        A summary is recalled only where nothing of its range is shown, and one a conversation, so
        that no summary stands beside one that it is part of.
        """
        here = self.material.conversation
        spans = {s.id: (s.start_seq, s.end_seq) for s in self.material.summaries}
        verbatim = {seq for turn in self.verbatim.turns for seq in turn.seqs}
        shown = [*self.verbatim_ranges, *((s.start_seq, s.end_seq) for s in self.told)]
        seen: set[tuple[str, str, str, int]] = set()
        for hit in self.material.hits:
            key = {
                "fact": ("fact", hit.id, "", 0),
                "message": ("message", "", hit.conversation, hit.seq),
                "summary": ("summary", "", hit.conversation, 0),
            }[hit.kind]
            if key in seen or (hit.kind == "fact" and hit.id in facts):
                continue
            if hit.conversation == here and hit.kind == "message" and hit.seq in verbatim:
                continue
            if hit.conversation == here and hit.kind == "summary":
                start, end = spans.get(hit.id, (hit.seq, hit.seq))
                if any(a <= end and start <= b for a, b in shown):
                    continue
            seen.add(key)
            yield hit


def list_left_out(story: Narrative) -> list[LeftOut]:
    """Every stored message that is neither shown nor summarised, as ranges with the reason, and every cut one."""
    material = story.material
    exists = {message.seq for message in material.messages}
    told = [(s.start_seq, s.end_seq) for s in story.told]
    found: list[LeftOut] = []
    for gap in gaps([*story.verbatim_ranges, *told], material.total_messages):
        for start, end, reason in _split_by_reason(gap, story):
            pieces = [(start, end)]
            if start >= material.first_given:  # what was not loaded from there on was erased
                pieces = ranges(seq for seq in range(start, end + 1) if seq in exists)
            for a, b in pieces:
                last = found[-1] if found else None
                if last and last.reason == reason and last.end_seq == a - 1:
                    found[-1] = LeftOut("messages", last.count + b - a + 1, reason, last.start_seq, b)
                else:
                    found.append(LeftOut("messages", b - a + 1, reason, a, b))
    for turn in story.verbatim.turns:
        if turn.cut_seq > QUERY_SEQ:
            found.append(LeftOut("part", 1, "cut to fit the budget", turn.cut_seq, turn.cut_seq))
        elif turn.cut_seq == QUERY_SEQ:
            found.append(LeftOut("query", 1, "cut to fit the budget"))
    if any(QUERY_SEQ in turn.seqs for turn in story.verbatim.dropped):
        found.append(LeftOut("query", 1, NO_ROOM))
    return found


def _split_by_reason(gap: Range, story: Narrative) -> Iterator[tuple[int, int, str]]:
    """*gap* in pieces, each with its one reason."""
    edges = {gap[0], story.material.first_given, story.start}
    for summary in story.untold:
        edges.update((summary.start_seq, summary.end_seq + 1))
    inside = sorted(edge for edge in edges if gap[0] <= edge <= gap[1])
    for start, after in zip(inside, [*inside[1:], gap[1] + 1], strict=True):
        if any(s.start_seq <= start <= s.end_seq for s in story.untold):
            reason = NO_ROOM_FOR_SUMMARY
        elif story.older and start < story.start:
            reason = story.older
        else:
            reason = NO_ROOM if start >= min(story.start, story.material.first_given) else NO_SUMMARY
        yield start, after - 1, reason
