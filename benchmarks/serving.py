"""
Requests a second and how long they take over HTTP, by 1, 16 and 64 clients on this machine.

    python benchmarks/serving.py [--seconds 1] [--rounds 2] [--clients 1 16 64] [--listeners 500] [--site DIR ...]

Served are, each by uvicorn in a process of its own:

    holdfast     the shipped command, `holdfast serve`, on a new file: keys, durable commits, the built-in embedder, and
                 the background work that messages cause, in the same process
    nothing      FastAPI with one route that takes the same body and answers {}: the floor of the framework
    langgraph    FastAPI around LangGraph's InMemoryStore (in RAM, nothing is durable, no keys), which embeds what it is
                 given with the same built-in embedder; `put` for an append, `search` for a search.  It builds no contexts

The last is left out, with a line that says so, unless it can be imported: install langgraph elsewhere, and name the folder
with --site.

The searched user has 500 messages, and so has the conversation whose context is built (budget 4,000 tokens).  Each client
appends to a conversation of its own.  ``cpu ms`` is the processor time of the server a request, background work
included; it depends least on what else the machine does.  Cases take turns; each runs so many seconds, and at most 20,000 requests.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import psutil
import uvicorn
from fastapi import Body, FastAPI
from support import machine, sentence

from holdfast.embed import BUILT_IN, resolve

MEMORIES, MOST, LIMIT = 500, 20_000, 10
Given = Annotated[Any, Body()]
HERE, PEERS = Path(__file__).parent, ("langgraph",)
HEADERS = "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
BODY = "Content-Type: application/json\r\nContent-Length: {length}\r\n"


@dataclass
class Served:
    """A server that runs, and how its calls are made: ``(path, body)`` for a client and a text."""

    name: str
    port: int
    process: psutil.Process
    keys: list[str] = field(default_factory=lambda: ["-"])

    def cpu_s(self) -> float:
        """The processor time that it took so far, in all its threads."""
        used = self.process.cpu_times()
        return float(used.user + used.system)

    def call(self, what: str, client: int, text: str) -> tuple[str, dict[str, Any]] | None:
        said = {"messages": [{"role": "user", "content": text}]}
        if self.name == "nothing":
            return "/nothing", said
        if self.name in PEERS:
            given = {"namespace": ["all"] if what == "search" else ["chat", f"u{client}"], "text": text}
            return None if what == "context" else (f"/{what}", given)
        return {
            "append": (f"/v1/users/u{client}/conversations/chat/messages", said),
            "search": ("/v1/users/ana/search", {"query": text, "limit": LIMIT}),
            "context": ("/v1/users/ana/conversations/all/context", {"query": text}),
        }[what]


class Connection:
    """A client that keeps its connection, and does little else, so that the server is measured."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: str) -> None:
        self._reader, self._writer, self._key = reader, writer, key

    async def ask(self, path: str, given: dict[str, Any], method: str = "POST") -> bytes:
        body = json.dumps(given).encode()
        head = HEADERS.format(method=method, path=path, key=self._key) + BODY.format(length=len(body)) + "\r\n"
        self._writer.write(head.encode() + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        status = int(answer[9:12])
        length = int(answer.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        body = await self._reader.readexactly(length)
        if not 200 <= status < 300:
            raise SystemExit(f"{path}: {status} {body[:200]!r}")
        return body


@asynccontextmanager
async def connected(port: int, keys: Sequence[str], clients: int) -> AsyncIterator[list[Connection]]:
    for _ in range(100):
        try:
            pairs = [await asyncio.open_connection("127.0.0.1", port) for _ in range(clients)]
            break
        except ConnectionRefusedError:
            await asyncio.sleep(0.1)  # it has told its port, and listens any moment
    try:
        yield [Connection(*pair, keys[number % len(keys)]) for number, pair in enumerate(pairs)]
    finally:
        for _, writer in pairs:
            writer.close()


async def case(served: Served, what: str, clients: int, seconds: float, seed: int) -> list[float]:
    """Seconds of every request."""
    took: list[float] = []

    async def client(number: int, connection: Connection, until: float) -> None:
        rng = random.Random(seed * 1_000 + number)
        while time.perf_counter() < until and len(took) < MOST:
            asked = served.call(what, number, sentence(rng))
            assert asked is not None
            began = time.perf_counter()
            await connection.ask(*asked)
            took.append(time.perf_counter() - began)

    async with connected(served.port, served.keys, clients) as connections:
        until = time.perf_counter() + seconds
        await asyncio.gather(*(client(n, connection, until) for n, connection in enumerate(connections)))
    return took


@contextmanager
def running(command: list[str], env: dict[str, str], name: str) -> Iterator[tuple[Served, dict[str, Any]]]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        told = json.loads(line) if line.strip() else {}
        if told:
            yield Served(name, int(told["address"].rsplit(":", 1)[1]), psutil.Process(process.pid)), told
        else:
            yield Served(name, 0, psutil.Process()), {}
    finally:
        process.terminate()
        process.wait(timeout=30)


async def prepare(served: Served, operator: str | None) -> None:
    """A key for each client, and what is searched."""
    rng = random.Random(1)
    if operator is not None:
        async with connected(served.port, [operator], 1) as (one,):
            made = [json.loads(await one.ask("/v1/keys", {"role": "app"})) for _ in range(64)]
        served.keys = [key["key"] for key in made]
    async with connected(served.port, served.keys, 1) as (one,):
        if served.name in PEERS:
            for _ in range(MEMORIES):
                await one.ask("/append", {"namespace": ["all"], "text": sentence(rng)})
        if operator is not None:
            talk = [{"role": ("user", "assistant")[n % 2], "content": sentence(rng)} for n in range(MEMORIES)]
            for start in range(0, MEMORIES, 100):
                await one.ask("/v1/users/ana/conversations/all/messages", {"messages": talk[start : start + 100]})


async def quiet(served: Served, operator: str) -> None:
    """Wait until the background has done what the messages called for."""
    async with connected(served.port, [operator], 1) as (one,):
        for _ in range(300):
            if not any(
                job["run_at_ms"] <= time.time() * 1_000
                for job in json.loads(await one.ask("/v1/jobs", {}, "GET"))["data"]
            ):
                return
            await asyncio.sleep(0.5)


@dataclass
class Figures:
    """Of one case on one server: seconds of each request; of each round requests a second, and processor ms a request."""

    times: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)


def table(servers: list[Served], options: argparse.Namespace, operator: str) -> None:
    print(
        f"{'':<9}{'clients':>7}  {'server':<10}{'requests/s':>10}{'p50 ms':>9}{'p95 ms':>9}{'p99 ms':>9}{'cpu ms':>9}"
    )
    for what in ("append", "search", "context"):
        for clients in options.clients:
            found: dict[str, Figures] = {}
            for turn in range(options.rounds):
                for served in servers:
                    if served.call(what, 0, "") is not None:
                        run(served, what, clients, options.seconds, turn, found.setdefault(served.name, Figures()))
            for name, figures in found.items():
                told(what, clients, name, figures)
            asyncio.run(quiet(servers[0], operator))


def run(served: Served, what: str, clients: int, seconds: float, turn: int, figures: Figures) -> None:
    began, cpu = time.perf_counter(), served.cpu_s()
    times = asyncio.run(case(served, what, clients, seconds, turn))
    figures.times += times
    figures.rates.append(len(times) / (time.perf_counter() - began))
    figures.cpu_ms.append((served.cpu_s() - cpu) * 1_000 / len(times))


def told(what: str, clients: int, name: str, figures: Figures) -> None:
    cuts = statistics.quantiles(figures.times, n=100)
    shown = "".join(f"{cuts[p - 1] * 1_000:>9.1f}" for p in (50, 95, 99))
    rate, cpu = statistics.median(figures.rates), statistics.median(figures.cpu_ms)
    print(f"{what:<9}{clients:>7}  {name:<10}{rate:>10,.0f}{shown}{cpu:>9.2f}", flush=True)


async def listening(served: Served, operator: str, listeners: int) -> None:
    """How long it takes until every listener of one user's events has heard of a message."""
    path = "/v1/users/lena/events"
    streams = [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(listeners)]
    for number, (_, writer) in enumerate(streams):
        writer.write((HEADERS.format(method="GET", path=path, key=served.keys[number % 64]) + "\r\n").encode())
    heads = await asyncio.gather(*(reader.readuntil(b"\r\n\r\n") for reader, _ in streams))
    if any(b" 200 " not in head[:16] for head in heads):
        print(f"events: {heads[0].splitlines()[0].decode()}")
        return
    last: list[float] = []
    every: list[float] = []
    async with connected(served.port, [operator], 1) as (one,):
        for number in range(10):
            began = time.perf_counter()

            async def hear(reader: asyncio.StreamReader, began: float = began) -> None:
                while not (await reader.readline()).startswith(b"event: message.added"):
                    continue
                every.append(time.perf_counter() - began)

            heard = [asyncio.ensure_future(hear(reader)) for reader, _ in streams]
            said = {"messages": [{"role": "user", "content": f"Number {number}."}]}
            await one.ask("/v1/users/lena/conversations/c/messages", said)
            await asyncio.wait_for(asyncio.gather(*heard), 30)
            last.append(time.perf_counter() - began)
    for _, writer in streams:
        writer.close()
    print(
        f"events: {listeners} listeners of one user, 10 messages: heard after {statistics.median(every) * 1_000:,.0f} ms "
        f"(median), by the last one after {statistics.median(last) * 1_000:,.0f} ms"
    )


def peer(name: str) -> None:
    """Serve a yardstick; runs in a process of its own."""
    app = FastAPI()
    if name == "nothing":

        @app.post("/nothing")
        def nothing(body: Given) -> dict[str, str]:
            return {}

        @app.post("/v1/chat/completions")
        def chat(body: Given) -> dict[str, Any]:
            said = {"role": "assistant", "content": "Nothing."}
            choice = {"index": 0, "message": said, "finish_reason": "stop"}
            return {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}

    else:
        stored = langgraph()

        @app.post("/append")
        def append(body: Given) -> dict[str, str]:
            key = os.urandom(8).hex()
            stored.put(tuple(body["namespace"]), key, {"text": body["text"]})
            return {"key": key}

        @app.post("/search")
        def search(body: Given) -> list[Any]:
            found = stored.search(tuple(body["namespace"]), query=body["text"], limit=LIMIT)
            return [{"key": item.key, "value": item.value, "score": item.score} for item in found]

    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", access_log=False))
    # asyncio turns Nagle's algorithm off only where the socket names its protocol; answers would wait 40 ms
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    print(json.dumps({"address": f"http://127.0.0.1:{listener.getsockname()[1]}"}), flush=True)
    server.run(sockets=[listener])


def langgraph() -> Any:
    """LangGraph's store, with the embedder that Holdfast has."""
    embedder = resolve(BUILT_IN)
    assert embedder is not None
    index: Any = {"dims": embedder.dim, "embed": lambda texts: embedder.embed(texts).tolist(), "fields": ["text"]}
    try:
        return import_module("langgraph.store.memory").InMemoryStore(index=index)
    except ImportError as error:
        print("", flush=True)
        raise SystemExit(f"langgraph is left out: {error.name} cannot be imported; see --site") from None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--listeners", type=int, default=500)
    parser.add_argument("--site", nargs="*", default=[], help="folders with packages of peers")
    parser.add_argument("--quick", action="store_true", help="half a second, once each, and 50 listeners")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        peer(options.peer)
        return
    if options.quick:
        options.seconds, options.rounds, options.listeners = 0.5, 1, 50
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4_096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
    paths = [str(HERE.parent / "src"), *options.site]
    env = os.environ | {"PYTHONPATH": os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")])}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        command = [sys.executable, "-m", "holdfast", "serve", "--store", f"{folder}/chat.db", "--port", "0", "--json"]
        holdfast, hello = stack.enter_context(running(command, env, "holdfast"))
        asyncio.run(prepare(holdfast, hello["operator_key"]))
        servers = [holdfast]
        for name in ("nothing", *PEERS):
            command = [sys.executable, __file__, "--peer", name]
            served, there = stack.enter_context(running(command, env, name))
            if there:
                asyncio.run(prepare(served, None))
                servers.append(served)
        print(machine())
        table(servers, options, hello["operator_key"])
        asyncio.run(listening(holdfast, hello["operator_key"], options.listeners))


if __name__ == "__main__":
    main()
