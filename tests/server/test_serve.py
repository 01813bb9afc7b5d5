"""The command itself: a real process, a real socket, slow and hostile clients, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import httpx
import httpx2
import pytest

from holdfast import Memory


@dataclass
class Running:
    process: subprocess.Popen[str]
    address: str
    key: str
    store: Path | str

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.address, headers={"Authorization": f"Bearer {self.key}"}, timeout=30)

    @property
    def place(self) -> tuple[str, int]:
        host, port = self.address.removeprefix("http://").rsplit(":", 1)
        return host, int(port)


def start(store: Path | str, *options: str, program: Sequence[str] = ("-m", "holdfast")) -> Running:
    command = [sys.executable, *program, "serve", "--store", str(store), "--port", "0", "--json", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.communicate()[1]
    told = json.loads(line)
    running = Running(process, told["address"], told["operator_key"], store)
    for _ in range(200):
        try:
            socket.create_connection(running.place, timeout=1).close()
            return running
        except OSError:
            time.sleep(0.05)
    raise AssertionError("the server does not listen")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    found = start(tmp_path_factory.mktemp("served") / "chat.db")
    yield found
    found.process.terminate()
    found.process.communicate(timeout=30)


def say(client: httpx.Client, text: str) -> httpx.Response:
    body = {"messages": [{"role": "user", "content": text}]}
    return client.post("/v1/users/ana/conversations/c/messages", json=body)


def test_the_first_start_makes_a_key_and_the_next_ones_none(tmp_path):
    first = start(tmp_path / "chat.db")
    with first.client() as client:
        assert say(client, "I live in Porto.").status_code == 201
    first.process.send_signal(signal.SIGTERM)
    out, err = first.process.communicate(timeout=30)
    assert (first.process.returncode, out, err) == (0, "", "")
    assert not Path(f"{first.store}-wal").exists()  # the store was closed, not abandoned

    again = start(first.store)
    assert again.key is None
    again.key = first.key
    with again.client() as client:
        assert [fact["value"] for fact in client.get("/v1/users/ana/facts").json()["data"]] == ["Porto"]
    again.process.send_signal(signal.SIGINT)
    again.process.communicate(timeout=30)
    assert again.process.returncode == 0


def test_what_was_acknowledged_outlives_a_kill(tmp_path):
    running = start(tmp_path / "chat.db")
    with running.client() as client:
        acknowledged = [say(client, f"Number {n}.").json()["seqs"][0] for n in range(20)]
    running.process.kill()
    running.process.communicate(timeout=30)
    with Memory(running.store) as memory:
        assert [m.seq for m in memory.conversation("c", user="ana").load()] == acknowledged
        assert memory.doctor().ok


def test_background_work_is_done_meanwhile(running):
    with running.client() as client:
        roles = ("user", "assistant")
        talk = "The roses need water, and the old apple tree by the wall bears more than it did last year. " * 4
        messages = [{"role": roles[n % 2], "content": f"Message {n} about the garden. {talk}"} for n in range(30)]
        client.post("/v1/users/bo/conversations/c/messages", json={"messages": messages})
        for _ in range(300):
            if client.get("/v1/users/bo/conversations/c/summaries").json()["data"]:
                break
            time.sleep(0.1)
        assert client.get("/v1/users/bo/conversations/c/summaries").json()["data"]


def test_nobody_listens_where_others_reach_it_without_a_name():
    command = [sys.executable, "-m", "holdfast", "serve", "--host", "0.0.0.0", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert json.loads(done.stderr)["error"]["code"] == "no-host-name"


def test_a_port_that_is_taken_is_said(running):
    command = [sys.executable, "-m", "holdfast", "serve", "--port", str(running.place[1]), "--json"]
    env = os.environ | {"HOLDFAST_STORE": str(running.store)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=env)
    assert done.returncode == 1
    assert json.loads(done.stderr)["error"]["code"] == "cannot-listen"


@pytest.mark.slow
def test_a_slow_head_is_cut_off_and_does_not_stop_others(running):
    """A byte every half second, and 200 connections that say nothing: gone within the limit of 10 s."""
    idle = [socket.create_connection(running.place) for _ in range(200)]
    with closing(socket.create_connection(running.place)) as slow, running.client() as client:
        slow.settimeout(0.5)
        began = time.monotonic()
        head = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * 1_000
        ended = False
        for place in range(40):
            try:
                slow.sendall(head[place : place + 1])
                ended = slow.recv(100) == b""
            except TimeoutError:
                continue
            except OSError:
                ended = True
            if ended:
                break
            assert client.get("/healthz").status_code == 200
        assert ended
        assert time.monotonic() - began < 13
    for connection in idle:
        connection.settimeout(5)
        assert connection.recv(100) == b""
        connection.close()


@pytest.mark.parametrize(
    "bytes_",
    [
        b"\x00" * 100,
        b"GET",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /v1/digest HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"\r\n" * 9,
    ],
)
def test_garbage_on_the_wire_is_survived(running, bytes_):
    with closing(socket.create_connection(running.place)) as connection:
        connection.sendall(bytes_)
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(15)
        assert b" 200 " not in connection.recv(1_000)
    with running.client() as client:
        assert client.get("/healthz").status_code == 200


def test_an_answer_on_a_connection_that_is_used_again_does_not_wait_for_an_acknowledgment(memory, served):
    with served(memory) as address, httpx2.Client(base_url=address) as client:
        client.get("/healthz")
        times = []
        for _ in range(12):
            began = time.perf_counter()
            client.get("/v1/whoami")
            times.append(time.perf_counter() - began)

    assert sorted(times)[3] < 0.03
