"""What a context tells, what it therefore need not repeat, and what it does not tell.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ..types import Hit, Summary
from .material import Material
from .recent import Verbatim
from .result import LeftOut
from .turns import QUERY_SEQ
from .window import Range, missing, ranges

NO_ROOM = "no room in the budget"
NO_ROOM_FOR_SUMMARY = "no room in the budget for their summary"
NO_SUMMARY = "no summary covers them yet"


@dataclass(frozen=True, slots=True)
class Story:
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


def unshown(story: Story) -> list[LeftOut]:
    """Every stored message that is neither shown nor summarised, as ranges with the reason, and every cut one."""
    material = story.material
    exists = {message.seq for message in material.messages}
    told = [(s.start_seq, s.end_seq) for s in story.told]
    found: list[LeftOut] = []
    for gap in missing([*story.verbatim_ranges, *told], material.total_messages):
        for start, end, reason in _reasons(gap, story):
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


def _reasons(gap: Range, story: Story) -> Iterator[tuple[int, int, str]]:
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
