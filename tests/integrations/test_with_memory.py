"""A wrapped callable remembers, whatever it is: function, generator, async or not, over every place."""

from __future__ import annotations

import asyncio
import json
import threading
import time

import pytest

from holdfast import (
    AsyncMemory,
    CalibratedCounter,
    InMemoryMessages,
    JsonFileMessages,
    Memory,
    Message,
    UserMessages,
    with_memory,
)
from holdfast.errors import BadInput, ConfigError, StoreBusy
from holdfast.integrations.calls.strategies import Layered, Summary, SummaryBuffer, Window
from holdfast.types import RollingSummary

from .callables import last, later, later_words, words

ANSWERED = [("user", "hi there"), ("assistant", "I heard: hi there")]
STREAMED = [("user", "hi there"), ("assistant", "I heard: hithere")]


def _await_summaries():
    for writing in [one for one in threading.enumerate() if one.name == "holdfast-summary"]:
        writing.join()


# Every kind of callable.


def test_a_function_is_given_what_was_said_before(place):
    seen = []

    def model(messages):
        seen.append([(m["role"], m["content"]) for m in messages])
        return f"I heard: {last(messages)}"

    chat = with_memory(model, place.where)

    assert chat("hi there") == "I heard: hi there"
    assert place.said() == ANSWERED
    chat("and again")
    assert seen[1] == [*ANSWERED, ("user", "and again")]


def test_a_call_may_read_without_writing_and_write_without_reading(place):
    seen = []

    def model(messages):
        seen.append([(m["role"], m["content"]) for m in messages])
        return f"I heard: {last(messages)}"

    chat = with_memory(model, place.where, system="Be kind.")
    chat("hi there")
    chat("not for the record", write=False, idempotency_key="k-1")
    chat([("user", "and this"), ("user", "and that")], write=False)
    assert place.said() == ANSWERED
    assert seen[1] == [("system", "Be kind."), *ANSWERED, ("user", "not for the record")]
    assert seen[2] == [("system", "Be kind."), *ANSWERED, ("user", "and this"), ("user", "and that")]

    chat("as if new", read=False)
    assert seen[3] == [("system", "Be kind."), ("user", "as if new")]
    assert place.said() == [*ANSWERED, ("user", "as if new"), ("assistant", "I heard: as if new")]
    assert list(with_memory(words, place.where).stream("once more", write=False))
    assert len(place.said()) == 4
    with pytest.raises(BadInput, match="write must be True or False"):
        chat("hi", write="no")


def test_a_paused_user_is_shown_nothing_where_nothing_is_written():
    with Memory(embedder=None) as memory:
        chat = with_memory(str, memory, user="ana")
        chat("I'm allergic to peanuts.")
        memory.user("ana").pause()

        assert "peanut" not in chat("Any snack ideas?", write=False)


def test_an_async_function_stays_one(place):
    chat = with_memory(later, place.where)

    assert asyncio.iscoroutinefunction(chat)
    assert asyncio.run(chat("hi there")) == "I heard: hi there"
    assert place.said() == ANSWERED


def test_a_generator_streams_and_is_stored_at_its_end(place):
    stream = with_memory(words, place.where)("hi there")

    assert next(stream) == "I heard: "
    assert place.said() == [("user", "hi there")]
    assert list(stream) == ["hi", "there"]
    assert place.said() == STREAMED


def test_an_async_generator_streams_too(place):
    async def talk():
        return [chunk async for chunk in with_memory(later_words, place.where)("hi there")]

    assert asyncio.run(talk()) == ["I heard: ", "hi", "there"]
    assert place.said() == STREAMED


def test_a_function_may_hand_out_a_stream_or_something_to_await():
    """What a provider's client does with stream=True, and what a lambda hides."""
    store = InMemoryMessages()

    async def opens_a_stream(messages):
        return later_words(messages)

    async def talk():
        kinds = [
            with_memory(lambda m: later(m), store, session="await"),
            with_memory(opens_a_stream, store, session="open"),
        ]
        assert await kinds[0]("hi there") == "I heard: hi there"
        assert [chunk async for chunk in await kinds[1]("hi there")] == ["I heard: ", "hi", "there"]
        hidden = with_memory(lambda m: later_words(m), store, session="stream")
        assert [chunk async for chunk in hidden("hi there")] == ["I heard: ", "hi", "there"]

    asyncio.run(talk())
    assert list(with_memory(lambda m: words(m), store, session="sync")("hi there")) == ["I heard: ", "hi", "there"]
    assert {s: len(store.load(s)) for s in store.sessions()} == {"await": 2, "open": 2, "stream": 2, "sync": 2}


