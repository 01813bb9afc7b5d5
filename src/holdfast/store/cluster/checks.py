"""Checks before a database is distributed over a cluster, each with its fix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from psycopg.sql import SQL, Identifier

from ..outcomes import Obstacle
from ..postgres.connections import Connection
from ..postgres.schema import BOOK, migrations

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
    """The tables of this schema that stand on the cluster already."""
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
    """A user without a name would stand on one node together with the rows of all orgs."""
    for table in cut:
        if table in OF_ORGS:
            continue
        with connection.transaction():
            connection.execute("SET LOCAL citus.propagate_set_commands = 'local'")
            connection.execute("SET LOCAL holdfast.across = 'on'")
            asked = SQL("SELECT EXISTS (SELECT 1 FROM {} WHERE user_id = '')").format(Identifier(table))
            if connection.execute(asked).fetchall() == [(True,)]:
                yield Obstacle(f"{table} has rows of a user without a name", "erase them: Holdfast writes none")
