"""Crews, agents and flows of CrewAI within a `CrewMemory.turn`."""

from __future__ import annotations

import asyncio
import os

os.environ.setdefault("CREWAI_DISABLE_TELEMETRY", "true")
os.environ.setdefault("OTEL_SDK_DISABLED", "true")
os.environ.setdefault("CREWAI_TRACING_ENABLED", "false")

import pytest
from crewai import Agent, Crew, Task
from crewai.flow import Flow, start
from crewai.llms.base_llm import BaseLLM
from crewai.tools import tool

from holdfast import Memory
from holdfast.errors import BadInput
from holdfast.integrations.crewai import CrewMemory
from tests.integrations.frameworks.promises import BLOCK, ModelFails, Promises


class Parrot(BaseLLM):
    """Notes what it is asked, and repeats what the user said."""

    def __init__(self, fail=False, tool=None):
        super().__init__(model="parrot")
        self._seen, self._fail, self._tool = [], fail, tool

    def call(self, messages, tools=None, callbacks=None, **more):
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        self._invoke_before_llm_call_hooks(messages, None)
        self._seen.append([str(message["content"]) for message in messages])
        if self._fail:
            raise ModelFails("no model")
        if self._tool and len(self._seen) == 1:
            return f"Thought: look\nAction: {self._tool}\nAction Input: {{}}"
        asked = next(text for text in reversed(self._seen[-1]) if "said: " in text)
        text = asked.partition("said: ")[2].partition("|")[0]
        answer = f"Thought: I know\nFinal Answer: noted: {text}"
        return self._invoke_after_llm_call_hooks(messages, answer, None)

    def supports_function_calling(self):
        return False

    def supports_stop_words(self):
        return True

    def get_context_window_size(self):
        return 8_000


def crew_of(model, tools=()):
    agent = Agent(role="cook", goal="answer", backstory="You cook.", llm=model, tools=list(tools), max_retry_limit=0)
    task = Task(description="The user said: {question}|", expected_output="an answer", agent=agent)
    return Crew(agents=[agent], tasks=[task])


class TestCrew(Promises):
    def talk(self, memory, text, *, user="ana", conversation="c1", key=None, fail=False, **options):
        model = Parrot(fail)
        turn = CrewMemory(memory, **options).turn(text, user=user, conversation=conversation, idempotency_key=key)
        with turn:
            crew_of(model).kickoff(inputs={"question": text})
        return model._seen[-1]


@pytest.fixture
def memory():
    with Memory(embedder=None) as memory:
        memory.conversation("before", user="ana").record("I am a vegetarian.", "ok")
        yield memory


def said(memory, conversation="c1"):
    return [(m.role, m.content) for m in memory.conversation(conversation, user="ana").load()]


def test_what_a_crew_returns_holds_no_memory_and_its_prompt_stays_the_same_while_tools_run(memory):
    @tool("clock")
    def clock() -> str:
        """Return the time."""
        return "noon"

    model = Parrot(tool="clock")
    with CrewMemory(memory).turn("What may I cook?", user="ana", conversation="c1"):
        output = crew_of(model, [clock]).kickoff(inputs={"question": "What may I cook?"})

    first, second = model._seen[:2]
    assert any("vegetarian" in text for text in first)
    assert second[: len(first)] == first
    assert not any(BLOCK in str(message["content"]) for message in output.tasks_output[0].messages)
    assert said(memory) == [("user", "What may I cook?"), ("assistant", "noted: What may I cook?")]


def test_an_agent_alone_and_async(memory):
    async def run():
        model = Parrot()
        agent = Agent(role="cook", goal="answer", backstory="You cook.", llm=model)
        async with CrewMemory(memory).turn("What may I cook?", user="ana", conversation="c1"):
            await agent.kickoff_async("The user said: What may I cook?|")
        return model._seen[-1]

    assert any("vegetarian" in text for text in asyncio.run(run()))
    assert said(memory) == [("user", "What may I cook?"), ("assistant", "noted: What may I cook?")]


def test_a_flow_that_calls_a_model(memory):
    model = Parrot()

    class Chat(Flow):
        @start()
        def answer(self):
            model.call([{"role": "user", "content": "The user said: What may I cook?|"}])
            return "Lentils."

    with CrewMemory(memory).turn("What may I cook?", user="ana", conversation="c1"):
        Chat().kickoff()

    assert any("vegetarian" in text for text in model._seen[-1])
    assert said(memory) == [("user", "What may I cook?"), ("assistant", "Lentils.")]


def test_a_program_may_say_what_the_reply_is(memory):
    with CrewMemory(memory).turn("What may I cook?", user="ana", conversation="c1") as turn:
        turn.reply = "Beans."

    assert said(memory)[-1] == ("assistant", "Beans.")


def test_calls_outside_of_a_turn_have_no_memory(memory):
    model = Parrot()
    with CrewMemory(memory).turn("hi", user="ana", conversation="c1"):
        pass
    model.call([{"role": "user", "content": "The user said: What may I cook?|"}])

    assert not any("vegetarian" in text for text in model._seen[-1])


def test_a_turn_without_a_user_is_an_error(memory):
    with pytest.raises(BadInput, match="whose memory"):
        CrewMemory(memory).turn("hi", conversation="c1")
