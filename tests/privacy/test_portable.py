"""An export taken back is the same user; anything else is refused and leaves nothing."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast import Config, Memory
from holdfast.errors import BadInput, Conflict
from holdfast.testing.fakes import FakeClock, HashEmbedder
from holdfast.text.validate import MAX_META_DEPTH

USER = "ana"
PATIENT = settings(deadline=None, suppress_health_check=list(HealthCheck))
LINES = [
    "I live in Lisbon.",
    "I moved to Porto.",
    "I work at Zorblatt.",
    "I no longer work at Zorblatt.",
    "I'm vegetarian.",
    "I speak Spanish.",
    "My dog is called Luna.",
    "My boss might move to Faro.",
    "My card is 4111 1111 1111 1111.",
    "喝绿茶真好 🦑",
    'Quotes " and \\ and\nlines\u2028and \u0000 all.',
]
STEP = st.one_of(
    st.tuples(st.just("say"), st.sampled_from(LINES), st.sampled_from(["a", "b"]), st.sampled_from([None, "rex"])),
    st.tuples(st.just("talk"), st.integers(8, 14)),
    st.tuples(st.just("digest")),
    st.tuples(st.just("end")),
    st.tuples(st.just("forget"), st.integers(1, 12)),
    st.tuples(st.just("edit"), st.integers(1, 12), st.sampled_from(LINES)),
    st.tuples(st.just("remember"), st.sampled_from(LINES)),
    st.tuples(st.just("set"), st.sampled_from(["Braga", "Faro"])),
    st.tuples(st.just("correct"), st.integers(0, 3)),
    st.tuples(st.just("never_true"), st.integers(0, 3)),
    st.tuples(st.just("forget_fact"), st.integers(0, 3)),
    st.tuples(st.just("topic"), st.sampled_from(["health", "work"])),
)


def open_memory() -> Memory:
    clock = FakeClock(datetime(2026, 1, 5, 9, tzinfo=UTC))
    return Memory(embedder=HashEmbedder(dim=16), clock=clock, config=Config(index_cache_mb=1))


def live(memory: Memory, steps: list[tuple[Any, ...]]) -> None:
    """A user's life in a few steps; steps that find nothing to do are passed over."""
    user, chat = memory.user(USER), memory.conversation("a", user=USER)
    for number, (kind, *rest) in enumerate(steps):
        memory._clock.advance(seconds=600)  # type: ignore[attr-defined]
        facts = user.history("home") + user.facts()
        seqs = [m.seq for m in chat.load()]
        if kind == "say":
            text, name, subject = rest
            memory.conversation(name, user=USER, subject=subject).append(
                [{"role": "user", "content": text}, {"role": "assistant", "content": "Noted.", "name": "Bot"}],
                idempotency_key=f"step {number}",
            )
        elif kind == "talk":
            for day in range(rest[0]):
                chat.record(f"Day {day} was a fine one by the river.", "Indeed it was.")
        elif kind == "digest":
            memory.digest()
        elif kind == "end":
            chat.end()
        elif kind in ("forget", "edit") and seqs:
            seq = seqs[rest[0] % len(seqs)]
            chat.forget(seq) if kind == "forget" else chat.edit(seq, rest[1])
        elif kind == "remember":
            user.remember(rest[0])
        elif kind == "set":
            user.remember(category="home", key="lives_in", value=rest[0])
        elif kind == "topic":
            user.never_remember(rest[0])
        elif facts and kind in ("correct", "never_true", "forget_fact"):
            fact = facts[rest[0] % len(facts)]
            if kind == "correct":
                user.correct(fact.id, value="Évora")
            elif kind == "never_true":
                user.never_true(fact.id)
            else:
                user.forget(fact.id)


def test_an_export_comes_back_as_the_same_user(examples: Callable[..., settings]) -> None:
    """Whatever was lived, corrected and erased: the doctor is content, and the copy is the same to the byte."""
    examples(60, PATIENT)(given(st.lists(STEP, min_size=1, max_size=14))(comes_back))()


def comes_back(steps: list[tuple[Any, ...]]) -> None:
    with open_memory() as memory, open_memory() as other:
        live(memory, steps)
        there, here = memory._clock, other._clock
        here.advance(seconds=(there() - here()).total_seconds())  # type: ignore[attr-defined]  strength is as of now
        assert memory.doctor().findings == ()
        memory.digest()
        assert memory.doctor().findings == ()
        exported = memory.user(USER).export()
        text = json.dumps(exported, ensure_ascii=False)
        copied = other.import_(json.loads(text))

        assert json.dumps(copied.export(), ensure_ascii=False) == text
        assert copied.facts() == memory.user(USER).facts()
        assert copied.history("home") == memory.user(USER).history("home")
        assert other.conversation("a", user=USER).load() == memory.conversation("a", user=USER).load()
        assert other.conversation("a", user=USER).summaries() == memory.conversation("a", user=USER).summaries()
        assert other.doctor().findings == ()
        memory.digest()
        other.digest()
        assert other.doctor().findings == ()
        asked = "Where do I live, and what was fine by the river?"
        ours, theirs = memory.user(USER).search(asked, limit=100), copied.search(asked, limit=100)
        assert sorted(hit.id for hit in ours) == sorted(hit.id for hit in theirs)


