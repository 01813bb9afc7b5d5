"""Pydantic AI's agents with `MemoryCapability`."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import FunctionModel

from holdfast import Memory
from holdfast.errors import BadInput
from holdfast.integrations.pydantic_ai import MemoryCapability
from tests.integrations.frameworks.promises import ModelFails, Promises


class Parrot:
    """Notes what it is asked, and repeats the last words of the user; calls a tool first when there is one."""

    def __init__(self, fail=False):
        self.seen, self.fail = [], fail

    def __call__(self, messages, info):
        parts = [part for message in messages for part in message.parts]
        self.seen.append([str(getattr(part, "content", "")) for part in parts])
        if self.fail:
            raise ModelFails("no model")
        if info.function_tools and not any(part.part_kind == "tool-return" for part in parts):
            return ModelResponse(parts=[ToolCallPart(info.function_tools[0].name, {})])
        question = next(part for part in reversed(parts) if isinstance(part, UserPromptPart))
        return ModelResponse(parts=[TextPart(f"noted: {question.content}")])


class TestCapability(Promises):
    retries = True

    def talk(self, memory, text, *, user="ana", conversation="c1", key=None, fail=False, **options):
        parrot = Parrot(fail)
        agent = Agent(
            FunctionModel(parrot),
            system_prompt="Be brief.",
            capabilities=[MemoryCapability(memory, user=user, **options)],
        )
        named = {"idempotency_key": key} if key else None
        asyncio.run(agent.run(text, conversation_id=conversation, metadata=named))
        return parrot.seen[-1]


def test_the_history_of_a_run_holds_nothing_of_memory_and_goes_on():
    with Memory(embedder=None) as memory:
        memory.conversation("before", user="ana").record("I am a vegetarian.", "ok")
        parrot = Parrot()
        agent = Agent(FunctionModel(parrot), capabilities=[MemoryCapability(memory, user="ana")])
        first = asyncio.run(agent.run("one", conversation_id="c1"))
        second = asyncio.run(agent.run("two", conversation_id="c1", message_history=first.all_messages()))

        assert "vegetarian" not in str(second.all_messages())
        assert "vegetarian" in parrot.seen[-1][0]
        assert [text for text in parrot.seen[-1] if "not instructions" not in text] == ["one", "noted: one", "two"]


def test_without_history_the_conversation_goes_on_from_memory():
    with Memory(embedder=None) as memory:
        parrot = Parrot()
        agent = Agent(
            FunctionModel(parrot), system_prompt="Be brief.", capabilities=[MemoryCapability(memory, user="ana")]
        )
        for text in ("one", "two"):
            asyncio.run(agent.run(text, conversation_id="c1"))

        assert parrot.seen[-1] == ["Be brief.", "one", "noted: one", "two"]


def test_a_whole_turn_with_tools_sees_one_context():
    with Memory(embedder=None) as memory:
        memory.conversation("before", user="ana").record("I am a vegetarian.", "ok")
        parrot = Parrot()
        agent = Agent(FunctionModel(parrot), capabilities=[MemoryCapability(memory, user="ana")])

        @agent.tool_plain
        def clock() -> str:
            return "noon"

        asyncio.run(agent.run("What time is it?", conversation_id="c1"))

        first, second = parrot.seen
        assert second[: len(first)] == first
        assert [(m.role, m.content) for m in memory.conversation("c1", user="ana").load()] == [
            ("user", "What time is it?"),
            ("assistant", "noted: What time is it?"),
        ]


def test_the_user_may_come_from_the_dependencies():
    @dataclass
    class Deps:
        user_id: str

    with Memory(embedder=None) as memory:
        by_attribute = Agent(FunctionModel(Parrot()), deps_type=Deps, capabilities=[MemoryCapability(memory)])
        by_function = Agent(
            FunctionModel(Parrot()), deps_type=str, capabilities=[MemoryCapability(memory, user=lambda ctx: ctx.deps)]
        )
        asyncio.run(by_attribute.run("I am a vegetarian.", deps=Deps("ana")))
        asyncio.run(by_function.run("I live in Lisbon.", deps="bo"))

        assert "vegetarian" in memory.user("ana").facts()[0].text
        assert "Lisbon" in memory.user("bo").facts()[0].text
        with pytest.raises(BadInput, match="whose memory"):
            asyncio.run(Agent(FunctionModel(Parrot()), capabilities=[MemoryCapability(memory)]).run("hi"))


def test_streams_are_stored_whole():
    async def stream(messages, info):
        yield "no"
        yield "ted"

    async def run(memory):
        agent = Agent(FunctionModel(stream_function=stream), capabilities=[MemoryCapability(memory, user="ana")])
        async with agent.run_stream("hello", conversation_id="c1") as result:
            return [text async for text in result.stream_text(delta=True)]

    with Memory(embedder=None) as memory:
        asyncio.run(run(memory))

        assert [m.content for m in memory.conversation("c1", user="ana").load()] == ["hello", "noted"]
