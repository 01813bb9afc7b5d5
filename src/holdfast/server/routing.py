"""
The table of routes: method, path, roles and the call of the front door; and errors as problem documents.

Every route names its roles when it is made, and the gate knows no other: a path that is not in the table is not served.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from inspect import isclass
from typing import Annotated, Any, get_type_hints
from urllib.parse import unquote

from fastapi import APIRouter, Depends, FastAPI, Header, Path, Query, Request, params
from fastapi.exceptions import RequestValidationError
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute
from starlette.routing import Route as Endpoint
from starlette.types import ASGIApp, Scope

from ..errors import (
    BadInput,
    Changed,
    ConfigError,
    Conflict,
    HoldfastError,
    KeyReused,
    NotFound,
    StoreBusy,
    StoreError,
    StoreFull,
    TooLarge,
    VaultLocked,
)
from ..llm.protocol import ModelError
from ..text import dataclass
from ..types import Role

MEDIA_TYPE = "application/problem+json"
OPERATOR: frozenset[Role] = frozenset(("operator",))
APP: frozenset[Role] = frozenset(("operator", "app"))
USER: frozenset[Role] = frozenset(("operator", "app", "user", "subject"))
WHOLE_USER: frozenset[Role] = frozenset(("operator", "app", "user"))
PUBLIC: frozenset[Role] | None = None

UserName = Annotated[str, Path(description="Whose memory it is.")]
Org = Annotated[
    str | None, Header(alias="X-Holdfast-Org", description="The tenant, for operators; else that of the key.")
]
Bot = Annotated[str, Query(alias="bot", description="The assistant whose memory it is.")]
Subject = Annotated[str | None, Query(alias="subject", description="Whom or what it is about, when not the user.")]

PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"description": words, "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
    for status, words in (("4XX", "Refused; the problem says why"), ("5XX", "The store or a model cannot do it"))
}


@dataclass(frozen=True, slots=True)
class Door:
    """
    A call of the front door that a route serves; the client's call of that name is generated from both.

    ``fixed`` are fields of the body that the call implies, ``answer`` is the field of the answer that is its result.
    ``repeatable``: doing it twice is doing it once, so the client may send it again.  ``wait_s`` is how long it may take
    beyond what answers take as a rule.
    """

    call: Callable[..., Any]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    answer: str = ""
    repeatable: bool = False
    wait_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Route:
    """
    One method of one path.

    ``path`` has the parts of FastAPI; a part such as ``{user:name}`` may hold any name, percent-encoded.  ``roles``
    may call it; ``None``: anyone, without a key.  ``whole``: the call is an ASGI application of its own.
    ``operation`` then describes it in the document of the API.  ``page``: refusals are HTML pages.  ``cookie``: the cookie of a signed-in browser
    opens it as well as a key in the header.  ``upload``: its body is a file, for which other limits hold.
    """

    method: str
    path: str
    roles: frozenset[Role] | None
    call: Callable[..., Any]
    options: Mapping[str, Any]
    whole: bool = False
    page: bool = False
    cookie: bool = False
    upload: bool = False
    operation: Mapping[str, Any] | None = None
    doors: tuple[Door, ...] = ()

    @property
    def group(self) -> str:
        """The noun of the route, such as ``messages``: metrics count by it, and the document sorts by it."""
        if self.whole:
            return self.operation["tags"][0] if self.operation else "mcp"
        return "pages" if self.page else self.call.__name__.partition("_")[0]

    def endpoint(self) -> BaseRoute:
        """Build the route that FastAPI serves; it holds nothing of an application."""
        noun_verb = self.call.__name__
        extra: dict[str, Any] = {} if self.roles is None else {"security": [{"key": []}]}
        router = APIRouter()
        router.add_api_route(
            self.path,
            self.call,
            methods=[self.method],
            operation_id=noun_verb,
            name=noun_verb,
            tags=[self.group],
            openapi_extra=extra,
            **{**self.options, "responses": PROBLEMS | self.options.get("responses", {})},
        )
        return router.routes[0]

    def match(self, parts: list[str]) -> dict[str, str] | None:
        """Return the names in a path given as its raw parts, or ``None`` when it is another path."""
        own = self.path.strip("/").split("/")
        if len(own) != len(parts):
            return None
        names = {}
        for pattern, part in zip(own, parts, strict=True):
            if pattern.startswith("{"):
                names[pattern[1:-1].split(":")[0]] = unquote(part, errors="replace")
            elif pattern != part:
                return None
        return names


async def _scope(user: UserName, _org: Org = None, _bot: Bot = "default", _subject: Subject = None) -> None:
    """Declare the parameters that the gate reads, for the document of the API."""


def _answer_of(call: Callable[..., Any]) -> Any:
    """Return the type of a handler's answer; ``None`` where it has no body, or makes the response itself."""
    answer = get_type_hints(call).get("return")
    return None if answer is type(None) or (isclass(answer) and issubclass(answer, Response)) else answer


