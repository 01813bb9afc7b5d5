"""The strip of coverage: every message in exactly one column, every column told right at each level."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from holdfast import Summary
from holdfast.server.pages.workbench.transcript import CoverageCell, coverage_strip

AT = datetime(2026, 1, 1, tzinfo=UTC)


def summary(level: int, start: int, end: int, *, stale: bool = False) -> Summary:
    name = f"{level}:{start}-{end}"
    return Summary(name, level, start, end, 1, "…", (), (), (), 0, 1, (), AT, "rules 1", stale)


def spans(cells: tuple[CoverageCell, ...]) -> list[tuple[int, int, int, str]]:
    return [(cell.start_seq, cell.end_seq, cell.span, cell.state) for cell in cells]


def test_chunks_gaps_and_the_rest_are_columns():
    found = coverage_strip([summary(1, 1, 10), summary(1, 21, 30, stale=True), summary(2, 1, 30)], 42)
    assert spans(found.columns) == [
        (1, 10, 1, "fresh"), (11, 20, 1, "waiting"), (21, 30, 1, "stale"), (31, 42, 1, "waiting"),
    ]  # fmt: skip
    assert [(level, spans(cells)) for level, cells in found.levels[:1]] == [
        (2, [(1, 30, 3, "fresh"), (31, 42, 1, "none")])
    ]
    assert (found.before, found.after) == (None, None)


def test_what_could_not_be_made_is_seen():
    assert spans(coverage_strip([summary(1, 1, 10)], 25, failed=True).columns)[-1] == (11, 25, 1, "failed")


def test_a_conversation_without_a_summary_is_one_column():
    assert spans(coverage_strip([], 3).columns) == [(1, 3, 1, "waiting")]
    assert coverage_strip([], 0).columns == ()


@given(st.lists(st.integers(1, 12), max_size=60), st.integers(0, 9), st.integers(1, 20), st.integers(1, 900))
def test_a_stretch_holds_what_was_asked_for_and_leads_to_its_neighbours(sizes, rest, most, around):
    chunks, end = [], 0
    for size in sizes:
        chunks.append(summary(1, end + 1, end + size))
        end += size
    higher = [
        summary(2, group[0].start_seq, group[-1].end_seq)
        for group in (chunks[n : n + 3] for n in range(0, len(chunks) - 2, 3))
    ]
    messages = end + rest
    found = coverage_strip([*chunks, *higher], messages, around=around, most=most)

    assert len(found.columns) <= most
    places = [seq for cell in found.columns for seq in range(cell.start_seq, cell.end_seq + 1)]
    assert places == list(range(places[0], places[-1] + 1)) if places else messages == 0
    assert not places or min(around, messages) in places
    for _level, cells in found.levels:
        assert sum(cell.span for cell in cells) == len(found.columns)
    if found.before is not None:
        assert coverage_strip(chunks, messages, around=found.before, most=most).columns[-1].end_seq >= found.before
    assert (found.before is None) == (not places or places[0] == 1)
    assert (found.after is None) == (not places or places[-1] == messages)
