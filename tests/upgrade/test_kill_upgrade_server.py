"""A database on a server is brought up to date with all that it holds, whoever is killed while doing so."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from itertools import count
from typing import Any

import psycopg
import pytest

from holdfast import Memory
from holdfast.errors import StoreError, StoreReadOnly
from holdfast.store import initialize
from holdfast.store.port import Table
from holdfast.store.postgres import schema
from holdfast.store.postgres.driver import Connection, connect
from holdfast.store.queries import tables
from holdfast.testing.fakes import HashEmbedder
from tests.postgres.lending import Lender, Server
from tests.upgrade.old import (
    MANY,
    NAMES,
    Kill,
    Rows,
    as_first,
    at_once,
    digest,
    fill,
    first_tables,
    killed_at,
    make_database,
    rows_of,
    some,
    statements,
    stopped_before,
)

pytestmark = [
    pytest.mark.sqlite("they make their databases themselves"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]
_numbers = count()


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    path = tmp_path_factory.mktemp("rows") / "new.db"
    fill(path)
    return rows_of(path)


@pytest.fixture
def database(postgres: Lender) -> Iterator[str]:
    """A database of the test's own, with nothing in it."""
    name = f"old_{os.getpid()}_{next(_numbers)}"
    postgres.server.create(name)
    yield name
    postgres.server.drop(name)


def upgrade(address: str) -> None:
    connection = connect(address)
    schema.migrate(connection)
    connection.close()


def told_first(address: str) -> dict[str, str]:
    """`told` of a database of the first schema."""
    return told(address, first_tables())


def told(address: str, of: tuple[Table, ...] | None = None) -> dict[str, str]:
    """One word a table for what a database holds, and one for which migrations it had."""
    with psycopg.connect(address) as connection:
        found = {t.name: digest(connection.execute(t.select().encode()).fetchall()) for t in of or tables()}
        book = connection.execute(b"SELECT name FROM holdfast_migration ORDER BY name").fetchall()
        columns = connection.execute(
            b"SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2"
        ).fetchall()
    return found | {"book": digest(book), "columns": digest(columns)}


def test_every_row_of_an_older_schema_is_there_after_the_upgrade(rows: Rows, database: str, postgres: Lender) -> None:
    """As the old columns held it; and the role of applications sees all of it, after ``store init``."""
    admin, application = postgres.server.at(database), postgres.server.at(database, "holdfast_app")
    make_database(admin, rows)
    before = as_first(rows)
    initialize(admin)

    with psycopg.connect(admin) as connection:
        for table in first_tables():
            assert connection.execute(table.select().encode()).fetchall() == before[table.name]
        for table in tables():
            connection.execute(table.select().encode())
    with Memory(application, embedder=HashEmbedder()) as memory:
        memory.digest()
        assert memory.doctor().findings == ()
        chat = memory.conversation("c", user="ana", org="acme")
        chat.record("I have a dog named Bello.", "Nice!")
        assert "Köln" in str(chat.context("Where do they live?").messages)
        assert memory.user("ana", org="acme").search("Bello")


class Counted:
    """A connection that sends a migration statement by statement and says when the next one is due."""

    def __init__(self, connection: Connection, next_one: Kill) -> None:
        self._connection, self._next = connection, next_one

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, sql: bytes, args: Any = None) -> Any:
        answer = None
        for one in [sql] if args else statements(sql.decode() if isinstance(sql, bytes) else sql):
            self._next()
            answer = self._connection.execute(one.encode() if isinstance(one, str) else one, args)
        return answer


def upgrade_counted(address: str, next_one: Kill) -> None:
    connection = connect(address)
    schema.migrate(Counted(connection, next_one))  # type: ignore[arg-type]
    connection.close()


def test_an_upgrade_that_is_killed_leaves_the_old_one_and_is_then_completed(
    rows: Rows, database: str, postgres: Lender, full: bool
) -> None:
    """Killed with SIGKILL before each statement, nothing of it stands; the next one does all of it."""
    admin = postgres.server.at(database)
    make_database(admin, rows)
    before = told_first(admin)
    reading, writing = os.pipe()
    postgres.server.create(f"{database}_whole", database)
    assert not killed_at(
        MANY, lambda _: upgrade_counted(postgres.server.at(f"{database}_whole"), lambda: os.write(writing, b"."))
    )
    os.close(writing)
    with open(reading, "rb") as noted:
        number = len(noted.read())
    expected = told(postgres.server.at(f"{database}_whole"))
    postgres.server.drop(f"{database}_whole")

    assert number > 7
    for at in some(number, full):
        assert killed_at(at, lambda next_one: upgrade_counted(admin, next_one))
        assert told_first(admin) == before
    upgrade(admin)
    assert told(admin) == expected
    if full:
        print(f"killed at each of {number} statements")


@pytest.mark.slow
def test_a_server_that_crashes_in_the_middle_comes_back_with_the_old_one(rows: Rows, full: bool) -> None:
    """`pg_ctl -m immediate` between two statements of an upgrade: after recovery it begins anew, and is completed."""
    server = Server(haste=False)
    try:
        server.create("old")
        admin = server.at("old")
        make_database(admin, rows)
        before = told_first(admin)
        for at in (4, 7, 10, 13) if full else (7,):
            reading, writing = os.pipe()
            child = stopped_before(at, writing, lambda next_one: upgrade_counted(admin, next_one))
            assert os.read(reading, 1) == b"."
            server.stop("immediate")
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(reading)
            os.close(writing)
            server.start()
            assert told_first(admin) == before
        upgrade(admin)
        with psycopg.connect(admin) as connection:
            for table in first_tables():
                assert connection.execute(table.select().encode()).fetchall() == as_first(rows)[table.name]
    finally:
        server.close()


def test_processes_that_upgrade_at_once_do_it_once(rows: Rows, database: str, postgres: Lender) -> None:
    admin = postgres.server.at(database)
    make_database(admin, rows)

    assert at_once([lambda: upgrade(admin)] * 4) == [0] * 4
    with psycopg.connect(admin) as connection:
        book = connection.execute(b"SELECT name FROM holdfast_migration ORDER BY name").fetchall()
        held = [connection.execute(table.select().encode()).fetchall() for table in first_tables()]
    assert [name for (name,) in book] == NAMES
    assert held == list(as_first(rows).values())


def test_a_role_that_may_not_upgrade_is_told_who_does(rows: Rows, database: str, postgres: Lender) -> None:
    """And a server that takes no writes says so; either way the database stays as it was."""
    admin = postgres.server.at(database)
    make_database(admin, rows)
    with psycopg.connect(admin) as connection:
        connection.execute(b"GRANT SELECT ON holdfast_migration TO holdfast_app")
    before = told_first(admin)
    with pytest.raises(StoreError, match="store init"):
        Memory(postgres.server.at(database, "holdfast_app"))
    with pytest.raises(StoreReadOnly, match="read-only or a standby"):
        Memory(f"{admin}&options=-cdefault_transaction_read_only%3Don")

    assert told_first(admin) == before


def test_a_migration_is_sent_as_it_is_written() -> None:
    """What the kills count, one by one, is what an upgrade sends at once."""
    for _, sql in schema.migrations():
        assert "\n".join(f"{one};" for one in statements(sql)).split() == sql.split()
