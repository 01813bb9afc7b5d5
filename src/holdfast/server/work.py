"""Making things again, bringing them up to date, merging, putting away; and how far long work has come."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any

from fastapi import Path, Query, Response
from fastapi.encoders import jsonable_encoder
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse

from ..clock import from_ms
from ..errors import NotFound
from ..memory import Memory
from ..reports import BackfillReport, ConsolidationReport, PruneReport, RebuildReport, Rebuilt
from ..types import Job
from .caller import NAMED, Asked, Caller, Cursor, Limit, Once, Which, Whose, Working
from .reporting import kept
from .reporting import told as reported
from .routing import APP, OPERATOR, USER, Table
from .shapes import BackfillFor, ConsolidateFor, Page, PruneFor, RebuildFor, Work, page
from .tasks import Step, Task
from .tasks import Told as Kept
from .tasks import Whose as Owner

table = Table()
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
    "POST", CHAT + "/rebuild", APP, response_model=Work, status_code=202, dependencies=NAMED,
    responses=_estimated(RebuildReport),
)  # fmt: skip
def rebuilds_create(
    which: Which, asked: Asked, tasks: Working, body: RebuildFor, idempotency_key: Once = None
) -> Response:
    """Make one layer of a range again, keeping the old version; with `dry_run`, say what it would take."""
    span: dict[str, Any] = {"start_seq": body.start_seq, "end_seq": body.end_seq}
    estimate = which.rebuild(body.layer, **span, dry_run=True)
    if body.dry_run:
        return _as_json(estimate)

    def work(step: Step) -> Kept:
        return kept(which.rebuild(body.layer, **span, progress=step))

    owner = _owner(asked, which.id)
    return _accepted(tasks.order("rebuild", owner, work, key=idempotency_key, asked=body.model_dump()))


@table.add("GET", CHAT + "/rebuilds", USER, response_model=Page[Rebuilt], dependencies=NAMED)
def rebuilds_list(which: Which, cursor: Cursor = None, limit: Limit = 100) -> Page[Rebuilt]:
    """What was made again in this conversation, oldest first."""
    return page(which.rebuilds(), lambda made: made.id, cursor, limit)


@table.add("POST", CHAT + "/rebuilds/{rebuild_id}/restore", APP, response_model=RebuildReport, dependencies=NAMED)
def rebuilds_restore(which: Which, rebuild_id: Annotated[str, Path(max_length=200)]) -> RebuildReport:
    """Put back what stood before a rebuild."""
    return which.restore(rebuild_id)


@table.add(
    "POST", ONE + "/backfill", APP, response_model=Work, status_code=202, dependencies=NAMED,
    responses=_estimated(BackfillReport),
)  # fmt: skip
def backfills_create(
    whose: Whose, asked: Asked, tasks: Working, body: BackfillFor, idempotency_key: Once = None
) -> Response:
    """Bring the user's old conversations up to what this memory makes; with `dry_run`, say what it would take."""
    grant = asked.grant
    return _backfill(asked, tasks, body, idempotency_key, {"user": grant.user, "org": grant.org, "bot": grant.bot})


@table.add("POST", "/v1/backfill", OPERATOR, response_model=Work, status_code=202, responses=_estimated(BackfillReport))
def backfills_create_all(asked: Asked, tasks: Working, body: BackfillFor, idempotency_key: Once = None) -> Response:
    """The same for everybody, in every org."""
    return _backfill(asked, tasks, body, idempotency_key, {})


def _backfill(asked: Caller, tasks: Working, body: BackfillFor, key: str | None, whose: dict[str, Any]) -> Response:
    memory, options = asked.memory, body.model_dump(exclude={"dry_run"})
    if body.dry_run:
        return _as_json(memory.backfill(**whose, **options, dry_run=True))

    def work(step: Step) -> Kept:
        return kept(memory.backfill(**whose, **options, progress=lambda so_far: step(so_far.processed, 0)))

    owner = _owner(asked) if whose else Owner(None)
    return _accepted(tasks.order("backfill", owner, work, key=key, asked=body.model_dump()))


