"""
How fast messages are stored, beside a bare apsw loop that writes the same rows to the same disk.

    python benchmarks/append.py [--seconds 4] [--threads 16]

Prints one line a case: what ran, how many a second, and its ratio to the bare loop of the same run.
Machines differ; read the ratios.  Embedding is switched off: it runs in the background.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import apsw

from holdfast import Config, Memory

WORDS = [
    a + b for a in ("lo", "mar", "ten", "vi", "sol", "qua", "ber", "nor") for b in ("ka", "li", "do", "ra", "ne", "tum")
]


def sentence(rng: random.Random) -> str:
    """Twelve distinct words, so that twelve postings are written, and nothing that states a fact."""
    return " ".join(rng.sample(WORDS, 12)) + "."


def rate(seconds: float, step: Callable[[], int]) -> float:
    """How many a second *step* (which returns how many it did) does."""
    done, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        done += step()
    return done / (time.perf_counter() - start)


def bare(path: Path) -> Callable[[], int]:
    """A loop that knows its rows in advance: message, twelve postings, a job; FULL, one commit each."""
    db = apsw.Connection(str(path))
    db.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA secure_delete=ON")
    db.execute(
        "CREATE TABLE message (org, user_id, bot, subject, conversation, seq, role, content, at,"
        " PRIMARY KEY (org, user_id, bot, subject, conversation, seq)) WITHOUT ROWID;"
        "CREATE TABLE posting (org, user_id, bot, subject, kind, term, doc, tf,"
        " PRIMARY KEY (org, user_id, bot, subject, kind, term, doc)) WITHOUT ROWID;"
        "CREATE TABLE job (org, user_id, bot, id, kind, state, run_at, PRIMARY KEY (org, user_id, bot, id)) WITHOUT ROWID;"
    )
    rng, count = random.Random(1), [0]

    def step() -> int:
        count[0] += 1
        text, seq = sentence(rng), count[0]
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO message VALUES ('o','u','b','self','c',?,'user',?,?)", (seq, text, seq))
        db.executemany(
            "INSERT INTO posting VALUES ('o','u','b','self','message',?,?,1)",
            [(word, seq) for word in text[:-1].split()],
        )
        db.execute("INSERT INTO job VALUES ('o','u','b',?,'extract','ready',?)", (f"job{seq}", seq))
        db.execute("COMMIT")
        return 1

    return step


def single(path: Path) -> Callable[[], int]:
    chat, rng = Memory(path, embedder=None).conversation("c", user="u"), random.Random(1)

    def step() -> int:
        chat.append({"role": "user", "content": sentence(rng)})
        return 1

    return step


def crowd(path: Path, threads: int, seconds: float) -> float:
    memory, counts = Memory(path, embedder=None), [0] * threads

    def run(number: int) -> None:
        chat, rng, end = (
            memory.conversation(f"c{number}", user=f"u{number}"),
            random.Random(number),
            time.perf_counter() + seconds,
        )
        while time.perf_counter() < end:
            chat.append({"role": "user", "content": sentence(rng)})
            counts[number] += 1

    pool = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    start = time.perf_counter()
    for thread in pool:
        thread.start()
    for thread in pool:
        thread.join()
    elapsed = time.perf_counter() - start
    memory.close()
    return sum(counts) / elapsed


def bulk(path: Path, batch: int = 500) -> Callable[[], int]:
    chat, rng = Memory(path, embedder=None, config=Config()).conversation("c", user="u"), random.Random(1)

    def step() -> int:
        chat.append([{"role": ("user", "assistant")[n % 2], "content": sentence(rng)} for n in range(batch)])
        return batch

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--folder", default=None, help="where the files go (default: a temporary folder)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        base = rate(args.seconds, bare(Path(folder, "bare.db")))
        one = rate(args.seconds, single(Path(folder, "one.db")))
        many = crowd(Path(folder, "many.db"), args.threads, args.seconds)
        again = rate(args.seconds, bare(Path(folder, "bare2.db")))
        imported = rate(args.seconds, bulk(Path(folder, "bulk.db")))
    base = (base + again) / 2
    print(f"{os.cpu_count()} cores; a commit syncs the disk in every case")
    for name, value in (
        ("bare apsw loop, 1 writer", base),
        ("Conversation.append, 1 thread", one),
        (f"Conversation.append, {args.threads} threads", many),
        ("import in batches of 500", imported),
    ):
        print(f"{name:36} {value:9,.0f} messages/s   {value / base:5.2f} x bare")


if __name__ == "__main__":
    main()
