"""A memory, a server in front of it with a real socket, and a client with a key of the operator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast import Config, Memory
from holdfast.client import Client
from holdfast.testing.fakes import FakeClock, HashEmbedder


@pytest.fixture(scope="module")
def clock() -> FakeClock:
    return FakeClock(datetime(2026, 1, 1, 9, tzinfo=UTC))


@pytest.fixture(scope="module")
def library(clock: FakeClock) -> Iterator[Memory]:
    with Memory(embedder=HashEmbedder(), clock=clock, config=Config(consolidate_similarity=0.5)) as opened:
        yield opened


@pytest.fixture(scope="module")
def address(library: Memory, served: Callable[..., Any]) -> Iterator[str]:
    with served(library) as found:
        yield found


@pytest.fixture(scope="module")
def memory(library: Memory, address: str) -> Iterator[Client]:
    with Client(address, key=library.admin.keys.create("operator").key) as client:
        yield client
