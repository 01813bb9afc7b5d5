"""LangGraph's checkpointer: its own conformance suite, unmodified, and what it knows nothing of: users, erasure, pauses."""

from __future__ import annotations

import asyncio
from operator import add
from typing import Annotated, TypedDict

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.graph import END, START, StateGraph

from holdfast import Memory
from holdfast.errors import BadInput
from holdfast.integrations.langgraph import HoldfastSaver


class Talk(TypedDict):
    said: Annotated[list[str], add]


def graph(saver):
    builder = StateGraph(Talk)
    builder.add_node("reply", lambda state: {"said": [f"reply to {state['said'][-1]}"]})
    builder.add_edge(START, "reply")
    builder.add_edge("reply", END)
    return builder.compile(checkpointer=saver)


def thread(name="web-42", user="ana"):
    return {"configurable": {"thread_id": name, "user_id": user}}


def test_it_passes_the_conformance_suite_of_langgraph():
    @checkpointer_test(name="HoldfastSaver")
    async def fresh():
        with Memory(embedder=None) as memory:
            yield HoldfastSaver(memory, user="ana")

    report = asyncio.run(validate(fresh))

    report.print_report()
    assert report.passed_all(), "see the report above"


def test_a_graph_goes_on_in_another_process_where_it_stopped(tmp_path):
    with Memory(tmp_path / "chat.db", embedder=None) as memory:
        graph(HoldfastSaver(memory)).invoke({"said": ["one"]}, thread())
    with Memory(tmp_path / "chat.db", embedder=None) as memory:
        state = graph(HoldfastSaver(memory)).invoke({"said": ["two"]}, thread())

        assert state["said"] == ["one", "reply to one", "two", "reply to two"]


def test_two_users_with_one_thread_id_never_mix():
    with Memory(embedder=None) as memory:
        agent = graph(HoldfastSaver(memory))
        agent.invoke({"said": ["ana's"]}, thread())
        bo = agent.invoke({"said": ["bo's"]}, thread(user="bo"))

        assert bo["said"] == ["bo's", "reply to bo's"]
        assert [s.values["said"][0] for s in agent.get_state_history(thread()) if s.values.get("said")] == ["ana's"] * 2


def test_deleting_a_thread_of_one_user_leaves_that_of_another():
    with Memory(embedder=None) as memory:
        saver = HoldfastSaver(memory, user="bo")
        agent = graph(saver)
        agent.invoke({"said": ["ana's"]}, thread())
        agent.invoke({"said": ["bo's"]}, thread(user="bo"))

        saver.delete_thread("web-42")

        assert agent.get_state(thread(user="bo")).values == {}
        assert agent.get_state(thread()).values["said"] == ["ana's", "reply to ana's"]
        saver.for_user("ana").delete_thread("web-42")
        assert agent.get_state(thread()).values == {}


def test_without_a_user_it_says_what_to_do():
    with Memory(embedder=None) as memory, pytest.raises(BadInput, match="user"):
        graph(HoldfastSaver(memory)).invoke({"said": ["x"]}, {"configurable": {"thread_id": "t"}})


@pytest.mark.parametrize("erase", ["conversation", "user", "message"])
def test_erasing_reaches_the_checkpoints(tmp_path, erase):
    path = tmp_path / "chat.db"
    with Memory(path, embedder=None) as memory:
        agent = graph(HoldfastSaver(memory))
        agent.invoke({"said": ["a secret about wombats"]}, thread())
        chat = memory.conversation("web-42", user="ana")
        chat.append("a secret about wombats")

        receipt = {
            "conversation": chat.clear,
            "user": memory.user("ana").erase,
            "message": lambda: chat.forget(1),
        }[erase]()

        assert receipt.rows["items"] > 0
        assert agent.get_state(thread()).values == {}
        assert memory.doctor().ok
    assert b"wombats" not in path.read_bytes()


def test_a_thread_without_messages_is_erased_with_its_conversation():
    with Memory(embedder=None) as memory:
        agent = graph(HoldfastSaver(memory))
        agent.invoke({"said": ["one"]}, thread())

        memory.conversation("web-42", user="ana").clear()

        assert agent.get_state(thread()).values == {}


def test_nothing_is_stored_while_paused_and_the_graph_still_works(tmp_path):
    path = tmp_path / "chat.db"
    with Memory(path, embedder=None) as memory:
        agent = graph(HoldfastSaver(memory))
        agent.invoke({"said": ["before"]}, thread())
        memory.user("ana").pause()
        state = agent.invoke({"said": ["about wombats"]}, thread())
        memory.user("ana").resume()
        state = agent.invoke({"said": ["later"]}, thread())

        assert state["said"][2:] == ["about wombats", "reply to about wombats", "later", "reply to later"]
    with Memory(path, embedder=None) as memory:
        assert graph(HoldfastSaver(memory)).get_state(thread()).values["said"] == ["before", "reply to before"]
    assert b"wombats" not in path.read_bytes()


def test_export_and_import_carry_checkpoints(tmp_path):
    with Memory(embedder=None) as memory, Memory(embedder=None) as other:
        graph(HoldfastSaver(memory)).invoke({"said": ["one"]}, thread())

        other.import_(memory.user("ana").export())

        assert graph(HoldfastSaver(other)).get_state(thread()).values["said"] == ["one", "reply to one"]
        assert other.doctor().ok


def test_the_event_loop_is_not_blocked():
    async def run(memory):
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        ticking = asyncio.create_task(tick())
        await graph(HoldfastSaver(memory)).ainvoke({"said": ["one"]}, thread())
        ticking.cancel()
        return ticks

    with Memory(embedder=None) as memory:
        assert asyncio.run(run(memory)) > 20
