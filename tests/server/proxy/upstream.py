"""A model's server on this machine that records what it is asked, byte for byte, and answers what a test wants."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

DONE = b"data: [DONE]\n\n"
STREAM = "text/event-stream"
NUMBERS = itertools.count(1)  # of the answers, which have ids of their own


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


def named_events(*found: dict[str, Any]) -> list[bytes]:
    """Events that are named by their type, as those of responses and of Anthropic's messages."""
    return [f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in found]


def answer(asked: Asked, *words: str, call: dict[str, str] | None = None, **more: Any) -> Reply:
    """Answer with *words*, or a call of a tool, by the protocol and in the manner that a request asks for."""
    kind = asked.path.rpartition("/v1/")[2].partition("?")[0]
    whole, events = {"chat/completions": _completed, "responses": _responded, "messages": _sent}[kind](words, call)
    if not asked.body.get("stream"):
        return Reply([json.dumps(whole).encode()])
    return Reply(events, kind=STREAM, **more)


Answered = tuple[dict[str, Any], list[bytes]]


def _completed(words: tuple[str, ...], call: dict[str, str] | None) -> Answered:
    calls = [{"id": "t1", "type": "function", "function": call}] if call else None
    whole = json.loads(plain(None if call else "".join(words), **({"tool_calls": calls} if calls else {})).parts[0])
    whole["choices"][0]["finish_reason"] = "tool_calls" if call else "stop"
    deltas = [{"tool_calls": [{"index": 0, **calls[0]}]}] if calls else [{"content": word} for word in words]
    first = event({"role": "assistant", "content": None if call else ""})
    return whole, [first, *map(event, deltas), event({}, "tool_calls" if call else "stop"), DONE]


def response(text: str | None, *calls: dict[str, str], number: int = 1, **more: object) -> dict[str, Any]:
    """A whole response."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    message = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": content}
    called = [{"type": "function_call", "id": f"fc_{call['call_id']}", "status": "completed", **call} for call in calls]
    details = {"input_tokens_details": {"cached_tokens": 64}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {"input_tokens": 90, "output_tokens": 3, "total_tokens": 93, **details}
    shared = {"tools": [], "tool_choice": "auto", "parallel_tool_calls": True, "error": None, "created_at": 1}
    output = [*([message] if text is not None else []), *called]
    known = {"id": f"resp_{number}", "object": "response", "model": "m-1", "status": "completed", "usage": usage}
    return {**known, **shared, "output": output, **more}


def _responded(words: tuple[str, ...], call: dict[str, str] | None) -> Answered:
    calls = [{"call_id": "t1", **call}] if call else []
    whole = response(None if call else "".join(words), *calls, number=next(NUMBERS))
    item = whole["output"][0]
    place = {"item_id": item["id"], "output_index": 0}
    begun = {**item, "status": "in_progress", **({"content": []} if words else {"arguments": ""})}
    part = {"type": "output_text", "text": "", "annotations": []}
    within = {**place, "content_index": 0}
    said: list[dict[str, Any]] = [
        {"type": "response.content_part.added", "part": part, **within},
        *({"type": "response.output_text.delta", "delta": word, "logprobs": [], **within} for word in words),
        {"type": "response.output_text.done", "text": "".join(words), "logprobs": [], **within},
        {"type": "response.content_part.done", "part": {**part, "text": "".join(words)}, **within},
    ]
    if call:
        said = [
            {"type": "response.function_call_arguments.delta", "delta": call["arguments"], **place},
            {"type": "response.function_call_arguments.done", "arguments": call["arguments"], **place},
        ]
    found: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**whole, "output": [], "status": "in_progress", "usage": None}},
        {"type": "response.output_item.added", "output_index": 0, "item": begun},
        *said,
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]
    return whole, named_events(*({**one, "sequence_number": number} for number, one in enumerate(found)))


def _sent(words: tuple[str, ...], call: dict[str, str] | None) -> Answered:
    block: dict[str, Any] = {"type": "text", "text": "".join(words)}
    pieces: list[dict[str, Any]] = [{"type": "text_delta", "text": word} for word in words]
    empty: dict[str, Any] = {"type": "text", "text": ""}
    if call:
        empty = {"type": "tool_use", "id": "t1", "name": call["name"], "input": {}}
        block = {**empty, "input": json.loads(call["arguments"])}
        pieces = [{"type": "input_json_delta", "partial_json": call["arguments"]}]
    reason = "tool_use" if call else "end_turn"
    usage = {"input_tokens": 20, "cache_read_input_tokens": 64, "cache_creation_input_tokens": 6, "output_tokens": 3}
    known = {
        "id": f"msg_{next(NUMBERS)}",
        "type": "message",
        "role": "assistant",
        "model": "m-1",
        "stop_sequence": None,
    }
    whole = {**known, "stop_reason": reason, "usage": usage, "content": [block]}
    events = named_events(
        {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        *({"type": "content_block_delta", "index": 0, "delta": piece} for piece in pieces),
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": {"output_tokens": 3},
        },
        {"type": "message_stop"},
    )
    return whole, events


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
