"""
Make a database ready for a role that may use memory, and do nothing else to it.

Whoever runs this owns the tables.  The role that applications log in as owns nothing, sees through row level
security, and cannot change the schema.
"""

from __future__ import annotations

import secrets
from urllib.parse import quote

import psycopg
from psycopg.sql import SQL, Identifier, Literal

from ...errors import BadInput, StoreError
from ..outcomes import StoreInit
from .connections import Connection, connect
from .driver import translated
from .schema import BOOK, RATES, migrate

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
    """The password of the role when it was made now."""
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
        if guarded or name == RATES:
            rights += ", UPDATE, DELETE"  # the ledger of erasures, which no policy guards either, only grows
        place = Identifier(schema, name)
        connection.execute(SQL(f"GRANT {rights} ON {{}} TO {{}}").format(place, who))
    if connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'citus'").fetchall():
        let_settings_travel(connection, role)


def let_settings_travel(connection: Connection, role: str) -> None:
    """What a transaction of *role* sets reaches the nodes of a cluster: without it row level security shows nothing."""
    connection.execute(SQL("ALTER ROLE {} SET citus.propagate_set_commands = 'local'").format(Identifier(role)))


def _address(location: str, role: str, password: str | None) -> str:
    """Where applications connect to; with the password when it was made now."""
    scheme, _, rest = location.partition("://")
    where, _, query = rest.rpartition("@")[2].partition("?")
    who = quote(role, safe="") + (f":{quote(password, safe='')}" if password else "")
    kept = [part for part in query.split("&") if part and part.partition("=")[0] not in ("user", "password")]
    return f"{scheme}://{who}@{where}" + (f"?{'&'.join(kept)}" if kept else "")
