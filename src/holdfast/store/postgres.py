"""
A PostgreSQL database, for any number of processes and machines.

Reads see one snapshot.  Writes of one person take turns at the person's row, so that what a function
read stands until it commits; writes of different people never wait for each other.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg
from psycopg.sql import SQL, Literal
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from ..config import Config
from ..errors import ConfigError, StoreBusy, StoreClosed, StoreError
from ..scope import Scope
from .eraseview import SqlEraseView
from .postgresschema import migrate
from .protocol import ReadView, Scrubbed, WriteView
from .psycopgdriver import AGAIN, PsycopgDriver, translated
from .readview import Driver, SqlReadView
from .rows import Row
from .sqlstore import SqlStore

T = TypeVar("T")

_DEFAULTS = Config()
_TRIES = 10
_BACKOFF_S = 0.005
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"
UNSEARCHED = (
    "PostgreSQL keeps deleted rows until VACUUM and its log until that is recycled: "
    "run VACUUM, then pg_switch_wal() and a checkpoint"
)


class PostgresStore(SqlStore):
    """A ``Store`` in a PostgreSQL database, named by a ``postgresql://`` address."""

    def __init__(self, location: str, config: Config = _DEFAULTS) -> None:
        """
        Connect, and bring the schema up to date when the role may.

        Raises:
            StoreUnavailable: the server cannot be reached.
            StoreTooNew: a newer version of this library wrote the database.
            ConfigError: the address cannot be read.
        """
        self._config = config
        self._process = os.getpid()
        self._inside = threading.local()
        self._closed = False
        try:
            with psycopg.connect(location, autocommit=True, connect_timeout=10) as connection:
                migrate(connection)
        except psycopg.ProgrammingError as error:
            if error.sqlstate is None:
                raise ConfigError("the address cannot be read", hint="postgresql://user@host/database") from error
            raise translated(error) from error
        except psycopg.Error as error:
            raise translated(error) from error
        self._pool: ConnectionPool[psycopg.Connection[Row]] = ConnectionPool(
            location,
            min_size=1,
            max_size=config.store_connections,
            timeout=config.busy_timeout_ms / 1000,
            kwargs={"autocommit": True, "application_name": "holdfast"},
            open=True,
        )

    def read(self, scope: Scope, work: Callable[[ReadView], T]) -> T:
        """See the protocol."""
        return self._in_turn(_READ, scope.org, lambda driver: work(SqlReadView(driver, scope)))

    def write(self, scope: Scope, work: Callable[[WriteView], T]) -> T:
        """See the protocol."""
        key = {"org": scope.org, "user_id": scope.user, "bot": scope.bot}

        def in_turn(driver: PsycopgDriver) -> T:
            driver.row_for_turn = _take_turn(driver, key)
            answer = work(_TurnView(driver, scope))
            if driver.row_for_turn:
                driver.run("leave_no_row", key)
            return answer

        return self._in_turn(_WRITE, scope.org, in_turn)

    def _reading(self, work: Callable[[Driver], T]) -> T:
        return self._in_turn(_READ, None, work)

    def _writing(self, work: Callable[[Driver], T]) -> T:
        return self._in_turn(_WRITE, None, work)

    def _in_turn(self, begin: str, org: str | None, work: Callable[[PsycopgDriver], T]) -> T:
        """
        Run *work* in one transaction of *org*, or across all; again from the start when others were in the way.
        """
        self._checked()
        self._inside.a_call = True
        seen = SQL("SET LOCAL holdfast.across = 'on'") if org is None else _of_org(org)
        opening = SQL("; ").join([SQL(begin), seen])
        try:
            for attempt in range(_TRIES):
                try:
                    with self._connection() as connection:
                        return _transaction(connection, opening, work)
                except AGAIN as error:
                    if attempt == _TRIES - 1:
                        raise StoreBusy("others changed the same rows again and again", hint="try again") from error
                    time.sleep(_BACKOFF_S * 2**attempt)
                except psycopg.Error as error:
                    raise translated(error) from error
        finally:
            self._inside.a_call = False
        raise AssertionError("the last try returns or raises")

    @contextmanager
    def _connection(self) -> Iterator[psycopg.Connection[Row]]:
        """A connection that is back in its pool afterwards, clean or thrown away."""
        try:
            connection = self._pool.getconn()
        except PoolClosed as error:
            raise StoreClosed("this store was closed before the call", hint="open it again") from error
        except PoolTimeout as error:
            raise StoreBusy("no connection to the server became free", hint="see Config.store_connections") from error
        try:
            yield connection
        except BaseException:
            if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                with suppress(psycopg.Error):
                    connection.rollback()
            raise
        finally:
            self._pool.putconn(connection)

    def _checked(self) -> None:
        """
        Raises:
            StoreClosed: ``close`` was called.
            StoreError: the process was forked, or the call comes from within another one's function.
        """
        if self._closed:
            raise StoreClosed("this store was closed before the call", hint="open it again")
        if os.getpid() != self._process:
            hint = "open the store after the fork, in each process"
            raise StoreError(
                "this store was opened in the parent process and cannot be used in a forked one", hint=hint
            )
        if getattr(self._inside, "a_call", False):
            raise StoreError("a store was called from within read() or write()", hint="use the view that was given")

    def stats(self) -> Mapping[str, int]:
        """See the protocol."""
        found = self._reading(lambda driver: driver.run("rows_per_table", {}) + driver.run("file_bytes", {}))
        return {row[0]: row[1] for row in found}

    def scrub(self, traces: Sequence[bytes]) -> Scrubbed:
        """See the protocol; the bytes of a server's disk are out of reach from here."""
        self._checked()
        return Scrubbed(why=UNSEARCHED)

    def backup(self, path: str) -> None:
        """See the protocol."""
        raise StoreError("a server's database is not backed up to a file from here", hint="use pg_dump, see the docs")

    def close(self) -> None:
        """See the protocol."""
        if not self._closed and os.getpid() == self._process:
            self._closed = True
            self._pool.close()


class _TurnView(SqlEraseView):
    """A transaction's view that does not show a row which is only there because the turn was taken at it."""

    def count_rows(self) -> dict[str, int]:
        """See the protocol."""
        for_turn = isinstance(self._driver, PsycopgDriver) and self._driver.row_for_turn
        return super().count_rows() | ({"person": 0} if for_turn else {})


def _of_org(org: str) -> Any:
    return SQL("SET LOCAL holdfast.org = {}").format(Literal(org))


def _take_turn(driver: PsycopgDriver, key: Mapping[str, Any]) -> bool:
    """Wait until nobody else writes this person's memory; ``True`` when the person had no row yet."""
    while not driver.run("take_turn", key):
        if driver.run("take_first_turn", {**key, "created_at": time.time_ns() // 1_000_000}):
            return True
    return False


def _transaction(connection: psycopg.Connection[Row], opening: Any, work: Callable[[PsycopgDriver], T]) -> T:
    connection.execute(opening)
    try:
        answer = work(PsycopgDriver(connection))
    except BaseException:
        with suppress(psycopg.Error):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
    return answer
