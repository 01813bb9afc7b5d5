"""
The part of ``/metrics`` that tells of background work: what waits in the store, and what this process does of it.

What waits is the same whichever process is asked; what was claimed, done and lost is of this process alone.  Servers and
workers tell it alike, so that one rule scales and watches both.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from ..figures import Backlog
from ..memory import Memory

STATES = ("ready", "waiting", "running", "dead", "cancelled")
# Jobs are counted again after so many times what counting took: it never takes a twentieth of a process.
_REST = 20
_SLOW = (0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120)


class WorkMeters:
    """
    Figures of background work, in *registry*.

    *threads* is how many threads of this process do it.
    """

    def __init__(self, memory: Memory, registry: CollectorRegistry, threads: int) -> None:
        self._memory = memory
        self._lock = threading.Lock()
        self._found: tuple[Backlog, ...] = ()
        self._again_at = float("-inf")
        of: dict[str, Any] = {"namespace": "holdfast", "registry": registry}
        self.seconds = Histogram("job_duration_seconds", "Attempts of jobs.", ["kind"], buckets=_SLOW, **of)
        self.ended = Counter("jobs", "Attempts of jobs that ended.", ["kind", "outcome"], **of)
        self.claims = Counter("job_claims", "Jobs that this process took up.", ["kind"], **of)
        self.takeovers = Counter(
            "job_takeovers", "Jobs that this process took over from a worker whose lease had ended.", ["kind"], **of
        )
        self.lost = Counter(
            "job_leases_lost", "Jobs that were taken away from this process while it worked on them.", ["kind"], **of
        )
        self.busy = Gauge("workers_busy", "Threads that are in a job now.", **of)
        Gauge("workers", "Threads that do background work.", **of).set(threads)
        self.open = Gauge("jobs_open", "Jobs that are not finished.", ["state"], **of)
        self.overdue = Gauge("jobs_overdue", "Jobs that are more than five minutes late.", **of)
        self.due = Gauge("jobs_due", "Jobs that somebody could take up now, and nobody has.", ["kind"], **of)
        self.oldest = Gauge("job_oldest_due_seconds", "How long the oldest job that is due has waited.", ["kind"], **of)

    def take(self, what: str, of: str, amount: float) -> None:
        """Hear from the memory about a piece of work, see `Memory.observe`."""
        if what == "job":
            self.seconds.labels(of).observe(amount)
        elif what.startswith("job."):
            self.ended.labels(of, what.removeprefix("job.")).inc(amount)
        elif what == "claim":
            self.claims.labels(of).inc(amount)
        elif what == "takeover":
            self.takeovers.labels(of).inc(amount)
        elif what == "lost":
            self.lost.labels(of).inc(amount)
        elif what == "busy":
            self.busy.inc(amount)

    def backlog(self) -> tuple[Backlog, ...]:
        """
        `Memory.backlog`, asked anew each time until there is so much that counting takes long.

        Raises:
            StoreError: the store does not answer.
        """
        with self._lock:
            began = time.monotonic()
            if began < self._again_at:
                self._memory.size_bytes()  # does it answer?
                return self._found
            self._found = self._memory.backlog()
            ended = time.monotonic()
            self._again_at = ended + _REST * (ended - began)
            return self._found

    def look(self) -> None:
        """Count what is in the store."""
        found = self.backlog()
        for state in STATES:
            self.open.labels(state).set(sum(one.jobs for one in found if one.state == state))
        self.overdue.set(sum(one.overdue for one in found))
        due = dict.fromkeys((one.kind for one in found), 0)
        since = dict.fromkeys(due, 0)
        for one in found:
            due[one.kind] += one.due
            since[one.kind] = max(since[one.kind], one.oldest_due_ms or 0)
        self.due.clear()
        self.oldest.clear()
        for kind in due:
            self.due.labels(kind).set(due[kind])
            self.oldest.labels(kind).set(since[kind] / 1000)
