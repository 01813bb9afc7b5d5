"""
Long work that a request orders: it runs in threads of one process, and any process tells how far it is.

Every order is a row, saved when it changes and every few seconds besides.  What it made is kept as ids and figures and told
from the store when somebody asks, so that nothing which was erased meanwhile is told from here.  When the process ends, its
orders are interrupted, each after the range that it is in; one that died says nothing any more, and counts as interrupted
then.  What was made stays made, and the same request does the rest.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ..clock import from_ms, new_id, to_ms
from ..errors import Conflict, HoldfastError, KeyReused, NotFound, StoreError
from ..figures import Order, OrderState
from ..orders import Orders

log = logging.getLogger("holdfast")

Step = Callable[[int, int], None]
"""Called with how much is done and how much there is; 0 when nobody knows."""
Told = Mapping[str, Any] | None
"""The report as figures and ids."""

AT_ONCE = 2
MOST_OPEN = 100
KEPT = 1_000  # in this process's memory; the rows are kept for a week
SAVE_S = 1.0  # how often a row tells how far it is
ALIVE_S = 5.0  # how often it tells that somebody is still at work
SILENT_S = 20.0  # after so long without a word nobody is
AGAIN = "the server ended before it was done; what it made stays: send the same request again, and the rest is done"


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
    """One piece of long work; ``told`` is its report as figures and ids; ``here``: this process does it."""

    id: str
    kind: str
    whose: Whose
    created_at: datetime
    state: OrderState = "ready"
    done: int = 0
    total: int = 0
    reason: str = ""
    code: str = ""
    ended_at: datetime | None = None
    told: Told = field(default=None, repr=False)
    here: bool = True
    once: str = field(default="", repr=False)
    asked: str = field(default="", repr=False)
    saved_at: float = field(default=0.0, repr=False)
    stop: threading.Event = field(default_factory=threading.Event, repr=False)
    over: threading.Event = field(default_factory=threading.Event, repr=False)


class Tasks:
    """The long work of one server."""

    def __init__(self, orders: Orders, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._orders, self._now = orders, now
        self._lock = threading.Lock()
        self._tasks: OrderedDict[str, Task] = OrderedDict()
        self._threads: ThreadPoolExecutor | None = None
        self._closed = threading.Event()

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
        Have *work* done; it is given a step to call now and then, and returns its report as figures and ids.

        Args:
            kind: what it is: ``rebuild``, ``backfill``, ``consolidate``.
            whose: whose memory it works on; others do not see it.
            work: raises `HoldfastError` when it cannot be done.
            key: the caller's idempotency key; the same key names the same task, unless that was interrupted.
            asked: what was asked for; another one under the same key is refused.

        Raises:
            KeyReused: the key was used for something else.
            Conflict: too much is waiting already.
        """
        digest = _digest([kind, asked])
        once = (
            "" if key is None else _digest([whose.org, whose.user, whose.bot, whose.subject, whose.conversation, key])
        )
        with self._lock:
            now = self._now()
            if once and (before := self._standing(once, whose)) is not None:
                if before.asked != digest:
                    raise KeyReused(f"idempotency key {key!r} was used for another order", hint="use a new key")
                return before
            if sum(not task.over.is_set() for task in self._tasks.values()) >= MOST_OPEN:
                raise Conflict(f"{MOST_OPEN} orders wait already", hint="come again when some are done")
            task = Task(new_id("task", to_ms(now)), kind, whose, now, once=once, asked=digest)
            known = self._orders.add(self._row(task))
            if known.id != task.id:
                return self._shown(known)  # another process was asked the same, just now
            self._tasks[task.id] = task
            self._let_go()
            if self._threads is None:
                self._threads = ThreadPoolExecutor(AT_ONCE, "holdfast-task")
                threading.Thread(target=self._say_alive, name="holdfast-task-alive", daemon=True).start()
            whoever = copy_context()  # the work is the doing of who asked for it
            self._threads.submit(whoever.run, self._run, task, work).add_done_callback(_log)
        return task

    def get(self, task_id: str) -> Task:
        """
        One task, whichever process has it.

        Raises:
            NotFound: it was never ordered, or is on record no more.
        """
        with self._lock:
            task = self._tasks.get(task_id)
        if task is not None:
            return task
        row = self._orders.get(task_id)
        if row is None:
            raise NotFound(f"there is no job {task_id!r}", hint="what is over is told for a week")
        return self._shown(row)

    def of(self, whose: Whose) -> list[Task]:
        """What was ordered for exactly *whose* memory, the newest first."""
        user = (whose.org or "default", whose.user or "", whose.bot or "")
        found = (self._shown(row) for row in self._orders.newest(MOST_OPEN, of=user))
        return [task for task in found if task.whose == whose]

    def newest(self, limit: int) -> list[Task]:
        """At most *limit* tasks of everybody, the newest first."""
        return [self._shown(row) for row in self._orders.newest(limit)]

    def cancel(self, task_id: str) -> None:
        """End a task before it takes up its next range, whichever process has it; what it made stays."""
        task = self.get(task_id)
        if not task.here:
            self._orders.stop(task_id)
            return
        task.stop.set()
        with self._lock:
            if task.state == "ready":
                self._end(task, "cancelled")

    def close(self) -> None:
        """End every task after the range that it is in."""
        self._closed.set()
        with self._lock:
            threads, self._threads = self._threads, None
            for task in self._tasks.values():
                task.stop.set()
        if threads is not None:
            threads.shutdown(cancel_futures=True)
        with self._lock:
            for task in self._tasks.values():
                if not task.over.is_set():
                    self._end(task, "interrupted")

    def _standing(self, once: str, whose: Whose) -> Task | None:
        """The task that this key named before, unless it was interrupted."""
        user = (whose.org or "default", whose.user or "", whose.bot or "")
        found = [task for task in self._tasks.values() if task.once == once]
        found = found or [self._shown(row) for row in self._orders.newest(KEPT, of=user) if row.once == once]
        return next((task for task in found if task.state != "interrupted"), None)

    def _shown(self, row: Order) -> Task:
        """A row as a task: this process's own, or one of another, which counts as interrupted when it is silent."""
        mine = self._tasks.get(row.id)
        if mine is not None:
            return mine
        open_, silent = row.ended_ms is None, to_ms(self._now()) - row.seen_ms > SILENT_S * 1000
        names = (row.org if row.user else None, row.user, row.bot, row.subject, row.conversation)
        task = Task(
            row.id,
            row.kind,
            Whose(*(name or None for name in names)),
            from_ms(row.created_ms),
            "interrupted" if open_ and silent else row.state,
            row.done,
            row.total,
            AGAIN if open_ and silent else row.reason,
            "interrupted" if open_ and silent else row.code,
            from_ms(row.seen_ms if row.ended_ms is None else row.ended_ms) if silent or not open_ else None,
            row.report,
            here=False,
            asked=row.asked,
        )
        if not open_ or silent:
            task.over.set()
        return task

    def _row(self, task: Task) -> Order:
        whose = task.whose
        return Order(
            org=whose.org or "default",
            user=whose.user or "",
            bot=whose.bot or "",
            subject=whose.subject or "",
            conversation=whose.conversation or "",
            id=task.id,
            kind=task.kind,
            state=task.state,
            done=task.done,
            total=task.total,
            code=task.code,
            reason=task.reason,
            report=task.told,
            once=task.once,
            asked=task.asked,
            stop=task.stop.is_set(),
            created_ms=to_ms(task.created_at),
            seen_ms=to_ms(self._now()),
            ended_ms=None if task.ended_at is None else to_ms(task.ended_at),
        )

    def _save(self, task: Task) -> None:
        """Put it on record, and hear whether another process wants it to end; a store that cannot is asked again later."""
        task.saved_at = self._now().timestamp()
        with suppress(StoreError):
            if self._orders.save(self._row(task)):
                task.stop.set()

    def _say_alive(self) -> None:
        while not self._closed.wait(ALIVE_S):
            with self._lock:
                mine = [task for task in self._tasks.values() if not task.over.is_set()]
            late = self._now().timestamp() - ALIVE_S / 2
            for task in mine:
                if task.saved_at < late and not task.over.is_set():
                    self._save(task)

    def _let_go(self) -> None:
        """Forget the oldest of those that are over; their rows stay."""
        over = [task.id for task in self._tasks.values() if task.over.is_set()]
        for task_id in over[: max(0, len(self._tasks) - KEPT)]:
            del self._tasks[task_id]

    def _run(self, task: Task, work: Callable[[Step], Told]) -> None:
        with self._lock:
            if task.over.is_set():
                return
            task.state = "running"
        self._save(task)
        with self._ending(task):
            task.told = work(lambda done, total: self._step(task, done, total))

    @contextmanager
    def _ending(self, task: Task) -> Iterator[None]:
        """Whatever happens inside becomes the state of the task."""
        state: OrderState = "failed"
        try:
            yield
            state = "done"
        except Stopped:
            state = "interrupted" if self._closed.is_set() else "cancelled"
        except HoldfastError as error:
            task.code, task.reason = error.code, str(error)
        finally:
            with self._lock:
                if state == "failed" and not task.code:
                    task.code, task.reason = "internal", "something broke here; the log of the server says more"
                self._end(task, state)

    def _end(self, task: Task, state: OrderState) -> None:
        if state == "interrupted":
            task.code, task.reason = "interrupted", AGAIN
        task.state, task.ended_at = state, self._now()
        self._save(task)
        task.over.set()

    def _step(self, task: Task, done: int, total: int) -> None:
        task.done, task.total = done, total
        if self._now().timestamp() - task.saved_at >= SAVE_S:
            self._save(task)
        if task.stop.is_set() and (done < total or not total):
            raise Stopped("stopped")


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def _log(ran: Future[None]) -> None:
    """What broke without being one of our errors; its words may quote a message."""
    error = None if ran.cancelled() else ran.exception()
    if error is not None:
        log.error("a task broke: %s", type(error).__name__)
