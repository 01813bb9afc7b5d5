"""
The manifest of a backup, written into it when it is made: rows and one SHA-256 for each table.

A file that was damaged on its way, or changed afterwards, no longer agrees with it, even where SQLite itself sees
nothing wrong.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import apsw

from ...clock import from_ms, to_ms, utc_now
from ..maintenance import line_of
from ..port import Table
from ..queries import tables_of
from .connection import translated

_TABLE = "holdfast_backup"


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