def test_an_object_with_invoke_is_called_through_it():
    class Chain:
        def invoke(self, messages, config=None):
            return {"role": "assistant", "content": f"{last(messages)} for {config['tags']}"}

    chat = with_memory(Chain(), InMemoryMessages())

    assert chat("hi", config={"tags": "ana"})["content"] == "hi for ana"


def test_arguments_are_passed_on():
    chat = with_memory(lambda messages, tone, *, size: f"{tone} {size}", InMemoryMessages())

    assert chat("hi", "warm", size=3) == "warm 3"


def test_input_may_be_a_message_or_several(place):
    chat = with_memory(lambda messages: "fine", place.where)
    chat({"role": "user", "content": "one", "name": "Ana"})
    chat([Message("user", "two"), {"role": "user", "content": "three"}])

    assert [text for _, text in place.said()] == ["one", "fine", "two", "three", "fine"]


def test_tool_calls_are_stored_and_sent_back_with_their_results(place):
    calls = [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}]
    seen = []

    def model(messages):
        seen.append(messages)
        if messages[-1]["role"] == "user":
            return {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": calls}}]}
        return "Sunny."

    chat = with_memory(model, place.where)
    chat("What's the weather?")
    chat({"role": "tool", "tool_call_id": "c1", "content": "24 degrees"})

    assert seen[1][-2:] == [
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "content": "24 degrees"},
    ]
    assert place.said()[-1] == ("assistant", "Sunny.")


# Which session, whose memory.


CONFIGS = [
    {"session": "s1"},
    {"config": {"configurable": {"session_id": "s1"}}},
    {"config": {"metadata": {"session_id": "s1"}}},
    {"config": {"configurable": {"session_id": "s1"}, "metadata": {"session_id": "other"}}},
    {"session": "s1", "config": {"configurable": {"session_id": "other"}}},
]


@pytest.mark.parametrize("how", CONFIGS, ids=range(len(CONFIGS)))
def test_the_session_comes_from_the_call(place, how):
    with_memory(lambda messages: "fine", place.where, session="unused")("hi", **how)

    assert len(place.said("s1")) == 2


@pytest.mark.parametrize("config", [None, {}, {"configurable": None}, {"configurable": {}}, {"metadata": {"x": 1}}])
def test_without_one_there_is_a_default(place, config):
    with_memory(lambda messages: "fine", place.where)("hi", config=config)
    with_memory(lambda messages: "fine", place.where, session="mine")("hi", config=config)

    assert len(place.said("default")) == len(place.said("mine")) == 2


def test_users_of_a_memory_are_kept_apart():
    with Memory(embedder=None) as memory:
        chat = with_memory(lambda messages: f"{len(messages)}", memory, user="ana")
        first, other = chat("I'm vegetarian."), chat("hi", config={"configurable": {"user_id": "bo"}})
        named = chat("hi", user="cy")

        assert (first, other, named) == ("2", "1", "1")  # the fact that she just stated, and her words
        assert [f.value for f in memory.user("ana").facts()] != []
        assert memory.user("bo").facts() == []


@pytest.mark.parametrize("session", [5, ["a"], ""])
def test_a_session_that_is_no_name_is_refused_before_anything_is_stored(place, session):
    called = []
    chat = with_memory(called.append, place.where)
    with pytest.raises(BadInput):
        chat("hi", session=session)

    assert called == place.said() == []


