"""Hermes Agent's manager of memories with the provider of ``hermes-holdfast``."""

from __future__ import annotations

import json
import subprocess
import sys

import hermes_holdfast
import pytest
from agent.memory_manager import MemoryManager
from hermes_holdfast import HoldfastProvider

from holdfast import Memory
from tests.integrations.frameworks.promises import ModelFails, Promises

GIVEN = "the memory of a test"


@pytest.fixture(autouse=True)
def no_store(monkeypatch):
    monkeypatch.delenv("HOLDFAST_STORE", raising=False)


def started(session, **named):
    """Return a manager with a provider that is started as Hermes starts one."""
    manager = MemoryManager()
    manager.add_provider(HoldfastProvider())
    manager.initialize_all(session_id=session, platform="cli", **{"agent_context": "primary", **named})
    return manager


def turn(manager, text, *, session, fail=False, **more):
    """Run one turn as Hermes does; return the texts of the prompt."""
    prompt = [manager.build_system_prompt(), manager.prefetch_all(text), text]
    if fail:
        raise ModelFails("no model")
    manager.sync_all(text, f"noted: {text}", session_id=session, **more)
    assert manager.flush_pending(10)
    return prompt


class TestProvider(Promises):
    keys = False
    switches = False

    def talk(self, memory, text, *, user="ana", conversation="c1", key=None, fail=False):
        hermes_holdfast._stores._open[GIVEN] = (memory, 1)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HOLDFAST_STORE", GIVEN)
            manager = started(conversation, user_id=user)
        try:
            return turn(manager, text, session=conversation, fail=fail)
        finally:
            manager.shutdown_all()


@pytest.fixture
def home(tmp_path):
    return {"hermes_home": str(tmp_path)}


def said(home, session="s1", user="me"):
    with Memory(f"{home['hermes_home']}/holdfast.db", embedder=None) as memory:
        return [message.content for message in memory.conversation(session, user=user).load() if message.content]


def test_hermes_finds_the_provider_where_the_command_puts_it(tmp_path, monkeypatch):
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    done = subprocess.run([sys.executable, "-m", "hermes_holdfast"], capture_output=True, text=True, check=True)
    code = "from plugins.memory import load_memory_provider as f; p = f('holdfast'); print(p.name, p.is_available())"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert str(tmp_path) in done.stdout
    assert found.stdout.split() == ["holdfast", "True"]


def test_the_store_is_in_hermes_home(home):
    manager = started("s1", **home)
    turn(manager, "I am a vegetarian.", session="s1")
    manager.shutdown_all()

    assert said(home) == ["I am a vegetarian.", "noted: I am a vegetarian."]


@pytest.mark.parametrize("context", ["subagent", "cron", "flush"])
def test_turns_that_no_user_had_are_not_stored(home, context):
    manager = started("s1", agent_context=context, **home)
    turn(manager, "Run the backup.", session="s1")
    manager.on_memory_write("add", "user", "I am a pilot.")
    manager.on_session_end([])
    manager.shutdown_all()

    assert said(home) == []


def test_two_agents_of_a_process_share_the_store(home):
    first, second = started("s1", user_id="ana", **home), started("s2", user_id="bo", **home)
    turn(first, "I am a vegetarian.", session="s1")
    first.shutdown_all()
    prompt = turn(second, "What may I cook?", session="s2")
    second.shutdown_all()

    assert "vegetarian" not in "".join(prompt)
    assert said(home, "s1", "ana")[0] == "I am a vegetarian."


def test_another_session_of_the_process_is_another_conversation(home):
    manager = started("s1", **home)
    turn(manager, "one", session="s1")
    manager.on_session_switch("s2", parent_session_id="s1", reset=True)
    turn(manager, "two", session="s2")
    manager.shutdown_all()

    assert said(home, "s1") == ["one", "noted: one"]
    assert said(home, "s2") == ["two", "noted: two"]


def history(*questions):
    """What Hermes has of a conversation."""
    pairs = [(("user", text), ("assistant", f"noted: {text}")) for text in questions]
    return [{"role": role, "content": text} for pair in pairs for role, text in pair]


@pytest.mark.parametrize(
    ("told", "left", "kept"),
    [
        (["one", "two", "three"], ["one"], 1),
        (["one", "two"], [], 0),  # all of them
        (["ok", "ok", "ok"], ["ok", "ok"], 2),  # the same words each time
        (["one", "ok", "two", "ok"], ["one", "ok"], 2),
        (["one", "two", "three"], ["A summary of what was said.", "two"], 2),  # compressed
        (["one", "two", "three"], ["A summary of what was said."], 3),  # no sign of what was undone
        (["one", "two"], ["one", "two"], 2),  # the undone turn was broken off, and never stored
    ],
)
@pytest.mark.parametrize("ends", [False, True])
def test_turns_that_are_undone_are_erased(home, told, left, kept, ends):
    manager = started("s1", **home)
    for text in told:
        turn(manager, text, session="s1")
    manager.on_session_switch("s1", rewound=True)
    after = [] if ends else ["four"]
    if ends:
        manager.on_session_end(history(*left))
    else:
        turn(manager, "four", session="s1", messages=history(*left, "four"))
    manager.shutdown_all()

    assert said(home) == [message["content"] for message in history(*told[:kept], *after)]


def test_turns_that_a_gateway_undid_are_erased_and_a_session_that_goes_on_is_whole(home):
    for number, (text, has) in enumerate([("one", []), ("two", ["one"]), ("three", ["one", "two"]), ("four", ["one"])]):
        manager = started("s1", **home)  # a gateway lets go of its agent after an undo
        turn(manager, text, session="s1", messages=history(*has, text))
        if number == 2:
            assert said(home)[::2] == ["one", "two", "three"]
        manager.shutdown_all()

    assert said(home) == [message["content"] for message in history("one", "four")]


def test_the_tool_finds_what_earlier_sessions_said(home):
    manager = started("s1", **home)
    turn(manager, "My bike is a red Brompton.", session="s1")
    found = json.loads(manager.handle_tool_call("search_memory", {"query": "bike"}))
    refused = json.loads(manager.handle_tool_call("search_memory", {"query": 7}))
    manager.shutdown_all()

    assert any("Brompton" in hit["text"] for hit in found["results"])
    assert "query" in refused["error"]


def test_what_the_agent_notes_about_the_user_is_known(home):
    manager = started("s1", **home)
    manager.on_memory_write("add", "user", "I am a vegetarian.")
    prompt = turn(manager, "What may I cook?", session="s1")
    manager.shutdown_all()

    assert "vegetarian" in prompt[0]
