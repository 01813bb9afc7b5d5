"""
``/v1/chat/completions`` and ``/v1/models``: to the upstream and back, with the memory beside it.

The memory never blocks a chat: what fails in it is reported in a header, and the request goes on as it came.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any
from urllib.parse import quote, unquote

import anyio
import httpx2
from anyio.to_thread import run_sync
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from ...errors import EndpointRefused, HoldfastError
from ...memory import Memory
from ..gate import Grant, Quotas
from ..routing import WHOLE_USER, RouteTable, problem, problem_of
from ..settings import ServerSettings
from .answer import ReplyReader
from .chat import ChatMemory, ProxiedChat
from .request import (
    ChatRequest,
    MemoryOptions,
    Unreadable,
    auxiliary_task,
    header_name,
    memory_options,
    read,
    with_field,
)
from .upstream import VIA, Headers, Mask, Pool, UpstreamServer, answered, upstream_of

CHAT, MODELS, MODEL = "/v1/chat/completions", "/v1/models", "/v1/models/{model}"
_log = logging.getLogger("holdfast")


def _operation(name: str, summary: str, parameters: Sequence[str] = (), **more: Any) -> dict[str, Any]:
    """Return an OpenAPI operation; the bodies are OpenAI's."""
    answer: dict[str, Any] = {"description": "As the model's server answers", "content": {"application/json": {}}}
    text = {"schema": {"type": "string"}}
    named = [{"name": header, "in": "header", "required": False, **text} for header in parameters]
    return {
        "operationId": name,
        "tags": ["chat"],
        "summary": summary,
        "parameters": named,
        "responses": {"200": answer},
        **more,
    }


_CHAT_BODY: dict[str, Any] = {
    "type": "object",
    "required": ["messages"],
    "properties": {
        "model": {"type": "string"},
        "messages": {"type": "array", "minItems": 1, "items": {"type": "object"}},
        "user": {"type": "string", "description": "The user whose memory is used; without it there is none."},
        "stream": {"type": "boolean"},
    },
}
CHAT_OPERATION = _operation(
    "chat_completions",
    "Send a chat to the model's server, with the user's memory beside it, and store both sides of it.",
    ["X-Memory", "X-Memory-User", "X-Memory-Conversation", "X-Memory-Store", "X-Memory-Recall", "X-Memory-Rating"],
    requestBody={"required": True, "content": {"application/json": {"schema": _CHAT_BODY}}},
)
MODELS_OPERATION = _operation("chat_models", "List the models of the model's server.")
MODEL_OPERATION = _operation("chat_model", "Return one model of the model's server.")
MODEL_OPERATION["parameters"] = [{"name": "model", "in": "path", "required": True, "schema": {"type": "string"}}]


@dataclass(slots=True)
class _Exchange:
    """One request on its way: what is sent on, to which server, and the chat it belongs to."""

    upstream: UpstreamServer
    method: str
    url: str
    headers: Headers
    body: bytes
    turn: ProxiedChat | None = None
    answer: ReplyReader | None = None
    begun: bool = False
    kept: bool = False
    report_headers: list[tuple[bytes, bytes]] = field(default_factory=list)


