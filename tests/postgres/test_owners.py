"""Users' own database roles read the rows of their user and no others, whatever they set or try."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from holdfast import Memory
from holdfast.errors import StoreBusy, StoreError
from holdfast.store import grant_owner, owner_policies
from holdfast.store.postgres import schema
from tests.postgres.lending import Lender

TABLES = ("message", "fact", "evidence", "conversation", "summary", "prompt", "consent")


@pytest.fixture
def roles(address: str, postgres: Lender) -> Iterator[dict[str, str]]:
    """Memories of three users, and an address of each one's own role."""
    with Memory(address, embedder=None) as memory:
        for org, user, place in (("default", "ana", "Lisbon"), ("default", "bo", "Porto"), ("acme", "ana", "Braga")):
            memory.conversation("c", user=user, org=org).record(f"I live in {place}.", "Noted.")
        memory.digest()
    admin, names = postgres.at("mine", "postgres"), ("own_ana", "own_bo", "own_acme")
    with psycopg.connect(admin, autocommit=True) as connection:
        for name in names:
            connection.execute(f"CREATE ROLE {name} LOGIN".encode())
    owner_policies(admin, apply=True)
    owner_policies(admin, apply=True)  # as after an upgrade
    grant_owner(admin, "own_ana", "ana")
    grant_owner(admin, "own_bo", "bo")
    grant_owner(admin, "own_acme", "ana", org="acme")
    yield {name: postgres.at("mine", name) for name in names}
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute("DROP SCHEMA holdfast_owners CASCADE")
        found = "SELECT polname, polrelid::regclass::text FROM pg_policy WHERE polname IN ('own_rows', 'only_own_rows')"
        for policy, table in connection.execute(found.encode()).fetchall():
            connection.execute(f"DROP POLICY {policy} ON {table}".encode())
        for name in (*names, "holdfast_owner"):
            connection.execute(f"DROP OWNED BY {name}".encode())
            connection.execute(f"DROP ROLE {name}".encode())


def read(address: str, sql: str, *before: str) -> list[tuple[object, ...]]:
    with psycopg.connect(address) as connection:
        for statement in before:
            connection.execute(statement.encode())
        return connection.execute(sql.encode()).fetchall()


def test_a_role_reads_its_users_rows_alone_in_tables_and_views(roles: dict[str, str]) -> None:
    said = "SELECT content FROM messages WHERE role = 'user'"

    assert read(roles["own_ana"], said) == [("I live in Lisbon.",)]
    assert read(roles["own_bo"], said) == [("I live in Porto.",)]
    assert read(roles["own_acme"], said) == [("I live in Braga.",)]
    assert read(roles["own_bo"], "SELECT value, quote FROM facts") == [("Porto", "I live in Porto")]
    for table in TABLES:
        found = read(roles["own_ana"], f"SELECT DISTINCT org, user_id FROM {table}")
        assert found in ([], [("default", "ana")])


@pytest.mark.parametrize(
    "setting", ["SET holdfast.org = 'acme'", "SET holdfast.across = 'on'", "SET holdfast.org = 'default'"]
)
def test_no_setting_of_the_session_shows_more(roles: dict[str, str], setting: str) -> None:
    found = read(roles["own_ana"], "SELECT DISTINCT org, user_id FROM message", setting)

    assert found == [("default", "ana")]


@pytest.mark.parametrize(
    "attempt",
    [
        "DELETE FROM message",
        "UPDATE message SET user_id = 'ana'",
        "INSERT INTO holdfast_owners.owner VALUES ('own_ana', 'default', 'bo')",
        "SELECT * FROM api_key",
        "SELECT * FROM provider_key",
        "SELECT * FROM vector",
        "SELECT * FROM segment",
        "ALTER TABLE message DISABLE ROW LEVEL SECURITY",
        "SET ROLE holdfast_app",
    ],
)
def test_a_role_can_neither_write_nor_take_more_rights(roles: dict[str, str], attempt: str) -> None:
    with pytest.raises(psycopg.Error):
        read(roles["own_ana"], attempt)


def test_the_list_of_owners_shows_a_role_its_own_line(roles: dict[str, str]) -> None:
    assert read(roles["own_bo"], "SELECT * FROM holdfast_owners.owner") == [("own_bo", "default", "bo")]


def test_what_is_taken_away_is_read_no_more(roles: dict[str, str], postgres: Lender) -> None:
    grant_owner(postgres.at("mine", "postgres"), "own_ana", "ana", revoke=True)

    with pytest.raises(psycopg.Error):
        read(roles["own_ana"], "SELECT content FROM messages")


def test_applications_and_the_doctor_see_what_they_saw(roles: dict[str, str], address: str) -> None:
    with Memory(address, embedder=None) as memory:
        assert [fact.value for fact in memory.user("bo").facts()] == ["Porto"]
        memory.conversation("c", user="bo").record("I moved to Faro.", "Noted.")
        assert [fact.value for fact in memory.user("bo").facts()] == ["Faro"]
        assert memory.doctor().findings == ()
    assert read(roles["own_bo"], "SELECT value FROM facts") == [("Faro",)]


def test_policies_let_others_pass_while_a_reader_is_in_their_way(
    roles: dict[str, str], address: str, postgres: Lender, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits for a table holds up all who come later, so it waits briefly and tries again."""
    monkeypatch.setattr(schema, "_LOCK_MS", 50)
    monkeypatch.setattr(schema, "_PAUSES_S", ())
    admin = postgres.at("mine", "postgres")
    with psycopg.connect(admin) as reader:
        reader.execute("SELECT 1 FROM message")
        with pytest.raises(StoreBusy, match="not changed"):
            owner_policies(admin, apply=True)
        with Memory(address, embedder=None) as memory:
            memory.conversation("c", user="ana").record("I have a dog.", "Noted.")
        monkeypatch.setattr(schema, "_PAUSES_S", (1.0,))
        monkeypatch.setattr(schema.time, "sleep", lambda _: reader.rollback())
        owner_policies(admin, apply=True)
    assert read(roles["own_bo"], "SELECT DISTINCT user_id FROM message") == [("bo",)]


def test_roles_that_row_level_security_does_not_hold_are_refused(roles: dict[str, str], postgres: Lender) -> None:
    admin = postgres.at("mine", "postgres")
    for role in ("postgres", "holdfast_app", "nobody_here"):
        with pytest.raises(StoreError):
            grant_owner(admin, role, "ana")
