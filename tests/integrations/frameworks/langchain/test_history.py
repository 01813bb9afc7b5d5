"""LangChain's chat message history over a conversation."""

from __future__ import annotations

import asyncio

from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables.history import RunnableWithMessageHistory

from holdfast import Memory
from holdfast.integrations.langchain import HoldfastChatMessageHistory

MESSAGES = [
    SystemMessage("Be brief."),
    HumanMessage("hello", id="h1", name="Ana"),
    HumanMessage([{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:,x"}}]),
    AIMessage("", tool_calls=[{"name": "clock", "args": {"zone": "UTC"}, "id": "t1"}]),
    ToolMessage("noon", tool_call_id="t1"),
    AIMessage("It is noon.", response_metadata={"model": "m"}, usage_metadata=None),
    HumanMessage("ok"),
    HumanMessage("ok"),
]


def test_messages_come_back_as_they_were_given(tmp_path):
    theirs = InMemoryChatMessageHistory()
    theirs.add_messages(MESSAGES)
    with Memory(tmp_path / "chat.db", embedder=None) as memory:
        HoldfastChatMessageHistory(memory, "s1", user="ana").add_messages(MESSAGES)
    with Memory(tmp_path / "chat.db", embedder=None) as memory:
        assert HoldfastChatMessageHistory(memory, "s1", user="ana").messages == theirs.messages
        assert HoldfastChatMessageHistory(memory, "s1", user="bo").messages == []


def test_a_message_with_an_id_is_stored_once():
    with Memory(embedder=None) as memory:
        history = HoldfastChatMessageHistory(memory, "s1", user="ana")
        for _ in range(3):
            history.add_messages([HumanMessage("hi", id="h1"), AIMessage("ho", id="a1")])

        assert [m.content for m in history.messages] == ["hi", "ho"]


def test_it_works_with_a_runnable_and_learns():
    with Memory(embedder=None) as memory:
        model = GenericFakeChatModel(messages=iter(["ok", "fish"]))
        chain = RunnableWithMessageHistory(model, lambda s: HoldfastChatMessageHistory(memory, s, user="ana"))
        for text in ("I am a vegetarian.", "dinner?"):
            chain.invoke(text, {"configurable": {"session_id": "s1"}})

        assert [m.content for m in HoldfastChatMessageHistory(memory, "s1", user="ana").messages] == [
            "I am a vegetarian.",
            "ok",
            "dinner?",
            "fish",
        ]
        assert memory.user("ana").facts()


def test_an_erased_message_is_gone_and_an_edited_one_says_what_it_says_now():
    with Memory(embedder=None) as memory:
        history = HoldfastChatMessageHistory(memory, "s1", user="ana")
        history.add_messages([HumanMessage("a secret"), HumanMessage("I like tea.")])
        chat = memory.conversation("s1", user="ana")
        chat.forget(1)
        chat.edit(2, "I like coffee.")

        assert [m.content for m in history.messages] == ["I like coffee."]


def test_clear_erases_with_what_was_learned():
    async def run(memory):
        history = HoldfastChatMessageHistory(memory, "s1", user="ana")
        await history.aadd_messages([HumanMessage("I am a vegetarian.")])
        assert await history.aget_messages()
        await history.aclear()
        return await history.aget_messages()

    with Memory(embedder=None) as memory:
        assert asyncio.run(run(memory)) == []
        assert not memory.user("ana").facts()
