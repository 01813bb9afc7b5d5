"""The page of unfinished jobs: their state, their errors, and buttons to retry, run or cancel them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ...clock import from_ms
from ...errors import NotFound
from ...memory import Memory
from ...text import dataclass
from ...types import Job
from ..admin import LATE_MS
from ..jobs import TasksDep
from ..routing import OPERATOR, RouteTable
from ..schemas import CallerDep
from .home import Plot, counts_of, plot_of_days, sum_of
from .layout import FormDep, format_duration, here, list_file, render, see_other, wanted_file
from .texts import mark, translate

table = RouteTable()
PATH = "/dashboard/jobs"
STATES = ("dead", "waiting", "running", "ready", "cancelled")
MAX_SHOWN = 20  # of the jobs of a group
AT_ONCE = 16
HISTORY_DAYS = 14
FINISHED_READ = 5_000  # of the last hour, for the pace
KNOWN_REASON = mark("The reason says what happened, and the server's log when. Repair the cause, then retry all.")
UNKNOWN_REASON = mark(
    "An error that Holdfast does not know; the reason is its class, and the server's log says when it came. "
    "Repair the cause, then retry all."
)
# What to do, by words of the reason.
ADVICE = (
    (
        ("budget",),
        mark(
            "The budget is spent. Raise it in the settings, or wait until it renews; the jobs then run by themselves."
        ),
    ),
    (
        ("key", "unauthorized", "401", "403", "auth"),
        mark("The provider refuses the key. Set a valid one, then retry all."),
    ),
    (
        ("rate", "429", "too many", "quota"),
        mark("The provider limits the rate. Waiting jobs are tried again by themselves; retry those that have failed."),
    ),
    (
        ("connect", "unreachable", "timed out", "timeout", "refused", "503", "502", "unavailable"),
        mark("The provider cannot be reached. Check its address and the network; then retry all."),
    ),
    (
        ("error of its own", "overloaded", "status 5", "broke off"),
        mark(
            "The model's server failed while it answered. Look at its log or its status page; once it answers, retry all."
        ),
    ),
    (("erase", "opted out", "paused"), mark("The user does not want this. Cancel these jobs.")),
)
KIND_TITLES = {
    "extract": mark("Extract facts with rules"),
    "read": mark("Extract facts with the model"),
    "episodes": mark("Extract episodes"),
    "again": mark("Update a summary"),
    "chunk": mark("Summarize complete chunks"),
    "consolidate": mark("Merge duplicates"),
    "upkeep": mark("Archive weak facts"),
    "embed": mark("Compute embeddings"),
}
NOTICES = {
    "retried": mark("The job will run again."),
    "running": mark("The job runs next."),
    "cancelled": mark("The job is cancelled."),
    "gone": mark("This job has finished or no longer exists."),
    "all-retried": mark("These jobs will run again."),
    "all-cancelled": mark("These jobs are cancelled."),
    "all-running": mark("These jobs run next."),
    "digested": mark("All due jobs have run."),
}


@table.page("GET", PATH, OPERATOR)
def jobs_page(request: Request, caller: CallerDep, tasks: TasksDep) -> Response:
    """Show unfinished jobs, failed ones first."""
    state, user = request.query_params.get("state", ""), request.query_params.get("user", "")
    now = datetime.now(UTC)
    if kind := wanted_file(request):
        rows = (
            asdict(job) | {"created_at": from_ms(job.created_at_ms)}
            for job in _matching_jobs(caller.memory, state, user)
        )
        heads = ("id", "state", "kind", "org", "user", "bot", "conversation", "attempt", "reason", "created_at")
        return list_file(kind, "jobs", heads, rows)
    every = [job for job in caller.memory.jobs() if user in ("", job.user)]
    counts = {name: sum(job.state == name for job in every) for name in STATES}
    late = sum(is_overdue(job, now) for job in every)
    chosen = [job for job in every if state in ("", job.state) or (state == "overdue" and is_overdue(job, now))]
    chosen.sort(key=lambda job: (STATES.index(job.state), job.created_at_ms, job.id))
    ordered = tasks.newest(20)
    pace: JobPace | None = counts_of(request).get("pace of jobs", lambda: job_pace(caller.memory))
    groups = job_groups(chosen)
    failing = [job for job in every if job.state in ("ready", "waiting") and job.reason]
    return render(
        "jobs.html",
        request,
        title=translate("Jobs"),
        notices=NOTICES,
        events="",
        groups=groups,
        most=MAX_SHOWN,
        row=lambda job: job_row(job, now),
        pace=pace,
        left=pace.time_left(sum(job.state in ("ready", "running") for job in every)) if pace else "",
        failing=len(failing),
        failing_because=job_groups(failing)[0] if failing else None,
        counts=counts,
        late=late,
        state=state,
        user=user,
        all=len(every),
        tasks=ordered,
        going=any(task.state in ("ready", "running") for task in ordered),
    )


@dataclass(frozen=True, slots=True)
class JobPace:
    """How many jobs were done, and failed, in the last hour and a day."""

    done: int
    failed: int
    history: Plot

    def time_left(self, waiting: int) -> str:
        """Return how long so many jobs take at the pace of the last hour; empty where nothing waits or nothing was done."""
        return format_duration(3600 * waiting / self.done) if waiting and self.done else ""


def job_pace(memory: Memory) -> JobPace:
    """Count what was done and what failed; it reads the events of all users."""
    now = datetime.now(UTC)
    hour_ms = int((now - timedelta(hours=1)).timestamp() * 1000)
    recent = (memory.admin.newest_events(kind, days=1, limit=FINISHED_READ) for kind in ("job.done", "job.failed"))
    done, failed = (sum(one.at_ms >= hour_ms for one in events) for events in recent)
    today: date = now.date()
    activity = memory.admin.activity(since=today - timedelta(days=HISTORY_DAYS - 1))
    series = {mark("Done"): sum_of(activity, "job.done"), mark("Failed attempts"): sum_of(activity, "job.failed")}
    return JobPace(done, failed, plot_of_days("jobs-a-day", mark("Jobs a day"), series, today, HISTORY_DAYS))


def _matching_jobs(memory: Memory, state: str, user: str) -> Iterator[Job]:
    now, after = datetime.now(UTC), None
    while page := memory.jobs(limit=500, after=after):
        for job in page:
            if user in ("", job.user) and (state in ("", job.state) or (state == "overdue" and is_overdue(job, now))):
                yield job
        after = page[-1].id


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
    if do.removeprefix("all-") not in calls:
        raise HTTPException(422, translate("Unknown action {name}", name=do))
    call, said = calls[do.removeprefix("all-")]
    if do.startswith("all-"):
        named = {name: form[name] for name in ("state", "kind", "reason")}
        overdue, now = request.query_params.get("state") == "overdue", datetime.now(UTC)
        meant = [job for job in memory.jobs(named["state"]) if group_key(job) == tuple(named.values())]
        _each(call, [job.id for job in meant if not overdue or is_overdue(job, now)])
        return see_other(here(request), said=f"all-{said}")
    try:
        call(form["job"])
    except NotFound:
        said = "gone"
    return see_other(here(request), said=said)


def _each(call: Callable[[str], object], ids: Iterable[str]) -> None:
    """Call *call* with each id, several at once, so that their writes share commits; jobs that finished are skipped."""

    def one(job_id: str) -> None:
        try:
            call(job_id)
        except NotFound:
            pass

    with ThreadPoolExecutor(AT_ONCE, "jobs-page") as pool:
        for _ in pool.map(one, ids):
            pass


@dataclass(slots=True)
class JobGroup:
    """Jobs of one kind in one state with one reason, and what can be done about it."""

    state: str
    kind: str
    reason: str
    jobs: list[Job] = field(default_factory=list)

    @property
    def doing(self) -> str:
        """The title of the kind."""
        return KIND_TITLES.get(self.kind, self.kind)

    @property
    def advice(self) -> str:
        """Advice on the reason; empty where nothing needs to be done."""
        if not self.reason:
            return ""
        words, other = self.reason.casefold(), KNOWN_REASON if ": " in self.reason else UNKNOWN_REASON
        return next((text for marks, text in ADVICE if any(mark in words for mark in marks)), other)


def group_key(job: Job) -> tuple[str, str, str]:
    return (job.state, job.kind, job.reason)


def job_groups(jobs: Iterable[Job]) -> list[JobGroup]:
    """Group jobs by state, kind and reason: failed ones first, then the largest group."""
    found: dict[tuple[str, str, str], JobGroup] = {}
    for job in jobs:
        found.setdefault(group_key(job), JobGroup(*group_key(job))).jobs.append(job)
    return sorted(found.values(), key=lambda one: (STATES.index(one.state), -len(one.jobs), one.kind, one.reason))


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
        return translate("running, attempt {number}", number=job.attempt)
    if job.state not in ("ready", "waiting"):
        return ""
    if due_s > 0:
        return translate("due in {time}", time=format_duration(due_s))
    return translate("due for {time}", time=format_duration(-due_s))
