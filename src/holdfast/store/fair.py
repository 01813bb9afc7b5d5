"""
Whose turn it is: work of many users done so that nobody's import keeps the others waiting.

Every second claim takes what is overdue longest, so nothing waits for ever.  The others go round: the org that was
served least recently, in it the user who was, and of theirs what is overdue longest.  Looked at are the oldest
and the newest of what is due, since between them may lie a hundred thousand jobs of one import.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

from ..scope import Scope
from . import rows
from .readview import Driver

LOOK_AHEAD = 32  # due jobs looked at in one claim; others may be faster at the first ones
_KEPT = 10_000


class Turns:
    """When this process last served each org and user; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tick = 0
        self._served: OrderedDict[tuple[str, ...], int] = OrderedDict()

    def goes_round(self) -> bool:
        """Whether the next claim goes round; every second one does."""
        with self._lock:
            self._tick += 1
            return self._tick % 2 == 0

    def in_turn(self, due: Iterable[rows.Row]) -> list[rows.Row]:
        """Due jobs (org, user, … , due at, created at) in the order of whose turn it is."""
        with self._lock:
            last = dict(self._served)
        return sorted(due, key=lambda row: (last.get((row[0],), 0), last.get((row[0], row[1]), 0), row[-2], row[-1]))

    def served(self, org: str, user: str) -> None:
        """A job of theirs was taken up."""
        with self._lock:
            for key in ((org,), (org, user)):
                self._served[key] = self._tick
                self._served.move_to_end(key)
            while len(self._served) > _KEPT:
                self._served.popitem(last=False)


def newest(driver: Driver, now_ms: int, kinds: Sequence[str]) -> list[rows.Row]:
    """The jobs that fell due last."""
    return driver.run("due_newest", {"now_ms": now_ms, "kinds": rows.compact_json(list(kinds)), "limit": LOOK_AHEAD})


def due(driver: Driver, now_ms: int, kinds: Sequence[str], user: Scope | None, ahead_ms: int = 0) -> list[rows.Row]:
    """
    Due jobs, the longest overdue first; expired leases count from the end of the lease.

    Of one user's jobs those that fall due within *ahead_ms* as well.
    """
    args: dict[str, Any] = {"now_ms": now_ms, "kinds": rows.compact_json(list(kinds)), "limit": LOOK_AHEAD}
    if user is not None:
        key = {"org": user.org, "user_id": user.user, "bot": user.bot}
        place = {"subject": user.subject, "conversation": user.conversation}
        return driver.run("due_of_user", {**args, **key, **place, "soon_ms": now_ms + ahead_ms})
    found = driver.run("due_ready", args) + driver.run("due_expired", args)
    return sorted(found, key=lambda row: (row[-2], row[-1], row[3]))