def test_a_memory_gives_what_it_knows_and_not_only_what_was_said():
    with Memory(embedder=None) as memory:
        memory.conversation("old", user="ana").record("I'm allergic to peanuts.", "Noted.")
        chat = with_memory(lambda messages: str(messages), memory, user="ana", session="new", system="Be kind.")

        assert "peanut" in chat("Any snack ideas?")
        assert chat("And?").startswith("[{'role': 'system', 'content': 'Be kind.'}")
        assert "Be kind." not in [m.content for m in memory.conversation("new", user="ana").load()]


def test_an_async_memory_will_do(tmp_path):
    async def talk():
        async with AsyncMemory(tmp_path / "chat.db", embedder=None) as memory:
            await with_memory(later, memory, user="ana")("hi there")
            return [m.content for m in await memory.conversation("default", user="ana").load()]

    assert asyncio.run(talk()) == ["hi there", "I heard: hi there"]


def test_an_async_memory_is_never_opened_on_the_event_loop(tmp_path, monkeypatch):
    opened_by = []

    def opening(*args, **options):
        opened_by.append(threading.current_thread())
        return Memory(*args, **options)

    monkeypatch.setattr("holdfast.aio.Memory", opening)

    async def talk():
        memory = AsyncMemory(tmp_path / "chat.db", embedder=None)
        chat = with_memory(later, memory, user="ana")
        reply = await chat("hi there")
        await memory.close()
        return reply

    assert asyncio.run(talk()) == "I heard: hi there"
    assert len(opened_by) == 1
    assert opened_by[0] is not threading.main_thread()


# Strategies over a message store.


def test_a_message_store_shows_everything_unless_told_otherwise():
    store = InMemoryMessages()
    sizes = with_memory(lambda messages: str(len(messages)), store)

    assert [sizes("hi") for _ in range(3)] == ["1", "3", "5"]
    for strategy in (Window(1), "window/1"):
        assert with_memory(lambda messages: str(len(messages)), store, strategy=strategy)("hi") == "3"
    assert with_memory(lambda messages: str(len(messages)), store, strategy="summary/1")("hi") == "4"


def test_a_system_prompt_counts_and_is_not_stored():
    store = InMemoryMessages()
    chat = with_memory(lambda messages: messages[0]["role"], store, system="Be kind.", budget_tokens=40)

    assert chat("word " * 500) == "system"
    assert [m.role for m in store.load("default")] == ["user", "assistant"]
    with pytest.raises(BadInput, match="budget"):
        with_memory(str, store, system="word " * 100, budget_tokens=40)("hi")


@pytest.mark.parametrize("kept", ["by the store", "by the wrapper"])
def test_the_summary_is_made_after_the_reply_and_kept(kept, tmp_path):
    order = []

    def summarize(before, messages):
        order.append(f"summary of {len(messages)}")
        return f"{before} {messages[0].content}".strip()

    def model(messages):
        order.append("reply")
        return "fine"

    store = JsonFileMessages(tmp_path)
    if kept == "by the wrapper":
        store = UserMessages(Memory(embedder=None), user="ana")
    chat = with_memory(model, store, strategy=Summary(1, summarize=summarize))
    for number in range(4):
        chat(f"turn {number}")
        _await_summaries()
    seen = []
    with_memory(lambda m: seen.extend(m) or "fine", store, strategy=Summary(1, summarize=summarize))("last")
    _await_summaries()

    assert order[:7] == ["reply", "reply", "summary of 2", "reply", "summary of 2", "reply", "summary of 2"]
    assert kept == "by the wrapper" or "turn 0 turn 1 turn 2" in seen[0]["content"]


def test_a_summariser_that_fails_costs_no_reply(caplog):
    def down(before, messages):
        raise ConnectionError

    store = InMemoryMessages()
    chat = with_memory(lambda messages: str(len(messages)), store, strategy=SummaryBuffer(60, summarize=down))
    replies = [chat(f"turn {number} " + "word " * 20) for number in range(2)]
    _await_summaries()

    assert replies == ["1", "3"]
    assert len(store.load("default")) == 4
    assert "not brought up to date" in caplog.text
    assert "turn 0" not in caplog.messages[0]


