"""What the planner of a real cluster makes of every statement, and what its nodes let whom see."""

from __future__ import annotations

import re
from collections.abc import Iterator

import psycopg
import pytest

from holdfast import Memory
from holdfast.store import queries
from holdfast.store.postgres.driver import of_org, statements, together
from holdfast.store.queries import tables
from holdfast.testing.fakes import HashEmbedder
from tests.citus.conftest import APP, Cluster
from tests.postgres.test_plans import TOGETHER
from tests.postgres.test_row_security import (  # noqa: F401  a fixture
    FOREIGN,
    Call,
    a_day,
    calls,
    said,
    some_of_each,
    tried,
)
from tests.store.test_one_shard import FANS_OUT, ON_THE_SERVER

pytestmark = pytest.mark.citus

NAMES = sorted(queries.load("postgres").keys() - {"integrity", "still_said"})
OF_SQLITE = {"integrity", "still_said"}
SAMPLES = {"bigint": "1", "text": "'x'", "bytea": "'\\x00'", "double precision": "0.5", "jsonb": "'[]'", "integer": "1"}


@pytest.fixture
def connection(cluster: Cluster) -> Iterator[psycopg.Connection[tuple[str]]]:
    with psycopg.connect(cluster.at(APP), autocommit=True) as connection:
        connection.execute("BEGIN")
        connection.execute(of_org("acme"))
        yield connection
        connection.execute("ROLLBACK")


def plan(connection: psycopg.Connection[tuple[str]], name: str) -> str:
    """How the cluster would run a query, with values of the types that it takes."""
    sql = queries.load("postgres")[name]
    for number, parameter in enumerate(dict.fromkeys(re.findall(r"(?<!:):([a-z_0-9]+)", sql)), 1):
        sql = re.sub(rf"(?<!:):{parameter}\b", f"${number}", sql)
    connection.execute(f"PREPARE planned AS {sql}".encode())
    types = connection.execute("SELECT parameter_types::text[] FROM pg_prepared_statements WHERE name = 'planned'")
    named = dict.fromkeys(re.findall(r"(?<!:):([a-z_0-9]+)", queries.load("postgres")[name]))
    kinds = zip(named, types.fetchall()[0][0], strict=True)
    whose = "NULL" if name in FANS_OUT else "'x'"  # in a sum over users, nobody is named
    given = ", ".join(
        whose if parameter == "user_id" and kind == "text" else "'[]'" if parameter == "kinds" else SAMPLES[kind]
        for parameter, kind in kinds
    )
    found = connection.execute(f"EXPLAIN (COSTS off) EXECUTE planned{f'({given})' if given else ''}".encode())
    words = "\n".join(row[0] for row in found.fetchall())
    connection.execute("DEALLOCATE planned")
    return words


def test_every_statement_touches_one_shard_unless_the_table_says_otherwise(
    connection: psycopg.Connection[tuple[str]],
) -> None:
    counts = {
        name: [int(n) for n in re.findall(r"Task Count: (\d+)", plan(connection, name))]
        for name in NAMES
        if name not in ON_THE_SERVER
    }

    assert {name: found for name, found in counts.items() if name not in FANS_OUT and set(found) - {1}} == {}
    assert [name for name, found in counts.items() if name in FANS_OUT and set(found) <= {1}] == []
    assert sum(found == [1] for found in counts.values()) > 130


@pytest.mark.parametrize("name", TOGETHER)
def test_what_is_asked_many_times_at_once_is_one_task(connection: psycopg.Connection[tuple[str]], name: str) -> None:
    kinds = TOGETHER[name]
    names = statements()[name][1]
    given = {
        parameter: "x" if parameter in ("org", "user_id", "bot") else ["x", "y"] if kind is str else [1, 2]
        for parameter, kind in zip(names, kinds, strict=True)
    }

    found = connection.execute(b"EXPLAIN (COSTS off) " + (together(*statements()[name], kinds) or b""), given)

    assert re.findall(r"Task Count: (\d+)", "\n".join(row[0] for row in found.fetchall())) == ["1"]


def test_every_statement_under_a_foreign_org_finds_nothing_on_any_node(calls: list[Call], address: str) -> None:  # noqa: F811
    chosen = [call for call in some_of_each(calls, 1) if call[0] not in ON_THE_SERVER]
    useful = set()
    with psycopg.connect(address, autocommit=True) as connection:
        for name, args in chosen:
            rows, changed = tried(connection, name, args, FOREIGN[0])
            assert not said(rows), name
            assert not changed, name
            rows, changed = tried(connection, name, args, "acme")
            if said(rows) or changed:
                useful.add(name)

    assert len(useful) >= 30


def test_without_an_org_no_node_shows_a_row(address: str) -> None:
    with Memory(address, embedder=HashEmbedder()) as memory:
        a_day(memory)
        assert memory.doctor().ok
    with psycopg.connect(address, autocommit=True) as connection:
        for table in (*(t.name for t in tables() if "org" in t.columns), "facts", "messages", "summaries"):
            assert connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchall() == [(0,)], table
        connection.execute("BEGIN; SET LOCAL holdfast.org = 'acme'")
        assert connection.execute("SELECT count(*) FROM facts").fetchall()[0][0] > 0
