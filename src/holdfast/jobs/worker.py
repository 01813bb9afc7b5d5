"""
Run due jobs until none is left, inline or in background threads.

This is the one place that catches every error of a handler: whatever went wrong becomes a job
state with a reason and a retry, never a lost job and never an empty result.
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
from .gate import SETUP_WAIT_MS, NotNow
from .queue import Queue

log = logging.getLogger("holdfast")

_IDLE_SECONDS = 1.0


def attempt(queue: Queue, job: Job) -> DigestReport:
    """
    Run one claimed job and settle it, whatever happens.

    Raises:
        StoreError: the store itself fails; the lease runs out and the job is taken up again.
        KeyboardInterrupt: somebody stopped the program; the job is ready for whoever comes next.
    """
    began = time.perf_counter()
    queue.observed("busy", job.kind, 1)
    try:
        report = _settled(queue, job)
    finally:
        queue.observed("busy", job.kind, -1)
    ended = "waiting" if report.waiting else "failed" if report.failed else "done"
    queue.observed("job", job.kind, time.perf_counter() - began)
    queue.observed(f"job.{ended}", job.kind, 1)
    return report


def _settled(queue: Queue, job: Job) -> DigestReport:
    try:
        return queue.run(job)
    except StoreError:
        raise
    except KeyboardInterrupt:
        # The program may be started again at once: nobody has to wait until the lease ends.
        with suppress(StoreError):
            queue.let_go(job)
        raise
    except NotNow as error:
        return queue.wait(job, error.message, error.until_ms)
    except Exception as error:  # noqa: BLE001 - the one place: every failure becomes a job state
        reason = reason_of(error)
        log.warning("job %s (%s) failed in attempt %d: %s", job.id, job.kind, job.attempt, reason)
        if not isinstance(error, ModelError):
            return queue.put_back(job, reason)
        if error.setup:
            return queue.wait(job, reason, queue.now_ms() + SETUP_WAIT_MS) + DigestReport(failed=1)
        asked_ms = math.ceil(1000 * (error.retry_after_s or 0))
        return queue.put_back(job, reason, not_before_ms=asked_ms, final=not error.transient)


def reason_of(error: Exception) -> str:
    """What to tell about an error: our own text as it is, else the kind alone (it may quote a message)."""
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

    With *user* only theirs, those that fall due within *ahead_ms* as well.
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
    Background threads over one queue; they sleep until woken or until something falls due.

    The first of them begins with *beforehand*, which orders work that nobody else would.
    """

    def __init__(self, queue: Queue, count: int, beforehand: Callable[[], object] | None = None) -> None:
        self._queue = queue
        self._beforehand = beforehand
        self._stop = threading.Event()
        self._busy = 0
        self._idle = threading.Condition()
        self._threads = [
            threading.Thread(target=self._run, args=(number,), name=f"holdfast-worker-{number}", daemon=True)
            for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def wake(self) -> None:
        """There may be something to do."""
        self._queue.wake.set()

    def join_idle(self, deadline: float | None) -> None:
        """Wait until no thread is inside a job."""
        with self._idle:
            while self._busy and (deadline is None or time.monotonic() < deadline):
                self._idle.wait(0.05 if deadline is None else max(0.0, min(0.05, deadline - time.monotonic())))

    def stop(self) -> None:
        """Let each thread finish the job it is in, then end it; what is pending stays in the store."""
        self._stop.set()
        self._queue.wake.set()
        for thread in self._threads:
            thread.join()

    def _run(self, number: int) -> None:
        with acting(BACKGROUND):
            self._serve(number)

    def _serve(self, number: int) -> None:
        beforehand = self._beforehand if number == 0 else None
        while not self._stop.is_set():
            try:
                if beforehand is not None:
                    beforehand()
                    beforehand = None
                worked = self._one()
            except StoreClosed:
                return
            except StoreError as error:
                log.warning("background work waits for the store: %s", error)
                worked = False
            if not worked:
                self._queue.wake.wait(_IDLE_SECONDS)
                self._queue.wake.clear()

    def _one(self) -> bool:
        with self._idle:
            self._busy += 1
        try:
            job = self._queue.claim()
            if job is None:
                return False
            attempt(self._queue, job)
            return True
        finally:
            with self._idle:
                self._busy -= 1
                self._idle.notify_all()
