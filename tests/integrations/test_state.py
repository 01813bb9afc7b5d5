"""A framework's own state: what of it goes on in this process while the user pauses memory, and for how long."""

from __future__ import annotations

import pytest

from holdfast import Memory
from holdfast.integrations.common import AdapterMemory, HeldMessages, StateChange


def opened(memory):
    return AdapterMemory(memory, user="ana").state("test")


def put(state, scope, **values):
    state.save(scope, StateChange({name: value.encode() for name, value in values.items()}))


def values(state, scope):
    return {row.name: row.value.decode() for row in state.load(scope)}


ERASURES = {
    "erase": lambda memory: memory.user("ana").erase(),
    "opt out": lambda memory: memory.user("ana").opt_out(),
    "clear": lambda memory: memory.conversation("web", user="ana").clear(),
}


@pytest.mark.parametrize("stored", [True, False], ids=["known", "new"])
@pytest.mark.parametrize("erase", ERASURES.values(), ids=ERASURES)
def test_state_that_is_held_goes_with_an_erasure(erase, stored):
    with Memory(embedder=None) as memory:
        state = opened(memory)
        scope = state.scope("web")
        if stored:
            put(state, scope, before="said before")
        memory.user("ana").pause()
        put(state, scope, paused="said while paused")
        erase(memory)

        assert values(state, scope) == {}
        assert state.load_named(scope, ["before", "paused"]) == {}
        assert state.homes() == []


def test_state_that_is_held_goes_with_an_erasure_by_another_process(tmp_path):
    path = tmp_path / "chat.db"
    with Memory(path, embedder=None) as memory, Memory(path, embedder=None) as other:
        state = opened(memory)
        scope = state.scope("web")
        put(state, scope, before="said before")
        memory.user("ana").pause()
        put(state, scope, paused="said while paused")
        other.user("ana").erase()

        assert values(state, scope) == {}


def test_an_erasure_takes_nothing_of_other_conversations_and_users():
    with Memory(embedder=None) as memory:
        state = opened(memory)
        mine, theirs = state.scope("web"), state.scope("web", "bo")
        for user in ("ana", "bo"):
            memory.user(user).pause()
        put(state, mine, a="mine")
        put(state, theirs, a="theirs")
        memory.user("bo").erase()
        memory.conversation("other", user="ana").clear()

        assert (values(state, mine), values(state, theirs)) == ({"a": "mine"}, {})


def test_a_conversation_goes_on_after_the_pause_and_what_is_of_the_user_is_stored_again(tmp_path):
    path = tmp_path / "chat.db"
    with Memory(path, embedder=None) as memory:
        state = opened(memory)
        talk, user = state.scope("web"), state.scope()
        for scope in (talk, user):
            put(state, scope, a="before")
        memory.user("ana").pause()
        for scope in (talk, user):
            put(state, scope, b="while paused")
            assert values(state, scope) == {"a": "before", "b": "while paused"}
        memory.user("ana").resume()
        for scope in (talk, user):
            put(state, scope, c="after")

        assert values(state, talk) == {"a": "before", "b": "while paused", "c": "after"}
        assert values(state, user) == {"a": "before", "c": "after"}
    with Memory(path, embedder=None) as memory:
        state = opened(memory)
        assert values(state, talk) == {"a": "before"}
        assert values(state, user) == {"a": "before", "c": "after"}


@pytest.mark.parametrize("erase", ERASURES.values(), ids=ERASURES)
def test_messages_that_are_held_go_with_an_erasure(erase):
    with Memory(embedder=None) as memory:
        memory.conversation("web", user="ana").record("said before", "ok")
        held = HeldMessages(AdapterMemory(memory, user="ana"))
        memory.user("ana").pause()
        held.of("web").append("said while paused")
        HeldMessages(AdapterMemory(memory, user="bo")).of("web").append("of another")
        kept = list(held.of("web"))
        erase(memory)

        assert kept == ["said while paused"]
        assert held.of("web") == []


def test_messages_that_are_held_go_when_another_process_erases_the_user(tmp_path):
    path = tmp_path / "chat.db"
    with Memory(path, embedder=None) as memory, Memory(path, embedder=None) as other:
        memory.conversation("web", user="ana").record("said before", "ok")
        memory.user("ana").pause()
        held = HeldMessages(AdapterMemory(memory, user="ana"))
        held.of("web").append("said while paused")
        other.user("ana").erase()

        assert held.of("web") == []


def test_messages_of_another_user_stay_held():
    with Memory(embedder=None) as memory:
        held = HeldMessages(AdapterMemory(memory, user="ana", write=False))
        for user in ("ana", "bo"):
            memory.conversation("web", user=user).record("said before", "ok")
            for conversation in ("web", "phone"):
                held.of(conversation, user).append(f"{user} {conversation}")
        memory.conversation("web", user="ana").clear()

        assert held.of("web", "ana") == []
        assert [held.of(conversation, "bo") for conversation in ("web", "phone")] == [["bo web"], ["bo phone"]]
