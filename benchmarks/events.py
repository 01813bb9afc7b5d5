"""
How long an event takes from the write to those who listen, with many streams open at once.

    python benchmarks/events.py [--listeners 500] [--users 50] [--messages 200]

One server on the loopback address, one process; each listener follows one user over a connection of its own.  Another
process writes one message after the other, each to the next user.  Told are the times from the moment in which the message
was on disk until each listener had read its event, how many were told, and what the server took of a core meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from support import machine

from holdfast import Memory
from holdfast.server.app import create_app
from holdfast.server.gate import ServerSettings
from holdfast.server.serve import make_server

WRITER = """
import sys, time
from holdfast import Memory
path, users, messages = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with Memory(path, embedder=None) as memory:
    chats = [memory.conversation("c", user=f"u{number}") for number in range(users)]
    for number in range(messages):
        chats[number % users].append({"role": "user", "content": f"number {number}"})
        print(f"u{number % users}", number // users + 1, time.time(), flush=True)
"""


async def listen(
    port: int, key: str, user: str, ready: asyncio.Semaphore, heard: dict[tuple[str, str], list[float]]
) -> None:
    """Follow one user and note when each message was told."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"GET /v1/users/{user}/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {key}\r\n\r\n"
    writer.write(head.encode())
    try:
        while line := await reader.readline():
            if line.startswith(b"retry"):
                ready.release()
            if line.startswith(b"data:") and b'"message.added"' in line:
                heard.setdefault((user, json.loads(line[5:])["ref"]), []).append(time.time())
    finally:
        writer.close()


async def measure(path: Path, port: int, key: str, args: argparse.Namespace) -> None:
    """Open the streams, have somebody write, tell the times."""
    heard: dict[tuple[str, str], list[float]] = {}
    ready = asyncio.Semaphore(0)
    began = time.perf_counter()
    tasks = [
        asyncio.create_task(listen(port, key, f"u{number % args.users}", ready, heard))
        for number in range(args.listeners)
    ]
    for _ in tasks:
        await ready.acquire()
    print(f"{args.listeners} streams open after {time.perf_counter() - began:.1f} s")
    command = [sys.executable, "-c", WRITER, str(path), str(args.users), str(args.messages)]
    used, began = time.process_time(), time.perf_counter()
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True)
    await asyncio.sleep(1)
    used, took = time.process_time() - used, time.perf_counter() - began
    written = {(user, ref): float(at) for user, ref, at in map(str.split, done.stdout.splitlines())}
    waits = sorted(at - written[which] for which, times in heard.items() for at in times)
    each = args.listeners / args.users
    print(
        f"{len(waits)} of {int(len(written) * each)} events told, {took:.1f} s, server and listeners used {used:.1f} s of CPU"
    )
    quantiles = statistics.quantiles(waits, n=100)
    print(
        f"from disk to listener: p50 {1000 * quantiles[49]:.0f} ms, p95 {1000 * quantiles[94]:.0f} ms, p99 {1000 * quantiles[98]:.0f} ms"
    )
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--listeners", type=int, default=500)
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--messages", type=int, default=200)
    args = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as folder, Memory(Path(folder, "memory.db"), embedder=None) as memory:
        settings = ServerSettings(port=0, requests_per_minute=10_000_000, org_requests_per_minute=10_000_000)
        running = make_server(create_app(memory, settings), settings)
        thread = threading.Thread(target=running.run)
        thread.start()
        while not running.started:
            time.sleep(0.01)
        port = running.servers[0].sockets[0].getsockname()[1]
        asyncio.run(measure(Path(folder, "memory.db"), port, memory.admin.keys.create("operator").key, args))
        running.should_exit = True
        thread.join()


if __name__ == "__main__":
    main()
