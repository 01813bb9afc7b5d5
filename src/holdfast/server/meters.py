"""
``/metrics``: what this process does, for Prometheus.

Counters are of this process alone; nothing here names a user, an org or a conversation.  What stands in the store (jobs, its
size) is looked at when somebody asks, at most every few seconds.
"""

from __future__ import annotations

import time
from typing import Any

from fastapi import Request
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .. import __version__
from ..memory import Memory
from .routing import OPERATOR, Table
from .tail import Tail
from .workmeters import WorkMeters

table = Table()
LOOK_AGAIN_S = 5.0
_FACTS = {"added": "new", "confirmed": "confirmed", "replaced": "replaced", "corrected": "corrected", "ended": "ended",
          "forgotten": "forgotten"}  # fmt: skip
_SUMMARIES = {"made": "made", "stale": "stale", "removed": "removed"}
_TOKENS = {"tokens.input": ("input", "no"), "tokens.cached": ("input", "yes"), "tokens.output": ("output", "no")}
_SIZES = (50, 100, 250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000)
_QUICK = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)


class Meters:
    """
    The metrics of one process, in a registry of its own.

    *tail* is there in servers, *threads* is how many threads of the process do background work.
    """

    def __init__(self, memory: Memory, tail: Tail | None = None, *, threads: int = 0) -> None:
        self._memory = memory
        self._looked_at = float("-inf")
        registry = self.registry = CollectorRegistry()
        of: dict[str, Any] = {"namespace": "holdfast", "registry": registry}
        self.turns = Counter("turns", "Messages stored.", ["role"], **of)
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
        memory.observe(self.take)
        memory.observe(self.work.take)

    def take(self, what: str, of: str, amount: float) -> None:
        """Hear from the memory about a piece of work, see `Memory.observe`."""
        family, _, kind = of.partition(".")
        if what == "message":
            self.turns.labels(of).inc(amount)
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
        """All of it in Prometheus' text format."""
        now = time.monotonic()
        if now - self._looked_at > LOOK_AGAIN_S:
            self._looked_at = now
            self._look()
        return generate_latest(self.registry)

    def _look(self) -> None:
        self.work.look()
        self.bytes.set(self._memory.size_bytes())


class Metered:
    """ASGI middleware around everything: how many requests, and how long until they are answered."""

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
                route = state.get("route") or "none"
                self._meters.requests.labels(method, route, str(message["status"])).inc()
                self._meters.seconds.labels(method, route).observe(time.perf_counter() - began)
            await send(message)

        await self._app(scope, receive, sending)


@table.add("GET", "/metrics", OPERATOR, include_in_schema=False)
async def metrics_text(request: Request) -> Response:
    """What this process does, in Prometheus' text format."""
    meters: Meters = request.app.state.meters
    return Response(await run_in_threadpool(meters.text), media_type=CONTENT_TYPE_PLAIN_0_0_4)
