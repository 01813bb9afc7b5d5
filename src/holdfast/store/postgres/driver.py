"""
Connections to a PostgreSQL server, and named queries on them; PostgreSQL's errors become ours.

A store lends each connection to one caller at a time.  The caller who needs a new one opens it, so that the error
reaches the caller who waits, and no thread works in the background.  A connection that comes back in doubt is closed.
"""

from __future__ import annotations

import os
import re
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

import psycopg
from psycopg import errors
from psycopg.sql import SQL, Composed, Literal
from psycopg.types.numeric import Int8Dumper

from ...config import Config
from ...errors import (
    BadInput,
    ConfigError,
    Conflict,
    HoldfastError,
    StoreBusy,
    StoreClosed,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from ...text import expression
from .. import queries
from ..port import Row

_NO_TEXT = "a text holds a NUL or a lone surrogate, which no database can store"
_REMEMBERED_ROWS = 64  # of one answer: a snapshot may read all that somebody ever said
Given = Mapping[str, Any] | Sequence[Any]
"""The parameters of a statement, by name or by place."""

_OF_EVENTS = expression(r"event(_\d+)?")  # on a cluster a part of a table has a number


class InTheWay(StoreBusy):
    """Others changed the same rows, or waited for ours: the transaction is run again from the start."""


class Gone(StoreUnavailable):
    """The connection was lost; ``at_commit``: it is unknown whether the transaction was committed."""

    at_commit = False


_MEANING: tuple[tuple[str, type[StoreError], str, str], ...] = (
    ("53100", StoreFull, "no room left on the server's disk; nothing was half written", "free some space, then repeat"),
    ("53", StoreBusy, "the server is short of connections or memory", "try again; see the server's limits"),
    ("55P03", StoreBusy, "somebody else held the row for too long", "try again"),
    ("57014", StoreBusy, "the server stopped the statement, it took too long", "try again"),
    ("25006", StoreReadOnly, "the server takes no writes now: it is read-only or a standby", "connect to the primary"),
    ("42501", StoreError, "the role may not do that", "grant it the rights that `holdfast store init` gives"),
    ("42P01", StoreError, "a table is missing", "open the store once with a role that may create tables"),
    ("57P", Gone, "the server ended the connection", "try again in a moment"),
    ("08", Gone, "the server cannot be reached", "check that it runs, and its address"),
    ("25P03", Gone, "the server ended a transaction that stood still", "see Config.busy_timeout_ms"),
    ("28", StoreError, "the server refused the login", "check the user name and the password"),
    ("3D000", StoreError, "there is no such database", "create it first"),
)


def translated(error: psycopg.Error) -> HoldfastError:
    """Return our error for a psycopg error, by its SQLSTATE and never with the words of a row."""
    state = error.sqlstate or ""
    if isinstance(error, errors.SerializationFailure | errors.DeadlockDetected):
        return InTheWay(f"others changed the same rows again and again (SQLSTATE {state})", hint="try again")
    if state.startswith("23") and _OF_EVENTS.fullmatch(error.diag.table_name or ""):
        return InTheWay("others recorded events at the same time", hint="try again")  # they took the same number
    if state.startswith("23"):
        return Conflict(f"another caller was first (SQLSTATE {state})")
    if isinstance(error, psycopg.DataError) and not state:
        return BadInput(_NO_TEXT)
    for code, ours, meaning, hint in _MEANING:
        if state.startswith(code):
            return ours(f"{meaning} (SQLSTATE {state})", hint=hint)
    if not state and isinstance(error, psycopg.OperationalError):
        return Gone("the server cannot be reached", hint="check that it runs, and its address")
    return StoreError(f"PostgreSQL refused the call (SQLSTATE {state or 'none'}, {type(error).__name__})")


@cache
def statements() -> Mapping[str, tuple[bytes, tuple[str, ...]]]:
    """``{query name: (SQL with psycopg's parameters, their names in the order of first use)}``."""
    found = {}
    for name, sql in queries.load("postgres").items():
        names = queries.parameters(sql)
        found[name] = (queries.PARAMETER.sub(r"%(\1)s", sql.replace("%", "%%")).encode(), names)
    return found


_USER = ("org", "user_id", "bot")
_ARRAYS = {str: "text[]", int: "bigint[]", float: "double precision[]", bytes: "bytea[]"}
_INSERT = expression(r"(INSERT INTO \w+\s+\([^)]*\)\s+)VALUES \(((?:\s*%\(\w+\)s,?)+)\)([^%]*)")


@cache
def together(sql: bytes, names: tuple[str, ...], kinds: tuple[type, ...]) -> bytes | None:
    """
    Return one statement instead of many about the same user.

    Args:
        sql: a statement of `statements` that asks something, or inserts a row.
        names: of its parameters.
        kinds: the types of their values, in the same order; the type of ``None`` where all are ``None``.

    Returns:
        The same question asked, or row inserted, once for each entry of lists: all parameters but those of the
        user are lists.  ``None`` when there is no such statement, as nothing but the user differs, a type has
        no list, or as it does something else.
    """
    lists = {name: kind for name, kind in zip(names, kinds, strict=True) if name not in _USER}
    filled = {name: kind for name, kind in lists.items() if kind is not type(None)}
    inserted = _INSERT.fullmatch(sql.decode())
    if not filled or set(filled.values()) - _ARRAYS.keys() or not (inserted or sql.startswith(b"SELECT")):
        return None
    head, one, rest = inserted.groups() if inserted else ("", sql.decode(), "")
    for name in lists:
        one = one.replace(f"%({name})s", f"given.{name}" if name in filled else "NULL")
    arrays = ", ".join(f"%({name})s::{_ARRAYS[kind]}" for name, kind in filled.items())
    given = f"unnest({arrays}) AS given ({', '.join(filled)})"
    if inserted:
        return f"{head}SELECT {one} FROM {given} {rest}".encode()
    return f"SELECT found.* FROM {given}, LATERAL ({one}) AS found".encode()


def _kind(values: Sequence[Any]) -> type:
    """Return the type of all that are not ``None``; ``object`` when they differ."""
    kinds = {type(one) for one in values} - {type(None)}
    return kinds.pop() if len(kinds) == 1 else object if kinds else type(None)


@cache
def _answers(sql: bytes) -> bool:
    """Whether rows may come back from a statement."""
    return sql.startswith((b"SELECT", b"WITH")) or b"RETURNING" in sql


class PsycopgDriver:
    """
    See `holdfast.store.readview.Driver`.

    A statement from which no rows come back waits until one is asked for, or the end: they are sent
    together, in one journey to the server, and what one of them fails with is raised there.

    ``failure`` keeps an error after which the server takes no more statements of this transaction; further
    calls raise it again, and so does whoever would commit, so that a function which swallowed it loses nothing
    in silence.  ``row_for_turn``: the user has a row only because the turn was taken at it, and nobody saved
    one since.  With ``across`` the transaction sees every org and writes in the one that a statement names.
    ``snapshot`` says that it only reads, and that all of it reads the same state: what was asked before is known.
    ``spread``: over a cluster, where rows that come from a SELECT would go by way of the coordinator.
    """

    __slots__ = ("_across", "_connection", "_org", "_read", "_spread", "_waiting", "failure", "row_for_turn")

    def __init__(
        self, connection: psycopg.Connection[Row], *, across: bool = False, snapshot: bool = False, spread: bool = False
    ) -> None:
        self._spread = spread
        self._read: dict[tuple[Any, ...], list[Row]] | None = {} if snapshot else None
        self._connection = connection
        self._across = across
        self._org: str | None = None
        self._waiting: list[tuple[bytes | Composed, Sequence[Given]]] = []
        self.failure: HoldfastError | None = None
        self.row_for_turn = False

    def run(self, name: str, args: Mapping[str, Any]) -> list[Row]:
        """See `Driver.run`."""
        sql, names = statements()[name]
        if name == "save_user":
            self.row_for_turn = False
        if self._across and "org" in names and not sql.startswith(b"SELECT"):
            self.write_in(args["org"])
        given = {key: args[key] for key in names}
        if self._read is None:
            found = self._sent(sql, [given]) if _answers(sql) else self._wait(sql, [given])
            if name == "count_rows" and self.row_for_turn:
                found = [(table, 0 if table == "user" else number) for table, number in found]
            return found
        asked = (name, *given.values())
        if asked in self._read:
            return list(self._read[asked])
        found = self._sent(sql, [given])
        if len(found) <= _REMEMBERED_ROWS:
            self._read[asked] = list(found)
        return found

    def many(self, name: str, args: Iterable[Sequence[Any]]) -> list[Row]:
        """See `Driver.many`."""
        sql, names = statements()[name]
        given = [dict(zip(names, one, strict=True)) for one in args]
        answers = _answers(sql)
        if len(given) > 1 and (answers or not self._spread):
            lists = {name: [one[name] for one in given] for name in names}
            user = {name: lists[name][0] for name in names if name in _USER}
            alike = all(one.items() >= user.items() for one in given)
            if alike and (whole := together(sql, names, tuple(map(_kind, lists.values())))):
                sql, given = whole, [lists | user]
        return self.repeated(sql, given) if answers else self._wait(sql, given)

    def repeated(self, sql: bytes, given: Sequence[Given]) -> list[Row]:
        """Run one statement for each of the given parameters, sent together; all rows that come back."""
        return self._sent(sql, given) if given else []

    def finish(self, last: bytes) -> None:
        """Run the waiting statements, and then *last*, which ends the transaction."""
        self._sent(last, [()])

    def write_in(self, org: str) -> None:
        """Let the statements that follow write rows of *org*."""
        if org != self._org:
            self._wait(of_org(org), [()])
            self._org = org

    def _wait(self, sql: bytes | Composed, given: Sequence[Given]) -> list[Row]:
        if self.failure is not None:
            raise self.failure
        if given:
            self._waiting.append((sql, given))
        return []

    def _sent(self, sql: bytes, given: Sequence[Given]) -> list[Row]:
        waiting, self._waiting = self._waiting, []
        with (
            self._watched(pipeline=bool(waiting) or len(given) > 1),
            self._connection.cursor() as cursor,
        ):
            if waiting:
                with self._connection.pipeline():  # answers are fetched behind it: one inside would be a journey more
                    for one, of_one in waiting:
                        with self._connection.cursor() as silent:
                            _execute(silent, one, of_one)
                    _execute(cursor, sql, given)
            else:
                _execute(cursor, sql, given)
            found: list[Row] = []
            if _answers(sql):
                for result in cursor.results():
                    found += result.fetchall()
            return found

    @contextmanager
    def _watched(self, *, pipeline: bool) -> Iterator[None]:
        """
        Errors leave as ours; those that end the transaction are kept, and those of several statements.

        A session whose pipeline failed is closed: psycopg 3.3 takes the statements behind the failed one for
        prepared, though the server skipped them, and would ask for them by names that do not exist.
        """
        if self.failure is not None:
            raise self.failure
        try:
            yield
        except (psycopg.Error, UnicodeEncodeError) as error:
            meaning = translated(error) if isinstance(error, psycopg.Error) else BadInput(_NO_TEXT)
            if pipeline:
                _end(self._connection)
            if pipeline or not isinstance(meaning, BadInput):
                self.failure = meaning
            raise meaning from error


def _execute(cursor: psycopg.Cursor[Row], sql: bytes | Composed, given: Sequence[Given]) -> None:
    if len(given) == 1:
        cursor.execute(sql, given[0] or None)
    else:
        cursor.executemany(sql, given, returning=isinstance(sql, bytes) and _answers(sql))


def of_org(org: str) -> Composed:
    """
    Return the statement that names the org whose rows a transaction may touch.

    ``SET LOCAL`` and not ``set_config``: a cluster passes only the former on to its workers.
    """
    return SQL("SET LOCAL holdfast.org = {}").format(Literal(org))


Connection = psycopg.Connection[Row]

_CONNECT_S = 10
_KEEP_IDLE_S = 300.0
_IDLE = psycopg.pq.TransactionStatus.IDLE

# libpq gives no code for what a server says before a session begins, only its words.
_REFUSALS: tuple[tuple[str, type[HoldfastError], str, str], ...] = (
    (
        "password authentication failed|no password supplied|fe_sendauth|pg_hba.conf|role .* does not exist|not permitted to log",
        StoreError,
        "the server refused the login",
        "check the user name, the password, and the server's pg_hba.conf",
    ),
    ("database .* does not exist", StoreError, "there is no such database", "create it first: createdb NAME"),
    ("too many clients|remaining connection slots|too many connections", StoreBusy, "the server is full", "try again"),
    ('invalid .*option|missing "="|invalid port|invalid URI', ConfigError, "the address cannot be read", ""),
    ("starting up|shutting down|recovery", Gone, "the server is not ready", "try again in a moment"),
)

_alive: weakref.WeakSet[Connection] = weakref.WeakSet()


def connect(location: str) -> Connection:
    """
    Open a new connection to *location*.

    Raises:
        ConfigError: the address cannot be read.
        StoreUnavailable: the server cannot be reached.
        StoreBusy: it takes no further connection.
        StoreError: it refused the login, or has no such database.
    """
    try:
        connection = psycopg.connect(
            location, autocommit=True, connect_timeout=_CONNECT_S, fallback_application_name="holdfast"
        )
    except psycopg.ProgrammingError as error:
        raise ConfigError("the address cannot be read", hint="postgresql://user@host/database") from error
    except psycopg.OperationalError as error:
        raise _refused(error) from error
    connection.adapters.register_dumper(int, Int8Dumper)  # one type for every number: one prepared statement
    _alive.add(connection)
    return connection


def _refused(error: psycopg.OperationalError) -> HoldfastError:
    words = str(error)
    for pattern, ours, meaning, hint in _REFUSALS:
        if re.search(pattern, words):
            return ours(meaning, hint=hint or "postgresql://user@host/database")
    if error.sqlstate:
        return translated(error)
    reason = re.search(r"failed: (?!connection to)([^\n]+)", words)
    why = f": {reason[1]}" if reason else ""
    return Gone(f"the server cannot be reached{why}", hint="check that it runs, and its address")


class Connections:
    """At most so many connections to one server; the one used last is lent first."""

    def __init__(self, location: str, config: Config) -> None:
        self._location = location
        self._wait_s = config.busy_timeout_ms / 1000
        self._prepared = config.store_prepares
        self._places = threading.BoundedSemaphore(config.store_connections)
        self._idle: deque[tuple[Connection, float]] = deque()
        self._closed = False

    @contextmanager
    def lent(self) -> Iterator[Connection]:
        """
        Lend a connection to this caller alone.

        Raises:
            StoreBusy: none became free in time.
            StoreClosed: the store was closed.
        """
        if not self._places.acquire(timeout=self._wait_s):
            raise StoreBusy("no connection to the server became free", hint="see Config.store_connections")
        try:
            connection = self._taken()
            sound = False
            try:
                yield connection
                sound = True
            except Exception:
                sound = True  # an error, not an interruption: the state of the session says what it left
                raise
            finally:
                self._back(connection, sound=sound)
        finally:
            self._places.release()

    def _taken(self) -> Connection:
        if self._closed:
            raise StoreClosed("this store was closed before the call", hint="open it again")
        while True:
            try:
                connection, since = self._idle.pop()
            except IndexError:
                break
            if time.monotonic() - since < _KEEP_IDLE_S and not connection.closed:
                return connection
            _end(connection)
        connection = connect(self._location)
        if not self._prepared:
            connection.prepare_threshold = None
        return connection

    def _back(self, connection: Connection, *, sound: bool) -> None:
        """Only a session between two transactions is lent again: another's answer can wait in no other."""
        if sound and not self._closed and not connection.closed and connection.info.transaction_status == _IDLE:
            self._idle.append((connection, time.monotonic()))
        else:
            _end(connection)

    def forget(self) -> None:
        """Close what is idle: the server went away, and what was opened before it did is of no use."""
        with suppress(IndexError):
            while True:
                _end(self._idle.pop()[0])

    def close(self) -> None:
        """Close what is idle now, and what is lent when it comes back."""
        self._closed = True
        self.forget()


def _end(connection: Connection) -> None:
    with suppress(psycopg.Error):
        connection.close()


def _cut_off_child() -> None:
    """Replace the parent's sockets in a forked process, which must not send a farewell on them."""
    for connection in list(_alive):
        with suppress(psycopg.Error, OSError):
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.dup2(nowhere, connection.fileno())
            os.close(nowhere)
    _alive.clear()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_cut_off_child)
