"""Background threads and a caller that waits for them."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from holdfast import Memory
from holdfast.errors import StoreBusy
from holdfast.jobs import summaries, worker
from holdfast.jobs.queue import Queue
from holdfast.jobs.worker import Workers
from holdfast.reports import DigestReport
from holdfast.scope import Scope
from holdfast.testing.fakes import FakeClock, HashEmbedder


class Chain:
    """A queue in which each job of a user makes the next one due, until the last."""

    def __init__(self, length: int) -> None:
        self.wake = threading.Event()
        self.observer = SimpleNamespace(report=lambda *_: None)
        self.done: list[int] = []
        self._due = [0]
        self._length = length
        self._lock = threading.Lock()

    keeps = False

    def let_go(self):
        pass

    def claim(self, *, kinds=(), user=None, ahead_ms=0, several=None):
        with self._lock:
            if not self._due or (user is not None and user.user != "ana"):
                return None
            number = self._due.pop()
        return SimpleNamespace(id=str(number), kind="facts", org="", user="ana", bot="", attempt=1)

    def run(self, job) -> DigestReport:
        time.sleep(0.005)
        with self._lock:
            self.done.append(int(job.id))
            if len(self.done) < self._length:
                self._due.append(len(self.done))
        self.wake.set()
        return DigestReport(jobs=1)


def eventually(condition) -> None:
    """Wait until *condition* holds; ten seconds at most."""
    until = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < until, "it never came to be"
        time.sleep(0.01)


def test_a_caller_waits_for_jobs_of_threads_and_for_those_that_follow() -> None:
    queue = Chain(60)
    workers = Workers(queue, 2)  # type: ignore[arg-type]
    workers.drain(None)
    done = list(queue.done)
    workers.stop()

    assert done == list(range(60))


def test_a_caller_for_one_user_does_not_wait_for_jobs_of_others() -> None:
    queue = Chain(40)
    workers = Workers(queue, 1)  # type: ignore[arg-type]
    workers.drain(None, Scope("", "", "ben"))
    done = len(queue.done)
    workers.drain(None, Scope("", "", "ana"))
    assert (done < 40, len(queue.done)) == (True, 40)
    workers.stop()


def test_a_caller_with_little_time_goes_on_without_the_threads() -> None:
    queue = Chain(2000)
    workers = Workers(queue, 1)  # type: ignore[arg-type]
    began = time.monotonic()
    workers.drain(began + 0.05)

    assert len(queue.done) < 1000  # it has not waited for all of them
    workers.stop()


def test_an_end_that_is_said_while_a_worker_looks_for_chunks_closes_them(monkeypatch):
    with Memory(embedder=None, clock=FakeClock()) as memory:
        chat, find = memory.conversation("c", user="ana"), summaries.find_closed_chunks
        for number in range(12):
            chat.record(f"I walked to town number {number}.", "Nice.")
        ends = iter([chat.end])

        def end_too(messages, config, **settings):
            found = find(messages, config, **settings)
            if not found:
                next(ends, lambda: None)()  # the worker has read the conversation and does not see this end
            return found

        monkeypatch.setattr(summaries, "find_closed_chunks", end_too)
        memory.run_now(next(job.id for job in memory.jobs() if job.kind == "chunk"))
        memory.digest()

        assert [(s.start_seq, s.end_seq) for s in chat.summaries()][-1][1] == 24


@pytest.fixture
def store(tmp_path):
    with Memory(tmp_path / "memory.db", embedder=None, background=False) as memory:
        yield memory._engine.store


def queue_of(store, run=None, kinds=("extract", "read"), **settings):
    handlers = dict.fromkeys(kinds, run)
    fixed = {"worker": "w", "lease_ms": 60_000, "attempts": 5, "backoff_ms": 0}
    return Queue(store=store, handlers=handlers, now_ms=lambda: 1_000, **fixed, **settings)


def order(store, *users: str, kind: str = "extract") -> None:
    for at, user in enumerate(users, 1):
        store.write(
            Scope("acme", "bot", user), lambda view, at=at: view.want(kind, "", wanted=1, run_at_ms=at, now_ms=at)
        )


def states(store) -> dict[str, str]:
    return {job.user: job.state for job in store.jobs()}


def test_several_are_claimed_only_of_kinds_that_are_known_to_be_quick(store):
    order(store, "a", "b", "c")
    order(store, "a", "b", "c", kind="read")
    queue = queue_of(store, alone=lambda: ("read",))

    for kind in ("read", "extract"):
        assert queue.claim(kinds=(kind,), several={"extract": 16, "read": 16}) is not None
    running = [job.kind for job in store.jobs(state="running")]
    queue.let_go()
    assert queue.claim(several={"other": 16}) is not None

    assert (running.count("read"), running.count("extract")) == (1, 3)
    assert not queue.keeps


def test_work_that_may_call_a_model_is_claimed_alone():
    with Memory(embedder=None, background=False) as memory:
        assert memory._engine.queue.alone() == ()
        memory._engine.work.default = replace(memory._engine.work.default, client=SimpleNamespace())
        assert {"read", "episodes", "chunk", "story"} <= set(memory._engine.queue.alone())
        assert "extract" not in memory._engine.queue.alone()


def test_a_slow_job_lets_go_of_those_that_were_claimed_with_it(store):
    warm, slow, go_on = [f"warm{number}" for number in range(8)], threading.Event(), threading.Event()
    ran: list[str] = []

    def run(job):
        if job.user == "slow":
            slow.set()
            assert go_on.wait(60)
        ran.append(job.user)
        store.write(Scope(job.org, job.bot, job.user), lambda view: view.finish(job, 1_000))
        return DigestReport()

    queue, other = queue_of(store, run), queue_of(store, run)
    order(store, *warm)
    workers = Workers(queue, 1)
    try:
        workers.drain(None)
        order(store, "slow", *(f"quick{number}" for number in range(5)))
        workers.wake()
        assert slow.wait(60)
        found: set[str] = set()
        for _ in range(1_000):
            if len(found) == 5:
                break
            job = other.claim()
            if job is None:
                threading.Event().wait(0.02)
            else:
                found.add(job.user)
        assert found == {f"quick{number}" for number in range(5)}
    finally:
        go_on.set()
        workers.stop()


def test_what_was_claimed_and_did_not_run_is_put_back_as_it_was(store):
    order(store, "a", "b", "c")
    for job in store.jobs():
        claimed = store.claim(
            now_ms=500, worker="x", lease_ms=9, kinds=("extract",), user=Scope("acme", "bot", job.user)
        )
        store.fail(claimed, reason="Trouble", run_at_ms=claimed.run_at_ms, dead=False)
    before = [replace(job, fence=0) for job in store.jobs()]
    queue = queue_of(store)

    first = queue.claim(several={"extract": 16})
    queue.let_go()
    queue.release(first)

    assert [replace(job, fence=0) for job in store.jobs()] == before
    kinds = [event.kind for event in store.read(Scope("acme", "bot", "c"), lambda view: view.news(0, limit=100)).events]
    assert kinds[-2:] == ["job.running", "job.queued"]
    assert kinds.count("job.failed") == 1  # that of before


def test_a_job_that_cannot_be_put_back_does_not_keep_the_others(store, monkeypatch):
    order(store, "a", "b", "c", "d")
    queue, give_back, refused = queue_of(store), store.give_back, []

    def refuse_once(job):
        if not refused:
            refused.append(job.user)
            raise StoreBusy("busy")
        return give_back(job)

    monkeypatch.setattr(store, "give_back", refuse_once)
    first = queue.claim(several={"extract": 16})
    queue.let_go()

    assert {user for user, state in states(store).items() if state == "running"} == {first.user, *refused}
    assert not queue.keeps


def test_what_follows_within_a_moment_is_embedded_by_one_job(monkeypatch):
    monkeypatch.setattr(worker, "_GATHER_SECONDS", 2.0)
    monkeypatch.setattr(worker, "_MOST_GATHER_SECONDS", 20.0)
    with Memory(embedder=HashEmbedder(), background=True) as memory:
        ended = []
        memory.admin.observe(lambda what, of, _: ended.append(of) if what == "job.done" else None)
        eventually(memory._engine.queue.idle.is_set)
        for number in range(4):
            memory.conversation("c", user="ana").append({"role": "user", "content": f"Lovely day {number}."})
        eventually(lambda: "embed" in ended and all(job.kind != "embed" for job in memory.jobs()))

        assert ended.count("embed") == 1
