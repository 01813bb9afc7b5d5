"""
Long work that a request orders: it runs in threads of this process, and is asked after by its id.

What it made is named by ids and told from the store when somebody asks, so that nothing which was erased meanwhile is
told from here.  When the process ends, so do its tasks, each after the range that it is in: what was made stays made, and
the same request does the rest.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from ..clock import new_id
from ..errors import Conflict, HoldfastError, KeyReused, NotFound
from ..person import Person

log = logging.getLogger("holdfast")

State = Literal["ready", "running", "done", "failed", "cancelled"]
Step = Callable[[int, int], None]
"""Called with how much is done and how much there is; 0 when nobody knows."""
Told = Callable[[Person | None], Any]
"""The report, as the person that is given may see it today."""

AT_ONCE = 2
KEPT = 1_000
MOST_OPEN = 100


class Stopped(HoldfastError):
    """Somebody cancelled the task, or the server ends."""

    code = "stopped"


@dataclass(frozen=True, slots=True)
class Whose:
    """Whose memory a task works on; ``None`` stands for everybody, or every assistant or subject."""

    org: str | None
    user: str | None = None
    bot: str | None = None
    subject: str | None = None
    conversation: str | None = None


@dataclass(slots=True)
class Task:
    """One piece of long work; ``told`` gives its report as it is today."""

    id: str
    kind: str
    whose: Whose
    created_at: datetime
    state: State = "ready"
    done: int = 0
    total: int = 0
    reason: str = ""
    code: str = ""
    ended_at: datetime | None = None
    told: Told = field(default=lambda _person: None, repr=False)
    stop: threading.Event = field(default_factory=threading.Event, repr=False)
    over: threading.Event = field(default_factory=threading.Event, repr=False)


class Tasks:
    """The long work of one server."""

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._tasks: OrderedDict[str, Task] = OrderedDict()
        self._keys: OrderedDict[tuple[Whose, str], tuple[str, str]] = OrderedDict()
        self._threads: ThreadPoolExecutor | None = None

    def order(
        self,
        kind: str,
        whose: Whose,
        work: Callable[[Step], Told],
        *,
        key: str | None = None,
        asked: Mapping[str, Any] | None = None,
    ) -> Task:
        """
        Have *work* done; it is given a step to call now and then, and returns what tells its report.

        Args:
            kind: what it is: ``rebuild``, ``backfill``, ``consolidate``.
            whose: whose memory it works on; others do not see it.
            work: raises `HoldfastError` when it cannot be done.
            key: the caller's idempotency key; the same key names the same task.
            asked: what was asked for; another one under the same key is refused.

        Raises:
            KeyReused: the key was used for something else.
            Conflict: too much is waiting already.
        """
        digest = hashlib.sha256(json.dumps([kind, asked], sort_keys=True, default=str).encode()).hexdigest()
        with self._lock:
            if key is not None and (before := self._keys.get((whose, key))) is not None:
                if before[1] != digest:
                    raise KeyReused(f"idempotency key {key!r} was used for another order", hint="use a new key")
                if before[0] in self._tasks:
                    return self._tasks[before[0]]
            if sum(not task.over.is_set() for task in self._tasks.values()) >= MOST_OPEN:
                raise Conflict(f"{MOST_OPEN} orders wait already", hint="come again when some are done")
            now = self._now()
            task = Task(new_id("task", int(now.timestamp() * 1000)), kind, whose, now)
            self._tasks[task.id] = task
            if key is not None:
                self._keys[whose, key] = (task.id, digest)
            self._let_go()
            if self._threads is None:
                self._threads = ThreadPoolExecutor(AT_ONCE, "holdfast-task")
            whoever = copy_context()  # the work is the doing of who asked for it
            self._threads.submit(whoever.run, self._run, task, work).add_done_callback(_log)
        return task

    def get(self, task_id: str) -> Task:
        """
        One task.

        Raises:
            NotFound: it was never ordered here, or has been let go of.
        """
        with self._lock:
            task = self._tasks.get(task_id)
        if task is None:
            raise NotFound(f"there is no job {task_id!r}", hint="jobs end with the process that took them; ask again")
        return task

    def of(self, whose: Whose) -> list[Task]:
        """What was ordered for exactly *whose* memory, the newest first."""
        with self._lock:
            return [task for task in reversed(self._tasks.values()) if task.whose == whose]

    def newest(self, limit: int) -> list[Task]:
        """At most *limit* tasks of everybody, the newest first."""
        with self._lock:
            return list(reversed(self._tasks.values()))[:limit]

    def cancel(self, task_id: str) -> None:
        """End a task before it takes up its next range; what it made stays."""
        task = self.get(task_id)
        task.stop.set()
        with self._lock:
            if task.state == "ready":
                self._end(task, "cancelled")

    def close(self) -> None:
        """End every task after the range that it is in."""
        with self._lock:
            threads, self._threads = self._threads, None
            for task in self._tasks.values():
                task.stop.set()
        if threads is not None:
            threads.shutdown(cancel_futures=True)

    def _let_go(self) -> None:
        """Forget the oldest of those that are over."""
        over = [task.id for task in self._tasks.values() if task.over.is_set()]
        for task_id in over[: max(0, len(self._tasks) - KEPT)]:
            del self._tasks[task_id]
        while len(self._keys) > KEPT:
            self._keys.popitem(last=False)

    def _run(self, task: Task, work: Callable[[Step], Told]) -> None:
        with self._lock:
            if task.over.is_set():
                return
            task.state = "running"
        with self._ending(task):
            task.told = work(lambda done, total: self._step(task, done, total))

    @contextmanager
    def _ending(self, task: Task) -> Iterator[None]:
        """Whatever happens inside becomes the state of the task."""
        state: State = "failed"
        try:
            yield
            state = "done"
        except Stopped:
            state = "cancelled"
        except HoldfastError as error:
            task.code, task.reason = error.code, str(error)
        finally:
            with self._lock:
                if state == "failed" and not task.code:
                    task.code, task.reason = "internal", "something broke here; the log of the server says more"
                self._end(task, state)

    def _end(self, task: Task, state: State) -> None:
        task.state, task.ended_at = state, self._now()
        task.over.set()

    def _step(self, task: Task, done: int, total: int) -> None:
        task.done, task.total = done, total
        if task.stop.is_set() and (done < total or not total):
            raise Stopped("stopped")


def _log(ran: Future[None]) -> None:
    """What broke without being one of our errors; its words may quote a message."""
    error = None if ran.cancelled() else ran.exception()
    if error is not None:
        log.error("a task broke: %s", type(error).__name__)
