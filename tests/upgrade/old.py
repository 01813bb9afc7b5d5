"""
Databases of the first schema, with a varied memory in them, and a made-up second schema to upgrade them to.

The machinery of migrations is tested before there is a real second one.
"""

from __future__ import annotations

import hashlib
import os
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import apsw
import psycopg

from holdfast import Memory
from holdfast.store import queries
from holdfast.store.maintenance import line_of
from holdfast.store.port import Table
from holdfast.store.postgres.schema import BOOK, migrations
from holdfast.store.queries import tables_of
from holdfast.testing.fakes import HashEmbedder

FIRST_SQL = queries.migrations("sqlite")
SECOND_SQL = (
    (
        "0002_made_up.sql",
        """
CREATE TABLE favorite (                    -- a table of the org's rows
    org     text    NOT NULL,
    user_id text    NOT NULL,
    bot     text    NOT NULL,
    id      text    NOT NULL,
    since   integer NOT NULL,
    PRIMARY KEY (org, user_id, bot, id)
) STRICT, WITHOUT ROWID;

ALTER TABLE fact ADD COLUMN color text NOT NULL DEFAULT '';
ALTER TABLE conversation ADD COLUMN pinned integer NOT NULL DEFAULT 0;
CREATE INDEX fact_color ON fact (org, user_id, bot, color);
CREATE INDEX favorite_since ON favorite (org, user_id, bot, since);
UPDATE fact SET color = 'blue' WHERE category = 'home';
DROP INDEX usage_day;
""",
    ),
)
NAMES = [name for name, _ in (*FIRST_SQL, *SECOND_SQL)]
BOOKED = f"CREATE TABLE {BOOK} (name TEXT PRIMARY KEY, applied_at INTEGER NOT NULL) STRICT"
MANY = 10_000  # more statements than there are

Rows = Mapping[str, list[dict[str, Any]]]
Kill = Callable[[], None]


def fill(path: Path) -> None:
    """A memory with something in most tables: several scripts, edits, erasures, choices, keys, work that waits."""
    with Memory(path, embedder=HashEmbedder()) as memory:
        for org in ("acme", "日本"):
            chat = memory.conversation("c", user="ana", org=org)
            for number in range(12):
                chat.record(
                    f"I live in Lisbon and have {number} cats \U0001f408.", "Noté.", idempotency_key=f"k{number}"
                )
            chat.record("Ich wohne jetzt in Köln. 我喜欢喝茶。", "Gut.")
            chat.end()
            memory.digest()
            chat.forget(3)
            chat.edit(5, "I live in Faro and have no cats.")
            chat.context("Where do they live?")
            memory.user("bo", org=org).pause()
            memory.user("ana", org=org).never_remember("health")
            memory.conversation("pets", user="ana", org=org, subject="Rex").record("Rex is nine years old.", "Oh.")
        memory.admin.keys.create("app")


def rows_of(path: Path) -> Rows:
    """Every row of a file, by table and column."""
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    found = {
        table.name: [dict(zip(table.columns, row, strict=True)) for row in db.execute(table.select())]
        for table in tables_of(db)
        if table.name != BOOK
    }
    db.close()
    return found


def first_tables() -> tuple[Table, ...]:
    """The tables of the first schema."""
    db = apsw.Connection(":memory:")
    for _, sql in FIRST_SQL:
        db.execute(sql)
    found = tables_of(db)
    db.close()
    return found


def as_first(rows: Rows) -> dict[str, list[tuple[Any, ...]]]:
    """The rows that a database of the first schema holds: its tables, their columns, in the order of their keys."""
    return {t.name: [tuple(row[column] for column in t.columns) for row in rows[t.name]] for t in first_tables()}


def make_file(path: Path, rows: Rows) -> None:
    """Create a file of the first schema."""
    db = apsw.Connection(str(path))
    db.pragma("journal_mode", "wal")
    with db:
        db.execute(BOOKED)
        for name, sql in FIRST_SQL:
            db.execute(sql)
            db.execute(f"INSERT INTO {BOOK} VALUES (?, 0)", (name,))
        held = as_first(rows)
        for table in first_tables():
            db.executemany(table.insert("?"), held[table.name])
    db.close()
    path.chmod(0o600)


def make_database(address: str, rows: Rows) -> None:
    """The same in an empty database; *address* is that of a role that no policy holds."""
    first = [name for name, _ in FIRST_SQL]
    with psycopg.connect(address) as connection:
        connection.execute(
            f'CREATE TABLE {BOOK} (name text COLLATE "C" PRIMARY KEY, applied_at bigint NOT NULL)'.encode()
        )
        for name, sql in migrations():
            if name in first:
                connection.execute(sql.encode())
                connection.execute(f"INSERT INTO {BOOK} VALUES (%s, 0)".encode(), (name,))
        held = as_first(rows)
        with connection.cursor() as cursor:
            for table in first_tables():
                cursor.executemany(table.insert("%s").encode(), held[table.name])


def statements(sql: str) -> list[str]:
    """The statements of a migration for PostgreSQL, one by one."""
    return [one for one in re.split(r";\s*\n", sql.rstrip().rstrip(";") + ";\n") if one.strip()]


def digest(found: Sequence[tuple[Any, ...]]) -> str:
    """One word for many rows."""
    return hashlib.sha256(b"".join(map(line_of, found))).hexdigest()


def killed_at(number: int, work: Callable[[Kill], None]) -> bool:
    """
    Do *work* in a process of its own that is killed when it says for the *number*-th time that a statement is next.

    ``False``: it came to its end before.
    """
    pid = os.fork()
    if pid == 0:
        seen = 0

        def next_one() -> None:
            nonlocal seen
            seen += 1
            if seen == number:
                os.kill(os.getpid(), signal.SIGKILL)

        code = 1
        try:
            work(next_one)
            code = 0
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code in (0, -signal.SIGKILL), "the upgrade failed"
    return code != 0


def stopped_before(number: int, told: int, work: Callable[[Kill], None]) -> int:
    """The process that does *work* and stands still before the *number*-th statement, having said so to *told*."""
    pid = os.fork()
    if pid == 0:
        seen = 0

        def next_one() -> None:
            nonlocal seen
            seen += 1
            if seen == number:
                os.write(told, b".")
                signal.pause()

        try:
            work(next_one)
        finally:
            os._exit(1)
    return pid


def at_once(works: Sequence[Callable[[], None]]) -> list[int]:
    """Do all of it in processes that start together; their exit codes."""
    waiting, go = os.pipe()
    children = []
    for work in works:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.close(go)
                os.read(waiting, 1)
                work()
                code = 0
            finally:
                os._exit(code)
        children.append(pid)
    os.close(go)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
    os.close(waiting)
    return codes


def some(number: int, full: bool) -> list[int]:
    """The statements at which a process is killed: all of them, or a few, the first and the last among them."""
    return list(range(1, number + 1)) if full else sorted({1, number // 3, 2 * number // 3, number})
