"""
A backend in one SQLite file, or in a private database in memory.

Writes go through one thread that commits them in groups; each read has a separate connection and
one snapshot, so readers and the writer never wait for each other.  In memory there is a single
connection, and all calls take turns.
"""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import stat
import sys
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import count
from typing import Any, Protocol, Self, TypeVar

import apsw

from ...clock import to_ms, utc_now
from ...config import Config
from ...errors import ConfigError, Conflict, StoreBusy, StoreClosed, StoreCorrupt, StoreError, StoreFull, StoreReadOnly
from ...reports import Finding
from ...scope import Scope
from .. import queries
from ..port import (
    Backend,
    CopySource,
    CopyTarget,
    DatabaseHealth,
    Driver,
    Maintenance,
    Progress,
    Row,
    ScrubReport,
    Table,
)
from ..values import Scrubbed
from .connection import ApswDriver, GroupCommit, translated, write_manifest

T = TypeVar("T")

_DEFAULTS = Config()
_IDLE_READERS = 8  # connections kept for the next read; more are opened when more read at once
_FORK_WAIT_S = 2.0

FIXED = (3, 51, 3)  # the log of older ones can be damaged by two connections
LARGE_LOG_BYTES = 64 * 2**20
CHECKED = ("sqlite-version", "sqlite-settings", "sqlite-integrity", "file-rights", "disk-space", "large-log")


class SqliteMaintenance(Maintenance):
    """The work of an operator on a SQLite file."""

    def source(self) -> AbstractContextManager[CopySource]:
        """Open one snapshot of the file."""
        return _source(self.location)

    def target(self, replaces: Mapping[str, str] | None = None) -> AbstractContextManager[CopyTarget]:
        """Create a file that gets its name when everything is in it and on the disk."""
        return _target(self.location)

    def scrub(self, words: Sequence[str], progress: Progress | None) -> ScrubReport:
        """Rewrite the file whatever its size, empty its log, and search both."""
        if not os.path.exists(self.location):
            raise StoreError(f"there is no memory at {self.location}", hint="check the path")
        backend = SqliteBackend(self.location, Config(scrub_mb=sys.maxsize))
        try:
            found = backend.scrub([word.encode() for word in dict.fromkeys(words)])
        finally:
            backend.close()
        files = (os.path.abspath(self.location),) if found.found else ()
        return ScrubReport(found.searched, found.found, files, (found.why,) if found.why and not found.found else ())


