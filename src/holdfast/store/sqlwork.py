"""What is to be done, counted across people, in terms of named queries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

from ..figures import Backlog
from .readview import Driver

T = TypeVar("T")

LATE_MS = 5 * 60_000


class SqlWork(ABC):
    """See `holdfast.store.work`."""

    @abstractmethod
    def _reading(self, work: Callable[[Driver], T]) -> T:
        """Run *work* over one snapshot."""

    def backlog(self, now_ms: int) -> tuple[Backlog, ...]:
        """See the protocol."""
        args = {"now_ms": now_ms, "late_ms": now_ms - LATE_MS}
        found = self._reading(lambda driver: driver.run("backlog", args))
        return tuple(
            Backlog(kind, state, int(jobs), int(due), int(overdue), None if since is None else now_ms - int(since))
            for kind, state, jobs, due, overdue, since in found
        )
