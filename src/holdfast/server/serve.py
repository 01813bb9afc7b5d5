"""
The socket: uvicorn, with time and size limits that uvicorn lacks; and the log of requests.

A head has to be here within ``header_timeout_s`` and ``max_head_bytes``, a body within ``body_timeout_s`` whether or
not anybody reads it, and an answer has to be taken.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
import socket
import time
import traceback
from datetime import UTC, datetime
from importlib import import_module
from pathlib import PurePath
from typing import Any, Literal, TextIO

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ..jobs.observer import store_id
from ..scope import Scope as Whose
from .gate import Grant, ServerSettings
from .routing import MEDIA_TYPE

WANTED_FILES = 65_536
_GRACE_S = 1.0  # the application, which can say why, goes first


class BadHead(ValueError):
    """The head of a request is refused; ``status`` and the text of the answer."""

    def __init__(self, status: int, code: str, title: str) -> None:
        super().__init__(code)
        self.status, self.code, self.title = status, code, title


def make_server(app: FastAPI, settings: ServerSettings) -> uvicorn.Server:
    """Return a server to ``run()``; after SIGINT or SIGTERM it answers the requests in flight and returns."""
    options: dict[str, Any] = {"log_level": "warning", "access_log": False, "server_header": False, "log_config": None}

    raise_limit()

    class Listening(uvicorn.Server):
        """A server that ends streams before it waits for other requests."""

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            """End streams, answer what was begun, stop."""
            app.state.tail.close()
            await super().shutdown(sockets)

    return Listening(
        uvicorn.Config(
            app,
            host=settings.host,
            port=settings.port,
            http=make_protocol(settings),
            ws="none",
            timeout_keep_alive=30,
            timeout_graceful_shutdown=10,
            backlog=2_048,
            **options,
        )
    )


def raise_limit() -> None:
    """Raise the limit of open connections as far as the system allows; shells commonly start with 1,024."""
    try:
        resource = import_module("resource")
    except ImportError:  # there is no such limit here
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = WANTED_FILES if hard == resource.RLIM_INFINITY else min(hard, WANTED_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class TimedProtocol(HttpToolsProtocol):
    """A connection with limits on the client's times and sizes."""

    limits: ServerSettings
    _head_bytes = 0
    _refused: BadHead | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer of the first head."""
        connected = transport.get_extra_info("socket")
        if connected is not None and connected.family in (socket.AF_INET, socket.AF_INET6):
            # asyncio does so itself only where the listening socket names its protocol; without it most answers on a
            # connection that is used again wait 40 ms for the client's acknowledgment
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._due: dict[str, asyncio.TimerHandle] = {}
        super().connection_made(transport)
        self._expect()

    def data_received(self, data: bytes) -> None:
        """Count the bytes of the head; the first byte of another request starts its timer."""
        if not self._due and (self.cycle is None or self.cycle.response_complete):
            self._expect()
        pending = "head" in self._due
        if pending:
            self._head_bytes += len(data)
        super().data_received(data)
        if pending and "head" in self._due and self._head_bytes > self.limits.max_head_bytes:
            self._refused = _too_long()
            self.send_400_response("")

    def on_headers_complete(self) -> None:
        """
        Check the head and start the timer of the body.

        Raises:
            BadHead: it is too long, or is for a proxy; the parser stops and says so.
        """
        self._stop("head")
        self._head_bytes = 0
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        long = _too_long() if size > self.limits.max_head_bytes else None
        self._refused = long or _off_target(self.url, self.parser.get_method())
        if self._refused is not None:
            raise self._refused
        self._due["body"] = self.loop.call_later(self.limits.body_timeout_s + _GRACE_S, self._close)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Stop the timer of the body."""
        self._stop("body")
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be answered, in the shape of all refusals."""
        bad = self._refused or BadHead(400, "bad-request", "This is not a request of HTTP/1.1")
        body = {"type": f"urn:holdfast:{bad.code}", "title": bad.title, "status": bad.status, "code": bad.code}
        content = json.dumps(body).encode()
        head = f"HTTP/1.1 {bad.status} Refused\r\nContent-Type: {MEDIA_TYPE}\r\nContent-Length: {len(content)}\r\n"
        self.transport.write(f"{head}Connection: close\r\n\r\n".encode() + content)
        self._close()

    def pause_writing(self) -> None:
        """Start the timer of a client that reads the answer too slowly."""
        super().pause_writing()
        self._stop("stuck")
        self._due["stuck"] = self.loop.call_later(self.limits.stuck_timeout_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop that timer."""
        self._stop("stuck")
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers."""
        self._stop("head", "body", "stuck")
        super().connection_lost(exc)

    def _expect(self) -> None:
        self._head_bytes = 0
        self._due["head"] = self.loop.call_later(self.limits.header_timeout_s, self._close)

    def _close(self) -> None:
        self._stop("head", "body")
        self.transport.close()

    def _stop(self, *names: str) -> None:
        for name in names:
            timer = self._due.pop(name, None)
            if timer is not None:
                timer.cancel()


def make_protocol(settings: ServerSettings) -> type[HttpToolsProtocol]:
    """Return the protocol of one connection, with these limits."""
    return type("Limited", (TimedProtocol,), {"limits": settings})


def _too_long() -> BadHead:
    return BadHead(431, "head-too-large", "The head of the request is too long")


def _off_target(target: bytes, method: bytes) -> BadHead | None:
    """Refuse a target that names a host beside the one that the gate checks."""
    if target.startswith(b"/") or (method == b"OPTIONS" and target == b"*"):
        return None
    return BadHead(400, "bad-target", "A request names a path, and the host in its own header")


LogFormat = Literal["json", "console"]
REQUEST_ID = b"x-request-id"
_FIT = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_log = logging.getLogger("holdfast.requests")


class RequestLog:
    """ASGI middleware: give a request its id, and log it when it has ended."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == REQUEST_ID and _FIT.fullmatch(value)), None)
        request_id = given or secrets.token_hex(8).encode()
        state = scope.setdefault("state", {})
        began, status = time.perf_counter(), 500

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = message.get("headers", [])
                if not any(name == REQUEST_ID for name, _ in headers):  # an upstream's own id is the more useful one
                    message = {**message, "headers": [*headers, (REQUEST_ID, request_id)]}
            await send(message)

        try:
            await self._app(scope, receive, sending)
        finally:
            if _log.isEnabledFor(logging.INFO):
                took_ms = round((time.perf_counter() - began) * 1000, 1)
                _note(request_id.decode(), scope["method"], state, status, took_ms)


