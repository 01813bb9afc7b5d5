"""
``/metrics``, ``/healthz`` and ``/readyz``: what this process does, for Prometheus and probes.

Counters are of this process alone; nothing here names a user, an org or a conversation.  What the store holds (jobs, its
size) is read when metrics are requested, at most every few seconds.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter as Counts
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from fastapi import Request
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .. import __version__
from ..errors import HoldfastError, StoreError
from ..jobs.usage import CallTimes
from ..memory import Memory
from ..reports import Backlog
from .events import EventFeed
from .routing import OPERATOR, PUBLIC, RouteTable
from .schemas import ServerHealth

table = RouteTable()
LOOK_AGAIN_S = 5.0
_FACTS = {"added": "new", "confirmed": "confirmed", "replaced": "replaced", "corrected": "corrected", "ended": "ended",
          "forgotten": "forgotten"}  # fmt: skip
_SUMMARIES = {"made": "made", "stale": "stale", "removed": "removed"}
_TOKENS = {"tokens.input": ("input", "no"), "tokens.cached": ("input", "yes"), "tokens.output": ("output", "no")}
_SIZES = (50, 100, 250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000)
_QUICK = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)


class Latencies:
    """
    How long the calls of servers took, by hour: in the store, of all processes, for `HOURS`.

    Those of this process wait here until `flush`, which its server does once a minute and when it stops.  A crash loses
    the last minute.
    """

    HOURS = 7 * 24
    CALLS = ("context", "search", "append")
    FLUSH_S = 60.0

    def __init__(self, times: CallTimes) -> None:
        self._times = times
        self._waiting: Counts[tuple[str, int, int]] = Counts()
        self._lock = threading.Lock()

    def take(self, call: str, seconds: float, hour: int | None = None) -> None:
        """Count a call of the running hour, or of another one since 1970."""
        hour = int(time.time() // 3600) if hour is None else hour
        with self._lock:
            self._waiting[call, hour, self._times.step_of(seconds)] += 1

    def flush(self) -> None:
        """Write what waits; where the store does not take it, it waits on, for the same time as it would be kept."""
        with self._lock:
            taken, self._waiting = self._waiting, Counts()
        if not taken:
            return
        before = max(hour for _, hour, _ in taken) - self.HOURS + 1
        kept = {key: calls for key, calls in taken.items() if key[1] >= before}
        try:
            self._times.add(kept, before_hour=before)
        except StoreError:
            with self._lock:
                self._waiting.update(kept)

    async def flush_often(self) -> None:
        """Write what waits once a minute, for ever."""
        while True:
            await asyncio.sleep(self.FLUSH_S)
            await run_in_threadpool(self.flush)

    def percentiles(self, call: str, since_hour: int, shares: Sequence[float]) -> dict[int, list[float | None]]:
        """Return the seconds within which each share of a call's calls ended, by hour."""
        hours = self._times.since(call, since_hour)
        with self._lock:
            waiting = [(hour, step, calls) for (name, hour, step), calls in self._waiting.items() if name == call]
        for hour, step, calls in waiting:
            if hour >= since_hour:
                steps = hours.setdefault(hour, {})
                steps[step] = steps.get(step, 0) + calls
        return {hour: [self._times.percentile(steps, share) for share in shares] for hour, steps in hours.items()}


