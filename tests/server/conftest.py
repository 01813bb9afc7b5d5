"""One memory, its application, and a client for each role."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from starlette.testclient import TestClient

from holdfast import Memory
from holdfast.server.app import create_app
from holdfast.server.gate import ServerSettings
from holdfast.testing.fakes import FakeClock, HashEmbedder

BASE = "http://127.0.0.1:7800"
Ask = Callable[..., TestClient]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(datetime(2026, 1, 1, 9, tzinfo=UTC))


@pytest.fixture
def memory(clock: FakeClock) -> Iterator[Memory]:
    with Memory(embedder=HashEmbedder(), clock=clock) as opened:
        yield opened


@pytest.fixture
def settings() -> ServerSettings:
    return ServerSettings()


@pytest.fixture
def ask(memory: Memory, settings: ServerSettings) -> Iterator[Ask]:
    """``ask("user", user="ana")``: a client with a fresh key of that role; ``ask(None)``: one without a key."""
    app = create_app(memory, settings)
    clients = []

    def make(role: str | None, **whose: str) -> TestClient:
        headers = {} if role is None else {"Authorization": f"Bearer {memory.admin.keys.create(role, **whose).key}"}
        client = TestClient(app, base_url=BASE, headers=headers, raise_server_exceptions=False)
        clients.append(client)
        return client

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def unused_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
