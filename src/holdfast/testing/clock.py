"""A clock for tests that moves only by command."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta


class FakeClock:
    """
    Call it for the time, as an aware ``datetime``; ``advance`` moves it, backwards too.

    It does not move otherwise, so a test decides when things happen.
    """

    def __init__(self, start: datetime = datetime(2026, 1, 5, 9, tzinfo=UTC)) -> None:
        if start.tzinfo is None:
            raise ValueError("a clock needs a start with a time zone")
        self._now = start
        self._lock = threading.Lock()

    def __call__(self) -> datetime:
        with self._lock:
            return self._now

    def advance(self, *, seconds: float = 0, minutes: float = 0, hours: float = 0, days: float = 0) -> datetime:
        """Move by the sum of the arguments, and return the new time."""
        with self._lock:
            self._now += timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
            return self._now
