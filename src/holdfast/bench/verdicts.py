"""The report of answered questions: figures by arm and category, with and without questions whose key is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import mean
from typing import Any

from .answering import ARMS, Answered
from .questions import Benchmark
from .scores import OVERALL, Mean, averages

SOUND = "sound keys"  # the overall figure without questions whose key is known to be wrong
BY_TYPE = "mean of types"  # LongMemEval's second figure: every type of question counts the same


def verdicts(
    benchmark: Benchmark, answered: Iterable[Answered], wrong: Mapping[str, str], *, seed: int = 0
) -> dict[str, Any]:
    """
    The report as data.

    Args:
        benchmark: what was asked; categories that stand apart are in no overall figure.
        answered: from `Answering.answers`.
        wrong: questions with a wrong key, from `wrong_gold`.
        seed: of the resampling for intervals.

    Returns:
        ``{"arms": {arm: {category: {figure: {"value", "low", "high", "n"}}}}, "shown_tokens": {arm: mean},
        "failed": {arm: {id: why}}, "cut_lines", "known_wrong": {id: why}}``.
    """
    every = list(answered)
    ids = {one.question.id for one in every}
    return {
        "arms": {arm: _arm(benchmark, every, arm, wrong, seed) for arm in ARMS},
        "shown_tokens": {arm: _shown(every, arm) for arm in ARMS},
        "failed": {arm: {one.question.id: one.failed[arm] for one in every if arm in one.failed} for arm in ARMS},
        "cut_lines": max((one.cut_lines for one in every), default=0),
        "known_wrong": {id: why for id, why in wrong.items() if id in ids},
        "answers": [
            {
                "question_id": one.question.id,
                "gold": one.question.answer,
                "answers": one.answers,
                "figures": one.figures,
            }
            for one in every
        ],
    }


def _shown(answered: Sequence[Answered], arm: str) -> float:
    return mean([one.shown_tokens[arm] for one in answered if arm in one.shown_tokens] or [0])


def _arm(
    benchmark: Benchmark, answered: Sequence[Answered], arm: str, wrong: Mapping[str, str], seed: int
) -> dict[str, Any]:
    rows = [(one.question.category, one.figures[arm]) for one in answered]
    apart = (*benchmark.apart, *(("abstention",) if benchmark.name == "longmemeval" else ()))
    found = averages(rows, apart, seed=seed)
    if benchmark.name == "longmemeval":  # abstention is in its overall figure, and in none of the types
        found[OVERALL] = averages(rows, seed=seed)[OVERALL]
        types = [row["correct"].value for name, row in found.items() if name not in (OVERALL, "abstention")]
        found |= {BY_TYPE: {"correct": Mean(mean(types), mean(types), mean(types), len(types))}} if types else {}
    sound = [one for one in answered if one.question.id not in wrong]
    if len(sound) < len(answered):
        kept = averages([(one.question.category, one.figures[arm]) for one in sound], apart, seed=seed)
        found |= {SOUND: kept[OVERALL]} if OVERALL in kept else {}
    return {
        category: {
            name: {"value": figure.value, "low": figure.low, "high": figure.high, "n": figure.n}
            for name, figure in row.items()
        }
        for category, row in found.items()
    }


def answer_table(report: Mapping[str, Any]) -> list[str]:
    """The figures of the report as lines of text: a block for each arm, its overall figures with their intervals."""
    lines = []
    for arm, rows in report["arms"].items():
        figures = list(dict.fromkeys(name for row in rows.values() for name in row))
        head = f"{arm}, {report['shown_tokens'][arm]:,.0f} tokens"
        lines.append(f"{head:30}{'n':>5}  " + "".join(f"{name:>18}" for name in figures))
        last = [name for name in (OVERALL, BY_TYPE, SOUND) if name in rows]
        for name in [*(name for name in rows if name not in last), *last]:
            row = rows[name]
            n = max(figure["n"] for figure in row.values())
            cells = (_cell(row[figure]) if figure in row else "-" for figure in figures)
            lines.append(f"{name:30}{n:5}  " + "".join(f"{cell:>18}" for cell in cells))
        lines.append("")
    return lines[:-1]


def _cell(figure: Mapping[str, float]) -> str:
    return f"{figure['value']:.3f} ±{(figure['high'] - figure['low']) / 2:.3f}"
