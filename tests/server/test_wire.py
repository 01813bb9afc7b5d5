"""Raw bytes on a real socket: requests that can be read in two ways, slow clients, large heads, many connections."""

from __future__ import annotations

import json
import os
import re
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing

import httpx
import pytest

from holdfast import Memory
from holdfast.server.app import create_app
from holdfast.server.gate import ServerSettings
from holdfast.server.serve import make_server, raise_limit

LIMITS = {"header_timeout_s": 0.8, "body_timeout_s": 0.8, "stuck_timeout_s": 0.8, "max_head_bytes": 16_384}
IDLE = 2_000


class Wire:
    """A server in a thread of this process, with short limits; `say` sends bytes and reads what comes back."""

    def __init__(self, memory: Memory) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self.listener.getsockname()[1]
        settings = ServerSettings(port=self.port, **LIMITS)
        self.server = make_server(create_app(memory, settings), settings)
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.listener]}, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        self.key = memory.admin.keys.create("app").key

    def open(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port))
        connection.settimeout(10)
        return connection

    def say(self, request: bytes, answers: int = 2) -> bytes:
        """What comes back: so many answers, or what there is until the server closes or says nothing for a while."""
        with closing(self.open()) as connection:
            connection.sendall(request.replace(b"KEY", self.key.encode()).replace(b"PORT", str(self.port).encode()))
            told = b""
            while len(statuses(told)) < answers and select.select([connection], [], [], 0.6 if answers < 9 else 20)[0]:
                try:
                    piece = connection.recv(65_536)
                except ConnectionError:
                    break
                if not piece:
                    break
                told += piece
            return told

    def close(self) -> None:
        self.server.should_exit = True
        self.thread.join(20)
        self.listener.close()


@pytest.fixture(scope="module")
def wire() -> Iterator[Wire]:
    with Memory(embedder=None) as memory:
        found = Wire(memory)
        yield found
        found.close()


