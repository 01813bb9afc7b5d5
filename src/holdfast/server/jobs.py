"""
Long work that requests start: it runs in threads of one process, and every process can report its progress.

Each task is a row, saved when it changes and every few seconds besides.  Its result is kept as ids and figures and loaded
from the store when a client asks, so that nothing which was erased meanwhile is shown.  When the process ends, its tasks
are interrupted, each after the range that it is in; a task of a process that died counts as interrupted after a while.
What was made stays made, and the same request does the rest.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import asdict, field
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request, Response
from fastapi.encoders import jsonable_encoder
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse

from ..admin import Operations
from ..clock import from_ms, new_id, to_ms
from ..conversation import Conversation, check_rebuild
from ..errors import Conflict, HoldfastError, KeyReused, NotFound, StoreError
from ..memory import Memory
from ..reports import (
    BackfillReport,
    ConsolidationReport,
    Merged,
    Operation,
    OperationState,
    PruneReport,
    RebuildReport,
    Rebuilt,
)
from ..text import dataclass
from ..types import Fact, Role, Summary
from ..user import User
from .routing import APP, OPERATOR, USER, WHOLE_USER, RouteTable
from .schemas import (
    BackfillRequest,
    Caller,
    CallerDep,
    ConsolidateRequest,
    ConversationDep,
    Cursor,
    IdempotencyKey,
    JobStatus,
    Limit,
    Page,
    PruneRequest,
    RebuildRequest,
    RebuiltDep,
    UserDep,
    paginate,
)

log = logging.getLogger("holdfast")

OnProgress = Callable[[int, int], None]
"""Called with how much is done and how much there is; 0 when that is unknown."""
ReportData = Mapping[str, Any] | None
"""The report as figures and ids."""

AT_ONCE = 2
MOST_OPEN = 100
MOST_OPEN_OF_USER = 2  # that a key of the user may have open; others would wait for more
KEPT = 1_000  # in this process's memory; the rows are kept for a week
SAVE_S = 1.0  # how often the progress is saved
ALIVE_S = 5.0  # how often a row without progress is saved
SILENT_S = 20.0  # a row that was not saved for so long is interrupted
INTERRUPTED_REASON = (
    "the server ended before it was done; what it made stays: send the same request again, and the rest is done"
)


class WorkStopped(HoldfastError):
    """The task was cancelled, or the server is shutting down."""

    code = "stopped"


@dataclass(frozen=True, slots=True)
class Owner:
    """The memory that a task works on; ``None`` means all orgs, users, assistants or subjects."""

    org: str | None
    user: str | None = None
    bot: str | None = None
    subject: str | None = None
    conversation: str | None = None


@dataclass(slots=True)
class Task:
    """One piece of long work; ``here``: this process runs it."""

    id: str
    kind: str
    owner: Owner
    created_at: datetime
    state: OperationState = "ready"
    done: int = 0
    total: int = 0
    reason: str = ""
    code: str = ""
    ended_at: datetime | None = None
    report: ReportData = field(default=None, repr=False)
    here: bool = True
    once: str = field(default="", repr=False)
    request_digest: str = field(default="", repr=False)
    saved_at: float = field(default=0.0, repr=False)
    stop: threading.Event = field(default_factory=threading.Event, repr=False)
    over: threading.Event = field(default_factory=threading.Event, repr=False)


class Tasks:
    """The long work of one server."""

    def __init__(self, operations: Operations, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._operations, self._now = operations, now
        self._lock = threading.Lock()
        self._tasks: OrderedDict[str, Task] = OrderedDict()
        self._threads: ThreadPoolExecutor | None = None
        self._closed = threading.Event()

    def order(
        self,
        kind: str,
        owner: Owner,
        work: Callable[[OnProgress], ReportData],
        *,
        key: str | None = None,
        request: Mapping[str, Any] | None = None,
        role: Role | None = None,
    ) -> Task:
        """
        Run *work* in the background; it reports progress by the function it is given, and returns its report data.

        Args:
            kind: what it is: ``rebuild``, ``backfill``, ``consolidate``.
            owner: the memory that it works on; others do not see it.
            work: raises `HoldfastError` when it cannot be done.
            key: the caller's idempotency key; the same key names the same task, unless that was interrupted.
            request: the body of the request; another one under the same key is refused.
            role: that of the caller's key; a user may have few open at a time.

        Raises:
            KeyReused: the key was used for something else.
            Conflict: too much is waiting already.
        """
        digest = _digest([kind, request])
        once = (
            "" if key is None else _digest([owner.org, owner.user, owner.bot, owner.subject, owner.conversation, key])
        )
        with self._lock:
            now = self._now()
            if once and (before := self._find_repeated(once, owner)) is not None:
                if before.request_digest != digest:
                    raise KeyReused(f"idempotency key {key!r} was used for another order", hint="use a new key")
                return before
            if sum(not task.over.is_set() for task in self._tasks.values()) >= MOST_OPEN:
                raise Conflict(f"{MOST_OPEN} orders wait already", hint="come again when some are done")
            mine = [
                task for task in self._tasks.values() if (task.owner.org, task.owner.user) == (owner.org, owner.user)
            ]
            if role == "user" and sum(not task.over.is_set() for task in mine) >= MOST_OPEN_OF_USER:
                raise Conflict(
                    f"{MOST_OPEN_OF_USER} of your jobs are not done yet", hint="wait until one is done, or cancel it"
                )
            task = Task(new_id("task", to_ms(now)), kind, owner, now, once=once, request_digest=digest)
            known = self._operations.add(self._row(task))
            if known.id != task.id:
                return self._from_row(known)  # another process received the same request just now
            self._tasks[task.id] = task
            self._drop_finished()
            if self._threads is None:
                self._threads = ThreadPoolExecutor(AT_ONCE, "holdfast-task")
                threading.Thread(target=self._save_periodically, name="holdfast-task-alive", daemon=True).start()
            context = copy_context()  # keeps the actor of the request for the audit log
            self._threads.submit(context.run, self._run, task, work).add_done_callback(_log)
        return task

    def get(self, task_id: str) -> Task:
        """
        Return one task, whichever process runs it.

        Raises:
            NotFound: it was never ordered, or is on record no more.
        """
        with self._lock:
            task = self._tasks.get(task_id)
        if task is not None:
            return task
        row = self._operations.get(task_id)
        if row is None:
            raise NotFound(f"there is no job {task_id!r}", hint="finished work is listed for a week")
        return self._from_row(row)

    def of(self, owner: Owner) -> list[Task]:
        """List the tasks of exactly this memory, the newest first."""
        user = (owner.org or "default", owner.user or "", owner.bot or "")
        found = (self._from_row(row) for row in self._operations.newest(MOST_OPEN, of=user))
        return [task for task in found if task.owner == owner]

    def newest(self, limit: int) -> list[Task]:
        """List at most *limit* tasks of all users, the newest first."""
        return [self._from_row(row) for row in self._operations.newest(limit)]

    def cancel(self, task_id: str) -> None:
        """Cancel a task before its next range, whichever process runs it; what it made stays."""
        task = self.get(task_id)
        if not task.here:
            self._operations.stop(task_id)
            return
        task.stop.set()
        with self._lock:
            if task.state == "ready":
                self._end(task, "cancelled")

    def close(self) -> None:
        """Stop every task after the range that it is in."""
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

    def _find_repeated(self, once: str, owner: Owner) -> Task | None:
        """Return the task that has this idempotency key, unless it was interrupted."""
        user = (owner.org or "default", owner.user or "", owner.bot or "")
        found = [task for task in self._tasks.values() if task.once == once]
        found = found or [self._from_row(row) for row in self._operations.newest(KEPT, of=user) if row.once == once]
        return next((task for task in found if task.state != "interrupted"), None)

    def _from_row(self, row: Operation) -> Task:
        """Turn a row into a task; one of another process that is silent counts as interrupted."""
        mine = self._tasks.get(row.id)
        if mine is not None:
            return mine
        open_, silent = row.ended_ms is None, to_ms(self._now()) - row.seen_ms > SILENT_S * 1000
        names = (row.org if row.user else None, row.user, row.bot, row.subject, row.conversation)
        task = Task(
            row.id,
            row.kind,
            Owner(*(name or None for name in names)),
            from_ms(row.created_ms),
            "interrupted" if open_ and silent else row.state,
            row.done,
            row.total,
            INTERRUPTED_REASON if open_ and silent else row.reason,
            "interrupted" if open_ and silent else row.code,
            from_ms(row.seen_ms if row.ended_ms is None else row.ended_ms) if silent or not open_ else None,
            row.report,
            here=False,
            request_digest=row.asked,
        )
        if not open_ or silent:
            task.over.set()
        return task

    def _row(self, task: Task) -> Operation:
        owner = task.owner
        return Operation(
            org=owner.org or "default",
            user=owner.user or "",
            bot=owner.bot or "",
            subject=owner.subject or "",
            conversation=owner.conversation or "",
            id=task.id,
            kind=task.kind,
            state=task.state,
            done=task.done,
            total=task.total,
            code=task.code,
            reason=task.reason,
            report=task.report,
            once=task.once,
            asked=task.request_digest,
            stop=task.stop.is_set(),
            created_ms=to_ms(task.created_at),
            seen_ms=to_ms(self._now()),
            ended_ms=None if task.ended_at is None else to_ms(task.ended_at),
        )

    def _save(self, task: Task) -> None:
        """Save the task and learn whether another process cancelled it; a failing store is tried again later."""
        task.saved_at = self._now().timestamp()
        with suppress(StoreError):
            if self._operations.save(self._row(task)):
                task.stop.set()

    def _save_periodically(self) -> None:
        while not self._closed.wait(ALIVE_S):
            with self._lock:
                mine = [task for task in self._tasks.values() if not task.over.is_set()]
            late = self._now().timestamp() - ALIVE_S / 2
            for task in mine:
                if task.saved_at < late and not task.over.is_set():
                    self._save(task)

    def _drop_finished(self) -> None:
        """Forget the oldest finished tasks; their rows stay."""
        over = [task.id for task in self._tasks.values() if task.over.is_set()]
        for task_id in over[: max(0, len(self._tasks) - KEPT)]:
            del self._tasks[task_id]

    def _run(self, task: Task, work: Callable[[OnProgress], ReportData]) -> None:
        with self._lock:
            if task.over.is_set():
                return
            task.state = "running"
        self._save(task)
        with self._ending(task):
            report = work(lambda done, total: self._step(task, done, total))
            task.report = report
            if task.kind == "rebuild" and report and report.get("errors") and not report["ranges"]:
                raise NothingRebuilt(report["errors"][0])

    @contextmanager
    def _ending(self, task: Task) -> Iterator[None]:
        """Record how the work inside ends as the state of the task."""
        state: OperationState = "failed"
        try:
            yield
            state = "done"
        except WorkStopped:
            state = "interrupted" if self._closed.is_set() else "cancelled"
        except HoldfastError as error:
            task.code, task.reason = error.code, str(error)
        finally:
            with self._lock:
                if state == "failed" and not task.code:
                    task.code, task.reason = "internal", "something broke here; the log of the server says more"
                self._end(task, state)

    def _end(self, task: Task, state: OperationState) -> None:
        if state == "interrupted":
            task.code, task.reason = "interrupted", INTERRUPTED_REASON
        task.state, task.ended_at = state, self._now()
        self._save(task)
        task.over.set()

    def _step(self, task: Task, done: int, total: int) -> None:
        task.done, task.total = done, total
        if self._now().timestamp() - task.saved_at >= SAVE_S:
            self._save(task)
        if task.stop.is_set() and (done < total or not total):
            raise WorkStopped("stopped")


class NothingRebuilt(HoldfastError):
    """A rebuild whose every range failed: all is as it was."""

    code = "not-rebuilt"


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def _log(ran: Future[None]) -> None:
    """Log an unexpected error by its type; its text may quote a message."""
    error = None if ran.cancelled() else ran.exception()
    if error is not None:
        log.error("a task broke: %s", type(error).__name__)


async def get_tasks(request: Request) -> Tasks:
    """Return the long work of this server."""
    found: Tasks = request.app.state.tasks
    return found


TasksDep = Annotated[Tasks, Depends(get_tasks)]


WorkReport = RebuildReport | BackfillReport | ConsolidationReport


def report_data(report: WorkReport) -> ReportData:
    """Reduce a report to figures and ids, for the record; it quotes no message."""
    if isinstance(report, ConsolidationReport):
        merged = [[one.fact.id, [fact.id for fact in one.sources]] for one in report.merged]
        return {"merged": merged, "refused": list(report.refused), "tokens": report.tokens}
    if isinstance(report, RebuildReport):
        figures = {"calls": report.calls, "tokens": report.tokens, "cost": report.cost, "ranges": report.ranges}
        place = {"id": report.id, "start_seq": report.start_seq, "end_seq": report.end_seq}
        made = {"before": [one.id for one in report.before], "after": [one.id for one in report.after]}
        made["active"] = [one.id for one in report.before if isinstance(one, Fact) and one.live]
        return {"layer": report.layer, "errors": list(report.errors), **figures, **place, **made}
    return asdict(report)


def load_report(memory: Memory, kind: str, report: ReportData, owner: Owner, subject: str | None) -> WorkReport | None:
    """Load a recorded report with what still exists of what it names, as far as *subject* may see it."""
    if report is None or kind not in ("rebuild", "backfill", "consolidate"):
        return None
    user = None
    if owner.user is not None:
        user = memory.user(owner.user, org=owner.org or "default", bot=owner.bot or "default", subject=subject)
    if kind == "backfill":
        return BackfillReport(**{**report, "reasons": tuple(report["reasons"])})
    if kind == "consolidate":
        return _consolidated(report, user)
    there: dict[str, Summary | Fact] = {}
    if report["before"] or report["after"]:
        there = _there(memory, report, owner, user)
    before, after = (tuple(there[name] for name in report[which] if name in there) for which in ("before", "after"))
    rest = {name: value for name, value in report.items() if name not in ("before", "after", "active", "errors")}
    return RebuildReport(**rest, before=before, after=after, errors=tuple(report["errors"]))


def _there(memory: Memory, report: Mapping[str, Any], owner: Owner, user: User | None) -> dict[str, Summary | Fact]:
    found: dict[str, Summary | Fact] = {}
    named = {*report["before"], *report["after"]}
    if owner.user is not None and report["layer"] != "facts":
        place: Any = {"org": owner.org or "default", "bot": owner.bot or "default", "subject": owner.subject}
        chat = memory.conversation(owner.conversation, user=owner.user, **place)
        found |= {summary.id: summary for summary in chat.summaries(live=False) if summary.id in named}
    return found | {name: fact for name in named - found.keys() if (fact := _fact(user, name)) is not None}


def _fact(user: User | None, fact_id: str) -> Fact | None:
    try:
        return None if user is None else user.fact(fact_id)
    except NotFound:
        return None


def _consolidated(report: Mapping[str, Any], user: User | None) -> ConsolidationReport:
    merged = []
    for fact_id, sources in report["merged"]:
        whole = _fact(user, fact_id)
        if whole is not None:
            parts = (_fact(user, source) for source in sources)
            merged.append(Merged(whole, tuple(fact for fact in parts if fact is not None)))
    return ConsolidationReport(tuple(merged), tuple(report["refused"]), report["tokens"])


table = RouteTable()
ONE = "/v1/users/{user:name}"
CHAT = ONE + "/conversations/{conversation:name}"
JobId = Annotated[str, Path(max_length=200, description="The job's id.")]
ASK_AGAIN_S = 0.05
ASK_OTHERS_S = 0.5

ACCEPTED: dict[int | str, dict[str, Any]] = {
    202: {"headers": {"Location": {"description": "Where to ask how far it is.", "schema": {"type": "string"}}}}
}


def _estimated(model: Any) -> dict[int | str, dict[str, Any]]:
    return ACCEPTED | {200: {"model": model, "description": "With `dry_run`: what it would take"}}


@table.add(
    "POST",
    CHAT + "/rebuild",
    WHOLE_USER,
    door=Conversation.rebuild,
    response_model=JobStatus,
    status_code=202,
    responses=_estimated(RebuildReport),
)
def rebuilds_create(
    chat: RebuiltDep,
    caller: CallerDep,
    tasks: TasksDep,
    body: RebuildRequest,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Rebuild one layer of a range, keeping the old version; with `dry_run`, estimate it."""
    span: dict[str, Any] = {"start_seq": body.start_seq, "end_seq": body.end_seq}
    if body.dry_run:
        return _as_json(chat.rebuild(body.layer, **span, dry_run=True))
    check_rebuild(chat, body.layer, **span)

    def work(step: OnProgress) -> ReportData:
        return report_data(chat.rebuild(body.layer, **span, progress=step))

    owner = _owner(caller, chat.id)
    return _accepted(
        tasks.order("rebuild", owner, work, key=idempotency_key, request=body.model_dump(), role=caller.role)
    )


