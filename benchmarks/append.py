"""
How fast messages are stored, beside a bare apsw loop that writes the same rows to the same disk.

    python benchmarks/append.py [--rounds 20] [--threads 16]

The cases take turns, a hundred messages and more each, so that whatever else the machine does hits
all alike.  Told are medians over the rounds, and the median of each round's ratio to the bare loop
of that round: machines differ, read the ratios.  Every commit syncs the disk.  Embedding is switched
off: it runs in the background.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import apsw
from support import machine, sentence

from holdfast import Conversation, Memory
from holdfast.store import queries

TEXTS = [sentence(random.Random(number)) for number in range(2000)]
BATCH = 500
Step = Callable[[], int]


def bare(path: Path) -> Step:
    """A hundred messages whose rows are known beforehand: message, twelve postings, a job; one commit each."""
    db = apsw.Connection(str(path))
    db.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA secure_delete=ON")
    db.execute(
        "CREATE TABLE message (org, user_id, bot, subject, conversation, seq, role, content, at,"
        " PRIMARY KEY (org, user_id, bot, subject, conversation, seq)) WITHOUT ROWID;"
        "CREATE TABLE posting (org, user_id, bot, subject, kind, term, doc, tf,"
        " PRIMARY KEY (org, user_id, bot, subject, kind, term, doc)) WITHOUT ROWID;"
        "CREATE TABLE job (org, user_id, bot, id, kind, state, run_at,"
        " PRIMARY KEY (org, user_id, bot, id)) WITHOUT ROWID;"
    )
    numbered = enumerate(cycle(TEXTS), 1)

    def step() -> int:
        for _ in range(100):
            seq, text = next(numbered)
            db.execute("BEGIN IMMEDIATE")
            db.execute("INSERT INTO message VALUES ('o','u','b','self','c',?,'user',?,?)", (seq, text, seq))
            db.executemany(
                "INSERT INTO posting VALUES ('o','u','b','self','message',?,?,1)",
                [(word, seq) for word in text[:-1].lower().split()],
            )
            db.execute("INSERT INTO job VALUES ('o','u','b',?,'extract','ready',?)", (f"job{seq}", seq))
            db.execute("COMMIT")
        return 100

    return step


def every_row(path: Path) -> Step:
    """
    A hundred messages with every row that Holdfast writes for one, in its own tables, all known beforehand:
    message, document with its words (the day is indexed too), the counters of user and conversation, two jobs,
    the event that tells of it.
    """
    Memory(path, embedder=None).conversation("c", user="u").append({"role": "user", "content": TEXTS[0]})
    sql, db = queries.load("sqlite"), apsw.Connection(str(path))
    db.execute("PRAGMA synchronous=FULL; PRAGMA secure_delete=ON")
    who = {"org": "default", "user_id": "u", "bot": "default", "subject": "self", "conversation": "c"}
    head, numbered = ("default", "u", "default", "self"), enumerate(cycle(TEXTS), 2)

    def step() -> int:
        for _ in range(100):
            n, text = next(numbered)
            counters = {"next_seq": n + 1, "chunk_start": 1, "ended_seq": 0, "extracted_seq": 0, "session": 1}
            counters |= {"read_seq": n, "stated_seq": 0, "unread_turns": 0, "ahead_turns": 0, "own_facts": 0}
            db.execute("BEGIN IMMEDIATE")
            db.execute(sql["save_user"], who | {"next_doc": n + 1, "version": n, "epoch": 0, "created_at": n})
            db.execute(sql["save_conversation"], who | counters | {"last_at": n, "created_at": n})
            db.execute(sql["add_message"], (*head, "c", n, "user", None, text, n, 20, 1, n, "{}", n))
            words = f"{text[:-1].lower()} 7 june 2026"
            document = (*head, "message", n, "c", n, "", 1, "user", "user", n, 15, len(text), 0, 1, "", words)
            db.execute(sql["add_doc"], document)
            db.execute(sql["newest_event"], who).fetchall()
            db.execute(
                sql["add_event"], ("default", "u", "default", n, n, "message.added", "local", "self", "c", str(n))
            )
            for kind in ("extract", "chunk"):
                db.execute(sql["move_waiting_job"], who | {"kind": kind, "key": "", "wanted": n, "run_at": n})
            db.execute("COMMIT")
        return 100

    return step


def single(path: Path) -> Step:
    """A hundred messages, one after the other."""
    chat, texts = Memory(path, embedder=None).conversation("c", user="u"), cycle(TEXTS)

    def step() -> int:
        for _ in range(100):
            chat.append({"role": "user", "content": next(texts)})
        return 100

    return step


def crowd(path: Path, threads: int) -> Step:
    """Thirty messages of each of so many users, every one in a thread of their own."""
    memory = Memory(path, embedder=None)
    chats = [memory.conversation("c", user=f"u{number}") for number in range(threads)]

    def talk(chat: Conversation, first: int) -> None:
        for text in TEXTS[first : first + 30]:
            chat.append({"role": "user", "content": text})

    def step() -> int:
        pool = [threading.Thread(target=talk, args=(chat, 50 * at)) for at, chat in enumerate(chats)]
        for thread in pool:
            thread.start()
        for thread in pool:
            thread.join()
        return 30 * threads

    return step


def bulk(path: Path) -> Step:
    """Five hundred messages in one call, as an import sends them."""
    chat, texts = Memory(path, embedder=None).conversation("c", user="u"), cycle(TEXTS)

    def step() -> int:
        chat.append([{"role": ("user", "assistant")[n % 2], "content": next(texts)} for n in range(BATCH)])
        return BATCH

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--folder", default=None, help="where the files go (default: a temporary folder)")
    args = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        cases = {
            "bare apsw loop, 1 writer": bare(Path(folder, "bare.db")),
            "bare, every row that Holdfast writes": every_row(Path(folder, "every.db")),
            "Conversation.append, 1 thread": single(Path(folder, "one.db")),
            f"Conversation.append, {args.threads} threads": crowd(Path(folder, "many.db"), args.threads),
            f"import in batches of {BATCH}": bulk(Path(folder, "bulk.db")),
        }
        rates: dict[str, list[float]] = {name: [] for name in cases}
        for _ in range(args.rounds):
            for name, step in cases.items():
                began = time.perf_counter()
                done = step()
                rates[name].append(done / (time.perf_counter() - began))
    base = next(iter(rates.values()))
    for name, found in rates.items():
        ratio = statistics.median(mine / bare for mine, bare in zip(found, base, strict=True))
        print(f"{name:36} {statistics.median(found):9,.0f} messages/s   {ratio:5.2f} x bare")


if __name__ == "__main__":
    main()
