"""``holdfast jobs``."""

from __future__ import annotations

from typing import Annotated

import typer

from ..clock import from_ms
from ..errors import NotFound
from ..types import Job
from .options import STORE, Json, Store, commands, reading
from .plain import CommandError
from .screen import BAD, CHANGED, GOOD, QUIET, STRONG, Screen, print_json
from .values import plain
from .words import minute
from .work import DOING, due

app = commands()

_STYLES = {"ready": QUIET, "waiting": CHANGED, "running": GOOD, "dead": BAD, "cancelled": CHANGED}


@app.command()
def jobs(
    state: Annotated[
        str | None,
        typer.Option("--state", metavar="STATE", help="Only ready, waiting, running, dead or cancelled ones."),
    ] = None,
    retry: Annotated[
        str | None, typer.Option("--retry", metavar="ID", help="Make a dead or cancelled job ready again.")
    ] = None,
    run: Annotated[
        str | None, typer.Option("--run", metavar="ID", help="Make a job due now that is waiting for a later time.")
    ] = None,
    cancel: Annotated[str | None, typer.Option("--cancel", metavar="ID", help="Keep a job from running.")] = None,
    user: Annotated[
        str | None, typer.Option("--user", "-u", metavar="NAME", help="Only those of this user (default: everybody's).")
    ] = None,
    store: Store = STORE,
    as_json: Json = False,
) -> int:
    """
    List background work that is not finished; retry or cancel a job.

    A job that failed too often is dead, and stays with its reason until it is retried. One whose model may not be asked
    waits: a budget is spent, or a key is refused.

    \b
    Examples:
      holdfast jobs
      holdfast jobs --state dead
      holdfast jobs --user ana
      holdfast jobs --retry job_0123456789abcdefghjk
    """
    with reading(store) as memory:
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
    if as_json:
        print_json({"retried": retry, "put_forward": run, "cancelled": cancel, "jobs": plain(found)})
        return 0
    _show(Screen(), found, retry or run, cancel, state, user)
    return 0


def _show(
    screen: Screen, found: list[Job], ready: str | None, cancel: str | None, state: str | None, user: str | None
) -> None:
    if ready:
        screen.line(f"{ready} is ready again; `holdfast digest` runs it")
    if cancel:
        screen.line(f"{cancel} will not run; `holdfast jobs --retry {cancel}` takes that back")
    if not found:
        whose = f" of {user}" if user is not None else ""
        screen.line(f"no job{whose} waits" if state is None else f"no job{whose} is {state}")
    screen.columns(
        [
            [
                (job.id, STRONG),
                (job.state, _STYLES[job.state]),
                DOING.get(job.kind, job.kind),
                _where(job),
                (_when(job), QUIET),
            ]
            for job in found
        ]
    )


def _where(job: Job) -> str:
    who = f"{job.user} · {job.conversation}" if job.conversation else job.user
    return who if job.subject in ("", "self") else f"{who} · about {job.subject}"


def _when(job: Job) -> str:
    if job.state == "running":
        return f"held by {job.worker} until {minute(from_ms(job.lease_until_ms))}"
    if job.state == "waiting":
        return job.reason.partition(": ")[2]
    reason = f"attempt {job.attempt} failed: {job.reason}" if job.reason else ""
    if job.reason.startswith("waiting: "):  # nothing failed: a budget is spent, or a model wants to be left alone
        return job.reason
    if job.state == "ready" and not due(job):
        return f"due {minute(from_ms(job.run_at_ms))}" + (f"; {reason}" if reason else "")
    return reason or ("due now" if job.state == "ready" else "")
