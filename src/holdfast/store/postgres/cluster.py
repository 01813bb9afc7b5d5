"""
Spread the tables of a PostgreSQL database over the nodes of a Citus cluster.

Whatever has a user in its key is cut by ``user_id``, all tables alike, so that one user's rows stand together on
one node; keys of callers, and which migrations were applied, stand on every node.  The ledger of erasures is cut by its
own keys: written on every node, it would keep anybody from being erased while one of them is down.
A table moves in a transaction of its own, with as many rows after as before, so whoever is interrupted runs it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import psycopg
from psycopg.sql import SQL, Composable, Identifier, Literal

from ...errors import BadInput, StoreError
from ..port import Distribution, Obstacle, Placement
from ..queries import tables
from .driver import Connection, connect, translated
from .schema import BOOK, let_settings_travel, migrations

SHARDS = 32
"""What Citus itself cuts a table into."""
FIRST = "user_state"
ALONE = {"allowance": "org", "erasure": "id", "ledger_key": "one", "rate_limit": "id", "call_time": "call"}
_EVERYWHERE = "SELECT create_reference_table({place})"
_BESIDE = "SELECT create_distributed_table({place}, {by}, colocate_with => {first})"
_ALONE = "SELECT create_distributed_table({place}, {by}, colocate_with => 'none', shard_count => {shards})"
Progress = Callable[[str, int, int], None]


@cache
def by_column() -> Mapping[str, str]:
    """Return the column that distributes each table, in the order in which they move; ``""``: a copy on every node."""
    names = [table.name for table in tables() if "user_id" in table.key]
    by_user = dict.fromkeys([FIRST, *names], "user_id")
    rest = {table.name: ALONE.get(table.name, "") for table in tables() if table.name not in by_user}
    return by_user | rest | {BOOK: ""}


def is_spread(connection: Connection) -> bool:
    """
    Whether the tables are distributed over a cluster.

    Raises:
        StoreError: some of them do and others do not.
    """
    if not connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'citus'").fetchall():
        return False
    there = whereabouts(connection)
    left = [name for name in by_column() if name not in there]
    if there and left:
        hint = "run `holdfast store distribute` again with the address of its owner; it goes on where it ended"
        raise StoreError(f"only a part of the database is spread over the cluster: {left[0]} is not", hint=hint)
    return bool(there)


def distribute(
    location: str, *, shards: int = SHARDS, dry_run: bool = False, progress: Progress | None = None
) -> Distribution:
    """
    See `holdfast.store.distribute`.

    Raises:
        StoreError: this is no cluster, or the login may not do it.
        BadInput: *shards* cannot be used.
    """
    if not 1 <= shards <= 4096:
        raise BadInput("shards must be from 1 to 4096", hint="two to four for each core of all nodes together")
    connection = connect(location)
    try:
        version, nodes = _cluster(connection)
        wrong = obstacles(connection, by_column())
        plan = _planned(connection, shards)
        found = Distribution(version, nodes, done=False, tables=tuple(plan), obstacles=wrong)
        if wrong or dry_run:
            return replace(found, done=not wrong and all(table.there for table in plan))
        for role in roles_with_rights(connection):
            let_settings_travel(connection, role)
        _spread(connection, plan, progress or (lambda name, done, total: None))
        return replace(found, done=True, tables=tuple(replace(table, there=True) for table in plan))
    except psycopg.Error as error:
        raise _explained(error) from error
    finally:
        connection.close()


def _cluster(connection: Connection) -> tuple[str, int]:
    """
    Return the version of Citus, and how many nodes hold rows.

    Raises:
        StoreError: there is none, or this is not the node that commands go to.
    """
    asked = "SELECT e.extversion, a.name FROM pg_available_extensions a LEFT JOIN pg_extension e ON e.extname = a.name"
    found = connection.execute(f"{asked} WHERE a.name = 'citus'".encode()).fetchall()
    if not found:
        hint = "install Citus on every node, put citus into shared_preload_libraries, restart, CREATE EXTENSION citus"
        raise StoreError("the server has no Citus, so there is nothing to spread the database over", hint=hint)
    if found[0][0] is None:
        hint = "CREATE EXTENSION citus; then SELECT citus_add_node(host, port) for every worker"
        raise StoreError("the server has Citus, but this database does not use it", hint=hint)
    if connection.execute("SELECT groupid FROM pg_dist_local_group").fetchall() != [(0,)]:
        raise StoreError("this is a worker of the cluster", hint="give the address of the coordinator")
    nodes = "SELECT count(*) FROM pg_dist_node WHERE isactive AND shouldhaveshards AND noderole = 'primary'"
    return found[0][0], connection.execute(nodes.encode()).fetchall()[0][0]


def _planned(connection: Connection, shards: int) -> list[Placement]:
    """Return the work on each table, in order."""
    there = whereabouts(connection)
    schema = connection.execute("SELECT current_schema()").fetchall()[0][0]
    plan = []
    for name, column in by_column().items():
        given: dict[str, Composable] = {"place": Literal(Identifier(schema, name).as_string()), "by": Literal(column)}
        given["first"] = Literal(Identifier(schema, FIRST).as_string())
        given["shards"] = Literal(1 if name == "ledger_key" else shards)
        words = _EVERYWHERE if not column else _BESIDE if column == "user_id" and name != FIRST else _ALONE
        sql = SQL(words).format(**given).as_string(connection)
        plan.append(Placement(name, column, _counted(connection, name), name in there, sql))
    return plan


def _counted(connection: Connection, table: str) -> int:
    """Count the rows of all orgs."""
    with connection.transaction():
        connection.execute("SET LOCAL citus.propagate_set_commands = 'local'")
        connection.execute("SET LOCAL holdfast.across = 'on'")
        return int(connection.execute(SQL("SELECT count(*) FROM {}").format(Identifier(table))).fetchall()[0][0])


def _spread(connection: Connection, plan: Sequence[Placement], progress: Progress) -> None:
    total = sum(table.rows for table in plan)
    done = 0
    connection.execute("SET citus.propagate_set_commands = 'local'")
    connection.execute("SET client_min_messages = 'warning'")
    for table in plan:
        if not table.there:
            progress(table.table, done, total)
            _moved(connection, table)
        _cleared(connection, table.table)
        done += table.rows
        progress(table.table, done, total)


def _moved(connection: Connection, table: Placement) -> None:
    """
    Move one table under an exclusive lock.

    Row level security is lifted from its owner until the end of the transaction: Citus copies with ``COPY``, which
    is not for those whom it holds.

    Raises:
        StoreError: there are not as many rows as before; nothing has changed then.
    """
    name = Identifier(table.table)
    with connection.transaction():
        connection.execute("SET LOCAL holdfast.across = 'on'")
        connection.execute(SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(name))
        guarded = connection.execute(
            "SELECT relforcerowsecurity FROM pg_class WHERE oid = %s::regclass", (name.as_string(),)
        ).fetchall()[0][0]
        before = connection.execute(SQL("SELECT count(*) FROM {}").format(name)).fetchall()
        if guarded:
            connection.execute(SQL("ALTER TABLE {} NO FORCE ROW LEVEL SECURITY").format(name))
        connection.execute(table.sql.encode())
        if guarded:
            connection.execute(SQL("ALTER TABLE {} FORCE ROW LEVEL SECURITY").format(name))
        after = connection.execute(SQL("SELECT count(*) FROM {}").format(name)).fetchall()
        if before != after:
            hint = "the table is as it was; stop what writes to it, then run this again"
            raise StoreError(f"{before[0][0]} rows of {table.table} became {after[0][0]} on the cluster", hint=hint)


def _cleared(connection: Connection, table: str) -> None:
    """
    Remove the rows that Citus leaves in the local table after it moved.

    Nobody can see these rows any more, and no erasure would reach them.
    """
    place = Identifier(table).as_string()
    size: Any = connection.execute("SELECT pg_relation_size(%s::regclass)", (place,)).fetchall()[0][0]
    if size:
        connection.execute("SELECT truncate_local_data_after_distributing_table(%s::regclass)", (place,))


def _explained(error: psycopg.Error) -> StoreError | Exception:
    """Return Citus's own message for the code it uses for most errors; it names tables and nodes, never a row."""
    meaning = translated(error)
    if error.sqlstate in ("XX000", "0A000") and error.diag.message_primary:
        return StoreError(f"Citus refused: {error.diag.message_primary}", hint=error.diag.message_hint or "")
    return meaning


