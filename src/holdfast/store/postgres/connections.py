"""
The connections that one store holds to its server, lent to one caller at a time.

The caller who needs one opens it, so that the reason why there is none reaches who waits for it, and no
thread works in the background.  What comes back in any doubt is closed and never lent again.
"""

from __future__ import annotations

import os
import re
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg
from psycopg.types.numeric import Int8Dumper

from ...config import Config
from ...errors import ConfigError, HoldfastError, StoreBusy, StoreClosed, StoreError
from ..port import Row
from .driver import Gone, translated

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
    A new connection to *location*.

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
        A connection that nobody else has.

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
    """A forked process must not say good-bye on sockets that are its parent's: it gets others in their place."""
    for connection in list(_alive):
        with suppress(psycopg.Error, OSError):
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.dup2(nowhere, connection.fileno())
            os.close(nowhere)
    _alive.clear()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_cut_off_child)
