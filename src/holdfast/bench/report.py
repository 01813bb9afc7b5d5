"""The report of a question benchmark: figures by system and category, as data and as a table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from .asking import OURS, Asked
from .questions import Benchmark
from .scores import OVERALL, Mean, Row, auroc, averages, ranking_row, session_row

COLUMNS = {
    "turn": ("R@5", "R@10", "R@50", "hit@5", "all@10", "nDCG@10", "MRR", "B@1000", "B@4000", "latest@5"),
    "session": ("R@5", "R@10", "hit@1", "hit@5", "all@10", "nDCG@10", "MRR"),
}


def scored(
    benchmark: Benchmark, asked: Iterable[Asked], wrong: Mapping[str, str] | None = None, *, seed: int = 0
) -> dict[str, Any]:
    """
    The report as data.

    Args:
        benchmark: what was asked.
        asked: from `Asking.ask`.
        wrong: questions whose key is known to be wrong, and why; they count, and are listed.
        seed: of the resampling for intervals.

    Returns:
        ``{"benchmark", "data", "questions", "no_evidence", "systems": {name: {"turn": {category:
        {figure: {"value", "low", "high", "n"}}}, "session": …}}, "abstention_auroc", "search_ms",
        "known_wrong"}``.
    """
    rows: dict[str, dict[str, list[tuple[str, Row]]]] = {}
    answerable, unanswerable, took = list[float](), list[float](), list[float]()
    ids: set[str] = set()
    without = 0
    lines_of = {sample.id: {line.id: line for line in sample.lines} for sample in benchmark.samples}
    for one in asked:
        question, lines = one.question, lines_of[one.sample.id]
        ids.add(question.id)
        without += not question.evidence
        if one.score is not None:
            (unanswerable if question.abstain or not question.evidence else answerable).append(one.score)
        took += [one.took_ms] if one.took_ms is not None else []
        for system, ranked in one.ranked.items():
            by_level = rows.setdefault(system, {"turn": [], "session": []})
            by_level["turn"].append((question.category, ranking_row(question, ranked, lines)))
            by_level["session"].append((question.category, session_row(question, ranked, lines)))
    told = auroc(answerable, unanswerable)
    return {
        "benchmark": benchmark.name,
        "data": benchmark.digest,
        "conversations": len(benchmark.samples),
        "messages": sum(len(sample.lines) for sample in benchmark.samples),
        "questions": len(ids),
        "no_evidence": without,
        "left_out_of_overall": list(benchmark.apart),
        "systems": {
            system: {level: _plain(averages(found, benchmark.apart, seed=seed)) for level, found in by_level.items()}
            for system, by_level in rows.items()
        },
        "abstention_auroc": told,
        "known_wrong": {one: why for one, why in (wrong or {}).items() if one in ids},
        "search_ms": {"median": median(took), "p95": _percentile(took, 0.95)} if took else None,
    }


def _percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, math.ceil(share * len(values)) - 1)]


def _plain(means: dict[str, dict[str, Mean]]) -> dict[str, Any]:
    return {
        category: {
            figure: {"value": mean.value, "low": mean.low, "high": mean.high, "n": mean.n}
            for figure, mean in row.items()
        }
        for category, row in means.items()
    }


def table(report: dict[str, Any], level: str) -> list[str]:
    """The figures of one level as lines of text: ours by category, the peers' overall."""
    systems = report["systems"]
    columns = [name for name in COLUMNS[level] if any(name in row for row in systems[OURS][level].values())]
    rows = [(category, systems[OURS][level][category]) for category in systems[OURS][level] if category != OVERALL]
    lines = [f"{'by ' + level:26}{'n':>5}  " + "".join(f"{name:>9}" for name in columns)]
    lines += [_line(name, row, columns) for name, row in rows]
    overall = f"overall{', ' if report['left_out_of_overall'] else ''}" + ", ".join(
        f"without {name}" for name in report["left_out_of_overall"]
    )
    for system, levels in systems.items():
        row = levels[level].get(OVERALL)
        if row:
            lines.append(_line(system, row, columns))
            if system == OURS:
                lines.append(_interval(row, columns))
    return [*lines, f"(the last lines: {overall})"]


def _line(name: str, row: dict[str, Any], columns: Sequence[str]) -> str:
    n = max(figure["n"] for figure in row.values())
    return f"{name:26}{n:5}  " + "".join(f"{row[c]['value']:9.3f}" if c in row else f"{'-':>9}" for c in columns)


def _interval(row: dict[str, Any], columns: Sequence[str]) -> str:
    """Half the width of each interval."""
    cells = "".join(
        f"{'±' + format((row[c]['high'] - row[c]['low']) / 2, '.3f'):>9}" if c in row else f"{'-':>9}" for c in columns
    )
    return f"{'  95 % interval':31}  {cells}"
