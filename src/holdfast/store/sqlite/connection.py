"""
The connections to a file: the driver that runs named queries on one, and the thread that owns the writing one.

SQLite's errors become ours.  To write, a caller hands over a function and sleeps until it is on disk.  Whatever arrived
while the last commit was being synced goes into the next one, each in its own savepoint, so a sync is paid once for all
of them and one that fails undoes only itself.  No caller waits for company: an idle writer starts at once.

A backup carries a manifest, the rows and one SHA-256 of each table: a file that was damaged on its way, or changed
afterwards, no longer agrees with it, even where SQLite itself sees nothing wrong.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from datetime import datetime
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import apsw

from ...clock import from_ms, to_ms, utc_now
from ...errors import (
    BadInput,
    Conflict,
    HoldfastError,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
)
from ...text import dataclass
from ..maintenance import line_of
from ..port import Driver, Row, Table
from ..queries import tables_of

_UNIQUE = (apsw.SQLITE_CONSTRAINT_PRIMARYKEY, apsw.SQLITE_CONSTRAINT_UNIQUE)

_MEANING: tuple[tuple[type[apsw.Error], type[StoreError], str, str], ...] = (
    (
        apsw.BusyError,
        StoreBusy,
        "another process holds the file",
        "try again; a process that is stopped in a write holds it until it continues or ends",
    ),
    (apsw.LockedError, StoreBusy, "another connection holds the file", "try again"),
    (apsw.FullError, StoreFull, "no room left on the disk; nothing was half written", "free some space, then repeat"),
    (apsw.ReadOnlyError, StoreReadOnly, "the file cannot be written", "check its owner and its permissions"),
    (apsw.CorruptError, StoreCorrupt, "the file is damaged", "restore a backup"),
    (apsw.NotADBError, StoreCorrupt, "the file is not a SQLite database", "choose another path"),
    (apsw.CantOpenError, StoreError, "the file cannot be opened", "check the path, its folder and its permissions"),
    (apsw.IOError, StoreError, "the disk could not be read or written", "check the disk, then repeat"),
    (apsw.ConnectionClosedError, StoreClosed, "this store was closed before the call", "open it again"),
)
T = TypeVar("T")
MOST_TOGETHER = 256  # functions in one commit
CHECKPOINT_PAGES = 1000  # pages in the write-ahead log after which it is copied into the file
_TABLE = "holdfast_backup"


def translated(error: apsw.Error, path: str = "") -> HoldfastError:
    """Return our error for an apsw error.  SQLite's own words name tables and columns, never content."""
    where = f" ({path})" if path else ""
    if isinstance(error, apsw.ConstraintError) and getattr(error, "extendedresult", 0) in _UNIQUE:
        return Conflict(f"another caller was first: {error}")
    for theirs, ours, meaning, hint in _MEANING:
        if isinstance(error, theirs):
            return ours(f"{meaning}{where}: {error}", hint=hint)
    return StoreError(f"SQLite refused the call{where}: {error}")


class ApswDriver:
    """
    See `holdfast.store.readview.Driver`.

    ``failure`` keeps an error after which the transaction may be gone; further calls raise it
    again, so that a function which swallowed it cannot go on writing outside its transaction.
    """

    __slots__ = ("_db", "_sql", "failure")

    def __init__(self, connection: apsw.Connection, sql: Mapping[str, str]) -> None:
        self._db = connection
        self._sql = sql
        self.failure: HoldfastError | None = None

    def run(self, name: str, args: Mapping[str, Any]) -> list[Row]:
        """See `Driver.run`."""
        if self.failure is not None:
            raise self.failure
        try:
            return self._db.execute(self._sql[name], args).fetchall()
        except (apsw.Error, UnicodeEncodeError) as error:
            raise self._meaning(error) from error

    def many(self, name: str, args: Iterable[Sequence[Any]]) -> list[Row]:
        """See `Driver.many`."""
        if self.failure is not None:
            raise self.failure
        try:
            return self._db.executemany(self._sql[name], args).fetchall()
        except (apsw.Error, UnicodeEncodeError) as error:
            raise self._meaning(error) from error

    def _meaning(self, error: apsw.Error | UnicodeEncodeError) -> HoldfastError:
        if isinstance(error, UnicodeEncodeError):
            return BadInput("a text holds a lone surrogate, which no database can store")
        meaning = translated(error)
        if not isinstance(meaning, Conflict):
            self.failure = meaning
        return meaning


