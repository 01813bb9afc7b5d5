"""Programs written for Zep run with another import."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from holdfast import Memory
from holdfast.compat.zep import AsyncZep, Zep
from holdfast.errors import BadInput, NotFound
from holdfast.testing.fakes import FakeClock

TOLD = [
    {"role": "user", "name": "Ana", "content": "I am a vegetarian and I live in Lisbon.", "metadata": {"a": 1}},
    {"role": "assistant", "content": "Noted!"},
]


@pytest.fixture
def memory():
    with Memory(embedder=None, clock=FakeClock(datetime(2026, 1, 1, 9, tzinfo=UTC))) as opened:
        yield opened


@pytest.fixture
def zep(memory):
    return Zep(memory=memory)


def begin(zep, name="ana"):
    user = zep.user.create(user_id=name, first_name=name.title())
    thread = zep.thread.create(user_uuid=user.uuid_)
    return user, thread


def test_a_program_of_zep_runs_with_another_import(zep):
    user, thread = begin(zep)
    added = zep.thread.add_messages(thread.uuid_, messages=TOLD, return_context=True)
    zep.thread.add_messages(thread.uuid_, messages=[{"role": "user", "content": "What may I cook?"}])

    assert (user.user_id, user.first_name, user.graph_uuid, user.email) == ("ana", "Ana", user.uuid_, None)
    assert "Is vegetarian." in added.context
    assert "Is vegetarian." in zep.thread.get_context(thread.uuid_).context
    assert [(one.role, one.name, one.metadata) for one in added.messages] == [
        ("user", "Ana", {"a": 1}),
        ("assistant", None, None),
    ]
    edge = next(iter(zep.graph.search_edges(user.graph_uuid, query="Where do I live?")))
    assert (edge.fact, edge.name, edge.invalid_at) == ("Lives in Lisbon.", "HOME_LIVES_IN", None)
    assert edge.episode_uuids == [added.messages[0].uuid_]
    episode = next(iter(zep.graph.search_episodes(user.graph_uuid, query="vegetarian")))
    assert (episode.uuid_, episode.thread_uuid) == (added.messages[0].uuid_, thread.uuid_)
    assert zep.graph.edge.get(user.graph_uuid, edge.uuid_).fact == edge.fact
    assert "vegetarian" in zep.graph.get_context(user.graph_uuid, query="food").context
    assert zep.user.lookup(user_id="ana").uuid_ == zep.graph.lookup(user_id="ana").uuid_ == user.uuid_
    assert zep.user.update(user.uuid_, email="a@b").first_name == "Ana"


def test_lists_come_in_pages(zep):
    user, thread = begin(zep)
    zep.thread.add_messages(thread.uuid_, messages=TOLD)
    zep.graph.episode.add(user.graph_uuid, data="I have a dog named Rex.")
    begin(zep, "bo")

    first = zep.thread.list_messages(thread.uuid_, page_size=1)
    assert (len(first.items), first.has_next) == (1, True)
    assert [one.content for one in first] == [one["content"] for one in TOLD]
    assert [one.role for one in zep.thread.list_messages(thread.uuid_, order="desc")] == ["assistant", "user"]
    assert [one.user_id for one in zep.user.list(page_size=1)] == ["ana", "bo"]
    assert [one.uuid_ for one in zep.thread.list(user_uuid=user.uuid_)] == [thread.uuid_]
    assert len(list(zep.graph.edge.list(user.graph_uuid, page_size=1))) == len(
        list(zep.graph.edge.list(user.graph_uuid))
    )
    assert len(list(zep.graph.episode.list(user.graph_uuid, page_size=1))) == 3


def test_a_key_stores_messages_once(zep):
    _, thread = begin(zep)
    for _ in range(3):
        zep.thread.add_messages(thread.uuid_, messages=TOLD, idempotency_key="k1")

    assert len(list(zep.thread.list_messages(thread.uuid_))) == 2


def test_two_users_never_mix(zep):
    ana, thread = begin(zep)
    zep.thread.add_messages(thread.uuid_, messages=TOLD)
    bo, _ = begin(zep, "bo")
    edge = next(iter(zep.graph.edge.list(ana.graph_uuid)))

    assert list(zep.graph.search_edges(bo.graph_uuid, query="vegetarian")) == []
    assert list(zep.graph.search_episodes(bo.graph_uuid, query="vegetarian")) == []
    with pytest.raises(NotFound):
        zep.graph.edge.get(bo.graph_uuid, edge.uuid_)
    with pytest.raises(NotFound):
        zep.graph.edge.delete(bo.graph_uuid, edge.uuid_)


@pytest.mark.parametrize("choice", ["pause", "opt_out"])
def test_a_user_who_does_not_want_memory_is_neither_stored_nor_shown(zep, memory, choice):
    user, thread = begin(zep)
    zep.thread.add_messages(thread.uuid_, messages=TOLD)
    memory.user("ana").pause() if choice == "pause" else memory.user("ana").opt_out(erase=False)

    assert zep.thread.add_messages(thread.uuid_, messages=TOLD).messages == []
    assert zep.thread.get_context(thread.uuid_).context == ""
    assert list(zep.graph.search_edges(user.graph_uuid, query="vegetarian")) == []
    assert len(memory.conversation(thread.thread_id, user="ana").load()) == 2


def test_what_is_deleted_is_gone(tmp_path):
    path = tmp_path / "chat.db"
    with Memory(path, embedder=None) as memory:
        zep = Zep(memory=memory)
        user, thread = begin(zep)
        zep.user.update(user.uuid_, email="quokka@example.org")
        zep.thread.add_messages(thread.uuid_, messages=[{"role": "user", "content": "I live near the wombats."}])
        zep.graph.edge.delete(user.graph_uuid, next(iter(zep.graph.edge.list(user.graph_uuid))).uuid_)
        assert list(zep.graph.edge.list(user.graph_uuid)) == []
        zep.thread.delete(thread.uuid_)
        assert list(zep.thread.list_messages(thread.uuid_)) == []
        zep.user.delete(user.uuid_)
        with pytest.raises(NotFound):
            zep.user.get(user.uuid_)
        assert memory.doctor().ok
    assert b"wombats" not in path.read_bytes()
    assert b"quokka" not in path.read_bytes()


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda zep: zep.thread.get("nothing"), NotFound),
        (lambda zep: zep.thread.get(None), NotFound),
        (lambda zep: zep.user.get("ana"), NotFound),
        (lambda zep: zep.thread.create(user_uuid=""), NotFound),
        (lambda zep: zep.user.create(user_id="a\0"), BadInput),
        (lambda zep: zep.user.create(user_id="\ud800"), BadInput),
        (lambda zep: zep.user.create(user_id="cy", metadata={"a": object()}), BadInput),
        (lambda zep: zep.thread.add_messages(begin(zep)[1].uuid_, messages=[]), BadInput),
        (
            lambda zep: zep.thread.add_messages(begin(zep)[1].uuid_, messages=[{"role": "owl", "content": "hu"}]),
            BadInput,
        ),
        (lambda zep: zep.thread.list_messages(begin(zep)[1].uuid_, cursor="x"), BadInput),
        (lambda zep: zep.graph.search_edges(begin(zep)[0].uuid_, query=""), BadInput),
        (lambda zep: Zep(base_url="http://127.0.0.1:7800"), BadInput),
    ],
)
def test_bad_input_is_told(zep, call, error):
    with pytest.raises(error):
        call(zep)


def test_the_async_client_does_the_same(memory):
    async def run():
        zep = AsyncZep(memory=memory)
        user = await zep.user.create(user_id="ana")
        thread = await zep.thread.create(user_uuid=user.uuid_)
        await zep.thread.add_messages(thread.uuid_, messages=TOLD)
        return [edge.fact for edge in await zep.graph.edge.list(user.graph_uuid)]

    assert "Lives in Lisbon." in asyncio.run(run())
