"""
A backend in a PostgreSQL database, for any number of processes and machines.

Reads see one snapshot.  Writes of one user take turns at the user's row, so what a function read stays true until it
commits; writes of different users never wait for each other.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, Self, TypeVar

import psycopg
from psycopg.sql import SQL

from ...config import Config
from ...errors import HoldfastError, StoreClosed, StoreError, StoreReadOnly
from ...scope import Scope
from ..maintenance import copy
from ..port import (
    Backend,
    CopySource,
    CopyTarget,
    DatabaseHealth,
    Distribution,
    Driver,
    Maintenance,
    Progress,
    ScrubReport,
    StoreInit,
)
from ..sqlite.manifest import write_manifest
from ..values import Scrubbed
from .cluster import distribute, is_spread
from .copying import reading, writing
from .driver import Connection, Connections, Gone, InTheWay, PsycopgDriver, connect, of_org, translated
from .health import health
from .schema import initialize, migrate
from .scrub import scrub

T = TypeVar("T")

_DEFAULTS = Config()
_TRIES = 10
_BACKOFF_S = 0.005
_COMEBACK_S = 10.0  # how long a call waits for a server that restarts
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"
UNSEARCHED = (
    "PostgreSQL keeps deleted rows until VACUUM, and its log until the files of that are written over; "
    "`holdfast store scrub`, as the role that owns the tables, completes it"
)


class PostgresMaintenance(Maintenance):
    """The work of an operator on a PostgreSQL database, on a cluster too."""

    def source(self) -> AbstractContextManager[CopySource]:
        """Open one snapshot."""
        return reading(self.location)

    def target(self, replaces: Mapping[str, str] | None = None) -> AbstractContextManager[CopyTarget]:
        """Open one transaction to copy into, on an empty database or one whose tables it *replaces*."""
        return writing(self.location, replaces)

    def initialize(self, role: str, password: str | None) -> StoreInit:
        """Create the schema, and a role with the rights that an application needs."""
        return initialize(self.location, role, password)

    def scrub(self, words: Sequence[str], progress: Progress | None) -> ScrubReport:
        """Remove deleted rows from the server's disk and search its bytes for *words*."""
        return scrub(self.location, words, progress)

    def distribute(
        self, shards: int, *, dry_run: bool, progress: Callable[[str, int, int], None] | None
    ) -> Distribution:
        """Distribute the tables over the nodes of a Citus cluster."""
        return distribute(self.location, shards=shards, dry_run=dry_run, progress=progress)