@table.add("GET", CHAT + "/rebuilds", USER, door=Conversation.rebuilds)
def rebuilds_list(chat: ConversationDep, cursor: Cursor = None, limit: Limit = 100) -> Page[Rebuilt]:
    """List the rebuilds of this conversation, oldest first."""
    return paginate(chat.rebuilds(), lambda made: made.id, cursor, limit)


@table.add("POST", CHAT + "/rebuilds/{rebuild_id}/restore", WHOLE_USER, door=Conversation.restore)
def rebuilds_restore(chat: RebuiltDep, rebuild_id: Annotated[str, Path(max_length=200)]) -> RebuildReport:
    """Revert a rebuild."""
    return chat.restore(rebuild_id)


@table.add(
    "POST", ONE + "/backfill", APP, response_model=JobStatus, status_code=202, responses=_estimated(BackfillReport)
)
def backfills_create(
    user: UserDep, caller: CallerDep, tasks: TasksDep, body: BackfillRequest, idempotency_key: IdempotencyKey = None
) -> Response:
    """Bring the user's old conversations up to what this memory makes; with `dry_run`, estimate it."""
    grant = caller.grant
    return _backfill(caller, tasks, body, idempotency_key, {"user": grant.user, "org": grant.org, "bot": grant.bot})


@table.add(
    "POST", "/v1/backfill", OPERATOR, response_model=JobStatus, status_code=202, responses=_estimated(BackfillReport)
)
def backfills_create_all(
    caller: CallerDep, tasks: TasksDep, body: BackfillRequest, idempotency_key: IdempotencyKey = None
) -> Response:
    """Bring the conversations of all users in all orgs up to date."""
    return _backfill(caller, tasks, body, idempotency_key, {})