@cache
def exported_text() -> str:
    with open_memory() as memory:
        chat = memory.conversation("a", user=USER)
        for number in range(30):
            chat.record(LINES[number % len(LINES)] + f" ({number})", "Noted.", idempotency_key=f"k{number}")
        chat.forget(3)
        memory.user(USER).never_remember("health")
        memory.digest()
        return json.dumps(memory.user(USER).export())


@pytest.fixture
def exported() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(exported_text())
    return found


def test_a_user_can_move_to_another_name(exported: dict[str, Any]) -> None:
    with open_memory() as memory:
        user = memory.user("bo", org="other", bot="helper")
        user.import_(exported)

        assert {**user.export(), "org": "default", "user": USER, "bot": "default"} == exported
        again = memory.conversation("a", user="bo", org="other", bot="helper").record(
            LINES[1] + " (1)", "Noted.", idempotency_key="k1"
        )
        assert again.duplicate


def test_a_choice_travels_and_holds(exported: dict[str, Any]) -> None:
    with open_memory() as memory, open_memory() as other:
        memory.import_(exported).pause()
        copied = other.import_(memory.user(USER).export())

        assert copied.status() == memory.user(USER).status()
        assert other.jobs() == []
        assert other.doctor().ok


def test_only_an_empty_user_takes_an_export(exported: dict[str, Any]) -> None:
    with open_memory() as memory:
        memory.conversation("x", user=USER).record("Hello.")
        before = memory.user(USER).export()
        with pytest.raises(Conflict):
            memory.import_(exported)
        assert memory.user(USER).export() == before
        memory.user("bo").opt_out()
        with pytest.raises(Conflict):
            memory.user("bo").import_(exported)


def paths(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [here, *(found for key, item in items for found in paths(item, (*here, key)))]


JUNK = ["remove", None, 0, -1, 2**70, 1.5, True, "", "x", [], {}, [1], {"a": 1}, "\ud800"]


def test_a_damaged_export_is_refused_or_sound(examples: Callable[..., settings]) -> None:
    """One place is removed or holds something else: never a crash, never a store that the doctor finds ill."""
    somewhere = given(place=st.integers(0, 10**6), junk=st.integers(0, len(JUNK) - 1))
    examples(300, PATIENT)(somewhere(refused_or_sound))()


def refused_or_sound(place: int, junk: int) -> None:
    damaged = json.loads(exported_text())
    places = paths(damaged)[1:]
    *above, last = places[place * 7919 % len(places)]  # far apart, also when the number is shrunk or small
    parent = damaged
    for key in above:
        parent = parent[key]
    if JUNK[junk] == "remove":
        del parent[last]
    else:
        parent[last] = copy.deepcopy(JUNK[junk])
    with open_memory() as memory:
        try:
            memory.import_(damaged)
        except (BadInput, Conflict):
            assert memory.admin.users() == []
        assert memory.doctor().findings == ()
        memory.digest()
        assert memory.doctor().findings == ()


@pytest.mark.parametrize(
    "junk", [None, 3, "x", [], {}, {"format": "holdfast-user"}, {"format": "holdfast-user", "version": 2}]
)
def test_what_is_no_export_is_refused(junk: Any) -> None:
    with open_memory() as memory:
        with pytest.raises(BadInput):
            memory.import_(junk)
        with pytest.raises(BadInput):
            memory.user(USER).import_(junk)


@pytest.mark.parametrize("what", ["summary", "fact"])
def test_an_id_names_something(exported: dict[str, Any], what: str) -> None:
    """An empty one is refused, whatever rule would find it."""
    data = copy.deepcopy(exported)
    place = data["facts"] if what == "fact" else data["conversations"][0]["summaries"]
    place[-1]["id"] = ""
    with open_memory() as memory:
        with pytest.raises(BadInput):
            memory.import_(data)
        assert memory.admin.users() == []


@pytest.mark.parametrize(("depth", "taken"), [(MAX_META_DEPTH - 1, True), (MAX_META_DEPTH, False), (900, False)])
def test_an_export_obeys_the_limit_of_nesting(exported: dict[str, Any], depth: int, taken: bool) -> None:
    """What `append` refuses comes in by no other door."""
    data, deep = copy.deepcopy(exported), []
    for _ in range(depth - 1):
        deep = [deep]
    data["conversations"][0]["messages"][0]["meta"] = {"a": deep}
    with Memory(embedder=None) as memory:
        if taken:
            memory.import_(data)
            return
        with pytest.raises(BadInput, match="nested more than"):
            memory.import_(data)
        assert memory.admin.users() == []
