"""
Search in big memories: warm, cold, and by many at once.

    python benchmarks/search.py [--turns 5000 50000] [--clients 16] [--folder DIR --keep] [--profile]

One user per size, conversations of 5,000 turns between user and assistant in sittings of 40, each
turn of 12 words and with a vector; the file is read from the pages that the operating system holds.
``warm`` asks again in the same process; ``cold`` does so without a cache of indexes.  Times are told
as wall clock and, beside it, as processor time of the calling thread, which does not see what else
the machine is busy with.  The vector of the question is ready beforehand.

``clients`` threads of one process then ask, and every answer is counted: it must have the full number
of rows.  ``paced`` is how chats ask: each client every quarter of a second, at its own moment.
``flat out`` is the worst: each asks again at once, so that sixteen share one interpreter lock.
``apart`` asks flat out as well, but each client is a process of its own on the same file, as web workers are.
"""

from __future__ import annotations

import argparse
import cProfile
import multiprocessing
import os
import pstats
import random
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from support import StandIn, machine, p50_p95, sentence, talk

from holdfast.clock import to_ms
from holdfast.config import Config
from holdfast.embed import quantize
from holdfast.ingest.append import WorkSettings, append, prepare
from holdfast.recall.index import IndexCache
from holdfast.recall.search import search
from holdfast.scope import Scope
from holdfast.store import ReadView, Store, WriteView, open_store
from holdfast.types import Hit

EMBEDDER, CONFIG, WHO = StandIn(), Config(durable=False), Scope("o", "b", "ana")
BEGIN, NOW = datetime(2023, 1, 1, tzinfo=UTC), datetime(2025, 6, 1, tzinfo=UTC)
TALK, BATCH, SITTING = 5000, 500, 40
PACE_S = 0.25


