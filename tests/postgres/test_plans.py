"""Each statement about a user reads that user's range of an index, row level security and all."""

from __future__ import annotations

import re
from collections.abc import Iterator

import psycopg
import pytest

from holdfast.store import queries
from holdfast.store.postgres.driver import of_org, statements, together
from holdfast.store.postgres.schema import APP
from tests.postgres.lending import Lender
from tests.store.test_sql_rules import OF_A_USER

# What is asked about many things of a user at once, with the types of its parameters.
TOGETHER = {
    "children_of_messages": (str, str, str, str, str, str),
    "doc_embedded": (str, str, str, str, str, int),
    "evidence_of": (str, str, str, str, str),
    "fact_text": (int, str, str, str, str, str),
    "message_texts": (str, str, str, str, str, str),
    "past_fact": (str, str, str, str, str),
    "quotes_of": (str, str, str, str, str, str, str, int),
    "subject_of_fact": (str, str, str, str),
    "summary_text": (int, str, str, str, str, str, str),
    "turns_at": (str, str, str, str, str, str),
    "uses": (str, str, str, str),
    "vector_of": (str, str, str, str, str, str, int),
}
NAMES = sorted({name for _, name, _ in OF_A_USER} & queries.load("postgres").keys())


# Of operators and workers: on empty tables, about which nothing is known, they seem as good as the right ones.
OTHERS = "job_due, job_lane, job_lease, job_id, usage_day"


@pytest.fixture
def connection(address: str, postgres: Lender) -> Iterator[psycopg.Connection[tuple[str]]]:
    """A session of the application's role; whole tables are read only where no index will do."""
    with psycopg.connect(postgres.at("mine", "postgres"), autocommit=True) as connection:
        connection.execute("SET enable_seqscan = off")
        connection.execute(f"BEGIN; DROP INDEX {OTHERS}; SET LOCAL ROLE {APP}".encode())
        connection.execute(of_org("acme"))
        yield connection
        connection.execute("ROLLBACK")


def test_no_statement_about_a_user_reads_a_whole_table(connection: psycopg.Connection[tuple[str]]) -> None:
    whole = {}
    for name in NAMES:
        sql = queries.load("postgres")[name]
        names = list(dict.fromkeys(re.findall(r"(?<!:):([a-z_0-9]+)", sql)))
        for number, parameter in enumerate(names, 1):
            sql = re.sub(rf"(?<!:):{parameter}\b", f"${number}", sql)
        plan = planned(connection, sql)
        if not sql.startswith("INSERT") and (
            "Seq Scan" in plan or not re.search(r"Index Cond: .*org = .*user_id = ", plan)
        ):
            whole[name] = plan

    assert whole == {}
    assert len(NAMES) > 100


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("newest_summaries", "summary_newest"),
        ("newest_conversations", "conversation_newest"),
        ("conversations_apart", "conversation_apart"),
    ],
)
def test_what_a_context_begins_with_is_read_in_order_of_an_index(
    name: str, index: str, connection: psycopg.Connection[tuple[str]]
) -> None:
    sql = queries.load("postgres")[name]
    for number, parameter in enumerate(dict.fromkeys(re.findall(r"(?<!:):([a-z_0-9]+)", sql)), 1):
        sql = re.sub(rf"(?<!:):{parameter}\b", f"${number}", sql)
    connection.execute("SET LOCAL enable_sort = off; SET LOCAL enable_bitmapscan = off")

    plan = planned(connection, sql)

    assert f"{index} on" in plan, plan
    assert not re.search(r"(?<!Incremental )Sort  ", plan), plan


@pytest.mark.parametrize("name", TOGETHER)
def test_what_is_asked_many_times_at_once_reads_an_index_for_each(
    name: str, connection: psycopg.Connection[tuple[str]]
) -> None:
    sql = (together(*statements()[name], TOGETHER[name]) or b"").decode()
    for number, parameter in enumerate(dict.fromkeys(re.findall(r"%\((\w+)\)s", sql)), 1):
        sql = sql.replace(f"%({parameter})s", f"${number}")

    plan = planned(connection, sql)

    assert plan.startswith("Nested Loop"), plan
    assert "Seq Scan" not in plan
    assert re.search(r"Index Cond: .*org = .*user_id = ", plan), plan


def planned(connection: psycopg.Connection[tuple[str]], sql: str) -> str:
    return "\n".join(row[0] for row in connection.execute(f"EXPLAIN (GENERIC_PLAN) {sql}".encode()).fetchall())
