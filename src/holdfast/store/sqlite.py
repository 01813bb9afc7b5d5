"""
One file on disk, or a private database in memory.

Writes go through one thread that commits them in groups; each read has a connection of its own and
one snapshot, so readers and the writer never wait for each other.  In memory there is a single
connection, and everybody takes turns.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import TypeVar

import apsw

from ..config import Config
from ..errors import ConfigError, StoreClosed, StoreCorrupt, StoreError
from ..reports import Finding
from . import forks, queries
from .apswdriver import ApswDriver, translated
from .groupcommit import GroupCommit
from .health import Health
from .manifest import write_manifest
from .protocol import Scrubbed
from .readview import Driver
from .sqlitefile import MEMORY, open_file, open_reader
from .sqlitehealth import health
from .sqlitescrub import scrub_file, scrub_memory
from .sqlstore import SqlStore

T = TypeVar("T")

_DEFAULTS = Config()
_IDLE_READERS = 8  # connections kept for the next read; more are opened when more read at once
_FORK_WAIT_S = 2.0


class SqliteStore(SqlStore):
    """
    A ``Store`` in one SQLite file; ``":memory:"`` for a private one that dies with the object.

    ``vfs`` names a registered file layer of SQLite's, for tests that make the disk fail.
    """

    def __init__(self, location: str | os.PathLike[str], config: Config = _DEFAULTS, *, vfs: str | None = None) -> None:
        super().__init__()
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
        forks.watch(self)

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

    def _writing(self, work: Callable[[Driver], T]) -> T:
        self._checked()
        answer = self._writer.submit(work)
        self._written = next(self._count)
        return answer

    def changes(self) -> int:
        """See the protocol."""
        if self._turn is not None:
            self._checked()
            return self._written
        return self._with_reader(self._version)

    def _version(self, _: apsw.Connection) -> int:
        """What one connection that is kept for this says of the others' commits."""
        with self._watching:
            if not self._watch:
                self._watch.append(open_reader(self._path, self._config, self._vfs))
            return int(self._watch[0].pragma("data_version"))

    def _reading(self, work: Callable[[Driver], T]) -> T:
        return self._on_snapshot(lambda db: work(ApswDriver(db, self._sql)))

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
        """Run *work* with a connection that nobody else uses meanwhile."""
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

    def _damage(self, driver: Driver) -> list[Finding]:
        try:
            words = [row[0] for row in driver.run("integrity", {})]
        except StoreCorrupt as error:
            words = [error.message]
        hint = "the file is damaged: restore a backup"
        return [] if words == ["ok"] else [Finding("sqlite-integrity", word, hint) for word in words]

    def stats(self) -> Mapping[str, int]:
        """See the protocol."""
        found = self._reading(lambda driver: driver.run("rows_per_table", {}) + driver.run("file_bytes", {}))
        counts: dict[str, int] = {row[0]: row[1] for row in found}
        with suppress(FileNotFoundError):
            counts["bytes"] += os.path.getsize(self._path + "-wal") if self._path != MEMORY else 0
        return counts

    def health(self) -> Health:
        """See the protocol."""
        return self._with_reader(lambda db: health(db, self._path))

    def scrub(self, traces: Sequence[bytes]) -> Scrubbed:
        """See the protocol."""
        self._checked()
        try:
            if self._path == MEMORY:
                return scrub_memory(self._writer.alone, self._said, traces)
            return scrub_file(self._path, self._writer.alone, self._said, traces, self._config)
        except apsw.Error as error:
            raise translated(error, self._path) from error

    def _said(self, trace: bytes) -> bool:
        """Whether some row holds *trace*: then its bytes are no residue."""
        return bool(self._reading(lambda driver: driver.run("still_said", {"words": trace.decode()})))

    def backup(self, path: str) -> None:
        """See the protocol."""
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
        """Let the writer come to rest before a fork; one that is busy for long is not waited for."""
        deadline = time.monotonic() + _FORK_WAIT_S
        inside = getattr(self._inside, "a_call", False) or self._writer.is_me()
        while self._writer.busy and not inside and not self._closed and time.monotonic() < deadline:
            time.sleep(0.0005)

    def let_go_in_child(self) -> str | None:
        """Close idle connections in a forked process; the path when one was in use, see `forks`."""
        if self._closed or self._path == MEMORY:
            return None
        if self._writer.busy or self._reading_now:
            return self._path
        for db in (*self._idle, *self._watch, self._db):
            db.close()
        return None

    def close(self) -> None:
        """See the protocol."""
        self._closed = True
        self._finalizer()


def _copy(db: apsw.Connection, path: str) -> None:
    """Write one snapshot to *path*, without what was deleted; SQLite takes it for a write to *db* itself."""
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