class _Request:
    """One caller's function on its way through the writer."""

    __slots__ = ("answer", "bare", "done", "error", "work")

    def __init__(self, work: Callable[[Driver], Any], bare: Callable[[apsw.Connection], Any] | None = None) -> None:
        self.work = work
        self.bare = bare
        self.answer: Any = None
        self.error: BaseException | None = None
        self.done = threading.Lock()
        self.done.acquire()


class GroupCommit:
    """The writer of one store.  ``turn`` is held during a transaction when readers share the connection."""

    def __init__(self, connection: apsw.Connection, sql: Mapping[str, str], turn: threading.Lock | None) -> None:
        self._db = connection
        self._sql = sql
        self._turn = turn
        self._waiting: SimpleQueue[_Request | None] = SimpleQueue()
        self._gate = threading.Lock()
        self._closed = False
        self._log_pages = 0
        self.busy = False  # whether the connection is being used; an idle one may be closed after a fork
        connection.set_wal_hook(self._count_pages)
        self._thread = threading.Thread(target=self._serve, name="holdfast-writer", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[Driver], T]) -> T:
        """Have *work* committed; returns its result once that is on disk, or raises what it raised."""
        answer: T = self._answered(_Request(work))
        return answer

    def alone(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run *work* with the connection, between two commits; returns its result, or raises what it raised."""
        answer: T = self._answered(_Request(lambda driver: None, bare=work))
        return answer

    def _answered(self, request: _Request) -> Any:
        with self._gate:
            if self._closed:
                raise StoreClosed("this store was closed before the call", hint="open it again")
            self._waiting.put(request)
        request.done.acquire()
        if request.error is not None:
            raise request.error
        return request.answer

    def is_me(self) -> bool:
        """Whether the calling thread is the writer itself."""
        return threading.current_thread() is self._thread

    def stop(self) -> None:
        """Finish what was accepted, refuse the rest, close the connection; harmless when repeated."""
        with self._gate:
            if not self._closed:
                self._closed = True
                self._waiting.put(None)
        if not self.is_me():
            self._thread.join()

    def _count_pages(self, _: apsw.Connection, __: str, pages: int) -> int:
        self._log_pages = pages
        return apsw.SQLITE_OK

    def _serve(self) -> None:
        stopping = False
        while not stopping:
            request = self._waiting.get()
            batch: list[_Request] = []
            while request is not None:
                batch.append(request)
                if len(batch) == MOST_TOGETHER:
                    break
                try:
                    request = self._waiting.get_nowait()
                except Empty:
                    break
            stopping = request is None
            self.busy = True
            self._commit(batch)
            del request, batch  # an idle writer keeps nothing of its callers alive
            if self._log_pages >= CHECKPOINT_PAGES:
                self._checkpoint()
            self.busy = False
        self.busy = True
        with suppress(apsw.Error):  # the log keeps everything until the file is opened again
            self._db.close()

    def _checkpoint(self) -> None:
        """Copy the log into the file after the callers have their answers; readers are not disturbed."""
        self._log_pages = 0
        with suppress(apsw.Error):  # the log keeps everything until a later one succeeds
            self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

    def _commit(self, batch: list[_Request]) -> None:
        """Commit all of *batch* at once, or one by one when that cannot be done; answer everyone."""
        writes = [request for request in batch if request.bare is None]
        try:
            if writes and not self._attempt(writes):
                for request in writes:
                    self._attempt([request])
            for request in batch:
                if request.bare is not None:
                    self._alone(request, request.bare)
        finally:
            for request in batch:
                request.done.release()

    def _alone(self, request: _Request, work: Callable[[apsw.Connection], Any]) -> None:
        try:
            if self._turn is None:
                request.answer = work(self._db)
            else:
                with self._turn:
                    request.answer = work(self._db)
        except BaseException as error:  # noqa: BLE001  raised again in the caller's thread
            request.error = error

    def _attempt(self, batch: list[_Request]) -> bool:
        """
        Run *batch* in one transaction.

        ``False`` when the transaction was lost as a whole although some of its functions may be
        fine; never for a batch of one.
        """
        if self._turn is None:
            return self._transaction(batch)
        with self._turn:
            return self._transaction(batch)

    def _transaction(self, batch: list[_Request]) -> bool:
        alone = len(batch) == 1
        try:
            self._db.execute("BEGIN IMMEDIATE")
        except apsw.Error as error:
            _refuse(batch, translated(error))
            return True
        try:
            for request in batch:
                if not self._one(request, alone):
                    return alone
            self._db.execute("COMMIT")
        except apsw.Error as error:
            _refuse(batch, translated(error))
            return alone
        finally:
            if self._db.in_transaction:
                with suppress(apsw.Error):  # SQLite may have undone it by itself
                    self._db.execute("ROLLBACK")
        return True

    def _one(self, request: _Request, alone: bool) -> bool:
        """Run one function; ``False`` when the transaction is gone, or was of this function alone and failed."""
        request.answer = request.error = None
        driver = ApswDriver(self._db, self._sql)
        if not alone:
            self._db.execute("SAVEPOINT one")
        try:
            request.answer = request.work(driver)
        except BaseException as error:  # noqa: BLE001  raised again in the caller's thread
            request.error = error
        request.error = request.error or driver.failure
        if request.error is not None and (alone or not self._db.in_transaction):
            return False
        if not alone:
            if request.error is not None:
                self._db.execute("ROLLBACK TO one")
            self._db.execute("RELEASE one")
        return True


def _refuse(batch: list[_Request], error: HoldfastError) -> None:
    """Answer all of *batch* with *error*, each with its own copy; one that failed by itself keeps its own."""
    for request in batch:
        request.error = request.error or copy(error)


@dataclass(frozen=True, slots=True)
class Manifest:
    """
    The content of a file, and whether it is still what it was when it was made.

    ``made_at`` is ``None`` for a file that nobody wrote a manifest into; ``differing`` names the tables that changed.
    """

    made_at: datetime | None
    rows: Mapping[str, int]
    differing: tuple[str, ...]


def write_manifest(path: str) -> None:
    """Store the row count and digest of every table in the file at *path*, which no other process has open."""
    with _opened(path) as db:
        found = _looked_at(db)
        db.pragma("journal_mode", "memory")  # a file that is not finished has nothing to come back to
        with db:
            db.execute(f"DROP TABLE IF EXISTS {_TABLE}")
            db.execute(
                f"CREATE TABLE {_TABLE} (name TEXT PRIMARY KEY, number INTEGER NOT NULL, sha256 TEXT NOT NULL,"
                " made_at INTEGER NOT NULL) STRICT"
            )
            now_ms = to_ms(utc_now())
            noted = [(name, number, sha256, now_ms) for name, (number, sha256) in found.items()]
            db.executemany(f"INSERT INTO {_TABLE} VALUES (?, ?, ?, ?)", noted)


def read_manifest(path: str) -> Manifest:
    """
    Compare the file at *path*, which no other process has open, with its manifest.

    Raises:
        StoreCorrupt: it is no database, or damaged.
    """
    with _opened(path) as db:
        noted: dict[str, tuple[int, str]] = {}
        made_at = None
        if db.table_exists("main", _TABLE):
            for name, number, sha256, at in db.execute(f"SELECT name, number, sha256, made_at FROM {_TABLE}"):
                noted[name], made_at = (number, sha256), from_ms(at)
        found = _looked_at(db)
        there = sorted({*found, *noted} if noted else ())
        differing = tuple(name for name in there if found.get(name) != noted.get(name))
        return Manifest(made_at, {name: number for name, (number, _) in found.items()}, differing)


def drop_manifest(path: str) -> None:
    """Forget it: the file becomes a memory that goes on to change."""
    with _opened(path) as db:
        db.execute(f"DROP TABLE IF EXISTS {_TABLE}")


def _looked_at(db: apsw.Connection) -> dict[str, tuple[int, str]]:
    """``{table: (rows, SHA-256)}`` of the tables as this file has them, whichever version made it."""
    return {table.name: _digest(db, table) for table in tables_of(db) if not table.name.startswith("holdfast_")}


def _digest(db: apsw.Connection, table: Table) -> tuple[int, str]:
    number, digest = 0, hashlib.sha256()
    for row in db.execute(table.select()):
        digest.update(line_of(row))
        number += 1
    return number, digest.hexdigest()


@contextmanager
def _opened(path: str) -> Iterator[apsw.Connection]:
    db = None
    try:
        db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
        db.pragma("secure_delete", True)
        yield db
    except apsw.Error as error:
        raise translated(error, path) from error
    finally:
        if db is not None:
            db.close()
