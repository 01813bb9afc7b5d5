"""The conversation store of Pydantic AI, side by side with the framework's own."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict, InMemoryConversationStore
from pydantic_ai.models.test import TestModel

from holdfast import Memory
from holdfast.integrations.pydantic_ai import HoldfastConversationStore, MemoryCapability

ROOT = Path(__file__).parent.parent.parent.parent.parent


@pytest.fixture(params=["holdfast", "in memory"])
def store(request):
    """The same promises hold for both."""
    if request.param == "in memory":
        yield InMemoryConversationStore()
    else:
        with Memory(embedder=None) as memory:
            yield HoldfastConversationStore(memory, user="ana")


async def say(store, text, conversation="c1", *, reply="ok", scope=None, **more):
    """Run one turn of an agent as the framework's documentation does it."""
    agent = Agent(TestModel(custom_output_text=reply), **more)
    known = await store.load(conversation) or Conversation(conversation_id=conversation)
    result = await agent.run(text, conversation=known)
    await store.save(result, scope=scope)
    return result


def texts(found):
    """The words of a conversation's messages."""
    return [part.content for message in found.messages for part in message.parts]


async def back_to(store, entry):
    """Go back to an earlier entry of a conversation."""
    loaded = await store.load("c1")
    await store.branch("c1", from_entry=entry.id, expected_revision=loaded.revision)


def test_a_conversation_goes_on(store):
    async def talk():
        await say(store, "one")
        await say(store, "two")
        return await store.load("c1"), await store.load("c1", limit=1), await store.load_entries("c1")

    whole, last, entries = asyncio.run(talk())

    assert texts(whole) == ["one", "ok", "two", "ok"]
    assert texts(last) == ["ok"]
    assert [entry.parent_id for entry in entries] == [None, *(entry.id for entry in entries[:-1])]
    assert whole.usage.requests == 2


def test_what_was_saved_meanwhile_is_a_conflict_and_leaves_nothing(store):
    async def talk():
        await say(store, "one")
        first, second = await store.load("c1"), await store.load("c1")
        agent = Agent(TestModel(custom_output_text="ok"))
        await store.save(await agent.run("two", conversation=first))
        late = await agent.run("three", conversation=second)
        with pytest.raises(ConversationConflict):
            await store.save(late)
        with pytest.raises(ConversationConflict):
            await store.save(Conversation(conversation_id="c1"))
        return await store.load("c1")

    assert texts(asyncio.run(talk())) == ["one", "ok", "two", "ok"]


def test_branches_and_forks(store):
    async def talk():
        await say(store, "one")
        await say(store, "two")
        entries = await store.load_entries("c1")
        fork = await store.fork("c1", from_entry=entries[1].id, new_conversation_id="c2")
        await say(store, "three", "c2")
        await back_to(store, entries[1])
        await say(store, "four")
        whole, other = await store.load("c1"), await store.load("c2")
        await back_to(store, entries[3])
        back = await store.load("c1")
        await store.delete("c1")
        return texts(fork), texts(whole), texts(other), texts(back), await store.load("c1"), await store.load("c2")

    fork, whole, other, back, gone, left = asyncio.run(talk())

    assert fork == ["one", "ok"]
    assert whole == ["one", "ok", "four", "ok"]
    assert other == ["one", "ok", "three", "ok"]
    assert back == ["one", "ok", "two", "ok"]
    assert gone is None
    assert texts(left) == other


def test_conversations_are_listed_by_their_scope(store):
    async def talk():
        for name, scope in (("c1", "web"), ("c2", "phone"), ("c3", "web")):
            await say(store, "hi", name, scope=scope)
        found = await store.list_conversations(scope="web")
        newest = await store.list_conversations(limit=1)
        return (
            [one.conversation_id for one in found],
            [one.conversation_id for one in newest],
            (await store.load("c1", scope="phone")),
        )

    assert asyncio.run(talk()) == (["c3", "c1"], ["c3"], None)


def tell(path):
    """Tell an agent something, in a process that ends after it."""
    with Memory(path, embedder=None) as memory:
        store = HoldfastConversationStore(memory, user="ana")
        asyncio.run(say(store, "I live near the wombats.", capabilities=[MemoryCapability(memory, user="ana")]))


def test_another_process_goes_on_and_no_other_user_sees_it(tmp_path):
    code = f"from {__name__} import tell; tell({str(tmp_path / 'chat.db')!r})"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    with Memory(tmp_path / "chat.db", embedder=None) as memory:
        found = asyncio.run(HoldfastConversationStore(memory, user="ana").load("c1"))

        assert texts(found) == ["I live near the wombats.", "ok"]
        assert asyncio.run(HoldfastConversationStore(memory, user="bo").load("c1")) is None


@pytest.mark.parametrize("erase", ["delete", "clear", "forget", "erase"])
def test_erasing_reaches_what_is_stored(tmp_path, erase):
    path = tmp_path / "chat.db"
    tell(path)
    with Memory(path, embedder=None) as memory:
        store, chat = HoldfastConversationStore(memory, user="ana"), memory.conversation("c1", user="ana")
        if erase == "delete":
            asyncio.run(store.delete("c1"))
        elif erase == "clear":
            chat.clear()
        elif erase == "forget":
            chat.forget(1)
        else:
            memory.user("ana").erase()

        assert asyncio.run(store.load("c1")) is None
        assert asyncio.run(store.list_conversations()) == []
        assert memory.doctor().ok
    assert b"wombats" not in path.read_bytes()


def test_while_paused_a_conversation_stays_in_the_process(tmp_path):
    path = tmp_path / "chat.db"
    with Memory(path, embedder=None) as memory:
        memory.user("ana").pause()
        store = HoldfastConversationStore(memory, user="ana")
        asyncio.run(say(store, "I live near the wombats."))

        assert texts(asyncio.run(store.load("c1"))) == ["I live near the wombats.", "ok"]
    assert b"wombats" not in path.read_bytes()
