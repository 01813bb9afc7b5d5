"""Which documents were said on the days that a question names.  Pure."""

from __future__ import annotations

import numpy as np

from ..clock import DAY_MS
from .index import Floats, Ints
from .query import When


def days_match(when: When, at_ms: Ints, year: Ints) -> Floats:
    """
    1 for what was said from two days before to ten days after the days that a question names, .4
    for ten days before to five weeks after, shape (n,).

    A month without a year means the one of the document's year, or of the year before.
    """
    if when.span_ms is not None:
        return _within(at_ms, *when.span_ms)
    if when.month is None:
        return np.where(year == when.year, 1.0, 0.0)
    best = np.zeros(len(at_ms))
    years = {when.year} if when.year is not None else {*map(int, np.unique(year)), *map(int, np.unique(year - 1))}
    for candidate in years:
        if candidate is None:
            continue
        month = np.datetime64(f"{candidate:04d}-{when.month:02d}-{min(when.day or 1, 28):02d}")
        start = int(month.astype("datetime64[ms]").astype(np.int64))
        found = _within(at_ms, start, start + (1 if when.day else 31) * DAY_MS)
        if when.year is None:
            found = found * ((year == candidate) | (year == candidate + 1))
        best = np.maximum(best, found)
    return best


def _within(at_ms: Ints, start: int, end: int) -> Floats:
    near = (start - 10 * DAY_MS <= at_ms) & (at_ms <= end + 35 * DAY_MS)
    inside = (start - 2 * DAY_MS <= at_ms) & (at_ms <= end + 10 * DAY_MS)
    score: Floats = np.where(inside, 1.0, np.where(near, 0.4, 0.0))
    return score
