"""
Language models for tests: one that answers from a script, and a server that speaks OpenAI's protocol.

`ScriptedModel` is a model object.  `ModelServer` is for tests over real HTTP: slow, broken, limited, cut off or
endless answers.  Nothing leaves the machine, and no key is needed.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from ..llm.protocol import Answer, Layer, Request
from ..text import dataclass
from ..text.render import parse_blocks
from ..text.terms import count_tokens

Reply = str | Answer | Exception
Script = Mapping[Layer, Iterable[Reply] | Callable[[Request], Reply]]

_ECHO_CHARS = 200
_PARTS: tuple[Layer, ...] = ("chunk_summary", "episodes", "facts")


class ScriptedModel:
    """
    Answers layer by layer: with the next of a list, or with what a function makes of the request.

    An answer is text, an `Answer`, or an error, which is raised.  Where nothing is scripted, or
    nothing is left, *otherwise* answers; by default it is `uneventful`.  ``asked`` lists every request in
    the order in which they came.  Safe to call from several threads.

    A chunk is read by one ``combined`` call.  Where that layer is not scripted, its answer is put together from those
    of ``chunk_summary``, ``episodes`` and ``facts``.

        model = ScriptedModel({"facts": ["home,lives_in,Lisbon,0.95,,set,,,1,I live in Lisbon"]})
    """

    def __init__(
        self,
        script: Script | None = None,
        *,
        name: str = "scripted:1",
        otherwise: Callable[[Request], Reply] | None = None,
    ) -> None:
        self.name = name
        self.asked: list[Request] = []
        self._functions: dict[Layer, Callable[[Request], Reply]] = {}
        self._left: dict[Layer, list[Reply]] = {}
        self._otherwise = otherwise or uneventful
        self._lock = threading.Lock()
        for layer, replies in (script or {}).items():
            if callable(replies):
                self._functions[layer] = replies
            else:
                self._left[layer] = list(replies)

    def say(self, layer: Layer, *replies: Reply) -> None:
        """Add answers to the script of a layer."""
        with self._lock:
            self._left.setdefault(layer, []).extend(replies)

    def requests(self, layer: Layer) -> list[Request]:
        """Return the requests of one layer."""
        with self._lock:
            return [request for request in self.asked if request.layer == layer]

    def ask(self, request: Request) -> Answer:
        """Answer from the script; token counts are estimates."""
        with self._lock:
            self.asked.append(request)
        reply = self._reply(request, request.layer)
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, Answer):
            return reply
        asked = count_tokens(request.system) + count_tokens(request.text)
        return Answer(reply, self.name, input_tokens=asked, output_tokens=count_tokens(reply), estimated=True)

    def _reply(self, request: Request, layer: Layer) -> Reply:
        with self._lock:
            left = self._left.get(layer)
            if left:
                return left.pop(0)
            scripted = self._functions.get(layer)
            apart = layer == "combined" and not (scripted or layer in self._left) and self._scripts_parts()
        return self._composed(request) if apart else (scripted or self._otherwise)(request)

    def _scripts_parts(self) -> bool:
        return any(part in self._left or part in self._functions for part in _PARTS)

    def _composed(self, request: Request) -> Reply:
        """Return one answer to a combined request, made of those to its parts, or the first error among them."""
        found = {layer: self._reply(replace(request, layer=layer), layer) for layer in _PARTS}
        for reply in found.values():
            if isinstance(reply, Exception):
                return reply
        text = {layer: reply.text if isinstance(reply, Answer) else reply for layer, reply in found.items()}
        return f"{text['chunk_summary']}\nEPISODES:\n{text['episodes']}\nFACTS:\n{text['facts']}"


def uneventful(request: Request) -> str:
    """Answer as a model that finds nothing worth noting: no facts, and the last words as the summary."""
    if request.layer in ("facts", "character"):
        return "NONE"
    if request.layer == "episodes":
        return "No facts to record"
    items = [item for _, block in parse_blocks(request.text) for item in block]
    words = items[-1][-_ECHO_CHARS:] if items else "Nothing was said."
    if request.layer == "combined":
        return f"SUMMARY: {words}\nEPISODES:\nNo facts to record\nFACTS:\nNONE"
    return f"SUMMARY: {words}"


MAX_REQUEST_BYTES = 64 * 2**20
_STATUS_WORDS = {429: "rate_limit_exceeded", 401: "invalid_api_key", 404: "model_not_found"}


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """
    One answer: ``text`` in the shape of the endpoint, unless ``status`` or ``body`` say otherwise.

    ``headers`` are added, and replace those of the same name.  ``wait_s`` passes before the first byte,
    ``drip_s`` after every byte of the body.  After ``cut`` bytes of the body the connection ends, though more was
    announced; with ``reset`` it is torn down instead of closed.
    """

    text: str = ""
    finish: str = "stop"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    cut: int | None = None
    reset: bool = False
    wait_s: float = 0.0
    drip_s: float = 0.0
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """One request: where it went, with which headers (names in lower case), and the JSON of its body."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def system(self) -> str:
        """The instructions."""
        return "\n".join(text for role, text in self._texts() if role in ("system", "developer"))

    @property
    def text(self) -> str:
        """The messages of the user's side."""
        return "\n".join(text for role, text in self._texts() if role == "user")

    def _texts(self) -> Iterator[tuple[str, str]]:
        if isinstance(self.body.get("instructions"), str):
            yield "system", self.body["instructions"]
        messages = self.body.get("messages", self.body.get("input", []))
        if isinstance(messages, str):
            yield "user", messages
            return
        for message in messages:
            content = message.get("content") or ""
            parts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
            yield message.get("role", ""), "".join(parts)


