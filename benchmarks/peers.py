"""
Holdfast beside what others store conversations in, in turns, in one run.

    python benchmarks/peers.py [--rounds 20] [--site DIR ...]

The peers are no dependencies of this project.  Install them elsewhere and name their folder:

    python -m venv /tmp/peers && /tmp/peers/bin/pip install openai-agents langgraph langgraph-checkpoint-sqlite
    python benchmarks/peers.py --site /tmp/peers/lib/python3.*/site-packages

One that cannot be imported is skipped with a line that says so.  All work on files in the same
folder with the settings they are shipped with, which each line of the first table tells.  All get the
same texts and the same ready-made vectors.  They do different things with them: only Holdfast also
keeps an index of words, orders the background work and reads what was said for facts.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from support import StandIn, machine, sentence

from holdfast import Config, Memory

MEMORIES = 500
CALLS = 20
EMBEDDER = StandIn()


@dataclass
class Case:
    """One way to do one thing; ``step`` is timed, ``note`` says under which settings."""

    name: str
    step: Callable[[], object]
    note: str = ""


def texts(seed: int) -> Iterator[str]:
    rng = random.Random(seed)
    while True:
        yield sentence(rng)


def settings_of(connection: sqlite3.Connection) -> str:
    """The two settings that decide what a power cut can take."""
    journal = connection.execute("PRAGMA journal_mode").fetchone()[0]
    level = connection.execute("PRAGMA synchronous").fetchone()[0]
    return f"journal {journal}, synchronous {('OFF', 'NORMAL', 'FULL', 'EXTRA')[level]}"


def vectors(found: list[str]) -> list[list[float]]:
    rows: list[list[float]] = EMBEDDER.embed(found).tolist()
    return rows


class Holdfast:
    def __init__(self, folder: Path, users: int) -> None:
        self.said, self.users = texts(1), users
        self.memory = Memory(folder / "holdfast.db", embedder=EMBEDDER)
        self.relaxed = Memory(folder / "relaxed.db", embedder=EMBEDDER, config=Config(durable=False))
        for number in range(users):
            talk = [{"role": "user", "content": next(self.said)} for _ in range(MEMORIES)]
            self.memory.conversation("all", user=f"u{number}").append(talk)
        self.memory.digest()
        self.chat = self.memory.conversation("chat", user="me")
        self.loose = self.relaxed.conversation("chat", user="me")

    def cases(self) -> Iterator[tuple[str, Case]]:
        def append(chat: object) -> Callable[[], object]:
            return lambda: chat.append({"role": "user", "content": next(self.said)})  # type: ignore[attr-defined]

        yield "add", Case("holdfast append", append(self.chat), "journal wal, synchronous FULL")
        yield "add", Case("holdfast append, durable=False", append(self.loose), "journal wal, synchronous NORMAL")
        user = self.memory.conversation("all", user="u0")
        yield "last 20", Case("holdfast load", lambda: user.load(start_seq=MEMORIES - 19, limit=20))
        users = [self.memory.user(f"u{number}") for number in range(self.users)]
        rng = random.Random(3)
        yield "search", Case("holdfast search (words and vectors)", lambda: rng.choice(users).search(next(self.said)))


class Agents:
    def __init__(self, folder: Path, users: int) -> None:
        session = import_module("agents").SQLiteSession
        self.loop, self.said = asyncio.new_event_loop(), texts(1)
        self.session = session("me", folder / "agents.db")
        self.full = session("full", folder / "agents.db")
        self.loop.run_until_complete(self.full.add_items([self.item() for _ in range(MEMORIES)]))

    def item(self) -> dict[str, str]:
        return {"role": "user", "content": next(self.said)}

    def cases(self) -> Iterator[tuple[str, Case]]:
        run = self.loop.run_until_complete
        note = settings_of(self.session._get_connection())
        yield (
            "add",
            Case("openai-agents SQLiteSession.add_items", lambda: run(self.session.add_items([self.item()])), note),
        )
        yield "last 20", Case("openai-agents SQLiteSession.get_items", lambda: run(self.full.get_items(limit=20)))


class LangGraphSqlite:
    def __init__(self, folder: Path, users: int) -> None:
        store = import_module("langgraph.store.sqlite").SqliteStore
        self.said, self.count, self.users = texts(1), 0, users
        self.connection = sqlite3.connect(folder / "langgraph.db", check_same_thread=False, isolation_level=None)
        self.store = store(self.connection, index={"dims": StandIn.dim, "embed": vectors, "fields": ["text"]})
        self.store.setup()
        for number in range(users):
            for _ in range(MEMORIES):
                self.put(f"u{number}")

    def put(self, user: str) -> None:
        self.count += 1
        self.store.put(("memories", user), str(self.count), {"text": next(self.said)})

    def search(self, rng: random.Random) -> object:
        return self.store.search(("memories", f"u{rng.randrange(self.users)}"), query=next(self.said), limit=10)

    def cases(self) -> Iterator[tuple[str, Case]]:
        rng = random.Random(3)
        yield "add", Case("langgraph SqliteStore.put", lambda: self.put("me"), settings_of(self.connection))
        yield "search", Case("langgraph SqliteStore.search (vectors)", lambda: self.search(rng))


class LangGraphMemory(LangGraphSqlite):
    def __init__(self, folder: Path, users: int) -> None:
        store = import_module("langgraph.store.memory").InMemoryStore
        self.said, self.count, self.users = texts(1), 0, users
        self.store = store(index={"dims": StandIn.dim, "embed": vectors, "fields": ["text"]})
        for number in range(users):
            for _ in range(MEMORIES):
                self.put(f"u{number}")

    def cases(self) -> Iterator[tuple[str, Case]]:
        rng = random.Random(3)
        yield "add", Case("langgraph InMemoryStore.put", lambda: self.put("me"), "nothing reaches a disk")
        yield "search", Case("langgraph InMemoryStore.search (vectors)", lambda: self.search(rng))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--users", type=int, default=5, help="with 500 memories each, of whom one is searched")
    parser.add_argument("--site", nargs="*", default=[], help="folders in which the peers are installed")
    args = parser.parse_args()
    sys.path += args.site
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        cases: list[tuple[str, Case]] = []
        for maker in (Holdfast, Agents, LangGraphSqlite, LangGraphMemory):
            try:
                cases += maker(Path(folder), args.users).cases()
            except (ImportError, AttributeError, sqlite3.Error) as error:
                print(f"{maker.__name__} is skipped: {error}")
        times: dict[str, list[float]] = {case.name: [] for _, case in cases}
        for _ in range(args.rounds):
            for _, case in cases:
                began = time.perf_counter()
                for _ in range(CALLS):
                    case.step()
                times[case.name].append((time.perf_counter() - began) / CALLS * 1e3)
        for what in ("add", "last 20", "search"):
            for wanted, case in cases:
                if wanted == what:
                    print(f"{what:8} {case.name:40} {statistics.median(times[case.name]):8.3f} ms   {case.note}")


if __name__ == "__main__":
    main()