class Proxy:
    """The routes, for one memory."""

    def __init__(self, memory: Memory, settings: ServerSettings, quotas: Quotas) -> None:
        self._memory, self._settings = memory, settings
        self._turns = ChatMemory(memory, quotas)
        self.pool = Pool(settings, memory.config.allow_private_endpoints)

    def add_to(self, table: RouteTable) -> None:
        """Put the routes into *table*."""
        table.add_application(("POST",), CHAT, WHOLE_USER, _Application(self._chat), CHAT_OPERATION)
        table.add_application(("GET",), MODELS, WHOLE_USER, _Application(self._models), MODELS_OPERATION)
        table.add_application(("GET",), MODEL, WHOLE_USER, _Application(self._models), MODEL_OPERATION)

    async def _upstream(self, scope: Scope, org: str, user: str | None) -> UpstreamServer | Response:
        """Return the server for a user's requests, or the answer when there is none."""
        if any(name == VIA for name, _ in scope["headers"]):
            hint = "the upstream is this server itself: name the model's own address"
            return _problem(508, "upstream-loop", "This request has passed here before", hint)
        try:
            found = await run_sync(upstream_of, self._memory, self._settings, org, user)
        except HoldfastError as error:
            return problem_of(error)
        if found is None:
            hint = "the operator names one: holdfast serve --upstream URL, or OPENAI_API_KEY in its environment"
            return _problem(404, "no-upstream", "This server has no model behind it", hint)
        return found

    async def _models(self, scope: Scope, receive: Receive, send: Send) -> None:
        grant: Grant = scope["state"]["grant"]
        upstream = await self._upstream(scope, grant.org, grant.user)
        if isinstance(upstream, Response):
            await upstream(scope, receive, send)
            return
        path = _models_path(scope["path"])
        if path is None:
            refusal = _problem(404, "not-found", "There is no such model", "GET /v1/models lists them")
            await refusal(scope, receive, send)
            return
        url = upstream.url(path, scope["query_string"])
        await self._relay(
            _Exchange(upstream, "GET", url, upstream.headers(scope["headers"]), b""), scope, receive, send
        )

    async def _chat(self, scope: Scope, receive: Receive, send: Send) -> None:
        grant: Grant = scope["state"]["grant"]
        body = await _whole(receive)
        if body is None:
            return
        request, asked, task = _read(body, scope, grant)
        upstream = await self._upstream(scope, grant.org, asked.user)
        if isinstance(upstream, Response):
            await upstream(scope, receive, send)
            return
        turn = ProxiedChat("off")
        if request is None:
            turn.reason = "unreadable"
        elif asked.user is None or not (asked.store or asked.recall):
            turn.reason = "no-user" if asked.user is None else "not-wanted"
        elif task:
            turn.reason = f"auxiliary; task={task}"
        else:
            await self._safely(turn, partial(self._turns.begin, request, asked, grant, turn))
            if turn.state == "on" and turn.inserted:
                body = _written(request, turn, asked.user, grant, upstream)
        url = upstream.url("/chat/completions", scope["query_string"])
        exchange = _Exchange(
            upstream, "POST", url, upstream.headers(scope["headers"]), body, turn, report_headers=_report_headers(turn)
        )
        await self._relay(exchange, scope, receive, send)

    async def _safely(self, turn: ProxiedChat, work: Callable[[], None]) -> None:
        """Run *work* of the memory in a thread; whatever it raises, and however long it takes, the chat goes on."""
        failed = "slow"
        with anyio.move_on_after(self._settings.memory_timeout_s):
            try:
                await run_sync(work, abandon_on_cancel=True, limiter=self.pool.threads())
                if turn.state == "off" and not turn.reason:
                    turn.state = "on"
                return
            except HoldfastError as error:
                failed = error.code
            except Exception as error:  # noqa: BLE001 - whatever the memory raises must not cost the chat its answer
                failed = "internal"
                _log.error("the memory failed in a chat: %s", type(error).__name__)
        turn.state, turn.reason, turn.inserted = "degraded", failed, ()
        _log.warning("a chat went on without its memory: %s", failed)

    async def _relay(self, exchange: _Exchange, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the request on and its answer back, until either side ends it; then store what was said."""
        try:
            async with anyio.create_task_group() as group:

                async def gone() -> None:
                    while (await receive())["type"] != "http.disconnect":
                        continue
                    group.cancel_scope.cancel()

                group.start_soon(gone)
                refusal = await self._exchanged(exchange, send)
                if refusal is not None:
                    await refusal(scope, receive, send)
                group.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await self._keep(exchange)

    async def _exchanged(self, exchange: _Exchange, send: Send) -> Response | None:
        """Pass the answer on; a problem when there is none to pass on."""
        try:
            async with self.pool.client(exchange.upstream) as client:
                await self._sent(exchange, client, send)
        except EndpointRefused as error:
            return problem_of(error)
        except httpx2.TimeoutException:
            _log.warning("the upstream took too long")
            return None if exchange.begun else _failed(504, "upstream-late", "The model took too long", exchange)
        except (httpx2.HTTPError, OSError) as error:
            _log.warning("the upstream broke off: %s", type(error).__name__)
            return None if exchange.begun else _failed(502, "upstream", "The model cannot be reached", exchange)
        return None

    async def _sent(self, exchange: _Exchange, client: httpx2.AsyncClient, send: Send) -> None:
        request = client.build_request(exchange.method, exchange.url, content=exchange.body or None)
        request.headers = httpx2.Headers([(b"host", request.url.netloc), *exchange.headers, *_length(exchange.body)])
        response = await client.send(request, stream=True)
        try:
            await self._passed(exchange, response, send)
        finally:
            with anyio.CancelScope(shield=True):
                await response.aclose()

    async def _passed(self, exchange: _Exchange, response: httpx2.Response, send: Send) -> None:
        """
        Yield the answer's bytes as they come; a document when it is whole.

        What was said is stored before the client hears that it is at its end: the client's next request finds it there.
        """
        kind, encoding = (response.headers.get(name, "") for name in ("content-type", "content-encoding"))
        answer = ReplyReader(kind, encoding)
        if exchange.turn is not None and response.is_success:
            exchange.answer = answer
        mask = Mask(exchange.upstream)
        headers = [(name, mask.whole(value)) for name, value in answered(response.headers.raw)]
        start = {
            "type": "http.response.start",
            "status": response.status_code,
            "headers": [*headers, *exchange.report_headers],
        }
        if not response.is_success:
            await self._begin(exchange, start, send)
            async for chunk in response.aiter_raw():
                await send({"type": "http.response.body", "body": mask.feed(chunk), "more_body": True})
            await send({"type": "http.response.body", "body": mask.end(), "more_body": False})
            return
        held = bytearray()
        async for chunk in response.aiter_raw():
            answer.feed(chunk)
            if not answer.streams and answer.readable:
                held += chunk
                continue
            if answer.done:
                await self._keep(exchange)
            await self._begin(exchange, start, send)
            await send({"type": "http.response.body", "body": bytes(held) + chunk, "more_body": True})
            held.clear()
        await self._keep(exchange)
        await self._begin(exchange, start, send)
        await send({"type": "http.response.body", "body": bytes(held), "more_body": False})

    async def _begin(self, exchange: _Exchange, start: Message, send: Send) -> None:
        if not exchange.begun:
            exchange.begun = True
            await send(start)

    async def _keep(self, exchange: _Exchange) -> None:
        """Store the chat so far, once."""
        turn, answer = exchange.turn, exchange.answer
        if exchange.kept or turn is None or answer is None:
            return
        exchange.kept = True
        answer.end()
        said, used, whole = answer.message(), answer.used, answer.whole
        if turn.keeps and (said is not None or used is not None):
            await self._safely(turn, lambda: self._turns.finish(turn, said, used, whole=whole))


def _models_path(raw: str) -> str | None:
    """Return the path of the list of models or of one of them; ``None`` for a name that would lead elsewhere."""
    name = raw.removeprefix(MODELS).removeprefix("/")
    decoded = name
    for _ in range(3):  # what is between here and the model may decode a name again
        decoded = unquote(decoded)
    parts = re.split(r"[/\\]", decoded)
    if name and (not all(part.strip(". ") for part in parts) or not decoded.isprintable()):
        return None
    return f"/models/{quote(unquote(name), safe='')}" if name else "/models"


class _Application:
    """A method as an ASGI application."""

    def __init__(self, call: Callable[[Scope, Receive, Send], Any]) -> None:
        self._call = call

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._call(scope, receive, send)


def _read(body: bytes, scope: Scope, grant: Grant) -> tuple[ChatRequest | None, MemoryOptions, str]:
    """Parse the request, ``None`` when we cannot read it, its options, and the task that a chat program set itself."""
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
    try:
        request = read(body)
    except Unreadable:
        return None, memory_options({}, headers, grant), ""
    return request, memory_options(request.fields, headers, grant), auxiliary_task(request.fields, headers)


def _written(request: ChatRequest, turn: ProxiedChat, user: str, grant: Grant, upstream: UpstreamServer) -> bytes:
    """Return the body with what the memory adds."""
    text = request.with_messages(turn.inserted)
    if upstream.takes_cache_key and "prompt_cache_key" not in request.fields:
        named = "\0".join((grant.org, grant.bot, user))
        text = with_field(text, request.opening, "prompt_cache_key", sha256(named.encode()).hexdigest()[:32])
    return text.encode()


def _report_headers(turn: ProxiedChat) -> Headers:
    """Return the headers that report what the memory did."""
    value = turn.header_value.encode("ascii", "replace")
    headers = [(b"x-memory", value), (b"x-holdfast-memory", value)]
    if turn.chat is not None:
        headers.append((b"x-memory-conversation", header_name(turn.chat.id).encode("ascii")))
    return headers


def _failed(status: int, code: str, title: str, exchange: _Exchange) -> Response:
    answer = _problem(status, code, title, "try again; is the upstream running, and its address right?")
    answer.raw_headers += exchange.report_headers
    return answer


def _problem(status: int, code: str, title: str, hint: str) -> Response:
    """Return a problem that also has the ``error`` that OpenAI's clients read."""
    error = {"message": f"{title}: {hint}", "type": "holdfast", "param": None, "code": code}
    return problem(status, code, title, hint=hint, more={"error": error})


def _length(body: bytes) -> Headers:
    return [(b"content-length", str(len(body)).encode())] if body else []


async def _whole(receive: Receive) -> bytes | None:
    """Read the body; ``None`` when the client has gone."""
    parts = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)
