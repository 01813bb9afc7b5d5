"""What was erased is in no answer and in no row; and what it takes until it is in no byte of the server's disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from holdfast import Config, Memory, store
from holdfast.testing.embedder import HashEmbedder
from tests.postgres.lending import Server
from tests.privacy.looking import USER, answers, rows, standing

CANARIES = [f"Quorvane{chr(97 + n)}zil" for n in range(8)]
COMMANDS = (
    (Path(__file__).parent.parent.parent / "docs/how-to/postgres.md")
    .read_text()
    .split("```sql\n")[1]
    .split("```")[0]
    .split(";")[:-1]
)
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


def by_person(memory: Memory) -> None:
    memory.person(USER).erase()


@pytest.mark.parametrize("erase", [by_message, by_conversation, by_person])
def test_what_was_erased_is_in_no_answer_and_no_row(
    erase: Callable[[Memory], None], address: str, tmp_path: Path
) -> None:
    with Memory(address, embedder=HashEmbedder(), config=Config(recall_min_score=-1.0)) as memory:
        plant(memory)
        store.copy(address, tmp_path / "before.db")
        erase(memory)
        memory.digest()
        store.copy(address, tmp_path / "after.db")

        assert [canary for canary in CANARIES if canary not in rows(tmp_path / "before.db")] == []
        assert [canary for canary in CANARIES if canary in rows(tmp_path / "after.db")] == []
        assert [canary for canary in CANARIES if canary in answers(memory, canary, NAMES)] == []
        assert [fact.value for fact in memory.person("bo").facts()] == ["Porto"]
        assert memory.doctor().findings == ()


def test_a_receipt_claims_no_more_than_rows(address: str) -> None:
    """The bytes of a server's disk are out of reach; the receipt says what reaches them."""
    with Memory(address, embedder=HashEmbedder()) as memory:
        plant(memory)
        receipt = memory.person(USER).erase()

    assert receipt.level == "E1"
    assert "VACUUM" in receipt.why


def test_the_commands_of_the_docs_take_it_off_the_servers_disk() -> None:
    """VACUUM rewrites the tables; the log goes at the checkpoint, unless its files are recycled as they are."""
    server = Server(haste=False)
    try:
        server.create("memory")
        with Memory(server.at("memory"), embedder=HashEmbedder()) as memory:
            plant(memory)
            memory.person(USER).erase()
        with psycopg.connect(server.at("memory"), autocommit=True) as connection:
            connection.execute("CHECKPOINT")
            assert standing(on_disk(server), CANARIES), "without the commands it is still there"
            for sql in COMMANDS:
                connection.execute(sql.encode())

        assert standing(on_disk(server), CANARIES) == []
    finally:
        server.close()


def on_disk(server: Server, part: str = "") -> bytes:
    return b"".join(file.read_bytes() for file in sorted((server.folder / part).rglob("*")) if file.is_file())
