"""
The routes of OpenAI and Anthropic: to the model's server and back, chats with the memory beside them.

The memory never blocks a chat: what fails in it is reported in a header, and the request goes on as it came.
An answer is read while its bytes pass through unchanged: whatever cannot be read is passed on all the same, not stored.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from hashlib import sha256
from typing import Any
from urllib.parse import quote, unquote

import anyio
import httpx2
from anyio.to_thread import run_sync
from starlette.responses import Response
from starlette.types import Message as ASGIMessage
from starlette.types import Receive, Scope, Send

from ...errors import EndpointRefused, HoldfastError
from ...memory import Memory
from ...text import dataclass
from ...text.validate import short_cache_key
from ..gate import Grant, Quotas, ServerSettings
from ..routing import APP, WHOLE_USER, RouteTable, in_shape, problem, problem_of, protocol_of
from .chat import ChatMemory, ProxiedChat, digest_of_name
from .reply import Owner, Owners, References, ReplyReader, references
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
from .shapes import CHAT, MESSAGES, RESPONSES, Shape
from .upstream import VIA, Headers, Mask, Pool, UpstreamServer, answered, upstream_of

MODELS, MODEL = "/v1/models", "/v1/models/{model}"
RESPONSE = "/v1/responses/{response}"
_log = logging.getLogger("holdfast")
_LIST = {"type": "array", "minItems": 1, "items": {"type": "object"}}
_NAMED = {"type": "string", "description": "The user whose memory is used; without it there is none."}
_BODIES: dict[str, dict[str, Any]] = {
    CHAT.name: {"messages": _LIST, "user": _NAMED},
    RESPONSES.name: {
        "input": {"anyOf": [{"type": "string"}, _LIST]},
        "previous_response_id": {"type": ["string", "null"]},
        "user": _NAMED,
    },
    MESSAGES.name: {"messages": _LIST, "metadata": {"type": "object", "properties": {"user_id": _NAMED}}},
}
_SUMMARIES = {
    CHAT.name: ("chat_completions", "Send a chat to the model's server, as OpenAI's chat completions"),
    RESPONSES.name: ("chat_responses", "Send a chat to the model's server, as OpenAI's responses"),
    MESSAGES.name: ("chat_messages", "Send a chat to the model's server, as Anthropic's messages"),
}
_HEADERS = ["X-Memory", *(f"X-Memory-{n}" for n in ("User", "Conversation", "Store", "Recall", "Rating"))]
RESPONSE_OPERATIONS = [
    ("GET", "", "chat_response", "Return a response that the model's server keeps."),
    ("DELETE", "", "chat_response_delete", "Delete a response that the model's server keeps; the memory stays."),
    ("POST", "/cancel", "chat_response_cancel", "Cancel a response that is made in the background."),
    ("GET", "/input_items", "chat_response_items", "List the input of a response that the model's server keeps."),
]
LARGE_BODY = 64 * 2**10
CLOSING_S = 1.0
_OF_OTHERS = "This request goes on from a response, conversation, or item that is not known as this user's"
_NOT_KNOWN = (
    "send the earlier messages themselves in input, without previous_response_id, conversation, and item_reference, "
    "or let the program's own key make this request for the user"
)


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


def _json_body(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    schema = {"type": "object", "required": list(required), "properties": dict(properties)}
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def _chat_operation(shape: Shape) -> dict[str, Any]:
    name, summary = _SUMMARIES[shape.name]
    fields = {"model": {"type": "string"}, "stream": {"type": "boolean"}, **_BODIES[shape.name]}
    body = _json_body(fields, *([] if shape is RESPONSES else [shape.listed]))
    return _operation(
        f"{name}", f"{summary}, with the user's memory beside it; store both sides.", _HEADERS, requestBody=body
    )


def _with_path(operation: dict[str, Any], name: str) -> dict[str, Any]:
    named = {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
    return {**operation, "parameters": [*operation["parameters"], named]}


_EMBEDDED = _json_body({"model": {"type": "string"}, "input": {}}, "input")
_COUNTED = _json_body({"model": {"type": "string"}, "messages": _LIST}, "messages")
EMBEDDINGS_OPERATION = _operation("chat_embeddings", "Embed texts at the model's server.", requestBody=_EMBEDDED)
COUNT_OPERATION = _operation("chat_count_tokens", "Count the tokens of Anthropic's messages.", requestBody=_COUNTED)
MODELS_OPERATION = _operation("chat_models", "List the models of the model's server.")
MODEL_OPERATION = _with_path(_operation("chat_model", "Return one model of the model's server."), "model")


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
    closing: anyio.Event | None = None
    owner: Owner | None = None
    noted: int = 0
    report_headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    shape: Shape = CHAT


class ClosingAnswers:
    """
    Answers whose last words have passed and that are about to be stored, by user.

    A client may go on from such an answer before the model's server has closed it: its next request waits a moment.
    """

    def __init__(self) -> None:
        self._open: dict[tuple[Any, ...], list[anyio.Event]] = {}

    def add(self, whose: tuple[Any, ...]) -> anyio.Event:
        """Note an answer; the event is set when it is stored."""
        event = anyio.Event()
        self._open.setdefault(whose, []).append(event)
        return event

    def remove(self, whose: tuple[Any, ...], event: anyio.Event | None) -> None:
        """Note that an answer is stored."""
        waiting = self._open.get(whose, [])
        if event in waiting:
            waiting.remove(event)
            event.set()
        if not waiting:
            self._open.pop(whose, None)

    async def stored(self, whose: tuple[Any, ...]) -> None:
        """Wait until the answers noted so far are stored; at most `CLOSING_S` seconds."""
        with anyio.move_on_after(CLOSING_S):
            for event in tuple(self._open.get(whose, ())):
                await event.wait()


class Proxy:
    """The routes, for one memory."""

    def __init__(self, memory: Memory, settings: ServerSettings, quotas: Quotas) -> None:
        self._memory, self._settings = memory, settings
        self._turns, self._closing, self._owners = ChatMemory(memory, quotas), ClosingAnswers(), Owners(memory)
        self.pool = Pool(settings, memory.config.allow_private_endpoints)

    def add_to(self, table: RouteTable) -> None:
        """Put the routes into *table*."""
        for shape in (CHAT, RESPONSES, MESSAGES):
            call = _Application(partial(self._chat, shape))
            table.add_application(("POST",), f"/v1{shape.path}", WHOLE_USER, call, _chat_operation(shape))
        table.add_application(("GET",), MODELS, WHOLE_USER, _Application(self._models), MODELS_OPERATION)
        table.add_application(("GET",), MODEL, WHOLE_USER, _Application(self._models), MODEL_OPERATION)
        for path, operation, protocol in (
            ("/embeddings", EMBEDDINGS_OPERATION, "openai"),
            (f"{MESSAGES.path}/count_tokens", COUNT_OPERATION, "anthropic"),
        ):
            call = _Application(partial(self._pass, path, protocol))
            table.add_application(("POST",), f"/v1{path}", WHOLE_USER, call, operation)
        for method, rest, name, summary in RESPONSE_OPERATIONS:
            operation = _with_path(_operation(name, summary), "response")
            table.add_application((method,), RESPONSE + rest, APP, _Application(self._response), operation)

    async def _upstream(
        self, scope: Scope, org: str, user: str | None, protocol: str = "openai"
    ) -> UpstreamServer | Response:
        """Return the server for a user's requests, or the answer when there is none."""
        if any(name == VIA for name, _ in scope["headers"]):
            hint = "the upstream is this server itself: name the model's own address"
            return _problem(scope, 508, "upstream-loop", "This request has passed here before", hint)
        try:
            found = await run_sync(upstream_of, self._memory, self._settings, org, user, protocol)
        except HoldfastError as error:
            return in_shape(scope, problem_of(error))
        if found is None:
            variable = {"anthropic": "ANTHROPIC_API_KEY"}.get(protocol, "OPENAI_API_KEY")
            hint = f"the operator names one: holdfast serve --upstream URL, or {variable} in its environment"
            return _problem(scope, 404, "no-upstream", "This server has no model behind it", hint)
        return found

    async def _pass(self, path: str, protocol: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request that has no part in the memory."""
        grant: Grant = scope["state"]["grant"]
        body = await _whole(receive) if scope["method"] == "POST" else b""
        if body is None:
            return
        upstream = await self._upstream(scope, grant.org, grant.user, protocol)
        if isinstance(upstream, Response):
            await upstream(scope, receive, send)
            return
        url = upstream.url(path, scope["query_string"])
        headers = upstream.headers(scope["headers"])
        await self._relay(_Exchange(upstream, scope["method"], url, headers, body), scope, receive, send)

    async def _response(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request about a response that the model's server keeps."""
        name, _, rest = scope["path"].removeprefix(f"/v1{RESPONSES.path}/").partition("/")
        safe = _safe_name(name)
        if not safe:
            refusal = _problem(scope, 404, "not-found", "There is no such response", "is the id complete?")
            await refusal(scope, receive, send)
            return
        path = f"{RESPONSES.path}/{safe}{f'/{rest}' if rest else ''}"
        await self._pass(path, RESPONSES.protocol, scope, receive, send)

    async def _models(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = _models_path(scope["path"])
        if path is None:
            refusal = _problem(scope, 404, "not-found", "There is no such model", "GET /v1/models lists them")
            await refusal(scope, receive, send)
            return
        await self._pass(path, protocol_of(scope), scope, receive, send)

    async def _chat(self, shape: Shape, scope: Scope, receive: Receive, send: Send) -> None:
        grant: Grant = scope["state"]["grant"]
        body = await _whole(receive)
        if body is None:
            return
        request, asked, task, named = await _read(body, scope, grant, shape)
        upstream = await self._upstream(scope, grant.org, asked.user, shape.protocol)
        if isinstance(upstream, Response):
            await upstream(scope, receive, send)
            return
        refusal = await self._refused(upstream, scope, asked, named)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        turn = ProxiedChat("off", within=next(iter(named.within), ""), switched_off=asked.switched_off)
        if request is None:
            turn.reason = "unreadable"
        elif asked.user is None or not (asked.store or asked.recall):
            turn.reason = "no-user" if asked.user is None else "not-wanted"
            if asked.user is not None:
                apart = partial(self._turns.keep_apart, asked.user, grant)
                await self._safely(ProxiedChat("off", "not-wanted"), apart)
        elif task:
            turn.reason = f"auxiliary; task={task}"
        else:
            same = asked.request or sha256(body).hexdigest()
            names = (grant.org, grant.bot, grant.subject, asked.user, asked.conversation, shape.name, same)
            turn.flight = self._turns.flight(*names)
            await self._closing.stored((grant.org, grant.bot, grant.subject or None, asked.user))
            await self._safely(turn, partial(self._turns.begin, request, asked, grant, turn))
            if turn.state == "on" and turn.inserted:
                body = _written(request, turn, upstream, cached=self._memory.config.prompt_cache)
        url, headers = upstream.url(shape.path, scope["query_string"]), upstream.headers(scope["headers"])
        exchange = _Exchange(
            upstream, "POST", url, headers, body, turn, report_headers=_report_headers(turn), shape=shape
        )
        exchange.owner = None if asked.user is None else (grant.org, asked.user)
        await self._relay(exchange, scope, receive, send)

    async def _refused(
        self, upstream: UpstreamServer, scope: Scope, asked: MemoryOptions, named: References
    ) -> Response | None:
        """Return the answer to a request that refers to what is not the user's on the model's server."""
        grant: Grant = scope["state"]["grant"]
        if not (named.within or named.kept) and named.readable:
            return None
        refuses = True
        with anyio.move_on_after(self._settings.memory_timeout_s) as limit:
            try:
                check = partial(self._owners.refuses, upstream, grant, asked, named)
                refuses = await run_sync(check, abandon_on_cancel=True, limiter=self.pool.threads())
            except HoldfastError as error:
                return in_shape(scope, problem_of(error))
        if limit.cancelled_caught:
            return _problem(scope, 503, "store-busy", "It cannot be seen now whose that response is", "try again")
        if refuses:
            title = (
                _OF_OTHERS if named.readable else "This request is not JSON, so nobody can tell whose response it names"
            )
            return _problem(scope, 403, "unknown-reference", title, _NOT_KNOWN)
        if asked.user is not None:
            self._owners.note(upstream, (grant.org, asked.user), named.within)
        return None

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
                refusal = await self._exchanged(exchange, scope, send)
                if refusal is not None:
                    await refusal(scope, receive, send)
                group.cancel_scope.cancel()
        finally:
            await self._keep(exchange)

    async def _exchanged(self, exchange: _Exchange, scope: Scope, send: Send) -> Response | None:
        """Pass the answer on; a problem when there is none to pass on."""
        try:
            async with self.pool.client(exchange.upstream) as client:
                await self._sent(exchange, client, send)
        except EndpointRefused as error:
            return in_shape(scope, problem_of(error))
        except httpx2.TimeoutException:
            _log.warning("the upstream took too long")
            return None if exchange.begun else _failed(scope, 504, "upstream-late", "The model took too long", exchange)
        except (httpx2.HTTPError, OSError) as error:
            _log.warning("the upstream broke off: %s", type(error).__name__)
            return None if exchange.begun else _failed(scope, 502, "upstream", "The model cannot be reached", exchange)
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
        answer = ReplyReader(kind, encoding, exchange.shape)
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
            self._note(exchange, answer)
            if not answer.streams and answer.readable:
                held += chunk
                continue
            if answer.ended:
                await self._keep(exchange)
            elif answer.closing and exchange.turn is not None and exchange.closing is None:
                exchange.closing = self._closing.add(exchange.turn.whose)
            await self._begin(exchange, start, send)
            await send({"type": "http.response.body", "body": bytes(held) + chunk, "more_body": True})
            held.clear()
        await self._keep(exchange)
        await self._begin(exchange, start, send)
        await send({"type": "http.response.body", "body": bytes(held), "more_body": False})

    async def _begin(self, exchange: _Exchange, start: ASGIMessage, send: Send) -> None:
        if not exchange.begun:
            exchange.begun = True
            await send(start)

    def _note(self, exchange: _Exchange, answer: ReplyReader) -> None:
        """Note whose the response is, as soon as its name is known; the client may go on from it at once."""
        names = [answer.id, *answer.items] if answer.id and exchange.shape is RESPONSES else []
        if exchange.owner is not None and len(names) > exchange.noted:
            new, exchange.noted = names if not exchange.noted else names[exchange.noted :], len(names)
            self._owners.note(exchange.upstream, exchange.owner, map(digest_of_name, new))

    async def _keep(self, exchange: _Exchange) -> None:
        """Store the chat so far, once; to the end, even when the client goes away meanwhile."""
        turn, answer = exchange.turn, exchange.answer
        if exchange.kept or turn is None or answer is None:
            return
        exchange.kept = True
        answer.end()
        self._note(exchange, answer)
        said, used, whole = answer.message(), answer.used, answer.whole
        name, items = (answer.id, answer.items) if exchange.shape is RESPONSES else ("", [])
        with anyio.CancelScope(shield=True):
            if turn.keeps and (said is not None or used is not None or name):
                keep = partial(self._turns.finish, turn, said, used, whole=whole, name=name, items=items)
                await self._safely(turn, keep)
        self._closing.remove(turn.whose, exchange.closing)


def _models_path(raw: str) -> str | None:
    """Return the path of the list of models or of one of them; ``None`` for a name that would lead elsewhere."""
    name = raw.removeprefix(MODELS).removeprefix("/")
    if not name:
        return "/models"
    safe = _safe_name(name)
    return f"/models/{safe}" if safe else None


def _safe_name(name: str) -> str:
    """Return a name from a path as part of another path; empty for one that would lead elsewhere."""
    decoded = name
    for _ in range(3):  # what is between here and the model may decode a name again
        decoded = unquote(decoded)
    parts = re.split(r"[/\\]", decoded)
    if not all(part.strip(". ") for part in parts) or not decoded.isprintable():
        return ""
    return quote(unquote(name), safe="")


class _Application:
    """A method as an ASGI application."""

    def __init__(self, call: Callable[[Scope, Receive, Send], Any]) -> None:
        self._call = call

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._call(scope, receive, send)


_Read = tuple[ChatRequest | None, MemoryOptions, str, References]


async def _read(body: bytes, scope: Scope, grant: Grant, shape: Shape) -> _Read:
    """Parse the request, ``None`` when we cannot read it, its options, the task that a chat program set itself, and what it refers to."""
    if len(body) > LARGE_BODY:  # other clients shall not wait for it
        return await run_sync(_parsed, body, scope, grant, shape)
    return _parsed(body, scope, grant, shape)


def _parsed(body: bytes, scope: Scope, grant: Grant, shape: Shape) -> _Read:
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
    named = references(body) if shape is RESPONSES else References()
    try:
        request = read(body, shape)
    except Unreadable:
        return None, memory_options({}, headers, grant, shape), "", named
    options = memory_options(request.fields, headers, grant, shape)
    return request, options, auxiliary_task(request.fields, headers, shape), named


def _written(request: ChatRequest, turn: ProxiedChat, upstream: UpstreamServer, *, cached: bool) -> bytes:
    """Return the body with what the memory adds."""
    text, keyed = request.with_messages(turn.inserted), cached and turn.chat is not None and upstream.takes_cache_key
    if keyed and turn.chat is not None and request.shape is not MESSAGES and "prompt_cache_key" not in request.fields:
        text = with_field(text, request.opening, "prompt_cache_key", short_cache_key(f"chat:{turn.chat.id}"))
    return text.encode()


def _report_headers(turn: ProxiedChat) -> Headers:
    """Return the headers that report what the memory did."""
    value = turn.header_value.encode("ascii", "replace")
    headers = [(b"x-memory", value), (b"x-holdfast-memory", value)]
    if turn.chat is not None:
        headers.append((b"x-memory-conversation", header_name(turn.chat.id).encode("ascii")))
    return headers


def _failed(scope: Scope, status: int, code: str, title: str, exchange: _Exchange) -> Response:
    answer = _problem(scope, status, code, title, "try again; is the upstream running, and its address right?")
    answer.raw_headers += exchange.report_headers
    return answer


def _problem(scope: Scope, status: int, code: str, title: str, hint: str) -> Response:
    """Return a problem in the shape of the route."""
    return in_shape(scope, problem(status, code, title, hint=hint))


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