def test_a_summary_that_cannot_be_kept_is_made_after_the_next_reply(tmp_path, caplog, monkeypatch):
    store = JsonFileMessages(tmp_path)
    chat = with_memory(lambda messages: "fine", store, strategy=Summary(1, summarize=lambda before, messages: "told"))
    with monkeypatch.context() as broken:
        broken.setattr(store, "save_summary", lambda session, summary: (_ for _ in ()).throw(StoreBusy("locked")))
        replies = [chat(f"turn {number}") for number in range(3)]
        _await_summaries()
    before = store.load_summary("default")
    chat("turn 3")
    _await_summaries()

    assert replies == ["fine"] * 3
    assert before is None
    assert "not brought up to date: StoreBusy" in caplog.text
    assert store.load_summary("default").text == "told"


# What does not go together.


@pytest.mark.parametrize("options", [{"strategy": Layered()}, {"strategy": "facts/2"}, {"user": "ana"}])
def test_what_needs_a_memory_is_refused_for_a_message_store(options):
    with pytest.raises(ConfigError, match=r"memory|session"):
        with_memory(str, InMemoryMessages(), **options)


def test_what_cannot_be_called_is_refused():
    with pytest.raises(ConfigError, match="cannot be called"):
        with_memory("gpt-5", InMemoryMessages())
    with pytest.raises(ConfigError, match="neither"):
        with_memory(str, {})


def test_a_counter_learns_from_what_replies_report():
    count = CalibratedCounter()
    usage = {"prompt_tokens": 300, "completion_tokens": 1}
    chat = with_memory(
        lambda m: {"model": "m1", "usage": usage, "choices": [{"message": {"content": "ok"}}]},
        InMemoryMessages(),
        count=count,
    )
    chat("word " * 200)

    assert 1.2 < count.factor("m1") < 1.6


# Stores and inputs of other makers.


class OwnStore:
    """A store as others write one: one message at a time, no summaries."""

    def __init__(self):
        self.rows = {}

    def append(self, session, message):
        self.rows.setdefault(session, []).append(Message(message.role, message.content, meta=message.meta))

    def load(self, session):
        return list(self.rows.get(session, ()))

    def clear(self, session):
        self.rows.pop(session, None)


