"""
Where what a test opens is kept: in files, or what would be in each file in a database of a real server.

Tests that look at rows, or at the store's own methods, do it through here and run on both.
"""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

import apsw

from holdfast.store import copy

lender: Any = None  # a `tests.postgres.lending.Lender` while a test runs on PostgreSQL


def name_of(path: str | os.PathLike[str]) -> str:
    """The name under which the lender knows the database that stands for this file."""
    return os.path.abspath(path)


def address(path: str | os.PathLike[str]) -> str:
    """What another process opens, to see what is in *path* here."""
    return os.fspath(path) if lender is None else str(lender.at(name_of(path)))


def rows(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table about users, whoever may see it."""
    if lender is not None:
        found: dict[str, list[tuple[Any, ...]]] = lender.rows(name_of(path))
        return found
    tables = [name for (name,) in asked(path, "SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {table: asked(path, f"SELECT * FROM {table}") for table in tables}


def asked(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """What a SELECT that both databases understand gives, whoever may see it."""
    if lender is not None:
        there: list[tuple[Any, ...]] = lender.asked(name_of(path), sql)
        return there
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as db:
        return db.execute(sql).fetchall()


def put(path: Path, content: bytes) -> None:
    """Have *path* hold what a file with these bytes holds."""
    path.write_bytes(content)
    if lender is not None:
        copy(str(path), lender.at(name_of(path)))


def duplicate(origin: Path, path: Path) -> None:
    """Have *path* hold what *origin* holds, which nobody writes now."""
    if lender is None:
        shutil.copyfile(origin, path)
    else:
        copy(lender.at(name_of(origin)), str(path))
        copy(str(path), lender.at(name_of(path)))


def erased() -> Literal["E1", "E2"]:
    """How far an erasure comes by itself: the bytes of a server's disk are out of reach."""
    return "E2" if lender is None else "E1"
