"""Agents of Microsoft's Agent Framework with `HoldfastHistoryProvider`."""

from __future__ import annotations

import asyncio

import pytest
from agent_framework import Agent, AgentSession, BaseChatClient, ChatResponse, Content, Message

from holdfast import Memory
from holdfast.errors import BadInput
from holdfast.integrations.agent_framework import HoldfastHistoryProvider
from tests.integrations.frameworks.promises import ModelFails, Promises


class Parrot(BaseChatClient):
    """Notes what it is asked, and repeats the last words of the user."""

    def __init__(self, fail=False):
        super().__init__()
        self.seen, self.fail = [], fail

    async def _inner_get_response(self, *, messages, stream, options, **more):
        self.seen.append([message.text for message in messages])
        if self.fail:
            raise ModelFails("no model")
        return ChatResponse(messages=[Message("assistant", [f"noted: {messages[-1].text}"])], response_id="r")


def say(agent, text, conversation, key=None, **state):
    session = AgentSession(session_id=conversation)
    session.state.update(state)
    return asyncio.run(agent.run([Message("user", [text], message_id=key)], session=session))


class TestHistoryProvider(Promises):
    def talk(self, memory, text, *, user="ana", conversation="c1", key=None, fail=False, **options):
        client = Parrot(fail)
        provider = HoldfastHistoryProvider(memory, user=user, **options)
        say(Agent(client, "Be brief.", context_providers=[provider]), text, conversation, key)
        return client.seen[-1]


def test_a_session_goes_on_in_order_with_memory_around_it():
    with Memory(embedder=None) as memory:
        memory.conversation("before", user="ana").record("I am a vegetarian.", "ok")
        client = Parrot()
        agent = Agent(client, context_providers=[HoldfastHistoryProvider(memory, user="ana")])
        for text in ("one", "two"):
            say(agent, text, "c1")

        assert "vegetarian" in client.seen[-1][0]
        assert [text for text in client.seen[-1] if "not instructions" not in text] == ["one", "noted: one", "two"]


def test_messages_come_back_as_they_were_given():
    call = Content.from_function_call(call_id="t1", name="clock", arguments={"zone": "UTC"})
    given = [
        Message("user", ["hello"], author_name="Ana", message_id="m1"),
        Message("assistant", [call]),
        Message("tool", [Content.from_function_result(call_id="t1", result="noon")]),
        Message("assistant", ["It is noon."]),
    ]
    with Memory(embedder=None) as memory:
        provider = HoldfastHistoryProvider(memory, user="ana")
        asyncio.run(provider.save_messages("s1", given))

        found = asyncio.run(provider.get_messages("s1"))
        assert [message.to_dict() for message in found] == [message.to_dict() for message in given]
        assert asyncio.run(HoldfastHistoryProvider(memory, user="bo").get_messages("s1")) == []


def test_the_user_may_come_from_the_session():
    with Memory(embedder=None) as memory:
        agent = Agent(Parrot(), context_providers=[HoldfastHistoryProvider(memory)])
        say(agent, "I am a vegetarian.", "c1", user_id="cy")

        assert memory.user("cy").facts()
        with pytest.raises(BadInput, match="whose memory"):
            say(agent, "hi", "c1")


def test_a_paused_session_goes_on_in_the_process():
    with Memory(embedder=None) as memory:
        memory.user("ana").pause()
        client = Parrot()
        agent = Agent(client, context_providers=[HoldfastHistoryProvider(memory, user="ana")])
        for text in ("one", "two"):
            say(agent, text, "c1")

        assert client.seen[-1] == ["one", "noted: one", "two"]
        assert memory.conversation("c1", user="ana").load() == []


def test_what_a_paused_user_said_goes_with_an_erasure():
    with Memory(embedder=None) as memory:
        agent = Agent(Parrot(), context_providers=[provider := HoldfastHistoryProvider(memory, user="ana")])
        say(agent, "one", "c1")
        memory.user("ana").pause()
        say(agent, "two", "c1")
        before = asyncio.run(provider.get_messages("c1"))
        memory.user("ana").erase()

        assert [message.text for message in before] == ["two", "noted: two"]
        assert asyncio.run(provider.get_messages("c1")) == []
