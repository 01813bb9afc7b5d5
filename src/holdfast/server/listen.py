"""The socket: uvicorn, with a time limit on the head of a request, which uvicorn does not have."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .settings import ServerSettings


def server(app: FastAPI, settings: ServerSettings) -> uvicorn.Server:
    """Ready to ``run()``: it returns after SIGINT or SIGTERM, once the requests in flight are answered."""

    class Punctual(HttpToolsProtocol):
        """A connection that is closed when the head of a request takes longer than ``header_timeout_s``."""

        _late: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            """The first head is due."""
            super().connection_made(transport)
            self._expect()

        def data_received(self, data: bytes) -> None:
            """The first bytes of a further request: its head is due."""
            if self._late is None and (self.cycle is None or self.cycle.response_complete):
                self._expect()
            super().data_received(data)

        def on_headers_complete(self) -> None:
            """The head is here."""
            self._forget()
            super().on_headers_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            """Nothing is due any more."""
            self._forget()
            super().connection_lost(exc)

        def _expect(self) -> None:
            self._late = self.loop.call_later(settings.header_timeout_s, self.transport.close)

        def _forget(self) -> None:
            if self._late is not None:
                self._late.cancel()
                self._late = None

    options: dict[str, Any] = {"log_level": "warning", "access_log": False, "server_header": False, "log_config": None}

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
            http=Punctual,
            ws="none",
            timeout_keep_alive=30,
            timeout_graceful_shutdown=10,
            **options,
        )
    )
