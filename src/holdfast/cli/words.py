"""Numbers, times and facts as users read them.  Times are UTC."""

from __future__ import annotations

from datetime import UTC, datetime

from ..types import Fact
from .plain import one_line

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def day(at: datetime | None) -> str:
    """``14 Mar 2026``."""
    if at is None:
        return "?"
    at = at.astimezone(UTC)
    return f"{at.day} {_MONTHS[at.month - 1]} {at.year}"


def minute(at: datetime | None) -> str:
    """``14 Mar 2026, 19:02 UTC``."""
    return "?" if at is None else f"{day(at)}, {at.astimezone(UTC):%H:%M} UTC"


def days(first: datetime | None, last: datetime | None) -> str:
    """``14 Mar 2026``, or ``14 Mar – 2 Apr 2026`` for a longer time."""
    if first is None or last is None or day(first) == day(last):
        return day(first or last)
    start = day(first)
    return f"{start[:-5] if first.year == last.year else start} – {day(last)}"


def held(fact: Fact) -> str:
    """When it was believed: ``14 Mar 2026 → now``, with the time of day where both ends are the same day."""
    if fact.valid_to is None:
        return f"{day(fact.valid_from)} → now"
    if day(fact.valid_from) == day(fact.valid_to):
        return f"{minute(fact.valid_from)[:-4]} → {fact.valid_to.astimezone(UTC):%H:%M} UTC"
    return f"{day(fact.valid_from)} → {day(fact.valid_to)}"


def count(number: int, noun: str, plural: str = "") -> str:
    """``1 fact``, ``1,204 facts``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def seconds(duration_s: float) -> str:
    """``0.4 s``, ``12 s``, ``1 m 40 s``."""
    if duration_s < 10:
        return f"{duration_s:.1f} s"
    minutes, rest = divmod(round(duration_s), 60)
    return f"{minutes} m {rest:02d} s" if minutes else f"{rest} s"


def size(count_bytes: int) -> str:
    """``812 B``, ``24 kB``, ``1.3 MB``."""
    if count_bytes < 1000:
        return f"{count_bytes} B"
    for unit, factor in (("kB", 1e3), ("MB", 1e6), ("GB", 1e9)):
        if count_bytes < factor * 1000 or unit == "GB":
            number = count_bytes / factor
            break
    return f"{number:.1f} {unit}" if number < 10 else f"{number:,.0f} {unit}"


def address(fact: Fact) -> str:
    """Where a fact is kept, as ``holdfast history`` takes it: ``location lives_in``."""
    if fact.kind != "attribute":
        return fact.kind
    return f"{fact.category} {fact.key}" if fact.key and fact.cardinality != "exclusive" else fact.category


def value(fact: Fact) -> str:
    """What it says: the value, the key of a yes-or-no value, or the whole sentence."""
    if fact.kind != "attribute":
        return one_line(fact.text)
    if fact.value == "true":
        return one_line(fact.key.replace("_", " "))
    if fact.value == "false":
        return "not " + one_line(fact.key.replace("_", " "))
    return one_line(fact.value)


def label(fact: Fact) -> str:
    """What the value is of: ``dietary``, ``location, lives in``; the subject before it unless it is the user."""
    words = fact.category.replace("_", " ")
    if (
        fact.kind == "attribute"
        and fact.key
        and fact.cardinality != "exclusive"
        and fact.value not in ("true", "false")
    ):
        words += ", " + fact.key.replace("_", " ")
    if fact.kind != "attribute":
        words = fact.kind
    return one_line(words if fact.subject == "self" else f"{fact.subject}: {words}")
