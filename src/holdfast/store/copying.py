"""
Move a whole memory from one database to another, whatever kind the two are.

Rows travel table by table in the order of their keys, out of one snapshot and into one transaction, and are
read back before that commits: the same number of rows with the same SHA-256, or nothing is there.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import apsw

from ..config import Config
from ..errors import ConfigError, Conflict, StoreCorrupt, StoreError
from . import queries
from .apswdriver import translated
from .extras import is_address, of_extra
from .outcomes import CopyReport
from .rows import Row
from .sqlitefile import MEMORY, open_file

BATCH_ROWS = 1_000

Progress = Callable[[int, int], None]

_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=lambda value: {"bytes": bytes(value).hex()})


@dataclass(frozen=True, slots=True)
class Table:
    """One table: its columns in their order, and those of its key."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]

    def select(self) -> str:
        """Every row, in the order of the keys, which is the same in both databases."""
        return f"SELECT {', '.join(self.columns)} FROM {self.name} ORDER BY {', '.join(self.key)}"

    def insert(self, mark: str) -> str:
        """One row; *mark* is what stands for a value."""
        return f"INSERT INTO {self.name} ({', '.join(self.columns)}) VALUES ({', '.join([mark] * len(self.columns))})"


class Source(Protocol):
    """One snapshot of a memory."""

    def count(self, table: Table) -> int:
        """How many rows there are."""

    def rows(self, table: Table) -> Iterator[Row]:
        """All of them, by key."""


class Target(Source, Protocol):
    """One transaction on an empty memory; what is not committed leaves nothing."""

    def add(self, table: Table, rows: Sequence[Row]) -> None:
        """Insert rows."""


@cache
def tables() -> tuple[Table, ...]:
    """What a memory consists of, as the migrations make it."""
    db = apsw.Connection(MEMORY)
    for _, sql in queries.migrations("sqlite"):
        db.execute(sql)
    found = tables_of(db)
    db.close()
    return found


def tables_of(db: apsw.Connection) -> tuple[Table, ...]:
    """The tables that one SQLite database has."""
    names = [row[0] for row in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
    found = []
    for name in names:
        columns = list(db.execute("SELECT name, pk FROM pragma_table_info(?) ORDER BY cid", (name,)))
        key = tuple(column for column, place in sorted(columns, key=lambda c: int(c[1])) if place)
        found.append(Table(str(name), tuple(str(column) for column, _ in columns), tuple(map(str, key))))
    return tuple(found)


def copy(
    source: str | os.PathLike[str], target: str | os.PathLike[str], progress: Progress | None = None
) -> CopyReport:
    """
    Copy the memory at *source* to *target*, which must hold nothing yet; either is a path or ``postgresql://…``.

    What is written to *source* meanwhile is not copied.  *progress* is called with rows done and rows to do,
    each counted twice: once when it is written, once when it is read back.

    Raises:
        Conflict: there is a memory at *target* already.
        StoreError: one of the two cannot be opened, or what arrived is not what was sent; *target* is as it was.
        ConfigError: they are the same, or not addresses of memories.
    """
    places = [os.fspath(place) if is_address(place) else os.path.abspath(place) for place in (source, target)]
    if MEMORY in (os.fspath(source), os.fspath(target)) or places[0] == places[1]:
        raise ConfigError("copy from one memory on disk to another", hint="name two paths or addresses")
    with _from(places[0]) as old, _into(places[1]) as new:
        return _moved(old, new, progress)


def replace_all(source: str, address: str, was: Mapping[str, str] | None, progress: Progress | None) -> CopyReport:
    """
    Put the memory in the file *source* into the database at *address*, in one transaction.

    Args:
        source: the path of a file.
        address: ``postgresql://…``
        was: what `digests_of` said of the memory that is there and shall go; ``None``: there must be none.
        progress: as of `copy`.

    Raises:
        Conflict: there is a memory, or it is in use, or it is no longer as it *was*; nothing has changed.
        StoreError: the role may not do it, or what arrived is not what was sent; nothing has changed.
    """
    with _sqlite_from(source) as old, of_extra("postgrescopy").writing(address, was) as new:
        return _moved(old, new, progress)


def digests_of(place: str, names: Collection[str]) -> dict[str, str]:
    """The SHA-256 of some tables of the memory at *place*."""
    with _from(place) as side:
        return {table.name: digest_of(side, table) for table in tables() if table.name in names}


def digest_of(side: Source, table: Table) -> str:
    """The SHA-256 of one table."""
    digest = hashlib.sha256()
    for _ in _digested(side.rows(table), digest):
        pass
    return digest.hexdigest()


def _moved(old: Source, new: Target, progress: Progress | None) -> CopyReport:
    """Every row of one in the other, compared table by table."""
    told = progress or (lambda done, total: None)
    total, done = 2 * sum(old.count(table) for table in tables()), 0
    rows, digests = {}, {}
    for table in tables():
        digest = hashlib.sha256()
        rows[table.name] = 0
        for batch in _batches(_digested(old.rows(table), digest)):
            new.add(table, batch)
            rows[table.name] += len(batch)
            told(done := done + len(batch), total)
        digests[table.name] = digest.hexdigest()
    for table in tables():
        digest = hashlib.sha256()
        for batch in _batches(_digested(new.rows(table), digest)):
            told(done := done + len(batch), total)
        if digest.hexdigest() != digests[table.name]:
            raise StoreCorrupt(f"the rows of {table.name} did not arrive as they were sent", hint="copy again")
    return CopyReport(rows, digests)


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    batch: list[Row] = []
    for row in rows:
        batch.append(row)
        if len(batch) == BATCH_ROWS:
            yield batch
            batch = []
    if batch:
        yield batch


def _digested(rows: Iterable[Row], digest: Any) -> Iterator[Row]:
    for row in rows:
        digest.update(line_of(row))
        yield row


def line_of(row: Row) -> bytes:
    """A row as bytes: the same whichever database it comes from, and others for any other row."""
    return (_JSON.encode(row) + "\n").encode()


def _from(place: str) -> AbstractContextManager[Source]:
    if is_address(place):
        side: AbstractContextManager[Source] = of_extra("postgrescopy").reading(place)
        return side
    return _sqlite_from(place)


def _into(place: str) -> AbstractContextManager[Target]:
    if is_address(place):
        side: AbstractContextManager[Target] = of_extra("postgrescopy").writing(place)
        return side
    return _sqlite_into(place)


class _File:
    """A SQLite file in a transaction."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db

    def count(self, table: Table) -> int:
        found: Any = self._db.execute(f"SELECT COUNT(*) FROM {table.name}").fetchall()
        return int(found[0][0])

    def rows(self, table: Table) -> Iterator[Row]:
        yield from self._db.execute(table.select())

    def add(self, table: Table, rows: Sequence[Row]) -> None:
        self._db.executemany(table.insert("?"), rows)


@contextmanager
def _sqlite_from(path: str) -> Iterator[Source]:
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
def _sqlite_into(path: str) -> Iterator[Target]:
    """A new file that gets its name when everything is in it and on the disk."""
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
