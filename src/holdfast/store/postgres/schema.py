"""
The schema on PostgreSQL, and the role of the applications.

The migrations are SQLite's, with the words that differ replaced.  Types become their 64-bit kin, text is compared by
code points, and every table of an org's rows gets row level security: a session sees the rows of the org it named, and
without one none.  The tables without an org name no user: the ledger of erasures, which only grows, the rates of
model calls, and how long calls took.

The role that runs `initialize` owns the tables.  The role of the applications owns nothing, is bound by row level
security, and cannot change the schema.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from urllib.parse import quote

import psycopg
from psycopg import errors
from psycopg.sql import SQL, Identifier, Literal

from ...clock import to_ms, utc_now
from ...errors import BadInput, StoreBusy, StoreError
from ...text import expression
from .. import queries
from ..port import StoreInit
from .driver import Connection, connect, translated

OLDEST = 15
"""The oldest PostgreSQL that will do: views have had ``security_invoker`` since."""
BOOK = "holdfast_migration"
COUNTERS = ("rate_limit", "call_time")
"""Tables without an org that applications change."""
_MAKE_BOOK = f'CREATE TABLE IF NOT EXISTS {BOOK} (name text COLLATE "C" PRIMARY KEY, applied_at bigint NOT NULL)'
_NOTE = f"INSERT INTO {BOOK} (name, applied_at) VALUES (%s, %s)"
_LOCK = 0x686F6C64  # "hold": one process at a time brings a database up to date
_LOCK_MS = 2_000  # how long a change of the schema waits for a table, and with it all who come later
_PAUSES_S = (1.0, 2.0, 4.0, 8.0)  # before it tries again
_WORDS = (
    (r"\binteger\b", "bigint"),
    (r"\breal\b", "double precision"),
    (r"\bblob\b", "bytea"),
    (r"\btext(?=\s+(?:NOT NULL|PRIMARY|,|$)|,|\n)", 'text COLLATE "C"'),
    (r"\) STRICT, WITHOUT ROWID", ")"),
    (r"\) STRICT\b", ")"),
    (r"datetime\(([^()]+) / 1000, 'unixepoch'\)", r"to_timestamp(\1 / 1000)"),
)
_UPDATED_IN_PLACE = ("user_state", "conversation", "job")  # with every append
_ROOMY = (
    "ALTER TABLE {} SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);\n"
)
_TABLE = expression(r"^CREATE TABLE (\w+) \((.*?)^\)", re.M | re.S)
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
    roomy = [_ROOMY.format(table) for table in tables if table in _UPDATED_IN_PLACE]
    return "".join([words, *looks, *map(_guarded, tables), *roomy])


def _guarded(table: str) -> str:
    """Add row level security: a session sees the org it named, or nothing; one across users sees all."""
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
        StoreBusy: other sessions used the tables all the time.
        StoreError: the server is too old, keeps another encoding, or the role may not make the tables.
    """
    _suitable(connection)
    known = [name for name, _ in migrations()]
    if _applied(connection) == set(known):
        return
    try:
        _when_free(lambda: _apply(connection))
    except errors.InsufficientPrivilege as error:
        hint = "run `holdfast store init` with the address of a role that may create tables"
        raise StoreError(
            "the database has not all tables of this version, and this role may not make them", hint=hint
        ) from error


def _when_free(change: Callable[[], None]) -> None:
    """
    Run a change of the schema, again after a while when it waited `_LOCK_MS` for a table that other sessions use.

    Raises:
        StoreBusy: they used it all the time.
    """
    for pause_s in _PAUSES_S:
        try:
            return change()
        except errors.LockNotAvailable:
            time.sleep(pause_s)
    try:
        change()
    except errors.LockNotAvailable as error:
        hint = "end long transactions (pg_stat_activity shows them), and try again"
        raise StoreBusy("the schema was not changed, as other sessions use its tables", hint=hint) from error


def _apply(connection: Connection) -> None:
    """Apply the migrations that are missing; wait for a table only briefly, as all others queue behind the wait."""
    with connection.transaction():
        connection.execute(f"SELECT pg_advisory_xact_lock({_LOCK})".encode())
        connection.execute(f"SET LOCAL lock_timeout = {_LOCK_MS}".encode())
        connection.execute(_MAKE_BOOK.encode())
        done = _applied(connection)
        for name, sql in migrations():
            if name not in done:
                connection.execute(sql.encode())
                connection.execute(_NOTE.encode(), (name, to_ms(utc_now())))


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


APP = "holdfast_app"
_TABLES = """
SELECT relname, relkind, relrowsecurity
  FROM pg_class
 WHERE relkind IN ('r', 'p', 'v') AND relnamespace = %s::regnamespace AND relowner = current_user::regrole
"""


