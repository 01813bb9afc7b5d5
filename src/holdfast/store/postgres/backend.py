"""
A backend in a PostgreSQL database, for any number of processes and machines.

Reads see one snapshot.  Writes of one user take turns at the user's row, so what a function read stays true until it
commits; writes of different users never wait for each other.
"""

from __future__ import annotations

import os
import random
import threading
import time
import weakref
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import groupby
from typing import Any, Self, TypeVar

import psycopg
from psycopg import errors
from psycopg.sql import SQL

from ...config import Config
from ...errors import Conflict, HoldfastError, StoreClosed, StoreError, StoreReadOnly
from ...reports import Finding
from ...scope import Scope
from ..maintenance import BATCH_ROWS, copy, digest_of
from ..port import (
    Backend,
    CopySource,
    CopyTarget,
    DatabaseHealth,
    Distribution,
    Driver,
    Maintenance,
    Progress,
    Row,
    ScrubReport,
    StoreInit,
    Table,
)
from ..queries import tables
from ..sqlite.connection import write_manifest
from ..values import Scrubbed
from .cluster import distribute, is_spread
from .driver import Connection, Connections, Gone, InTheWay, PsycopgDriver, connect, of_org, translated
from .schema import apply_owner_policies, grant_owner, initialize, migrate, owner_policies
from .scrub import scrub

T = TypeVar("T")

_DEFAULTS = Config()
_TRIES = 10
_BACKOFF_S = 0.005
_COMEBACK_S = 10.0  # how long a call waits for a server that restarts
_ACROSS_TIMES = 10  # as long as a statement about one user may one across all take
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

    def owner_policies(self) -> str:
        """Return the statements by which users' own database roles read the rows of their user alone."""
        return owner_policies()

    def apply_owner_policies(self) -> None:
        """Run them as the owner of the tables."""
        apply_owner_policies(self.location)

    def grant_owner(self, role: str, user: str, org: str, *, revoke: bool) -> None:
        """Give a user's own role that user's rows to read, or take them away again."""
        grant_owner(self.location, role, user, org, revoke=revoke)

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
                    time.sleep(_BACKOFF_S * 2**tries * random.uniform(0.5, 1.5))  # not all of them together again
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
    most = config.statement_timeout_ms
    across = f"{both}; SET LOCAL statement_timeout = {_ACROSS_TIMES * most}; SET LOCAL holdfast.across = 'on'"
    return SQL(across), SQL(f"{both}; SET LOCAL statement_timeout = {most}; ")


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


DEAD_ROWS = 10_000  # fewer in a table are no lag
OLD_XIDS = 1_000_000_000  # of some two billion until the server stops
CHECKED = (
    "row-security",
    "policies",
    "public-rights",
    "collation",
    "index-valid",
    "table-missing",
    "login",
    "schema-rights",
    "table-rights",
    "server-durability",
    "server-checksums",
    "server-log",
    "standby",
    "connections",
    "autovacuum",
    "vacuum-lag",
    "old-transactions",
    "replication-slot",
)
_INIT = "run `holdfast store init` with the address of the role that owns the tables"


def health(driver: Driver) -> DatabaseHealth:
    """Look at all of it in one snapshot."""
    (server,) = driver.run("health_server", {})
    settings = {name: value for name, value in driver.run("health_settings", {})}
    there = driver.run("health_tables", {})
    version, role, _, _, standby, _, _, collation, vector, _ = server
    forced = sum(1 for row in there if row[1])
    about = {
        "version": f"PostgreSQL {version}",
        "role": role,
        "row level security": f"forced on {forced} tables",
        "collation": f"C for every text (the database's own: {collation})",
        "pgvector": f"{vector}, not needed" if vector else "none, and none needed",
        "state": "standby" if standby else "primary",
    }
    notices = (*_login(server, there), *_server_settings(settings, server[-1]), *_upkeep(driver, server))
    return DatabaseHealth(about, tuple(_tables(there)), notices, CHECKED)


def _tables(there: list[tuple[object, ...]]) -> Iterator[Finding]:
    """Find tables whose guards, collations or indexes are not as created."""
    found = {str(row[0]): row for row in there}
    for table in tables():
        if table.name not in found:
            yield Finding("table-missing", table.name, "restore a backup: the table was dropped")
            continue
        _, forced, ours, others, _, public, collated, invalid, *_ = found[table.name]
        if "org" in table.columns and not forced:
            sql = f"ALTER TABLE {table.name} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY"
            yield Finding("row-security", table.name, sql)
        if "org" in table.columns and (ours != 2 or others):
            hint = (
                "a backup restored into a new database has them"
                if not others
                else "drop the policies that are not ours"
            )
            yield Finding("policies", table.name, hint)
        if public:
            yield Finding("public-rights", table.name, f"REVOKE ALL ON {table.name} FROM PUBLIC")
        if collated:
            hint = 'ALTER TABLE … ALTER COLUMN … TYPE text COLLATE "C": lists come in another order than they should'
            yield Finding("collation", f"{table.name}: {collated}", hint)
        if invalid:
            yield Finding("index-valid", f"{table.name}: {invalid}", f"REINDEX TABLE {table.name}")


