"""Agno agents and teams with `memory_options`."""

from __future__ import annotations

import asyncio

import pytest
from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.db.sqlite import SqliteDb
from agno.learn.stores import LearningStore
from agno.models.base import Model
from agno.models.message import Message
from agno.models.response import ModelResponse
from agno.run.base import RunStatus
from agno.team import Team

from holdfast import AsyncMemory, Memory
from holdfast.integrations.agno import memory_options
from tests.integrations.frameworks.promises import BLOCK, ModelFails, Promises


class Parrot(Model):
    """Notes what it is asked, and repeats the last words of the user."""

    def __init__(self, fail=False):
        super().__init__(id="parrot")
        self.seen, self.fail = [], fail

    def invoke(self, messages, assistant_message, **more):
        self.seen.append([(message.role, str(message.content)) for message in messages])
        if self.fail:
            raise ModelFails("no model")
        said = [text for role, text in self.seen[-1] if role == "user"]
        return ModelResponse(role="assistant", content=f"noted: {said[-1]}")

    async def ainvoke(self, *given, **named):
        return self.invoke(*given, **named)

    def invoke_stream(self, *given, **named):
        yield self.invoke(*given, **named)

    async def ainvoke_stream(self, *given, **named):
        yield self.invoke(*given, **named)

    def _parse_provider_response(self, response, **more):
        return response

    def _parse_provider_response_delta(self, response, **more):
        return response


def texts(prompt):
    """Return the texts of a prompt; of the system message, each block that memory added is one."""
    found = []
    for _, text in prompt:
        head, *blocks = text.split(BLOCK)
        found += [head, *(BLOCK + block for block in blocks)]
    return found


class TestOptions(Promises):
    def talk(self, memory, text, *, user="ana", conversation="c1", key=None, fail=False, **options):
        model = Parrot(fail)
        agent = Agent(model=model, db=InMemoryDb(), telemetry=False, **memory_options(memory, **options))
        named = {"metadata": {"idempotency_key": key}} if key else {}
        done = agent.run(text, user_id=user, session_id=conversation, **named)
        if done.status == RunStatus.error:
            raise ModelFails(done.content)
        return texts(model.seen[-1])


@pytest.fixture
def memory():
    with Memory(embedder=None) as memory:
        memory.conversation("before", user="ana").record("I am a vegetarian.", "ok")
        yield memory


def said(memory, conversation="c1", user="ana"):
    return [(m.role, m.content) for m in memory.conversation(conversation, user=user).load()]


TURN = [("user", "What may I cook?"), ("assistant", "noted: What may I cook?")]


def test_it_is_a_learning_store(memory):
    (store,) = memory_options(memory)["learning"].stores.values()

    assert isinstance(store, LearningStore)


def test_a_stored_run_holds_nothing_of_memory(memory, tmp_path):
    db = SqliteDb(db_file=str(tmp_path / "agno.db"))
    model = Parrot()
    agent = Agent(model=model, db=db, telemetry=False, add_history_to_context=True, **memory_options(memory))
    for text in ("one", "What may I cook?"):
        agent.run(text, user_id="ana", session_id="c1")

    assert [role for role, _ in model.seen[-1]] == ["system", "user", "assistant", "user"]
    stored = agent.get_session(session_id="c1", user_id="ana").get_messages()
    assert [m.content for m in stored if m.role != "system"] == ["one", "noted: one", *(text for _, text in TURN)]


def test_an_async_run_stores_the_same(tmp_path):
    async def talk():
        async with AsyncMemory(tmp_path / "chat.db", embedder=None) as memory:
            await memory.conversation("before", user="ana").record("I am a vegetarian.", "ok")
            model = Parrot()
            agent = Agent(model=model, db=InMemoryDb(), telemetry=False, **memory_options(memory))
            await agent.arun("What may I cook?", user_id="ana", session_id="c1")
            return model.seen[-1]

    prompt = asyncio.run(talk())
    assert "vegetarian" in prompt[0][1]
    with Memory(tmp_path / "chat.db", embedder=None) as memory:
        assert said(memory) == TURN


def test_a_streamed_run_stores_the_same(memory):
    agent = Agent(model=Parrot(), db=InMemoryDb(), telemetry=False, **memory_options(memory))
    for _ in agent.run("What may I cook?", user_id="ana", session_id="c1", stream=True):
        pass

    assert said(memory) == TURN


def test_a_team_remembers(memory):
    model = Parrot()
    team = Team(
        members=[Agent(model=Parrot())], model=model, db=InMemoryDb(), telemetry=False, **memory_options(memory)
    )
    team.run("What may I cook?", user_id="ana", session_id="c1")

    assert "vegetarian" in model.seen[-1][0][1]
    assert said(memory) == TURN


@pytest.mark.parametrize(
    "given",
    [
        Message(role="user", content="What may I cook?"),
        [Message(role="assistant", content="Hello."), Message(role="user", content="What may I cook?")],
        [{"role": "assistant", "content": "Hello."}, {"role": "user", "content": "What may I cook?"}],
        ["What may I cook?"],
    ],
)
def test_of_each_form_of_input_the_users_words_are_stored(memory, given):
    Agent(model=Parrot(), db=InMemoryDb(), telemetry=False, **memory_options(memory)).run(
        given, user_id="ana", session_id="c1"
    )

    assert said(memory) == TURN


def test_a_run_that_names_no_user_is_an_error(memory):
    model = Parrot()
    done = Agent(model=model, db=InMemoryDb(), telemetry=False, **memory_options(memory)).run("Hello.", session_id="c1")

    assert done.status == RunStatus.error
    assert "whose memory" in done.content
    assert model.seen == []


def test_an_agent_without_a_database_is_an_error(memory):
    done = Agent(model=Parrot(), telemetry=False, **memory_options(memory)).run("Hello.", user_id="ana")

    assert done.status == RunStatus.error
    assert "db=InMemoryDb()" in done.content
