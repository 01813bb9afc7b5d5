"""Haystack agents with `memory_hooks`."""

from __future__ import annotations

import asyncio

import pytest
from haystack import component
from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage, ToolCall
from haystack.tools import create_tool_from_function

from holdfast import Memory
from holdfast.errors import BadInput, ConfigError
from holdfast.integrations.haystack import memory_hooks
from tests.integrations.frameworks.promises import BLOCK, ModelFails, Promises


@component
class Parrot:
    """Notes what it is asked, and repeats the last words of the user; first calls *tool* when there is one."""

    def __init__(self, fail=False, tool=None):
        self.seen, self.fail, self.tool = [], fail, tool

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools=None):
        self.seen.append(list(messages))
        if self.fail:
            raise ModelFails("no model")
        if self.tool and len(self.seen) == 1:
            return {"replies": [ChatMessage.from_assistant(tool_calls=[ToolCall(self.tool, {})])]}
        said = [message.text for message in messages if message.is_from("user")]
        return {"replies": [ChatMessage.from_assistant(f"noted: {said[-1]}")]}


class TestHooks(Promises):
    retries = True

    def talk(self, memory, text, *, user="ana", conversation="c1", key=None, fail=False, **options):
        model = Parrot(fail)
        agent = Agent(chat_generator=model, system_prompt="Be brief.", hooks=memory_hooks(memory, **options))
        given = {"user_id": user, "conversation": conversation, "idempotency_key": key}
        agent.run([ChatMessage.from_user(text)], hook_context=given)
        return [message.text for message in model.seen[-1]]


class TestHooksAsync(TestHooks):
    def talk(self, memory, text, *, user="ana", conversation="c1", key=None, fail=False, **options):
        model = Parrot(fail)
        agent = Agent(chat_generator=model, hooks=memory_hooks(memory, **options))
        given = {"user_id": user, "conversation": conversation, "idempotency_key": key}
        asyncio.run(agent.run_async([ChatMessage.from_user(text)], hook_context=given))
        return [message.text for message in model.seen[-1]]


@pytest.fixture
def memory():
    with Memory(embedder=None) as memory:
        memory.conversation("before", user="ana").record("I am a vegetarian.", "ok")
        yield memory


def test_a_run_returns_its_own_messages_only(memory):
    def clock() -> str:
        """Return the time."""
        return "noon"

    model = Parrot(tool="clock")
    agent = Agent(
        chat_generator=model,
        system_prompt="Be brief.",
        tools=[create_tool_from_function(clock)],
        hooks=memory_hooks(memory, user="ana", conversation="c1"),
    )
    history = [ChatMessage.from_user("Hello."), ChatMessage.from_assistant("Hi.")]
    result = agent.run([*history, ChatMessage.from_user("What may I cook at noon?")])

    first, second = model.seen
    assert [message.role.value for message in result["messages"]] == [
        *("system", "user", "assistant", "user"),
        *("assistant", "tool", "assistant"),
    ]
    assert not any(BLOCK in (message.text or "") for message in result["messages"])
    assert second[: len(first)] == first
    assert "vegetarian" in first[1].text
    assert [(m.role, m.content) for m in memory.conversation("c1", user="ana").load()] == [
        ("user", "What may I cook at noon?"),
        ("assistant", "noted: What may I cook at noon?"),
    ]


def test_a_run_without_a_user_is_an_error(memory):
    agent = Agent(chat_generator=Parrot(), hooks=memory_hooks(memory))
    with pytest.raises(BadInput, match="whose memory"):
        agent.run([ChatMessage.from_user("hi")])


def test_a_memory_is_not_written_to_a_file(memory):
    with pytest.raises(ConfigError, match="file"):
        memory_hooks(memory)["before_llm"][0].to_dict()
