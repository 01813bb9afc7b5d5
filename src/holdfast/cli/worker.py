"""``holdfast worker``: background work in a process of its own."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import StoreError
from . import models
from .models import BaseUrl, Llm, RequestsAMinute, TokensAMinute
from .operations import Operations, opened
from .options import STORE, Json, Store, commands, without_password, writing
from .screen import QUIET, STRONG, Screen, print_json_line
from .words import count

if TYPE_CHECKING:
    from ..memory import Memory
    from ..reports import Backlog

app = commands()

# A signal may reach another thread than the one that waits, and a wait without an end would not notice it.
_LOOK_S = 0.25


@app.command()
def worker(
    threads: Annotated[int, typer.Option("--threads", "-t", min=1, max=64, help="How many jobs at a time.")] = 2,
    drain: Annotated[bool, typer.Option("--drain", help="Stop when nothing is due any more.")] = False,
    grace: Annotated[
        float, typer.Option("--grace", min=0, metavar="SECONDS", help="How long a stop waits for what has begun.")
    ] = 60,
    lease: Annotated[
        float,
        typer.Option("--lease", min=1, metavar="SECONDS", help="When others take over from a worker that is silent."),
    ] = 60,
    report: Annotated[
        float, typer.Option("--report", min=0, metavar="SECONDS", help="Tell the state so often; 0: only at the ends.")
    ] = 0,
    operations: Operations = None,
    model_requests: RequestsAMinute = None,
    model_tokens: TokensAMinute = None,
    llm: Llm = None,
    base_url: BaseUrl = None,
    store: Store = STORE,
    as_json: Json = False,
) -> int:
    """
    Do background work until it is stopped: facts, summaries, vectors, of everybody in the store.

    Start as many as you like, on every machine that reaches the store; they share its jobs and
    take over from one that dies. Ctrl-C or SIGTERM lets the jobs that have begun finish, for
    --grace seconds; what is left then is done by another, from the start. A second one stops at once.

    \b
    Examples:
      holdfast worker
      holdfast worker --threads 8 --llm openai:gpt-5-mini --store chat.db
      holdfast worker --operations :9464
      holdfast worker --drain --json
    """
    stopped = threading.Event()
    told = _Signals(stopped)
    limits = {"model_requests_per_minute": model_requests, "model_tokens_per_minute": model_tokens}
    settings = {"workers": threads, "job_lease_ms": round(lease * 1000), **limits}
    with models.model(llm, base_url) as model, writing(store, model, background=True, **settings) as memory:
        reader = model.name if model else "built-in rules"
        with told, opened(operations, memory, threads=threads):
            _say("working", memory, store, as_json, f"{count(threads, 'thread')}, {reader}; Ctrl-C ends it")
            next_report = time.monotonic() + report
            while not stopped.wait(_LOOK_S):
                if drain and _is_drained(memory):
                    break
                if report and time.monotonic() >= next_report:
                    next_report += report
                    _say("working", memory, store, as_json)
            _say("stopping", memory, store, as_json)
            last = threading.Timer(grace, _give_up, args=(as_json,))
            last.daemon = True
            last.start()
            memory.close()
            last.cancel()
    return 0


class _Signals:
    """SIGINT and SIGTERM end the work; the second of them ends the process."""

    def __init__(self, stopped: threading.Event) -> None:
        self._stopped = stopped
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._arrived)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _arrived(self, number: int, _frame: object) -> None:
        if self._stopped.is_set():
            os._exit(128 + number)
        self._stopped.set()


def _is_drained(memory: Memory) -> bool:
    there = _backlog(memory)
    return there is not None and not any(one.due or one.state == "running" for one in there)


def _backlog(memory: Memory) -> tuple[Backlog, ...] | None:
    """``None`` while the store cannot be asked: a worker outlives a server that is away."""
    try:
        return memory.admin.backlog()
    except StoreError:
        return None


def _give_up(as_json: bool) -> None:
    """What has begun took too long: its leases run out, and others take it over."""
    if as_json:
        print_json_line({"state": "gave up"})
    else:
        print("the jobs that had begun took too long; others will do them again", file=sys.stderr)
    sys.stdout.flush()
    os._exit(75)  # EX_TEMPFAIL: starting it again goes on with the work


def _say(state: str, memory: Memory, store: str, as_json: bool, words: str = "") -> None:
    jobs: Counter[str] = Counter()
    there = _backlog(memory)
    for one in there or ():
        jobs["due"] += one.due
        jobs[one.state] += one.jobs - one.due
    jobs = +jobs
    place = without_password(store)
    if as_json:
        print_json_line({"state": state, "store": place, "jobs": None if there is None else dict(jobs)})
    else:
        none = "unknown, the store cannot be asked" if there is None else "none"
        left = ", ".join(f"{number:,} {name}" for name, number in sorted(jobs.items())) or none
        Screen().line((f"{state} on {place}", STRONG), f"   jobs: {left}", (f"   {words}" if words else "", QUIET))
    sys.stdout.flush()
