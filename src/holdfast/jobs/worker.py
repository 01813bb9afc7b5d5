"""
The workers: run due jobs until none is left, inline or in background threads.

This is the one place that catches every error of a handler: it becomes a job state with a reason and a retry, never a
lost job and never an empty result.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from ..errors import HoldfastError, StoreClosed, StoreError
from ..llm.protocol import ModelError
from ..reports import DigestReport
from ..scope import BACKGROUND, Scope, acting
from ..types import Job
from .model_client import SETUP_WAIT_MS, CallDeferred
from .queue import Queue

log = logging.getLogger("holdfast")

_IDLE_SECONDS = 1.0
_AT_ONCE_SECONDS = 0.25  # of work that is claimed together
_LET_GO_SECONDS = 0.5  # after which kept jobs that no thread has asked for are for other processes
_MOST_AT_ONCE = 16


def attempt(queue: Queue, job: Job) -> DigestReport:
    """
    Run one claimed job and settle it, whether it succeeds or fails.

    Raises:
        StoreError: the store itself fails; the lease runs out and the job is claimed again.
        KeyboardInterrupt: the program was stopped; the job is ready again at once.
    """
    began = time.perf_counter()
    queue.observer.report("busy", job.kind, 1)
    try:
        report = _settled(queue, job)
    finally:
        queue.observer.report("busy", job.kind, -1)
    ended = "waiting" if report.waiting else "failed" if report.failed else "done"
    queue.observer.report("job", job.kind, time.perf_counter() - began)
    queue.observer.report(f"job.{ended}", job.kind, 1)
    return report


def _settled(queue: Queue, job: Job) -> DigestReport:
    try:
        return queue.run(job)
    except StoreError:
        raise
    except KeyboardInterrupt:
        # a program that starts again at once need not wait until the lease ends
        with suppress(StoreError):
            queue.release(job)
        raise
    except CallDeferred as error:
        return queue.wait(job, error.message, error.until_ms)
    except Exception as error:  # noqa: BLE001 - the one place: every failure becomes a job state
        reason = reason_of(error)
        log.warning("job %s (%s) failed in attempt %d: %s", job.id, job.kind, job.attempt, reason)
        if not isinstance(error, ModelError):
            return queue.retry_later(job, reason)
        if error.setup:
            return queue.wait(job, reason, queue.now_ms() + SETUP_WAIT_MS) + DigestReport(failed=1)
        asked_ms = math.ceil(1000 * (error.retry_after_s or 0))
        return queue.retry_later(job, reason, not_before_ms=asked_ms, final=not error.transient)


def reason_of(error: Exception) -> str:
    """Return the reason to store: the text of our own errors, else the class alone (its text may quote a message)."""
    return f"{error.code}: {error}" if isinstance(error, HoldfastError) else type(error).__name__


def drain(
    queue: Queue,
    *,
    kinds: Sequence[str] = (),
    user: Scope | None = None,
    deadline: float | None = None,
    ahead_ms: int = 0,
) -> DigestReport:
    """
    Run jobs until none is due or *deadline* (``time.monotonic``) has passed.

    With *user* only that user's, those due within *ahead_ms* too.
    """
    report = DigestReport()
    while deadline is None or time.monotonic() < deadline:
        job = queue.claim(kinds=kinds, user=user, ahead_ms=ahead_ms)
        if job is None:
            break
        report += attempt(queue, job)
    return report


class Workers:
    """
    Background threads over one queue; they sleep until woken or until a job is due.

    The first thread begins with *prepare*, which orders work that messages do not.  One thread in a second looks for work
    while there is none, however many sleep.  Jobs of a kind that is quick are claimed several at a time, as many as a quarter
    of a second of all threads can do: what is claimed here waits for nobody else.  Once no thread has asked for the others
    for half a second, they are let go.
    """

    def __init__(self, queue: Queue, count: int, prepare: Callable[[], object] | None = None) -> None:
        self._queue = queue
        self._count = count
        self._prepare = prepare
        self._stop = threading.Event()
        self._looking = 0
        self._held: dict[int, Job] = {}  # by the thread that is inside it
        self._done = [0] * 64  # jobs that ended, by the hash of their user
        self._idle = threading.Condition()
        self._looked_at = 0.0
        self._job_seconds: dict[str, float] = {}  # how long a job of a kind took lately
        self._keeping = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(number,), name=f"holdfast-worker-{number}", daemon=True)
            for number in range(count)
        ]
        self._threads.append(threading.Thread(target=self._watch, name="holdfast-worker-watch", daemon=True))
        for thread in self._threads:
            thread.start()

    def wake(self) -> None:
        """Wake the threads to look for jobs."""
        self._queue.wake.set()

    def drain(self, deadline: float | None, user: Scope | None = None) -> DigestReport:
        """
        Run what is due beside the threads, and wait for the jobs that they hold, until neither is left.

        With *user* only that user's.  Stops at *deadline* (``time.monotonic``).
        """
        report = DigestReport()
        while True:
            with self._idle:
                while (self._looking or self._holds(user)) and (deadline is None or time.monotonic() < deadline):
                    self._idle.wait(0.05 if deadline is None else max(0.0, min(0.05, deadline - time.monotonic())))
                done = self._ended(user)
            ran = drain(self._queue, user=user, deadline=deadline)
            report += ran
            with self._idle:
                settled = done == self._ended(user) and not self._looking and not self._holds(user)
            if (settled and ran == DigestReport()) or (deadline is not None and time.monotonic() >= deadline):
                return report

    def _holds(self, user: Scope | None) -> bool:
        """Whether a thread is inside a job, with *user* one of that user's."""
        whose = [(job.org, job.user, job.bot) for job in self._held.values()]
        return bool(whose) if user is None else user.user_key in whose

    def _ended(self, user: Scope | None) -> int:
        """Return how many jobs the threads have ended, with *user* those of that user and a few others."""
        bucket = None if user is None else hash((user.org, user.user, user.bot)) % len(self._done)
        return sum(self._done) if bucket is None else self._done[bucket]

    def stop(self) -> None:
        """End each thread after its current job; pending jobs stay in the store."""
        self._stop.set()
        self._queue.wake.set()
        self._keeping.set()
        for thread in self._threads:
            thread.join()
        with suppress(StoreError):
            self._queue.let_go()

    def _run(self, number: int) -> None:
        with acting(BACKGROUND):
            self._serve(number)

    def _serve(self, number: int) -> None:
        prepare = self._prepare if number == 0 else None
        while not self._stop.is_set():
            try:
                if prepare is not None:
                    prepare()
                    prepare = None
                worked = self._one()
            except StoreClosed:
                return
            except StoreError as error:
                log.warning("background work waits for the store to answer: %s", error)
                worked = False
            while not worked and not self._stop.is_set():
                if self._queue.wake.wait(_IDLE_SECONDS):
                    self._queue.wake.clear()
                    break
                if time.monotonic() - self._looked_at >= 0.9 * _IDLE_SECONDS:
                    break

    def _watch(self) -> None:
        """Let go of kept jobs while every thread is inside a slow one."""
        while not self._stop.is_set():
            self._keeping.wait()
            self._keeping.clear()
            while self._queue.keeps and not self._stop.is_set():
                left = self._looked_at + _LET_GO_SECONDS - time.monotonic()
                if left <= 0:
                    self._queue.let_go()
                else:
                    self._stop.wait(left)

    def _several(self) -> dict[str, int]:
        """Return how many jobs of a kind to claim together; one of a kind that has not run yet."""
        work = _AT_ONCE_SECONDS * self._count
        known = dict(self._job_seconds)
        return {kind: max(1, min(_MOST_AT_ONCE, int(work / max(took, 0.001)))) for kind, took in known.items()}

    def _one(self) -> bool:
        with self._idle:
            self._looking += 1
        job = None
        try:
            self._looked_at = time.monotonic()
            job = self._queue.claim(several=self._several())
        finally:
            with self._idle:
                self._looking -= 1
                if job is not None:
                    self._held[threading.get_ident()] = job
                self._idle.notify_all()
            if self._queue.keeps:
                self._keeping.set()
        if job is None:
            return False
        began = time.monotonic()
        try:
            attempt(self._queue, job)
            return True
        finally:
            took = time.monotonic() - began
            before = self._job_seconds.get(job.kind, took)
            self._job_seconds[job.kind] = max(
                took, 0.8 * before + 0.2 * took
            )  # one slow job stops the rest for a while
            with self._idle:
                del self._held[threading.get_ident()]
                self._done[hash((job.org, job.user, job.bot)) % len(self._done)] += 1
                self._idle.notify_all()
