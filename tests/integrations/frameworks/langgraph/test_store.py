"""LangGraph's `BaseStore` over a memory, side by side with LangGraph's own `InMemoryStore`, and what that knows nothing of."""

from __future__ import annotations

import asyncio

import pytest
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from holdfast import Memory
from holdfast.integrations.langgraph import HoldfastStore
from holdfast.testing.fakes import FakeClock


def letters(texts):
    """Embed by how often each letter occurs."""
    return [[float(text.lower().count(chr(97 + i))) for i in range(26)] for text in texts]


INDEX = {"dims": 26, "embed": letters, "fields": ["text", "tags[*]"]}


@pytest.fixture(params=["holdfast", "in memory"])
def store(request):
    """The same promises hold for both."""
    if request.param == "in memory":
        yield InMemoryStore(index=INDEX)
    else:
        with Memory(embedder=None) as memory:
            yield HoldfastStore(memory, index=INDEX)


def keys(items):
    return [item.key for item in items]


def test_put_get_and_delete(store):
    store.put(("docs",), "a", {"text": "one", "n": [1, {"deep": None}]})
    first = store.get(("docs",), "a")
    store.put(("docs",), "a", {"text": "two"})
    second = store.get(("docs",), "a")

    assert first.value == {"text": "one", "n": [1, {"deep": None}]}
    assert (second.value, second.key, second.namespace) == ({"text": "two"}, "a", ("docs",))
    assert second.updated_at >= second.created_at
    store.delete(("docs",), "a")
    assert store.get(("docs",), "a") is None


def test_a_batch_reads_before_it_writes_and_the_last_write_of_a_key_counts(store):
    results = store.batch(
        [
            PutOp(("docs",), "a", {"text": "one"}),
            PutOp(("docs",), "a", {"text": "two"}),
            GetOp(("docs",), "a"),
            SearchOp(("docs",)),
        ]
    )

    assert results == [None, None, None, []]
    assert store.get(("docs",), "a").value == {"text": "two"}


def test_a_namespace_ends_at_its_labels(store):
    for namespace in [("docs",), ("docs2",), ("docs", "sub"), ("docsub",), ("do",), ("DOCS",), ("docs%",), ("d_cs",)]:
        store.put(namespace, "k", {"in": "/".join(namespace)})

    assert {item.value["in"] for item in store.search(("docs",))} == {"docs", "docs/sub"}
    assert {item.value["in"] for item in store.search(("d_cs",))} == {"d_cs"}
    assert {item.value["in"] for item in store.search(("docs%",))} == {"docs%"}


@pytest.mark.parametrize("odd", ["'; DROP TABLE item; --", "%", "_", "a\nb", "ü/ß", "a b", "~", "=", "日本", '"', "*"])
def test_odd_keys_and_labels_are_only_themselves(store, odd):
    store.put(("docs", odd), odd, {"text": odd})
    store.put(("docs", "other"), "other", {"text": "other"})

    assert store.get(("docs", odd), odd).value == {"text": odd}
    assert keys(store.search(("docs", odd))) == [odd]
    assert set(store.list_namespaces(prefix=("docs",))) == {("docs", odd), ("docs", "other")}


def test_filters(store):
    for key, value in {"a": {"n": 1, "kind": "x"}, "b": {"n": 2, "kind": "y"}, "c": {"n": 3, "kind": "x"}}.items():
        store.put(("docs",), key, value)

    found = {
        name: set(keys(store.search(("docs",), filter=wanted)))
        for name, wanted in {
            "equal": {"kind": "x"},
            "both": {"kind": "x", "n": 3},
            "gt": {"n": {"$gt": 1}},
            "range": {"n": {"$gte": 1, "$lt": 3}},
            "ne": {"kind": {"$ne": "x"}},
            "injection": {"kind": "x' OR '1'='1"},
        }.items()
    }

    assert found == {
        "equal": {"a", "c"},
        "both": {"c"},
        "gt": {"b", "c"},
        "range": {"a", "b"},
        "ne": {"b"},
        "injection": set(),
    }


def test_search_by_meaning_orders_and_pages(store):
    for key, text in {"a": "aaaa", "b": "bbbb", "c": "aaab"}.items():
        store.put(("docs",), key, {"text": text})
    store.put(("docs",), "plain", {"other": "aaaa"})

    found = store.search(("docs",), query="aaaa", limit=3)

    assert keys(found) == ["a", "c", "b"]
    assert [round(item.score, 2) for item in found] == [1.0, 0.95, 0.0]
    assert keys(store.search(("docs",), query="aaaa", limit=1, offset=1)) == ["c"]


def test_a_new_value_is_found_by_its_new_text_alone(store):
    store.put(("docs",), "a", {"text": "aaaa"})
    store.put(("docs",), "a", {"text": "bbbb"})

    (found,) = store.search(("docs",), query="aaaa")

    assert found.score == 0


