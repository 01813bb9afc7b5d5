"""
Which memories were used, and when: counted in memory, written with whatever is written next.

A read must not wait for the disk.  So uses are noted here and poured into the next write about the
same user, into ``digest()``, or into the store when the memory is closed.  A count that is lost in
a crash costs nothing but a little strength.  Every process adds what it counted itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping

from ..ingest.consent import effective_consent
from ..reconcile.decay import used
from ..scope import Scope
from ..store import Store, WriteView

MAX_USERS = 1_000
MAX_FACTS = 500

User = tuple[str, str, str]
Counts = Mapping[str, tuple[int, int]]
"""``{fact id: (times, last in milliseconds)}``"""


class Uses:
    """
    Counts of uses that are not yet in the store; safe to use from any thread.

    Bounded: of more than ``MAX_USERS`` the one who was first forgets, of one user more than
    ``MAX_FACTS`` are not counted.
    """

    def __init__(self, store: Store, now_ms: Callable[[], int], half_life_ms: float) -> None:
        self._store, self._now_ms, self._half_life_ms = store, now_ms, half_life_ms
        self._counts: dict[User, dict[str, tuple[int, int]]] = {}
        self._lock = threading.Lock()

    def note(self, scope: Scope, fact_ids: Iterable[str]) -> None:
        """These facts of the scope's user were shown for a question just now."""
        now_ms, ids = self._now_ms(), list(dict.fromkeys(fact_ids))
        if not ids:
            return
        with self._lock:
            mine = self._counts.setdefault(scope.user_key, {})
            for fact_id in ids:
                if fact_id in mine or len(mine) < MAX_FACTS:
                    mine[fact_id] = (mine.get(fact_id, (0, 0))[0] + 1, now_ms)
            while len(self._counts) > MAX_USERS:
                del self._counts[next(iter(self._counts))]

    def take(self, scope: Scope) -> Counts:
        """What was noted of the scope's user; the caller must write it, or give it back."""
        with self._lock:
            return self._counts.pop(scope.user_key, {})

    def give_back(self, scope: Scope, counts: Counts) -> None:
        """The write failed: the counts wait for the next one."""
        with self._lock:
            mine = self._counts.setdefault(scope.user_key, {})
            for fact_id, (times, at_ms) in counts.items():
                before = mine.get(fact_id, (0, 0))
                mine[fact_id] = (before[0] + times, max(before[1], at_ms))

    def pour(self, view: WriteView, counts: Counts) -> None:
        """Write what was taken, inside the caller's transaction."""
        rows = view.uses(list(counts)) if counts else []
        view.save_uses([used(row, *counts[row.id], self._half_life_ms) for row in rows])

    def flush(self, scope: Scope | None = None) -> None:
        """Write everything that was noted, of all users or of one; of those who paused memory it is dropped."""
        with self._lock:
            users = [user_key for user_key in self._counts if scope is None or user_key == scope.user_key]
        for org, user, bot in users:
            whole = Scope(org=org, user=user, bot=bot)
            counts = self.take(whole)

            def work(view: WriteView, counts: Counts = counts) -> None:
                if effective_consent([(row.subject, row.state) for row in view.consent()], None) == "active":
                    self.pour(view, counts)

            self._store.write(whole, work)
