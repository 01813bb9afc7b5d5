"""
The job queue: claim a job, run its handler, settle it.

A handler may be killed at any moment and run again from the start elsewhere: it works out what is left to do from the
store, and each of its writes first checks that its claim still holds.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Literal

from ..clock import from_ms
from ..config import Config
from ..embed.protocol import Embedder
from ..errors import StoreError
from ..reconcile.registry import Registry
from ..reports import DigestReport
from ..scope import Scope
from ..store import ConversationRow, Store, WriteView
from ..text import dataclass, expression
from ..types import Job
from .observer import Observer

log = logging.getLogger("holdfast")

WAITING = "waiting"

Handler = Callable[[Job], DigestReport]
ReadMode = Literal["", "turns", "chunks"]
"""When a model reads messages for facts: never, every few turns, or with each chunk."""

_TRIED_AGAIN = expression(r" \(it is tried again[^()]*\)$")
"""What a model's error says of an attempt, which is not so of the last one."""


class FenceLost(Exception):
    """A claim that another worker has taken over, or a cancelled job: unwritten work is discarded."""


@dataclass(frozen=True, slots=True)
class Dependencies:
    """The parts of a memory that job handlers share; ``remembered`` is the embedder with the vectors of the last texts."""

    store: Store
    config: Config
    registry: Registry
    now_ms: Callable[[], int]
    embedder: Embedder | None
    observer: Observer = field(default_factory=Observer)
    remembered: Embedder | None = None


@dataclass(frozen=True, slots=True)
class Queue:
    """
    The jobs of one store, as one worker claims them.

    ``handlers`` are in the order in which the kinds of one user's work are claimed: cheap and urgent work before slow work.
    Those of the kinds ``last`` come behind all of their user's due work that is named before them, whoever claims.
    Jobs of a kind that ``alone`` returns are never claimed several at a time.  ``now_ms`` is the memory's clock.
    ``idle`` is set while the last claim found nothing.
    """

    store: Store
    handlers: Mapping[str, Handler]
    now_ms: Callable[[], int]
    worker: str
    lease_ms: int
    attempts: int
    backoff_ms: int
    last: Sequence[str] = ()
    alone: Callable[[], Sequence[str]] = tuple
    wake: threading.Event = field(default_factory=threading.Event)
    idle: threading.Event = field(default_factory=threading.Event)
    observer: Observer = field(default_factory=Observer)
    _fetching: threading.Lock = field(default_factory=threading.Lock)
    _kept: deque[Job] = field(default_factory=deque)

    def claim(
        self,
        *,
        kinds: Sequence[str] = (),
        user: Scope | None = None,
        ahead_ms: int = 0,
        several: Mapping[str, int] | None = None,
    ) -> Job | None:
        """
        Lease one job that is due, or that of *user* is due within *ahead_ms*; ``None`` when there is none.

        Of a kind that *several* names, up to so many are leased together; the others are kept here and are the next to be
        returned.
        """
        with self._fetching:  # one thread asks, and the others find what it brought
            job = self._kept_job(kinds, user) or self._claimed(kinds, user, ahead_ms, several or {})
        if job is not None:
            self.idle.clear()
            self.observer.report("claim", job.kind, 1)
        elif user is None and not kinds:
            self.idle.set()
        return job

    def _kept_job(self, kinds: Sequence[str], user: Scope | None) -> Job | None:
        """Return the first job that is leased and kept and that is asked for, if any."""
        now_ms = self.now_ms()
        lost = [job for job in self._kept if job.lease_until_ms <= now_ms]
        for job in lost:
            self._kept.remove(job)
            self._put_back(job)  # unless another worker has taken it
        for job in self._kept:
            if (not kinds or job.kind in kinds) and (user is None or is_of(job, user)):
                self._kept.remove(job)
                return job
        return None

    def _claimed(
        self, kinds: Sequence[str], user: Scope | None, ahead_ms: int, several: Mapping[str, int]
    ) -> Job | None:
        now_ms, kinds = self.now_ms(), kinds or tuple(self.handlers)
        lease: dict[str, Any] = {"now_ms": now_ms, "worker": self.worker, "lease_ms": self.lease_ms, "kinds": kinds}
        if user is not None:
            return self.store.claim(**lease, user=user, ahead_ms=ahead_ms)
        if self.idle.is_set():
            due_ms = self.store.next_due_ms()
            if due_ms is None or due_ms > now_ms:
                return None
        alone = self.alone()
        limits = {kind: limit for kind, limit in several.items() if kind not in alone}
        jobs = self.store.claim_some(**lease, limit=1, limits=limits, last=self.last)
        self._kept.extend(jobs[1:])
        if self._kept:
            self.wake.set()
        return jobs[0] if jobs else None

    def let_go(self) -> None:
        """Make the jobs that are kept ready for other workers."""
        with self._fetching:
            while self._kept:
                self._put_back(self._kept.popleft())

    @property
    def keeps(self) -> bool:
        """Whether jobs that are leased wait here for a thread."""
        return bool(self._kept)

    def _put_back(self, job: Job) -> None:
        try:
            self.release(job)
        except StoreError as error:
            log.warning("job %s (%s) waits until its lease ends: %s", job.id, job.kind, error)

    def run(self, job: Job) -> DigestReport:
        """Run one claimed job; a lost fence is no failure, as the new owner does the work."""
        try:
            return self.handlers[job.kind](job) + DigestReport(jobs=1)
        except FenceLost:
            self.observer.report("lost", job.kind, 1)
            return DigestReport()

    def release(self, job: Job) -> None:
        """Make a claimed job ready as if it had not been claimed."""
        self.store.give_back(job)

    def retry_later(self, job: Job, reason: str, *, not_before_ms: int = 0, final: bool = False) -> DigestReport:
        """
        Settle a failed attempt: run again later, with twice the delay each time, or mark the job dead after the last.

        *not_before_ms* is a delay that the provider asked for; *final* says that another attempt cannot help.
        """
        dead = final or job.attempt >= self.attempts
        wait_ms = max(self.backoff_ms * 2 ** max(0, job.attempt - 1), not_before_ms)
        reason = _TRIED_AGAIN.sub("", reason) if dead else reason
        self.store.fail(job, reason=reason, run_at_ms=self.now_ms() + wait_ms, dead=dead)
        return DigestReport(failed=1)

    def wait(self, job: Job, reason: str, until_ms: int) -> DigestReport:
        """Delay a job whose model may not be called before *until_ms*, without counting an attempt."""
        words = f"{WAITING}: {reason}; next at {from_ms(until_ms).isoformat(timespec='seconds')}"
        self.store.fail(replace(job, attempt=job.attempt - 1), reason=words, run_at_ms=until_ms, dead=False)
        return DigestReport(waiting=1)


