"""Programs written for mem0 run with another import, or another address."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime

import pytest

from holdfast import Memory
from holdfast import compat as filters
from holdfast.compat.mem0 import AsyncMemory, AsyncMemoryClient, MemoryClient, MemoryNotFoundError
from holdfast.compat.mem0 import Memory as Mem0
from holdfast.errors import BadInput, Conflict
from holdfast.testing.fakes import FakeClock

TOLD = [
    {"role": "user", "content": "I am a vegetarian and I live in Lisbon."},
    {"role": "assistant", "content": "Noted!"},
]
# The fields that mem0 2.2 returns of a memory, of a search's, and of a change.
MEMORY = {"id", "memory", "hash", "metadata", "created_at", "updated_at", "user_id"}
CHANGE = {
    "id",
    "memory_id",
    "old_memory",
    "new_memory",
    "event",
    "created_at",
    "updated_at",
    "is_deleted",
    "actor_id",
    "role",
}


@pytest.fixture
def memory():
    with Memory(embedder=None, clock=FakeClock(datetime(2026, 1, 1, 9, tzinfo=UTC))) as opened:
        yield opened


@pytest.fixture
def mem0(memory):
    return Mem0(memory)


def texts(found):
    return sorted(row["memory"] for row in found["results"])


def all_of(mem0, user="ana"):
    return texts(mem0.get_all(filters={"user_id": user}))


PROGRAM = """
from mem0 import MemoryClient

