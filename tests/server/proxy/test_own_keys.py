"""Chats of users who brought a key go to its address, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator

import openai
import pytest

from holdfast import Config, Memory
from holdfast.llm.sealing import new_master

from .test_clients import ask
from .upstream import Fake, answer, serving

KEY = "sk-own-canary-42"


@pytest.fixture
def own() -> Iterator[Fake]:
    """Another model's server."""
    with serving() as fake:
        yield fake


@pytest.fixture
def world(serve, own, monkeypatch):
    monkeypatch.setenv("HOLDFAST_MASTER_KEY", new_master().reveal())
    host = own.url.split("/")[2]
    made = serve(Memory(embedder=None, config=Config(allow_private_endpoints=(host,))))
    made.memory.admin.provider_keys.set("openai", "own-model", KEY, own.url, user="ana")
    return made


def test_each_ones_chats_go_to_their_own_model_with_their_own_key(world, own):
    ask(world.client("ana"))
    ask(world.client("bob"))

    assert [asked.headers["authorization"] for asked in own.asked] == [f"Bearer {KEY}"]
    assert [asked.headers["authorization"] for asked in world.model.asked] == ["Bearer upstream-secret"]
    assert own.asked[0].body["model"] == "m-1"  # the client's own words
    assert len(world.stored("ana")) == len(world.stored("bob")) == 2


def test_a_new_key_is_used_at_once(world, own):
    client = world.client("ana")
    ask(client)
    world.memory.admin.provider_keys.set("openai", "own-model", "sk-next", own.url, user="ana")
    ask(client)
    world.memory.admin.provider_keys.remove(world.memory.admin.provider_keys.list(user="ana")[0].id, user="ana")
    ask(client)

    assert [asked.headers["authorization"] for asked in own.asked] == [f"Bearer {KEY}", "Bearer sk-next"]
    assert len(world.model.asked) == 1


def test_a_key_that_cannot_be_opened_sends_the_chat_nowhere(world, own, monkeypatch):
    monkeypatch.setenv("HOLDFAST_MASTER_KEY", new_master().reveal())

    with pytest.raises(openai.APIStatusError) as raised:
        ask(world.client("ana"))

    assert "vault" in str(raised.value.body["code"])
    assert own.asked == world.model.asked == []
    assert KEY not in str(raised.value.body)


def test_a_key_of_another_protocol_is_not_for_chats(world, own):
    world.memory.admin.provider_keys.set("anthropic", "claude-haiku-4-5", "sk-ant-1", user="bob")

    ask(world.client("bob"))

    assert len(world.model.asked) == 1


def test_a_users_address_that_leads_back_here_ends_the_circle(serve, monkeypatch):
    monkeypatch.setenv("HOLDFAST_MASTER_KEY", new_master().reveal())
    world = serve(Memory(embedder=None, config=Config(allow_private_endpoints=("127.0.0.1",))))
    world.memory.admin.provider_keys.set("openai", "own-model", world.key(), world.url, user="ana")

    with pytest.raises(openai.InternalServerError) as raised:
        ask(world.client("ana"))

    assert raised.value.code == "upstream-loop"


def test_with_a_key_of_their_own_users_go_on_from_whatever_it_opens(world, own):
    """No other user's responses are behind that key."""
    own.reply = lambda asked: answer(asked, "Noted!")
    client = world.with_key(world.key("user", user="ana"))
    client.responses.create(model="m-1", input="Hello.", previous_response_id="resp_made_elsewhere")

    assert len(own.asked) == 1
