"""A model's server on this machine that records what it is asked, byte for byte, and answers what a test wants."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

DONE = b"data: [DONE]\n\n"


@dataclass
class Asked:
    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        return json.loads(self.raw)

    @property
    def texts(self) -> list[str]:
        return [message["content"] for message in self.body["messages"]]


@dataclass
class Reply:
    """``parts`` are sent one by one, each after ``wait_s``; with ``cut`` the connection ends after them."""

    parts: list[bytes]
    status: int = 200
    kind: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    wait_s: float = 0.0
    cut: bool = False


@dataclass
class Fake:
    """``reply`` answers every request; ``gone`` is set when a client went away before its answer's end."""

    reply: Callable[[Asked], Reply] = lambda asked: plain("Noted!")
    asked: list[Asked] = field(default_factory=list)
    url: str = ""
    gone: threading.Event = field(default_factory=threading.Event)
    sent: list[bytes] = field(default_factory=list)


def plain(text: str | None, *more: str, **message: Any) -> Reply:
    """A completion; further texts are further choices."""
    choices = [
        {"index": n, "message": {"role": "assistant", "content": said} | message, "finish_reason": "stop"}
        for n, said in enumerate((text, *more))
    ]
    usage = {"prompt_tokens": 90, "completion_tokens": 3, "total_tokens": 93}
    usage |= {"prompt_tokens_details": {"cached_tokens": 64}}
    whole = {"id": "c1", "object": "chat.completion", "created": 1, "model": "m-1", "choices": choices, "usage": usage}
    return Reply([json.dumps(whole, indent=1).encode()], headers={"X-Request-Id": "req_1"})


def event(delta: dict[str, Any], finish: str | None = None, index: int = 0, **more: Any) -> bytes:
    choice = {"index": index, "delta": delta, "finish_reason": finish}
    chunk = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m-1", "choices": [choice]} | more
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def stream(*words: str, end: bool = True, **more: Any) -> Reply:
    """Words as events, each in a piece of its own."""
    events = [event({"role": "assistant", "content": ""}), *(event({"content": word}) for word in words)]
    return Reply([*events, *([event({}, "stop"), DONE] if end else [])], kind="text/event-stream", **more)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    fake: Fake

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        asked = Asked(self.path, {name.lower(): value for name, value in self.headers.items()}, raw)
        self.fake.asked.append(asked)
        reply = self.fake.reply(asked)
        try:
            self._send(reply)
        except OSError:
            self.close_connection = True
            self.fake.gone.set()

    do_GET = do_DELETE = do_POST

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.kind)
        self.send_header("Transfer-Encoding", "chunked")
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        for part in reply.parts:
            time.sleep(reply.wait_s)
            self.fake.sent.append(part)
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        if reply.cut:
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away are what is tested."""


@contextmanager
def serving() -> Iterator[Fake]:
    fake = Fake()
    server = Server(("127.0.0.1", 0), type("Bound", (Handler,), {"fake": fake}))
    fake.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