OLDEST_CITUS = 12
OF_ORGS = ("event", "provider_key", "operation")  # they have rows of an org as a whole, whose user is ''
_SCHEMA = "current_schema()::regnamespace"

_WHERE = f"""
SELECT c.relname
  FROM pg_dist_partition p JOIN pg_class c ON c.oid = p.logicalrelid
 WHERE c.relnamespace = {_SCHEMA}
"""
_NODES = "SELECT nodename || ':' || nodeport FROM pg_dist_node WHERE noderole = 'primary' AND NOT isactive"
_VERSIONS = """
SELECT count(DISTINCT left(result, -4)), count(*) FILTER (WHERE NOT success)
  FROM run_command_on_all_nodes('SHOW server_version_num')
"""
_ROLES = f"""
SELECT DISTINCT r.rolname
  FROM pg_class c, aclexplode(c.relacl) a, pg_roles r
 WHERE c.relnamespace = {_SCHEMA} AND c.relkind = 'r' AND r.oid = a.grantee AND NOT r.rolsuper
 ORDER BY 1
"""
_ABROAD = """
SELECT count(*) FILTER (WHERE NOT success OR result <> 't')
  FROM run_command_on_all_nodes(format('SELECT count(*) = 1 FROM pg_roles WHERE rolname = %%L AND rolcanlogin', %s::text))
"""
_OTHERS = """
SELECT count(*)
  FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
   AND usename = ANY (%s) AND application_name NOT LIKE 'citus%%'
"""
_OWNED = f"""
SELECT relname
  FROM pg_class
 WHERE relnamespace = {_SCHEMA} AND relkind = 'r' AND relname = ANY (%s)
   AND NOT pg_has_role(relowner, 'USAGE')
"""
_UNGUARDED = f"""
SELECT relname
  FROM pg_class
 WHERE relnamespace = {_SCHEMA} AND relname = ANY (%s) AND NOT (relrowsecurity AND relforcerowsecurity)
"""
_KEYS = f"""
SELECT i.relname, t.relname
  FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid
 WHERE t.relnamespace = {_SCHEMA} AND t.relname = ANY (%s) AND (x.indisunique OR x.indisexclusion)
   AND NOT EXISTS (SELECT 1 FROM pg_attribute a
                    WHERE a.attrelid = t.oid AND a.attname = 'user_id' AND a.attnum = ANY (x.indkey))
"""
_TRIGGERS = f"""
SELECT g.tgname, t.relname
  FROM pg_trigger g JOIN pg_class t ON t.oid = g.tgrelid
 WHERE t.relnamespace = {_SCHEMA} AND t.relname = ANY (%s) AND NOT g.tgisinternal
"""
_TYPES = f"""
SELECT t.relname
  FROM pg_attribute a JOIN pg_class t ON t.oid = a.attrelid
 WHERE t.relnamespace = {_SCHEMA} AND t.relname = ANY (%s) AND a.attname = 'user_id'
   AND (a.atttypid <> 'text'::regtype OR a.attcollation <> 'pg_catalog."C"'::regcollation)
"""