def initialize(location: str, role: str = APP, password: str | None = None) -> StoreInit:
    """
    Bring the schema up to date, and give *role* what an application needs; safe to run again after an upgrade.

    Args:
        location: of a role that may create tables, and roles unless *role* is there.
        role: what applications log in as; made when it is not there.
        password: of a role that is made; a random one when not given.

    Raises:
        StoreError: the login may not do it, or *role* is one that row level security does not hold.
    """
    if not role or "\0" in role:
        raise BadInput("the role needs a name")
    connection = connect(location)
    try:
        migrate(connection)
        with connection.transaction():
            made = _made(connection, role, password)
            _checked(connection, role)
            _granted(connection, role)
    except psycopg.Error as error:
        raise translated(error) from error
    finally:
        connection.close()
    return StoreInit(role=role, made=made is not None, address=_address(location, role, made))


def _made(connection: Connection, role: str, password: str | None) -> str | None:
    """Create the role if needed; return the password of a new one."""
    if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchall():
        return None
    word = password or secrets.token_urlsafe(24)
    making = SQL("CREATE ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS PASSWORD {}")
    connection.execute(making.format(Identifier(role), Literal(word)))
    return word


def _checked(connection: Connection, role: str) -> None:
    """
    Raises:
        StoreError: the role could look past row level security, or change it.
    """
    owns = "SELECT count(*) FROM pg_class WHERE relowner = r.oid AND relkind = 'r'"
    asked = f"SELECT rolsuper OR rolbypassrls, rolcanlogin, ({owns}) FROM pg_roles r WHERE rolname = %s"
    past, login, owned = connection.execute(asked.encode(), (role,)).fetchall()[0]
    if past or owned or not login:
        why = "passes row level security" if past else "owns tables" if owned else "may not log in"
        raise StoreError(f"the role {role} {why}", hint="name another one; it is made when it is not there")


def _granted(connection: Connection, role: str) -> None:
    """Rights table by table: a cluster refuses them for all at once."""
    who = Identifier(role)
    database, schema = connection.execute("SELECT current_database(), current_schema()").fetchall()[0]
    connection.execute(SQL("REVOKE CREATE ON SCHEMA {} FROM PUBLIC").format(Identifier(schema)))
    connection.execute(SQL("GRANT CONNECT ON DATABASE {} TO {}").format(Identifier(database), who))
    connection.execute(SQL("GRANT USAGE ON SCHEMA {} TO {}").format(Identifier(schema), who))
    for name, kind, guarded in connection.execute(_TABLES, (Identifier(schema).as_string(),)).fetchall():
        rights = "SELECT" if kind == "v" or name == BOOK else "SELECT, INSERT"
        if guarded or name in COUNTERS:
            rights += ", UPDATE, DELETE"  # the ledger of erasures, which no policy guards either, only grows
        place = Identifier(schema, name)
        connection.execute(SQL(f"GRANT {rights} ON {{}} TO {{}}").format(place, who))
    if connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'citus'").fetchall():
        let_settings_travel(connection, role)


def let_settings_travel(connection: Connection, role: str) -> None:
    """Let the settings of *role*'s transactions reach a cluster's nodes; row level security would hide all rows."""
    connection.execute(SQL("ALTER ROLE {} SET citus.propagate_set_commands = 'local'").format(Identifier(role)))


def _address(location: str, role: str, password: str | None) -> str:
    """Return the address for applications, with the password of a new role."""
    scheme, _, rest = location.partition("://")
    where, _, query = rest.rpartition("@")[2].partition("?")
    who = quote(role, safe="") + (f":{quote(password, safe='')}" if password else "")
    kept = [part for part in query.split("&") if part and part.partition("=")[0] not in ("user", "password")]
    return f"{scheme}://{who}@{where}" + (f"?{'&'.join(kept)}" if kept else "")


OWNER = "holdfast_owner"
"""The group of the users' own roles; see `owner_policies`."""
_READABLE = (
    "conversation", "subject", "message", "coverage", "summary", "fact", "evidence", "rejected", "episode_range",
    "consent", "blocked_topic", "usage", "prompt",
)  # fmt: skip
_KEYS = ("api_key", "provider_key")  # not even their owners read digests and sealed keys


