"""The side of a copy that is a PostgreSQL database: one snapshot of it, or one transaction on an empty one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby

import psycopg

from ..errors import Conflict
from .connections import Connection, connect
from .copying import BATCH_ROWS, Source, Table, Target, tables
from .postgresschema import migrate
from .psycopgdriver import PsycopgDriver, translated
from .rows import Row

_SNAPSHOT = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL holdfast.across = 'on'"
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
def reading(location: str) -> Iterator[Source]:
    """One snapshot."""
    with _connected(location) as connection:
        connection.execute(_SNAPSHOT)
        yield _Database(connection)
        connection.execute("ROLLBACK")


@contextmanager
def writing(location: str) -> Iterator[Target]:
    """
    One transaction, committed when nothing was raised.

    Raises:
        Conflict: something is in there already.
    """
    with _connected(location) as connection:
        connection.execute(_ONE_WRITER)
        database = _Database(connection)
        for table in tables():
            if database.count(table):
                raise Conflict(f"the database holds a memory already: rows of {table.name}", hint="choose an empty one")
        yield database
        connection.execute("COMMIT")


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
