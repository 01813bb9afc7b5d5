"""Time as the store keeps it: integer milliseconds UTC, and ids that sort by it."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from .errors import BadInput

Clock = Callable[[], datetime]
DAY_MS = 86_400_000
MAX_AHEAD = timedelta(days=1)
"""How far ahead of the clock the time of a message may be: more is a mistake, and would outlast all that is said later."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def utc_now() -> datetime:
    """Return the current time: the default clock."""
    return datetime.now(UTC)


def to_ms(at: datetime) -> int:
    """
    Return the milliseconds since 1970 UTC.

    Raises:
        BadInput: *at* has no time zone, so it names no moment.
    """
    if at.tzinfo is None:
        raise BadInput("a time must have a time zone", hint="use datetime.now(timezone.utc), or .replace(tzinfo=…)")
    since = at - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


def from_ms(ms: int) -> datetime:
    """Return the time in UTC for milliseconds since 1970: the inverse of `to_ms`."""
    return _EPOCH + timedelta(0, ms // 1000, ms % 1000 * 1000)


def new_id(prefix: str, now_ms: int) -> str:
    """Return a short unique id, ``prefix_`` and 20 characters that sort by time: 50 bits of it, 50 random."""
    value = (max(0, now_ms) & ((1 << 50) - 1)) << 50 | int.from_bytes(os.urandom(8), "big") >> 14
    return prefix + "_" + "".join(_ALPHABET[value >> shift & 31] for shift in range(95, -1, -5))
