"""The session of the OpenAI Agents SDK over a conversation, side by side with the SDK's own `SQLiteSession`."""

from __future__ import annotations

import asyncio

import pytest
from agents import Agent, RunConfig, Runner, SQLiteSession, function_tool, set_tracing_disabled
from agents.items import ModelResponse
from agents.memory import Session
from agents.models.interface import Model
from agents.usage import Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from holdfast import Memory
from holdfast.integrations.openai_agents import HoldfastSession
from tests.integrations.frameworks.promises import ModelFails, Promises

set_tracing_disabled(True)


def text_of(item):
    content = item.get("content", "")
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


class Parrot(Model):
    """Notes what it is asked, and repeats the last words of the user; calls a tool first when there is one."""

    def __init__(self, fail=False):
        self.seen, self.fail = [], fail

    async def get_response(self, system_instructions, input, model_settings, tools, *args, **more):
        items = [{"role": "user", "content": input}] if isinstance(input, str) else input
        self.seen.append(items)
        if self.fail:
            raise ModelFails("no model")
        if tools and items[-1].get("type") != "function_call_output":
            call = ResponseFunctionToolCall(name=tools[0].name, arguments="{}", call_id="t1", type="function_call")
            return ModelResponse(output=[call], usage=Usage(), response_id=None)
        question = next(item for item in reversed(items) if item.get("role") == "user")
        text = ResponseOutputText(type="output_text", text=f"noted: {text_of(question)}", annotations=[])
        reply = ResponseOutputMessage(
            id="__fake_id__", type="message", role="assistant", status="completed", content=[text]
        )
        return ModelResponse(output=[reply], usage=Usage(), response_id=None)

    def stream_response(self, *args, **more):
        raise NotImplementedError


class TestSession(Promises):
    retries = True

    def talk(self, memory, text, *, user="ana", conversation="c1", key=None, fail=False, **options):
        model = Parrot(fail)
        session = HoldfastSession(conversation, memory, user=user, turn=key, **options)
        config = RunConfig(call_model_input_filter=session.recall)
        asyncio.run(Runner.run(Agent(name="Bo", model=model), text, session=session, run_config=config))
        return [text_of(item) for item in model.seen[-1]]


class TestSessionAlone(TestSession):
    """Without the filter: what is known, without what is recalled."""

    def talk(self, memory, text, *, user="ana", conversation="c1", key=None, fail=False, **options):
        model = Parrot(fail)
        session = HoldfastSession(conversation, memory, user=user, turn=key, **options)
        asyncio.run(Runner.run(Agent(name="Bo", model=model), text, session=session))
        return [text_of(item) for item in model.seen[-1]]


ITEMS = [
    {"role": "user", "content": "hello"},
    {"role": "user", "content": [{"type": "input_text", "text": "look"}, {"type": "input_image", "image_url": "x"}]},
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {"type": "function_call", "call_id": "t1", "name": "clock", "arguments": '{"zone": "ÜTC 🕛"}'},
    {"type": "function_call_output", "call_id": "t1", "output": "noon"},
    {
        "type": "message",
        "id": "m1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "It is noon.", "annotations": []}],
    },
    {"role": "user", "content": "ok"},
    {"role": "user", "content": "ok"},
]


@pytest.fixture(params=["holdfast", "sqlite"])
def session(request):
    if request.param == "sqlite":
        yield SQLiteSession("s1")
    else:
        with Memory(embedder=None) as memory:
            yield HoldfastSession("s1", memory, user="ana")


def run(call):
    return asyncio.run(call)


def test_items_come_back_as_they_were_given(session):
    assert isinstance(session, Session)
    run(session.add_items(ITEMS))

    assert run(session.get_items()) == ITEMS


@pytest.mark.parametrize("limit", [0, 1, 3, 8, 99])
def test_a_limit_means_the_newest(session, limit):
    run(session.add_items(ITEMS))

    assert run(session.get_items(limit)) == (ITEMS[-limit:] if limit else [])


def test_pop_returns_the_newest_until_there_is_none(session):
    run(session.add_items(ITEMS[:3]))

    assert [run(session.pop_item()) for _ in range(4)] == [*reversed(ITEMS[:3]), None]
    assert run(session.get_items()) == []
    run(session.add_items(ITEMS[3:5]))
    assert run(session.get_items(1)) == [ITEMS[4]]


def test_clear_leaves_an_empty_session(session):
    run(session.add_items(ITEMS))
    run(session.clear_session())

    assert run(session.get_items()) == []


def test_adding_nothing_changes_nothing(session):
    run(session.add_items([]))

    assert run(session.get_items()) == []


def test_tools_work_in_a_session():
    @function_tool
    def clock() -> str:
        """Return the time."""
        return "noon"

    with Memory(embedder=None) as memory:
        model, session = Parrot(), HoldfastSession("s1", memory, user="ana")
        run(Runner.run(Agent(name="Bo", model=model, tools=[clock]), "What time is it?", session=session))
        kinds = [item.get("type", item.get("role")) for item in run(session.get_items())]

        assert kinds == ["user", "function_call", "function_call_output", "message"]


def test_what_is_popped_is_no_longer_believed():
    with Memory(embedder=None) as memory:
        session = HoldfastSession("s1", memory, user="ana")
        run(session.add_items([{"role": "user", "content": "I am a vegetarian."}]))
        assert memory.user("ana").facts()
        run(session.pop_item())

        assert not memory.user("ana").facts()


def test_a_paused_conversation_goes_on_in_its_object():
    with Memory(embedder=None) as memory:
        memory.user("ana").pause()
        session = HoldfastSession("s1", memory, user="ana")
        model = Parrot()
        for text in ("one", "two"):
            run(Runner.run(Agent(name="Bo", model=model), text, session=session))

        assert [text_of(item) for item in model.seen[-1]] == ["one", "noted: one", "two"]
        assert memory.conversation("s1", user="ana").load() == []


def test_what_a_paused_user_said_goes_with_an_erasure():
    with Memory(embedder=None) as memory:
        session = HoldfastSession("s1", memory, user="ana")
        run(session.add_items([{"role": "user", "content": "one"}]))
        memory.user("ana").pause()
        run(session.add_items([{"role": "user", "content": "two"}]))
        held = run(session.get_items(limit=9))
        memory.user("ana").erase()

        assert [text_of(item) for item in held] == ["two"]
        assert run(session.get_items(limit=9)) == []


def test_an_edited_message_says_what_it_says_now():
    with Memory(embedder=None) as memory:
        session = HoldfastSession("s1", memory, user="ana")
        run(session.add_items(ITEMS[:1]))
        memory.conversation("s1", user="ana").edit(1, "good day")

        assert run(session.get_items()) == [{"role": "user", "content": "good day"}]
