"""The application as it is shipped, in this process, at a free port of this machine."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from holdfast import Memory
from holdfast.server.app import create_app
from holdfast.server.gate import ServerSettings
from holdfast.server.serve import make_server

_NUMBERS = count(1)


@dataclass
class Site:
    """A memory that is served, and the names in it that paths of pages are made of; a later site may have the same port."""

    memory: Memory
    origin: str
    names: dict[str, str] = field(default_factory=dict)
    number: int = field(default_factory=_NUMBERS.__next__)

    def key(self, role: str, **whose: Any) -> str:
        """A fresh key of that role."""
        made: Any = self.memory.admin.keys.create(role, **whose)  # type: ignore[arg-type]
        return str(made.key)


@contextmanager
def serve(memory: Memory, names: dict[str, str] | None = None, port: int = 0, **more: Any) -> Iterator[Site]:
    """Serve *memory* until the end of the block; closing the memory is the caller's.  *more* are settings."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    port = listener.getsockname()[1]
    settings = ServerSettings(port=port, requests_per_minute=1_000_000, **more)
    running = make_server(create_app(memory, settings), settings)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    for _ in range(200):
        if running.started:
            break
        time.sleep(0.02)
    assert running.started, "the server does not start"
    try:
        yield Site(memory, f"http://127.0.0.1:{port}", dict(names or {}))
    finally:
        running.should_exit = running.force_exit = True
        thread.join(20)
        listener.close()
