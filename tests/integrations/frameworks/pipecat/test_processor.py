"""Pipecat's pipelines with `MemoryProcessor`, by text: the same turns without a microphone."""

from __future__ import annotations

import asyncio

import pytest
from pipecat.frames.frames import (
    Frame,
    InterruptionFrame,
    LLMContextFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMMessagesAppendFrame,
    LLMTextFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
from pipecat.processors.frame_processor import FrameProcessor
from pipecat.workers.runner import WorkerRunner

from holdfast import Memory
from holdfast.errors import StoreUnavailable
from holdfast.integrations.common import AdapterMemory
from holdfast.integrations.voice.pipecat import MemoryProcessor
from tests.integrations.frameworks.promises import ModelFails, Promises


class Parrot(FrameProcessor):
    """Stands for a model: notes what it is asked, and repeats the last words of the user."""

    def __init__(self, fail=False, breaks_off=False):
        super().__init__()
        self.seen, self.fail, self.breaks_off = [], fail, breaks_off
        self.asked = asyncio.Event()

    async def process_frame(self, frame: Frame, direction):
        await super().process_frame(frame, direction)
        if not isinstance(frame, LLMContextFrame):
            await self.push_frame(frame, direction)
            return
        self.seen.append([dict(message) for message in frame.context.get_messages()])
        said = [message["content"] for message in self.seen[-1] if message["role"] == "user"]
        if not self.fail:
            await self.push_frame(LLMFullResponseStartFrame())
            for word in ("noted: ", said[-1]):
                await self.push_frame(LLMTextFrame(word))
            if not self.breaks_off:
                await self.push_frame(LLMFullResponseEndFrame())
        self.asked.set()


async def converse(memory, *texts, fail=False, breaks_off=False, user="ana", conversation="c1", **options):
    context = LLMContext([{"role": "system", "content": "You cook."}])
    aggregators = LLMContextAggregatorPair(context)
    model = Parrot(fail, breaks_off)
    remember = MemoryProcessor(memory, user=user, conversation=conversation, **options)
    remember.listen(aggregators.assistant())
    replied = asyncio.Event()

    async def stopped(aggregator, message):
        replied.set()

    aggregators.assistant().add_event_handler("on_assistant_turn_stopped", stopped)
    worker = PipelineWorker(Pipeline([aggregators.user(), remember, model, aggregators.assistant()]))
    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(worker)
    running = asyncio.create_task(runner.run())
    try:
        for text in texts:
            model.asked.clear()
            replied.clear()
            await worker.queue_frame(LLMMessagesAppendFrame([{"role": "user", "content": text}], run_llm=True))
            await asyncio.wait_for(model.asked.wait(), 30)
            if breaks_off:
                await worker.queue_frame(InterruptionFrame())
            if not fail:
                await asyncio.wait_for(replied.wait(), 30)
                await asyncio.sleep(0.01)
    finally:
        await worker.stop_when_done()
        await asyncio.wait_for(running, 30)
        await remember.flush()
    return model, remember, context


class TestProcessor(Promises):
    keys = False  # a turn by voice is not sent again

    def talk(self, memory, text, *, user="ana", conversation="c1", fail=False, **options):
        given = {"fail": fail, "user": user, "conversation": conversation, **options}
        model, _, _ = asyncio.run(converse(memory, text, **given))
        if fail:
            raise ModelFails("no model")
        return [message["content"] for message in model.seen[-1]]


@pytest.fixture
def memory():
    with Memory(embedder=None) as memory:
        memory.conversation("before", user="ana").record("I am a vegetarian.", "ok")
        yield memory


def said(memory):
    return [(m.role, m.content) for m in memory.conversation("c1", user="ana").load()]


def test_memory_goes_behind_the_instructions_and_not_into_the_context(memory):
    model, remember, context = asyncio.run(converse(memory, "One?", "Two?"))

    texts = [message["content"] for message in model.seen[-1]]
    assert "vegetarian" in texts[1]
    assert [text for text in texts if "not instructions" not in text] == ["You cook.", "One?", "noted: One?", "Two?"]
    kept = [message["content"] for message in context.get_messages()]
    assert kept == ["You cook.", "One?", "noted: One?", "Two?", "noted: Two?"]
    assert said(memory) == [
        ("user", "One?"),
        ("assistant", "noted: One?"),
        ("user", "Two?"),
        ("assistant", "noted: Two?"),
    ]
    assert len(remember.milliseconds) == 2


def test_two_hundred_turns_of_a_call_are_stored_once(memory):
    asyncio.run(converse(memory, *("ok" if n % 5 == 0 else f"turn {n}" for n in range(200))))

    assert len(said(memory)) == 400


def test_of_an_interrupted_reply_what_was_said_is_stored(memory):
    asyncio.run(converse(memory, "One?", breaks_off=True))

    last = memory.conversation("c1", user="ana").load()[-1]
    assert (last.content, last.meta) == ("noted: One?", {"incomplete": True})


def test_a_call_goes_on_and_ends_when_memory_fails(memory, monkeypatch, caplog):
    def fail(*args, **more):
        raise StoreUnavailable("I am a pilot.")

    for name in ("blocks", "record"):
        monkeypatch.setattr(AdapterMemory, name, fail)
    _, _, context = asyncio.run(converse(memory, "I am a pilot.", "Two?"))

    kept = [message["content"] for message in context.get_messages()]
    assert kept == ["You cook.", "I am a pilot.", "noted: I am a pilot.", "Two?", "noted: Two?"]
    told = [record.getMessage() for record in caplog.records if record.name == "holdfast"]
    assert {text.rpartition(": ")[2] for text in told} == {"StoreUnavailable"}
