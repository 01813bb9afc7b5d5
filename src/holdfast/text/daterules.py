"""
The calendar behind `holdfast.text.dates`: one small rule for each way of naming a time.

A rule gets what the words held and gives a range of local time, end excluded, or None when the
words name nothing.  A date outside the calendar (31 February, the year 12000) raises ``ValueError`` or
``OverflowError``, which the caller takes for None.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

Grain = Literal["minute", "hour", "day", "week", "weekend", "month", "season", "year"]
Relation = Literal["at", "since", "until", "for"]

_SEASON_START = (3, 6, 9, 12)


@dataclass(frozen=True, slots=True)
class Found:
    """What a rule made of its words, as local times."""

    start: datetime
    end: datetime
    grain: Grain
    relation: Relation = "at"


@dataclass(frozen=True, slots=True)
class Parts:
    """What the holes of a phrase held."""

    at: datetime
    past: bool | None  # the tense of the sentence: True past, False future, None silent
    n: float = 1
    unit: str = ""
    weekday: int = 0
    month: int = 0
    season: int = 0
    year: int = 0
    day: int = 0
    clock: str = ""


def midnight(at: datetime) -> datetime:
    return at.replace(hour=0, minute=0, second=0, microsecond=0)


def date_of(at: datetime, year: int, month: int, day: int) -> datetime | None:
    try:
        return midnight(at).replace(year=year, month=month, day=day)
    except ValueError:
        return None


def _monday(at: datetime) -> datetime:
    return midnight(at) - timedelta(days=at.weekday())


def month_of(at: datetime, distance: int) -> datetime:
    """The first of the month *distance* months away."""
    count = at.year * 12 + at.month - 1 + distance
    return midnight(at).replace(year=count // 12, month=count % 12 + 1, day=1)


def _year(at: datetime, year: int) -> datetime:
    return midnight(at).replace(year=year, month=1, day=1)


def _calendar(at: datetime, unit: str, distance: int) -> Found | None:
    """The whole day, week, weekend, month or year *distance* of them away."""
    if unit == "day":
        start = midnight(at) + timedelta(days=distance)
        return Found(start, start + timedelta(days=1), "day")
    if unit == "week":
        start = _monday(at) + timedelta(weeks=distance)
        return Found(start, start + timedelta(weeks=1), "week")
    if unit == "weekend":
        start = _monday(at) + timedelta(weeks=distance, days=5)
        return Found(start, start + timedelta(days=2), "weekend")
    if unit == "month":
        return Found(month_of(at, distance), month_of(at, distance + 1), "month")
    if unit == "year":
        return Found(_year(at, at.year + distance), _year(at, at.year + distance + 1), "year")
    return None


def _shifted(at: datetime, unit: str, count: float) -> datetime:
    """*at* moved by *count* units, backwards when negative."""
    if unit in ("minute", "hour"):
        return at + timedelta(**{f"{unit}s": count})
    if unit in ("day", "week", "weekend"):
        return at + timedelta(days=count * (1 if unit == "day" else 7))
    months = round(count * (12 if unit == "year" else 1))
    first = month_of(at, months)
    last_day = (month_of(first, 1) - timedelta(days=1)).day
    return at.replace(year=first.year, month=first.month, day=min(at.day, last_day))


def _away(parts: Parts, sign: int) -> Found | None:
    """``two weeks ago``: the unit of that distance, and for weeks the seven days around it."""
    moment = _shifted(parts.at, parts.unit, sign * parts.n)
    if parts.unit == "minute":
        return Found(moment, moment + timedelta(minutes=1), "minute")
    if parts.unit == "hour":
        return Found(moment, moment + timedelta(hours=1), "hour")
    if parts.unit == "day" or parts.n < 1:
        return _calendar(moment, "day", 0)
    if parts.unit == "week":
        start = midnight(moment) - timedelta(days=3)
        return Found(start, start + timedelta(weeks=1), "week")
    return _calendar(moment, parts.unit, 0)


def _lasting(parts: Parts) -> Found:
    return Found(_shifted(parts.at, parts.unit, -parts.n), parts.at, _grain(parts.unit), "for")


def _past_n(parts: Parts) -> Found:
    return replace(_lasting(parts), relation="at")


def _grain(unit: str) -> Grain:
    return unit  # type: ignore[return-value]


def _weekday(parts: Parts, way: int) -> Found | None:
    """The last (-1) or next (+1) such day, never today; 0 takes the tense of the sentence."""
    way = way or (-1 if parts.past else 1)
    distance = (parts.weekday - parts.at.weekday()) % 7
    if way < 0:
        distance = distance - 7
    return _calendar(parts.at, "day", distance or 7)


def _next_weekday(parts: Parts) -> Found | None:
    """``next Tuesday`` is never tomorrow: that one has a name."""
    distance = (parts.weekday - parts.at.weekday()) % 7 or 7
    return _calendar(parts.at, "day", distance + 7 if distance == 1 else distance)


def _season(parts: Parts, way: int) -> Found:
    year = parts.year or parts.at.year
    start = _season_start(parts, year)
    end = month_of(start, 3)
    if not parts.year:
        if way < 0 and end > parts.at:
            start = _season_start(parts, year - 1)
        elif way > 0 and start <= parts.at:
            start = _season_start(parts, year + 1)
    return Found(start, month_of(start, 3), "season")


def _season_start(parts: Parts, year: int) -> datetime:
    return midnight(parts.at).replace(year=year, month=_SEASON_START[parts.season], day=1)


def _day(parts: Parts) -> Found | None:
    if parts.year:
        start = date_of(parts.at, parts.year, parts.month, parts.day)
    else:
        start = _nearest(
            parts, [date_of(parts.at, parts.at.year + shift, parts.month, parts.day) for shift in (-1, 0, 1)]
        )
    return Found(start, start + timedelta(days=1), "day") if start else None


def _nearest(parts: Parts, choices: list[datetime | None]) -> datetime | None:
    """By tense: the last of *choices* before now or the first from today on; without tense the closest."""
    known = [choice for choice in choices if choice]
    if not known:
        return None
    today = midnight(parts.at)
    if parts.past:
        return max((choice for choice in known if choice <= today), default=known[0])
    if parts.past is False:
        return min((choice for choice in known if choice >= today), default=known[-1])
    return min(known, key=lambda choice: (abs((choice - today).days), choice < today))


def _day_only(parts: Parts) -> Found | None:
    choices: list[datetime | None] = []
    for distance in (-1, 0, 1):
        first = month_of(parts.at, distance)
        choices.append(date_of(first, first.year, first.month, parts.day))
    start = _nearest(parts, choices)
    return Found(start, start + timedelta(days=1), "day") if start else None


def _month_named(parts: Parts) -> Found:
    if parts.year:
        start = midnight(parts.at).replace(year=parts.year, month=parts.month, day=1)
    else:
        distance = (parts.month - parts.at.month) % 12
        start = month_of(parts.at, distance - 12 if parts.past and distance else distance)
    return Found(start, month_of(start, 1), "month")


def _year_named(parts: Parts) -> Found:
    return Found(_year(parts.at, parts.year), _year(parts.at, parts.year + 1), "year")


def _clock(parts: Parts) -> Found | None:
    found = re.match(r"(\d{1,2}) ?(?:[:.h] ?(\d{2}))?\s*([ap])?", parts.clock, re.IGNORECASE)
    if parts.clock.lower() in _NAMED_HOURS:
        hour, minute, half = _NAMED_HOURS[parts.clock.lower()], 0, None
    elif found:
        hour, minute, half = int(found[1]), int(found[2] or 0), found[3]
    else:
        return None
    if half and hour <= 12:
        hour = hour % 12 + (12 if half.lower() == "p" else 0)
    if hour > 23 or minute > 59:
        return None
    start = midnight(parts.at).replace(hour=hour, minute=minute)
    exact = found is not None and found[2] is not None
    return Found(start, start + (timedelta(minutes=1) if exact else timedelta(hours=1)), "minute" if exact else "hour")


def _last_night(parts: Parts) -> Found:
    start = midnight(parts.at) - timedelta(hours=6)
    return Found(start, start + timedelta(hours=12), "day")


_NAMED_HOURS = {"noon": 12, "midday": 12, "midnight": 0}

RULES: dict[str, Callable[[Parts], Found | None]] = {
    "day": _day,
    "ago": lambda parts: _away(parts, -1),
    "ahead": lambda parts: _away(parts, 1),
    "for": _lasting,
    "past_n": _past_n,
    "season": lambda parts: _season(parts, 0),
    "last_season": lambda parts: _season(parts, -1),
    "this_season": lambda parts: _season(parts, 0),
    "next_season": lambda parts: _season(parts, 1),
    "last_night": _last_night,
    "days": lambda parts: _calendar(parts.at, "day", parts.day),
    "last_weekday": lambda parts: _weekday(parts, -1),
    "next_weekday": _next_weekday,
    "last": lambda parts: _calendar(parts.at, parts.unit, -1),
    "this": lambda parts: _calendar(parts.at, parts.unit, 0),
    "next": lambda parts: _calendar(parts.at, parts.unit, 1),
    "month_year": _month_named,
    "month": _month_named,
    "day_only": _day_only,
    "year": _year_named,
    "weekday": lambda parts: _weekday(parts, 0),
    "clock": _clock,
}
