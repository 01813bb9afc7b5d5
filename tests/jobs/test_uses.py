"""A use is a fact that answered; strength is as of now; what has faded is archived by itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from holdfast import Config, Memory
from holdfast.testing.fakes import FakeClock

DAY = 86_400


@pytest.fixture
def memory(clock: FakeClock) -> Iterator[Memory]:
    with Memory(clock=clock) as opened:
        for said in ("I'm vegetarian.", "I live in Porto.", "I work as a nurse.", "I have a dog named Rex."):
            opened.conversation("chat", user="ana").record(said, "Noted.")
        opened.digest()
        yield opened
        opened.digest()
        assert opened.doctor().findings == ()


def used(memory: Memory) -> dict[str, int]:
    """Return how often each fact that was used at all was used."""
    memory.digest()
    return {fact.text: fact.uses for fact in memory.user("ana").facts() if fact.uses}


def fact(memory: Memory, text: str):
    return next(one for one in memory.user("ana").facts() if one.text == text)


def test_small_talk_uses_nothing(memory: Memory) -> None:
    for _ in range(5):
        memory.conversation("new", user="ana").context("hi, how are you today?")

    assert used(memory) == {}


def test_what_only_stands_in_the_block_is_not_used(memory: Memory) -> None:
    block = memory.conversation("new", user="ana").context("Where do I live?")

    assert "vegetarian" in block.to_text()
    assert used(memory) == {"Lives in Porto.": 1}


def test_an_unrelated_search_uses_nothing(memory: Memory) -> None:
    found = memory.user("ana").search("What is the capital of Mongolia?")

    assert [hit for hit in found if hit.kind == "fact"]
    assert all(not hit.parts for hit in found)
    assert used(memory) == {}


def test_a_search_uses_what_it_found(memory: Memory) -> None:
    memory.user("ana").search("what is my dog called?")

    assert set(used(memory)) == {"Has a dog named Rex.", "Rex is a dog."}


def test_uses_are_written_while_there_is_nothing_else_to_do() -> None:
    with Memory(background=True) as memory:
        memory.conversation("chat", user="ana").record("I live in Porto.", "Noted.")
        memory.digest()
        memory.user("ana").search("Where do I live?")

        while not memory.user("ana").facts()[0].uses:
            threading.Event().wait(0.05)

        assert memory.user("ana").facts()[0].last_used_at is not None


def test_strength_is_as_of_now(memory: Memory, clock: FakeClock) -> None:
    fresh = fact(memory, "Lives in Porto.").strength
    clock.advance(seconds=30 * DAY)
    later = fact(memory, "Lives in Porto.")
    clock.advance(seconds=270 * DAY)

    assert (fresh, later.strength) == (1.0, 0.5)
    assert fact(memory, "Lives in Porto.").strength == 0.001
    assert memory.user("ana").fact(later.id).strength == 0.001
    assert {one.strength for one in memory.user("ana").history("home")} == {0.001}


def statements(memory: Memory) -> list[str]:
    return sorted(one.text for one in memory.user("ana").facts() if one.kind != "attribute")


def test_what_has_faded_is_archived_without_being_asked(clock: FakeClock) -> None:
    with Memory(clock=clock, embedder=None) as memory:
        ana = memory.user("ana")
        memory.import_(faded_export(ana, "Hums while cooking.", lifetime="state"))
        assert statements(memory) == ["Hums while cooking."]
        clock.advance(seconds=100 * DAY)
        memory.digest()
        assert statements(memory) == ["Hums while cooking."]
        clock.advance(seconds=30 * DAY)
        memory.digest()

        assert statements(memory) == []
        assert [one.text for one in ana.facts(archived=True)] == ["Hums while cooking."]
        assert memory.jobs() == []


@pytest.mark.parametrize(("lifetime", "source"), [("permanent", "rules 1"), ("state", "by hand")])
def test_what_holds_for_good_or_was_written_by_hand_is_spared(clock: FakeClock, lifetime: str, source: str) -> None:
    with Memory(clock=clock, embedder=None) as memory:
        memory.import_(faded_export(memory.user("ana"), "Was born by the sea.", lifetime=lifetime, source=source))
        clock.advance(seconds=900 * DAY)
        memory.digest()

        assert statements(memory) == ["Was born by the sea."]
        assert memory.jobs() == []


def test_nothing_fades_where_that_is_switched_off_or_memory_is_paused(clock: FakeClock) -> None:
    for config, pause in ((Config(archive_faded=False), False), (Config(), True)):
        with Memory(clock=clock, embedder=None, config=config) as memory:
            ana = memory.user("ana")
            memory.import_(faded_export(ana, "Hums while cooking.", lifetime="state"))
            if pause:
                ana.pause()
            clock.advance(seconds=900 * DAY)
            memory.digest()

            assert statements(memory) == ["Hums while cooking."]
            assert memory.doctor().ok


def faded_export(ana, text: str, *, lifetime: str, source: str = "rules 1") -> dict:
    """Return an export with one statement, learned when the clock began."""
    ana.remember(text)
    data = ana.export()
    ana.erase()
    for one in data["facts"]:
        one.update(lifetime=lifetime, source=source, kind="statement", key="", value="")
    return data
