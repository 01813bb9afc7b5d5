"""What operators and their programs ask a process: is it well, what waits, what does it do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from holdfast import Config, Memory
from holdfast.errors import StoreClosed
from holdfast.server.metrics import Meters, serve_probes
from holdfast.testing.fakes import HashEmbedder

SOURCE = Path(__file__).parent.parent.parent / "src"


def figures(text: str) -> dict[tuple[str, str], float]:
    """``{(name without prefix, its one label): value}``."""
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {(s.name.removeprefix("holdfast_"), ",".join(s.labels.values())): s.value for s in samples}


@pytest.fixture
def asked(memory: Memory) -> Iterator[httpx.Client]:
    with serve_probes("127.0.0.1", 0, Meters(memory, threads=3)) as (host, port):
        with httpx.Client(base_url=f"http://{host}:{port}") as client:
            yield client


def test_the_door_answers_by_any_name_and_needs_no_key(asked, memory):
    memory.conversation("secret-chat", user="anastasia").record("I live in Porto.")
    for path in ("/healthz", "/readyz", "/metrics"):
        answer = asked.get(path, headers={"Host": "10.1.2.3:9464"})
        assert answer.status_code == 200
        assert asked.head(path).content == b""
        assert not [word for word in ("anastasia", "secret-chat", "Porto") if word in answer.text]
    assert asked.get("/healthz").json()["status"] == "ok"
    assert figures(asked.get("/metrics").text)["workers", ""] == 3


@pytest.mark.parametrize("path", ["/", "/v1/users/ana/facts", "/sign-in", "/metrics/x"])
def test_nothing_else_is_behind_it(asked, path):
    assert asked.get(path).status_code == 404
    assert asked.post(path).status_code == 501


def test_a_store_that_does_not_answer_is_not_ready(tmp_path):
    memory = Memory(tmp_path / "chat.db", embedder=None)
    with serve_probes("127.0.0.1", 0, Meters(memory)) as (host, port):
        memory.close()
        assert httpx.get(f"http://{host}:{port}/readyz").status_code == 503
        assert httpx.get(f"http://{host}:{port}/healthz").status_code == 200


def test_a_long_queue_is_counted_rarely_and_a_store_that_is_gone_is_noticed_at_once(tmp_path, monkeypatch):
    memory = Memory(tmp_path / "chat.db", embedder=None)
    work, counted = Meters(memory).work, []

    def slowly(_now_ms: int) -> tuple[()]:
        counted.append(time.sleep(0.05))
        return ()

    monkeypatch.setattr(memory._engine.store, "backlog", slowly)
    for _ in range(5):
        work.backlog()
    assert len(counted) == 1
    memory.close()
    with pytest.raises(StoreClosed):
        work.backlog()


def test_what_is_due_is_told_by_kind_and_age(memory, clock):
    meters = Meters(memory)
    memory.conversation("c", user="ana").append([{"role": "user", "content": f"turn {n}"} for n in range(30)])
    clock.advance(minutes=7)
    found = figures(meters.text().decode())

    assert (
        found["jobs_due", "extract"]
        == found["jobs_overdue", ""] - found["jobs_due", "chunk"] - found["jobs_due", "embed"]
    )
    assert found["jobs_due", "extract"] == 1
    assert found["job_oldest_due_seconds", "extract"] == 420
    assert found["jobs_open", "ready"] >= 3
    memory.digest()
    assert figures(Meters(memory).text().decode()).get(("jobs_due", "extract"), 0) == 0


def test_claims_losses_and_takeovers_are_counted_where_they_happen(tmp_path):
    """One memory loses a job that it had taken up to another, whose clock is past the lease."""
    path, config = tmp_path / "chat.db", Config(job_lease_ms=1_000)
    with Memory(path, embedder=HashEmbedder(), config=config) as slow, Memory(path, embedder=HashEmbedder()) as other:
        meters, others = Meters(slow), Meters(other)
        slow.conversation("c", user="ana").append([{"role": "user", "content": f"turn {n}"} for n in range(30)])
        queue = slow._engine.queue
        job = queue.claim(kinds=("extract",))
        time.sleep(1.05)
        other.digest()
        queue.run(job)
        mine, theirs = figures(meters.text().decode()), figures(others.text().decode())

        assert mine["job_claims_total", "extract"] == 1
        assert mine["job_leases_lost_total", "extract"] == 1
        assert theirs["job_takeovers_total", "extract"] == 1
        assert theirs["job_claims_total", "extract"] == theirs["jobs_total", "extract,done"] == 1
        assert theirs["workers_busy", ""] == 0


@contextmanager
def running(*command: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    env = os.environ | {"PYTHONPATH": str(SOURCE)} | environment
    args = [sys.executable, "-m", "holdfast", *command, "--json"]
    with subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, process.communicate()[1]
            yield process, json.loads(line)
        finally:
            process.kill()


def answered(url: str) -> httpx.Response:
    for _ in range(200):
        try:
            return httpx.get(url)
        except httpx.ConnectError:
            time.sleep(0.05)
    raise AssertionError("nobody answers")


@pytest.mark.sqlite("processes of their own open it by its path")
def test_a_server_leaves_the_work_to_a_worker_and_both_are_watched(tmp_path, unused_port):
    """As they are deployed: the store named by a file, no key shown, and both probed at a port of their own."""
    secret = tmp_path / "store"
    secret.write_text(f"{tmp_path / 'chat.db'}\n")
    with Memory(tmp_path / "chat.db") as memory:
        memory.conversation("c", user="ana").append([{"role": "user", "content": f"turn {n}"} for n in range(30)])
    door, named = f"127.0.0.1:{unused_port}", {"HOLDFAST_STORE_FILE": str(secret), "HOLDFAST_FIRST_KEY": "0"}
    options = ("serve", "--port", "0", "--threads", "0", "--operations", door)
    with running(*options, **named) as (server, told):
        assert (told["operator_key"], told["sign_in"]) == (None, None)
        found = figures(answered(f"http://{door}/metrics").text)
        assert (found["workers", ""], found["jobs_due", "extract"] >= 1) == (0, True)
        assert httpx.get(f"{told['address']}/readyz").status_code == 200
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) == 0
    with running("worker", "--operations", door, **named) as (worker, told):
        assert told["state"] == "working"
        answered(f"http://{door}/healthz")
        with Memory(tmp_path / "chat.db") as memory:
            memory.conversation("c", user="bo").append([{"role": "user", "content": f"turn {n}"} for n in range(30)])
        for _ in range(1200):
            found = figures(answered(f"http://{door}/metrics").text)
            if found.get(("jobs_total", "extract,done")) and found.get(("job_claims_total", "extract")):
                break
            time.sleep(0.05)
        assert (found["workers", ""], found["job_claims_total", "extract"] >= 1) == (2, True)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(30) == 0
    with Memory(tmp_path / "chat.db") as memory:
        assert memory.admin.keys.list() == []