@table.add(
    "POST", ONE + "/consolidate", APP, response_model=Work, status_code=202, dependencies=NAMED,
    responses=_estimated(ConsolidationReport),
)  # fmt: skip
def consolidations_create(
    whose: Whose, asked: Asked, tasks: Working, body: ConsolidateFor, idempotency_key: Once = None
) -> Response:
    """Merge what says the same now instead of later; with `dry_run`, say what would be merged without a model."""
    if body.dry_run:
        return _as_json(whose.consolidate(dry_run=True))

    def work(_step: Step) -> Kept:
        return kept(whose.consolidate())

    return _accepted(tasks.order("consolidate", _owner(asked), work, key=idempotency_key))


@table.add("POST", ONE + "/prune", APP, response_model=PruneReport, dependencies=NAMED)
def facts_prune(whose: Whose, body: PruneFor) -> PruneReport:
    """Put away now the weakest facts beyond the most that are kept, instead of later."""
    return whose.prune(faded=body.faded)


@table.add("GET", "/v1/jobs/{job_id}", USER, response_model=Work)
async def jobs_get(
    asked: Asked,
    tasks: Working,
    job_id: JobId,
    wait_s: Annotated[float, Query(ge=0, le=30, description="Answer when it is over, or after so long.")] = 0,
) -> Work:
    """How far a piece of work is, and its report when it is done; for whoever may see whose memory it is about."""
    try:
        task = seen(asked, await run_in_threadpool(tasks.get, job_id))
    except NotFound:
        return await run_in_threadpool(_of_store, asked, job_id)
    until = time.monotonic() + wait_s
    while not task.over.is_set() and time.monotonic() < until:
        await asyncio.sleep(ASK_AGAIN_S if task.here else ASK_OTHERS_S)
        if not task.here:
            task = await run_in_threadpool(tasks.get, job_id)
    return await run_in_threadpool(told, asked.memory, task, asked.grant.subject)


def seen(asked: Caller, task: Task) -> Task:
    """
    The task, when the key that asks opens the memory that it is about.

    Raises:
        NotFound: it does not; nothing is told of what there is.
    """
    grant, key, whose = asked.grant, asked.grant.key, task.whose
    ours = key is not None and (
        key.role == "operator"
        or (
            whose.org == grant.org
            and key.user in (None, whose.user)
            and key.bot in (None, whose.bot)
            and key.subject in (None, whose.subject)
        )
    )
    if not ours:
        raise NotFound(f"there is no job {task.id!r}")
    return task


def told(memory: Memory, task: Task, subject: str | None) -> Work:
    """A task as it is shown, its report as far as *subject* may be seen."""
    whose = task.whose
    return Work(
        id=task.id,
        kind=task.kind,
        state=task.state,
        org=whose.org,
        user=whose.user,
        bot=whose.bot,
        subject=whose.subject,
        conversation=whose.conversation,
        done=task.done,
        total=task.total,
        code=task.code,
        reason=task.reason,
        created_at=task.created_at,
        ended_at=task.ended_at,
        report=reported(memory, task.kind, task.told, whose, subject) if task.state == "done" else None,
    )


def _of_store(asked: Caller, job_id: str) -> Work:
    """A piece of the store's own work, which operators see."""
    if asked.grant.key is None or asked.grant.key.role != "operator":
        raise NotFound(f"there is no job {job_id!r}", hint="what is over is told for a week")
    found: Job | None = next((job for job in asked.memory.jobs() if job.id == job_id), None)
    if found is None:
        raise NotFound(f"there is no job {job_id!r}", hint="what is finished leaves no row")
    whose = {"org": found.org, "user": found.user, "bot": found.bot, "subject": found.subject or None}
    about: dict[str, Any] = {**whose, "conversation": found.conversation or None, "reason": found.reason}
    state: Any = found.state
    return Work(id=found.id, kind=found.kind, state=state, created_at=from_ms(found.created_at_ms), **about)


def _owner(asked: Caller, conversation: str | None = None) -> Owner:
    grant = asked.grant
    return Owner(grant.org, grant.user, grant.bot, grant.subject, conversation)


def _accepted(task: Task) -> Response:
    whose = task.whose
    body = Work(
        id=task.id,
        kind=task.kind,
        state=task.state,
        org=whose.org,
        user=whose.user,
        bot=whose.bot,
        subject=whose.subject,
        conversation=whose.conversation,
        created_at=task.created_at,
    )
    return JSONResponse(jsonable_encoder(body), 202, headers={"Location": f"/v1/jobs/{task.id}"})


def _as_json(report: object) -> Response:
    return JSONResponse(jsonable_encoder(report))