def _backfill(
    caller: Caller, tasks: TasksDep, body: BackfillRequest, key: str | None, scope: dict[str, Any]
) -> Response:
    memory, options = caller.memory, body.model_dump(exclude={"dry_run"})
    if body.dry_run:
        return _as_json(memory.backfill(**scope, **options, dry_run=True))

    def work(step: OnProgress) -> ReportData:
        return report_data(memory.backfill(**scope, **options, progress=lambda so_far: step(so_far.processed, 0)))

    owner = _owner(caller) if scope else Owner(None)
    return _accepted(tasks.order("backfill", owner, work, key=key, request=body.model_dump()))


@table.add(
    "POST",
    ONE + "/consolidate",
    APP,
    door=User.consolidate,
    response_model=JobStatus,
    status_code=202,
    responses=_estimated(ConsolidationReport),
)
def consolidations_create(
    user: UserDep, caller: CallerDep, tasks: TasksDep, body: ConsolidateRequest, idempotency_key: IdempotencyKey = None
) -> Response:
    """Merge facts that say the same now; with `dry_run`, list what would be merged without a model."""
    if body.dry_run:
        return _as_json(user.consolidate(dry_run=True))

    def work(_step: OnProgress) -> ReportData:
        return report_data(user.consolidate())

    return _accepted(tasks.order("consolidate", _owner(caller), work, key=idempotency_key, role=caller.role))


