"""The doctor looks at the server, too: each fault that an operator could make is found, with what mends it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from types import SimpleNamespace

import psycopg
import pytest

from holdfast import Memory
from holdfast.reports import Report
from holdfast.store import queries
from holdfast.store.postgres import backend as postgres_health
from holdfast.testing.fakes import HashEmbedder
from tests.cli.conftest import Holdfast, holdfast  # noqa: F401  a fixture
from tests.postgres.lending import TEMPLATE, Lender

pytestmark = pytest.mark.sqlite("they name their databases themselves")
_numbers = count()
OF_THE_TEST_SERVER = {"server-durability", "autovacuum"}  # it is in haste

FAULTS = {
    "row-security": "ALTER TABLE fact NO FORCE ROW LEVEL SECURITY",
    "policies": "DROP POLICY own_org ON message",
    "public-rights": "GRANT SELECT ON evidence TO PUBLIC",
    "collation": 'DROP VIEW messages; ALTER TABLE message ALTER COLUMN name TYPE text COLLATE "default"',
    "index-valid": "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'fact_live'::regclass",
    "table-missing": "DROP TABLE blocked_topic",
}
KNOWN = {
    "schema-rights": "GRANT CREATE ON SCHEMA public TO holdfast_app",
    "table-rights": "GRANT TRUNCATE ON fact TO holdfast_app; GRANT DELETE ON erasure TO holdfast_app",
    "server-log": "ALTER ROLE holdfast_app SET log_parameter_max_length_on_error = 100",
    "replication-slot": "SELECT pg_create_physical_replication_slot('nobody_reads')",
}


@pytest.fixture
def spoilt(postgres: Lender) -> Iterator[SimpleNamespace]:
    """A database of the test's own that may be damaged: its address for the application, and for the owner."""
    name = f"spoilt_{os.getpid()}_{next(_numbers)}"
    postgres.server.create(name, TEMPLATE)
    yield SimpleNamespace(app=postgres.server.at(name, "holdfast_app"), admin=postgres.server.at(name))
    postgres.server.drop(name)


@contextmanager
def admin(address: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(address, autocommit=True) as connection:
        yield connection


def looked_at(address: str) -> Report:
    with Memory(address, embedder=None) as memory:
        return memory.doctor()


def test_a_sound_database_says_what_it_is(address: str) -> None:
    report = looked_at(address)

    assert report.ok
    assert report.database["version"].startswith("PostgreSQL 1")
    assert report.database["role"] == "holdfast_app"
    assert report.database["schema"] == queries.schema_version()
    assert "none needed" in report.database["pgvector"]
    assert report.database["row level security"].startswith("forced on ")
    assert {notice.rule for notice in report.notices} <= OF_THE_TEST_SERVER
    assert set(postgres_health.CHECKED) < set(report.checked)


@pytest.mark.parametrize("rule", FAULTS)
def test_what_breaks_a_promise_is_found(rule: str, spoilt: SimpleNamespace) -> None:
    with admin(spoilt.admin) as connection:
        connection.execute(FAULTS[rule])
    found = postgres_health_of(spoilt.app)

    assert [finding.rule for finding in found] == [rule]
    assert found[0].where
    assert found[0].hint


def postgres_health_of(address: str) -> tuple[object, ...]:
    """What is found of the database itself: some faults keep the rules from being looked at."""
    with Memory(address, embedder=None) as memory:
        return memory._engine.store.backend.health().findings


@pytest.mark.parametrize("rule", KNOWN)
def test_what_an_operator_should_know_is_a_notice(rule: str, spoilt: SimpleNamespace) -> None:
    with admin(spoilt.admin) as connection:
        connection.execute(KNOWN[rule])
        try:
            report = looked_at(spoilt.app)
        finally:
            connection.execute("ALTER ROLE holdfast_app RESET log_parameter_max_length_on_error")
            connection.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")

    assert report.ok
    assert {notice.rule for notice in report.notices} - OF_THE_TEST_SERVER == {rule}
    assert all(notice.hint for notice in report.notices)


def test_a_login_that_no_policy_holds_is_told_of(spoilt: SimpleNamespace) -> None:
    notices = {notice.rule: notice for notice in looked_at(spoilt.admin).notices}

    assert "a superuser" in notices["login"].where
    assert "store init" in notices["login"].hint


def test_dead_rows_that_nobody_cleans_up_are_told_of(
    address: str, postgres: Lender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_health, "DEAD_ROWS", 10)
    with Memory(address, embedder=HashEmbedder()) as memory:
        chat = memory.conversation("c", user="ana")
        chat.append([{"role": "user", "content": f"I have {number} cats."} for number in range(40)])
        memory.user("ana").erase()
    with admin(postgres.at("mine", "postgres")) as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")
        connection.execute("ANALYZE")
    lag = [notice.where for notice in looked_at(address).notices if notice.rule == "vacuum-lag"]

    assert any(where.startswith("message: ") for where in lag)


def test_dead_jobs_are_told_of(address: str) -> None:
    with Memory(address, embedder=None) as memory:
        memory.conversation("c", user="ana").append([{"role": "user", "content": "I live in Rome."}] * 21)
        store = memory._engine.store
        job = store.claim(now_ms=2**45, worker="w", lease_ms=1)
        assert job is not None
        store.fail(job, reason="tried", run_at_ms=0, dead=True)
        notices = [notice for notice in memory.doctor().notices if notice.rule == "dead-jobs"]

    assert [notice.where for notice in notices] == [f"1 {job.kind}"]
    assert "retry or cancel" in notices[0].hint


def test_the_command_shows_it_and_its_exit_code_tells(holdfast: Holdfast, spoilt: SimpleNamespace) -> None:  # noqa: F811
    good = holdfast("doctor", "--store", spoilt.app)
    assert good.code == 0
    assert "PostgreSQL 1" in good.out
    assert "notice: autovacuum" in good.out
    with admin(spoilt.admin) as connection:
        connection.execute(FAULTS["row-security"])
    bad = holdfast("doctor", "--store", spoilt.app, "--json")

    assert bad.code == 1
    assert bad.data["findings"][0]["rule"] == "row-security"
    assert bad.data["findings"][0]["hint"].startswith("ALTER TABLE fact ENABLE")
    assert bad.data["database"]["role"] == "holdfast_app"
    assert {notice["rule"] for notice in bad.data["notices"]} == OF_THE_TEST_SERVER
