"""``holdfast worker`` as processes: they share the work, stop in order, and take over from each other."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from holdfast import Memory

from .conftest import SOURCE

PATIENCE_S = 240  # on a machine that has much else to do
USERS = [f"user-{number}" for number in range(4)]
# Ten messages of this length are a chunk in another process too, where chunk_tokens is what it is by default.
TALK = " The tram was late again, and the rain came down on the old bridge until the lamps were lit." * 4


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store in which all work is still to be done."""
    target = tmp_path / "chat.db"
    with Memory(target) as memory:
        for user in USERS:
            turns = [
                {"role": role, "content": f"I live in Porto, and this is turn {number}.{TALK}"}
                for number in range(12)
                for role in ("user", "assistant")
            ]
            memory.conversation("c", user=user).append(turns)
    return target


@contextmanager
def running(path: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "holdfast", "worker", "--store", str(path), "--json", "--lease", "2", *options]
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as one:
        try:
            assert one.stdout is not None
            first = one.stdout.readline()
            assert first, f"the worker ended before its first line: {errors(one)}"
            assert json.loads(first)["state"] == "working"
            yield one
        finally:
            one.kill()


def errors(worker: subprocess.Popen[str]) -> str:
    """Return the exit code and what a worker that has ended printed on stderr."""
    assert worker.stderr is not None
    return f"exit code {worker.wait(PATIENCE_S)}: {worker.stderr.read()}"


def assert_ended_well(*workers: subprocess.Popen[str]) -> None:
    for worker in workers:
        assert worker.wait(PATIENCE_S) == 0, errors(worker)


def assert_done_once(path: Path) -> None:
    """All work was done, and none of it twice."""
    with Memory(path) as memory:
        assert memory.jobs("running") == memory.jobs("dead") == []
        assert memory.doctor().ok
        for user in USERS:
            owner = memory.user(user)
            assert [fact.value for fact in owner.facts() if fact.key == "lives_in"] == ["Porto"]
            assert len(memory.conversation("c", user=user).summaries(level=1)) == 2


def put_to_sleep(process: subprocess.Popen[str], path: Path) -> None:
    """Stop a worker between its writes: during a write it holds SQLite's lock, and no other could continue."""
    while True:
        process.send_signal(signal.SIGSTOP)
        db = apsw.Connection(str(path))
        try:
            db.set_busy_timeout(500)
            db.execute("BEGIN IMMEDIATE")
            db.execute("ROLLBACK")
            return
        except apsw.BusyError:
            process.send_signal(signal.SIGCONT)
            time.sleep(0.05)
        finally:
            db.close()


def test_two_workers_drain_a_store_together(path: Path) -> None:
    with running(path, "--drain") as one, running(path, "--drain") as other:
        assert_ended_well(one, other)
    assert_done_once(path)


def test_a_worker_stops_in_order_on_sigterm(path: Path) -> None:
    with running(path, "--threads", "1") as one:
        one.send_signal(signal.SIGTERM)
        assert_ended_well(one)
    with Memory(path) as memory:
        assert memory.jobs("running") == []
        memory.digest()
    assert_done_once(path)


def test_another_worker_takes_over_from_one_that_was_killed(path: Path) -> None:
    with running(path) as one:
        time.sleep(0.3)
        one.kill()
    with running(path, "--drain") as other:
        assert_ended_well(other)
    assert_done_once(path)


def test_a_worker_that_slept_beyond_its_lease_writes_nothing_twice(path: Path) -> None:
    with running(path) as sleeper:
        time.sleep(0.2)
        put_to_sleep(sleeper, path)
        with running(path, "--drain") as other:
            try:
                assert_ended_well(other)
            finally:
                sleeper.send_signal(signal.SIGCONT)
        sleeper.send_signal(signal.SIGTERM)
        assert_ended_well(sleeper)
    assert_done_once(path)
