"""Strands agents with `HoldfastPlugin`."""

from __future__ import annotations

import pytest
from strands import Agent, tool
from strands.models import Model

from holdfast import Memory
from holdfast.errors import BadInput
from holdfast.integrations.strands import HoldfastPlugin
from tests.integrations.frameworks.promises import ModelFails, Promises


class Parrot(Model):
    """Notes what it is asked, and repeats the last words of the user; first calls *tool* when there is one."""

    def __init__(self, fail=False, tool=None):
        self.seen, self.trailing, self.fail, self.tool = [], [], fail, tool

    def update_config(self, **config):
        pass

    def get_config(self):
        return {}

    def structured_output(self, output_model, prompt, system_prompt=None, **more):
        raise NotImplementedError

    async def stream(self, messages, tool_specs=None, system_prompt=None, **more):
        self.seen.append([dict(message) for message in messages])
        if self.fail:
            raise ModelFails("no model")
        said = [
            block["text"]
            for message in messages
            if message["role"] == "user"
            for block in message["content"]
            if "text" in block and "not instructions" not in block["text"]
        ]
        yield {"messageStart": {"role": "assistant"}}
        if self.tool and len(self.seen) == 1:
            yield {"contentBlockStart": {"start": {"toolUse": {"name": self.tool, "toolUseId": "t1"}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": "{}"}}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "tool_use"}}
            return
        yield {"contentBlockDelta": {"delta": {"text": f"noted: {said[-1]}"}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


def texts(messages):
    return [block["text"] for message in messages for block in message["content"] if "text" in block]


class TestPlugin(Promises):
    def talk(self, memory, text, *, user="ana", conversation="c1", key=None, fail=False, **options):
        model = Parrot(fail)
        plugin = HoldfastPlugin(memory, user=user, conversation=conversation, **options)
        state = {"idempotency_key": key} if key else {}
        Agent(model=model, plugins=[plugin], callback_handler=None)(text, invocation_state=state)
        return texts(model.seen[-1])


@pytest.fixture
def memory():
    with Memory(embedder=None) as memory:
        memory.conversation("before", user="ana").record("I am a vegetarian.", "ok")
        yield memory


def test_an_agent_that_goes_on_has_its_own_messages_and_memory_around_them(memory):
    model = Parrot()
    agent = Agent(model=model, plugins=[HoldfastPlugin(memory, user="ana", conversation="c1")], callback_handler=None)
    for text in ("one", "two"):
        agent(text)

    roles = [message["role"] for message in model.seen[-1]]
    assert roles == ["user", "assistant", "user"]
    assert "vegetarian" in model.seen[-1][0]["content"][0]["text"]
    assert [text for text in texts(model.seen[-1]) if "not instructions" not in text] == ["one", "noted: one", "two"]
    assert texts(agent.messages) == ["one", "noted: one", "two", "noted: two"]


def test_memory_stays_in_place_while_tools_run(memory):
    @tool
    def clock() -> str:
        """Return the time."""
        return "noon"

    model = Parrot(tool="clock")
    agent = Agent(
        model=model,
        tools=[clock],
        plugins=[HoldfastPlugin(memory, user="ana", conversation="c1")],
        callback_handler=None,
    )
    agent("What may I cook at noon?")

    first, second = model.seen
    assert second[0]["content"][0] == first[0]["content"][0]
    assert "toolResult" in second[-1]["content"][0]
    assert [(m.role, m.content) for m in memory.conversation("c1", user="ana").load()] == [
        ("user", "What may I cook at noon?"),
        ("assistant", "noted: What may I cook at noon?"),
    ]


def test_an_invocation_names_the_user_and_the_conversation(memory):
    agent = Agent(model=Parrot(), plugins=[HoldfastPlugin(memory)], callback_handler=None)
    agent("I am a pilot.", invocation_state={"user_id": "cy", "session_id": "c9"})

    assert memory.conversation("c9", user="cy").load()[0].content == "I am a pilot."
    with pytest.raises(BadInput, match="whose memory"):
        agent("hi")
