"""However a wrapped call ends, its turn is stored once; many at once never mix."""

from __future__ import annotations

import asyncio
import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast import (
    InMemoryMessages,
    Memory,
    with_memory,
)
from holdfast.errors import BadInput, Conflict
from holdfast.integrations.calls.strategies import Buffer

from .callables import later, later_words, words

STREAMED = [("user", "hi there"), ("assistant", "I heard: hithere")]


# What goes wrong.


class Down(Exception):
    pass


def failing_once(reply):
    """A callable that fails the first time it is called."""
    calls = []

    def model(messages):
        calls.append(messages)
        if len(calls) == 1:
            raise Down
        return reply(messages) if callable(reply) else reply

    model.calls = calls
    return model


def test_a_failed_call_neither_loses_nor_doubles_the_turn(place):
    model = failing_once("fine")
    chat = with_memory(model, place.where)
    with pytest.raises(Down):
        chat("hi there")
    stored = place.said()
    chat("hi there")

    assert stored == [("user", "hi there")]
    assert place.said() == [("user", "hi there"), ("assistant", "fine")]
    assert model.calls[0] == model.calls[1]


def test_a_failed_async_call_neither():
    store = InMemoryMessages()

    async def down(messages):
        raise Down

    with pytest.raises(Down):
        asyncio.run(with_memory(down, store)("hi"))
    asyncio.run(with_memory(later, store)("hi"))

    assert [m.content for m in store.load("default")] == ["hi", "I heard: hi"]


def test_another_input_after_a_failure_is_another_turn(place):
    chat = with_memory(failing_once("fine"), place.where)
    with pytest.raises(Down):
        chat("one")
    chat("two")

    assert place.said() == [("user", "one"), ("user", "two"), ("assistant", "fine")]


def test_the_same_words_again_after_a_reply_are_a_new_turn(place):
    chat = with_memory(lambda messages: "fine", place.where)
    chat("ok")
    chat("ok")

    assert place.said() == [("user", "ok"), ("assistant", "fine")] * 2


def test_a_stream_that_is_left_is_stored_with_a_mark(place):
    stream = with_memory(words, place.where)("hi there")
    next(stream), next(stream)
    stream.close()

    assert place.said() == [("user", "hi there"), ("assistant", "I heard: hi", "incomplete")]


def test_a_stream_that_is_thrown_away_is_stored_with_a_mark(place):
    for _ in with_memory(words, place.where)("hi there"):
        break
    gc.collect()

    assert place.said()[1:] == [("assistant", "I heard: ", "incomplete")]


def test_an_async_stream_that_is_left_is_stored_with_a_mark(place):
    async def talk():
        stream = with_memory(later_words, place.where)("hi there")
        await anext(stream)
        await stream.aclose()

    asyncio.run(talk())
    assert place.said()[1:] == [("assistant", "I heard: ", "incomplete")]


def test_a_cancelled_task_stores_what_was_said(place):
    async def endless(messages):
        yield "so far"
        await asyncio.sleep(60)

    async def talk():
        async def consume():
            async for _ in with_memory(endless, place.where)("hi"):
                heard.set()

        heard = asyncio.Event()
        task = asyncio.create_task(consume())
        await heard.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(talk())
    assert place.said() == [("user", "hi"), ("assistant", "so far", "incomplete")]


def test_a_task_that_is_cancelled_between_the_chunks_of_a_sync_stream_stores_what_was_said(place):
    asked, go_on, closed = threading.Event(), threading.Event(), []

    def slow(messages):
        try:
            yield "so far"
            asked.set()
            go_on.wait(30)
            yield "too late"
        finally:
            closed.append(True)

    async def talk():
        async def consume():
            async for _ in with_memory(slow, place.where).astream("hi", {"configurable": {"session_id": "default"}}):
                pass

        task = asyncio.create_task(consume())
        await asyncio.to_thread(asked.wait, 30)
        task.cancel()
        await asyncio.sleep(0.01)
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(talk())
    assert closed
    assert place.said() == [("user", "hi"), ("assistant", "so far", "incomplete")]


