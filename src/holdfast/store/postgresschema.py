"""
The schema on PostgreSQL: the same numbered migrations, with the words that differ put in their place.

One text says what the tables are.  Types become their 64-bit kin, text is compared by code points, and
every table gets row level security: a session sees the rows of the org it named, and without one none.
"""

from __future__ import annotations

import re
from functools import cache

import psycopg

from ..clock import to_ms, utc_now
from ..errors import StoreTooNew
from . import queries

BOOK = "holdfast_migration"
_LOCK = 0x686F6C64  # "hold": one process at a time brings a database up to date
_WORDS = (
    (r"\binteger\b", "bigint"),
    (r"\breal\b", "double precision"),
    (r"\bblob\b", "bytea"),
    (r"\btext(?=\s+(?:NOT NULL|PRIMARY|,|$)|,|\n)", 'text COLLATE "C"'),
    (r"\) STRICT, WITHOUT ROWID", ")"),
    (r"\) STRICT\b", ")"),
    (r"datetime\(([^()]+) / 1000, 'unixepoch'\)", r"to_timestamp(\1 / 1000)"),
)
_TABLE = re.compile(r"^CREATE TABLE (\w+)", re.M)
ORG = "nullif(current_setting('holdfast.org', true), '')"


@cache
def migrations() -> tuple[tuple[str, str], ...]:
    """``((file name, SQL), …)`` for PostgreSQL, in the order they must run."""
    return tuple((name, _spelled(sql)) for name, sql in queries.migrations("sqlite"))


def _spelled(sql: str) -> str:
    sql = re.sub(r"--.*", "", sql)
    tables = _TABLE.findall(sql)
    views = sql.split("CREATE VIEW")
    words = views[0]
    for pattern, word in _WORDS:
        words = re.sub(pattern, word, words, flags=re.M)
    looks = ["CREATE VIEW" + re.sub(*_WORDS[-1], look) for look in views[1:]]
    looks = [re.sub(r"CREATE VIEW (\w+) AS", r"CREATE VIEW \1 WITH (security_invoker = true) AS", v) for v in looks]
    return "".join([words, *looks, *map(_guarded, tables)])


def _guarded(table: str) -> str:
    """A session that named no org sees nothing; workers and operators say that they look across."""
    return f"""
ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
CREATE POLICY own_org ON {table} USING (org = {ORG}) WITH CHECK (org = {ORG});
CREATE POLICY across ON {table} USING (current_setting('holdfast.across', true) = 'on');
"""


def migrate(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """
    Apply what is missing, each file with its bookkeeping row in one transaction.

    Raises:
        StoreTooNew: a newer version of this library wrote the database.
    """
    done = _applied(connection)
    known = [name for name, _ in migrations()]
    if done == set(known):
        return
    with connection.transaction():
        connection.execute(f"SELECT pg_advisory_xact_lock({_LOCK})".encode())
        connection.execute(
            f'CREATE TABLE IF NOT EXISTS {BOOK} (name text COLLATE "C" PRIMARY KEY, applied_at bigint NOT NULL)'.encode()
        )
        done = _applied(connection)
        for name, sql in migrations():
            if name not in done:
                connection.execute(sql.encode())
                row = {"name": name, "at": to_ms(utc_now())}
                connection.execute(f"INSERT INTO {BOOK} (name, applied_at) VALUES (%(name)s, %(at)s)".encode(), row)


def _applied(connection: psycopg.Connection[tuple[object, ...]]) -> set[str]:
    """Names of the migrations that the database has had."""
    if connection.execute(f"SELECT to_regclass('{BOOK}')".encode()).fetchall() == [(None,)]:
        return set()
    done = {str(row[0]) for row in connection.execute(f"SELECT name FROM {BOOK}".encode()).fetchall()}
    unknown = sorted(done - {name for name, _ in migrations()})
    if unknown:
        hint = "upgrade holdfast; the database was left untouched"
        raise StoreTooNew(f"the database was written by a newer version ({unknown[-1]})", hint=hint)
    return done
