"""Several processes use one file: they wait for each other, and a killed one takes nothing along."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.config import Config
from holdfast.errors import StoreBusy
from holdfast.store import open_store
from holdfast.testing.rows import ANA, say

HOLD = """
import sys, apsw
db = apsw.Connection(sys.argv[1])
db.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.readline()
db.execute("ROLLBACK")
print("free", flush=True)
"""

COUNT = """
import sys
from holdfast.store import open_store
from holdfast.testing.rows import ANA, say
store = open_store(sys.argv[1])
print("open", flush=True)
sys.stdin.readline()
for _ in range(int(sys.argv[2])):
    store.write(ANA, lambda view: say(view, "one more"))
store.close()
print("done", flush=True)
"""

TALK_UNTIL_KILLED = r"""
import os, sys, threading
from holdfast.store import open_store
from holdfast.testing.rows import ANA, say, summarize
store = open_store(sys.argv[1])

def turn(view):
    seq = say(view, "one more turn")[0].seq
    if seq % 10 == 0:
        summarize(view, seq - 9, seq)
    return seq

def talk():
    while True:
        os.write(1, b"%d\n" % store.write(ANA, turn))

for _ in range(3):
    threading.Thread(target=talk).start()
"""


def start(code: str, *args: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *map(str, args)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def hear(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


@contextmanager
def finished(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """Never leave *process* or its pipes behind."""
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_held_file_is_waited_for_and_then_reported_busy(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    store = open_store(path, Config(busy_timeout_ms=300))
    store.write(ANA, lambda view: say(view, "one"))
    with finished(start(HOLD, path)) as holder:
        assert hear(holder) == "held"
        began = time.monotonic()
        with pytest.raises(StoreBusy, match="another process"):
            store.write(ANA, lambda view: say(view, "two"))
        waited = time.monotonic() - began
        readable = store.read(ANA, lambda view: len(view.messages()))
        tell(holder)
        assert hear(holder) == "free"
    store.write(ANA, lambda view: say(view, "two"))

    assert 0.25 < waited < 5
    assert readable == 1
    assert [m.content for m in store.read(ANA, lambda view: view.messages())] == ["one", "two"]
    store.close()


def test_a_file_that_is_let_go_in_time_is_written(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    store = open_store(path, Config(busy_timeout_ms=20_000))
    with finished(start(HOLD, path)) as holder:
        assert hear(holder) == "held"
        tell(holder)
        store.write(ANA, lambda view: say(view, "one"))
    store.close()


def test_eight_processes_count_without_a_gap(tmp_path: Path) -> None:
    """They open one new file at once, and write the same conversation as fast as they can."""
    path = tmp_path / "memory.db"
    counters = [start(COUNT, path, 25) for _ in range(8)]
    try:
        assert [hear(c) for c in counters] == ["open"] * 8
        for counter in counters:
            tell(counter)
        assert [hear(c) for c in counters] == ["done"] * 8
    finally:
        for counter in counters:
            counter.kill()
            counter.communicate()
    store = open_store(path)
    seqs = [m.seq for m in store.read(ANA, lambda view: view.messages())]
    findings = store.check()
    store.close()

    assert seqs == list(range(1, 201))
    assert findings == []


def test_a_killed_process_takes_nothing_acknowledged_along(tmp_path: Path) -> None:
    """kill -9 in the middle of commits, again and again on one file."""
    path = tmp_path / "memory.db"
    chance = random.Random(11)
    acknowledged: set[int] = set()
    for _ in range(8):
        with finished(start(TALK_UNTIL_KILLED, path)) as talker:
            acknowledged.add(int(hear(talker)))
            time.sleep(chance.uniform(0.01, 0.15))
            talker.kill()
            rest, _ = talker.communicate()
        acknowledged.update(int(line) for line in rest.split("\n")[:-1])
        store = open_store(path)
        kept = {m.seq for m in store.read(ANA, lambda view: view.messages())}
        findings = store.check()
        store.close()
        assert findings == []
        assert acknowledged <= kept
    assert len(acknowledged) > 50