def _login(server: tuple[object, ...], there: list[tuple[object, ...]]) -> Iterator[Finding]:
    _, role, everything, passes, *_ = server
    if everything or passes:
        why = "a superuser" if everything else "BYPASSRLS"
        hint = f"row level security does not hold it: let applications log in as the role of `store init`; {_INIT}"
        yield Finding("login", f"{role}: {why}", hint)
    elif any(row[4] for row in there):
        yield Finding("login", f"{role}: owns tables", "let applications log in as the role that `store init` made")
    if everything or any(row[4] for row in there):
        return
    if server[5]:
        yield Finding("schema-rights", f"{role} may create tables", _INIT)
    for name in (str(row[0]) for row in there if row[8]):
        yield Finding("table-rights", f"{role} may empty {name}", f"REVOKE TRUNCATE ON {name} FROM {role}")
    for table in ("erasure", "ledger_key"):
        if any(row[0] == table and row[9] for row in there):
            hint = f"REVOKE UPDATE, DELETE ON {table} FROM {role}: the ledger of erasures only grows"
            yield Finding("table-rights", f"{role} may change {table}", hint)


def _server_settings(settings: Mapping[str, str], used: int) -> Iterator[Finding]:
    for name in ("fsync", "full_page_writes", "synchronous_commit"):
        if settings.get(name) == "off":
            yield Finding("server-durability", f"{name} = off", "turn it on: a crash may lose what was acknowledged")
    if settings.get("data_checksums") == "off":
        hint = "stop the server and run pg_checksums --enable: a damaged disk would go unnoticed"
        yield Finding("server-checksums", "data_checksums = off", hint)
    statements = settings.get("log_statement") in ("mod", "all")
    slow = any(int(settings.get(f"log_min_duration_{name}", -1)) >= 0 for name in ("statement", "sample"))
    values = settings.get("log_parameter_max_length", "-1") != "0"
    on_error = settings.get("log_parameter_max_length_on_error", "0") != "0"
    if ((statements or slow) and values) or on_error:
        hint = "log_parameter_max_length = 0, also on_error: erasures do not reach the server's log files"
        yield Finding("server-log", "the server logs what users say", hint)
    most = int(settings.get("max_connections", 0))
    if most and used > 0.8 * most:
        hint = "raise max_connections, use a pooler, or lower Config.store_connections"
        yield Finding("connections", f"{used} of {most}", hint)
    if settings.get("autovacuum") == "off":
        yield Finding("autovacuum", "autovacuum = off", "turn it on, or VACUUM every day: tables only grow")


def _upkeep(driver: Driver, server: tuple[object, ...]) -> Iterator[Finding]:
    if server[4]:
        yield Finding("standby", "the server takes no writes", "connect to the primary")
    for name, dead, live in driver.run("health_vacuum", {"least": DEAD_ROWS}):
        hint = f"VACUUM {name}; autovacuum does not keep up, or a long transaction or a slot holds the rows"
        yield Finding("vacuum-lag", f"{name}: {dead:,} dead rows, {live:,} live ones", hint)
    age = int(str(server[6]))
    if age > OLD_XIDS:
        hint = "VACUUM (FREEZE) as its owner: at two billion the server stops"
        yield Finding("old-transactions", f"the oldest is {age:,} back", hint)
    for (slot,) in driver.run("health_slots", {}):
        hint = f"pg_drop_replication_slot('{slot}'), if its reader is gone: the log and deleted rows are kept for it"
        yield Finding("replication-slot", f"{slot} has no reader", hint)


_SNAPSHOT = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL holdfast.across = 'on'"
# A transaction sees one picture of the sessions unless it throws that away.
_SEEN_ANEW = b"SELECT pg_stat_clear_snapshot()"
_OTHERS = b"""
SELECT count(*) FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'holdfast'
"""
_OCCUPIED = "choose an empty one; `holdfast store restore --replace` empties it first"
_GOING_S = 5.0
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
        for org, rows_of_org in groupby(rows, key=lambda row: row[place]):
            self._driver.write_in(org)
            self._driver.repeated(sql, list(rows_of_org))


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
        connection.execute(_SEEN_ANEW)
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
