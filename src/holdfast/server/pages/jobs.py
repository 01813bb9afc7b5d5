"""The page of unfinished jobs: their state, their errors, and buttons to retry, run or cancel them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ...clock import from_ms
from ...errors import NotFound
from ...types import Job
from ..admin import LATE_MS
from ..jobs import TasksDep
from ..routing import OPERATOR, RouteTable
from ..schemas import CallerDep
from .layout import FormDep, format_duration, here, render, see_other

table = RouteTable()
PATH = "/dashboard/jobs"
STATES = ("dead", "waiting", "running", "ready", "cancelled")
MAX_SHOWN = 200
KIND_TITLES = {
    "extract": "Extract facts with rules",
    "read": "Extract facts with the model",
    "episodes": "Extract episodes",
    "again": "Update a summary",
    "chunk": "Summarize complete chunks",
    "consolidate": "Merge duplicates",
    "upkeep": "Archive weak facts",
    "embed": "Compute embeddings",
}
NOTICES = {
    "retried": "The job will run again.",
    "running": "The job runs next.",
    "cancelled": "The job is cancelled.",
    "gone": "This job has finished or no longer exists.",
    "digested": "All due jobs have run.",
}


@table.page("GET", PATH, OPERATOR)
def jobs_page(request: Request, caller: CallerDep, tasks: TasksDep) -> Response:
    """Show unfinished jobs, failed ones first."""
    state, user = request.query_params.get("state", ""), request.query_params.get("user", "")
    now = datetime.now(UTC)
    every = [job for job in caller.memory.jobs() if user in ("", job.user)]
    counts = {name: sum(job.state == name for job in every) for name in STATES}
    late = sum(is_overdue(job, now) for job in every)
    chosen = [job for job in every if state in ("", job.state) or (state == "overdue" and is_overdue(job, now))]
    chosen.sort(key=lambda job: (STATES.index(job.state), job.created_at_ms, job.id))
    ordered = tasks.newest(20)
    return render(
        "jobs.html",
        request,
        title="Jobs",
        notices=NOTICES,
        events="",
        rows=[job_row(job, now) for job in chosen[:MAX_SHOWN]],
        more=max(0, len(chosen) - MAX_SHOWN),
        counts=counts,
        late=late,
        state=state,
        user=user,
        all=len(every),
        tasks=ordered,
        going=any(task.state in ("ready", "running") for task in ordered),
    )


@table.page("POST", PATH, OPERATOR)
def jobs_change(request: Request, caller: CallerDep, tasks: TasksDep, form: FormDep) -> Response:
    """Retry, run or cancel a job, stop a task, or run all due jobs."""
    do, memory = form["do"], caller.memory
    if do == "digest":
        memory.digest(10)
        return see_other(here(request), said="digested")
    calls: dict[str, tuple[Any, str]] = {
        "retry": (memory.retry, "retried"),
        "run": (memory.run_now, "running"),
        "cancel": (memory.cancel, "cancelled"),
        "stop": (tasks.cancel, "cancelled"),
    }
    if do not in calls:
        raise HTTPException(422, f"Unknown action {do}")
    call, said = calls[do]
    try:
        call(form["job"])
    except NotFound:
        said = "gone"
    return see_other(here(request), said=said)


def is_overdue(job: Job, now: datetime) -> bool:
    """Return whether a ready job is late."""
    return job.state == "ready" and job.run_at_ms < now.timestamp() * 1000 - LATE_MS


def job_row(job: Job, now: datetime) -> dict[str, Any]:
    due_s = job.run_at_ms / 1000 - now.timestamp()
    return {
        "job": job,
        "doing": KIND_TITLES.get(job.kind, job.kind),
        "late": is_overdue(job, now),
        "created": from_ms(job.created_at_ms),
        "when": _due_text(job, due_s),
        "lane": " ".join(part for part in (job.kind, job.key) if part),
        "about": job.subject if job.subject not in ("", "self") else "",
    }


def _due_text(job: Job, due_s: float) -> str:
    if job.state == "running":
        return f"running, attempt {job.attempt}"
    if job.state not in ("ready", "waiting"):
        return ""
    return f"due in {format_duration(due_s)}" if due_s > 0 else f"due for {format_duration(-due_s)}"