class Meters:
    """
    The metrics of one process, in a separate registry.

    *tail* is there in servers, *threads* is how many threads of the process do background work.
    """

    def __init__(self, memory: Memory, tail: EventFeed | None = None, *, threads: int = 0) -> None:
        self._memory = memory
        self._looked_at = float("-inf")
        registry = self.registry = CollectorRegistry()
        of: dict[str, Any] = {"namespace": "holdfast", "registry": registry}
        self.turns = Counter("turns", "Messages stored.", ["role"], **of)
        self.ratings = Counter("ratings", "Replies that users rated.", ["score"], **of)
        self.facts = Counter("facts_written", "Facts that changed.", ["op"], **of)
        self.summaries = Counter("summaries", "Summaries made, gone stale or removed.", ["status"], **of)
        self.layers = Counter("summaries_made", "Summaries made, by level.", ["layer"], **of)
        self.context = Histogram("context_build_seconds", "Contexts built.", buckets=_QUICK, **of)
        self.sections = Histogram(
            "context_tokens", "Tokens of contexts, part by part.", ["section"], buckets=_SIZES, **of
        )
        self.reused = Counter("context_prefix_reused", "Contexts whose stable part was that of the last.", **of)
        self.tokens = Counter("llm_tokens", "Tokens of models.", ["direction", "cached", "model"], **of)
        self.failures = Counter("llm_errors", "Calls of models without an answer.", ["provider", "error_type"], **of)
        self.recall = Histogram("recall_seconds", "Searches.", buckets=_QUICK, **of)
        self.recalls = Counter("recall_requests", "Searches by what they found.", ["outcome"], **of)
        self.requests = Counter("http_requests", "Requests answered.", ["method", "route", "status"], **of)
        self.seconds = Histogram(
            "http_request_seconds", "Time to the first byte of an answer.", ["method", "route"], buckets=_QUICK, **of
        )
        self.streams = Gauge("event_streams", "Open streams of events.", **of)
        self.bytes = Gauge("store_bytes", "Size of the store.", **of)
        Gauge("build_info", "The version that runs.", ["version"], **of).labels(__version__).set(1)
        if tail is not None:
            self.streams.set_function(lambda: tail.count)
        self.work = WorkMeters(memory, registry, threads)
        self.latencies = Latencies(memory.admin.call_times)
        memory.admin.observe(self.take)
        memory.admin.observe(self.work.take)

    def take(self, what: str, of: str, amount: float) -> None:
        """Record a piece of work of the memory, see `Admin.observe`."""
        family, _, kind = of.partition(".")
        if what in Latencies.CALLS:
            self.latencies.take(what, amount)
        if what == "message":
            self.turns.labels(of).inc(amount)
        elif what == "rating":
            self.ratings.labels(of).inc(amount)
        elif what == "summary":
            self.layers.labels(of).inc(amount)
        elif what == "event" and family == "fact" and kind in _FACTS:
            self.facts.labels(_FACTS[kind]).inc(amount)
        elif what == "event" and family == "summary":
            self.summaries.labels(_SUMMARIES[kind]).inc(amount)
        elif what == "context":
            self.context.observe(amount)
        elif what == "context.tokens":
            self.sections.labels(of).observe(amount)
        elif what == "context.prefix" and of == "reused":
            self.reused.inc(amount)
        elif what in _TOKENS:
            self.tokens.labels(*_TOKENS[what], of).inc(amount)
        elif what == "model.failed":
            self.failures.labels(*of.rsplit("/", 1)).inc(amount)
        elif what == "search":
            self.recall.observe(amount)
            self.recalls.labels(of).inc()

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        now = time.monotonic()
        if now - self._looked_at > LOOK_AGAIN_S:
            self._looked_at = now
            self._look()
        return generate_latest(self.registry)

    def _look(self) -> None:
        self.work.look()
        self.bytes.set(self._memory.admin.size_bytes())


class Metered:
    """ASGI middleware: count requests, and measure the time until they are answered."""

    def __init__(self, app: ASGIApp, *, meters: Meters) -> None:
        self._app = app
        self._meters = meters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state, began = scope.setdefault("state", {}), time.perf_counter()
        method = scope["method"] if scope["method"] in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE") else "other"

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = state.get("group") or "none"
                self._meters.requests.labels(method, route, str(message["status"])).inc()
                self._meters.seconds.labels(method, route).observe(time.perf_counter() - began)
            await send(message)

        await self._app(scope, receive, sending)


@table.add("GET", "/metrics", OPERATOR, include_in_schema=False)
async def metrics_text(request: Request) -> Response:
    """Return the metrics of this process in Prometheus' text format."""
    meters: Meters = request.app.state.meters
    return Response(await run_in_threadpool(meters.text), media_type=CONTENT_TYPE_PLAIN_0_0_4)


@table.add("GET", "/healthz", PUBLIC)
def health_live() -> ServerHealth:
    """Answer while the process runs."""
    return ServerHealth(status="ok", version=__version__)


@table.add("GET", "/readyz", PUBLIC)
def health_ready(request: Request) -> ServerHealth:
    """Answer while the store does; reports dead jobs, and jobs more than five minutes late."""
    return readiness(request.app.state.meters.work)


def readiness(work: WorkMeters) -> ServerHealth:
    """
    Check the store, and whether an operator has to look at its jobs.

    Raises:
        StoreError: it does not answer.
    """
    found = work.backlog()
    dead = sum(one.jobs for one in found if one.state == "dead")
    late = sum(one.overdue for one in found)
    status: Literal["ok", "degraded"] = "degraded" if dead or late else "ok"
    return ServerHealth(status=status, version=__version__, dead_jobs=dead, overdue_jobs=late)


STATES = ("ready", "waiting", "running", "dead", "cancelled")
# Jobs are counted again after so many times what counting took: it never takes a twentieth of a process.
_REST = 20
_SLOW = (0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120)


