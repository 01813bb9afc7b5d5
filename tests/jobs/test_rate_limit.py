"""However many processes call models, a provider key stays within its rate limit."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Config, Memory
from holdfast.jobs.model_client import MINUTE_US, CallDeferred, KeyLimits, RateLimit, book, reserve, settle
from holdfast.llm.protocol import ModelError
from holdfast.store import RateRow
from holdfast.testing.fakes import HashEmbedder

from .asker import Local

HERE = Path(__file__).parent
SOURCE = HERE.parent.parent / "src"
NONE = RateRow("k")


def entered(row: RateRow, limits: KeyLimits, asks: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """``(when, tokens)`` of those who were let in, of asks at ``(microseconds since the last, tokens)``."""
    found, now = [], 10**15
    for gap, tokens in asks:
        now += gap
        row, free_at = reserve(row, limits, tokens, now)
        if not free_at:
            found.append((now, tokens))
    return found


ASKS = st.lists(st.tuples(st.integers(0, 20_000_000), st.integers(1, 3_000)), max_size=200)


@given(limit=st.integers(1, 300), asks=ASKS)
def test_no_minute_holds_more_requests_than_the_limit(limit, asks):
    found = [at for at, _ in entered(NONE, KeyLimits(limit, None), asks)]
    for number, at in enumerate(found):
        assert sum(at <= other < at + MINUTE_US - 1_000 for other in found[number:]) <= limit


@given(limit=st.integers(100, 30_000), asks=ASKS)
def test_no_minute_holds_more_tokens_than_the_limit_and_one_large_request(limit, asks):
    found = entered(NONE, KeyLimits(None, limit), asks)
    for number, (at, _) in enumerate(found):
        inside = [tokens for when, tokens in found[number:] if when < at + MINUTE_US - 1_000]
        assert sum(inside) <= limit + max(inside)


@pytest.mark.parametrize("limit", [1, 2, 10, 60, 600])
def test_who_always_asks_gets_all_that_the_limit_allows(limit):
    row, now, count = NONE, 10**15, 0
    while now < 10**15 + 10 * MINUTE_US:
        row, free_at = reserve(row, KeyLimits(limit, None), 1, now)
        count, now = (count, free_at) if free_at else (count + 1, now)
    assert 9 * limit <= count <= 10 * limit + 1


def test_a_request_larger_than_the_limit_is_let_in_when_nobody_else_asks():
    row, free_at = reserve(NONE, KeyLimits(None, 100), 5_000, 10**15)
    assert free_at == 0
    assert reserve(row, KeyLimits(None, 100), 1, 10**15)[1] > 10**15


def test_what_was_not_used_is_given_back_and_what_was_used_beyond_is_paid_later():
    limits = KeyLimits(None, 6_000)
    row, _ = reserve(NONE, limits, 600, 10**15)
    assert reserve(row, limits, 600, 10**15)[1] > 10**15
    assert reserve(settle(row, limits, -600), limits, 600, 10**15)[1] == 0
    assert settle(row, limits, 600).tokens_at - row.tokens_at == row.tokens_at - 10**15


def test_those_who_are_sent_away_come_back_one_after_the_other():
    limits, row, told = KeyLimits(60, None), NONE, []
    for _ in range(5_000):
        row = book(row, limits, 10**15 + 1_000_000, 10**15)
        told.append(row.booked_until - 10**15)
    assert told[:3] == [2_000_000, 3_000_000, 4_000_000]
    assert told[-1] == 10 * MINUTE_US


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path / "chat.db", embedder=HashEmbedder()) as opened:
        yield opened


def test_a_caller_waits_a_little_and_is_sent_away_when_it_would_be_long(memory):
    slept: list[float] = []
    now = [1_700_000_000_000]

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += round(seconds * 1000) + 1

    limit = RateLimit(memory._engine.store, Config(model_requests_per_minute=20), "k", lambda: now[0], sleep)
    for _ in range(3):
        limit.acquire(0)
    assert 2.9 < sum(slept) < 3.3  # two at once, the third after its turn
    slow = RateLimit(memory._engine.store, Config(model_requests_per_minute=2), "slow", lambda: now[0], sleep)
    slow.acquire(0)
    with pytest.raises(CallDeferred, match="limit of requests") as caught:
        slow.acquire(0)
    assert caught.value.until_ms >= now[0] + 30_000


def test_without_a_limit_nothing_is_written_until_a_provider_asks_for_a_pause(memory):
    store = memory._engine.store
    one, other = (RateLimit(store, Config(), "k", lambda: 1_700_000_000_000) for _ in range(2))
    one.acquire(0)
    assert store.rate("k").version == 0
    one.pause(ModelError("no key", setup=True, retry_after_s=5))
    other.acquire(0)
    one.pause(ModelError("busy", retry_after_s=7))
    with pytest.raises(CallDeferred, match="asked for a pause") as caught:
        other.acquire(0)
    assert caught.value.until_ms == 1_700_000_007_000


@dataclass
class Provider:
    """Answers at once, with 429 as often as *refusing* says; ``arrivals`` are when it was asked."""

    refusing: int = 0
    retry_after: str = "3"
    arrivals: list[float] = field(default_factory=list)
    url: str = ""


@pytest.fixture
def provider() -> Iterator[Provider]:
    found, lock = Provider(), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            with lock:
                found.arrivals.append(time.monotonic())
                refused = len(found.arrivals) <= found.refusing
            self.send_response(429 if refused else 200)
            if refused:
                self.send_header("Retry-After", found.retry_after)
            self.end_headers()
            self.wfile.write(b"no use to anybody")

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield found
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path, provider: Provider, full: bool) -> Iterator[str]:
    """A store in which a model is wanted for twenty users, or two hundred."""
    lender = request.getfixturevalue("postgres") if request.param == "postgres" else None
    place = str(tmp_path / "chat.db") if lender is None else lender.at("paced")
    with Memory(place, llm=Local(provider.url), embedder=HashEmbedder()) as memory:
        for number in range(200 if full else 20):
            turns = [{"role": role, "content": f"turn {n}"} for n in range(12) for role in ("user", "assistant")]
            memory.conversation("c", user=f"u{number}").append(turns)
    yield place
    if lender is not None:
        lender.give_back()


_PUT_OFF = re.compile("waiting: .*(too many|asked for a pause)")


def asker(store: str, provider: Provider, limit: int, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, str(HERE / "asker.py"), store, provider.url, str(limit), str(seconds)]
    env = os.environ | {"PYTHONPATH": str(SOURCE)}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)


def reached(provider: Provider, number: int) -> None:
    """So many requests have arrived."""
    until = time.monotonic() + 300
    while len(provider.arrivals) < number:
        assert time.monotonic() < until
        time.sleep(0.01)


def begun(processes: list[subprocess.Popen[str]]) -> None:
    """They are ready, and begin together."""
    for one in processes:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    for one in processes:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()


@pytest.mark.sqlite("it has PostgreSQL of its own beside it")
def test_three_processes_together_keep_to_the_limit(store, provider, full):
    """120 a minute: 12 at once, then one each 0.55 s."""
    processes = [asker(store, provider, 120, 600) for _ in range(3)]
    begun(processes)
    reached(provider, 130 if full else 13)
    for one in processes:
        one.kill()
        one.communicate()
    found = provider.arrivals
    print(f"{len(found)} requests in {found[-1] - found[0]:.1f} s by 3 processes at 120 a minute")

    assert len(found) <= 13 + (found[-1] - found[0]) / 0.54
    # a request is on its way for a moment, so a window as the provider sees it is a little shorter
    assert all(sum(at <= other < at + 59.5 for other in found) <= 120 for at in found)


@pytest.mark.sqlite("it has PostgreSQL of its own beside it")
def test_a_pause_that_a_provider_asks_one_process_for_is_kept_by_the_others(store, provider):
    provider.refusing = 2  # a job asks for a summary and for episodes side by side
    provider.retry_after = "60"
    first = asker(store, provider, 0, 600)
    others = [asker(store, provider, 0, 5.0) for _ in range(2)]
    begun([first])
    reached(provider, 1)
    time.sleep(0.5)  # what it was told is written down
    first.kill()
    first.communicate()
    asked = len(provider.arrivals)

    begun(others)
    told = [json.loads(one.communicate(timeout=60)[0]) for one in others]
    assert len(provider.arrivals) == asked <= 2
    # the first one may have put off all that was due before it died; what it left is put off by the others
    assert all(reasons and all(_PUT_OFF.search(reason) for reason in reasons) for reasons in told), told
