"""What is to be done, and how often models are asked, across users, in terms of named queries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict
from typing import TypeVar

from ..figures import Backlog
from .readview import Driver
from .values import PaceRow

T = TypeVar("T")

LATE_MS = 5 * 60_000


class SqlWork(ABC):
    """See `holdfast.store.work`."""

    @abstractmethod
    def _reading(self, work: Callable[[Driver], T]) -> T:
        """Run *work* over one snapshot."""

    @abstractmethod
    def _writing(self, work: Callable[[Driver], T]) -> T:
        """Run *work* in one transaction."""

    def backlog(self, now_ms: int) -> tuple[Backlog, ...]:
        """See the protocol."""
        args = {"now_ms": now_ms, "late_ms": now_ms - LATE_MS}
        found = self._reading(lambda driver: driver.run("backlog", args))
        return tuple(
            Backlog(kind, state, int(jobs), int(due), int(overdue), None if since is None else now_ms - int(since))
            for kind, state, jobs, due, overdue, since in found
        )

    def pace(self, pace_id: str) -> PaceRow:
        """See the protocol."""
        found = self._reading(lambda driver: driver.run("pace", {"id": pace_id}))
        return PaceRow(*found[0]) if found else PaceRow(pace_id)

    def keep_pace(self, row: PaceRow, *, idle_before: int) -> bool:
        """See the protocol."""

        def work(driver: Driver) -> bool:
            if row.version > 1:
                return bool(driver.run("move_pace", {**asdict(row), "was": row.version - 1}))
            driver.run("remove_idle_paces", {"before": idle_before})
            return bool(driver.run("add_pace", asdict(row)))

        return self._writing(work)