def statuses(told: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", told)]


HOST = b"Host: 127.0.0.1:PORT\r\n"
AUTH = HOST + b"Authorization: Bearer KEY\r\n"
GET = b"GET /v1/whoami HTTP/1.1\r\n"
POST = b"POST /v1/users/ana/conversations/c/messages HTTP/1.1\r\nContent-Type: application/json\r\n"
BODY = b'{"messages":[{"role":"user","content":"hi"}]}'
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
CHUNKED = b"Transfer-Encoding: chunked\r\n"
CHUNKS = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
SMUGGLED = b"GET /v1/whoami HTTP/1.1\r\n" + AUTH + b"\r\n"

# what it is: (bytes, every status that may come back, in order)
REQUESTS: dict[str, tuple[bytes, list[int]]] = {
    "a plain request": (GET + AUTH + b"\r\n", [200]),
    "a plain body": (POST + AUTH + LENGTH + b"\r\n" + BODY, [201]),
    "a body in chunks": (POST + AUTH + CHUNKED + b"\r\n" + CHUNKS, [201]),
    "two requests in one piece": (2 * (GET + AUTH + b"\r\n"), [200, 200]),
    "length and chunks": (POST + AUTH + LENGTH + CHUNKED + b"\r\n" + CHUNKS + SMUGGLED, [400]),
    "chunks and length": (POST + AUTH + CHUNKED + b"Content-Length: 3\r\n\r\n" + CHUNKS + SMUGGLED, [400]),
    "two lengths": (POST + AUTH + LENGTH + b"Content-Length: 3\r\n\r\n" + BODY + SMUGGLED, [400]),
    "two equal lengths": (POST + AUTH + LENGTH + LENGTH + b"\r\n" + BODY + SMUGGLED, [400]),
    "a list of lengths": (POST + AUTH + b"Content-Length: 45, 3\r\n\r\n" + BODY, [400]),
    "a length with a sign": (POST + AUTH + b"Content-Length: +45\r\n\r\n" + BODY, [400]),
    "a negative length": (POST + AUTH + b"Content-Length: -1\r\n\r\n" + BODY, [400]),
    "a length in hex": (POST + AUTH + b"Content-Length: 0x2d\r\n\r\n" + BODY, [400]),
    "a length of many digits": (POST + AUTH + b"Content-Length: " + b"9" * 40 + b"\r\n\r\n", [400]),
    "chunked, with a list": (POST + AUTH + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + CHUNKS, [201, 400, 422]),
    "chunked, not last": (POST + AUTH + b"Transfer-Encoding: chunked, identity\r\n\r\n" + CHUNKS + SMUGGLED, [400]),
    "chunked, misspelt": (POST + AUTH + b"Transfer-Encoding: xchunked\r\n\r\n" + CHUNKS + SMUGGLED, [400]),
    "chunked, with a tab": (POST + AUTH + b"Transfer-Encoding:\tchunked\r\n\r\n" + CHUNKS, [201]),
    "chunked twice": (POST + AUTH + CHUNKED + CHUNKED + b"\r\n" + CHUNKS + SMUGGLED, [400]),
    "a space before the colon": (POST + AUTH + b"Transfer-Encoding : chunked\r\n" + LENGTH + b"\r\n" + BODY + SMUGGLED, [400]),
    "a folded header": (POST + AUTH + b"X: a\r\n Transfer-Encoding: chunked\r\n" + LENGTH + b"\r\n" + BODY + SMUGGLED, [400]),
    "a bare line feed": (GET.replace(b"\r\n", b"\n") + AUTH.replace(b"\r\n", b"\n") + b"\n", [400]),
    "a bare carriage return": (GET + AUTH + b"X: a\rTransfer-Encoding: chunked\r\n\r\n", [400]),
    "a NUL in a header": (GET + AUTH + b"X: a\x00b\r\n\r\n", [400]),
    "a NUL in a name": (GET + AUTH + b"X\x00: a\r\n\r\n", [400]),
    "a chunk of a wrong size": (POST + AUTH + CHUNKED + b"\r\nZZ\r\n" + BODY, [400]),
    "a chunk with a sign": (POST + AUTH + CHUNKED + b"\r\n-5\r\n" + BODY, [400]),
    "a chunk of a huge size": (POST + AUTH + CHUNKED + b"\r\n" + b"F" * 17 + b"\r\n", [400]),
    "a chunk without its end": (POST + AUTH + CHUNKED + b"\r\n2\r\nabcd\r\n0\r\n\r\n", [400]),
    "a chunk with a bare line feed": (POST + AUTH + CHUNKED + b"\r\n2d\n" + BODY + b"\n0\n\n" + SMUGGLED, [400]),
    "a target with a host": (b"GET http://evil.test/v1/whoami HTTP/1.1\r\n" + AUTH + b"\r\n", [400]),
    "a target with its own host": (b"GET http://127.0.0.1:PORT/v1/whoami HTTP/1.1\r\n" + AUTH + b"\r\n", [400]),
    "a target for a tunnel": (b"CONNECT evil.test:443 HTTP/1.1\r\n" + AUTH + b"\r\n", [400]),
    "a target without a slash": (b"GET v1/whoami HTTP/1.1\r\n" + AUTH + b"\r\n", [400]),
    "a star": (b"GET * HTTP/1.1\r\n" + AUTH + b"\r\n", [400]),
    "two slashes": (b"GET //evil.test/v1/whoami HTTP/1.1\r\n" + AUTH + b"\r\n", [400, 404]),
    "two hosts": (GET + AUTH + b"Host: evil.test\r\n\r\n", [400]),
    "two equal hosts": (GET + AUTH + HOST + b"\r\n", [400]),
    "no host": (GET + b"Authorization: Bearer KEY\r\n\r\n", [421]),
    "two keys": (GET + AUTH + b"Authorization: Bearer x\r\n\r\n", [400]),
    "two orgs": (GET + AUTH + b"X-Holdfast-Org: a\r\nX-Holdfast-Org: default\r\n\r\n", [400]),
    "two users": (GET + AUTH + b"X-Holdfast-User: a\r\nx-holdfast-user: b\r\n\r\n", [400]),
    "two origins": (GET + AUTH + b"Origin: http://127.0.0.1:PORT\r\nOrigin: https://evil.test\r\n\r\n", [400]),
    "an upgrade": (GET + AUTH + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", [200, 400, 426]),
    "an upgrade to HTTP/2": (GET + AUTH + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n\r\n", [200, 400]),
    "HTTP/2 from the start": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", [400]),
    "HTTP/0.9": (b"GET /v1/whoami\r\n\r\n", [400, 421]),
    "an unknown method": (b"GRAB /v1/whoami HTTP/1.1\r\n" + AUTH + b"\r\n", [400]),
    "TRACE": (b"TRACE /v1/whoami HTTP/1.1\r\n" + AUTH + b"\r\n", [405]),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 50, [400]),
    "a long target": (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n" + AUTH + b"\r\n", [431]),
    "a long header": (GET + AUTH + b"X: " + b"a" * 20_000 + b"\r\n\r\n", [431]),
    "many headers": (GET + AUTH + b"".join(b"X%d: a\r\n" % n for n in range(4_000)) + b"\r\n", [431]),
    "a head without an end": (GET + AUTH + b"X: " + b"a" * 200_000, [431]),
    "a long name in a path": (b"GET /v1/users/" + b"a" * 9_000 + b"/facts HTTP/1.1\r\n" + AUTH + b"\r\n", [422]),
    "a long query": (GET.replace(b"whoami", b"whoami?" + b"a=1&" * 3_000) + AUTH + b"\r\n", [414]),
    "a body that is announced too long": (POST + AUTH + b"Content-Length: 99999999\r\n\r\n", [413]),
}  # fmt: skip


@pytest.mark.parametrize("what", REQUESTS)
def test_a_request_is_read_in_one_way_or_not_at_all(wire, what):
    """One answer for each request; what could be two requests to somebody on the way is never two here."""
    request, expected = REQUESTS[what]
    told = statuses(wire.say(request))
    if len(told) == 2:
        assert told == expected
    else:
        assert len(told) == 1
        assert told[0] in expected
    assert wire.say(GET + AUTH + b"\r\n", answers=1).startswith(b"HTTP/1.1 200")


def test_a_refusal_of_the_socket_is_a_problem_like_the_others(wire):
    told = wire.say(GET + AUTH + b"X: " + b"a" * 20_000 + b"\r\n\r\n")
    head, _, body = told.partition(b"\r\n\r\n")
    assert b"application/problem+json" in head
    assert b"connection: close" in head.lower()
    assert json.loads(body)["code"] == "head-too-large"


def closed_within(connection: socket.socket, seconds: float) -> bool:
    """Whether the server closes the connection in that time; what it says before is read."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0 and select.select([connection], [], [], left)[0]:
        try:
            if not connection.recv(65_536):
                return True
        except ConnectionError:
            return True
    return False


SLOW = {
    "says nothing": (b"", b""),
    "a head byte by byte": (b"GET /healthz HTTP/1.1\r\n", b"X"),
    "line ends only": (b"\r\n", b"\r"),
    "a body byte by byte": (POST + AUTH + b"Content-Length: 1000\r\n\r\n", b"x"),
    "a body in small chunks": (POST + AUTH + CHUNKED + b"\r\n", b"1\r\nx\r\n"),
    "a body that nobody reads": (b"GET /healthz HTTP/1.1\r\n" + HOST + b"Content-Length: 1000\r\n\r\n", b"x"),
    "a body of a refused request": (b"POST /v1/digest HTTP/1.1\r\n" + HOST + b"Content-Length: 1000\r\n\r\n", b"x"),
    "a second head byte by byte": (GET + AUTH + b"\r\nGET /heal", b"x"),
}


def until_closed(wire: Wire, begin: bytes, drip: bytes) -> float:
    """Send *begin*, then *drip* again and again; the seconds until the server closed the connection, at most 15."""
    began = time.monotonic()
    with closing(wire.open()) as connection:
        connection.sendall(begin.replace(b"KEY", wire.key.encode()).replace(b"PORT", str(wire.port).encode()))
        while time.monotonic() - began < 15 and not closed_within(connection, 0.1):
            try:
                connection.sendall(drip)
            except OSError:
                break
    return time.monotonic() - began


@pytest.fixture(scope="module")
def slow_clients(wire: Wire) -> Iterator[dict[str, Future[float]]]:
    """All of `SLOW` at the same time, as most of it is waiting."""
    with ThreadPoolExecutor(len(SLOW)) as threads:
        yield {what: threads.submit(until_closed, wire, begin, drip) for what, (begin, drip) in SLOW.items()}


@pytest.mark.parametrize("what", SLOW)
def test_a_slow_client_is_let_go(slow_clients, what):
    """Limits of 0.8 s here: each is gone within a few seconds, whatever it drips meanwhile."""
    assert slow_clients[what].result() < 14


def test_an_answer_that_nobody_takes_is_given_up(wire):
    """A client asks again and again and reads nothing: its connection is torn down, and it holds no memory."""
    with closing(wire.open()) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        request = (b"GET /openapi.json HTTP/1.1\r\n" + HOST + b"\r\n").replace(b"PORT", str(wire.port).encode())
        connection.settimeout(1)
        broken, until = False, time.monotonic() + 60  # patience for a busy machine, no limit of the server
        while not broken and time.monotonic() < until:
            try:
                connection.sendall(request * 20)
            except TimeoutError:
                continue
            except OSError:
                broken = True
        assert broken


def test_one_connection_may_ask_many_times_and_is_held_to_the_rate_of_its_key(wire):
    told = statuses(wire.say(400 * (GET + AUTH + b"\r\n"), answers=400))
    assert len(told) == 400
    assert set(told) <= {200, 429}


def test_a_process_may_hold_as_many_connections_as_it_can(monkeypatch):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    raise_limit()
    try:
        now = resource.getrlimit(resource.RLIMIT_NOFILE)
        assert now[0] >= min(soft, 65_536)
        assert now[1] == hard
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def fill_up(idle: list[socket.socket], place: tuple[str, int], head: bytes) -> None:
    """Open `IDLE` connections that say nothing, but for every tenth: its body is due, and never comes."""
    for number in range(IDLE):
        idle.append(socket.create_connection(place, timeout=10))
        if number % 10 == 0:
            idle[-1].sendall(head)


@pytest.mark.slow
def test_two_thousand_idle_connections_do_not_stop_others(tmp_path, full):
    """
    The shipped command, started with the 1,024 files that shells commonly allow; heads and bodies at its own limits.

    The limit of bodies is half a minute: it is awaited with --full only.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < IDLE + 500:
        pytest.skip(f"this machine allows {hard} files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 2 * IDLE + 500), hard))
    command = [sys.executable, "-m", "holdfast", "serve", "--store", str(tmp_path / "chat.db"), "--port", "0", "--json"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1_024, hard)),
    )
    idle: list[socket.socket] = []
    try:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        place = ("127.0.0.1", int(told["address"].rsplit(":", 1)[1]))
        headers = {"Authorization": f"Bearer {told['operator_key']}"}
        with httpx.Client(base_url=told["address"], headers=headers, timeout=20) as client:
            for _ in range(100):
                try:
                    client.get("/healthz")
                    break
                except httpx.ConnectError:
                    time.sleep(0.1)
            head = b"POST /v1/users/ana/conversations/c/messages HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            head += f"Authorization: Bearer {told['operator_key']}\r\nContent-Length: 500\r\n\r\n".encode()
            began = time.monotonic()
            fill_up(idle, place, head)
            took = []
            for _ in range(40):
                start = time.monotonic()
                assert client.get("/v1/whoami").status_code == 200
                took.append(time.monotonic() - start)
            assert sorted(took)[len(took) // 2] < 2.0
            silent, slow = idle[1], idle[0]
            silent.settimeout(20)
            assert silent.recv(100) == b""
            assert time.monotonic() - began < 10 + 15
            assert ServerSettings().body_timeout_s == 30
            if full:
                assert closed_within(slow, 45)
                assert time.monotonic() - began < 31 + 20
            assert client.get("/v1/whoami").status_code == 200
    finally:
        for connection in idle:
            connection.close()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
