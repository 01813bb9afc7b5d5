"""LiveKit sessions with `MemoryAgent`, by text: the same turns without a microphone."""

from __future__ import annotations

import asyncio

import pytest
from livekit.agents import Agent, AgentSession, llm
from livekit.agents.types import DEFAULT_API_CONNECT_OPTIONS

from holdfast import Memory
from holdfast.errors import StoreUnavailable
from holdfast.integrations.common import AdapterMemory
from holdfast.integrations.voice.livekit import MemoryAgent
from tests.integrations.frameworks.promises import ModelFails, Promises


class Parrot(llm.LLM):
    """Notes what it is asked, and repeats the last words of the user."""

    def __init__(self, fail=False):
        super().__init__()
        self.seen, self.fail = [], fail

    def chat(self, *, chat_ctx, tools=None, conn_options=DEFAULT_API_CONNECT_OPTIONS, **more):
        self.seen.append([(item.role, item.text_content) for item in chat_ctx.items if item.type == "message"])
        return Words(self, chat_ctx=chat_ctx, tools=tools or [], conn_options=conn_options)


class Words(llm.LLMStream):
    async def _run(self):
        if self._llm.fail:
            raise ModelFails("no model")
        said = [text for role, text in self._llm.seen[-1] if role == "user"]
        for word in ("noted: ", said[-1]):
            delta = llm.ChoiceDelta(role="assistant", content=word)
            self._event_ch.send_nowait(llm.ChatChunk(id="1", delta=delta))


async def converse(memory, *texts, model=None, user="ana", conversation="c1", **options):
    model = model or Parrot()
    agent = MemoryAgent(memory, user=user, conversation=conversation, instructions="You cook.", **options)
    async with AgentSession(llm=model) as session:
        await session.start(agent)
        try:
            for text in texts:
                await session.run(user_input=text)
        finally:
            await agent.flush()
        history = [(item.role, item.text_content) for item in session.history.items if item.type == "message"]
    return model, agent, history


class TestAgent(Promises):
    keys = False  # a turn by voice is not sent again

    def talk(self, memory, text, *, user="ana", conversation="c1", fail=False, **options):
        given = {"model": Parrot(fail), "user": user, "conversation": conversation, **options}
        model, _, _ = asyncio.run(converse(memory, text, **given))
        return [text for _, text in model.seen[-1]]


@pytest.fixture
def memory():
    with Memory(embedder=None) as memory:
        memory.conversation("before", user="ana").record("I am a vegetarian.", "ok")
        yield memory


def said(memory):
    return [(m.role, m.content) for m in memory.conversation("c1", user="ana").load()]


def test_memory_goes_behind_the_instructions_and_not_into_the_session(memory):
    model, agent, history = asyncio.run(converse(memory, "One?", "Two?"))

    texts = [text for _, text in model.seen[-1]]
    assert "vegetarian" in texts[1]
    assert [text for text in texts if "not instructions" not in text] == ["You cook.", "One?", "noted: One?", "Two?"]
    assert [text for _, text in history] == ["One?", "noted: One?", "Two?", "noted: Two?"]
    assert said(memory) == [
        ("user", "One?"),
        ("assistant", "noted: One?"),
        ("user", "Two?"),
        ("assistant", "noted: Two?"),
    ]
    assert len(agent.milliseconds) == 2


def test_two_hundred_turns_of_a_call_are_stored_once(memory):
    asyncio.run(converse(memory, *("ok" if n % 5 == 0 else f"turn {n}" for n in range(200))))

    assert len(said(memory)) == 400


def test_of_an_interrupted_reply_what_was_said_is_stored(memory):
    async def call():
        _, agent, _ = await converse(memory, "One?")
        agent._added(llm.ChatMessage(role="assistant", content=["As I was say"], interrupted=True))
        await agent.flush()

    asyncio.run(call())
    last = memory.conversation("c1", user="ana").load()[-1]
    assert (last.content, last.meta) == ("As I was say", {"incomplete": True})


def test_a_call_goes_on_when_memory_fails(memory, monkeypatch, caplog):
    def fail(*args, **more):
        raise StoreUnavailable("I am a pilot.")

    for name in ("blocks", "record"):
        monkeypatch.setattr(AdapterMemory, name, fail)
    _, _, history = asyncio.run(converse(memory, "I am a pilot.", "Two?"))

    assert [text for _, text in history] == ["I am a pilot.", "noted: I am a pilot.", "Two?", "noted: Two?"]
    told = [record.getMessage() for record in caplog.records if record.name == "holdfast"]
    assert {text.rpartition(": ")[2] for text in told} == {"StoreUnavailable"}


def test_an_agent_stores_what_is_said_while_it_has_the_session(memory):
    def agent(conversation):
        return MemoryAgent(memory, user="ana", conversation=conversation, instructions="You cook.")

    def texts(conversation):
        return [message.content for message in memory.conversation(conversation, user="ana").load()]

    async def call():
        first, second = agent("first"), agent("second")
        async with AgentSession(llm=Parrot()) as session:
            await session.start(first)
            for text, after in (
                ("One?", second),
                ("Two?", first),
                ("Three?", Agent(instructions="Bye.")),
                ("Four?", None),
            ):
                await session.run(user_input=text)
                if after is not None:
                    session.update_agent(after)
                    await asyncio.sleep(0.1)
            await first.flush()
            await second.flush()

    asyncio.run(call())
    assert texts("first") == ["One?", "noted: One?", "Three?", "noted: Three?"]
    assert texts("second") == ["Two?", "noted: Two?"]
