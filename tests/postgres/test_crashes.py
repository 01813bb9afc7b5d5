"""The server stops, crashes, and throws its clients out: nothing acknowledged is lost, nothing is there twice."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

import psycopg
import pytest

from holdfast import Config, Memory
from holdfast.errors import StoreError
from holdfast.store.postgres.schema import APP, initialize
from holdfast.testing.fakes import HashEmbedder
from tests.postgres.lending import Server

CONFIG = Config(job_lease_ms=1_000, job_backoff_ms=0)
THROW_OUT = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'holdfast_app' ORDER BY random() LIMIT 2"
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One that syncs its disk, as in production."""
    server = Server(haste=False)
    server.create("memory")
    initialize(server.at("memory"))
    yield server
    server.close()


@pytest.fixture
def address(server: Server) -> str:
    return server.at("memory", APP)


def writers(address: str, user: str, trouble: Callable[[], None]) -> tuple[list[str], int]:
    """
    Two conversations that write and a worker that digests, while *trouble* happens; what was acknowledged, and
    how many calls failed.

    A call that fails is repeated under its key until it is acknowledged, as an application would.  The trouble begins
    once all of them have opened the memory: opening a server that is down is an error.
    """
    acknowledged: list[str] = []
    failed: list[StoreError] = []
    over, opened = threading.Event(), threading.Barrier(4)

    def write(name: str) -> None:
        with Memory(address, embedder=HashEmbedder(), config=CONFIG) as memory:
            opened.wait()
            chat, number = memory.conversation(name, user=user), 0
            while not over.is_set():
                text = f"I live in Lisbon {name}{number}."
                try:
                    chat.record(text, idempotency_key=str(number))
                except StoreError as error:
                    failed.append(error)
                    continue
                acknowledged.append(text)
                number += 1

    def work() -> None:
        with Memory(address, embedder=HashEmbedder(), config=CONFIG) as memory:
            opened.wait()
            while not over.is_set():
                try:
                    memory.digest()
                except StoreError as error:
                    failed.append(error)
                time.sleep(0.01)

    threads = [threading.Thread(target=write, args=("a",)), threading.Thread(target=write, args=("b",))]
    threads.append(threading.Thread(target=work))
    for thread in threads:
        thread.start()
    try:
        opened.wait(60)
        trouble()
    finally:
        over.set()
        for thread in threads:
            thread.join()
    return acknowledged, len(failed)


def assert_sound(address: str, user: str, acknowledged: list[str]) -> None:
    with Memory(address, embedder=HashEmbedder(), config=CONFIG) as memory:
        deadline = time.monotonic() + 30
        while memory.jobs("running") and time.monotonic() < deadline:  # of a worker whose connection was lost
            time.sleep(0.05)
            memory.digest()
        memory.digest()
        stored = Counter(m.content for name in "ab" for m in memory.conversation(name, user=user).load())
        assert [text for text in acknowledged if stored[text] != 1] == []
        assert max(stored.values()) == 1
        assert len(stored) <= len(acknowledged) + 2, "more than the two calls under way came through unacknowledged"
        assert memory.doctor().findings == ()
        assert memory.jobs("dead") == []


def test_a_server_that_crashes_loses_nothing_that_was_acknowledged(server: Server, address: str, full: bool) -> None:
    """``pg_ctl stop -m immediate`` is what a crash of the server is."""
    rounds, rng = (50 if full else 2), random.Random(1)

    def crash() -> None:
        for _ in range(rounds):
            time.sleep(rng.uniform(0.2, 1.0))
            server.stop("immediate")
            time.sleep(rng.uniform(0, 0.2))
            server.start()
        time.sleep(1)

    acknowledged, failed = writers(address, "crash", crash)
    print(f"{rounds} crashes: {len(acknowledged)} acknowledged, {failed} calls failed")

    assert acknowledged
    assert_sound(address, "crash", acknowledged)


def test_sessions_that_are_thrown_out_lose_and_double_nothing(server: Server, address: str, full: bool) -> None:
    rounds, rng = (200 if full else 15), random.Random(2)

    def throw_out() -> None:
        with psycopg.connect(server.admin, autocommit=True) as admin:
            for _ in range(rounds):
                time.sleep(rng.uniform(0.02, 0.15))
                admin.execute(THROW_OUT)

    acknowledged, failed = writers(address, "thrown", throw_out)
    print(f"{rounds} times thrown out: {len(acknowledged)} acknowledged, {failed} calls failed")

    assert acknowledged
    assert_sound(address, "thrown", acknowledged)


def test_a_call_waits_for_a_server_that_restarts(server: Server, address: str) -> None:
    with Memory(address, embedder=HashEmbedder(), config=CONFIG) as memory:
        chat = memory.conversation("a", user="patient")
        chat.record("I live in Faro.")
        server.stop("fast")
        starting = threading.Timer(0.5, server.start)
        starting.start()
        receipt = chat.record("I like tea.")
        starting.join()

        assert receipt.seqs == (2,)
