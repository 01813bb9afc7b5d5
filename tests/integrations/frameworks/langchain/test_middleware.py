"""LangChain's agents with `MemoryMiddleware`."""

from __future__ import annotations

import asyncio

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from pydantic import Field

from holdfast import AsyncMemory, Memory
from holdfast.errors import BadInput
from holdfast.integrations.langchain import MemoryMiddleware
from holdfast.integrations.langgraph import HoldfastSaver
from tests.integrations.frameworks.promises import ModelFails, Promises


class Parrot(BaseChatModel):
    """Notes what it is asked, and replies with the last words of it; calls a tool first when one is bound."""

    seen: list[list[str]] = Field(default_factory=list)
    fail: bool = False
    tool_name: str = ""

    @property
    def _llm_type(self):
        return "parrot"

    def bind_tools(self, tools, **more):
        return self.model_copy(update={"tool_name": tools[0].name, "seen": self.seen})

    def _generate(self, messages, stop=None, run_manager=None, **more):
        self.seen.append([str(message.text) for message in messages])
        if self.fail:
            raise ModelFails("no model")
        question = next(m for m in reversed(messages) if isinstance(m, HumanMessage))
        if self.tool_name and messages[-1].type != "tool":
            calls = [{"name": self.tool_name, "args": {}, "id": "call-1"}]
            return ChatResult(generations=[ChatGeneration(message=AIMessage("", tool_calls=calls))])
        return ChatResult(generations=[ChatGeneration(message=AIMessage(f"noted: {question.text}"))])


def config(user="ana", conversation="c1", key=None):
    return {"configurable": {"thread_id": conversation, "user_id": user} | ({"idempotency_key": key} if key else {})}


class TestMiddleware(Promises):
    def talk(self, memory, text, *, user="ana", conversation="c1", key=None, fail=False, **options):
        model = Parrot(seen=[], fail=fail)
        agent = create_agent(model, system_prompt="Be brief.", middleware=[MemoryMiddleware(memory, **options)])
        agent.invoke({"messages": [("user", text)]}, config(user, conversation, key))
        return model.seen[-1]


class TestMiddlewareWithCheckpoints(Promises):
    keys = False

    def talk(self, memory, text, *, user="ana", conversation="c1", key=None, fail=False, **options):
        model = Parrot(seen=[], fail=fail)
        memory_of = MemoryMiddleware(memory, **options)
        agent = create_agent(model, middleware=[memory_of], checkpointer=HoldfastSaver(memory))
        agent.invoke({"messages": [("user", text)]}, config(user, conversation))
        return model.seen[-1]


class TestMiddlewareAsync(Promises):
    def talk(self, memory, text, *, user="ana", conversation="c1", key=None, fail=False, **options):
        model = Parrot(seen=[], fail=fail)
        agent = create_agent(model, middleware=[MemoryMiddleware(memory, **options)])
        asyncio.run(agent.ainvoke({"messages": [("user", text)]}, config(user, conversation, key)))
        return model.seen[-1]


def test_without_a_checkpointer_the_conversation_goes_on_from_memory():
    with Memory(embedder=None) as memory:
        model = Parrot(seen=[])
        agent = create_agent(model, system_prompt="Be brief.", middleware=[MemoryMiddleware(memory)])
        for text in ("one", "two"):
            agent.invoke({"messages": [("user", text)]}, config())

        assert model.seen[-1] == ["Be brief.", "one", "noted: one", "two"]


def test_calls_of_tools_stay_together_and_the_whole_turn_sees_one_context():
    @tool
    def clock() -> str:
        """Return the time."""
        return "noon"

    with Memory(embedder=None) as memory:
        memory.conversation("before", user="ana").record("I am a vegetarian.", "ok")
        model = Parrot(seen=[])
        agent = create_agent(model, [clock], middleware=[MemoryMiddleware(memory)])
        agent.invoke({"messages": [("user", "What time is it?")]}, config())

        first, second = model.seen
        assert second[: len(first)] == first
        assert second[len(first) :] == ["", "noon"]
        assert [(m.role, m.content) for m in memory.conversation("c1", user="ana").load()] == [
            ("user", "What time is it?"),
            ("assistant", "noted: What time is it?"),
        ]


def test_the_users_words_are_believed_before_the_reply_and_kept_when_the_model_fails():
    with Memory(embedder=None) as memory:
        model = Parrot(seen=[], fail=True)
        agent = create_agent(model, middleware=[MemoryMiddleware(memory)])
        with pytest.raises(ModelFails):
            agent.invoke({"messages": [("user", "I am a vegetarian.")]}, config())

        assert any("vegetarian" in fact.text.lower() for fact in memory.user("ana").facts())
        assert "vegetarian" in model.seen[0][0]


def test_an_async_memory_is_opened_by_the_first_run(tmp_path):
    async def run():
        async with AsyncMemory(tmp_path / "chat.db", embedder=None) as memory:
            agent = create_agent(Parrot(seen=[]), middleware=[MemoryMiddleware(memory, user="ana")])
            await agent.ainvoke({"messages": [("user", "I am a vegetarian.")]})
            return await memory.user("ana").facts()

    assert asyncio.run(run())


def test_the_user_may_come_from_the_context_of_the_run():
    with Memory(embedder=None) as memory:
        agent = create_agent(Parrot(seen=[]), middleware=[MemoryMiddleware(memory)], context_schema=dict)
        agent.invoke({"messages": [("user", "I am a vegetarian.")]}, context={"user_id": "cy"})

        assert memory.user("cy").facts()


def test_without_a_user_it_says_what_to_do():
    with Memory(embedder=None) as memory:
        agent = create_agent(Parrot(seen=[]), middleware=[MemoryMiddleware(memory)])
        with pytest.raises(BadInput, match="whose memory"):
            agent.invoke({"messages": [("user", "hi")]})
