"""`with_memory` around real chat models, prompts and chains of LangChain."""

from __future__ import annotations

import asyncio

import pytest

from holdfast import InMemoryMessages, with_memory

pytest.importorskip("langchain_core")

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda

S1 = {"configurable": {"session_id": "s1"}}


def model():
    return GenericFakeChatModel(messages=iter([AIMessage("one two") for _ in range(9)]))


def test_a_chat_model_answers_in_every_way_and_each_turn_is_stored_once():
    chat = with_memory(model(), store := InMemoryMessages())

    async def later():
        whole = await chat.ainvoke([HumanMessage("c")], S1)
        return whole.content, [chunk.content async for chunk in chat.astream("d", S1)]

    assert chat.invoke(HumanMessage("a"), S1).content == "one two"
    assert [chunk.content for chunk in chat.stream("b", S1)] == ["one", " ", "two"]
    assert asyncio.run(later()) == ("one two", ["one", " ", "two"])
    assert [message.content for message in store.load("s1")] == [
        "a",
        "one two",
        "b",
        "one two",
        "c",
        "one two",
        "d",
        "one two",
    ]


def test_a_chain_gets_the_history_in_its_prompt():
    seen = []
    prompt = ChatPromptTemplate.from_messages(
        [("system", "Be {tone}."), MessagesPlaceholder("history"), ("human", "{question}")]
    )
    chain = (
        prompt | RunnableLambda(lambda made: (seen.append(made.to_messages()), made)[1]) | model() | StrOutputParser()
    )
    chat = with_memory(chain, InMemoryMessages(), input_key="question", history_key="history")

    assert chat.invoke({"question": "hi", "tone": "kind"}, S1) == "one two"
    assert list(chat.stream({"question": "more", "tone": "kind"}, S1)) == ["one", " ", "two"]
    assert [message.content for message in seen[-1]] == ["Be kind.", "hi", "one two", "more"]


def test_a_function_of_theirs_gets_their_messages():
    count = RunnableLambda(lambda messages: AIMessage(f"{type(messages[-1]).__name__} {len(messages)}"))
    chat = with_memory(count, InMemoryMessages())

    assert [chat.invoke(text).content for text in ("a", "b")] == ["HumanMessage 1", "HumanMessage 3"]
    assert (RunnableLambda(str.upper) | chat).invoke("c").content == "HumanMessage 5"