def fill(store: Store, turns: int) -> None:
    """A user's turns with their words and vectors; nothing else is derived from them."""
    rng = random.Random(1)
    for first in range(0, turns, BATCH):
        said = [
            message | {"at": (BEGIN + timedelta(minutes=(first + at) * 2 + (first + at) // SITTING * 600)).isoformat()}
            for at, message in enumerate(talk(rng, BATCH, 0.1))
        ]
        ready = prepare(said, now=NOW + timedelta(days=9999), max_chars=CONFIG.max_message_chars)

        def add(view: WriteView, ready: list[object] = ready) -> None:
            append(view, ready, CONFIG, WorkSettings(embed=False), key=None, digest="", now_ms=to_ms(NOW))
            docs = view.unembedded(EMBEDDER.id, limit=BATCH)
            texts = view.texts(docs)
            rows = quantize(EMBEDDER.embed([texts[doc.kind, doc.doc] for doc in docs]))
            view.add_vectors((doc, EMBEDDER.id, *row) for doc, row in zip(docs, rows, strict=True))

        store.write(WHO.within(f"talk{first // TALK}"), add)


class Asker:
    """Questions of five words, some common and some rare, that are asked in turn."""

    def __init__(self, store: Store, questions: int) -> None:
        rng = random.Random(5)
        self.store = store
        self.questions = [f"What did I say about {sentence(rng, 5).lower().rstrip('.')}?" for _ in range(questions)]
        self.vectors = EMBEDDER.embed(self.questions)

    def ask(self, number: int, cache: IndexCache | None) -> list[Hit]:
        """One search of everything the user's memory holds."""

        def work(view: ReadView) -> list[Hit]:
            return search(
                view,
                self.questions[number],
                now=NOW,
                limit=10,
                embedder=EMBEDDER,
                question_vector=self.vectors[number],
                cache=cache,
            )

        return self.store.read(WHO, work)


def timed(calls: list[Callable[[], object]]) -> tuple[list[float], list[float]]:
    """Wall clock and processor time of each call, in milliseconds."""
    wall, busy = [], []
    for call in calls:
        began, used = time.perf_counter(), time.thread_time()
        call()
        wall.append((time.perf_counter() - began) * 1e3)
        busy.append((time.thread_time() - used) * 1e3)
    return wall, busy


def together(asker: Asker, clients: int, cache: IndexCache, pause_s: float) -> tuple[list[float], int]:
    """Every question by every client: the times, and the fewest rows that anybody got."""
    times: list[list[float]] = [[] for _ in range(clients)]
    rows: list[int] = []
    start = threading.Barrier(clients)

    def client(number: int) -> None:
        start.wait()
        time.sleep(pause_s * number / clients)
        due = time.perf_counter()
        for question in range(len(asker.questions)):
            time.sleep(max(0.0, due - time.perf_counter()))
            due += pause_s
            began = time.perf_counter()
            rows.append(len(asker.ask((question + number) % len(asker.questions), cache)))
            times[number].append((time.perf_counter() - began) * 1e3)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [value for own in times for value in own], min(rows)


def client_apart(path: str, number: int, start: threading.Barrier, answers: multiprocessing.Queue[object]) -> None:
    """One process: opens the file, warms up, waits for the others, and asks every question."""
    store = open_store(path, CONFIG)
    asker, cache = Asker(store, 60), IndexCache(64_000_000)
    asker.ask(0, cache)
    start.wait()
    times, rows = [], []
    for question in range(len(asker.questions)):
        began = time.perf_counter()
        rows.append(len(asker.ask((question + number) % len(asker.questions), cache)))
        times.append((time.perf_counter() - began) * 1e3)
    answers.put((times, min(rows)))
    store.close()


def apart(path: Path, clients: int) -> tuple[list[float], int]:
    """As `together`, flat out, by processes."""
    spawn = multiprocessing.get_context("spawn")
    start, answers = spawn.Barrier(clients), spawn.Queue()
    workers = [spawn.Process(target=client_apart, args=(str(path), n, start, answers)) for n in range(clients)]
    for worker in workers:
        worker.start()
    found = [answers.get() for _ in workers]
    for worker in workers:
        worker.join()
    return [value for times, _ in found for value in times], min(rows for _, rows in found)


def measure(path: Path, turns: int, clients: int, profile: bool) -> None:
    """Print the lines of one size."""
    fresh = not path.exists()
    store = open_store(str(path), CONFIG)
    if fresh:
        fill(store, turns)
    asker, cache = Asker(store, 60), IndexCache(64_000_000)
    asker.ask(0, cache)
    alone: list[float] = []
    for name, kept, questions in (("warm", cache, 60), ("cold", None, 15)):
        calls = [lambda q=q, kept=kept: asker.ask(q, kept) for q in range(questions)]
        wall, busy = timed(calls)
        alone = alone or wall
        print(
            f"{turns:7,} turns  {name}   p50 {p50_p95(wall)[0]:7.2f}  p95 {p50_p95(wall)[1]:7.2f} ms"
            f"   of the processor {p50_p95(busy)[0]:7.2f}  {p50_p95(busy)[1]:7.2f} ms"
        )
        if profile:
            with cProfile.Profile() as seen:
                for call in calls[:15]:
                    call()
            pstats.Stats(seen).sort_stats("tottime").print_stats(16)
    ways = {
        "paced": lambda: together(asker, clients, cache, PACE_S),
        "flat out": lambda: together(asker, clients, cache, 0.0),
        "apart": lambda: apart(path, clients),
    }
    for name, ask in ways.items() if clients else ():
        times, rows = ask()
        p99 = sorted(times)[int(0.99 * (len(times) - 1))]
        print(
            f"{turns:7,} turns  {clients} clients {name}  p50 {p50_p95(times)[0]:.2f}  p99 {p99:.2f} ms, "
            f"{p99 / p50_p95(alone)[0]:.1f} x p50 of one, at least {rows} rows"
        )
    print(f"{turns:7,} turns  index in memory {cache.nbytes / 1e6:.1f} MB, file {os.path.getsize(path) / 1e6:.0f} MB")
    store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, nargs="+", default=[5000])
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--folder", default=None, help="where the files go (default: a temporary folder)")
    parser.add_argument("--keep", action="store_true", help="leave the files, and use those that are there")
    parser.add_argument("--profile", action="store_true", help="also print where the time goes")
    args = parser.parse_args()
    print(machine())
    if args.folder:
        os.makedirs(args.folder, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        for turns in args.turns:
            where = args.folder if args.keep else folder
            measure(Path(where, f"search-{turns}.db"), turns, args.clients, args.profile)


if __name__ == "__main__":
    main()
