"""
Context and search as the population grows, each user with some 500 memories.

    python benchmarks/scale.py [--users 10 100] [--calls 200] [--folder DIR] [--keep]

Twenty users are made through the front door: 4 conversations of 100 messages each, digested into
facts and summaries, every document with its vector.  Their rows are then copied under further
names, in SQL, until there are enough users; to a search it makes no difference whose words it
reads.  10,000 users take some 11 GB and ten minutes.

Each size has a process of its own, and the sizes take turns, ten calls each, so that whatever else
the machine does hits all alike.  ``warm`` asks the same ten users again and again; ``cold`` asks
somebody else each time with ``index_cache_mb=0``, from pages that the operating system has in
memory; ``first`` is the call before that, whose pages may have to come from the disk.  The vector of
the question is ready beforehand: embedding it is not part of the figures.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import apsw
from support import StandIn, machine, p50_p95, talk, times_ms

from holdfast import Config, Memory

MODELS = 20
TALKS, MESSAGES, STATING = 4, 100, 0.3


def make_models(path: Path, users: int) -> None:
    """The users that the others are copies of, made through the front door."""
    memory = Memory(path, embedder=StandIn(), config=Config(durable=False))
    for number in range(users):
        rng = random.Random(number)
        for at in range(TALKS):
            conversation = memory.conversation(f"talk{at}", user=name(number))
            conversation.append(talk(rng, MESSAGES, STATING))
            conversation.end()
    memory.digest()
    for number in range(users):  # the first context of a conversation also stores its prefix
        memory.conversation(f"talk{TALKS - 1}", user=name(number)).context("anything", budget_tokens=4000)
    memory.close()


def name(number: int) -> str:
    return f"user{number:06}"


def copy(path: Path, users: int) -> None:
    """Copy the rows of the first users under the names of all others, table by table in key order."""
    db = apsw.Connection(str(path))
    db.execute("PRAGMA synchronous=OFF; PRAGMA cache_size=-200000")
    tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    copying = []
    for table in tables:
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        if "user_id" in columns and table != "job":
            given = ", ".join("?1" if column == "user_id" else column for column in columns)
            copying.append(f"INSERT INTO {table} SELECT {given} FROM {table} WHERE org = 'default' AND user_id = ?2")
    for number in range(MODELS, users):
        if number % 100 == 0 or number == MODELS:
            if db.in_transaction:
                db.execute("COMMIT")
            db.execute("BEGIN IMMEDIATE")
        for sql in copying:
            db.execute(sql, (name(number), name(number % MODELS)))
    if db.in_transaction:
        db.execute("COMMIT")
    db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    db.close()


def question(rng: random.Random, number: int) -> str:
    """Five words of something that this user once said."""
    said = talk(random.Random(number % MODELS), MESSAGES, STATING)[rng.randrange(MESSAGES)]["content"]
    return "What did I say about " + " ".join(said.lower().rstrip(".").split()[-5:]) + "?"


class Figures:
    """One size, in a process of its own: measures a round whenever it is told to, so that sizes take turns."""

    def __init__(self, path: Path, users: int) -> None:
        self.rng, self.users, self.path = random.Random(11), users, path
        self.ten = [self.rng.randrange(users) for _ in range(10)]
        self.cached = Memory(path, embedder=StandIn())
        self.bare = Memory(path, embedder=StandIn(), config=Config(index_cache_mb=0))
        self.strangers = self.rng.sample(range(users), users)
        self.ask(self.cached, self.ten)

    def ask(self, memory: Memory, who: list[int]) -> dict[str, list[float]]:
        asked = [(name(number), question(self.rng, number)) for number in who]
        talks = [memory.conversation(f"talk{TALKS - 1}", user=user) for user, _ in asked]
        users = [memory.user(user) for user, _ in asked]
        return {
            "context": times_ms(
                [partial(c.context, q, budget_tokens=4000) for c, (_, q) in zip(talks, asked, strict=True)]
            ),
            "search": times_ms([partial(p.search, q) for p, (_, q) in zip(users, asked, strict=True)]),
        }

    def round(self) -> dict[str, dict[str, list[float]]]:
        """Ten calls of each in each way."""
        who, self.strangers = self.strangers[:10], self.strangers[10:] + self.strangers[:10]
        first = self.ask(self.bare, who)
        return {
            "warm": self.ask(self.cached, self.ten),
            "cold": self.ask(self.bare, who),
            "first": {"context": first["context"], "search": []},  # its search finds the pages that the context read
        }

    def serve(self) -> None:
        for line in sys.stdin:
            if line.strip() == "rss":
                print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, flush=True)  # KiB on Linux
            else:
                print(json.dumps(self.round()), flush=True)


def measure(paths: dict[int, Path], rounds: int) -> None:
    """Have all sizes take turns, and tell the medians."""
    own = [sys.executable, __file__, "--serve"]
    children = {
        users: subprocess.Popen(
            [*own, str(path), "--users", str(users)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for users, path in paths.items()
    }

    def tell(users: int, word: str) -> Any:
        child = children[users]
        assert child.stdin
        assert child.stdout
        print(word, file=child.stdin, flush=True)
        return json.loads(child.stdout.readline())

    times: dict[tuple[int, str, str], list[float]] = defaultdict(list)
    for _ in range(rounds):
        for users in paths:
            for way, calls in tell(users, "round").items():
                for call, values in calls.items():
                    times[users, way, call] += values
    for way in ("warm", "cold", "first"):
        for users in paths:
            line = f"{users:7,} users  {way:6}"
            for call in ("context", "search"):
                if values := times[users, way, call]:
                    line += f"  {call} p50 {p50_p95(values)[0]:6.2f}  p95 {p50_p95(values)[1]:6.2f} ms"
            print(line)
    for users, child in children.items():
        print(f"{users:7,} users  RSS at most {tell(users, 'rss') / 1e3:.0f} MB")
        child.communicate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, nargs="+", default=[10, 100])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--folder", default=None, help="where the files go (default: a temporary folder)")
    parser.add_argument("--keep", action="store_true", help="leave the files, and use those that are there")
    parser.add_argument("--serve", metavar="FILE", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        Figures(Path(args.serve), args.users[0]).serve()
        return
    print(machine())
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        paths = {users: Path(args.folder if args.keep else folder, f"scale-{users}.db") for users in args.users}
        for users, path in paths.items():
            if not path.exists():
                began = time.perf_counter()
                make_models(path, min(MODELS, users))
                copy(path, users)
                print(f"{users:7,} users  {os.path.getsize(path) / 1e6:,.0f} MB in {time.perf_counter() - began:.0f} s")
        measure(paths, args.rounds)


if __name__ == "__main__":
    main()
