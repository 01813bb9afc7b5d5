"""
When a stated fact holds: the times named beside it, resolved against the message's own time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from ..clock import from_ms
from ..text.dates import TimeSpan, find_times

_REACH_CHARS = 60  # a time further from the statement belongs to something else


@dataclass(frozen=True, slots=True)
class Held:
    """From when to when (milliseconds UTC, None: not said), where its words end, and the words with the date."""

    from_ms: int | None = None
    to_ms: int | None = None
    end: int = 0
    words: str = ""


def when(
    times: Sequence[TimeSpan],
    text: str,
    start: int,
    end: int,
    *,
    mode: str,
    at: datetime,
    gap: re.Pattern[str] | None = None,
) -> Held:
    """
    What the times of a sentence say of the statement at characters *start* to *end*.

    Args:
        times: all times that the sentence names.
        text: the sentence.
        start: where the statement begins.
        end: where it ends; a time may follow within 60 characters of the same clause.
        mode: ``""`` (only "since", "for" and "until" bound it), ``"change"`` (it began at the time named:
            "we moved last week"), ``"event"`` (it happens at the time named and is over after it) or
            ``"plan"`` (it begins at a time to come, and nobody says when it ends).
        at: when the message was written; its zone is used to show dates.
        gap: what may stand between an event and its time, as a whole.
    """
    held = Held(end=end)
    for span in times:
        between = text[end : max(end, span.start)]
        fits = mode == "event" and gap is not None and gap.fullmatch(between) is not None
        if span.start < start or len(between) > _REACH_CHARS or not (fits or _one_clause(between)):
            continue
        last = max(end, span.end)
        if mode == "event" and span.relation in ("at", "until"):
            if fits or gap is None:
                return Held(span.from_ms if span.relation == "at" else None, span.to_ms, last, _dated(span, at))
            continue
        if mode == "plan" and span.to_ms > _ms(at):
            return Held(None, None, last, _dated(span, at))
        if span.relation in ("since", "for") or (
            mode == "change" and span.relation == "at" and span.from_ms <= _ms(at)
        ):
            return Held(span.from_ms, None, last, _dated(span, at))
        if span.relation == "until" and not mode:
            held = Held(None, span.to_ms, last, _dated(span, at))
    return held


@lru_cache(maxsize=32)  # the facts of one sentence share its times
def times_of(text: str, at: datetime | None, language: str, *, ahead: bool = False) -> tuple[TimeSpan, ...]:
    """The times of a sentence; none when nobody knows when it was said."""
    if at is None or at.tzinfo is None:
        return ()
    return tuple(find_times(text, at, language, ahead=ahead))


def _one_clause(between: str) -> bool:
    """Whether no other clause begins between the statement and the time."""
    return not any(mark in between for mark in ",;:.!?()")


def _ms(at: datetime) -> float:
    return at.timestamp() * 1000


def _dated(span: TimeSpan, at: datetime) -> str:
    """The words as they stand and the date they mean: ``next Tuesday (2024-05-21)``."""
    zone = at.tzinfo
    first, last = from_ms(span.from_ms).astimezone(zone), from_ms(span.to_ms - 1).astimezone(zone)
    if span.relation == "for":
        return span.words
    if span.grain == "year":
        date = f"{first:%Y}"
    elif span.grain == "month":
        date = f"{first:%Y-%m}"
    elif span.grain in ("minute", "hour"):
        date = f"{first:%Y-%m-%d %H:%M}"
    else:
        date = f"{first:%Y-%m-%d}" if first.date() == last.date() else f"{first:%Y-%m-%d} to {last:%Y-%m-%d}"
    return span.words if date in span.words else f"{span.words} ({date})"
