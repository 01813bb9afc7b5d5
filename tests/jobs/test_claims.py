"""Whose job is next where many wait."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast import Memory
from holdfast.scope import Scope
from holdfast.store import Store, WriteView
from holdfast.store.changes import ChangeLog
from holdfast.store.claims import LANES
from holdfast.testing.rows import ANA
from holdfast.types import Job

NOW = 1_000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Memory(tmp_path / "memory.db", embedder=None) as memory:
        yield memory._engine.store


def order(store: Store, scope: Scope, jobs: int, kinds: tuple[str, ...] = ("extract",), at: int = 10) -> None:
    """Queue so many jobs of each kind."""

    def want(view: WriteView) -> None:
        for number in range(jobs):
            for kind in kinds:
                view.at("self", f"c{number}").want(kind, "", wanted=1, run_at_ms=at, now_ms=number)

    store.write(scope, want)


def take(store: Store, several: int = 16, kinds: tuple[str, ...] = (), now_ms: int = NOW) -> list[Job]:
    return store.claim_some(now_ms=now_ms, worker="w", lease_ms=1_000, kinds=kinds, limit=several)


def test_several_are_taken_at_once_the_longest_overdue_first(store: Store) -> None:
    order(store, ANA, 5, at=20)
    order(store, ANA.within("old"), 1, at=5)
    store.write(ANA.within("old"), lambda view: view.want("extract", "late", wanted=1, run_at_ms=NOW + 1, now_ms=0))

    first, rest, none = take(store, 3), take(store), take(store)

    assert [job.conversation for job in first] == ["c0", "c1", "c2"]
    assert [(job.state, job.fence, job.attempt) for job in first + rest] == [("running", 1, 1)] * 5
    assert none == []
    events = store.read(ANA, lambda view: view.news(0, limit=100)).events
    assert sorted(event.ref for event in events if event.kind == "job.running") == sorted(j.id for j in first + rest)


def test_a_backlog_of_one_kind_of_work_does_not_stop_the_others(store: Store) -> None:
    order(store, ANA, 300, ("extract",), at=1)
    order(store, replace(ANA, user="bo"), 1, ("embed", "chunk"), at=50)

    kinds = [job.kind for _ in range(6) for job in take(store, 8, ("extract", "chunk", "embed"))]

    assert Counter(kinds)["chunk"] == Counter(kinds)["embed"] == 1


def test_a_small_org_is_served_in_any_backlog(store: Store) -> None:
    """The backlog is of several kinds, older and newer than the work of the small org."""
    for number in range(20):
        order(store, replace(ANA, org="big", user=f"u{number}"), 20, ("extract", "chunk", "embed"), at=number * 40)
    order(store, replace(ANA, org="small"), 1, at=400)

    orgs = [{job.org for job in take(store)} for _ in range(4)]

    assert {"small"} in orgs


def test_users_of_an_org_take_turns_beside_an_import(store: Store) -> None:
    order(store, replace(ANA, user="importer"), 200, at=1)
    for number in range(3):
        order(store, replace(ANA, user=f"u{number}"), 1, at=500)

    first = [job.user for _ in range(2) for job in take(store, 4)]

    assert {"u0", "u1", "u2"} <= set(first)


def test_of_one_users_work_the_kind_named_first_is_first(store: Store) -> None:
    order(store, ANA, 40, ("embed",), at=1)
    order(store, ANA, 1, ("extract",), at=500)

    job = store.claim(
        now_ms=NOW, worker="w", lease_ms=1, kinds=("extract", "embed"), user=replace(ANA, conversation=None)
    )

    assert job is not None
    assert job.kind == "extract"


def test_a_story_is_told_once_all_of_its_users_chunks_are_closed(store: Store) -> None:
    order(store, ANA, 3, ("story",), at=1)
    order(store, ANA, 40, ("chunk",), at=50)
    order(store, replace(ANA, user="bo"), 1, ("story",), at=60)
    lease = {"now_ms": NOW, "worker": "w", "lease_ms": 1_000, "kinds": ("chunk", "story"), "last": ("story",)}

    taken = [(job.user, job.kind) for _ in range(8) for job in store.claim_some(**lease, limit=8)]

    assert taken.index(("ana", "story")) > max(place for place, job in enumerate(taken) if job == ("ana", "chunk"))
    assert taken.index(("bo", "story")) < taken.index(("ana", "story"))
    assert len(taken) == 44


def test_work_behind_many_orgs_that_sleep_is_found(store: Store) -> None:
    def sleep(view: WriteView) -> None:
        for number in range(LANES + 20):
            view.want(f"kind{number:05}", "", wanted=1, run_at_ms=NOW * 9, now_ms=0)

    store.write(replace(ANA, org="a"), sleep)
    order(store, replace(ANA, org="z"), 1)

    assert [job.org for job in take(store)] == ["z"]
    assert take(store) == []


def test_what_a_lost_worker_held_is_taken_over_while_others_wait(store: Store) -> None:
    order(store, ANA, 1, at=1)
    take(store)
    order(store, replace(ANA, org="big"), 50, at=NOW)

    later = [job for _ in range(60) for job in take(store, 1, now_ms=NOW + 1_000)]

    assert [(job.org, job.fence) for job in later if job.org != "big"] == [("acme", 2)]


def test_sixteen_workers_take_nothing_twice_and_leave_nothing(store: Store) -> None:
    for number in range(4):
        order(store, replace(ANA, user=f"u{number}"), 30, ("extract", "chunk"))
    taken: list[str] = []

    def work() -> None:
        while jobs := take(store, 4):
            taken.extend(job.id for job in jobs)

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(taken) == len(set(taken)) >= 200
    assert len(taken) + len(store.jobs(state="ready")) == 240


def test_all_that_a_lost_worker_held_is_taken_over_in_a_row(store: Store) -> None:
    order(store, ANA, 5, at=1)
    take(store)
    order(store, replace(ANA, org="big"), 50, at=NOW)
    store._claims._expired_at = 0.0  # it is time to look for them

    later = [job for _ in range(12) for job in take(store, 1, now_ms=NOW + 1_000)]

    assert sum(job.org != "big" for job in later) == 5


def test_events_of_claims_are_stored_in_order_of_user(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two claims of the same users would else wait for each other."""
    asked: list[list[tuple[str, str, str]]] = []
    for at, user in enumerate(("zoe", "ben", "ana")):
        order(store, replace(ANA, user=user), 1, at=at)
    stored = ChangeLog._store

    def note(self, driver, events, limits):  # type: ignore[no-untyped-def]
        asked.append(list(events))
        stored(self, driver, events, limits)

    monkeypatch.setattr(ChangeLog, "_store", note)
    take(store)

    assert [[user for _, user, _ in users] for users in asked] == [["ana", "ben", "zoe"]]
