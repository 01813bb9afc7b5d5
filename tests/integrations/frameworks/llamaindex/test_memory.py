"""LlamaIndex's memory over a conversation, side by side with LlamaIndex's own `ChatMemoryBuffer`."""

from __future__ import annotations

import asyncio

import pytest
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    ImageBlock,
    LLMMetadata,
    TextBlock,
)
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import CustomLLM
from llama_index.core.memory import ChatMemoryBuffer

from holdfast import Memory
from holdfast.errors import ConfigError
from holdfast.integrations.llamaindex import HoldfastMemory
from tests.integrations.frameworks.promises import ModelFails, Promises


class Parrot(CustomLLM):
    """Notes what it is asked, and repeats the last words of the user."""

    seen: list[list[str]] = []  # noqa: RUF012
    fail: bool = False

    @property
    def metadata(self):
        return LLMMetadata()

    def complete(self, prompt, formatted=False, **more):
        return CompletionResponse(text="")

    def stream_complete(self, prompt, formatted=False, **more):
        raise NotImplementedError

    def chat(self, messages, **more):
        self.seen.append([message.content or "" for message in messages])
        if self.fail:
            raise ModelFails("no model")
        return ChatResponse(message=ChatMessage(role="assistant", content=f"noted: {messages[-1].content}"))


class TestMemory(Promises):
    retries = True

    def talk(self, memory, text, *, user="ana", conversation="c1", key=None, fail=False, **options):
        model = Parrot(seen=[], fail=fail)
        held = HoldfastMemory.of(memory, conversation, user=user, turn=key, **options)
        SimpleChatEngine.from_defaults(llm=model, memory=held).chat(text)
        return model.seen[-1]


class TestMemoryAsync(TestMemory):
    def talk(self, memory, text, *, user="ana", conversation="c1", key=None, fail=False, **options):
        model = Parrot(seen=[], fail=fail)
        held = HoldfastMemory.of(memory, conversation, user=user, turn=key, **options)
        asyncio.run(SimpleChatEngine.from_defaults(llm=model, memory=held).achat(text))
        return model.seen[-1]


MESSAGES = [
    ChatMessage(role="system", content="Be brief."),
    ChatMessage(role="user", blocks=[TextBlock(text="look"), ImageBlock(url="https://example.org/x.png")]),
    ChatMessage(role="assistant", content=None, additional_kwargs={"tool_calls": [{"id": "t1"}]}),
    ChatMessage(role="tool", content="noon", additional_kwargs={"tool_call_id": "t1"}),
    ChatMessage(role="assistant", content="It is noon."),
]


@pytest.fixture(params=["holdfast", "buffer"])
def held(request):
    if request.param == "buffer":
        yield ChatMemoryBuffer.from_defaults(token_limit=10_000)
    else:
        with Memory(embedder=None) as memory:
            yield HoldfastMemory.from_defaults(memory=memory, session="s1", user="ana")


def test_messages_come_back_as_they_were_given(held):
    held.put_messages(MESSAGES)

    assert held.get_all() == MESSAGES
    held.reset()
    assert held.get_all() == []


def test_a_history_that_is_set_is_what_the_memory_says(held):
    held.set(MESSAGES[:2])
    held.set(MESSAGES)
    assert held.get_all() == MESSAGES
    held.set(MESSAGES[3:])
    assert held.get_all() == MESSAGES[3:]


def test_async_calls(held):
    async def run():
        await held.aput_messages(MESSAGES)
        found = await held.aget_all()
        await held.areset()
        return found, await held.aget()

    assert asyncio.run(run()) == (MESSAGES, [])


def test_what_is_put_is_learned_at_once():
    with Memory(embedder=None) as memory:
        HoldfastMemory.of(memory, "s1", user="ana").put(ChatMessage(role="user", content="I am a vegetarian."))

        assert [fact.text for fact in memory.user("ana").facts()] == ["Is vegetarian."]


def test_a_missing_name_is_an_error():
    with pytest.raises(ConfigError, match="user"):
        HoldfastMemory.from_defaults(memory=None, session="s1")


def test_what_a_paused_user_said_goes_with_an_erasure():
    with Memory(embedder=None) as memory:
        held = HoldfastMemory.of(memory, "s1", user="ana")
        held.put(ChatMessage(role="user", content="one"))
        memory.user("ana").pause()
        held.put(ChatMessage(role="user", content="two"))
        before = held.get_all()
        memory.user("ana").erase()

        assert [message.content for message in before] == ["two"]
        assert held.get_all() == []
