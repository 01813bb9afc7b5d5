"""The message stores keep the contract; a memory does as far as it can forget."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import InMemoryMessages, JsonFileMessages, Memory, PersonMessages
from holdfast.testing.message_contract import MessageLogContract, MessageStoreContract


class TestInMemory(MessageStoreContract):
    @pytest.fixture
    def store(self) -> InMemoryMessages:
        return InMemoryMessages()


class TestJsonFiles(MessageStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> JsonFileMessages:
        return JsonFileMessages(tmp_path / "chats")


class TestPerson(MessageLogContract):
    @pytest.fixture
    def store(self) -> Iterator[PersonMessages]:
        with Memory(embedder=None) as memory:
            yield PersonMessages(memory, user="ana")


@pytest.mark.parametrize("kind", [InMemoryMessages, JsonFileMessages])
def test_sessions_are_listed_by_name(kind, tmp_path):
    store = kind(tmp_path) if kind is JsonFileMessages else kind()
    names = ["b", "A", "..", "x" * 300, "개발자", "a/b"]
    for name in names:
        store.append(name, {"role": "user", "content": "hi"})
    store.clear("b")

    assert store.sessions() == sorted(set(names) - {"b"})
