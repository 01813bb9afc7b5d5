"""
One line of log for every request: what was asked and how it ended, never what was said, nor a key, nor a name.

The route stands for the path, a digest for the user; both are enough to find trouble and too little to read a chat.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import time
import traceback
from datetime import UTC, datetime
from importlib import import_module
from pathlib import PurePath
from typing import Any, Literal, TextIO

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..scope import Scope as Whose
from ..telemetry import store_id
from .gate import Grant

LogFormat = Literal["json", "console"]
REQUEST_ID = b"x-request-id"
_FIT = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_log = logging.getLogger("holdfast.requests")


class Journal:
    """ASGI middleware around everything: gives a request its id, and logs it when it has ended."""

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


class Joined:
    """ASGI middleware: what is traced for a request belongs to the trace that its headers name."""

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
    """A line for users; of an exception its kind and place, because its message may hold what was said."""

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