Answers = Callable[[ServerRequest], ServerAnswer | str] | Iterable[ServerAnswer | str]


class ModelServer:
    """
    Serves ``/chat/completions``, ``/responses`` and ``/models`` below ``url`` while the ``with`` block runs.

    *answers* is a function of the request, or a list that is used up; then every answer is the text
    ``NONE``.  ``asked`` holds the requests in the order in which they came.

        with ModelServer(["Hello!", Served(status=429, headers={"Retry-After": "2"})]) as server:
            llm = holdfast.llm.model("openai:any", base_url=server.url)
    """

    def __init__(self, answers: Answers = ()) -> None:
        self.asked: list[ServerRequest] = []
        self._answers = answers if callable(answers) else _one_after_another(answers)
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The address for ``base_url``; it ends with ``/v1``."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> ModelServer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Stop; from now on connections are refused, and answers under way break off."""
        if not self._closing.is_set():
            self._closing.set()
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()

    def _answer(self, asked: ServerRequest) -> ServerAnswer:
        with self._lock:
            self.asked.append(asked)
        served = self._answers(asked)
        return ServerAnswer(served) if isinstance(served, str) else served


def unreachable_url() -> str:
    """Return an address on this machine that refuses connections."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}/v1"


def answer_body(served: ServerAnswer, asked: ServerRequest) -> bytes:
    """Return the bytes that a well-behaved server sends for this answer."""
    if served.body is not None:
        return served.body
    if served.status >= 400:
        code = _STATUS_WORDS.get(served.status, "server_error")
        return json.dumps({"error": {"message": served.text or code, "type": code, "code": code}}).encode()
    if asked.path.endswith("/models"):
        return json.dumps({"object": "list", "data": [{"id": "any", "object": "model"}]}).encode()
    shape = _response if asked.path.endswith("/responses") else _completion
    return json.dumps(shape(served, asked), ensure_ascii=False).encode("utf-8", "surrogatepass")


def _completion(served: ServerAnswer, asked: ServerRequest) -> dict[str, Any]:
    prompt, said = count_tokens(asked.system) + count_tokens(asked.text), count_tokens(served.text)
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_767_600_000,
        "model": asked.body.get("model", "any"),
        "choices": [
            {"index": 0, "finish_reason": served.finish, "message": {"role": "assistant", "content": served.text}}
        ],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": said,
            "total_tokens": prompt + said,
            "prompt_tokens_details": {"cached_tokens": served.cached_tokens},
        },
    }


def _response(served: ServerAnswer, asked: ServerRequest) -> dict[str, Any]:
    prompt, said = count_tokens(asked.system) + count_tokens(asked.text), count_tokens(served.text)
    content = {"type": "output_text", "text": served.text, "annotations": []}
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_767_600_000,
        "model": asked.body.get("model", "any"),
        "status": "incomplete" if served.finish == "length" else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if served.finish == "length" else None,
        "output": [
            {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [content]}
        ],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": prompt,
            "output_tokens": said,
            "total_tokens": prompt + said,
            "input_tokens_details": {"cached_tokens": served.cached_tokens},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def _one_after_another(answers: Iterable[ServerAnswer | str]) -> Callable[[ServerRequest], ServerAnswer | str]:
    left, lock = iter(answers), threading.Lock()

    def answer(asked: ServerRequest) -> ServerAnswer | str:
        with lock:
            return next(left, "NONE")

    return answer


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that went away: tests provoke that."""


def _handler(owner: ModelServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            size = min(int(self.headers.get("Content-Length", "0")), MAX_REQUEST_BYTES)
            self._serve(json.loads(self.rfile.read(size) or b"{}"))

        def do_GET(self) -> None:
            self._serve({})

        def _serve(self, body: Mapping[str, Any]) -> None:
            asked = ServerRequest(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            served = owner._answer(asked)
            if owner._closing.wait(served.wait_s) if served.wait_s else owner._closing.is_set():
                self.close_connection = True
                return
            whole = answer_body(served, asked)
            sent = whole if served.cut is None else whole[: served.cut]
            headers = {"Content-Type": "application/json", "Content-Length": str(len(whole)), **served.headers}
            self.send_response(served.status)
            for name, value in headers.items():
                self.send_header(name, value)
            with suppress(OSError):
                self.end_headers()
                self._send(sent, served.drip_s)
            if len(sent) < len(whole) or served.reset:
                self.close_connection = True
                if served.reset:
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self.connection.close()

        def _send(self, body: bytes, drip_s: float) -> None:
            if not drip_s:
                self.wfile.write(body)
                return
            for at in range(len(body)):
                if owner._closing.wait(drip_s):
                    return
                self.wfile.write(body[at : at + 1])

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing."""

    return Handler