def as_listed(job: Job, now_ms: int) -> Job:
    """Return the job as `jobs` lists it: its state is ``waiting`` while its model may not be called."""
    waits = job.state == "ready" and job.run_at_ms > now_ms and job.reason.startswith(f"{WAITING}:")
    return replace(job, state=WAITING) if waits else job


def is_of(job: Job, user: Scope) -> bool:
    """Whether a job is a user's, or a conversation's when the scope names one."""
    place = (user.subject or "", user.conversation)
    return (job.org, job.user, job.bot) == user.user_key and (
        user.conversation is None or (job.subject, job.conversation) == place
    )


def scope_of(job: Job) -> Scope:
    """Return the scope that the job row names; it is never read from an answer of a model."""
    return Scope(job.org, job.bot, job.user, job.subject, job.conversation)


def check_claim(view: WriteView, job: Job, epoch: int) -> None:
    """
    Raise unless the claim holds and nothing was erased since the snapshot was taken.

    Raises:
        FenceLost: the work is discarded; the job is run again from what is stored then.
    """
    if not view.holds(job) or view.user().epoch != epoch:
        raise FenceLost


def went_on(seen: ConversationRow | None, row: ConversationRow | None) -> bool:
    """Return whether messages came, or the end was said, after the row *seen* was read."""
    return seen is not None and row is not None and (row.next_seq, row.ended_seq) != (seen.next_seq, seen.ended_seq)


def range_of(job: Job) -> tuple[int, int] | None:
    """Return the range of messages that the key of a job names (``12-21``), if any."""
    first, dash, last = job.key.partition("-")
    return (int(first), int(last)) if dash and first.isdecimal() and last.isdecimal() else None


def order_range(view: WriteView, kind: str, first: int, last: int, now_ms: int) -> None:
    """Order a job for one range of messages."""
    view.want(kind, f"{first}-{last}", wanted=last, run_at_ms=now_ms, now_ms=now_ms)