def whereabouts(connection: Connection) -> frozenset[str]:
    """Return the tables of this schema that are already on the cluster."""
    return frozenset(row[0] for row in connection.execute(_WHERE.encode()).fetchall())


def roles_with_rights(connection: Connection) -> list[str]:
    """Return the roles that may use the tables and are held by row level security, the owner among them."""
    return [row[0] for row in connection.execute(_ROLES.encode()).fetchall()]


def obstacles(connection: Connection, columns: Mapping[str, str]) -> tuple[Obstacle, ...]:
    """Return all obstacles, each with its fix."""
    cut = [table for table, column in columns.items() if column == "user_id"]
    found = [*_of_tables(connection, cut, list(columns))]
    if not found:
        found += [*_of_nodes(connection), *_of_roles(connection), *_of_rows(connection, cut)]
    return tuple(found)


def _of_tables(connection: Connection, cut: Sequence[str], every: Sequence[str]) -> Iterator[Obstacle]:
    there = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (BOOK,)).fetchall()[0][0]
    known = {name for name, _ in migrations()}
    done = {row[0] for row in connection.execute(f"SELECT name FROM {BOOK}".encode()).fetchall()} if there else set()
    if done != known:
        yield Obstacle("the tables are not those of this version", "run `holdfast store init` first")
        return
    for (table,) in connection.execute(_OWNED.encode(), (every,)).fetchall():
        yield Obstacle(f"{table} belongs to another role", "give the address of the role that owns the tables")
        return
    for (table,) in connection.execute(_UNGUARDED.encode(), (list(cut),)).fetchall():
        yield Obstacle(
            f"{table} has no row level security", f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY, and ENABLE"
        )
    for index, table in connection.execute(_KEYS.encode(), (list(cut),)).fetchall():
        yield Obstacle(f"{index} is unique without user_id", f"drop it: Holdfast did not make it ({table})")
    for trigger, table in connection.execute(_TRIGGERS.encode(), (every,)).fetchall():
        yield Obstacle(f"{table} has the trigger {trigger}", "drop it: Citus takes none, and Holdfast did not make it")
    for (table,) in connection.execute(_TYPES.encode(), (list(cut),)).fetchall():
        yield Obstacle(f"user_id of {table} is of another type or collation", 'make it text COLLATE "C"')


