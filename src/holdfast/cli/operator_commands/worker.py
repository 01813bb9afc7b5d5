"""``holdfast worker``: background work in a separate process."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...errors import StoreError
from ..models import ModelOptions
from ..options import StoreOptions
from ..output import QUIET, STRONG, Screen, print_json_line
from ..terminal import count
from .serve import OperationsOption, reload_on_hangup, serve_operations

if TYPE_CHECKING:
    from ...memory import Memory
    from ...reports import Backlog

# A signal may reach another thread than the waiting one, and a wait without an end would not notice it.
_POLL_S = 0.25
_RESTART = 75  # EX_TEMPFAIL: starting the worker again continues the work


def worker(
    options: StoreOptions,
    model: ModelOptions,
    threads: Annotated[
        int | None,
        typer.Option("--threads", "-t", min=1, max=64, help="Jobs to run at a time (default: the setting workers)."),
    ] = None,
    drain: Annotated[bool, typer.Option("--drain", help="Stop when no work is due.")] = False,
    grace: Annotated[
        float, typer.Option("--grace", min=0, metavar="SECONDS", help="How long a stop waits for running jobs.")
    ] = 60,
    lease: Annotated[
        float | None,
        typer.Option(
            "--lease",
            min=1,
            metavar="SECONDS",
            help="After this, others take over jobs of a silent worker (default: the setting job_lease_ms).",
        ),
    ] = None,
    report: Annotated[
        float, typer.Option("--report", min=0, metavar="SECONDS", help="Print the state this often; 0: never.")
    ] = 0,
    operations: OperationsOption = None,
) -> int:
    """
    Do background work until it is stopped: facts, summaries, vectors, for all users in the store.

    Start as many workers as you like, on every machine that reaches the store; they share its jobs and
    take over from one that dies. Ctrl-C or SIGTERM lets running jobs finish, for --grace seconds; what
    is left then is done by another worker, from the start. A second signal stops at once.

    \b
    Examples:
      holdfast worker
      holdfast worker --threads 8 --llm openai:gpt-5-mini --store chat.db
      holdfast worker --operations :9464
      holdfast worker --drain --json
    """
    stopped = threading.Event()
    flags = {"workers": threads, "job_lease_ms": lease and round(lease * 1000)}
    threads = options.load(**flags).config.workers
    with (
        model.open(options) as llm,
        options.create(llm, background=True, **flags) as memory,
        _StopSignals(stopped),
        reload_on_hangup(options, "worker", memory, flags),
        serve_operations(operations, memory, threads=threads),
    ):
        note = f"{count(threads, 'thread')}, {llm.name if llm else 'built-in rules'}; Ctrl-C stops it"
        _print_state("working", memory, options, note)
        next_report = time.monotonic() + report
        while not stopped.wait(_POLL_S):
            if drain and _is_drained(memory):
                break
            if report and time.monotonic() >= next_report:
                next_report += report
                _print_state("working", memory, options)
        _stop(memory, grace, options)
    return 0


def _stop(memory: Memory, grace: float, options: StoreOptions) -> None:
    """Let running jobs finish, for *grace* seconds."""
    _print_state("stopping", memory, options)
    deadline = threading.Timer(grace, _give_up, args=(options.as_json,))
    deadline.daemon = True
    deadline.start()
    memory.close()
    deadline.cancel()


class _StopSignals:
    """A context manager in which SIGINT and SIGTERM set an event; the second of them ends the process."""

    def __init__(self, stopped: threading.Event) -> None:
        self._stopped = stopped
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._handle)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, _frame: object) -> None:
        if self._stopped.is_set():
            os._exit(128 + number)
        self._stopped.set()


def _is_drained(memory: Memory) -> bool:
    backlog = _backlog(memory)
    return backlog is not None and not any(one.due or one.state == "running" for one in backlog)


def _backlog(memory: Memory) -> tuple[Backlog, ...] | None:
    """Return ``None`` while the store cannot be asked: a worker outlives a database that is away."""
    try:
        return memory.admin.backlog()
    except StoreError:
        return None


def _give_up(as_json: bool) -> None:
    """End the process although jobs are running: their leases run out, and other workers take them over."""
    if as_json:
        print_json_line({"state": "gave up"})
    else:
        print("running jobs took too long; another worker will do them again", file=sys.stderr)
    sys.stdout.flush()
    os._exit(_RESTART)


def _print_state(state: str, memory: Memory, options: StoreOptions, note: str = "") -> None:
    backlog = _backlog(memory)
    jobs: Counter[str] = Counter()
    for one in backlog or ():
        jobs["due"] += one.due
        jobs[one.state] += one.jobs - one.due
    jobs = +jobs
    if options.as_json:
        numbers = None if backlog is None else dict(jobs)
        print_json_line({"state": state, "store": options.shown_store, "jobs": numbers})
    else:
        none = "unknown, the store does not answer" if backlog is None else "none"
        listed = ", ".join(f"{number:,} {name}" for name, number in sorted(jobs.items())) or none
        title = (f"{state} on {options.shown_store}", STRONG)
        Screen().line(title, f"   jobs: {listed}", (f"   {note}" if note else "", QUIET))
    sys.stdout.flush()
