"""A memory moves from one database to another, whole or not at all."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from holdfast import Memory, store
from holdfast.errors import ConfigError, Conflict, StoreCorrupt, StoreError
from holdfast.store import maintenance
from holdfast.testing.fakes import HashEmbedder
from tests.postgres.lending import Lender

ORGS = ("acme", "Zürich ; --", "日本")


@pytest.fixture
def other(postgres: Lender, address: str) -> str:
    """A second database; given back with the first."""
    return postgres.at("other")


@pytest.fixture
def filled(tmp_path: Path) -> str:
    """A file with something in most tables, of three orgs."""
    path = str(tmp_path / "chat.db")
    with Memory(path, embedder=HashEmbedder()) as memory:
        for org in ORGS:
            chat = memory.conversation("c", user="ana", org=org)
            for number in range(14):
                chat.record(
                    f"I live in Lisbon and I have {number} cats \U0001f408.", "Noted.", idempotency_key=str(number)
                )
            chat.forget(3)
            memory.user("bo", org=org).pause()
            memory.digest()
        memory.admin.keys.create("app")
    return path


def told(location: str) -> dict[str, object]:
    """What a memory says of everybody."""
    with Memory(location, embedder=HashEmbedder()) as memory:
        assert memory.doctor().findings == ()
        found: dict[str, object] = {}
        for org in ORGS:
            user, chat = memory.user("ana", org=org), memory.conversation("c", user="ana", org=org)
            found[org] = (
                user.facts(),
                user.search("cats in Lisbon"),
                chat.summaries(),
                [message.content for message in chat.load()],
                memory.user("bo", org=org).status().state,
            )
        found["keys"] = memory.admin.keys.list()
        return found


def test_there_and_back_again_everything_is_the_same(filled: str, address: str, other: str, tmp_path: Path) -> None:
    """File to server, server to server, server to file: the same rows, the same answers."""
    back = str(tmp_path / "back.db")
    seen: list[tuple[int, int]] = []
    reports = [
        store.copy(filled, address, lambda done, total: seen.append((done, total))),
        store.copy(address, other),
        store.copy(other, back),
    ]

    assert reports[0] == reports[1] == reports[2]
    assert {name for name, rows in reports[0].rows.items() if rows} >= {
        "message",
        "fact",
        "doc",
        "vector",
        "api_key",
        "erasure",
    }
    assert seen[-1] == (2 * sum(reports[0].rows.values()),) * 2
    assert told(filled) == told(address) == told(back)


def test_a_database_that_holds_something_is_left_alone(filled: str, address: str, tmp_path: Path) -> None:
    with Memory(address) as memory:
        memory.conversation("c", user="someone").record("I live in Rome.")
        with pytest.raises(Conflict, match="holds a memory already"):
            store.copy(filled, address)
        assert [user for _, user, _ in memory.admin.users()] == ["someone"]
    with pytest.raises(Conflict, match="there is a file"):
        store.copy(address, filled)


@pytest.mark.parametrize("to_server", [True, False])
def test_what_does_not_arrive_as_it_was_sent_is_not_kept(
    filled: str, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to_server: bool
) -> None:
    """A row that changes on its way leaves the target as it was."""
    honest = maintenance.line_of
    seen = iter(range(10**9))
    monkeypatch.setattr(maintenance, "line_of", lambda row: honest(row) if next(seen) % 900 != 899 else b"?")
    target = address if to_server else str(tmp_path / "new.db")
    before = sorted(file.name for file in tmp_path.iterdir())
    with pytest.raises(StoreCorrupt, match="did not arrive"):
        store.copy(filled, target)
    monkeypatch.undo()

    assert sorted(file.name for file in tmp_path.iterdir()) == before
    assert store.copy(filled, target).rows["message"] == 3 * 28


def test_a_copy_that_is_cut_off_leaves_nothing(filled: str, address: str, postgres: Lender) -> None:
    def cut_off(done: int, total: int) -> None:
        if done > total // 4:
            with psycopg.connect(postgres.server.admin, autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'holdfast_app'"
                )

    with pytest.raises(StoreError):
        store.copy(filled, address, cut_off)
    with Memory(address) as memory:
        assert memory.admin.users() == []
    store.copy(filled, address)


@pytest.mark.parametrize(
    ("source", "target", "error"),
    [(":memory:", "a.db", ConfigError), ("a.db", "./a.db", ConfigError), ("none.db", "b.db", StoreError)],
)
def test_what_makes_no_sense_is_refused(
    source: str, target: str, error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error):
        store.copy(source, target)

    assert list(tmp_path.iterdir()) == []
