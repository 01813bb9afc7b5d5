"""A provider on this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .server import Provider, serve


@pytest.fixture
def provider() -> Iterator[Provider]:
    found = Provider()
    server = serve(found)
    yield found
    server.shutdown()
    server.server_close()