class PostgresBackend(Backend):
    """A PostgreSQL database, named by a ``postgresql://`` address."""

    maintenance = PostgresMaintenance

    def __init__(self, location: str, config: Config = _DEFAULTS) -> None:
        """
        Connect, and bring the schema up to date when the role may.

        Raises:
            StoreUnavailable: the server cannot be reached.
            StoreTooNew: a newer version of this library wrote the database.
            StoreError: the server is too old, the login was refused, or the schema is missing and the role may
                not make it.
            ConfigError: the address cannot be read.
        """
        self._location = location
        self._config = config
        self._process = os.getpid()
        self._inside = threading.local()
        self._closed = False
        self._away = False  # a call waited for the server in vain, and none got through since
        connection = connect(location)
        try:
            migrate(connection)
            self.spread = is_spread(connection)
        except psycopg.Error as error:
            raise translated(error) from error
        finally:
            connection.close()
        self._connections = Connections(location, config)
        self._finalizer = weakref.finalize(self, _let_go, self._connections, self._process)
        self._across, self._limited = _settings(config)

    @classmethod
    def open(cls, location: str, config: Config) -> Self:
        """Connect to *location*, and bring the schema up to date when the role may."""
        return cls(location, config)

    def read(self, work: Callable[[Driver], T], scope: Scope | None = None) -> T:
        """Run *work* over one snapshot, of *scope*'s org or of all."""
        return self._in_turn(_READ, None if scope is None else scope.org, work)

    def write(self, work: Callable[[Driver], T], scope: Scope | None = None) -> T:
        """Run *work* in one transaction; that of a user waits for the one before."""
        if scope is None:
            return self._in_turn(_WRITE, None, work)
        key = {"org": scope.org, "user_id": scope.user, "bot": scope.bot}

        def in_turn(driver: PsycopgDriver) -> T:
            driver.row_for_turn = _take_turn(driver, key)
            answer = work(driver)
            if driver.row_for_turn and driver.failure is None:
                driver.run("remove_turn_row", key)
            return answer

        return self._in_turn(_WRITE, scope.org, in_turn)

    def _in_turn(self, begin: str, org: str | None, work: Callable[[PsycopgDriver], T]) -> T:
        """
        Run *work* in one transaction of *org*, or across all.

        It runs again from the start when others were in the way, and when the connection was lost before
        anybody can have committed it: a server that restarts costs its callers a wait.  Once a call has waited
        in vain, the next ones try once: what answers for others says at once that it cannot.
        """
        self._checked()
        self._inside.a_call = True
        seen = self._across if org is None else self._limited + of_org(org)
        opening = SQL(begin) + seen
        tries, until = 0, time.monotonic() + (0 if self._away else _COMEBACK_S)
        try:
            while True:
                try:
                    with self._connections.lent() as connection:
                        driver = PsycopgDriver(
                            connection, across=org is None, snapshot=begin == _READ, spread=self.spread
                        )
                        answer = _transaction(connection, opening, work, driver)
                    self._away = False
                    return answer
                except InTheWay:
                    tries += 1
                    if tries == _TRIES:
                        raise
                    time.sleep(_BACKOFF_S * 2**tries)
                except Gone as error:
                    self._connections.forget()
                    if error.at_commit or self._closed:
                        raise
                    if time.monotonic() > until:
                        self._away = True
                        raise
                    time.sleep(0.05)
                except StoreReadOnly:
                    self._connections.forget()  # an address of several servers is asked again for the primary
                    raise
        finally:
            self._inside.a_call = False

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

    def changes(self) -> int:
        """
        Return another number whenever a transaction that wrote has ended since the last call.

        On a cluster it always is another one: a commit on one node leaves no trace on the others.
        """
        if self.spread:
            return super().changes()
        (seen,) = self.read(lambda driver: driver.run("snapshot", {}))
        return zlib.crc32(seen[0].encode())

    def size_bytes(self) -> int:
        """Return the size of the database, on all nodes of a cluster."""
        query = "cluster_bytes" if self.spread else "file_bytes"
        return int(self.read(lambda driver: driver.run(query, {}))[0][1])

    def health(self) -> DatabaseHealth:
        """Examine the server, its settings and the guards of the tables."""
        return self.read(health)

    def scrub(self, traces: Sequence[bytes]) -> Scrubbed:
        """Report that the bytes of a server's disk are out of reach from here."""
        self._checked()
        return Scrubbed(why=UNSEARCHED)

    def backup(self, path: str) -> None:
        """Copy the whole database into a SQLite file at *path* while it is in use."""
        self._checked()
        if os.path.exists(path):
            raise StoreError(f"there is a file at {path} already", hint="remove it, or choose another path")
        part = f"{path}.part-{os.getpid()}-{threading.get_ident()}"
        try:
            copy(self._location, part)
            write_manifest(part)
            os.rename(part, path)
        except OSError as error:
            hint = "check the folder and the space on its disk"
            raise StoreError(f"the backup could not be written to {path}: {error.strerror}", hint=hint) from error
        finally:
            with suppress(FileNotFoundError):
                os.unlink(part)

    def close(self) -> None:
        """Close the connections."""
        self._closed = True
        self._finalizer()


def _take_turn(driver: PsycopgDriver, key: Mapping[str, Any]) -> bool:
    """Wait until no other transaction writes this user's memory; ``True`` when the user had no row yet."""
    while not driver.run("lock_user", key):
        if driver.run("lock_new_user", {**key, "created_at": time.time_ns() // 1_000_000}):
            return True
    return False


def _settings(config: Config) -> tuple[SQL, SQL]:
    """
    Return the settings of a transaction across all users, and of one user's before its org.

    They are settings of the transaction and not of the session: behind a pooler a session is anybody's.
    """
    limits = {
        "lock_timeout": f"{max(1, config.busy_timeout_ms)}",
        "idle_in_transaction_session_timeout": f"{max(60_000, 2 * config.busy_timeout_ms)}",
    }
    if not config.durable:
        limits["synchronous_commit"] = "off"
    both = "".join(f"; SET LOCAL {name} = {value}" for name, value in limits.items())
    one = f"{both}; SET LOCAL statement_timeout = {config.statement_timeout_ms}; "
    return SQL(f"{both}; SET LOCAL holdfast.across = 'on'"), SQL(one)


def _transaction(connection: Connection, opening: Any, work: Callable[[PsycopgDriver], T], driver: PsycopgDriver) -> T:
    """Run *work* between BEGIN and COMMIT; raise the error of a statement even if *work* swallowed it."""
    try:
        connection.execute(opening)
        answer = work(driver)
        if driver.failure is not None:
            raise driver.failure
    except psycopg.Error as error:  # of the opening: the driver turns its own into ours
        raise translated(error) from error
    except Exception:
        _roll_back(connection)
        raise
    try:
        driver.finish(b"COMMIT")
    except Gone as error:
        error.at_commit = True
        raise
    except HoldfastError:
        _roll_back(connection)
        raise
    return answer


def _roll_back(connection: Connection) -> None:
    with suppress(psycopg.Error):
        connection.execute("ROLLBACK")


def _let_go(connections: Connections, process: int) -> None:
    if os.getpid() == process:
        connections.close()
