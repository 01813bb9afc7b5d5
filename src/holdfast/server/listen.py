"""
The socket: uvicorn, with limits on what a client may take its time with, which uvicorn does not have.

A head has to be here within ``header_timeout_s`` and ``max_head_bytes``, a body within ``body_timeout_s`` whether or
not anybody reads it, and an answer has to be taken.
"""

from __future__ import annotations

import asyncio
import json
import socket
from importlib import import_module
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .problems import MEDIA_TYPE
from .settings import ServerSettings

WANTED_FILES = 65_536
_GRACE_S = 1.0  # the application, which can say why, goes first


class BadHead(ValueError):
    """The head of a request is refused; ``status`` and words for the answer."""

    def __init__(self, status: int, code: str, title: str) -> None:
        super().__init__(code)
        self.status, self.code, self.title = status, code, title


def server(app: FastAPI, settings: ServerSettings) -> uvicorn.Server:
    """Ready to ``run()``: it returns after SIGINT or SIGTERM, once the requests in flight are answered."""
    options: dict[str, Any] = {"log_level": "warning", "access_log": False, "server_header": False, "log_config": None}

    raise_limit()

    class Listening(uvicorn.Server):
        """Streams end before the others are waited for: they never would by themselves."""

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            """End streams, answer what was begun, stop."""
            app.state.tail.close()
            await super().shutdown(sockets)

    return Listening(
        uvicorn.Config(
            app,
            host=settings.host,
            port=settings.port,
            http=protocol(settings),
            ws="none",
            timeout_keep_alive=30,
            timeout_graceful_shutdown=10,
            backlog=2_048,
            **options,
        )
    )


def raise_limit() -> None:
    """Have this process hold as many connections as the system lets it; shells commonly start it with 1,024."""
    try:
        resource = import_module("resource")
    except ImportError:  # there is no such limit here
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = WANTED_FILES if hard == resource.RLIM_INFINITY else min(hard, WANTED_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class Punctual(HttpToolsProtocol):
    """A connection whose client has to keep to its times and sizes."""

    limits: ServerSettings
    _head_bytes = 0
    _refused: BadHead | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The first head is due."""
        self._due: dict[str, asyncio.TimerHandle] = {}
        super().connection_made(transport)
        self._expect()

    def data_received(self, data: bytes) -> None:
        """More of a head, or of a body; the first bytes of a further request make its head due."""
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
        The head is here, and the body is due.

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
        """The body is here."""
        self._stop("body")
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be answered, in the shape of all refusals."""
        bad = self._refused or BadHead(400, "bad-request", "This is not a request of HTTP/1.1")
        told = {"type": f"urn:holdfast:{bad.code}", "title": bad.title, "status": bad.status, "code": bad.code}
        content = json.dumps(told).encode()
        head = f"HTTP/1.1 {bad.status} Refused\r\nContent-Type: {MEDIA_TYPE}\r\nContent-Length: {len(content)}\r\n"
        self.transport.write(f"{head}Connection: close\r\n\r\n".encode() + content)
        self._close()

    def pause_writing(self) -> None:
        """The client takes the answer too slowly; for so long it may."""
        super().pause_writing()
        self._stop("stuck")
        self._due["stuck"] = self.loop.call_later(self.limits.stuck_timeout_s, self.transport.abort)

    def resume_writing(self) -> None:
        """It goes on."""
        self._stop("stuck")
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is due any more."""
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


def protocol(settings: ServerSettings) -> type[HttpToolsProtocol]:
    """How one connection is read and written, with these limits."""
    return type("Limited", (Punctual,), {"limits": settings})


def _too_long() -> BadHead:
    return BadHead(431, "head-too-large", "The head of the request is too long")


def _off_target(target: bytes, method: bytes) -> BadHead | None:
    """A target with a host of its own, beside the one that the gate looks at, is refused."""
    if target.startswith(b"/") or (method == b"OPTIONS" and target == b"*"):
        return None
    return BadHead(400, "bad-target", "A request names a path, and the host in its own header")
