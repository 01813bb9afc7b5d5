"""Why a candidate would be recalled or not.  Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ..figures import Ranked
from ..types import Hit

TIME = frozenset(("day", "newest", "opens", "time"))


def ranked(hits: Sequence[Hit], threshold: float, limit: int) -> tuple[Ranked, ...]:
    """The hits of a search, best first, each with the groups of its parts, and whether a context would recall it."""
    told, kept = [], 0
    for rank, hit in enumerate(hits, 1):
        reason = _reason(hit, threshold, kept, limit)
        kept += not reason
        words, meaning = hit.parts.get("words", 0.0), hit.parts.get("meaning", 0.0)
        time = sum(value for name, value in hit.parts.items() if name in TIME)
        told.append(Ranked(rank, hit, words, meaning, time, hit.score - words - meaning - time, not reason, reason))
    return tuple(told)


def _reason(hit: Hit, threshold: float, kept: int, limit: int) -> str:
    if hit.score < threshold:
        return f"below {threshold:g}"
    if hit.kind == "summary":
        return "contexts hold summaries by themselves"
    return f"{limit:,} others are better" if kept >= limit else ""
