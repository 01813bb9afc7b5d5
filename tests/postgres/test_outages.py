"""
The database under a real ``holdfast serve`` stops, takes no writes, is full, or is replaced by its standby.

What it cannot do is said, with a time to try again; it goes on by itself afterwards, with all that it
acknowledged and with nothing half written.
"""

from __future__ import annotations

import base64
import json
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import httpx
import pytest

from holdfast import Memory
from holdfast.errors import StoreReadOnly
from holdfast.store.postgres.schema import APP, initialize
from holdfast.testing.fakes import HashEmbedder
from tests.postgres.lending import Server
from tests.server.test_serve import Running, start

# The command, which waits for a server that restarts as many seconds as are given here.
PROGRAM = """
import sys
from holdfast import cli
from holdfast.store.postgres import backend as postgres
postgres._COMEBACK_S = {}
sys.exit(cli.main())
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One that syncs its disk, as in production."""
    server = Server()
    server.create("memory")
    initialize(server.at("memory"))
    yield server
    server.close()


@pytest.fixture(scope="module")
def running(server: Server, full: bool) -> Iterator[Running]:
    found = start(server.at("memory", APP), program=("-c", PROGRAM.format(10 if full else 0.5)))
    yield found
    found.process.terminate()
    found.process.communicate(timeout=30)


def say(running: Running, user: str, text: str) -> httpx.Response:
    body = {"messages": [{"role": "user", "content": text}]}
    with running.client() as client:
        path, headers = f"/v1/users/{user}/conversations/c/messages", {"Idempotency-Key": text[-40:]}
        return client.post(path, json=body, headers=headers)


def assert_told(answer: httpx.Response, status: int, code: str) -> None:
    """It is a problem that names *code*, and says when to try again."""
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert int(answer.headers["retry-after"]) > 0


def assert_stored(address: str, user: str, *texts: str) -> None:
    """These messages and no others, and no promise of the store is broken."""
    with Memory(address, embedder=HashEmbedder()) as memory:
        assert [message.content for message in memory.conversation("c", user=user).load()] == list(texts)
        assert memory.doctor().findings == ()


def test_a_server_that_stops_is_told_of_until_it_is_back(server: Server, running: Running) -> None:
    assert say(running, "ana", "I live in Porto.").status_code == 201
    server.stop("fast")
    try:
        assert_told(say(running, "ana", "I live in Faro."), 503, "store-unavailable")
        with running.client() as client:
            began = time.monotonic()
            assert_told(client.get("/readyz"), 503, "store-unavailable")
            assert_told(client.get("/v1/users/ana/facts"), 503, "store-unavailable")
            assert client.get("/healthz").status_code == 200, "the process itself is well"
        assert time.monotonic() - began < 3, "one has waited for it; who comes later hears so at once"
    finally:
        server.start()
    with running.client() as client:
        assert client.get("/readyz").status_code == 200

    assert say(running, "ana", "I live in Faro.").status_code == 201
    assert_stored(server.at("memory", APP), "ana", "I live in Porto.", "I live in Faro.")
    with running.client() as client:  # background work goes on, too
        assert until(lambda: [f["value"] for f in client.get("/v1/users/ana/facts").json()["data"]] == ["Faro"])


def until(true: Callable[[], bool], within_s: float = 30) -> bool:
    deadline = time.monotonic() + within_s
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_a_server_that_takes_no_writes_still_answers(server: Server, running: Running) -> None:
    assert say(running, "bo", "I live in Porto.").status_code == 201
    server.ask("ALTER SYSTEM SET default_transaction_read_only = on")
    server.ask("SELECT pg_reload_conf()")
    try:
        assert until(lambda: say(running, "bo", "I live in Faro.").status_code != 201)
        assert_told(say(running, "bo", "I live in Braga."), 503, "store-read-only")
        with running.client() as client:
            assert client.get("/v1/users/bo/conversations/c/messages").status_code == 200
            assert client.get("/readyz").status_code == 200
    finally:
        server.ask("ALTER SYSTEM RESET default_transaction_read_only")
        server.ask("SELECT pg_reload_conf()")

    assert until(lambda: say(running, "bo", "I live in Braga.").status_code == 201)