@table.add("POST", ONE + "/prune", APP, door=User.prune, repeatable=True)
def facts_prune(user: UserDep, body: PruneRequest) -> PruneReport:
    """Archive the weakest facts beyond the most that are kept, now instead of later."""
    return user.prune(faded=body.faded)


@table.add("GET", "/v1/jobs/{job_id}", USER)
async def jobs_get(
    caller: CallerDep,
    tasks: TasksDep,
    job_id: JobId,
    wait_s: Annotated[float, Query(ge=0, le=30, description="Answer when it is over, or after so long.")] = 0,
) -> JobStatus:
    """Return the progress of a job, and its report when it is done, if the key opens the memory it is about."""
    try:
        task = visible_task(caller, await run_in_threadpool(tasks.get, job_id))
    except NotFound:
        return await run_in_threadpool(_store_job, caller, job_id)
    until = time.monotonic() + wait_s
    while not task.over.is_set() and time.monotonic() < until:
        await asyncio.sleep(ASK_AGAIN_S if task.here else ASK_OTHERS_S)
        if not task.here:
            task = await run_in_threadpool(tasks.get, job_id)
    return await run_in_threadpool(job_status, caller.memory, task, caller.grant.subject)


def visible_task(caller: Caller, task: Task) -> Task:
    """
    Return the task if the caller's key opens the memory that it is about.

    Raises:
        NotFound: it does not; the answer does not reveal whether there is such a task.
    """
    grant, key, owner = caller.grant, caller.grant.key, task.owner
    ours = key is not None and (
        key.role == "operator"
        or (
            owner.org == grant.org
            and key.user in (None, owner.user)
            and key.bot in (None, owner.bot)
            and key.subject in (None, owner.subject)
        )
    )
    if not ours:
        raise NotFound(f"there is no job {task.id!r}")
    return task


