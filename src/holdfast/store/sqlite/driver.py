"""Run named queries on one apsw connection; SQLite's errors become ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import apsw

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
from ..port import Row

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