def _scope_params(path: str) -> list[params.Depends]:
    return [Depends(_scope)] if "{user:name}" in path else []


def _described_responses(path: str, operation: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answers of an ASGI application; Anthropic's clients read problems as plain JSON."""
    plain = path.startswith(("/v1/messages", "/v1/models"))
    found = dict(operation["responses"])
    for status, answer in PROBLEMS.items():
        content = answer["content"]
        found[str(status)] = {
            **answer,
            "content": content | ({"application/json": content[MEDIA_TYPE]} if plain else {}),
        }
    return found


# What FastAPI reads out of a handler takes milliseconds, and is the same in every application.
_ENDPOINTS: dict[tuple[str, str, Callable[..., Any]], BaseRoute] = {}


class RouteTable:
    """Routes in the order in which they were added."""

    def __init__(self) -> None:
        self.routes: list[Route] = []

    def add(
        self,
        method: str,
        path: str,
        roles: frozenset[Role] | None,
        *,
        door: Callable[..., Any] | Door | tuple[Door, ...] = (),
        repeatable: bool = False,
        cookie: bool = False,
        **options: Any,
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """
        Return a decorator that adds a handler to the table; *options* go to FastAPI.

        The answer has the shape that the handler says it returns, unless ``response_model`` names another one.  *door* is the call of the front door that it serves, *repeatable* see `Door`.

        With *cookie* a signed-in page may call it from its own scripts, which cannot set a header: an event stream.
        """

        found = door if isinstance(door, tuple | Door) else Door(door, repeatable=repeatable)
        doors = found if isinstance(found, tuple) else (found,)

        def take(call: Callable[..., Any]) -> Callable[..., Any]:
            more = {
                "response_model": _answer_of(call),
                "dependencies": _scope_params(path),
                **options,
            }
            self.routes.append(Route(method, path, roles, call, more, cookie=cookie, doors=doors))
            return call

        return take

    def page(
        self, method: str, path: str, roles: frozenset[Role] | None, *, upload: bool = False
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Return a decorator for a page that users open in a browser: it answers with HTML or a redirect, refusals included."""

        def take(call: Callable[..., Any]) -> Callable[..., Any]:
            options = {"include_in_schema": False, "response_model": None, "response_class": HTMLResponse}
            self.routes.append(Route(method, path, roles, call, options, page=True, cookie=True, upload=upload))
            return call

        return take

    def add_application(
        self,
        methods: Sequence[str],
        path: str,
        roles: frozenset[Role],
        call: ASGIApp,
        operation: Mapping[str, Any] | None = None,
    ) -> None:
        """Put an ASGI application into the table; *operation* describes it in the document of the API."""
        self.routes += [Route(method, path, roles, call, {}, whole=True, operation=operation) for method in methods]

    def operations(self) -> dict[str, dict[str, Any]]:
        """Return the described ASGI applications as paths of an OpenAPI document."""
        found: dict[str, dict[str, Any]] = {}
        for route in self.routes:
            if route.operation is not None:
                more = {"security": [{"key": []}], "responses": _described_responses(route.path, route.operation)}
                found.setdefault(route.path, {})[route.method.lower()] = {**route.operation, **more}
        return found

    def find(self, method: str, raw_path: str) -> tuple[Route | None, dict[str, str], list[str]]:
        """Find the route: ``(route, names in the path, methods that the path has)``."""
        parts = raw_path.strip("/").split("/")
        methods = []
        for route in self.routes:
            names = route.match(parts)
            if names is None:
                continue
            if route.method == method:
                return route, names, []
            methods.append(route.method)
        return None, {}, methods

    def allowed(self, raw_path: str) -> str:
        """Return the methods of a path, for the header ``Allow``."""
        methods = {route.method for route in self.routes if route.match(raw_path.strip("/").split("/")) is not None}
        return ", ".join(sorted(methods | ({"HEAD"} if "GET" in methods else set()) | {"OPTIONS"}))

    def install(self, app: FastAPI) -> None:
        """Serve every route of the table."""
        for route in self.routes:
            if route.whole:
                app.router.routes.append(Endpoint(route.path, endpoint=route.call, methods=[route.method]))
                continue
            name = (route.method, route.path, route.call)
            endpoint = _ENDPOINTS.get(name) or route.endpoint()
            if "<locals>" not in route.call.__qualname__:
                _ENDPOINTS[name] = endpoint
            app.router.routes.append(endpoint)


class NameConvertor(Convertor[str]):
    """One part of a path that is any name: percent-encoded, a slash in it included."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        """Decode the name."""
        return unquote(value, errors="replace")

    def to_string(self, value: str) -> str:
        """Return the name as it is in a path."""
        return value


register_url_convertor("name", NameConvertor())


# The first class that fits decides.
_STATUS: tuple[tuple[type[HoldfastError], int, str], ...] = (
    (TooLarge, 413, "Too large"),
    (BadInput, 422, "The request cannot be used"),
    (NotFound, 404, "Not found"),
    (KeyReused, 422, "This key was used before"),
    (Changed, 412, "It has changed since"),
    (Conflict, 409, "Conflict"),
    (VaultLocked, 409, "Keys of providers cannot be kept here"),
    (ConfigError, 422, "The request cannot be used"),
    (StoreBusy, 503, "The store is busy"),
    (StoreFull, 507, "The disk is full"),
    (StoreError, 503, "The store cannot do it"),
    (ModelError, 502, "The model gave no answer"),
    (HoldfastError, 500, "Holdfast could not do it"),
)
RETRY_AFTER_S = 5


def problem(
    status: int,
    code: str,
    title: str,
    detail: str = "",
    *,
    hint: str = "",
    headers: Mapping[str, str] | None = None,
    more: Mapping[str, Any] | None = None,
) -> Response:
    """Return one problem as a response; *more* are members that the format does not know."""
    body: dict[str, Any] = {"type": f"urn:holdfast:{code}", "title": title, "status": status, "code": code}
    if detail:
        body["detail"] = detail
    if hint:
        body["hint"] = hint
    # ASCII, so that whatever a name held can be encoded
    return Response(
        json.dumps({**body, **(more or {})}), status_code=status, media_type=MEDIA_TYPE, headers=dict(headers or {})
    )


def protocol_of(scope: Scope) -> str:
    """Return ``openai`` or ``anthropic`` for their routes, whose errors their clients read; else an empty text."""
    path = scope.get("path", "")
    if path.startswith("/v1/messages"):
        return "anthropic"
    if path == "/v1/models" or path.startswith("/v1/models/"):
        return "anthropic" if any(name == b"anthropic-version" for name, _ in scope["headers"]) else "openai"
    return "openai" if path.startswith(("/v1/chat/", "/v1/responses", "/v1/embeddings")) else ""


def in_shape(scope: Scope, answer: Response) -> Response:
    """Return a problem with the ``error`` that the clients of the route read."""
    protocol = protocol_of(scope)
    if not protocol or answer.media_type != MEDIA_TYPE:
        return answer
    found = json.loads(bytes(answer.body))
    message = ": ".join(found[part] for part in ("title", "detail", "hint") if found.get(part))
    status = answer.status_code
    if protocol == "anthropic":
        kind = _ANTHROPIC_ERRORS.get(status, "api_error" if status >= 500 else "invalid_request_error")
        found |= {"type": "error", "error": {"type": kind, "message": message}}
    else:
        found["error"] = {"message": message, "type": "holdfast", "param": None, "code": found["code"]}
    headers = {name: value for name, value in answer.headers.items() if name not in ("content-length", "content-type")}
    media_type = "application/json" if protocol == "anthropic" else MEDIA_TYPE
    return Response(json.dumps(found), status_code=status, media_type=media_type, headers=headers)


_ANTHROPIC_ERRORS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
}


def problem_of(error: HoldfastError) -> Response:
    """Return the problem for one of our errors."""
    status, title = next((status, title) for kind, status, title in _STATUS if isinstance(error, kind))
    headers = {"Retry-After": str(RETRY_AFTER_S)} if status in (503, 507) else {}
    return problem(status, error.code, title, error.message, hint=error.hint, headers=headers)


def install(app: FastAPI, fitted: Callable[[Scope, Response], Response]) -> None:
    """Answer every error of *app* with a problem, which *fitted* turns into a page where a page was asked for."""

    async def ours(request: Request, error: Exception) -> Response:
        assert isinstance(error, HoldfastError)
        return fitted(request.scope, problem_of(error))

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return fitted(request.scope, problem(error.status_code, "http", str(error.detail), headers=error.headers))

    async def misshaped(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        answer = problem(422, "bad-input", "The request cannot be used", _where(error), hint="see /openapi.json")
        return fitted(request.scope, answer)

    async def broken(request: Request, _error: Exception) -> Response:
        answer = problem(500, "internal", "Something broke here", hint="the log of the server says more")
        return fitted(request.scope, answer)

    app.add_exception_handler(HoldfastError, ours)
    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(RequestValidationError, misshaped)
    app.add_exception_handler(Exception, broken)


# Said of the shape that a body has not, where it may have one of two.
_OTHER_SHAPE = ("model_attributes_type", "model_type", "list_type")


def _where(error: RequestValidationError) -> str:
    """Describe which fields are wrong and how, without repeating their values."""
    found = []
    told = [item for item in error.errors() if item["type"] not in _OTHER_SHAPE] or error.errors()
    for item in told[:5]:
        # a name that the caller made up may be text of a message; one with a capital is that of a class here
        parts = (str(one) for one in item["loc"] if isinstance(one, int) or (one.isidentifier() and one[0].islower()))
        place = ".".join(parts)[:100]
        found.append(f"{place}: {item['msg'] if item['type'] != 'json_invalid' else 'this is not JSON'}")
    return "; ".join(found)