def job_status(memory: Memory, task: Task, subject: str | None) -> JobStatus:
    """Describe a task, with its report as far as *subject* may see it."""
    owner = task.owner
    return JobStatus(
        id=task.id,
        kind=task.kind,
        state=task.state,
        org=owner.org,
        user=owner.user,
        bot=owner.bot,
        subject=owner.subject,
        conversation=owner.conversation,
        done=task.done,
        total=task.total,
        code=task.code,
        reason=task.reason,
        created_at=task.created_at,
        ended_at=task.ended_at,
        report=load_report(memory, task.kind, task.report, owner, subject) if task.state == "done" else None,
    )


def _store_job(caller: Caller, job_id: str) -> JobStatus:
    """Describe a job of the store, which only operators see."""
    if caller.grant.key is None or caller.grant.key.role != "operator":
        raise NotFound(f"there is no job {job_id!r}", hint="finished work is listed for a week")
    found = caller.memory.admin.job(job_id)
    owner = {"org": found.org, "user": found.user, "bot": found.bot, "subject": found.subject or None}
    about: dict[str, Any] = {**owner, "conversation": found.conversation or None, "reason": found.reason}
    state: Any = found.state
    return JobStatus(id=found.id, kind=found.kind, state=state, created_at=from_ms(found.created_at_ms), **about)


def _owner(caller: Caller, conversation: str | None = None) -> Owner:
    grant = caller.grant
    return Owner(grant.org, grant.user, grant.bot, grant.subject, conversation)


def _accepted(task: Task) -> Response:
    owner = task.owner
    body = JobStatus(
        id=task.id,
        kind=task.kind,
        state=task.state,
        org=owner.org,
        user=owner.user,
        bot=owner.bot,
        subject=owner.subject,
        conversation=owner.conversation,
        created_at=task.created_at,
    )
    return JSONResponse(jsonable_encoder(body), 202, headers={"Location": f"/v1/jobs/{task.id}"})


def _as_json(report: object) -> Response:
    return JSONResponse(jsonable_encoder(report))
