"""Too many memories: the weakest are put away, nothing is lost, and use keeps what is used."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast import Config, Memory
from holdfast.errors import BadInput
from holdfast.jobs import usage
from holdfast.testing.fakes import FakeClock, HashEmbedder

DAY = 86_400
TOWNS = ["Porto", "Lagos", "Faro", "Braga", "Evora", "Tomar", "Sintra", "Beja", "Elvas", "Viseu"]


@pytest.fixture
def memory(clock: FakeClock) -> Iterator[Memory]:
    with Memory(embedder=HashEmbedder(), clock=clock, config=Config(max_memories=4)) as opened:
        yield opened
        opened.digest()
        assert opened.doctor().findings == ()


def likes(memory: Memory, clock: FakeClock, *what: str) -> None:
    for town in what:
        memory.conversation("a", user="ana").record(f"I love {town}.")
        clock.advance(seconds=DAY)


def active(memory: Memory) -> list[str]:
    return sorted(fact.value for fact in memory.user("ana").facts())


def away(memory: Memory) -> list[str]:
    return sorted(fact.value for fact in memory.user("ana").facts(archived=True))


def test_the_background_puts_away_the_weakest_beyond_the_cap(memory: Memory, clock: FakeClock) -> None:
    likes(memory, clock, *TOWNS[:6])
    memory.digest()

    assert active(memory) == ["Braga", "Evora", "Faro", "Tomar"]
    assert away(memory) == ["Lagos", "Porto"]


def test_what_was_put_away_is_neither_recalled_nor_shown_and_stays_in_history_and_export(
    memory: Memory, clock: FakeClock
) -> None:
    likes(memory, clock, *TOWNS[:6])
    user = memory.user("ana")
    report = user.prune()

    assert (sorted(fact.value for fact in report.archived), report.active) == (["Lagos", "Porto"], 4)
    assert all(fact.ended_because == "archived" and not fact.live for fact in report.archived)
    assert [hit for hit in user.search("Do I love Porto?", kinds=("fact",)) if "Porto" in hit.text] == []
    assert "Porto" not in memory.conversation("b", user="ana").context("Porto?").section("facts").text
    assert [f.ended_because for f in user.history("preference")] == ["archived", "archived", "", "", "", ""]
    exported = {f["value"]: f["ended_because"] for f in user.export()["facts"]}
    assert exported["Porto"] == "archived"
    with pytest.raises(BadInput):
        user.facts(archived=True, as_of=clock())


def test_what_is_used_stays(memory: Memory, clock: FakeClock) -> None:
    likes(memory, clock, *TOWNS[:4])
    for _ in range(3):
        memory.user("ana").search("Porto", kinds=("fact",), limit=1)
    likes(memory, clock, *TOWNS[4:6])
    memory.digest()
    (porto,) = [fact for fact in memory.user("ana").facts() if fact.value == "Porto"]

    assert away(memory) == ["Faro", "Lagos"]
    assert porto.uses == 3
    assert porto.last_used_at is not None
    assert porto.strength > 3


def test_a_recalled_fact_is_used_and_one_that_only_stands_there_is_not(memory: Memory, clock: FakeClock) -> None:
    likes(memory, clock, "Porto", "Braga")
    memory.conversation("b", user="ana").context("What is Porto like?")
    memory.conversation("b", user="ana").record("It rains.")

    assert {f.value: f.uses for f in memory.user("ana").facts()}["Porto"] == 1


def test_saying_it_again_brings_it_back(memory: Memory, clock: FakeClock) -> None:
    likes(memory, clock, *TOWNS[:6])
    memory.digest()
    receipt = memory.conversation("a", user="ana").record("I love Porto.")
    memory.digest()

    assert [change.op for change in receipt.changes] == ["confirmed"]
    assert "Porto" in active(memory)
    assert len(active(memory)) == 4
    assert any("Porto" in hit.text for hit in memory.user("ana").search("Porto", kinds=("fact",)))


def test_what_is_contradicted_or_taken_back_while_put_away_does_not_come_back(memory: Memory, clock: FakeClock) -> None:
    likes(memory, clock, *TOWNS[:6])
    memory.digest()
    (porto,) = [fact for fact in memory.user("ana").facts(archived=True) if fact.value == "Porto"]
    memory.conversation("a", user="ana").record("I don't love Porto.")

    assert away(memory) == ["Lagos"]
    assert {f.id: f.ended_because for f in memory.user("ana").history("preference")}[porto.id] == "retracted"


def test_restore_brings_back_what_was_put_away(memory: Memory, clock: FakeClock) -> None:
    likes(memory, clock, *TOWNS[:6])
    memory.digest()
    user = memory.user("ana")
    before = {fact.id: fact for fact in user.facts(archived=True)}
    change = user.restore(next(iter(before)))
    user.prune()

    assert change.op == "new"
    assert change.fact is not None
    assert change.fact.valid_from == before[change.fact.id].valid_from
    assert change.fact.value in active(memory)
    assert len(active(memory)) == 4


def test_who_somebody_is_and_what_was_told_by_hand_go_last(memory: Memory, clock: FakeClock) -> None:
    chat, user = memory.conversation("a", user="ana"), memory.user("ana")
    chat.record("My name is Ana.")
    user.remember("The blue kettle is mine.")
    clock.advance(seconds=400 * DAY)
    likes(memory, clock, *TOWNS[:6])
    memory.digest()

    assert {fact.text for fact in user.facts()} >= {"The blue kettle is mine."}
    assert "Ana" in active(memory)
    assert len(user.facts()) == 4


def test_faded_sentences_are_put_away_when_asked_for(memory: Memory, clock: FakeClock) -> None:
    memory.conversation("a", user="ana").record("I love Porto.")
    clock.advance(seconds=900 * DAY)
    user = memory.user("ana")

    assert user.prune(faded=True).archived == ()  # an attribute does not fade by time alone
    assert user.prune().active == 1


def test_nothing_is_put_away_of_somebody_who_paused(memory: Memory, clock: FakeClock) -> None:
    likes(memory, clock, *TOWNS[:6])
    memory.user("ana").pause()

    assert memory.user("ana").prune().archived == ()
    assert memory.user("ana").prune().active == 6
    memory.user("ana").resume()


def test_erasing_takes_what_was_put_away_along(memory: Memory, clock: FakeClock) -> None:
    likes(memory, clock, *TOWNS[:6])
    memory.digest()
    memory.conversation("a", user="ana").forget(1)

    assert away(memory) == ["Lagos"]
    memory.user("ana").erase()
    assert (away(memory), active(memory)) == ([], [])


def test_uses_are_written_when_the_memory_is_closed_and_every_process_adds_its_own(tmp_path: Path) -> None:
    path, clock = tmp_path / "chat.db", FakeClock(datetime(2026, 1, 5, 9, tzinfo=UTC))
    first = Memory(path, embedder=None, clock=clock)
    first.conversation("a", user="ana").record("I love Porto.")
    second = Memory(path, embedder=None, clock=clock)
    for memory in (first, second, first):
        memory.user("ana").search("Porto", kinds=("fact",))
    first.close()
    second.close()
    with Memory(path, embedder=None, clock=clock) as memory:
        (fact,) = memory.user("ana").facts()

        assert fact.uses == 3


@pytest.mark.sqlite("the bytes of its log are compared")
def test_a_read_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    with Memory(path, embedder=None) as memory:
        memory.conversation("a", user="ana").record("I love Porto.")
        memory.digest()
        before = (tmp_path / "chat.db-wal").read_bytes()
        for _ in range(5):
            memory.user("ana").search("Porto", kinds=("fact",))

        assert (tmp_path / "chat.db-wal").read_bytes() == before


def test_counts_are_bounded_and_survive_threads(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "MAX_USERS", 3)
    noted = memory._engine.uses
    scopes = [memory.user(f"p{n}")._scope for n in range(5)]
    threads = [threading.Thread(target=lambda: [noted.add(scopes[4], ["x"]) for _ in range(50)]) for _ in range(4)]
    for scope in scopes:
        noted.add(scope, ["x"])
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert noted.pop(scopes[0]).facts == {}
    assert noted.pop(scopes[4]).facts["x"][0] == 201


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["say", "use", "prune", "restore", "digest", "forget"]), min_size=5, max_size=25))
def test_no_more_than_the_cap_are_active_after_every_upkeep(steps: list[str]) -> None:
    clock = FakeClock(datetime(2026, 1, 5, 9, tzinfo=UTC))
    with Memory(embedder=None, clock=clock, config=Config(max_memories=3)) as memory:
        user = memory.user("ana")
        for number, step in enumerate(steps):
            clock.advance(seconds=DAY)
            if step == "say":
                memory.conversation("a", user="ana").record(f"I love {TOWNS[number % len(TOWNS)]}.")
            elif step == "use":
                user.search(TOWNS[number % len(TOWNS)], kinds=("fact",))
            elif step == "restore":
                for fact in user.facts(archived=True)[:1]:
                    user.restore(fact.id)
            elif step == "forget":
                for fact in user.facts()[:1]:
                    user.forget(fact.id)
            elif step == "prune":
                assert user.prune().active <= 3
            else:
                memory.digest()
                assert [job.kind for job in memory.jobs() if job.kind != "chunk"] == []  # it waits for a silence
        user.prune()

        assert len(user.facts()) <= 3
        assert memory.doctor().findings == ()