def owner_policies() -> str:
    """
    Return the SQL by which users' own database roles read the rows of their user, and no others.

    A role gets the user's rows by membership in `OWNER` and a line in ``holdfast_owners.owner``, which only the owner of the
    tables may write.  The restrictive policy holds whatever the session sets; nobody in the group may write.
    """
    whole = "\n".join(sql for _, sql in migrations())
    columns = {name: body for name, body in _TABLE.findall(whole) if re.match(r"\s*org\b", body)}
    views = re.findall(r"^CREATE VIEW (\w+)", whole, re.M)
    own = "(org, user_id) IN (SELECT o.org, o.user_id FROM holdfast_owners.owner o WHERE o.role = current_user)"
    lines = [
        f"DO $$ BEGIN IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = '{OWNER}') THEN CREATE ROLE {OWNER} NOLOGIN; "
        "END IF; END $$;",
        "CREATE SCHEMA IF NOT EXISTS holdfast_owners;",
        'CREATE TABLE IF NOT EXISTS holdfast_owners.owner (role text COLLATE "C" NOT NULL, org text COLLATE "C" NOT NULL, '
        'user_id text COLLATE "C" NOT NULL, PRIMARY KEY (role, org, user_id));',
        "ALTER TABLE holdfast_owners.owner ENABLE ROW LEVEL SECURITY;",
        "DROP POLICY IF EXISTS own_entry ON holdfast_owners.owner;",
        f"CREATE POLICY own_entry ON holdfast_owners.owner FOR SELECT TO {OWNER} USING (role = current_user);",
        f"GRANT USAGE ON SCHEMA holdfast_owners TO {OWNER};",
        f"GRANT SELECT ON holdfast_owners.owner TO {OWNER};",
    ]
    for table, body in columns.items():
        only = own if re.search(r"^\s*user_id\b", body, re.M) and table not in _KEYS else "false"
        lines += [
            f"DROP POLICY IF EXISTS only_own_rows ON {table};",
            f"CREATE POLICY only_own_rows ON {table} AS RESTRICTIVE TO {OWNER} USING ({only});",
        ]
        if table in _READABLE:
            lines += [
                f"DROP POLICY IF EXISTS own_rows ON {table};",
                f"CREATE POLICY own_rows ON {table} FOR SELECT TO {OWNER} USING ({own});",
            ]
    lines += [f"GRANT SELECT ON {name} TO {OWNER};" for name in (*_READABLE, *views)]
    return "\n".join(lines) + "\n"


def apply_owner_policies(location: str) -> None:
    """
    Apply `owner_policies`; safe to run again, as after an upgrade.

    Raises:
        StoreBusy: other sessions used the tables all the time.
        StoreError: the login does not own the tables or may not create roles, or the tables are spread over a cluster.
    """

    def change() -> None:
        with connection.transaction():
            connection.execute(f"SET LOCAL lock_timeout = {_LOCK_MS}".encode())
            connection.execute(owner_policies().encode())
            (schema,) = connection.execute("SELECT current_schema()").fetchall()[0]
            connection.execute(SQL("GRANT USAGE ON SCHEMA {} TO {}").format(Identifier(schema), Identifier(OWNER)))

    with _as_owner(location) as connection:
        _when_free(change)


def grant_owner(location: str, role: str, user: str, org: str, *, revoke: bool = False) -> None:
    """
    Give a user's own database role the rows of that user to read, or take them away again.

    Raises:
        StoreError: there is no such role, or row level security does not hold it.
    """
    with _as_owner(location) as connection, connection.transaction():
        if revoke:
            gone = "DELETE FROM holdfast_owners.owner WHERE role = %s AND org = %s AND user_id = %s"
            connection.execute(gone, (role, org, user))
            left = connection.execute("SELECT 1 FROM holdfast_owners.owner WHERE role = %s", (role,)).fetchall()
            if not left:
                connection.execute(SQL("REVOKE {} FROM {}").format(Identifier(OWNER), Identifier(role)))
            return
        if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchall():
            raise StoreError(f"there is no role {role}", hint=f"CREATE ROLE {role} LOGIN PASSWORD '…'")
        if role == APP:
            raise StoreError(f"{APP} is the role of applications", hint="name the role of one user")
        _checked(connection, role)
        connection.execute(SQL("GRANT {} TO {}").format(Identifier(OWNER), Identifier(role)))
        known = "INSERT INTO holdfast_owners.owner (role, org, user_id) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
        connection.execute(known, (role, org, user))


@contextmanager
def _as_owner(location: str) -> Iterator[Connection]:
    """Connect as the role that owns the tables."""
    connection = connect(location)
    try:
        migrate(connection)
        if connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'citus'").fetchall():
            raise StoreError("users' own roles are not for a cluster", hint="give users the pages or the API")
        yield connection
    except psycopg.Error as error:
        raise translated(error) from error
    finally:
        connection.close()
