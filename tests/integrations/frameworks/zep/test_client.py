"""Zep's own client, unmodified, against a served memory."""

from __future__ import annotations

import asyncio

import pytest
from zep_cloud import AsyncZep, Zep
from zep_cloud.core.api_error import ApiError

from holdfast import Memory
from holdfast.server.gate import ServerSettings
from tests.server.proxy.conftest import served

TOLD = [
    {"role": "user", "name": "Ana", "content": "I am a vegetarian."},
    {"role": "assistant", "content": "Noted!"},
]


@pytest.fixture
def server():
    with Memory(embedder=None) as memory, served(memory, ServerSettings()) as address:
        where = address.removesuffix("/v1") + "/api/v4"
        yield memory, {"base_url": where, "api_key": memory.admin.keys.create("app").key}


def told(client, user_id="ana"):
    """Make a user and a thread, and tell it something; return both."""
    user = client.user.create(user_id=user_id, first_name="Ana")
    thread = client.thread.create(user_uuid=user.uuid_)
    client.thread.add_messages(thread.uuid_, messages=TOLD)
    return user, thread


def test_what_one_client_adds_another_finds(server):
    memory, where = server
    user, thread = told(Zep(**where))
    other = Zep(**where)

    assert "Is vegetarian." in other.thread.get_context(thread.uuid_).context
    found = [edge.fact for edge in other.graph.search_edges(user.graph_uuid, query="vegetarian")]
    assert found == ["Is vegetarian."]
    assert [
        (m.role, m.content) for m in memory.conversation(memory.user("ana").conversations()[0], user="ana").load()
    ] == [
        ("user", "I am a vegetarian."),
        ("assistant", "Noted!"),
    ]


def test_two_users_never_mix(server):
    _, where = server
    client = Zep(**where)
    told(client)
    bo = client.user.create(user_id="bo")

    assert [edge.fact for edge in client.graph.search_edges(bo.graph_uuid, query="vegetarian")] == []


def test_a_user_is_erased(server):
    memory, where = server
    client = Zep(**where)
    user, _ = told(client)
    client.user.delete(user.uuid_)

    assert not memory.user("ana").facts()
    with pytest.raises(ApiError) as refused:
        client.user.get(user.uuid_)
    assert refused.value.status_code == 404


def test_the_async_client_does_the_same(server):
    _, where = server

    async def talk():
        client = AsyncZep(**where)
        user = await client.user.create(user_id="ana")
        thread = await client.thread.create(user_uuid=user.uuid_)
        await client.thread.add_messages(thread.uuid_, messages=TOLD)
        return (await client.thread.get_context(thread.uuid_)).context

    assert "Is vegetarian." in asyncio.run(talk())


def test_a_wrong_key_is_an_error(server):
    _, where = server

    with pytest.raises(ApiError) as refused:
        Zep(**{**where, "api_key": "wrong"}).user.create(user_id="ana")
    assert refused.value.status_code == 401
