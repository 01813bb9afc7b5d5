"""One source says what the tables are; both databases agree on it, and the server guards them."""

from __future__ import annotations

import apsw
import psycopg
import pytest

from holdfast.errors import StoreError, StoreTooNew
from holdfast.store import open_store, queries
from holdfast.store.postgres.schema import APP, initialize
from holdfast.store.queries import tables
from tests.postgres.lending import Lender

TYPES = {"INTEGER": "bigint", "TEXT": "text", "REAL": "double precision", "BLOB": "bytea"}
ORGLESS = {"ledger_key", "erasure", "rate_limit", "call_time"}  # digests and times; they name nobody
IN_PUBLIC = "relnamespace = 'public'::regnamespace"


def ask(lender: Lender, sql: str, role: str = "postgres") -> list[tuple[object, ...]]:
    with psycopg.connect(lender.at("mine", role), autocommit=True) as connection:
        cursor = connection.execute(sql.encode())
        return cursor.fetchall() if cursor.description else []


@pytest.fixture
def lender(postgres: Lender, address: str) -> Lender:
    return postgres


@pytest.fixture(scope="module")
def sqlite() -> apsw.Connection:
    db = apsw.Connection(":memory:")
    for _, sql in queries.migrations("sqlite"):
        db.execute(sql)
    return db


def test_both_have_the_same_tables_with_the_same_columns(lender: Lender, sqlite: apsw.Connection) -> None:
    """In the same order, of the kindred type, and as willing to be empty."""
    there = ask(
        lender,
        "SELECT table_name, column_name, data_type, is_nullable = 'NO' FROM information_schema.columns"
        " WHERE table_schema = 'public' AND table_name IN (SELECT relname FROM pg_class WHERE relkind = 'r')"
        ' ORDER BY table_name COLLATE "C", ordinal_position',
    )
    here = [
        (table.name, name, TYPES[kind], bool(filled or place))
        for table in tables()
        for name, kind, filled, place in sqlite.execute(
            'SELECT name, type, "notnull", pk FROM pragma_table_info(?) ORDER BY cid', (table.name,)
        )
    ]

    assert [row for row in there if row[0] != "holdfast_migration"] == here


def test_both_have_the_same_keys_and_indexes(lender: Lender, sqlite: apsw.Connection) -> None:
    there = ask(
        lender,
        "SELECT t.relname, CASE WHEN x.indisprimary THEN '' ELSE i.relname END, x.indisunique,"
        "       (SELECT array_agg(pg_get_indexdef(x.indexrelid, n, false) ORDER BY n)"
        "          FROM generate_series(1, x.indnkeyatts) n)"
        "  FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid"
        f" WHERE t.{IN_PUBLIC} AND t.relname <> 'holdfast_migration'",
    )
    here = [
        (table.name, "" if origin == "pk" else name, bool(unique), columns(sqlite, name))
        for table in tables()
        for name, unique, origin in sqlite.execute(
            'SELECT name, "unique", origin FROM pragma_index_list(?)', (table.name,)
        )
    ]
    keys = [(table.name, "", True, list(table.key)) for table in tables()]
    others = [row for row in here if row[1]]

    assert sorted(map(str, there)) == sorted(map(str, keys + others))


def columns(db: apsw.Connection, index: str) -> list[str]:
    return [row[0] for row in db.execute("SELECT name FROM pragma_index_info(?) ORDER BY seqno", (index,))]


def test_both_have_the_same_conditions(lender: Lender, sqlite: apsw.Connection) -> None:
    there = ask(
        lender,
        f"SELECT count(*) FROM pg_constraint c JOIN pg_class t ON t.oid = conrelid WHERE contype = 'c' AND t.{IN_PUBLIC}",
    )
    texts = [str(row[0]) for row in sqlite.execute("SELECT sql FROM sqlite_schema WHERE type = 'table'")]

    assert there == [(sum(text.count("CHECK (") for text in texts),)]


def test_text_is_ordered_by_code_points(lender: Lender) -> None:
    """So that lists, and with them the cached beginnings of prompts, are the same everywhere."""
    found = ask(
        lender,
        "SELECT c.relname, a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid"
        f" WHERE c.{IN_PUBLIC} AND relkind = 'r' AND attnum > 0 AND attcollation <> 0"
        " AND attcollation <> '\"C\"'::regcollation",
    )

    assert found == []


def test_every_table_of_an_org_is_guarded_even_from_its_owner(lender: Lender) -> None:
    found = ask(
        lender,
        f"SELECT relname FROM pg_class WHERE relkind = 'r' AND {IN_PUBLIC} AND relrowsecurity AND relforcerowsecurity",
    )

    assert {row[0] for row in found} == {table.name for table in tables() if "org" in table.columns}
    assert {table.name for table in tables() if "org" not in table.columns} == ORGLESS


def test_the_applications_role_owns_nothing_and_changes_no_schema(lender: Lender) -> None:
    owned = ask(lender, f"SELECT count(*) FROM pg_class WHERE relowner = '{APP}'::regrole")
    role = ask(
        lender, f"SELECT rolsuper, rolbypassrls, rolcreatedb, rolcreaterole FROM pg_roles WHERE rolname = '{APP}'"
    )

    assert owned == [(0,)]
    assert role == [(False, False, False, False)]
    for sql in (
        "CREATE TABLE mine (a int)",
        "DROP TABLE fact",
        "ALTER TABLE fact DISABLE ROW LEVEL SECURITY",
        "DROP POLICY own_org ON fact",
        "TRUNCATE fact",
        "DELETE FROM erasure",
        "UPDATE ledger_key SET key = ''",
        "INSERT INTO holdfast_migration VALUES ('9999', 0)",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            ask(lender, sql, APP)


def test_init_again_gives_what_is_missing_and_keeps_the_password(lender: Lender) -> None:
    ask(lender, f"REVOKE SELECT ON fact FROM {APP}")
    again = initialize(lender.at("mine", "postgres"))

    assert not again.made
    assert ask(lender, "SELECT count(*) FROM fact", APP) == [(0,)]


def test_init_makes_a_role_and_tells_its_password_once(lender: Lender) -> None:
    made = initialize(lender.at("mine", "postgres"), "another role")
    try:
        open_store(made.address).close()

        assert made.made
        assert "another%20role:" in made.address
        assert initialize(lender.at("mine", "postgres"), "another role").made is False
    finally:
        ask(lender, 'DROP OWNED BY "another role"; DROP ROLE "another role"')


def test_init_refuses_a_role_that_no_policy_holds(lender: Lender) -> None:
    with pytest.raises(StoreError, match="passes row level security"):
        initialize(lender.at("mine", "postgres"), "postgres")


def test_a_database_without_tables_names_the_command_that_makes_them(postgres: Lender) -> None:
    with pytest.raises(StoreError, match="store init"):
        open_store(postgres.server.at("postgres", APP))


def test_a_database_of_a_newer_version_is_left_alone(lender: Lender) -> None:
    ask(lender, "INSERT INTO holdfast_migration VALUES ('9999_later.sql', 0)")
    try:
        with pytest.raises(StoreTooNew, match="9999_later"):
            open_store(lender.at("mine"))
    finally:
        ask(lender, "DELETE FROM holdfast_migration WHERE name = '9999_later.sql'")
