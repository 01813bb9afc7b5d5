"""Every figure against cases that were counted by hand."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bench.datasets import ChatLine, Question
from holdfast.bench.retrieval import (
    OVERALL,
    Relevances,
    auroc,
    averages,
    ranking_row,
    session_row,
    silence_curve,
)

AT = datetime(2024, 1, 1, tzinfo=UTC)
# Rendered, each is "[2024-01-01] U: " (16) + 387 + "\n" = 404 characters, 101 tokens.
LINES = {f"a/{n}": ChatLine(f"a/{n}", f"a/s{n // 5}", "U", "user", "x" * 387, AT) for n in range(20)}


def question(*evidence, category="A", latest=(), stale=()):
    sessions = tuple(sorted({LINES[one].session for one in evidence}))
    return Question("q", category, "?", "", evidence, sessions, AT, latest=latest, stale=stale)


RANKED = ["a/1", "a/0", "a/2", "a/4", "a/5", "a/7"]


def test_share_any_and_all_of_the_evidence_among_the_first():
    """a/0 stands second, a/7 sixth."""
    row = ranking_row(question("a/0", "a/7"), RANKED, LINES)

    assert [row[f"R@{k}"] for k in (1, 5, 10, 20, 50)] == [0, 0.5, 1, 1, 1]
    assert [row[f"hit@{k}"] for k in (1, 5, 10)] == [0, 1, 1]
    assert [row[f"all@{k}"] for k in (1, 5, 10)] == [0, 0, 1]


def test_gain_is_discounted_by_rank_and_set_against_the_ideal():
    row = ranking_row(question("a/0", "a/7"), RANKED, LINES)

    assert row["nDCG@10"] == pytest.approx((1 / math.log2(3) + 1 / math.log2(7)) / (1 + 1 / math.log2(3)))
    assert row["MRR"] == 0.5


def test_ideal_has_at_most_ten_places():
    many = [f"a/{n}" for n in range(12)]

    assert ranking_row(question(*many), many, LINES)["nDCG@10"] == 1.0


def test_evidence_counts_while_the_context_has_room():
    """101 tokens a line: four fit in 500, nine in 1,000."""
    ranked = [f"a/{n}" for n in range(20)]
    row = ranking_row(question("a/3", "a/4", "a/8", "a/19"), ranked, LINES)

    assert [row[f"B@{b}"] for b in (500, 1000, 2000, 4000)] == [0.25, 0.75, 0.75, 1.0]
    assert [row[f"Ball@{b}"] for b in (2000, 4000)] == [0.0, 1.0]


def test_what_is_found_twice_counts_once():
    assert ranking_row(question("a/0", "a/1"), ["a/0", "a/0", "a/0"], LINES)["R@5"] == 0.5


def test_question_that_was_not_answered_scores_nothing():
    row = ranking_row(question("a/0"), [], LINES)

    assert row["R@50"] == row["MRR"] == row["nDCG@10"] == row["B@4000"] == 0.0


def test_question_without_evidence_has_no_figures():
    assert ranking_row(question(), RANKED, LINES) == {}
    assert session_row(question(), RANKED, LINES) == {}


def test_session_stands_where_its_first_turn_does():
    """Sessions in order: s0 (a/1), s1 (a/5); a/7 is in s1."""
    row = session_row(question("a/7"), RANKED, LINES)

    assert (row["R@1"], row["R@5"], row["MRR"]) == (0.0, 1.0, 0.5)


def test_context_of_sessions_holds_whole_sessions():
    """Five lines of 101 tokens, 505 together: none fits in 500, one in 1,000."""
    row = session_row(question("a/1", "a/5"), RANKED, LINES)

    assert [row[f"B@{b}"] for b in (500, 1000, 2000)] == [0.0, 0.5, 1.0]


@pytest.mark.parametrize(
    ("ranked", "at_5", "at_10"),
    [
        (["a/9", "a/2"], 1, 1),  # the new one first
        (["a/2", "a/9"], 0, 0),  # the old one first
        (["a/9"], 1, 1),  # the old one not at all
        (["a/2"], 0, 0),
        ([*(f"a/{n}" for n in (10, 11, 12, 13, 14)), "a/9", "a/2"], 0, 1),  # the new one sixth
    ],
)
def test_latest_value_has_to_stand_above_the_old_one(ranked, at_5, at_10):
    row = ranking_row(question("a/2", "a/9", latest=("a/9",), stale=("a/2",)), ranked, LINES)

    assert (row["latest@5"], row["latest@10"]) == (at_5, at_10)


def test_latest_is_only_counted_where_a_value_changed():
    assert "latest@5" not in ranking_row(question("a/2"), RANKED, LINES)


def test_averages_are_by_category_and_overall_without_what_stands_apart():
    rows = [("A", {"x": 1.0}), ("A", {"x": 0.0}), ("B", {"x": 1.0}), ("C", {"x": 0.0}), ("D", {})]
    found = averages(rows, apart=("C",))

    assert {name: row["x"].value for name, row in found.items()} == {OVERALL: 2 / 3, "A": 0.5, "B": 1.0, "C": 0.0}
    assert found[OVERALL]["x"].n == 3


def test_interval_holds_the_mean_and_is_the_same_for_the_same_seed():
    rows = [("A", {"x": float(n % 3 == 0)}) for n in range(90)]
    mean = averages(rows, seed=1)[OVERALL]["x"]

    assert mean.low < mean.value < mean.high
    assert mean == averages(rows, seed=1)[OVERALL]["x"]
    assert mean != averages(rows, seed=2)[OVERALL]["x"]
    # 1.96 standard errors of a third over 90 questions are .097
    assert mean.high - mean.low == pytest.approx(2 * 0.097, abs=0.03)


def test_interval_of_what_never_varies_is_a_point():
    mean = averages([("A", {"x": 1.0})] * 5)[OVERALL]["x"]

    assert (mean.low, mean.high) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("right", "wrong", "expected"),
    [([0.9, 0.8], [0.1], 1.0), ([0.1], [0.9], 0.0), ([0.5], [0.5], 0.5), ([0.9, 0.2], [0.5], 0.5), ([], [0.5], None)],
)
def test_auroc_is_the_chance_to_score_higher(right, wrong, expected):
    assert auroc(right, wrong) == expected


def told_again(gold, ranked, lines):
    """The figures as the benchmarks' papers define them, written down a second time and as plainly as can be."""
    ids = [one for place, one in enumerate(ranked) if one not in ranked[:place]]
    row = {}
    for k in (1, 5, 10, 20, 50):
        hits = len(set(ids[:k]) & set(gold))
        row |= {
            f"R@{k}": hits / len(gold),
            f"hit@{k}": 1.0 if hits else 0.0,
            f"all@{k}": 1.0 if hits == len(gold) else 0.0,
        }
    gains = [1 / math.log2(place + 2) for place in range(10)]
    row["nDCG@10"] = sum(gain for gain, one in zip(gains, ids, strict=False) if one in gold) / sum(gains[: len(gold)])
    places = [place for place, one in enumerate(ids, 1) if one in gold]
    row["MRR"] = 1 / places[0] if places else 0.0
    for budget in (500, 1000, 2000, 4000):
        inside, left = set(), budget
        for one in ids:
            left -= -(-len(lines[one].rendered) // 4)
            if left < 0:
                break
            inside.add(one)
        row |= {f"B@{budget}": len(inside & set(gold)) / len(gold), f"Ball@{budget}": float(set(gold) <= inside)}
    return row


@given(
    st.lists(st.integers(1, 6000), min_size=1, max_size=60),
    st.data(),
)
def test_figures_are_those_of_a_second_count(lengths, data):
    """Whatever is ranked and however long it is: equal to the third decimal, and beyond."""
    lines = {
        f"a/{n}": ChatLine(f"a/{n}", f"a/s{n // 7}", "Ana", "user", "x" * length, AT)
        for n, length in enumerate(lengths)
    }
    ids = sorted(lines)
    gold = data.draw(st.lists(st.sampled_from(ids), min_size=1, max_size=12, unique=True))
    ranked = data.draw(st.lists(st.sampled_from(ids), max_size=70))
    asked = Question("q", "A", "?", "", tuple(gold), (), AT)

    assert ranking_row(asked, ranked, lines) == pytest.approx(told_again(gold, ranked, lines), abs=5e-4)


def test_the_curve_counts_evidence_behind_the_gate_and_false_recall():
    told = [
        Relevances(0.9, (0.9, 0.3), foreign=0.05, swapped=0.6),
        Relevances(0.4, (0.4,), foreign=0.5, swapped=None),
    ]
    by_least = {row["at"]: row for row in silence_curve(told, 0.5)}

    assert by_least[0.1] == {"at": 0.1, "evidence": 1.0, "foreign": 0.5, "swapped": 1.0}
    assert by_least[0.5] == {"at": 0.5, "evidence": 2 / 3, "foreign": 0.5, "swapped": 1.0}
    assert by_least[0.7]["evidence"] == 1 / 3
    assert by_least[0.7]["foreign"] == by_least[0.7]["swapped"] == 0.0
    assert "foreign" not in silence_curve([Relevances(0.9, (0.9,))], 0.5)[0]
