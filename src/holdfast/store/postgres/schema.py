"""
The schema on PostgreSQL: the same numbered migrations, with the words that differ put in their place.

One text says what the tables are.  Types become their 64-bit kin, text is compared by code points, and
every table of an org's rows gets row level security: a session sees those of the org it named, and without
one none.  What has no org names nobody: the ledger of erasures, which only grows, and how often models are asked.
"""

from __future__ import annotations

import re
from functools import cache

from psycopg import errors

from ...clock import to_ms, utc_now
from ...errors import StoreError
from .. import queries
from .connections import Connection

OLDEST = 15
"""The oldest PostgreSQL that will do: views have had ``security_invoker`` since."""
BOOK = "holdfast_migration"
RATES = "rate_limit"
_MAKE_BOOK = f'CREATE TABLE IF NOT EXISTS {BOOK} (name text COLLATE "C" PRIMARY KEY, applied_at bigint NOT NULL)'
_NOTE = f"INSERT INTO {BOOK} (name, applied_at) VALUES (%s, %s)"
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
_TABLE = re.compile(r"^CREATE TABLE (\w+) \((.*?)^\)", re.M | re.S)
ORG = "nullif(current_setting('holdfast.org', true), '')"


@cache
def migrations() -> tuple[tuple[str, str], ...]:
    """``((file name, SQL), …)`` for PostgreSQL, in the order they must run."""
    return tuple((name, _spelled(sql)) for name, sql in queries.migrations("sqlite"))


def _spelled(sql: str) -> str:
    sql = re.sub(r"--.*", "", sql)
    tables = [name for name, body in _TABLE.findall(sql) if re.match(r"\s*org\b", body)]
    views = sql.split("CREATE VIEW")
    words = views[0]
    for pattern, word in _WORDS:
        words = re.sub(pattern, word, words, flags=re.M)
    looks = ["CREATE VIEW" + re.sub(*_WORDS[-1], look) for look in views[1:]]
    looks = [re.sub(r"CREATE VIEW (\w+) AS", r"CREATE VIEW \1 WITH (security_invoker = true) AS", v) for v in looks]
    return "".join([words, *looks, *map(_guarded, tables)])


def _guarded(table: str) -> str:
    """A session that named no org sees nothing; one that looks across sees all, and writes in the org it names."""
    return f"""
ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
ALTER TABLE {table} FORCE ROW LEVEL SECURITY;
CREATE POLICY own_org ON {table} USING (org = {ORG}) WITH CHECK (org = {ORG});
CREATE POLICY across ON {table} FOR SELECT USING (current_setting('holdfast.across', true) = 'on');
"""


def migrate(connection: Connection) -> None:
    """
    Apply what is missing, each file with its bookkeeping row, all of them in one transaction.

    Raises:
        StoreTooNew: a newer version of this library wrote the database.
        StoreError: the server is too old, keeps another encoding, or the role may not make the tables.
    """
    _suitable(connection)
    known = [name for name, _ in migrations()]
    if _applied(connection) == set(known):
        return
    try:
        with connection.transaction():
            connection.execute(f"SELECT pg_advisory_xact_lock({_LOCK})".encode())
            connection.execute(_MAKE_BOOK.encode())
            done = _applied(connection)
            for name, sql in migrations():
                if name not in done:
                    connection.execute(sql.encode())
                    connection.execute(_NOTE.encode(), (name, to_ms(utc_now())))
    except errors.InsufficientPrivilege as error:
        hint = "run `holdfast store init` with the address of a role that may create tables"
        raise StoreError(
            "the database has not all tables of this version, and this role may not make them", hint=hint
        ) from error


def _suitable(connection: Connection) -> None:
    """
    Raises:
        StoreError: the server cannot hold a memory.
    """
    version = connection.info.server_version
    if version < OLDEST * 10_000:
        hint = "upgrade the server, or choose another"
        raise StoreError(f"PostgreSQL {version // 10_000} is too old, {OLDEST} is needed", hint=hint)
    encoding = connection.execute("SELECT current_setting('server_encoding')").fetchall()[0][0]
    if encoding != "UTF8":
        raise StoreError(f"the database keeps {encoding}, not UTF8", hint="createdb -E UTF8 -T template0 NAME")


def _applied(connection: Connection) -> set[str]:
    """Names of the migrations that the database has had."""
    if connection.execute(f"SELECT to_regclass('{BOOK}')".encode()).fetchall() == [(None,)]:
        return set()
    done = {str(row[0]) for row in connection.execute(f"SELECT name FROM {BOOK}".encode()).fetchall()}
    queries.check_migrations(done, "the database")
    return done
