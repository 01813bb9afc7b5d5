"""
Fair turns among the due jobs of many users, so that one user's import does not delay the others.

Every second claim takes the job that is overdue longest, so none waits for ever.  The others go round robin: the org
that was served least recently, its user who was, and of that user's jobs the longest overdue.  The candidates are the
oldest and the newest due jobs, since a hundred thousand jobs of one import may lie between them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable

from .port import Row

LOOK_AHEAD = 32  # due jobs read in one claim; other workers may be faster at the first ones
_REMEMBERED = 10_000


class FairOrder:
    """When this process last served each org and user; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tick = 0
        self._served: OrderedDict[tuple[str, ...], int] = OrderedDict()

    def next_is_round_robin(self) -> bool:
        """Whether the next claim goes round robin; every second one does."""
        with self._lock:
            self._tick += 1
            return self._tick % 2 == 0

    def sorted(self, due: Iterable[Row]) -> list[Row]:
        """Sort due jobs (org, user, … , due at, created at) by whose turn it is."""
        with self._lock:
            last = dict(self._served)
        return sorted(due, key=lambda row: (last.get((row[0],), 0), last.get((row[0], row[1]), 0), row[-2], row[-1]))

    def note_served(self, org: str, user: str) -> None:
        """Note that a job of this user was claimed."""
        with self._lock:
            for key in ((org,), (org, user)):
                self._served[key] = self._tick
                self._served.move_to_end(key)
            while len(self._served) > _REMEMBERED:
                self._served.popitem(last=False)
