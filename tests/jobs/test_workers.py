"""Background threads and a caller that waits for them."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

from holdfast import Memory
from holdfast.jobs import summaries
from holdfast.jobs.worker import Workers
from holdfast.reports import DigestReport
from holdfast.scope import Scope
from holdfast.testing.clock import FakeClock


class Chain:
    """A queue in which each job of a user makes the next one due, until the last."""

    def __init__(self, length: int) -> None:
        self.wake = threading.Event()
        self.observer = SimpleNamespace(report=lambda *_: None)
        self.done: list[int] = []
        self._due = [0]
        self._length = length
        self._lock = threading.Lock()

    def let_go(self):
        pass

    def claim(self, *, kinds=(), user=None, ahead_ms=0, several=1):
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