def test_a_store_of_ones_own_is_given_one_message_at_a_time():
    store = OwnStore()
    with_memory(lambda messages: "fine", store)(
        [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hi"}]
    )

    assert [m.role for m in store.load("default")] == ["system", "user", "assistant"]


def test_what_a_cleared_session_held_does_not_come_back_in_its_summary():
    store, seen = OwnStore(), []
    chat = with_memory(lambda messages: seen.append(str(messages)) or "fine", store, strategy=Summary(1))
    for said in ("My goat is called Klementine.", "I work at Umbrella.", "a", "b"):
        chat(said)
    assert "Klementine" in seen[-1]
    store.clear("default")
    for said in ("New start", "c", "d", "e"):
        chat(said)

    assert "Klementine" not in seen[-1]
    assert "New start" in seen[-1]


def test_an_async_store_is_refused_when_it_is_given():
    class Late(OwnStore):
        async def load(self, session):
            return []

    with pytest.raises(ConfigError, match="async store"):
        with_memory(lambda messages: "fine", Late())


@pytest.mark.parametrize("strategy", [5, object()])
def test_what_is_no_strategy_is_refused_when_it_is_given(strategy):
    with pytest.raises((BadInput, ConfigError), match="strategy"):
        with_memory(lambda messages: "fine", InMemoryMessages(), strategy=strategy)


async def late_summary(before, messages):
    return "later"


@pytest.mark.parametrize("summarize", ["openai:gpt-5-mini", 3, late_summary])
def test_what_cannot_summarize_is_refused_when_it_is_given(summarize):
    for kind in (Summary, SummaryBuffer):
        with pytest.raises(ConfigError, match="summarize"):
            kind(2, summarize=summarize)


def test_an_empty_summary_leaves_the_one_before():
    history = [Message("user", f"line {number}") for number in range(6)]
    before = Summary(1, summarize=lambda before, messages: "all of it").fold(history)

    assert (
        Summary(1, summarize=lambda before, messages: " ").fold([*history, Message("user", "more")], before) == before
    )


def test_no_reply_waits_for_a_summary():
    started, go_on = threading.Event(), threading.Event()

    def slowly(before, messages):
        started.set()
        assert go_on.wait(30)
        return "They said hi."

    store = InMemoryMessages()
    chat = with_memory(lambda messages: "fine", store, strategy=Summary(1, summarize=slowly))
    chat("hi"), chat("and"), chat("so")  # returns while the summary is being written
    assert started.wait(30)
    assert (store.load_summary("default") or RollingSummary()).through == 0
    go_on.set()
    while (kept := store.load_summary("default")) is None or kept.through < 4:
        time.sleep(0.01)
    assert kept.text == "They said hi."


def test_sessions_of_a_memory_share_nothing_unless_a_user_is_named():
    seen = []
    with Memory(embedder=None) as memory:
        chat = with_memory(lambda messages: seen.append(str(messages)) or "Noted.", memory)
        chat("I'm allergic to peanuts.", session="alice")
        chat("What do you know about me?", session="bob")
        assert "peanuts" not in seen[-1]
        chat("What do you know about me?", session="alice")
        assert "peanuts" in seen[-1]


@pytest.mark.parametrize("config", ["s1", 5, [1], {"session_id": "s1"}, {"thread_id": "s1"}, {"user_id": "ana"}])
def test_a_configuration_that_names_them_elsewhere_is_refused(config):
    store = InMemoryMessages()
    with pytest.raises(BadInput, match="config"):
        with_memory(lambda messages: "fine", store).invoke("hi", config)
    assert store.sessions() == []


def test_a_thread_id_names_the_session_too():
    store = InMemoryMessages()
    with_memory(lambda messages: "fine", store).invoke("hi", {"configurable": {"thread_id": "t1"}})

    assert store.sessions() == ["t1"]


def test_a_reply_is_the_assistants_whatever_it_says_itself_to_be():
    with Memory(embedder=None) as memory:
        with_memory(lambda messages: Message("user", "I live in Cairo."), memory, user="ana")("Where do you live?")

        assert [m.role for m in memory.conversation("default", user="ana").load()] == ["user", "assistant"]
        assert memory.user("ana").facts() == []


def test_a_picture_reaches_the_model(place):
    seen = []
    parts = [{"type": "text", "text": "What breed?"}, {"type": "image_url", "image_url": {"url": "data:,x"}}]
    chat = with_memory(lambda messages: seen.append(messages[-1]) or "A poodle.", place.where)
    chat({"role": "user", "content": parts})

    assert seen[-1]["content"] == parts


def test_a_mapping_that_is_no_message_is_refused_with_what_to_name():
    with pytest.raises(BadInput, match="input_key='question'"):
        with_memory(lambda messages: "fine", InMemoryMessages())({"question": "hi"})
    with pytest.raises(BadInput, match="has no 'question'"):
        with_memory(lambda messages: "fine", InMemoryMessages(), input_key="question")({"text": "hi"})


def test_a_pair_of_role_and_text_is_one_message():
    store = InMemoryMessages()
    store.append("s", ("human", "I like tea"))
    store.append("s", [("ai", "Noted."), "and cake"])

    assert [(m.role, m.content) for m in store.load("s")] == [
        ("user", "I like tea"),
        ("assistant", "Noted."),
        ("user", "and cake"),
    ]


def test_a_history_that_langchain_wrote_to_a_file_is_taken(tmp_path):
    written = '[{"type": "human", "data": {"content": "I like tea", "type": "human", "id": null}}, {"type": "ai", "data": {"content": "Noted."}}]'
    store = JsonFileMessages(tmp_path)
    store.append("s", json.loads(written))

    assert [(m.role, m.content) for m in store.load("s")] == [("user", "I like tea"), ("assistant", "Noted.")]


def test_what_a_cut_stream_said_is_not_shown_beside_its_retry():
    seen = []

    def model(messages):
        seen.append([m["content"] for m in messages])
        yield "The ferry "
        yield "is late."

    chat = with_memory(model, InMemoryMessages())
    cut = chat.stream("Q")
    next(cut), cut.close()
    chat.invoke("Q"), chat.invoke("next")

    assert seen[-1] == ["Q", "The ferry is late.", "next"]
