"""The session store of the Claude Agent SDK: its own conformance suite, unmodified, and what it knows nothing of."""

from __future__ import annotations

import asyncio

import pytest
from claude_agent_sdk import get_session_messages_from_store, project_key_for_directory
from claude_agent_sdk.testing import run_session_store_conformance

from holdfast import Memory
from holdfast.integrations.agents.claude import HoldfastSessionStore

KEY = {"project_key": "shop", "session_id": "11111111-2222-4333-8444-555555555555"}
TRANSCRIPT = [
    {"type": "mode", "mode": "normal"},
    {
        "type": "user",
        "uuid": "u1",
        "timestamp": "2026-01-05T09:00:00.000Z",
        "message": {"role": "user", "content": "I am a vegetarian."},
    },
    {
        "type": "assistant",
        "uuid": "a1",
        "parentUuid": "u1",
        "message": {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "wombats"},
                {"type": "text", "text": "Noted!"},
                {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}},
            ],
        },
    },
    {
        "type": "user",
        "uuid": "u2",
        "message": {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "I am a pilot."}],
        },
    },
    {"type": "user", "uuid": "u3", "isMeta": True, "message": {"role": "user", "content": "I am a caveat."}},
]


def run(call):
    return asyncio.run(call)


@pytest.mark.parametrize("learn", [True, False])
def test_it_passes_the_conformance_suite_of_the_sdk(learn):
    opened = []

    def fresh():
        opened.append(Memory(embedder=None))
        return HoldfastSessionStore(opened[-1], user="ana", learn=learn)

    run(run_session_store_conformance(fresh))

    for memory in opened:
        assert memory.doctor().ok
        memory.close()


def test_a_session_is_resumed_in_another_process_and_what_was_said_is_learned(tmp_path):
    with Memory(tmp_path / "chat.db", embedder=None) as memory:
        run(HoldfastSessionStore(memory, user="ana").append(KEY, TRANSCRIPT))
    with Memory(tmp_path / "chat.db", embedder=None) as memory:
        store = HoldfastSessionStore(memory, user="ana")

        assert run(store.load(KEY)) == TRANSCRIPT
        assert [fact.text for fact in memory.user("ana").facts()] == ["Is vegetarian."]
        chat = memory.conversation(f"shop/{KEY['session_id']}", user="ana")
        assert [(m.role, m.content) for m in chat.load()] == [("user", "I am a vegetarian."), ("assistant", "Noted!")]


def test_sessions_are_listed_with_the_summaries_of_the_sdk():
    with Memory(embedder=None) as memory:
        store = HoldfastSessionStore(memory, user="ana")
        run(store.append(KEY, TRANSCRIPT))

        (listed,) = run(store.list_sessions("shop"))
        assert listed["session_id"] == KEY["session_id"]
        assert run(store.list_session_summaries("shop"))[0]["data"]


def test_200_batches_that_are_sent_again_are_stored_once():
    with Memory(embedder=None) as memory:
        store = HoldfastSessionStore(memory, user="ana")
        lines = [
            {"type": "user", "uuid": f"u{n}", "message": {"role": "user", "content": f"line {n % 7}"}}
            for n in range(200)
        ]
        for line in lines:
            for _ in range(2):
                run(store.append(KEY, [line]))

        assert run(store.load(KEY)) == lines


def test_two_users_never_mix():
    with Memory(embedder=None) as memory:
        run(HoldfastSessionStore(memory, user="ana").append(KEY, TRANSCRIPT))
        other = HoldfastSessionStore(memory, user="bo")

        assert run(other.load(KEY)) is None
        assert run(other.list_sessions("shop")) == []
        run(other.delete(KEY))
        assert run(HoldfastSessionStore(memory, user=lambda project: "ana").load(KEY)) == TRANSCRIPT


@pytest.mark.parametrize("erase", ["session", "conversation", "message", "user"])
def test_erasing_reaches_the_transcript(tmp_path, erase):
    path = tmp_path / "chat.db"
    with Memory(path, embedder=None) as memory:
        store = HoldfastSessionStore(memory, user="ana")
        run(store.append(KEY, TRANSCRIPT))
        run(store.append({**KEY, "subpath": "subagents/agent-1"}, TRANSCRIPT))
        chat = memory.conversation(f"shop/{KEY['session_id']}", user="ana")
        {
            "session": lambda: run(store.delete(KEY)),
            "conversation": chat.clear,
            "message": lambda: chat.forget(1),
            "user": memory.user("ana").erase,
        }[erase]()

        assert run(store.load(KEY)) is None
        assert memory.user("ana").facts() == []
        assert memory.doctor().ok
    assert b"wombats" not in path.read_bytes()


def test_while_paused_a_session_stays_in_the_process(tmp_path):
    with Memory(tmp_path / "chat.db", embedder=None) as memory:
        memory.user("ana").pause()
        store = HoldfastSessionStore(memory, user="ana")
        run(store.append(KEY, TRANSCRIPT[:2]))
        run(store.append(KEY, TRANSCRIPT[2:]))

        assert run(store.load(KEY)) == TRANSCRIPT
        assert memory.conversation(f"shop/{KEY['session_id']}", user="ana").load() == []
    with Memory(tmp_path / "chat.db", embedder=None) as memory:
        assert run(HoldfastSessionStore(memory, user="ana").load(KEY)) is None


def test_the_messages_of_a_session_are_shown_by_the_sdk():
    with Memory(embedder=None) as memory:
        store = HoldfastSessionStore(memory, user="ana")
        from_cwd = {"type": "user", "uuid": "11111111-1111-4111-8111-111111111111", "sessionId": KEY["session_id"]}
        line = from_cwd | {"parentUuid": None, "message": {"role": "user", "content": "hello"}}

        async def shown():
            project = project_key_for_directory("/tmp")
            await store.append({"project_key": project, "session_id": KEY["session_id"]}, [line])
            return await get_session_messages_from_store(store, KEY["session_id"], directory="/tmp")

        assert [message.message["content"] for message in run(shown())] == ["hello"]
