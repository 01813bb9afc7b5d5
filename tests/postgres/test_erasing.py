"""What was erased is in no answer and in no row; and what it takes until it is in no byte of the server's disk."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from holdfast import Config, Memory, store
from holdfast.errors import StoreError
from holdfast.testing.fakes import HashEmbedder
from tests.cli.conftest import Holdfast, holdfast  # noqa: F401  a fixture
from tests.postgres.lending import Lender, Server
from tests.privacy.looking import USER, asked, rows, standing, unasked

CANARIES = [f"Quorvane{chr(97 + n)}zil" for n in range(8)]
NAMES = ["first", "second"]


def plant(memory: Memory) -> None:
    for number, canary in enumerate(CANARIES):
        chat = memory.conversation(NAMES[number % 2], user=USER)
        chat.record(f"I live in {canary}.", f"So {canary} it is!", idempotency_key=str(number))
    for name in NAMES:
        memory.conversation(name, user=USER).end()
    memory.conversation("other", user="bo").record("I live in Porto.", "Noted!")
    memory.digest()


def by_message(memory: Memory) -> None:
    for name in NAMES:
        chat = memory.conversation(name, user=USER)
        for message in chat.load():
            assert message.seq is not None
            chat.forget(message.seq)


def by_conversation(memory: Memory) -> None:
    for name in NAMES:
        memory.conversation(name, user=USER).clear()


def by_user(memory: Memory) -> None:
    memory.user(USER).erase()


@pytest.mark.parametrize("erase", [by_message, by_conversation, by_user])
def test_what_was_erased_is_in_no_answer_and_no_row(
    erase: Callable[[Memory], None], address: str, tmp_path: Path
) -> None:
    with Memory(address, embedder=HashEmbedder(), config=Config(recall_min_relevance=0.0)) as memory:
        plant(memory)
        store.copy(address, tmp_path / "before.db")
        erase(memory)
        memory.digest()
        store.copy(address, tmp_path / "after.db")

        before, after, said = rows(tmp_path / "before.db"), rows(tmp_path / "after.db"), unasked(memory, NAMES)
        assert [canary for canary in CANARIES if canary not in before] == []
        assert [canary for canary in CANARIES if canary in after or canary in said] == []
        assert [canary for canary in CANARIES if canary in asked(memory, canary, NAMES)] == []
        assert [fact.value for fact in memory.user("bo").facts()] == ["Porto"]
        assert memory.doctor().findings == ()


def test_a_receipt_claims_no_more_than_rows(address: str) -> None:
    """The bytes of a server's disk are out of reach; the receipt says what reaches them."""
    with Memory(address, embedder=HashEmbedder()) as memory:
        plant(memory)
        receipt = memory.user(USER).erase()

    assert receipt.level == "E1"
    assert "holdfast store scrub" in receipt.why


def test_scrubbing_takes_it_off_the_servers_disk() -> None:
    """
    Off the heap, off what the planner knows of the values, off the log and its files that wait to be used again.

    The files are searched by this process, too, not only by the server.
    """
    server = Server(haste=True)
    try:
        server.create("memory")
        place = server.at("memory")
        with Memory(place, embedder=HashEmbedder()) as memory:
            plant(memory)
            with psycopg.connect(place, autocommit=True) as connection:
                connection.execute("ANALYZE")
                for _ in range(3):
                    connection.execute("SELECT pg_switch_wal()")
                    connection.execute("CHECKPOINT")
                memory.user(USER).erase()
                connection.execute("VACUUM (FULL)")
                connection.execute("CHECKPOINT")
                seen = [
                    str(row) for row in connection.execute("SELECT most_common_vals, histogram_bounds FROM pg_stats")
                ]
        assert standing("".join(seen).encode(), CANARIES), "statistics outlive the rows"
        for folder in ("base", "pg_wal"):
            assert CANARIES[0].encode() in on_disk(server, folder), f"without scrubbing it is still in {folder}"

        report = store.scrub(place, [*CANARIES, "Porto"])
        assert (report.level, report.searched, report.files, report.left) == ("E2", 9, (), ())
        disk = on_disk(server)
        assert [canary for canary in CANARIES if canary.encode() in disk] == standing(disk, CANARIES[:1]) == []
        assert b"Porto" in disk, "what others said is no residue"
        with psycopg.connect(place) as connection:
            assert connection.execute("SHOW wal_recycle").fetchone() == ("on",)

        (server.folder / "base" / "leftover").write_bytes(b"..." + CANARIES[3].encode())
        again = store.scrub(place, CANARIES[2:4])
        assert (again.level, again.found, again.files) == ("E1", 1, ("base/leftover",))
    finally:
        server.close()


