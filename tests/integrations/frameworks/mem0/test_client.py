"""mem0's own client, unmodified, against a served memory."""

from __future__ import annotations

import asyncio
import os

os.environ.setdefault("MEM0_TELEMETRY", "False")

import pytest
from mem0 import AsyncMemoryClient, MemoryClient

from holdfast import Memory
from holdfast.server.gate import ServerSettings
from tests.server.proxy.conftest import served

TOLD = [{"role": "user", "content": "I am a vegetarian."}, {"role": "assistant", "content": "Noted!"}]
ANA = {"user_id": "ana"}


@pytest.fixture
def server():
    with Memory(embedder=None) as memory, served(memory, ServerSettings()) as address:
        yield memory, {"host": address.removesuffix("/v1"), "api_key": memory.admin.keys.create("app").key}


def texts(found):
    return [row["memory"] for row in found["results"]]


def test_what_one_client_adds_another_finds_once(server):
    memory, where = server
    for _ in range(3):
        MemoryClient(**where).add(TOLD, user_id="ana")
    other = MemoryClient(**where)

    assert texts(other.search("vegetarian", filters=ANA)) == ["Is vegetarian."]
    assert texts(other.get_all(filters=ANA)) == ["Is vegetarian."]
    assert texts(other.get_all(filters={"user_id": "bo"})) == []
    assert len(memory.user("ana").conversations()) == 1


def test_a_memory_is_read_changed_and_erased(server):
    memory, where = server
    client = MemoryClient(**where)
    client.add(TOLD, user_id="ana")
    known = client.get_all(filters=ANA)["results"][0]["id"]
    client.update(known, text="Eats fish.")

    assert client.get(known)["memory"] == "Eats fish."
    assert [row["event"] for row in client.history(known)] == ["ADD", "UPDATE"]
    client.delete(known)
    assert texts(client.get_all(filters=ANA)) == []
    client.add(TOLD, user_id="bo")
    client.delete_all(user_id="bo")
    assert not memory.user("bo").facts()


def test_the_async_client_does_the_same(server):
    _, where = server

    async def talk():
        client = AsyncMemoryClient(**where)
        await client.add(TOLD, user_id="ana")
        return await client.search("vegetarian", filters=ANA)

    assert texts(asyncio.run(talk())) == ["Is vegetarian."]


def test_a_wrong_key_is_an_error(server):
    _, where = server

    with pytest.raises(Exception, match=r"(?i)key|auth|401"):
        MemoryClient(**{**where, "api_key": "wrong"}).get_all(filters=ANA)
