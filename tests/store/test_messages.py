"""The message stores keep the contract, and so does a memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import InMemoryMessages, JsonFileMessages, Memory, UserMessages
from holdfast.testing.message_contract import MessageStoreContract


class TestInMemory(MessageStoreContract):
    @pytest.fixture
    def store(self) -> InMemoryMessages:
        return InMemoryMessages()


class TestJsonFiles(MessageStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> JsonFileMessages:
        return JsonFileMessages(tmp_path / "chats")


class TestUser(MessageStoreContract):
    @pytest.fixture
    def store(self) -> Iterator[UserMessages]:
        with Memory(embedder=None) as memory:
            yield UserMessages(memory, user="ana")


def test_a_cleared_session_of_a_user_takes_along_what_was_learned_from_it_alone() -> None:
    with Memory(embedder=None) as memory:
        store, user = UserMessages(memory, user="ana"), memory.user("ana")
        store.append("s", {"role": "user", "content": "I live in Porto."})
        store.append("s", {"role": "user", "content": "I'm vegetarian."})
        store.append("other", {"role": "user", "content": "I'm vegetarian."})
        memory.digest()
        store.clear("s")

        assert [fact.category for fact in user.facts()] == ["dietary"]
        assert user.conversations() == ["other"]
        assert memory.doctor().ok


@pytest.mark.parametrize("kind", [InMemoryMessages, JsonFileMessages])
def test_sessions_are_listed_by_name(kind, tmp_path):
    store = kind(tmp_path) if kind is JsonFileMessages else kind()
    names = ["b", "A", "..", "x" * 300, "개발자", "a/b"]
    for name in names:
        store.append(name, {"role": "user", "content": "hi"})
    store.clear("b")

    assert store.sessions() == sorted(set(names) - {"b"})
