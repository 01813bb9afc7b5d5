"""
A small door for those who run a process: ``/healthz``, ``/readyz`` and ``/metrics``, without a key.

Probes and Prometheus ask by the address of a machine, which is none of the names that the server answers to, and a
worker has no server at all.  What stands here names nobody; whoever opens the door says where, and keeps others from it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from .. import __version__
from ..errors import HoldfastError
from .meters import Meters
from .operating import ready
from .shapes import Health

_TIMEOUT_S = 10.0


class _Door(BaseHTTPRequestHandler):
    """Answers GET and HEAD of three paths."""

    meters: Meters
    timeout = _TIMEOUT_S
    server_version, sys_version = "holdfast", ""

    def do_GET(self) -> None:
        """One answer, and the connection ends."""
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
            return _told(Health(status="ok", version=__version__))
        if path == "/readyz":
            return _told(ready(self.meters.work))
        if path == "/metrics":
            return 200, CONTENT_TYPE_PLAIN_0_0_4, self.meters.text()
        return 404, "application/json", b'{"status": "failed", "code": "not-found"}'

    def log_message(self, *args: Any) -> None:
        """Nothing: probes come every few seconds."""


def _told(health: Health) -> tuple[int, str, bytes]:
    return 200, "application/json", health.model_dump_json().encode()


class _Server(ThreadingHTTPServer):
    """Quiet about whoever hangs up."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A probe that went away is no news."""


@contextmanager
def opened(host: str, port: int, meters: Meters) -> Iterator[tuple[str, int]]:
    """
    Answer at *host* and *port* until the end of the block; the address that it got, which differs for port 0.

    Raises:
        OSError: nothing can listen there.
    """
    door = type("Door", (_Door,), {"meters": meters})
    server = _Server((host, port), door)
    thread = threading.Thread(target=server.serve_forever, name="holdfast-operations", daemon=True)
    thread.start()
    try:
        yield server.server_address[0], server.server_address[1]  # type: ignore[misc]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
