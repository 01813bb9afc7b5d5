"""Run named queries on one psycopg connection; PostgreSQL's errors become ours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import psycopg
from psycopg import errors

from ..errors import (
    BadInput,
    Conflict,
    HoldfastError,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from . import queries
from .rows import Row

_PARAMETER = re.compile(r"(?<!:):([a-z_0-9]+)")

AGAIN = (errors.SerializationFailure, errors.DeadlockDetected)
"""What a transaction may run into through no fault of its own: it is run again from the start."""

_MEANING: tuple[tuple[str, type[StoreError], str, str], ...] = (
    ("53100", StoreFull, "no room left on the server's disk; nothing was half written", "free some space, then repeat"),
    ("53", StoreBusy, "the server is short of connections or memory", "try again; see the server's limits"),
    ("55P03", StoreBusy, "somebody else held the row for too long", "try again"),
    ("57014", StoreBusy, "the server stopped the statement, it took too long", "try again"),
    ("25006", StoreReadOnly, "the server takes no writes now: it is read-only or a standby", "connect to the primary"),
    ("42501", StoreError, "the role may not do that", "grant it the rights that `holdfast store init` gives"),
    ("42P01", StoreError, "a table is missing", "open the store once with a role that may create tables"),
    ("57P", StoreUnavailable, "the server ended the connection", "try again in a moment"),
    ("08", StoreUnavailable, "the server cannot be reached", "check that it runs, and its address"),
    ("28", StoreError, "the server refused the login", "check the user name and the password"),
    ("3D000", StoreError, "there is no such database", "create it first"),
)


def translated(error: psycopg.Error) -> HoldfastError:
    """What a psycopg error means to a caller; decided by SQLSTATE, and never with the words of a row."""
    state = error.sqlstate or ""
    if state.startswith("23"):
        return Conflict(f"somebody was first (SQLSTATE {state})")
    if isinstance(error, psycopg.DataError) and not state:
        return BadInput("a text holds a NUL or a lone surrogate, which no database can store")
    for code, ours, meaning, hint in _MEANING:
        if state.startswith(code):
            return ours(f"{meaning} (SQLSTATE {state})", hint=hint)
    if not state and isinstance(error, psycopg.OperationalError):
        return StoreUnavailable("the server cannot be reached", hint="check that it runs, and its address")
    return StoreError(f"PostgreSQL refused the call (SQLSTATE {state or 'none'}, {type(error).__name__})")


@cache
def statements() -> Mapping[str, tuple[str, tuple[str, ...]]]:
    """``{query name: (SQL with psycopg's parameters, their names in the order of first use)}``."""
    found = {}
    for name, sql in queries.load("postgres").items():
        names = tuple(dict.fromkeys(_PARAMETER.findall(sql)))
        found[name] = (_PARAMETER.sub(r"%(\1)s", sql.replace("%", "%%")), names)
    return found


class PsycopgDriver:
    """
    See `holdfast.store.readview.Driver`.

    ``row_for_turn``: the person has a row only because the turn was taken at it, and nobody saved one since.
    """

    __slots__ = ("_connection", "row_for_turn")

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection
        self.row_for_turn = False

    def run(self, name: str, args: Mapping[str, Any]) -> list[Row]:
        """See `Driver.run`."""
        sql, names = statements()[name]
        if name == "save_person":
            self.row_for_turn = False
        try:
            cursor = self._connection.execute(sql.encode(), {key: args[key] for key in names})
        except UnicodeEncodeError as error:
            raise BadInput("a text holds a lone surrogate, which no database can store") from error
        return cursor.fetchall() if cursor.description else []

    def many(self, name: str, args: Iterable[Sequence[Any]]) -> list[Row]:
        """See `Driver.many`."""
        sql, names = statements()[name]
        given = [dict(zip(names, one, strict=True)) for one in args]
        found: list[Row] = []
        if not given:
            return found
        with self._connection.cursor() as cursor:
            try:
                cursor.executemany(sql.encode(), given, returning=True)
            except UnicodeEncodeError as error:
                raise BadInput("a text holds a lone surrogate, which no database can store") from error
            for result in cursor.results():
                if result.description:
                    found += result.fetchall()
        return found
