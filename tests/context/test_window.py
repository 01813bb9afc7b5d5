"""Which messages are verbatim and which summaries stand for the others."""

import math

import pytest

from holdfast.context.turns import covering_summaries, first_verbatim, gaps, outermost, ranges, window_starts

from .worlds import summary, tree


@pytest.mark.parametrize(
    ("covered", "total", "recent", "start"),
    [
        (0, 0, 20, 1),
        (0, 500, 20, 1),
        (10, 15, 20, 1),
        (20, 25, 20, 1),
        (30, 30, 20, 11),
        (30, 39, 20, 11),
        (40, 40, 20, 21),
        (40, 40, 15, 21),
        (40, 40, 10, 31),
        (40, 40, 2, 31),
        (600, 600, 20, 581),
    ],
)
def test_window_starts_at_a_chunk_and_holds_the_recent_messages(covered, total, recent, start):
    assert first_verbatim(tree(covered), total, recent) == start


def test_window_moves_with_coverage_only():
    assert {first_verbatim(tree(50), total, 20) for total in range(50, 90)} == {31}


def test_messages_beyond_any_budget_are_not_asked_for():
    assert first_verbatim([], 1_000_000, 20, budget_tokens=4000) == 999_001


def test_uneven_chunks():
    chunks = [summary(1, 7), summary(8, 30), summary(31, 33), summary(34, 60)]

    assert window_starts(chunks, 20) == [34, 61]
    assert window_starts(chunks, 28) == [31, 34, 61]
    assert window_starts(chunks, 100) == [1, 8, 31, 34, 61]


@pytest.mark.parametrize(
    ("covered", "before", "shown"),
    [
        (20, 11, ["s1_1_10"]),
        (50, 31, ["s2_1_30"]),
        (50, 21, ["s1_1_10", "s1_11_20"]),
        (50, 51, ["s2_1_30", "s1_31_40", "s1_41_50"]),
        (120, 101, ["s3_1_90", "s1_91_100"]),
        (120, 91, ["s3_1_90"]),
        (120, 81, ["s2_1_30", "s2_31_60", "s1_61_70", "s1_71_80"]),
    ],
)
def test_the_fewest_summaries_tell_what_came_before(covered, before, shown):
    assert [s.id for s in covering_summaries(tree(covered), before)] == shown


def test_number_of_summaries_grows_with_the_logarithm():
    for covered in (100, 1_000, 10_000, 100_000):
        assert len(covering_summaries(tree(covered), covered + 1)) <= 2 * (1 + math.log(covered / 10, 3))


def test_a_hole_in_the_coverage_stays_a_hole():
    assert [s.start_seq for s in covering_summaries([summary(1, 10), summary(21, 30)], 31)] == [1, 21]
    assert gaps([(1, 10), (21, 30)], 35) == [(11, 20), (31, 35)]


@pytest.mark.parametrize(
    ("seqs", "expected"), [([], []), ([4], [(4, 4)]), ([1, 2, 3, 7, 9, 10], [(1, 3), (7, 7), (9, 10)])]
)
def test_ranges(seqs, expected):
    assert ranges(seqs) == expected


def test_a_summary_that_reaches_into_the_window_is_not_shown():
    assert covering_summaries([summary(1, 10), summary(1, 11, 2)], 11) == [summary(1, 10)]


@pytest.mark.parametrize("recent", [0, 4, 40, 400])
@pytest.mark.parametrize("covered", [0, 10, 90, 400, 1170])
def test_what_no_window_can_show_is_left_out_and_nothing_else(covered, recent):
    everything = tree(covered)
    starts = window_starts(everything, recent)
    kept = outermost(everything, starts[0])

    assert window_starts(kept, recent) == starts
    for start in starts:
        assert covering_summaries(kept, start) == covering_summaries(everything, start)
    shown = {one.id for start in starts for one in covering_summaries(everything, start)}
    assert {one.id for one in kept if one.end_seq < starts[0]} <= shown


def test_a_part_that_reaches_beyond_the_higher_summary_is_kept():
    overlapping = [summary(1, 10), summary(1, 30, 2), summary(21, 40), summary(41, 50)]

    assert outermost(overlapping, 51) == [summary(1, 30, 2), summary(21, 40), summary(41, 50)]


def test_rolling_summaries_of_other_strategies_are_no_part_of_the_story():
    assert covering_summaries([summary(1, 30, 0), summary(1, 10)], 31) == [summary(1, 10)]
