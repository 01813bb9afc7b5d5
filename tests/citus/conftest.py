"""
A schema of the tests' own on a real Citus cluster, spread over its nodes.

``HOLDFAST_TEST_CITUS`` is the address of a superuser of one of its databases, on the coordinator; the nodes trust one
another.  Without it these tests are left out, and the last line of the output says so.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg
import pytest

from holdfast.store import distribute, initialize
from holdfast.store.queries import tables

VARIABLE = "HOLDFAST_TEST_CITUS"
OWNER, APP = f"holdfast_test_owner_{os.getpid()}", f"holdfast_test_app_{os.getpid()}"
SHARDS = 4


@dataclass(frozen=True)
class Cluster:
    """One schema on a cluster."""

    admin: str
    schema: str

    def at(self, role: str) -> str:
        """Its address for a role."""
        parts = urlsplit(self.admin)
        where = parts.netloc.rpartition("@")[2]
        return urlunsplit(
            parts._replace(netloc=f"{role}@{where}", query=f"options={quote(f'-csearch_path={self.schema}')}")
        )

    def run(self, sql: str) -> list[tuple[object, ...]]:
        """Run something as the superuser, in this schema."""
        with psycopg.connect(self.admin, autocommit=True) as connection:
            connection.execute(f"SET client_min_messages = error; SET search_path = {self.schema}".encode())
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    def make(self) -> None:
        """Make the schema, with empty tables that stand on the coordinator alone, owned by no superuser."""
        for role in (OWNER, APP):
            if not self.run(f"SELECT 1 FROM pg_roles WHERE rolname = '{role}'"):
                self.run(f"CREATE ROLE {role} LOGIN {'CREATEROLE' if role == OWNER else ''}")
        self.drop()
        self.run(f"GRANT {APP} TO {OWNER} WITH ADMIN OPTION")
        self.run(f"CREATE SCHEMA {self.schema} AUTHORIZATION {OWNER}")
        initialize(self.at(OWNER), APP)

    def drop(self) -> None:
        """Nothing of it is left."""
        self.run(f"DROP SCHEMA IF EXISTS {self.schema} CASCADE")

    def drop_roles(self) -> None:
        """Nor of whom it belonged to."""
        for role in (APP, OWNER):
            self.run(f"DROP OWNED BY {role}; DROP ROLE {role}")

    def empty(self) -> None:
        """Take every row away; whoever is still connected is thrown out."""
        self.run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{APP}'")
        for table in tables():
            self.run(f"DELETE FROM {table.name}")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A spread schema, for all tests of this process."""
    found = Cluster(os.environ[VARIABLE], f"holdfast_test_{os.getpid()}")
    found.make()
    try:
        report = distribute(found.at(OWNER), shards=SHARDS)
        assert report.done, report.obstacles
        yield found
    finally:
        found.drop()
        found.drop_roles()


@pytest.fixture
def apart() -> Iterator[Cluster]:
    """A schema that nobody has spread yet."""
    found = Cluster(os.environ[VARIABLE], f"holdfast_apart_{os.getpid()}")
    found.make()
    yield found
    found.drop()


@pytest.fixture
def address(cluster: Cluster) -> Iterator[str]:
    """An empty memory on the cluster, as an application sees it."""
    yield cluster.at(APP)
    cluster.empty()
