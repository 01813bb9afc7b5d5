"""A server on this machine that answers like a provider, with what a test puts in its queue."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = tuple[int, dict[str, str], bytes] | Callable[[BaseHTTPRequestHandler], None]


@dataclass
class Asked:
    """One request that arrived."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class Provider:
    """``replies`` are given one by one, the last one again and again."""

    replies: list[Reply] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    url: str = ""

    def next(self) -> Reply:
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


class Handler(BaseHTTPRequestHandler):
    """Hands out the replies of its provider."""

    protocol_version = "HTTP/1.1"
    provider: Provider

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.provider.asked.append(Asked(self.path, headers, json.loads(body)))
        reply = self.provider.next()
        try:
            if callable(reply):
                reply(self)
                return
            status, more, content = reply
            self.send_response(status)
            for name, value in (
                {"Content-Type": "application/json", "Content-Length": str(len(content))} | more
            ).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)
        except OSError:
            self.close_connection = True  # whoever asked has gone

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


def serve(provider: Provider) -> ThreadingHTTPServer:
    """Start a server for *provider*; its address stands in ``url``."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"provider": provider}))
    server.daemon_threads = True
    provider.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    return server


def openai(text: str | None = "Porto", finish: str = "stop", **message: Any) -> Reply:
    """A completion in OpenAI's shape."""
    usage: dict[str, Any] = {"prompt_tokens": 40, "completion_tokens": 3, "total_tokens": 43}
    usage |= {"prompt_tokens_details": {"cached_tokens": 32}}
    said = {"role": "assistant", "content": text} | message
    choice = {"index": 0, "finish_reason": finish, "message": said}
    return of(
        {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    )


def anthropic(text: str = "Porto", finish: str = "end_turn") -> Reply:
    """A message in Anthropic's shape."""
    usage = {"input_tokens": 8, "output_tokens": 3, "cache_read_input_tokens": 32, "cache_creation_input_tokens": 0}
    content = [{"type": "text", "text": text}] if text else []
    head = {"id": "m1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
    return of(head | {"content": content, "stop_reason": finish, "usage": usage})


def google(text: str = "Porto", finish: str = "STOP") -> Reply:
    """A candidate in Google's shape."""
    usage = {
        "promptTokenCount": 40,
        "candidatesTokenCount": 3,
        "totalTokenCount": 43,
        "cachedContentTokenCount": 32,
    }
    content = {"role": "model", "parts": [{"text": text}]}
    candidate = {"content": content, "finishReason": finish, "index": 0}
    return of({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m", "responseId": "r1"})


def of(value: Any, status: int = 200, **headers: str) -> Reply:
    """A reply with a JSON body."""
    return status, headers, json.dumps(value).encode()


def endless(handler: BaseHTTPRequestHandler) -> None:
    """Sends 50 MB of an answer."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(50 * 2**20))
    handler.end_headers()
    for _ in range(50 * 16):
        handler.wfile.write(b" " * 2**16)


def dripping(handler: BaseHTTPRequestHandler) -> None:
    """Sends a byte every now and then, so that no single read takes long."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    for _ in range(200):
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.05)


def hanging_up(handler: BaseHTTPRequestHandler) -> None:
    """Ends in the middle of an answer."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"id": ')
    handler.close_connection = True
