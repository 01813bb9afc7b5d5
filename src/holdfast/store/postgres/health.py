"""Examine a PostgreSQL server and its tables: broken promises, and notices for the operator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...reports import Finding
from ..port import DatabaseHealth, Driver
from ..queries import tables

DEAD_ROWS = 10_000  # fewer in a table are no lag
OLD_XIDS = 1_000_000_000  # of some two billion until the server stops
CHECKED = (
    "row-security",
    "policies",
    "public-rights",
    "collation",
    "index-valid",
    "table-missing",
    "login",
    "schema-rights",
    "table-rights",
    "server-durability",
    "server-checksums",
    "server-log",
    "standby",
    "connections",
    "autovacuum",
    "vacuum-lag",
    "old-transactions",
    "replication-slot",
)
_INIT = "run `holdfast store init` with the address of the role that owns the tables"


def health(driver: Driver) -> DatabaseHealth:
    """Look at all of it in one snapshot."""
    (server,) = driver.run("health_server", {})
    settings = {name: value for name, value in driver.run("health_settings", {})}
    there = driver.run("health_tables", {})
    version, role, _, _, standby, _, _, collation, vector, _ = server
    forced = sum(1 for row in there if row[1])
    about = {
        "version": f"PostgreSQL {version}",
        "role": role,
        "row level security": f"forced on {forced} tables",
        "collation": f"C for every text (the database's own: {collation})",
        "pgvector": f"{vector}, not needed" if vector else "none, and none needed",
        "state": "standby" if standby else "primary",
    }
    notices = (*_login(server, there), *_settings(settings, server[-1]), *_upkeep(driver, server))
    return DatabaseHealth(about, tuple(_tables(there)), notices, CHECKED)


def _tables(there: list[tuple[object, ...]]) -> Iterator[Finding]:
    """Find tables whose guards, collations or indexes are not as created."""
    found = {str(row[0]): row for row in there}
    for table in tables():
        if table.name not in found:
            yield Finding("table-missing", table.name, "restore a backup: the table was dropped")
            continue
        _, forced, ours, others, _, public, collated, invalid, *_ = found[table.name]
        if "org" in table.columns and not forced:
            sql = f"ALTER TABLE {table.name} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY"
            yield Finding("row-security", table.name, sql)
        if "org" in table.columns and (ours != 2 or others):
            hint = (
                "a backup restored into a new database has them"
                if not others
                else "drop the policies that are not ours"
            )
            yield Finding("policies", table.name, hint)
        if public:
            yield Finding("public-rights", table.name, f"REVOKE ALL ON {table.name} FROM PUBLIC")
        if collated:
            hint = 'ALTER TABLE … ALTER COLUMN … TYPE text COLLATE "C": lists come in another order than they should'
            yield Finding("collation", f"{table.name}: {collated}", hint)
        if invalid:
            yield Finding("index-valid", f"{table.name}: {invalid}", f"REINDEX TABLE {table.name}")


def _login(server: tuple[object, ...], there: list[tuple[object, ...]]) -> Iterator[Finding]:
    _, role, everything, passes, *_ = server
    if everything or passes:
        why = "a superuser" if everything else "BYPASSRLS"
        hint = f"row level security does not hold it: let applications log in as the role of `store init`; {_INIT}"
        yield Finding("login", f"{role}: {why}", hint)
    elif any(row[4] for row in there):
        yield Finding("login", f"{role}: owns tables", "let applications log in as the role that `store init` made")
    if everything or any(row[4] for row in there):
        return
    if server[5]:
        yield Finding("schema-rights", f"{role} may create tables", _INIT)
    for name in (str(row[0]) for row in there if row[8]):
        yield Finding("table-rights", f"{role} may empty {name}", f"REVOKE TRUNCATE ON {name} FROM {role}")
    for table in ("erasure", "ledger_key"):
        if any(row[0] == table and row[9] for row in there):
            hint = f"REVOKE UPDATE, DELETE ON {table} FROM {role}: the ledger of erasures only grows"
            yield Finding("table-rights", f"{role} may change {table}", hint)


def _settings(settings: Mapping[str, str], used: int) -> Iterator[Finding]:
    for name in ("fsync", "full_page_writes", "synchronous_commit"):
        if settings.get(name) == "off":
            yield Finding("server-durability", f"{name} = off", "turn it on: a crash may lose what was acknowledged")
    if settings.get("data_checksums") == "off":
        hint = "stop the server and run pg_checksums --enable: a damaged disk would go unnoticed"
        yield Finding("server-checksums", "data_checksums = off", hint)
    statements = settings.get("log_statement") in ("mod", "all")
    slow = any(int(settings.get(f"log_min_duration_{name}", -1)) >= 0 for name in ("statement", "sample"))
    values = settings.get("log_parameter_max_length", "-1") != "0"
    on_error = settings.get("log_parameter_max_length_on_error", "0") != "0"
    if ((statements or slow) and values) or on_error:
        hint = "log_parameter_max_length = 0, also on_error: erasures do not reach the server's log files"
        yield Finding("server-log", "the server logs what users say", hint)
    most = int(settings.get("max_connections", 0))
    if most and used > 0.8 * most:
        hint = "raise max_connections, use a pooler, or lower Config.store_connections"
        yield Finding("connections", f"{used} of {most}", hint)
    if settings.get("autovacuum") == "off":
        yield Finding("autovacuum", "autovacuum = off", "turn it on, or VACUUM every day: tables only grow")


def _upkeep(driver: Driver, server: tuple[object, ...]) -> Iterator[Finding]:
    if server[4]:
        yield Finding("standby", "the server takes no writes", "connect to the primary")
    for name, dead, live in driver.run("health_vacuum", {"least": DEAD_ROWS}):
        hint = f"VACUUM {name}; autovacuum does not keep up, or a long transaction or a slot holds the rows"
        yield Finding("vacuum-lag", f"{name}: {dead:,} dead rows, {live:,} live ones", hint)
    age = int(str(server[6]))
    if age > OLD_XIDS:
        hint = "VACUUM (FREEZE) as its owner: at two billion the server stops"
        yield Finding("old-transactions", f"the oldest is {age:,} back", hint)
    for (slot,) in driver.run("health_slots", {}):
        hint = f"pg_drop_replication_slot('{slot}'), if its reader is gone: the log and deleted rows are kept for it"
        yield Finding("replication-slot", f"{slot} has no reader", hint)