def test_an_item_that_is_not_indexed_has_no_score(store):
    store.put(("docs",), "a", {"text": "aaaa"}, index=False)
    store.put(("docs",), "b", {"text": "zzz", "title": "aaaa"}, index=["title"])

    assert [(item.key, item.score) for item in store.search(("docs",), query="aaaa")] == [("b", 1.0), ("a", None)]


def test_namespaces_are_listed_by_prefix_suffix_and_depth(store):
    for namespace in [("a", "b", "c"), ("a", "b", "d"), ("a", "x", "c"), ("z",)]:
        store.put(namespace, "k", {})

    assert store.list_namespaces(prefix=("a", "b")) == [("a", "b", "c"), ("a", "b", "d")]
    assert store.list_namespaces(suffix=("c",)) == [("a", "b", "c"), ("a", "x", "c")]
    assert store.list_namespaces(prefix=("a", "*", "c")) == [("a", "b", "c"), ("a", "x", "c")]
    assert store.list_namespaces(max_depth=2) == [("a", "b"), ("a", "x"), ("z",)]
    assert store.list_namespaces(max_depth=1, limit=1, offset=1) == [("z",)]
    both = ListNamespacesOp((MatchCondition("prefix", ("a",)), MatchCondition("suffix", ("d",))))
    assert store.batch([both]) == [[("a", "b", "d")]]


def test_bad_namespaces_are_refused(store):
    for namespace in [(), ("a.b",), ("",), ("langgraph", "x")]:
        with pytest.raises(InvalidNamespaceError):
            store.put(namespace, "k", {})


def test_async_calls(store):
    async def run():
        await store.aput(("docs",), "a", {"text": "aaaa"})
        found = await store.asearch(("docs",), query="aaaa")
        await store.adelete(("docs",), "a")
        return keys(found), await store.aget(("docs",), "a"), await store.alist_namespaces()

    assert asyncio.run(run())[:2] == (["a"], None)


# What only a memory does


def test_items_are_there_in_another_process_and_found_by_the_built_in_embedder(tmp_path):
    with Memory(tmp_path / "chat.db") as memory:
        store = HoldfastStore(memory, user_label=1)
        store.put(("memories", "ana"), "food", {"text": "She does not eat meat."})
        store.put(("memories", "ana"), "home", {"text": "She lives by the sea."})
    with Memory(tmp_path / "chat.db") as memory:
        found = HoldfastStore(memory, user_label=1).search(("memories", "ana"), query="vegetarian dishes")

        assert found[0].key == "food"


def test_items_belong_to_the_user_of_their_namespace_and_go_with_them(tmp_path):
    path = tmp_path / "chat.db"
    with Memory(path, embedder=None) as memory:
        store = HoldfastStore(memory, user_label=1)
        store.put(("memories", "ana"), "k", {"text": "wombats"})
        store.put(("memories", "bo"), "k", {"text": "bo's"})
        store.put(("settings",), "k", {"text": "everybody's"})

        receipt = memory.user("ana").erase()

        assert receipt.rows["items"] == 1
        assert store.search(("memories", "ana")) == []
        assert [item.value["text"] for item in store.search(("memories", "bo"))] == ["bo's"]
        assert store.get(("settings",), "k").value == {"text": "everybody's"}
    assert b"wombats" not in path.read_bytes()


def test_a_search_without_a_user_sees_no_users_items():
    with Memory(embedder=None) as memory:
        store = HoldfastStore(memory, user_label=1)
        store.put(("memories", "ana"), "k", {"text": "ana's"})

        assert store.search(("memories",)) == []
        assert store.list_namespaces() == []


def test_nothing_is_kept_of_a_user_who_paused():
    with Memory(embedder=None) as memory:
        memory.user("ana").pause()
        HoldfastStore(memory, user_label=1).put(("memories", "ana"), "k", {"text": "secret"})

        assert HoldfastStore(memory, user_label=1).get(("memories", "ana"), "k") is None


def test_items_expire_and_reading_refreshes_them():
    clock = FakeClock()
    with Memory(embedder=None, clock=clock) as memory:
        store = HoldfastStore(memory, ttl={"refresh_on_read": True, "default_ttl": 10})
        store.put(("docs",), "a", {"text": "one"})
        clock.advance(minutes=9)
        assert store.get(("docs",), "a") is not None
        clock.advance(minutes=9)
        assert store.search(("docs",), refresh_ttl=False) != []
        clock.advance(minutes=2)
        assert store.get(("docs",), "a") is None
        store.put(("docs",), "b", {"text": "two"})

        assert b"one" not in b"".join(
            row.value
            for _, _, row in memory._engine.store.read(store._scope(("docs",)), lambda view: view.every_item())
        )
