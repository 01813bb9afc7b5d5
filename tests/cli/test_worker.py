"""``holdfast worker`` as processes: they share the work, end in order, and take over from each other."""

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


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store in which everything is still to be done."""
    target = tmp_path / "chat.db"
    with Memory(target) as memory:
        for user in USERS:
            turns = [
                {"role": role, "content": f"I live in Porto, and this is turn {number}."}
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
            assert json.loads(one.stdout.readline())["state"] == "working"
            yield one
        finally:
            one.kill()


def whole(path: Path) -> None:
    """Everything was done, once."""
    with Memory(path) as memory:
        assert memory.jobs("running") == memory.jobs("dead") == []
        assert memory.doctor().ok
        for user in USERS:
            owner = memory.user(user)
            assert [fact.value for fact in owner.facts() if fact.key == "lives_in"] == ["Porto"]
            assert len(memory.conversation("c", user=user).summaries(level=1)) == 2


def put_to_sleep(process: subprocess.Popen[str], path: Path) -> None:
    """Stop a worker between its writes: in the middle of one it holds SQLite's lock, and nobody could go on."""
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
        assert (one.wait(PATIENCE_S), other.wait(PATIENCE_S)) == (0, 0)
    whole(path)


def test_a_worker_that_is_told_to_stop_ends_in_order(path: Path) -> None:
    with running(path, "--threads", "1") as one:
        one.send_signal(signal.SIGTERM)
        assert one.wait(PATIENCE_S) == 0
    with Memory(path) as memory:
        assert memory.jobs("running") == []
        memory.digest()
    whole(path)


def test_another_takes_over_from_a_worker_that_was_killed(path: Path) -> None:
    with running(path) as one:
        time.sleep(0.3)
        one.kill()
    with running(path, "--drain") as other:
        assert other.wait(PATIENCE_S) == 0
    whole(path)


def test_a_worker_that_slept_beyond_its_lease_writes_nothing_twice(path: Path) -> None:
    with running(path) as sleeper:
        time.sleep(0.2)
        put_to_sleep(sleeper, path)
        with running(path, "--drain") as other:
            try:
                assert other.wait(PATIENCE_S) == 0
            finally:
                sleeper.send_signal(signal.SIGCONT)
        sleeper.send_signal(signal.SIGTERM)
        assert sleeper.wait(PATIENCE_S) == 0
    whole(path)