class SqliteBackend(Backend):
    """
    One SQLite file; ``":memory:"`` for a private database that dies with the object.

    ``vfs`` names a registered file layer of SQLite's, for tests that make the disk fail.
    """

    maintenance = SqliteMaintenance

    def __init__(self, location: str | os.PathLike[str], config: Config = _DEFAULTS, *, vfs: str | None = None) -> None:
        path = os.fsdecode(os.fspath(location))
        if not path or "\0" in path:
            raise ConfigError("a store needs a path, or :memory:", hint='for example "chat.db"')
        self._path = path if path == MEMORY else os.path.abspath(path)
        self._config = config
        self._vfs = vfs
        self._sql = queries.load("sqlite")
        self._process = os.getpid()
        self._closed = False
        self._idle: list[apsw.Connection] = []
        self._reading_now: set[apsw.Connection] = set()
        self._inside = threading.local()
        self._watch: list[apsw.Connection] = []
        self._watching = threading.Lock()
        self._written, self._count = 0, count(1)
        self._turn = threading.Lock() if path == MEMORY else None
        self._db = open_file(self._path, config, vfs)
        self._writer = GroupCommit(self._db, self._sql, self._turn)
        self._finalizer = weakref.finalize(self, _let_go, self._writer, self._idle, self._watch, self._process)
        watch(self)

    @classmethod
    def open(cls, location: str, config: Config) -> Self:
        """Open the file at *location*, and create or upgrade its schema."""
        return cls(location, config)

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
        if getattr(self._inside, "a_call", False) or self._writer.is_me():
            raise StoreError("a store was called from within read() or write()", hint="use the view that was given")

    def read(self, work: Callable[[Driver], T], scope: Scope | None = None) -> T:
        """Run *work* over one snapshot."""
        return self._on_snapshot(lambda db: work(ApswDriver(db, self._sql)))

    def write(self, work: Callable[[Driver], T], scope: Scope | None = None) -> T:
        """Run *work* in one transaction, and return when it is on disk."""
        self._checked()
        answer = self._writer.submit(work)
        self._written = next(self._count)
        return answer

    def changes(self) -> int:
        """Return another number whenever any process has committed since the last call."""
        if self._turn is not None:
            self._checked()
            return self._written
        return self._with_reader(self._version)

    def _version(self, _: apsw.Connection) -> int:
        """Return the number by which one connection, kept for this, sees the commits of others."""
        with self._watching:
            if not self._watch:
                self._watch.append(open_reader(self._path, self._config, self._vfs))
            return int(self._watch[0].pragma("data_version"))

    def _on_snapshot(self, work: Callable[[apsw.Connection], T]) -> T:
        def snapshot(db: apsw.Connection) -> T:
            db.execute("BEGIN")
            try:
                return work(db)
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")

        return self._with_reader(snapshot)

    def _with_reader(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run *work* with a connection that no other caller uses meanwhile."""
        self._checked()
        self._inside.a_call = True
        try:
            if self._turn is not None:
                with self._turn:
                    return work(self._db)
            try:
                db = self._idle.pop()
            except IndexError:
                db = open_reader(self._path, self._config, self._vfs)
            self._reading_now.add(db)
            try:
                return work(db)
            finally:
                self._reading_now.discard(db)
                if self._closed or len(self._idle) >= _IDLE_READERS:
                    db.close()
                else:
                    self._idle.append(db)
        except apsw.Error as error:
            raise translated(error, self._path) from error
        finally:
            self._inside.a_call = False

    def damage(self) -> list[Finding]:
        """Return the faults that SQLite finds in the file."""
        try:
            words = [row[0] for row in self.read(lambda driver: driver.run("integrity", {}))]
        except StoreCorrupt as error:
            words = [error.message]
        hint = "the file is damaged: restore a backup"
        return [] if words == ["ok"] else [Finding("sqlite-integrity", word, hint) for word in words]

    def size_bytes(self) -> int:
        """Return the size of the file and its log."""
        size = int(self.read(lambda driver: driver.run("file_bytes", {}))[0][1])
        with suppress(FileNotFoundError):
            size += os.path.getsize(self._path + "-wal") if self._path != MEMORY else 0
        return size

    def health(self) -> DatabaseHealth:
        """Examine the library, a connection to the file, and the file."""
        return self._with_reader(lambda db: _health(db, self._path))

    def scrub(self, traces: Sequence[bytes]) -> Scrubbed:
        """Rewrite the file, empty its log, and search both for *traces*."""
        self._checked()
        try:
            if self._path == MEMORY:
                return scrub_memory(self._writer.alone, self._is_stored, traces)
            return scrub_file(self._path, self._writer.alone, self._is_stored, traces, self._config)
        except apsw.Error as error:
            raise translated(error, self._path) from error

    def _is_stored(self, trace: bytes) -> bool:
        """Whether some row, or the name of a schema's step, holds *trace*: then its bytes are no residue."""
        words = trace.decode()
        if any(words in name for name, _ in queries.migrations("sqlite")):
            return True
        return bool(self.read(lambda driver: driver.run("still_stored", {"words": words})))

    def backup(self, path: str) -> None:
        """Copy the whole database into a new file at *path* while it is in use."""
        target = os.path.abspath(path)
        if os.path.exists(target):
            raise StoreError(f"there is a file at {target} already", hint="remove it, or choose another path")
        part = f"{target}.part-{os.getpid()}-{threading.get_ident()}"
        try:
            os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            self._with_reader(lambda db: _copy(db, part))
            write_manifest(part)
            with open(part, "rb+") as copy:
                os.fsync(copy.fileno())
            os.rename(part, target)
        except OSError as error:
            hint = "check the folder and the space on its disk"
            raise StoreError(f"the backup could not be written to {target}: {error.strerror}", hint=hint) from error
        finally:
            with suppress(FileNotFoundError):
                os.unlink(part)

    def settle(self) -> None:
        """Wait before a fork until the writer is idle, but not for long."""
        deadline = time.monotonic() + _FORK_WAIT_S
        inside = getattr(self._inside, "a_call", False) or self._writer.is_me()
        while self._writer.busy and not inside and not self._closed and time.monotonic() < deadline:
            time.sleep(0.0005)

    def let_go_in_child(self) -> str | None:
        """Close idle connections in a forked process; return the path when one was in use; see `watch`."""
        if self._closed or self._path == MEMORY:
            return None
        if self._writer.busy or self._reading_now:
            return self._path
        for db in (*self._idle, *self._watch, self._db):
            db.close()
        return None

    def close(self) -> None:
        """Finish what was accepted and close the file."""
        self._closed = True
        self._finalizer()


def _copy(db: apsw.Connection, path: str) -> None:
    """Write one snapshot to *path*, without deleted rows; SQLite takes it for a write to *db* itself."""
    guarded = db.pragma("query_only")
    db.pragma("query_only", False)
    try:
        db.execute("VACUUM INTO ?", (path,)).fetchall()
    finally:
        db.pragma("query_only", guarded)


def _let_go(writer: GroupCommit, idle: list[apsw.Connection], watch: list[apsw.Connection], process: int) -> None:
    """Close the connections, the writer's last, so that the log is copied into the file and removed."""
    if os.getpid() != process:
        return
    for readers in (idle, watch):
        while readers:
            readers.pop().close()
    writer.stop()


def _health(db: apsw.Connection, path: str) -> DatabaseHealth:
    version = apsw.sqlite_lib_version()
    journal, synchronous = db.pragma("journal_mode"), {1: "normal", 2: "full"}.get(int(db.pragma("synchronous")), "off")
    about = {"version": f"SQLite {version}", "journal": str(journal), "synchronous": synchronous}
    findings = []
    if tuple(map(int, version.split("."))) < FIXED:
        findings.append(Finding("sqlite-version", version, "pip install --upgrade apsw: this one can damage its log"))
    if not db.pragma("secure_delete") or synchronous == "off":
        findings.append(Finding("sqlite-settings", path, "open it again: a setting that we rely on was changed"))
    return DatabaseHealth(about, tuple(findings), () if path == MEMORY else tuple(_on_disk(path)), CHECKED)


def _on_disk(path: str) -> Iterator[Finding]:
    found = os.stat(path)
    if os.name == "posix" and found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        yield Finding("file-rights", f"{path}: others may open it", f"chmod 600 {path}")
    free = shutil.disk_usage(os.path.dirname(path)).free
    if free < found.st_size:
        hint = "free some space: an erasure writes the file anew, and a backup is as large"
        yield Finding("disk-space", f"{free:,} bytes are free, the file has {found.st_size:,}", hint)
    log = os.path.getsize(f"{path}-wal") if os.path.exists(f"{path}-wal") else 0
    if log > LARGE_LOG_BYTES:
        hint = "end the process that holds an old snapshot; the log is cut back when it has gone"
        yield Finding("large-log", f"{log:,} bytes", hint)


class _File:
    """A SQLite file in a transaction."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db

    def count(self, table: Table) -> int:
        found: list[Row] = self._db.execute(f"SELECT COUNT(*) FROM {table.name}").fetchall()
        return int(found[0][0])

    def rows(self, table: Table) -> Iterator[Row]:
        yield from self._db.execute(table.select())

    def add(self, table: Table, rows: Sequence[Row]) -> None:
        self._db.executemany(table.insert("?"), rows)


@contextmanager
def _source(path: str) -> Iterator[CopySource]:
    if not os.path.exists(path):
        raise StoreError(f"there is no memory at {path}", hint="check the path")
    db = open_file(path, Config(), None)
    try:
        db.execute("BEGIN")
        yield _File(db)
        db.execute("ROLLBACK")
    except apsw.Error as error:
        raise translated(error, path) from error
    finally:
        db.close()


@contextmanager
def _target(path: str) -> Iterator[CopyTarget]:
    if os.path.exists(path):
        raise Conflict(f"there is a file at {path} already", hint="remove it, or choose another path")
    part = f"{path}.part-{os.getpid()}"
    try:
        db = open_file(part, Config(), None)
        try:
            db.execute("BEGIN IMMEDIATE")
            yield _File(db)
            db.execute("COMMIT")
        except apsw.Error as error:
            raise translated(error, part) from error
        finally:
            db.close()
        os.rename(part, path)
    finally:
        for ending in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.unlink(part + ending)


WAIT_S = 1.0  # for readers that hold the log
READER = "a reader holds the log: it is emptied when the file is next closed, or by `holdfast store scrub`"

Alone = Callable[[Callable[[apsw.Connection], Any]], Any]
Said = Callable[[bytes], bool]


def scrub_file(path: str, alone: Alone, said: Said, traces: Sequence[bytes], config: Config) -> Scrubbed:
    """
    Scrub the file at *path*; *alone* runs a function with the writing connection, *said* asks the rows.

    A file larger than ``Config.scrub_mb`` only has its log emptied: writing it anew takes as much
    memory as it is large, and keeps other writers waiting.
    """
    small = os.path.getsize(path) <= config.scrub_mb * 1_000_000
    if small:
        try:
            alone(_written_anew)
        except (apsw.BusyError, apsw.FullError, apsw.NoMemError):
            return Scrubbed(
                why="the file could not be written anew: `holdfast store scrub` when there is room and quiet"
            )
    if not _emptied(alone, config.busy_timeout_ms):
        return Scrubbed(why=READER)
    if not small:
        return Scrubbed(
            why="the file is larger than Config.scrub_mb: copies may stand in its free space until `holdfast store scrub`"
        )
    found = {trace for name in (path, path + "-wal", path + "-journal") for trace in _inside(name, traces)}
    return _told(traces, found, said)


def scrub_memory(alone: Alone, said: Said, traces: Sequence[bytes]) -> Scrubbed:
    """Scrub a database that has no file."""
    alone(_written_anew)
    image = alone(lambda db: db.serialize("main"))
    return _told(traces, {trace for trace in traces if trace in image}, said)


def _told(traces: Sequence[bytes], found: Collection[bytes], said: Said) -> Scrubbed:
    """Drop traces that a remaining row contains: these are no residue."""
    left = [trace for trace in traces if trace in found and not said(trace)]
    return Scrubbed(len(traces), len(left), "bytes of it still stand in the file" if left else "")


def _written_anew(db: apsw.Connection) -> None:
    db.execute("VACUUM")


def _emptied(alone: Alone, patience_ms: int) -> bool:
    """Whether the log could be copied into the file and cut to nothing; *patience_ms* is the connection's own."""

    def checkpoint(db: apsw.Connection) -> None:
        db.set_busy_timeout(0)
        try:
            db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        finally:
            db.set_busy_timeout(patience_ms)

    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            alone(checkpoint)
            return True
        except apsw.BusyError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.01)


def _inside(path: str, traces: Sequence[bytes]) -> list[bytes]:
    with suppress(FileNotFoundError), open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as image:
                return [trace for trace in traces if image.find(trace) >= 0]
    return []


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
    # Else this SQLite plans a statement anew whenever it is given other values, which takes ten times as long as to run it.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
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
