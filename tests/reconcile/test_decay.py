"""Strength from recency and use, as tables and properties."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.clock import DAY_MS, to_ms
from holdfast.reconcile.archive import archive_order, faded, now_strength, over_cap, record_uses, strength_at
from holdfast.store import FactRow, UseRow
from holdfast.types import Fact

MONTH_MS = 30 * DAY_MS
NOW = datetime(2026, 6, 1, tzinfo=UTC)
NOW_MS = to_ms(NOW)


def row(name: str, *, days_ago: float = 0, kind: str = "statement", **changes: object) -> FactRow:
    said = NOW - timedelta(days=days_ago)
    fact = Fact(
        id=name, kind=kind, subject="self", category="note", key="", value="", text=name, confidence=1.0,
        cardinality="multi", lifetime="state", valid_from=said, valid_to=None, recorded_at=said, superseded_by=None,
        evidence=(), strength=1.0, last_used_at=None, uses=0, source="rules 1",
    )  # fmt: skip
    return FactRow(replace(fact, **changes), "", name, True, to_ms(said), 1, 1)


@pytest.mark.parametrize(
    ("days", "left"), [(0, 1.0), (30, 0.5), (60, 0.25), (300, 1 / 1024), (-5, 1.0)], ids=lambda value: str(value)
)
def test_a_strength_halves_with_every_half_life(days: float, left: float) -> None:
    assert strength_at(1.0, NOW_MS - round(days * DAY_MS), NOW_MS, MONTH_MS) == pytest.approx(left)


def test_a_use_adds_one_to_what_is_left() -> None:
    before = UseRow("self", "a", 1.0, NOW_MS - MONTH_MS, None, 0)
    after = record_uses(before, 2, NOW_MS, MONTH_MS)

    assert after == UseRow("self", "a", 2.5, NOW_MS - MONTH_MS, NOW_MS, 2)


def test_an_older_use_that_arrives_late_moves_no_time_back() -> None:
    before = UseRow("self", "a", 3.0, NOW_MS - MONTH_MS, NOW_MS, 5)

    assert record_uses(before, 1, NOW_MS - DAY_MS, MONTH_MS) == UseRow("self", "a", 4.0, NOW_MS - MONTH_MS, NOW_MS, 6)


@given(st.integers(0, 50), st.integers(1, 2_000), st.floats(1, 365))
def test_more_and_later_uses_never_make_a_fact_weaker(times: int, days: int, half_life: float) -> None:
    old = UseRow("self", "a", 1.0, NOW_MS - days * DAY_MS, None, 0)
    half_life_ms = half_life * DAY_MS
    unused = strength_at(old.strength, old.stated_at, NOW_MS, half_life_ms)
    after = record_uses(old, times, NOW_MS, half_life_ms)

    assert after.strength >= unused + times - 1e-9
    assert after.uses == times


def test_the_weakest_go_first_and_what_says_who_somebody_is_goes_last() -> None:
    rows = {
        "by hand": row("h", days_ago=900, source="by hand"),
        "identity": row("i", days_ago=900, kind="attribute", category="identity", cardinality="single"),
        "home": row("l", days_ago=901, kind="attribute", category="home", cardinality="single"),
        "liking": row("k", days_ago=10, kind="attribute", category="preference"),
        "used sentence": row("u", days_ago=90, strength=4.0, last_used_at=NOW, uses=4),
        "new sentence": row("n", days_ago=1),
        "old sentence": row("o", days_ago=90),
        "run out": replace(row("r"), expires_at=NOW_MS - 1),
    }
    ordered = sorted(rows, key=lambda name: archive_order(rows[name], NOW_MS, MONTH_MS))

    assert ordered == [
        "run out", "old sentence", "new sentence", "used sentence", "liking", "home", "identity", "by hand",
    ]  # fmt: skip


@given(st.lists(st.tuples(st.floats(0, 400), st.floats(0.1, 50)), max_size=30), st.integers(1, 40))
def test_what_stays_is_no_more_than_the_cap_and_never_weaker_than_what_goes(
    facts: list[tuple[float, float]], cap: int
) -> None:
    rows = [row(f"f{n:02}", days_ago=days, strength=strength) for n, (days, strength) in enumerate(facts)]
    gone = {one.fact.id for one in over_cap(rows, cap, NOW_MS, MONTH_MS)}
    stays = [one for one in rows if one.fact.id not in gone]

    assert len(stays) == min(cap, len(rows))
    weakest = min((now_strength(one, NOW_MS, MONTH_MS) for one in stays), default=0)
    assert all(now_strength(one, NOW_MS, MONTH_MS) <= weakest for one in rows if one.fact.id in gone)


def test_only_sentences_fade_by_time_alone() -> None:
    rows = [
        row("old", days_ago=130),
        row("younger", days_ago=110),
        row("used", days_ago=900, last_used_at=NOW - timedelta(days=3)),
        row("attribute", days_ago=900, kind="attribute"),
        row("told", days_ago=900, source="by hand"),
    ]

    assert [one.fact.id for one in faded(rows, NOW_MS, MONTH_MS)] == ["old"]