def test_scrubbing_waits_for_readers_that_are_gone_in_a_moment() -> None:
    """The server's own maintenance reads for moments; meanwhile the deleted statistics must stay, and then they go."""
    server, done = Server(haste=True), threading.Event()
    server.create("memory")
    place = server.at("memory")

    def read_again_and_again() -> None:
        with psycopg.connect(place) as reader:
            while not done.is_set():
                reader.execute("SELECT txid_current(), pg_sleep(0.3)")
                reader.commit()

    thread = threading.Thread(target=read_again_and_again)
    try:
        with Memory(place, embedder=HashEmbedder()) as memory:
            plant(memory)
            with psycopg.connect(place, autocommit=True) as connection:
                connection.execute("ANALYZE")
            memory.user(USER).erase()
        thread.start()
        report = store.scrub(place, CANARIES)
        assert (report.level, report.files, report.left) == ("E2", (), ())
    finally:
        done.set()
        thread.join()
        server.close()


def test_what_scrubbing_could_not_do_is_said(address: str, postgres: Lender) -> None:
    """A reader of an older state, an owner who is no superuser, the application's role: each is told."""
    server = postgres.server
    with psycopg.connect(server.admin, autocommit=True) as admin:
        admin.execute("CREATE ROLE keeper LOGIN")
        admin.execute("CREATE DATABASE kept OWNER keeper TEMPLATE template0")
        with Memory(server.at("kept", "keeper"), embedder=None) as memory:
            plant(memory)
            with psycopg.connect(server.at("kept")) as reader:
                reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
                reader.execute("SELECT txid_current()")
                memory.user(USER).erase()
                report = store.scrub(server.at("kept", "keeper"), ["Quorvane"])
        server.drop("kept")
        admin.execute("DROP ROLE keeper")

    assert report.level == "E1"
    for words in ("somebody reads an older state", "log holds it", "only a superuser may read"):
        assert any(words in sentence for sentence in report.left)
    with pytest.raises(StoreError, match="only the role that owns"):
        store.scrub(address)


def test_the_command_scrubs_a_file_however_large(tmp_path: Path, holdfast: Holdfast) -> None:  # noqa: F811
    """What an erasure left undone, because of `Config.scrub_mb`, is done; the words come from a file."""
    path = tmp_path / "chat.db"
    with Memory(path, embedder=HashEmbedder(), config=Config(scrub_mb=0)) as memory:
        plant(memory)
        assert memory.user(USER).erase().level == "E1"
    (tmp_path / "words.txt").write_text("\n".join([*CANARIES, "Porto", ""]))
    done = holdfast("store", "scrub", "--store", str(path), "--words", "words.txt", "--json")

    assert (done.code, done.data["level"], done.data["searched"], done.data["found"]) == (0, "E2", 9, 0)
    assert standing(path.read_bytes(), CANARIES) == []
    assert "no words were searched for" in holdfast("store", "scrub", "--store", str(path)).out


def on_disk(server: Server, part: str = "") -> bytes:
    return b"".join(file.read_bytes() for file in sorted((server.folder / part).rglob("*")) if file.is_file())