client = MemoryClient(api_key="m0-key")
added = client.add(MESSAGES, user_id="ana", run_id="r1", metadata={"source": "web"})
again = client.add(MESSAGES, user_id="ana", run_id="r1")
found = client.search("where do I live?", filters={"AND": [{"user_id": "ana"}, {"run_id": "r1"}]}, top_k=1)
page = client.get_all(filters={"user_id": "ana"}, page=1, page_size=1)
one = client.get(found["results"][0]["id"])
client.update(one["id"], text="Lives in Faro.")
changes = client.history(one["id"])
people = client.users()
client.delete(one["id"])
left = client.get_all(filters={"user_id": "ana"})
client.delete_users(user_id="ana")
nobody = client.get_all(filters={"user_id": "ana"})
"""


def test_a_program_of_mem0_runs_with_another_import(tmp_path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_STORE", str(tmp_path / "chat.db"))
    names = {"MESSAGES": TOLD}

    exec(PROGRAM.replace("from mem0 import", "from holdfast.compat.mem0 import"), names)
    names["client"].close()

    assert [(row["event"], row["memory"]) for row in names["added"]["results"]] == [
        ("ADD", "Is vegetarian."),
        ("ADD", "Lives in Lisbon."),
    ]
    assert names["again"] == {"results": []}
    assert names["one"]["memory"] == "Lives in Lisbon."
    assert names["one"]["metadata"] == {"source": "web"}
    assert names["one"].keys() >= MEMORY | {"run_id"}
    assert names["found"]["results"][0].keys() >= MEMORY | {"score"}
    assert {key: names["page"][key] for key in ("count", "previous")} == {"count": 2, "previous": None}
    assert len(names["page"]["results"]) == 1
    assert names["page"]["next"]
    assert [(row["event"], row["old_memory"], row["new_memory"]) for row in names["changes"]] == [
        ("ADD", None, "Lives in Lisbon."),
        ("UPDATE", "Lives in Lisbon.", "Lives in Faro."),
    ]
    assert names["changes"][0].keys() >= CHANGE
    assert [(row["type"], row["name"]) for row in names["people"]["results"]] == [("user", "ana")]
    assert texts(names["left"]) == ["Is vegetarian."]
    assert names["nobody"]["results"] == []


def test_messages_that_come_again_are_stored_once(mem0, memory):
    chat, said = [], []
    for turn in range(30):
        chat += [{"role": "user", "content": f"Question {turn}"}, {"role": "assistant", "content": "Yes."}]
        said += [(one["role"], one["content"]) for one in chat[-2:]]
        for _ in range(1 + turn % 3):
            mem0.add(chat if turn % 2 else chat[-2:], user_id="ana", run_id="r1")

    assert [(one.role, one.content) for one in memory.conversation("r1", user="ana").load()] == said


def test_a_change_keeps_the_id_and_the_history(mem0):
    first = mem0.add(TOLD, user_id="ana")["results"][1]
    second = mem0.add("I moved to Porto.", user_id="ana")["results"][0]

    assert (second["event"], second["previous_memory"]) == ("UPDATE", "Lives in Lisbon.")
    assert mem0.get(first["id"])["memory"] == "Lives in Porto."
    assert [row["new_memory"] for row in mem0.history(first["id"])] == ["Lives in Lisbon.", "Lives in Porto."]


@pytest.mark.parametrize("words", ["Lives in Faro.", "Has moved south"])
def test_an_update_in_any_words_is_found_under_the_same_id(mem0, words):
    known = mem0.add(TOLD, user_id="ana", run_id="r1", metadata={"a": 1})["results"][1]["id"]

    assert mem0.update(known, words, metadata={"b": 2}) == {"message": "Memory updated successfully!"}

    found = mem0.get(known)
    assert (found["memory"], found["metadata"], found["run_id"]) == (words, {"a": 1, "b": 2}, "r1")
    assert mem0.get_all(filters={"user_id": "ana", "b": 2})["results"][0]["memory"] == words
    assert [row["event"] for row in mem0.history(known)] == ["ADD", "UPDATE"]


def test_what_is_deleted_is_gone_with_its_words(tmp_path):
    path = tmp_path / "chat.db"
    with Memory(path, embedder=None) as memory:
        mem0 = Mem0(memory)
        known = mem0.add("I live near the wombats.", user_id="ana", metadata={"of": "quokkas"})["results"][0]["id"]
        mem0.update(known, text="Lives near the numbats.")
        mem0.delete(known)

        assert mem0.get(known) is None
        with pytest.raises(MemoryNotFoundError):
            mem0.delete(known)
        assert memory.doctor().ok
    for word in (b"wombats", b"numbats", b"quokkas"):
        assert word not in path.read_bytes()


def test_two_users_never_mix(mem0):
    known = mem0.add(TOLD, user_id="ana")["results"][0]["id"]
    mem0.add("I live in Oslo.", user_id="bo")

    assert all_of(mem0, "bo") == ["Lives in Oslo."]
    assert texts(mem0.search("vegetarian", filters={"user_id": "bo"}, threshold=None)) == ["Lives in Oslo."]
    mem0.delete_all(user_id="bo")
    assert mem0.get(known)["user_id"] == "ana"
    for nobody in ({}, {"user_id": "*"}, {"metadata": {"a": 1}}, {"NOT": [{"user_id": "ana"}]}):
        with pytest.raises(BadInput):
            mem0.get_all(filters=nobody)


@pytest.mark.parametrize("choice", ["pause", "opt_out"])
def test_a_user_who_does_not_want_memory_is_neither_stored_nor_found(mem0, memory, choice):
    known = mem0.add(TOLD, user_id="ana")["results"][0]["id"]
    memory.user("ana").pause() if choice == "pause" else memory.user("ana").opt_out(erase=False)

    assert mem0.add("I moved to Porto.", user_id="ana") == {"results": []}
    assert mem0.add("Any words", user_id="ana", infer=False) == {"results": []}
    assert mem0.search("vegetarian", filters={"user_id": "ana"}) == {"results": []}
    with pytest.raises(Conflict):
        mem0.update(known, text="Eats fish.")
    assert len(memory.conversation("mem0", user="ana").load()) == 2


def test_runs_agents_and_apps_are_told_apart(mem0):
    mem0.add("I live in Porto.", user_id="ana", run_id="r1")
    mem0.add("I have a dog named Rex.", user_id="ana", agent_id="vet", run_id="r2")
    mem0.add("I prefer metric units.", agent_id="vet")

    every = all_of(mem0)
    assert texts(mem0.get_all(filters={"user_id": "ana", "run_id": "r1"})) == ["Lives in Porto."]
    of_vet = texts(mem0.get_all(filters={"AND": [{"user_id": "ana"}, {"agent_id": "vet"}]}))
    assert of_vet
    assert sorted(["Lives in Porto.", *of_vet]) == every
    either = {"AND": [{"user_id": "ana"}, {"OR": [{"run_id": "r1"}, {"run_id": "r2"}]}]}
    assert texts(mem0.get_all(filters=either)) == every
    own = mem0.get_all(filters={"agent_id": "vet"})["results"]
    assert [row["agent_id"] for row in own] == ["vet"] * len(own)
    assert not set(texts({"results": own})) & set(every)
    mem0.delete_all(user_id="ana", agent_id="vet")
    assert all_of(mem0) == ["Lives in Porto."]


def test_words_are_kept_as_they_are_when_nothing_shall_be_inferred(mem0):
    raw = [{"role": "user", "content": "Blue folder: tax 2025"}, {"role": "assistant", "content": "Filed."}]
    added = mem0.add(raw, user_id="ana", infer=False, metadata={"box": 3})["results"]

    assert [(row["memory"], row["role"], row["event"]) for row in added] == [
        ("Blue folder: tax 2025", "user", "ADD"),
        ("Filed.", "assistant", "ADD"),
    ]
    assert texts(mem0.get_all(filters={"user_id": "ana", "box": {"gte": 3}})) == ["Blue folder: tax 2025", "Filed."]
    assert texts(mem0.search("tax", filters={"user_id": "ana"})) == ["Blue folder: tax 2025"]


def test_what_has_expired_is_not_shown(mem0):
    mem0.add("I live in Porto.", user_id="ana", expiration_date="2020-01-01")

    assert all_of(mem0) == []
    assert texts(mem0.get_all(filters={"user_id": "ana"}, show_expired=True)) == ["Lives in Porto."]


FIELDS = {"user_id": "ana", "run_id": "r1", "created_at": "2026-01-02", "metadata": {"n": 3, "tag": "Blue"}}


@pytest.mark.parametrize(
    ("wanted", "meant"),
    [
        ({"n": 3}, True),
        ({"n": {"gt": 3}}, False),
        ({"n": {"gte": 3, "lt": 4}}, True),
        ({"n": {"in": [1, 3]}}, True),
        ({"n": {"nin": [1, 3]}}, False),
        ({"n": {"ne": 4}}, True),
        ({"tag": {"contains": "lue"}}, True),
        ({"tag": {"icontains": "BLUE"}}, True),
        ({"tag": {"gt": 3}}, False),  # of another kind
        ({"tag": "*"}, True),
        ({"other": "*"}, False),
        ({"metadata": {"n": 3}}, True),
        ({"created_at": {"gte": "2026-01-01", "lte": "2026-01-31"}}, True),
        ({"NOT": [{"run_id": "r1"}]}, False),
        ({"OR": [{"run_id": "r2"}, {"AND": [{"n": 3}, {"tag": "Blue"}]}]}, True),
    ],
)
def test_filters_mean_what_mem0_says(wanted, meant):
    assert filters.matches(wanted, FIELDS) is meant


BAD = [
    lambda mem0: mem0.add(TOLD),
    lambda mem0: mem0.add(3, user_id="ana"),
    lambda mem0: mem0.add([3], user_id="ana"),
    lambda mem0: mem0.add(TOLD, user_id=" "),
    lambda mem0: mem0.add(TOLD, user_id="mem0?agent_id=vet"),
    lambda mem0: mem0.add(TOLD, user_id="a\0"),
    lambda mem0: mem0.add(TOLD, user_id="ana", metadata=[1]),
    lambda mem0: mem0.add(TOLD, user_id="ana", metadata={"a": object()}),
    lambda mem0: mem0.add(TOLD, user_id="ana", timestamp="soon"),
    lambda mem0: mem0.add(TOLD, user_id="ana", expiration_date="soon"),
    lambda mem0: mem0.search("", filters={"user_id": "ana"}),
    lambda mem0: mem0.search("home", filters=[1]),
    lambda mem0: mem0.search("home", filters={"user_id": "ana"}, top_k=-1),
    lambda mem0: mem0.search("home", filters={"user_id": "ana"}, threshold=2),
    lambda mem0: mem0.get_all(filters={"user_id": "ana", "OR": 3}),
    lambda mem0: mem0.delete_all(),
]


@pytest.mark.parametrize("call", BAD)
def test_bad_input_is_told_as_the_value_error_that_mem0_raises(mem0, call):
    with pytest.raises(ValueError, match=r"\w"):
        call(mem0)


def test_any_text_can_be_added(mem0):
    for text in ("a\ud800b", "x" * 9_000, "\0", "'; DROP TABLE fact; --"):
        mem0.add(text, user_id="ana", infer=False)
        mem0.add(text, user_id="ana")

    assert mem0.get("not an id") is None
    assert mem0.get("YQ.fact_1") is None


def test_the_async_classes_do_the_same(memory):
    async def run():
        mem0 = AsyncMemory(memory)
        await mem0.add(TOLD, user_id="ana")
        async with AsyncMemoryClient(memory=memory) as client:
            page = await client.get_all(filters={"user_id": "ana"})
        return await mem0.search("home", filters={"user_id": "ana"}), page

    found, page = asyncio.run(run())

    assert "Lives in Lisbon." in texts(found)
    assert page["count"] == 2


def test_a_client_with_a_server_is_told_where_to_go():
    with pytest.raises(BadInput, match="holdfast serve"):
        MemoryClient(host="http://127.0.0.1:7800")


def test_the_model_of_a_configuration_is_used_and_the_rest_is_not_needed(tmp_path, caplog):
    caplog.set_level("INFO", "holdfast")
    config = {"vector_store": {"provider": "qdrant"}, "holdfast": str(tmp_path / "chat.db")}

    with Mem0.from_config(config) as mem0:
        mem0.add(TOLD, user_id="ana")
        assert all_of(mem0) == ["Is vegetarian.", "Lives in Lisbon."]
    assert "vector_store is not used here" in caplog.text
    assert json.dumps(config)
