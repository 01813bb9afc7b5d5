"""``holdfast jobs`` and ``holdfast digest``: background work listed, and done in the foreground."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from ...clock import from_ms
from ...errors import NotFound
from ...reports import DigestReport
from ...types import Job
from ..models import ModelOptions
from ..options import OnlyUser, StoreOptions
from ..output import BAD, CHANGED, GOOD, QUIET, STRONG, Piece, ProgressBar, Screen, print_json
from ..render import digest_line, print_changes
from ..terminal import INTERRUPTED, CommandError, count, minute, seconds, to_json

if TYPE_CHECKING:
    from ...memory import Memory

POLL_S = 0.2

_STYLES = {"ready": QUIET, "waiting": CHANGED, "running": GOOD, "dead": BAD, "cancelled": CHANGED}
_KINDS = {
    "extract": "extracting facts",
    "read": "extracting facts with the model",
    "chunk": "summarizing",
    "embed": "indexing for search",
    "story": "writing the story",
    "upkeep": "cleaning up",
}


def jobs(
    options: StoreOptions,
    state: Annotated[
        str | None,
        typer.Option("--state", metavar="STATE", help="Only ready, waiting, running, dead or cancelled jobs."),
    ] = None,
    retry: Annotated[
        str | None, typer.Option("--retry", metavar="ID", help="Make a dead or cancelled job ready again.")
    ] = None,
    run: Annotated[
        str | None, typer.Option("--run", metavar="ID", help="Make a job due now that is waiting for a later time.")
    ] = None,
    cancel: Annotated[str | None, typer.Option("--cancel", metavar="ID", help="Cancel a job.")] = None,
    user: OnlyUser = None,
) -> int:
    """
    List unfinished background jobs; retry, run or cancel one.

    A job that failed too often is dead and keeps its reason until it is retried. A job waits while its
    model may not be called: a budget is spent, or a key was refused.

    \b
    Examples:
      holdfast jobs
      holdfast jobs --state dead
      holdfast jobs --user ana
      holdfast jobs --retry job_0123456789abcdefghjk
    """
    with options.open() as memory:
        try:
            if retry:
                memory.retry(retry)
            if run:
                memory.run_now(run)
            if cancel:
                memory.cancel(cancel)
        except NotFound as error:
            raise CommandError(error.code, error.message, hint="`holdfast jobs` lists them") from error
        found = [job for job in memory.jobs(state) if user in (None, job.user)]
    if options.as_json:
        print_json({"retried": retry, "run": run, "cancelled": cancel, "jobs": to_json(found)})
        return 0
    screen = Screen()
    if retry or run:
        screen.line(f"{retry or run} is ready again; `holdfast digest` runs it")
    if cancel:
        screen.line(f"{cancel} is cancelled; `holdfast jobs --retry {cancel}` undoes this")
    if not found:
        of_user = f" of {user}" if user is not None else ""
        screen.line(f"there are no {'unfinished' if state is None else state} jobs{of_user}")
    screen.columns([_row(job) for job in found])
    return 0


def _row(job: Job) -> list[Piece]:
    where = f"{job.user} · {job.conversation}" if job.conversation else job.user
    if job.subject not in ("", "self"):
        where += f" · about {job.subject}"
    state = (job.state, _STYLES[job.state])
    return [(job.id, STRONG), state, _KINDS.get(job.kind, job.kind), where, (_reason(job), QUIET)]


def _reason(job: Job) -> str:
    if job.state == "running":
        return f"held by {job.worker} until {minute(from_ms(job.lease_until_ms))}"
    if job.state == "waiting":
        return job.reason.partition(": ")[2]
    if job.reason.startswith("waiting: "):  # nothing failed: a budget is spent, or the model asked for a pause
        return job.reason
    reason = f"attempt {job.attempt} failed: {job.reason}" if job.reason else ""
    if job.state == "ready" and not _is_due(job):
        return f"due {minute(from_ms(job.run_at_ms))}" + (f"; {reason}" if reason else "")
    return reason or ("due now" if job.state == "ready" else "")


def _is_due(job: Job) -> bool:
    return job.state == "ready" and job.run_at_ms <= datetime.now(UTC).timestamp() * 1000


def digest(options: StoreOptions, model: ModelOptions) -> int:
    """
    Do the background work that is due, for all users in the store: facts, summaries, vectors.

    You can stop at any time with Ctrl-C: finished work is kept, the rest waits for the next run.

    \b
    Examples:
      holdfast digest
      holdfast digest --llm openai:gpt-5-mini
      holdfast digest --json
    """
    began = time.monotonic()
    try:
        with model.open(options) as llm, options.open(llm) as memory:
            report = digest_all(memory, show=not options.as_json)
    except KeyboardInterrupt:
        raise CommandError(
            "interrupted",
            "stopped; finished work is kept",
            hint="`holdfast digest` does the rest",
            exit_code=INTERRUPTED,
        ) from None
    if options.as_json:
        print_json(to_json(report))
    else:
        screen = Screen()
        if not (report.jobs or report.failed or report.waiting):
            screen.line("there is no work due")
        else:
            print_changes(screen, report.changes)
            screen.line(*digest_line(report), (f"   {seconds(time.monotonic() - began)}", QUIET))
    return raise_if_failed(report)


def digest_all(memory: Memory, *, show: bool) -> DigestReport:
    """
    Do everything that is due, and wait for jobs that another process holds now.

    A worker that was killed holds its job until its lease ends, at most a minute later; then the job is done here.
    """
    held: list[Job] = []
    indexed: list[float] = []
    memory.admin.observe(lambda what, of, amount: indexed.append(amount) if what == "indexed" else None)
    with ProgressBar("Learning", show=show, watch=lambda: _held_by(held) or _current_work(memory, round(sum(indexed)))):
        report = memory.digest()
        first = {(job.id, job.fence) for job in memory.jobs("running")}
        while first:
            held = [job for job in memory.jobs("running") if (job.id, job.fence) in first]
            if not held:
                break
            time.sleep(POLL_S)
            report += memory.digest()
    return report


def raise_if_failed(report: DigestReport) -> int:
    """
    Return 0 when no job failed.

    Raises:
        CommandError: some did; they run again later.
    """
    if report.failed:
        raise CommandError(
            "jobs-failed",
            f"{count(report.failed, 'job')} failed",
            hint="`holdfast jobs` shows why, and when they run again",
        )
    return 0


def _current_work(memory: Memory, indexed: int) -> str:
    """Say what is done now; the *indexed* texts show that a single long job goes on."""
    found = memory.jobs()
    running = sorted({_KINDS.get(job.kind, job.kind) for job in found if job.state == "running"})
    due = sum(_is_due(job) for job in found)
    words = ", ".join(running) or "waiting"
    if indexed and _KINDS["embed"] in running:
        words += f" ({count(indexed, 'text')} done)"
    return f"{words}, {count(due, 'job')} to go" if due else words


def _held_by(held: list[Job]) -> str:
    if not held:
        return ""
    until = from_ms(max(job.lease_until_ms for job in held))
    return f"waiting for jobs of process {held[0].worker.split('-')[0]}, until {until:%H:%M:%S} UTC at most"