class TraceContext:
    """ASGI middleware: join the trace that the headers of a request name."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._context, self._propagate = (import_module(f"opentelemetry.{name}") for name in ("context", "propagate"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        token = self._context.attach(self._propagate.extract(carrier))
        try:
            await self._app(scope, receive, send)
        finally:
            self._context.detach(token)


def log_to(stream: TextIO, form: LogFormat | None) -> logging.Handler:
    """
    Write what the server logs to *stream*: requests and warnings in one form, or warnings alone when *form* is ``None``.

    Returns the handler; whoever wants silence again takes it away.
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines() if form == "json" else Lines())
    for name, level in (("holdfast", logging.INFO if form else logging.WARNING), ("uvicorn.error", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.setLevel(level)
        logger.addHandler(handler)
        logger.propagate = False
    return handler


class Lines(logging.Formatter):
    """Plain log lines. An exception is logged by its type and place, because its text may quote a message."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def formatException(self, ei: Any) -> str:
        """See `logging.Formatter.formatException`."""
        return "\n".join(_places(ei))


class JsonLines(logging.Formatter):
    """A JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter.format`."""
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields |= getattr(record, "fields", {})
        if record.exc_info:
            fields["exception"] = _places(record.exc_info)
        return json.dumps(fields, ensure_ascii=False)


def _note(request_id: str, method: str, state: dict[str, Any], status: int, took_ms: float) -> None:
    grant, route = state.get("grant"), state.get("route") or "-"
    whose = None
    if isinstance(grant, Grant) and grant.user is not None:
        whose = store_id(Whose(grant.org, grant.bot, grant.user))
    fields = {
        "request_id": request_id,
        "method": method,
        "route": route,
        "status": status,
        "duration_ms": took_ms,
        "key": state["key"].id if state.get("key") is not None else None,
        "scope": whose,
    }
    _log.info("%s %s %d %.1f ms %s", method, route, status, took_ms, request_id, extra={"fields": fields})


def _places(ei: Any) -> list[str]:
    kind, _, at = ei
    frames = traceback.extract_tb(at)
    places = [f"{PurePath(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames]
    return [*places, getattr(kind, "__name__", "error")]