class WorkMeters:
    """
    Figures of background work, in *registry*.

    *threads* is how many threads of this process do it.
    """

    def __init__(self, memory: Memory, registry: CollectorRegistry, threads: int) -> None:
        self._memory = memory
        self._lock = threading.Lock()
        self._found: tuple[Backlog, ...] = ()
        self._again_at = float("-inf")
        of: dict[str, Any] = {"namespace": "holdfast", "registry": registry}
        self.seconds = Histogram("job_duration_seconds", "Attempts of jobs.", ["kind"], buckets=_SLOW, **of)
        self.ended = Counter("jobs", "Attempts of jobs that ended.", ["kind", "outcome"], **of)
        self.claims = Counter("job_claims", "Jobs that this process took up.", ["kind"], **of)
        self.takeovers = Counter(
            "job_takeovers", "Jobs that this process took over from a worker whose lease had ended.", ["kind"], **of
        )
        self.lost = Counter(
            "job_leases_lost", "Jobs that were taken away from this process while it worked on them.", ["kind"], **of
        )
        self.busy = Gauge("workers_busy", "Threads that are in a job now.", **of)
        Gauge("workers", "Threads that do background work.", **of).set(threads)
        self.open = Gauge("jobs_open", "Jobs that are not finished.", ["state"], **of)
        self.overdue = Gauge("jobs_overdue", "Jobs that are more than five minutes late.", **of)
        self.due = Gauge("jobs_due", "Jobs that are due and that no worker has claimed.", ["kind"], **of)
        self.oldest = Gauge("job_oldest_due_seconds", "How long the oldest job that is due has waited.", ["kind"], **of)

    def take(self, what: str, of: str, amount: float) -> None:
        """Record a piece of work of the memory, see `Admin.observe`."""
        if what == "job":
            self.seconds.labels(of).observe(amount)
        elif what.startswith("job."):
            self.ended.labels(of, what.removeprefix("job.")).inc(amount)
        elif what == "claim":
            self.claims.labels(of).inc(amount)
        elif what == "takeover":
            self.takeovers.labels(of).inc(amount)
        elif what == "lost":
            self.lost.labels(of).inc(amount)
        elif what == "busy":
            self.busy.inc(amount)

    def backlog(self) -> tuple[Backlog, ...]:
        """
        Return `Admin.backlog`, counted anew each time unless counting takes long.

        Raises:
            StoreError: the store does not answer.
        """
        with self._lock:
            began = time.monotonic()
            if began < self._again_at:
                self._memory.admin.size_bytes()  # does it answer?
                return self._found
            self._found = self._memory.admin.backlog()
            ended = time.monotonic()
            self._again_at = ended + _REST * (ended - began)
            return self._found

    def look(self) -> None:
        """Count what is in the store."""
        found = self.backlog()
        for state in STATES:
            self.open.labels(state).set(sum(one.jobs for one in found if one.state == state))
        self.overdue.set(sum(one.overdue for one in found))
        due = dict.fromkeys((one.kind for one in found), 0)
        since = dict.fromkeys(due, 0)
        for one in found:
            due[one.kind] += one.due
            since[one.kind] = max(since[one.kind], one.oldest_due_ms or 0)
        self.due.clear()
        self.oldest.clear()
        for kind in due:
            self.due.labels(kind).set(due[kind])
            self.oldest.labels(kind).set(since[kind] / 1000)


_TIMEOUT_S = 10.0


class _ProbeHandler(BaseHTTPRequestHandler):
    """Answers GET and HEAD of three paths."""

    meters: Meters
    timeout = _TIMEOUT_S
    server_version, sys_version = "holdfast", ""

    def do_GET(self) -> None:
        """Answer one request and close the connection."""
        try:
            status, kind, body = self._answer(self.path.partition("?")[0])
        except HoldfastError as error:
            status, kind, body = 503, "application/json", json.dumps({"status": "failed", "code": error.code}).encode()
        self.send_response(status)
        for name, value in (("Content-Type", kind), ("Content-Length", str(len(body))), ("Cache-Control", "no-store")):
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET

    def _answer(self, path: str) -> tuple[int, str, bytes]:
        if path == "/healthz":
            return _as_answer(ServerHealth(status="ok", version=__version__))
        if path == "/readyz":
            return _as_answer(readiness(self.meters.work))
        if path == "/metrics":
            return 200, CONTENT_TYPE_PLAIN_0_0_4, self.meters.text()
        return 404, "application/json", b'{"status": "failed", "code": "not-found"}'

    def log_message(self, *args: Any) -> None:
        """Log nothing: probes come every few seconds."""


def _as_answer(health: ServerHealth) -> tuple[int, str, bytes]:
    return 200, "application/json", health.model_dump_json().encode()


class _ProbeServer(ThreadingHTTPServer):
    """A server that ignores clients that hang up."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a probe that hung up."""


@contextmanager
def serve_probes(host: str, port: int, meters: Meters) -> Iterator[tuple[str, int]]:
    """
    Serve the probes at *host* and *port* during the block; yields the address, which differs for port 0.

    Raises:
        OSError: nothing can listen there.
    """
    door = type("Door", (_ProbeHandler,), {"meters": meters})
    server = _ProbeServer((host, port), door)
    thread = threading.Thread(target=server.serve_forever, name="holdfast-operations", daemon=True)
    thread.start()
    try:
        yield server.server_address[0], server.server_address[1]  # type: ignore[misc]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
