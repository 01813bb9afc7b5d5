"""
Open one SQLite file: look before touching, switch on what we rely on, bring the schema up to date.

A file that a newer version wrote, or that belongs to another program, is refused before a byte of
it changes.
"""

from __future__ import annotations

import errno
import os
import time
import weakref
from contextlib import suppress
from typing import Protocol

import apsw

from ...clock import to_ms, utc_now
from ...config import Config
from ...errors import StoreBusy, StoreError, StoreFull, StoreReadOnly
from .. import queries
from .connection import translated

MEMORY = ":memory:"
_BOOK = "holdfast_migration"
_LOG_BYTES = 8 * 2**20  # size to which the write-ahead log is cut back after it grew


def open_file(path: str, config: Config, vfs: str | None) -> apsw.Connection:
    """
    Open the writing connection to *path*, created with mode 0600 when there is no such file.

    Raises:
        StoreTooNew: a newer version of this library wrote the file.
        StoreCorrupt: it is not a database, or damaged.
        StoreReadOnly: it, or its folder, cannot be written.
        StoreError: it belongs to another program, or its folder is missing.
    """
    if path != MEMORY:
        refuse_inherited(path)
        _create(path)
    connection = None
    try:
        connection = _connect(path, config, vfs)
        if _has_log(path):  # copying it into a file that turns out to be refused would touch that file
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        _inspect(connection, path)
        if path != MEMORY:
            if connection.readonly("main"):
                raise StoreReadOnly(f"{path} cannot be written", hint="check its owner and its permissions")
            _use_log(connection, config, path)
        _migrate(connection)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
    except apsw.Error as error:
        _give_up(connection)
        raise translated(error, path) from error
    except StoreError:
        _give_up(connection)
        raise
    return connection


def _give_up(connection: apsw.Connection | None) -> None:
    """Close what could not be opened; a disk that fails then too has nothing to add to the first error."""
    if connection is not None:
        with suppress(apsw.Error):
            connection.close()


def open_reader(path: str, config: Config, vfs: str | None) -> apsw.Connection:
    """Open a further connection to a file that `open_file` has accepted; it cannot write."""
    try:
        connection = _connect(path, config, vfs)
        connection.pragma("query_only", True)
    except apsw.Error as error:
        raise translated(error, path) from error
    return connection


def _connect(path: str, config: Config, vfs: str | None) -> apsw.Connection:
    flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if path == MEMORY else 0)
    connection = apsw.Connection(path, flags=flags, vfs=vfs, statementcachesize=256)
    connection.set_busy_timeout(config.busy_timeout_ms)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
    connection.pragma("mmap_size", 0)  # a memory map shows a damaged disk as a crash, not as an error
    connection.pragma("temp_store", "memory")  # no text in temporary files
    connection.pragma("secure_delete", True)
    connection.pragma("synchronous", "full" if config.durable else "normal")
    connection.pragma("journal_size_limit", _LOG_BYTES)
    connection.pragma("cache_size", -8192)  # KiB, when negative
    return connection


def _create(path: str) -> None:
    """Make an empty file that only its owner can read, unless there is one."""
    folder = os.path.dirname(path)
    if os.path.isdir(path):
        raise StoreError(f"{path} is a folder", hint="name a file in it")
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_CLOEXEC", 0), 0o600))
    except FileExistsError:
        return
    except (FileNotFoundError, NotADirectoryError) as error:
        raise StoreError(
            f"the folder {folder} does not exist", hint="create it first, or choose another path"
        ) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreFull(f"no room left on the disk for {path}", hint="free some space, then repeat") from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            hint = "make the folder writable, or choose another path"
            raise StoreReadOnly(f"{path} cannot be created in {folder}", hint=hint) from error
        raise StoreError(f"{path} cannot be created: {error.strerror}", hint="choose another path") from error


def _has_log(path: str) -> bool:
    try:
        return os.path.getsize(path + "-wal") > 0
    except OSError:
        return False


def _inspect(connection: apsw.Connection, path: str) -> None:
    """Refuse a file that is not ours, or of a later version, without writing to it."""
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables:
        return
    if _BOOK not in tables:
        hint = "choose another path; this file was left untouched"
        raise StoreError(f"{path} is the database of another program", hint=hint)
    _applied(connection, path)


def _applied(connection: apsw.Connection, path: str = "") -> set[str]:
    """Names of the migrations that the file has had."""
    done = {row[0] for row in connection.execute("SELECT name FROM holdfast_migration")}
    queries.check_migrations(done, path or "the file")
    return done


def _use_log(connection: apsw.Connection, config: Config, path: str) -> None:
    """
    Switch to a write-ahead log, which the file then keeps.

    SQLite does not wait by itself here, so when several processes open a new file we do.
    """
    deadline = time.monotonic() + config.busy_timeout_ms / 1000
    while True:
        try:
            mode = connection.pragma("journal_mode", "wal")
            break
        except apsw.BusyError as error:
            if time.monotonic() >= deadline:
                raise StoreBusy(f"another process holds {path}", hint="try again") from error
            time.sleep(0.005)
    if mode != "wal":
        raise StoreError(f"{path} lies on a file system without shared memory", hint="use a local disk")


def _migrate(connection: apsw.Connection) -> None:
    """
    Apply the missing migrations, each with its bookkeeping row in one transaction.

    A file that has them all is only read: another process may hold the write lock, even one that is stopped.
    """
    names = {name for name, _ in queries.migrations("sqlite")}
    if connection.table_exists("main", _BOOK) and _applied(connection) >= names:
        return
    for name, sql in queries.migrations("sqlite"):
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {_BOOK} (name TEXT PRIMARY KEY, applied_at INTEGER NOT NULL) STRICT"
            )
            if name not in _applied(connection):
                connection.execute(sql)
                row = (name, to_ms(utc_now()))
                connection.execute("INSERT INTO holdfast_migration (name, applied_at) VALUES (?, ?)", row)
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")


_in_use_by_parent: set[str] = set()


class Inheritable(Protocol):
    """A store as a fork sees it."""

    def settle(self) -> None:
        """Wait, for a short while, until the writer is idle."""

    def let_go_in_child(self) -> str | None:
        """Close what was idle; the path when something was in use."""


_open: weakref.WeakSet[Inheritable] = weakref.WeakSet()


def watch(store: Inheritable) -> None:
    """
    Have *store* let go in every child that is forked from now on.

    SQLite's file locks belong to the process that took them, but a fork copies the memory in which SQLite notes that
    it holds them.  A child that opened the same file would believe that it is protected; when the parent closes, the
    child's log is deleted under it and its writes are lost.  So a child lets go of the connections it inherited, and
    refuses a file whose connections were in use at the moment of the fork.
    """
    _open.add(store)


def refuse_inherited(path: str) -> None:
    """
    Raises:
        StoreError: the parent was using *path* when this process was forked from it.
    """
    if os.path.realpath(path) in _in_use_by_parent:
        hint = "fork while nobody reads or writes, or start processes with spawn"
        raise StoreError(f"the parent process was using {path} at the moment of the fork", hint=hint)


def _before_fork() -> None:
    for store in list(_open):
        store.settle()


def _after_fork_in_child() -> None:
    for store in list(_open):
        path = store.let_go_in_child()
        if path is not None:
            _in_use_by_parent.add(os.path.realpath(path))
    _open.clear()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)
