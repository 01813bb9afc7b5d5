"""
Load named SQL from ``sql/shared`` and then from the dialect's own folder, and the schema.

A query is everything between ``-- name: x`` and the next one.  Parameters are written ``:name`` in
every file.  A dialect file may override a shared query of the same name, and nothing else.
Migrations are the files whose names begin with a number; they run in the order of their names.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

import apsw

from ..errors import StoreError, StoreTooNew
from ..text import expression
from .port import Table

_NAME = expression(r"^-- name: (\w+)\n", re.M)
_COMMENT = expression(r"^--.*\n?", re.M)
PARAMETER = expression(r"(?<!:):([a-z_0-9]+)")


@cache
def load(dialect: str) -> dict[str, str]:
    """
    Return ``{query name: SQL}`` for ``"sqlite"``; shared and read-only, so do not change it.

    Raises:
        ValueError: a name is defined twice inside the same folder.
    """
    found: dict[str, str] = {}
    for folder in ("shared", dialect):
        seen: set[str] = set()
        root = resources.files(__package__) / "sql" / folder
        for file in sorted(root.iterdir(), key=lambda f: f.name):
            if not file.name.endswith(".sql") or file.name[0].isdecimal():
                continue
            _, *parts = _NAME.split(file.read_text(encoding="utf-8"))
            for name, body in zip(parts[::2], parts[1::2], strict=True):
                if name in seen:
                    raise ValueError(f"{folder}/{file.name}: query {name!r} is defined twice")
                seen.add(name)
                found[name] = _COMMENT.sub("", body).strip().rstrip(";")
    return found


def parameters(sql: str) -> tuple[str, ...]:
    """Return the names of the parameters of a query, in the order in which it first names them."""
    return tuple(dict.fromkeys(PARAMETER.findall(sql)))


@cache
def migrations(dialect: str) -> tuple[tuple[str, str], ...]:
    """Return ``((file name, SQL), ...)`` in the order they must run."""
    root = resources.files(__package__) / "sql" / dialect
    files = [f for f in root.iterdir() if f.name[0].isdecimal() and f.name.endswith(".sql")]
    return tuple((f.name, f.read_text(encoding="utf-8")) for f in sorted(files, key=lambda f: f.name))


def schema_version() -> str:
    """Return the version of the schema that this library writes: the number of its newest migration."""
    return migrations("sqlite")[-1][0].partition("_")[0]


def check_migrations(applied: set[str], place: str) -> None:
    """
    Refuse a database with a migration that this library does not know.

    Raises:
        StoreTooNew: a newer version of this library wrote *place*.
        StoreError: its first schema is another one.
    """
    known = {name for name, _ in migrations("sqlite")}
    unknown = sorted(applied - known)
    if not unknown:
        return
    if unknown[0].partition("_")[0] <= max(known).partition("_")[0]:
        hint = "export its users with the version that wrote it, then import them here; nothing was changed"
        raise StoreError(f"{place} has an older schema ({unknown[0]}), which cannot be upgraded", hint=hint)
    hint = f"upgrade holdfast; {place} was left untouched"
    raise StoreTooNew(f"{place} was written by a newer version ({unknown[-1]})", hint=hint)


@cache
def tables() -> tuple[Table, ...]:
    """Return the tables of a memory, as the migrations create them."""
    db = apsw.Connection(":memory:")
    for _, sql in migrations("sqlite"):
        db.execute(sql)
    found = tables_of(db)
    db.close()
    return found


def tables_of(db: apsw.Connection) -> tuple[Table, ...]:
    """Return the tables of one SQLite database."""
    names = [row[0] for row in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
    found = []
    for name in names:
        columns = list(db.execute("SELECT name, pk FROM pragma_table_info(?) ORDER BY cid", (name,)))
        key = tuple(column for column, place in sorted(columns, key=lambda c: int(c[1])) if place)
        found.append(Table(str(name), tuple(str(column) for column, _ in columns), tuple(map(str, key))))
    return tuple(found)