@pytest.mark.parametrize("call", ["ainvoke", "astream", "call"])
def test_a_call_that_is_cancelled_while_its_turn_begins_can_be_tried_again(call):
    class SlowMessages(InMemoryMessages):
        def append(self, session, new):
            begun.set()
            go_on.wait(30)
            super().append(session, new)

    begun, go_on = threading.Event(), threading.Event()

    async def answer(messages):
        return "fine"

    chat = with_memory(answer, store := SlowMessages())

    async def ask():
        if call == "astream":
            return [chunk async for chunk in chat.astream("hi", session="s", idempotency_key="k")]
        return await (chat if call == "call" else chat.ainvoke)("hi", session="s", idempotency_key="k")

    async def talk():
        task = asyncio.create_task(ask())
        await asyncio.to_thread(begun.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()

    asyncio.run(talk())  # waits for its threads
    asyncio.run(ask())

    assert [message.content for message in store.load("s")] == ["hi", "fine"]


def test_a_stream_that_fails_stores_what_was_said_and_can_be_tried_again(place):
    def breaks(messages):
        yield "half a "
        raise Down

    with pytest.raises(Down):
        list(with_memory(breaks, place.where)("hi"))
    seen = []
    with_memory(lambda messages: seen.extend(messages) or "whole", place.where)("hi")

    assert place.said() == [("user", "hi"), ("assistant", "half a ", "incomplete"), ("assistant", "whole")]
    assert (seen[-1]["role"], seen[-1]["content"]) == ("user", "hi")


def test_a_stream_that_says_nothing_leaves_the_turn_open(place):
    def silent(messages):
        raise Down
        yield

    with pytest.raises(Down):
        list(with_memory(silent, place.where)("hi"))
    with_memory(lambda messages: "fine", place.where)("hi")

    assert place.said() == [("user", "hi"), ("assistant", "fine")]


def test_the_model_is_told_that_nobody_listens_any_more():
    closed = []

    def model(messages):
        try:
            yield "one"
            yield "two"
        finally:
            closed.append(True)

    stream = with_memory(model, InMemoryMessages())("hi")
    next(stream)
    stream.close()

    assert closed == [True]


def test_a_stream_that_nobody_looks_into_can_be_asked_for_again(place):
    chat = with_memory(words, place.where)
    chat("hi there")
    gc.collect()
    list(chat("hi there"))

    assert place.said() == STREAMED


@pytest.mark.parametrize("reply", [None, 5, {"nothing": "here"}, object()])
def test_a_reply_that_cannot_be_read_is_an_error_with_the_way_out(reply):
    with pytest.raises(BadInput, match="reply_text"):
        with_memory(lambda messages: reply, InMemoryMessages())("hi")


def test_a_caller_can_say_where_the_text_is():
    store = InMemoryMessages()
    with_memory(lambda messages: {"out": "fine"}, store, reply_text=lambda reply: reply["out"])("hi")
    list(with_memory(lambda messages: iter([{"o": "a"}, {"o": "b"}]), store, reply_text=lambda c: c["o"])("again"))

    assert [m.content for m in store.load("default")] == ["hi", "fine", "again", "ab"]


# Idempotency keys.


def test_one_key_is_one_turn(place):
    chat = with_memory(failing_once("fine"), place.where)
    with pytest.raises(Down):
        chat("hi", idempotency_key="k1")
    chat("something else")
    chat("hi", idempotency_key="k1")
    with pytest.raises(Conflict, match="answered already"):
        chat("hi", config={"configurable": {"idempotency_key": "k1"}})

    assert sorted(place.said()) == sorted([("user", "hi"), ("user", "something else")] + [("assistant", "fine")] * 2)


def test_a_key_with_another_input_is_refused(place):
    chat = with_memory(failing_once("fine"), place.where)
    with pytest.raises(Down):
        chat("hi", idempotency_key="k1")
    with pytest.raises(Conflict):
        chat("other", idempotency_key="k1")

    assert place.said() == [("user", "hi")]


def test_the_same_words_under_two_keys_are_two_turns(place):
    chat = with_memory(lambda messages: "fine", place.where)
    chat("ok", idempotency_key="k1")
    chat("ok", idempotency_key="k2")

    assert len(place.said()) == 4


# Many at once.


def test_sessions_never_mix(place):
    def model(messages):
        mine = {
            m["content"].split()[0] for m in messages if m["role"] == "user" and not m["content"].startswith("Earlier")
        }
        return f"seen {sorted(mine)}"

    chat = with_memory(model, place.where, strategy=Buffer())
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda n: chat(f"s{n % 4} turn {n}", session=f"s{n % 4}"), range(40)))

    assert replies == [f"seen ['s{n % 4}']" for n in range(40)]
    for number in range(4):
        assert sorted(t for r, t in place.said(f"s{number}") if r == "user") == sorted(
            f"s{number} turn {n}" for n in range(number, 40, 4)
        )


def test_the_same_words_at_the_same_time_are_as_many_turns(place):
    """What is still being answered is not a turn that failed."""
    waiting = threading.Barrier(4)

    def model(messages):
        waiting.wait(timeout=20)
        return "fine"

    chat = with_memory(model, place.where)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: chat("ok"), range(4)))

    assert sorted(place.said()) == [("assistant", "fine")] * 4 + [("user", "ok")] * 4


def test_one_key_is_answered_by_one_call_at_a_time():
    inside, go = threading.Event(), threading.Event()

    def model(messages):
        inside.set()
        go.wait(timeout=20)
        return "fine"

    for where in (InMemoryMessages(), Memory(embedder=None)):
        inside.clear(), go.clear()
        chat = with_memory(model, where)
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(chat, "hi", idempotency_key="k")
            inside.wait(timeout=20)
            with pytest.raises(Conflict, match="being answered"):
                chat("hi", idempotency_key="k")
            go.set()
            assert first.result() == "fine"