def _of_nodes(connection: Connection) -> Iterator[Obstacle]:
    version = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'citus'").fetchall()[0][0]
    if int(version.partition(".")[0].partition("-")[0]) < OLDEST_CITUS:
        yield Obstacle(f"Citus {version} is too old, {OLDEST_CITUS} is needed", "upgrade it on every node")
    for (node,) in connection.execute(_NODES.encode()).fetchall():
        yield Obstacle(f"the node {node} is not active", "SELECT citus_activate_node(host, port)")
    holding = "SELECT count(*) FROM pg_dist_node WHERE isactive AND shouldhaveshards AND noderole = 'primary'"
    if connection.execute(holding.encode()).fetchall() == [(0,)]:
        yield Obstacle("no node holds rows", "SELECT citus_add_node(host, port) for every worker")
        return
    versions, silent = connection.execute(_VERSIONS.encode()).fetchall()[0]
    if silent:
        yield Obstacle(f"{silent} nodes do not answer", "SELECT * FROM citus_check_cluster_node_health()")
    elif versions != 1:
        yield Obstacle("the nodes run different versions of PostgreSQL", "upgrade them to the same major version")


def _of_roles(connection: Connection) -> Iterator[Obstacle]:
    roles = roles_with_rights(connection)
    for role in roles:
        if connection.execute(_ABROAD.encode(), (role,)).fetchall() != [(0,)]:
            yield Obstacle(f"the role {role} cannot log in on every node", f"ALTER ROLE {role} LOGIN, on every node")
    (mine,) = connection.execute("SELECT current_user::text").fetchall()[0]
    others = connection.execute(_OTHERS.encode(), ([role for role in roles if role != mine],)).fetchall()[0][0]
    if others:
        what = "session of an application is" if others == 1 else "sessions of applications are"
        yield Obstacle(f"{others} {what} open", "stop servers and workers until this is done")


def _of_rows(connection: Connection, cut: Sequence[str]) -> Iterator[Obstacle]:
    """Find rows of a user without a name: they would share one node with the rows of all orgs."""
    for table in cut:
        if table in OF_ORGS:
            continue
        with connection.transaction():
            connection.execute("SET LOCAL citus.propagate_set_commands = 'local'")
            connection.execute("SET LOCAL holdfast.across = 'on'")
            asked = SQL("SELECT EXISTS (SELECT 1 FROM {} WHERE user_id = '')").format(Identifier(table))
            if connection.execute(asked).fetchall() == [(True,)]:
                yield Obstacle(f"{table} has rows of a user without a name", "erase them: Holdfast writes none")
