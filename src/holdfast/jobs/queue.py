"""
Claim a job, run it, settle it.

A handler may be killed at any moment and run again from the start elsewhere: it works out what is
left to do from the store, and every write of it asks first whether its claim still holds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..clock import from_ms
from ..observing import Observed
from ..reports import DigestReport
from ..scope import Scope
from ..store import Store
from ..types import Job

WAITING = "waiting"


def told(job: Job, now_ms: int) -> Job:
    """The job as users are shown it: ``waiting`` while its model may not be asked, and its reason says why."""
    waits = job.state == "ready" and job.run_at_ms > now_ms and job.reason.startswith(f"{WAITING}:")
    return replace(job, state=WAITING) if waits else job


class FenceLost(Exception):
    """Somebody else has taken the job over, or it was cancelled: what was not yet written is discarded."""


Handler = Callable[[Job], DigestReport]


@dataclass(frozen=True, slots=True)
class Queue:
    """
    The jobs of one store, seen by one worker.

    ``handlers`` stand in the order of their cost: what is cheap and soon wanted (facts, summaries) is
    done before what takes long (vectors).  ``now_ms`` is the memory's clock.  ``idle``: the last claim found nothing.
    """

    store: Store
    handlers: Mapping[str, Handler]
    now_ms: Callable[[], int]
    worker: str
    lease_ms: int
    attempts: int
    backoff_ms: int
    wake: threading.Event = field(default_factory=threading.Event)
    idle: threading.Event = field(default_factory=threading.Event)
    observed: Observed = field(default_factory=Observed)

    def claim(self, *, kinds: Sequence[str] = (), user: Scope | None = None, ahead_ms: int = 0) -> Job | None:
        """One job that is due, or of *user* within *ahead_ms*, leased to this worker; ``None`` when there is none."""
        if self.idle.is_set() and user is None:
            due_ms = self.store.next_due_ms()  # one look for all kinds, as each look asks every node of a cluster
            if due_ms is None or due_ms > self.now_ms():
                return None
        for kind in kinds or self.handlers:
            job = self.store.claim(
                now_ms=self.now_ms(),
                worker=self.worker,
                lease_ms=self.lease_ms,
                kinds=(kind,),
                user=user,
                ahead_ms=ahead_ms,
            )
            if job is not None:
                self.idle.clear()
                self.observed("claim", job.kind, 1)
                return job
        if user is None and not kinds:
            self.idle.set()
        return None

    def run(self, job: Job) -> DigestReport:
        """
        Run one claimed job.

        A lost fence is no failure: whoever holds the job now does the work.
        """
        try:
            return self.handlers[job.kind](job) + DigestReport(jobs=1)
        except FenceLost:
            self.observed("lost", job.kind, 1)
            return DigestReport()

    def let_go(self, job: Job) -> None:
        """Make a claimed job ready as if it had not been taken up."""
        self.store.fail(replace(job, attempt=job.attempt - 1), reason=job.reason, run_at_ms=self.now_ms(), dead=False)

    def put_back(self, job: Job, reason: str, *, not_before_ms: int = 0, final: bool = False) -> DigestReport:
        """
        Settle a failed attempt: again later, twice as late each time; aside as dead after the last.

        *not_before_ms* is how long somebody else asked us to wait; *final*: trying again cannot help.
        """
        dead = final or job.attempt >= self.attempts
        wait_ms = max(self.backoff_ms * 2 ** max(0, job.attempt - 1), not_before_ms)
        self.store.fail(job, reason=reason, run_at_ms=self.now_ms() + wait_ms, dead=dead)
        return DigestReport(failed=1)

    def wait(self, job: Job, reason: str, until_ms: int) -> DigestReport:
        """Put a job back whose model may not be asked before *until_ms*; it was no attempt."""
        words = f"{WAITING}: {reason}; next at {from_ms(until_ms).isoformat(timespec='seconds')}"
        self.store.fail(replace(job, attempt=job.attempt - 1), reason=words, run_at_ms=until_ms, dead=False)
        return DigestReport(waiting=1)