def noise(rng: random.Random, chars: int = 60_000) -> str:
    """A long text that cannot be packed into much less."""
    return base64.b85encode(rng.randbytes(chars * 4 // 5)).decode()


def test_a_worker_outlives_a_server_that_is_away(server: Server) -> None:
    """It says that it cannot know what is left, and goes on with the work when it can."""
    address = server.at("memory", APP)
    options = ["worker", "--store", address, "--json", "--report", "0.1"]
    program = [sys.executable, "-c", PROGRAM.format(0.2), *options]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as worker:
        try:
            told = iter(lambda: json.loads(worker.stdout.readline())["jobs"], object())  # type: ignore[union-attr]
            next(told)
            server.stop("fast")
            assert None in islice(told, 100)
            server.start()
            with Memory(address, embedder=HashEmbedder()) as memory:
                memory.conversation("c", user="eva").record("I live in Porto.")
                assert until(lambda: [fact.value for fact in memory.user("eva").facts()] == ["Porto"])
            worker.terminate()
            assert worker.wait(30) == 0
        finally:
            worker.kill()


@pytest.fixture
def small(server: Server) -> Iterator[Path]:
    """A disk of 24 megabytes, on which the server keeps the database ``small``; its log is elsewhere."""
    place = Path(tempfile.mkdtemp(prefix="holdfast-small-"))
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m", "holdfast", str(place)], capture_output=True
    ).returncode:
        place.rmdir()
        pytest.skip("a small disk needs the right to mount one")
    try:
        server.own(place)
        server.ask(f"CREATE TABLESPACE small LOCATION '{place}'")
        server.create("small", more="TABLESPACE small")
        initialize(server.at("small"))
        yield place
        server.ask("DROP DATABASE small WITH (FORCE)")
        server.ask("DROP TABLESPACE small")
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)
        place.rmdir()


@pytest.mark.slow
def test_a_full_disk_is_told_and_nothing_is_half_written(server: Server, small: Path) -> None:
    """The disk of the tables is full; a server that cannot write its log stops instead, and is then away."""
    running, rng = start(server.at("small", APP)), random.Random(5)
    try:
        assert say(running, "cy", "I live in Porto.").status_code == 201
        (small / "others").write_bytes(b"x" * (shutil.disk_usage(small).free - 300_000))
        stored = []
        while (answer := say(running, "cy", text := noise(rng))).status_code == 201:
            stored.append(text)
        assert_told(answer, 507, "store-full")
        assert_told(say(running, "cy", text), 507, "store-full")
        with running.client() as client:
            assert client.get("/v1/users/cy/conversations/c/messages").status_code == 200
            assert client.get("/readyz").status_code == 200
        (small / "others").unlink()

        assert say(running, "cy", text).status_code == 201, "the same call, once there is room"
        assert_stored(server.at("small", APP), "cy", "I live in Porto.", *stored, text)
    finally:
        running.process.terminate()
        running.process.communicate(timeout=30)


@pytest.mark.slow
def test_a_standby_takes_over_with_all_that_was_acknowledged() -> None:
    """The address names both servers; the first one crashes, the other is promoted, and nobody starts anything anew."""
    first = Server()
    first.create("memory")
    initialize(first.at("memory"))
    second = Server(standby_of=first)
    try:
        first.ask("ALTER SYSTEM SET synchronous_standby_names = '*'")
        first.ask("SELECT pg_reload_conf()")
        with Memory(second.at("memory", APP), embedder=HashEmbedder()) as memory:
            assert memory.admin.users() == []
            with pytest.raises(StoreReadOnly):
                memory.conversation("c", user="dan").record("I live in Porto.")
        running = start(either(first, second), program=("-c", PROGRAM.format(10)))
        try:
            acknowledged = fail_over(running, first, second)
            assert_stored(second.at("memory", APP), "dan", *acknowledged)
        finally:
            running.process.terminate()
            running.process.communicate(timeout=30)
    finally:
        second.close()
        first.close()


def either(first: Server, second: Server) -> str:
    """The address of whichever takes writes."""
    hosts = ",".join(parse_qs(urlsplit(server.at("memory")).query)["host"][0] for server in (first, second))
    return f"postgresql://{APP}@/memory?host={quote(hosts)}&target_session_attrs=read-write"


def fail_over(running: Running, first: Server, second: Server) -> list[str]:
    """Somebody talks while the first server crashes and the second takes over; what was acknowledged, in order."""
    acknowledged: list[str] = []
    over = threading.Event()

    def talk() -> None:
        number = 0
        while not over.is_set():
            answer = say(running, "dan", f"Number {number}.")
            if answer.status_code == 201:
                acknowledged.append(f"Number {number}.")
                number += 1
            else:
                assert_told(answer, 503, answer.json()["code"])

    with ThreadPoolExecutor(1) as pool:
        talking = pool.submit(talk)
        try:
            assert until(lambda: len(acknowledged) > 5)
            first.stop("immediate")
            second.promote()
            before = len(acknowledged)
            assert until(lambda: len(acknowledged) > before + 5)
        finally:
            over.set()
        talking.result()
    return acknowledged
