"""
Scores of rankings by the evidence of their questions.

One question gives one row of figures; rows are averaged by category, with confidence intervals from
resampled questions.  Figures that a question has no say in (no evidence, no value that changed) are
left out of its row.  Pure: ids in, numbers out.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .datasets import ChatLine, Question

DEPTHS = (1, 5, 10, 20, 50)
BUDGETS_TOKENS = (500, 1000, 2000, 4000)
OVERALL = "overall"
RESAMPLES = 1000

Row = dict[str, float]


@dataclass(frozen=True, slots=True)
class Mean:
    """An average over questions, with the bounds of its 95 % confidence interval."""

    value: float
    low: float
    high: float
    n: int


def ranking_row(question: Question, ranked: Sequence[str], lines: Mapping[str, ChatLine]) -> Row:
    """
    Score one question by turn.

    Args:
        question: with its evidence; a question without any gives an empty row.
        ranked: ids of lines, best first; repeated ones count once.
        lines: every line of the conversation by id.

    Returns:
        ``R@k`` (share of the evidence among the first k), ``hit@k`` (any of it), ``all@k`` (all of it),
        ``nDCG@10``, ``MRR``, ``B@b`` and ``Ball@b`` (share, and whether all of it, inside a context of b
        tokens filled from the top; 4 characters a token), ``latest@k`` where a value changed: whether
        the new one is among the first k and above the old.
    """
    ids = list(dict.fromkeys(ranked))
    costs = [math.ceil(len(lines[one].rendered) / 4) if one in lines else 0 for one in ids]
    row = _row(set(question.evidence), ids, costs)
    if row and question.latest:
        row |= _latest(question, ids)
    return row


def session_row(question: Question, ranked: Sequence[str], lines: Mapping[str, ChatLine]) -> Row:
    """Score one question by session: a session ranks where its first turn does."""
    ids = list(dict.fromkeys(lines[one].session for one in ranked if one in lines))
    lengths: dict[str, int] = defaultdict(int)
    for line in lines.values():
        lengths[line.session] += len(line.rendered)
    return _row(set(question.sessions), ids, [math.ceil(lengths[one] / 4) for one in ids])


def _row(wanted: set[str], ids: Sequence[str], costs: Sequence[int]) -> Row:
    if not wanted:
        return {}
    found = [one in wanted for one in ids]
    row: Row = {}
    for depth in DEPTHS:
        hits = sum(found[:depth])
        row[f"R@{depth}"] = hits / len(wanted)
        row[f"hit@{depth}"] = float(hits > 0)
        row[f"all@{depth}"] = float(hits == len(wanted))
    ideal = sum(1 / math.log2(place + 2) for place in range(min(10, len(wanted))))
    row["nDCG@10"] = sum(hit / math.log2(place + 2) for place, hit in enumerate(found[:10])) / ideal
    row["MRR"] = next((1 / (place + 1) for place, hit in enumerate(found) if hit), 0.0)
    for budget in BUDGETS_TOKENS:
        inside = _inside(found, costs, budget)
        row[f"B@{budget}"] = inside / len(wanted)
        row[f"Ball@{budget}"] = float(inside == len(wanted))
    return row


def _inside(found: Sequence[bool], costs: Sequence[int], budget: int) -> int:
    """Count the wanted lines that fit: the context ends at the first that does not."""
    spent = inside = 0
    for hit, cost in zip(found, costs, strict=True):
        spent += cost
        if spent > budget:
            break
        inside += hit
    return inside


def _latest(question: Question, ids: Sequence[str]) -> Row:
    place = {one: rank for rank, one in enumerate(ids)}
    never = len(ids) + 1
    best = min(place.get(one, never) for one in question.latest)
    old = min((place.get(one, never) for one in question.stale if one not in question.latest), default=never)
    return {f"latest@{depth}": float(best < depth and best < old) for depth in (5, 10)}


def averages(
    rows: Iterable[tuple[str, Row]], apart: Sequence[str] = (), *, seed: int = 0
) -> dict[str, dict[str, Mean]]:
    """
    Return means by category and overall, each with its interval.

    Args:
        rows: ``(category, figures)`` of each question; those without figures are not counted.
        apart: categories that the overall figure leaves out.
        seed: of the resampling; the same one gives the same intervals.
    """
    groups: dict[str, list[Row]] = {OVERALL: []}
    for category, row in rows:
        if row:
            groups.setdefault(category, []).append(row)
            if category not in apart:
                groups[OVERALL].append(row)
    names = [OVERALL, *sorted(name for name in groups if name != OVERALL)]
    return {name: _means(groups[name], seed) for name in names if groups[name]}


def _means(rows: Sequence[Row], seed: int) -> dict[str, Mean]:
    out = {}
    for figure in dict.fromkeys(name for row in rows for name in row):
        values = np.array([row[figure] for row in rows if figure in row])
        picks = np.random.default_rng(seed).integers(0, len(values), (RESAMPLES, len(values)))
        low, high = np.percentile(values[picks].mean(axis=1), (2.5, 97.5))
        out[figure] = Mean(float(values.mean()), float(low), float(high), len(values))
    return out


THRESHOLDS = (0.1, 0.2, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True, slots=True)
class Relevances:
    """
    How relevant the hits of one question were.

    ``evidence`` are those of the lines that answer it, among the first ten, ``best`` is that of its best hit. ``foreign`` and
    ``swapped`` are those of the best hit when another user's memory is asked, and when it is asked with that user's names.
    """

    best: float
    evidence: tuple[float, ...] = ()
    foreign: float | None = None
    swapped: float | None = None


def silence_curve(asked: Sequence[Relevances], rest: float) -> list[Row]:
    """
    Return for each least relevance what is kept of true recall, and what is recalled falsely.

    Args:
        asked: one for each question with evidence.
        rest: of the relevance that the best hit must have, what the others must have.

    Returns:
        Rows of ``at``, ``evidence`` (the share kept of the evidence among the first ten), ``foreign`` and ``swapped`` (the
        share of questions that recall anything of another user; left out when nothing was asked).
    """
    rows = []
    for at in THRESHOLDS:
        kept = [[value >= at * rest and one.best >= at for value in one.evidence] for one in asked]
        row = {"at": at, "evidence": _share([value for values in kept for value in values])}
        for name in ("foreign", "swapped"):
            found = [value for one in asked if (value := getattr(one, name)) is not None]
            row |= {name: _share([value >= at for value in found])} if found else {}
        rows.append(row)
    return rows


def _share(found: Sequence[bool]) -> float:
    return sum(found) / len(found) if found else 0.0


def auroc(with_answer: Sequence[float], without: Sequence[float]) -> float | None:
    """
    Measure how well a score separates questions that memory can answer from those that it cannot.

    Returns:
        The chance that one with an answer scores above one without (ties count half); .5 is no
        better than a coin.  None when either kind is missing.
    """
    if not with_answer or not without:
        return None
    above = sum((a > b) + (a == b) / 2 for a in with_answer for b in without)
    return above / (len(with_answer) * len(without))
