"""A second schema for the tests of upgrades: whatever they open is brought up to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.store import queries
from holdfast.store.postgres import schema
from tests.upgrade.old import FIRST_SQL, SECOND_SQL


@pytest.fixture(autouse=True)
def _second_schema(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fixtures of a wider scope, which make the rows of the first schema, ran before."""
    monkeypatch.setattr(queries, "migrations", lambda dialect: (*FIRST_SQL, *SECOND_SQL))
    caches = (queries.tables, schema.migrations)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()
