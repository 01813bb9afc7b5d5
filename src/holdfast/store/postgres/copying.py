"""A PostgreSQL database as the source or target of a copy: one snapshot, or one transaction on an empty database."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby

import psycopg
from psycopg import errors

from ...errors import Conflict, StoreError
from ..maintenance import BATCH_ROWS, digest_of
from ..port import CopySource, CopyTarget, Row, Table
from ..queries import tables
from .driver import Connection, PsycopgDriver, connect, translated
from .schema import migrate

_SNAPSHOT = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL holdfast.across = 'on'"
_OTHERS = b"""
SELECT count(*) FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'holdfast'
"""
_OCCUPIED = "choose an empty one; `holdfast store restore --replace` empties it first"
_GOING_S = 2.0
_LOCK_MS = 10_000
_ONE_WRITER = b"BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL holdfast.across = 'on'"


class _Database:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._driver = PsycopgDriver(connection)

    def count(self, table: Table) -> int:
        return int(self._connection.execute(f"SELECT COUNT(*) FROM {table.name}".encode()).fetchall()[0][0])

    def rows(self, table: Table) -> Iterator[Row]:
        with self._connection.cursor("copied") as cursor:
            cursor.itersize = BATCH_ROWS
            cursor.execute(table.select().encode())
            yield from cursor

    def add(self, table: Table, rows: Sequence[Row]) -> None:
        """Org by org, as row level security wants it; ``COPY`` is not for those whom it holds."""
        sql = table.insert("%s").encode()
        if "org" not in table.columns:
            self._driver.repeated(sql, rows)
            return
        place = table.columns.index("org")
        for org, of_org in groupby(rows, key=lambda row: row[place]):
            self._driver.write_in(org)
            self._driver.repeated(sql, list(of_org))


@contextmanager
def reading(location: str) -> Iterator[CopySource]:
    """Open one snapshot to copy from."""
    with _connected(location) as connection:
        connection.execute(_SNAPSHOT)
        yield _Database(connection)
        connection.execute("ROLLBACK")


@contextmanager
def writing(location: str, was: Mapping[str, str] | None = None) -> Iterator[CopyTarget]:
    """
    Open one transaction to copy into, committed when nothing was raised.

    Args:
        location: ``postgresql://…``
        was: the memory that is there goes, if these tables still have these digests; ``None``: there must be none.

    Raises:
        Conflict: something is in there already; or it is in use, or has changed.
        StoreError: the role may not empty the tables.
    """
    with _connected(location) as connection:
        connection.execute(_ONE_WRITER)
        database = _Database(connection)
        if was is not None:
            _emptied(connection, database, was)
        for table in tables():
            if database.count(table):
                raise Conflict(f"the database holds a memory already: rows of {table.name}", hint=_OCCUPIED)
        yield database
        connection.execute("COMMIT")


def _emptied(connection: Connection, database: _Database, was: Mapping[str, str]) -> None:
    """Lock the tables exclusively, check that they are as they were, and empty them; invisible until the commit."""
    others, until = 1, time.monotonic() + _GOING_S
    while others and time.monotonic() < until:  # a session that was closed a moment ago may still be counted
        others = connection.execute(_OTHERS).fetchall()[0][0]
        time.sleep(0.01 if others else 0)
    if others:
        hint = "stop the servers and workers first: what they keep in memory would no longer be what is stored"
        raise Conflict(f"{others} sessions of Holdfast are connected to the database", hint=hint)
    names = ", ".join(table.name for table in tables())
    try:
        connection.execute(f"SET LOCAL lock_timeout = {_LOCK_MS}; LOCK TABLE {names} IN ACCESS EXCLUSIVE MODE".encode())
        changed = [t.name for t in tables() if t.name in was and digest_of(database, t) != was[t.name]]
        if changed:
            hint = "stop the servers and workers, then restore again"
            raise Conflict(f"the database was written to during the restore: {', '.join(changed)} changed", hint=hint)
        connection.execute(f"TRUNCATE TABLE {names}".encode())
    except errors.InsufficientPrivilege as error:
        hint = "use the address that `holdfast store init` was run with"
        raise StoreError("only the role that owns the tables may replace what is in them", hint=hint) from error


@contextmanager
def _connected(location: str) -> Iterator[Connection]:
    connection = connect(location)
    try:
        migrate(connection)
        yield connection
    except psycopg.Error as error:
        raise translated(error) from error
    finally:
        connection.close()
