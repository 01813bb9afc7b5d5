"""
Authentication, authorization and limits, checked before a byte of the body is read.

In this order: the name under which the server is asked for, the page that asks, the route, the key, its role and whom it
is about, how often, how much.  What passes carries a `Grant`; handlers take whose memory it is from there and from
nowhere else.
"""

from __future__ import annotations

import asyncio
import math
import secrets
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from datetime import timedelta
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..admin import ApiKeys
from ..errors import HoldfastError
from ..scope import LOCAL, acting, subject_id
from ..text import dataclass, expression
from ..types import ApiKey
from .pages.layout import error_page
from .pages.texts import speak
from .routing import Route, RouteTable, problem, problem_of

LOOPBACK = frozenset(("127.0.0.1", "::1", "localhost"))
ORG_HEADER, USER_HEADER = "x-holdfast-org", "x-holdfast-user"
_OWN_HEADERS = ("", "-User", "-Bot", "-Conversation", "-Store", "-Recall", "-Rating", "-History")
# What OpenAI's client for browsers adds to every request.
_CLIENT_HEADERS = ("Arch", "Lang", "OS", "Package-Version", "Retry-Count", "Runtime", "Runtime-Version", "Timeout")
_CORS_HEADERS = ", ".join(
    (
        "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, X-Holdfast-Org",
        "X-Api-Key, Anthropic-Version, Anthropic-Beta, Anthropic-Dangerous-Direct-Browser-Access",
        *(f"X-{ours}{name}" for ours in ("Holdfast", "Memory") for name in _OWN_HEADERS if name or ours == "Memory"),
        *(f"X-Stainless-{name}" for name in _CLIENT_HEADERS),
    )
)
_SCHEMES = ("bearer", "token", "api-key")  # the last two are those of mem0's clients and of Zep's
_LINK_PREFIX = "link_"
_MAX_QUERY_BYTES = 8_192
_HOST = expression(r"(?:(?P<name>[a-z0-9._-]+)|\[(?P<v6>[0-9a-f:.]+:[0-9a-f:.]*)\])(?::[0-9]{1,5})?")
# Headers that may come once only: a proxy on the way may have checked another one of the two.
_ONCE = frozenset(
    "authorization content-length content-type host idempotency-key if-match origin sec-fetch-site "
    "transfer-encoding x-api-key x-holdfast-org x-holdfast-user".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """
    Every setting of the server; the name carries the unit.

    ``allowed_hosts`` are the names under which the server may be asked for, without port; a request for another
    name is refused, so that a page elsewhere cannot reach the server by another name that points here.
    ``allowed_origins`` are the pages (``https://chat.example``) whose scripts may ask from a browser.

    ``requests_per_minute`` is of one key, ``org_requests_per_minute`` of all keys of one org; each process counts for
    itself.  ``messages_per_day`` and ``messages_per_month`` (UTC) are how many messages one key may store, ``org_messages_per_day``
    and ``org_messages_per_month`` all keys of one org; they are counted in the store, for all processes.  What models may use a day is `Config.budget_org` and `Config.budget_user`.  ``streams`` is how many streams of events may be open at a time.

    ``upstream_base_url`` is where chats go (``https://api.openai.com/v1``), opened by ``upstream_key``; ``None``: there
    is no such place.  ``anthropic_base_url`` and ``anthropic_key`` are the same for chats in Anthropic's protocol.  A memory that has not answered a chat after ``memory_timeout_s`` is left out of it.
    ``traced``: what `holdfast.integrations.telemetry` traces belongs to the trace that a request's headers name.
    ``threads``: how many threads of the process do background work, for ``/metrics`` to tell.
    """

    host: str = "127.0.0.1"
    port: int = 7800
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    max_body_bytes: int = 8 * 2**20
    body_timeout_s: float = 30.0
    max_upload_bytes: int = 512 * 2**20
    upload_timeout_s: float = 900.0
    header_timeout_s: float = 10.0
    max_head_bytes: int = 64 * 2**10
    stuck_timeout_s: float = 60.0
    requests_per_minute: int = 6_000
    org_requests_per_minute: int = 60_000
    messages_per_day: int | None = None
    org_messages_per_day: int | None = None
    messages_per_month: int | None = None
    org_messages_per_month: int | None = None
    streams: int = 2_000
    upstream_base_url: str | None = None
    upstream_key: str | None = field(default=None, repr=False)
    anthropic_base_url: str | None = None
    anthropic_key: str | None = field(default=None, repr=False)
    upstream_connect_s: float = 10.0
    upstream_timeout_s: float = 600.0
    upstream_connections: int = 200
    memory_timeout_s: float = 5.0
    traced: bool = False
    threads: int = 0

    @property
    def hosts(self) -> frozenset[str]:
        """The host names in use: the allowed ones, the address itself, and this machine's own when it is loopback."""
        own = LOOPBACK if self.host in LOOPBACK else {self.host}
        return frozenset(name.lower() for name in (*self.allowed_hosts, *own))

    @property
    def origins(self) -> frozenset[str]:
        """The origins in use: those that were allowed, the server's own, and its own behind a proxy that speaks TLS."""
        own = (f"http://{_bracketed(name)}:{self.port}" for name in self.hosts)
        behind = (f"https://{_bracketed(name.lower())}" for name in self.allowed_hosts)
        return frozenset((*self.allowed_origins, *own, *behind))


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


@dataclass(frozen=True, slots=True)
class Grant:
    """The names that a key allows a request to use."""

    key: ApiKey | None
    org: str
    bot: str
    user: str | None
    subject: str | None


class SignInLinks:
    """
    Tokens that sign a browser in as an operator, once each, within minutes.

    They are no API keys, and live in this process alone: a link that was used, printed or logged opens nothing.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._ends: dict[str, float] = {}

    def issue(self, lasts: timedelta) -> str:
        """Return a new token."""
        token = f"{_LINK_PREFIX}{secrets.token_urlsafe(32)}"
        with self._lock:
            self._ends[token] = self._clock() + lasts.total_seconds()
        return token

    def redeem(self, token: str) -> bool:
        """Use *token* up; whether it signs in."""
        with self._lock:
            return self._ends.pop(token, float("-inf")) > self._clock()

    @staticmethod
    def is_link(text: str) -> bool:
        """Whether *text* looks like such a token, used or not."""
        return text.startswith(_LINK_PREFIX)


@dataclass(frozen=True, slots=True)
class Limits:
    """The size and the time limit of a body."""

    most_bytes: int
    timeout_s: float


def _limits(settings: ServerSettings, *, upload: bool) -> Limits:
    if upload:
        return Limits(settings.max_upload_bytes, settings.upload_timeout_s)
    return Limits(settings.max_body_bytes, settings.body_timeout_s)


class Refused(Exception):
    """The request is refused; carries the answer."""

    def __init__(self, answer: Response) -> None:
        super().__init__(answer.status_code)
        self.answer = answer


class Gate:
    """ASGI middleware around the application."""

    def __init__(self, app: ASGIApp, *, table: RouteTable, keys: ApiKeys, settings: ServerSettings) -> None:
        self._app = app
        self._table = table
        self._keys = keys
        self._settings = settings
        self._rates = Rates(settings.requests_per_minute, time.monotonic)
        self._rates_of_strangers = Rates(settings.requests_per_minute, time.monotonic)
        self._rates_of_orgs = Rates(settings.org_requests_per_minute, time.monotonic)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = _headers(scope)
        if scope["method"] == "HEAD":
            scope.setdefault("state", {})["head"] = True
            scope = {**scope, "method": "GET"}  # the server, which keeps its own scope, leaves the body out
        send = _with_headers(send, {})
        try:
            _once(scope)
            cors = self._page(headers)
            send = _with_headers(send, cors)
            self._host(headers)
            if scope["method"] == "OPTIONS" and cors:
                raise Refused(Response(status_code=204))
            await self._pass(scope, headers)
            limits = _limits(self._settings, upload=scope["state"].get("upload", False))
            self._size(headers, limits)
            if scope["method"] == "GET" and (known := headers.get("if-none-match")):
                send = _unless_known(send, known)
        except Refused as refusal:
            await error_page(scope, refusal.answer)(scope, receive, send)
            return
        except HoldfastError as error:
            await error_page(scope, problem_of(error))(scope, receive, send)
            return
        key: ApiKey | None = scope["state"].get("key")
        with acting(key.id if key is not None else LOCAL):
            await self._app(scope, _Limited(receive, limits), send)

    def _host(self, headers: Mapping[str, str]) -> None:
        found = _HOST.fullmatch(headers.get("host", "").lower())
        if found is None or (found["name"] or found["v6"]) not in self._settings.hosts:
            hint = "the operator allows names with --allow-host"
            raise Refused(problem(421, "wrong-host", "This server does not answer to that name", hint=hint))

    def _page(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return the CORS headers for the page that asks; refuse one that is not allowed."""
        origin = headers.get("origin")
        if origin is None:
            return {}
        if origin not in self._settings.origins:
            hint = "the operator allows pages with --allow-origin"
            raise Refused(problem(403, "wrong-origin", "This page may not ask here", hint=hint))
        return {
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Allow-Headers": _CORS_HEADERS,
            "Access-Control-Allow-Methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
            "Access-Control-Expose-Headers": "ETag, Location, Retry-After, X-Memory, X-Memory-Conversation",
            "Vary": "Origin",
        }

    async def _pass(self, scope: Scope, headers: Mapping[str, str]) -> None:
        raw = scope.get("raw_path", scope["path"].encode()).split(b"?")[0].decode("ascii", "replace")
        scope["path"] = raw  # parts are decoded one by one, so that a name may hold a slash
        if scope["method"] == "OPTIONS":
            raise Refused(Response(status_code=204, headers={"Allow": self._table.allowed(raw)}))
        route, names, methods = self._table.find(scope["method"], raw)
        state = scope.setdefault("state", {})
        state["upload"] = route is not None and route.upload
        state["route"], state["group"] = ("", "") if route is None else (route.path, route.group)
        state["page"] = wants_page(scope["method"], headers) if route is None else route.page
        if state["page"]:
            speak(Request(scope))
        if route is not None and route.roles is None:
            if route.page and scope["method"] not in SAFE_METHODS and names_another_page(headers):
                raise Refused(_elsewhere())
            state["grant"] = Grant(None, "", "", None, None)
            return
        sender = (scope.get("client") or ("",))[0]
        key = await self._key(
            scope["method"], headers, sender, cookie=state["page"] or (route is not None and route.cookie)
        )
        state["key"] = key
        if route is None:
            if methods:
                allow = {"Allow": self._table.allowed(raw)}
                raise Refused(problem(405, "wrong-method", "This path has no such method", headers=allow))
            raise Refused(problem(404, "not-found", "There is no such path", hint="see /openapi.json"))
        state["grant"] = grant(key, route, names, headers, scope["query_string"])
        self._rate(key)

    async def _key(self, method: str, headers: Mapping[str, str], sender: str, *, cookie: bool) -> ApiKey:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if not scheme and "x-api-key" in headers:  # Anthropic's clients
            scheme, given = "bearer", headers["x-api-key"]
        if not scheme and cookie and (held := cookie_of(headers)):
            if not from_own_page(method, headers):
                raise Refused(_elsewhere())
            scheme, given = "bearer", held
        key = await run_in_threadpool(self._keys.check, given.strip()) if scheme.lower() in _SCHEMES else None
        if key is None:
            _check_rate(self._rates_of_strangers, sender, "without a key that is known")
            title = "A key is needed" if not given else "This key opens nothing"
            hint = "send `Authorization: Bearer hf_…`; `holdfast keys --create app` makes one"
            raise Refused(problem(401, "no-key", title, hint=hint, headers={"WWW-Authenticate": "Bearer"}))
        return key

    def _rate(self, key: ApiKey) -> None:
        _check_rate(self._rates, (key.org, key.id), "with this key")
        _check_rate(self._rates_of_orgs, key.org, "of this org")

    def _size(self, headers: Mapping[str, str], limits: Limits) -> None:
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > limits.most_bytes:
            raise Refused(too_large(limits.most_bytes))


def grant(key: ApiKey, route: Route, names: Mapping[str, str], headers: Mapping[str, str], query: bytes) -> Grant:
    """
    Return the names that *key* allows for this request.

    Raises:
        Refused: the role may not call the route, or the names are not the key's.
    """
    if route.roles is None or key.role not in route.roles:
        raise Refused(_forbidden(f"a key of the role {key.role} may not do this"))
    if len(query) > _MAX_QUERY_BYTES:
        raise Refused(problem(414, "too-large", "The query is too long"))
    asked = parse_qs(query.decode("ascii", "replace"), keep_blank_values=True)
    if route.cookie:  # a link can set no header
        headers = {**_linked(asked), **headers}
    org = _name(headers, ORG_HEADER, key.org)
    org = asked.get("org", [org])[-1] if "user" in names else org  # elsewhere it filters what all orgs hold
    if org != key.org and key.role != "operator":
        raise Refused(_forbidden("this key belongs to another org"))
    bot = asked.get("bot", [named_by_header(headers, "bot", key.bot) or "default"])[-1]
    if key.bot is not None and bot != key.bot:
        raise Refused(_forbidden("this key opens another assistant's memory"))
    user = names.get("user", named_by_header(headers, "user", key.user))
    if key.user is not None and user != key.user:
        raise Refused(_forbidden("this key opens another user's memory"))
    subject = asked.get("subject", [key.subject])[-1]
    subject = None if subject is None else subject_id(subject)
    if key.subject is not None and subject != subject_id(key.subject):
        raise Refused(_forbidden("this key opens what is held about another subject"))
    return Grant(key, org, bot, user, subject)


def _linked(asked: Mapping[str, list[str]]) -> dict[str, str]:
    """Return names from the query of a link as the headers that programs send."""
    named = ((ORG_HEADER, "org"), (USER_HEADER, "user"))
    return {header: quote(asked[name][-1], safe="") for header, name in named if name in asked}


def named_by_header(headers: Mapping[str, str], what: str, own: str | None = None) -> str | None:
    """Return the name in ``X-Holdfast-…`` or ``X-Memory-…``; *own* when there is none."""
    found: str | None = _name(headers, f"x-memory-{what}", own)
    return _name(headers, f"x-holdfast-{what}", found)  # type: ignore[no-any-return]


def too_large(most: int) -> Response:
    """Return the answer to a body of more than *most* bytes."""
    return problem(413, "too-large", f"A body may have {most:,} bytes", hint="send it in several requests")


def _check_rate(rates: Rates, sender: Hashable, described: str) -> None:
    """
    Count one request of *sender*.

    Raises:
        Refused: it was one too many.
    """
    wait_s = rates.take(sender)
    if wait_s > 0:
        headers = {"Retry-After": str(max(1, math.ceil(wait_s)))}
        raise Refused(problem(429, "too-often", f"Too many requests {described}", headers=headers))


def _elsewhere() -> Response:
    detail = "a page of another address tried to change something here"
    return problem(403, "wrong-origin", "This page may not ask here", detail, hint="open the page here and try again")


def _forbidden(detail: str) -> Response:
    return problem(403, "forbidden", "This key may not do this", detail)


def _name(headers: Mapping[str, str], header: str, own: str | None) -> Any:
    """Return the name in a header, percent-encoded as in a path, or *own* when there is none."""
    return unquote(headers[header], errors="replace") if header in headers else own


def _once(scope: Scope) -> None:
    names = Counter(name.decode("latin-1").lower() for name, _ in scope["headers"])
    twice = sorted(name for name in _ONCE & names.keys() if names[name] > 1)
    if twice:
        raise Refused(problem(400, "repeated-header", f"The header {twice[0]} may occur only once"))


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


def _with_headers(send: Send, extra: Mapping[str, str]) -> Send:
    """Add the headers of every answer: how browsers treat it, and that caches do not keep it."""
    always = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
    added = [(name.lower().encode(), value.encode()) for name, value in {**always, **extra}.items()]

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            there = {name for name, _ in message.get("headers", [])}
            fresh = [(name, value) for name, value in added if name not in there]
            message = {**message, "headers": [*message.get("headers", []), *fresh]}
        await send(message)

    return sending


def _unless_known(send: Send, if_none_match: str) -> Send:
    """Answer 304 without a body when the answer has an `ETag` that the client named."""
    known = {tag.strip().removeprefix("W/") for tag in if_none_match.split(",")}
    unchanged = False

    async def sending(message: Message) -> None:
        nonlocal unchanged
        if message["type"] == "http.response.start" and message["status"] == 200:
            headers = message.get("headers", [])
            tags = {value.decode("latin-1") for name, value in headers if name.lower() == b"etag"}
            unchanged = bool(tags) and ("*" in known or not tags.isdisjoint(known))
            if unchanged:
                kept = [(name, value) for name, value in headers if not name.lower().startswith(b"content-")]
                message = {**message, "status": 304, "headers": kept}
        elif message["type"] == "http.response.body" and unchanged:
            message = {"type": "http.response.body", "body": b"", "more_body": message.get("more_body", False)}
        await send(message)

    return sending


class _Limited:
    """A body that ends in an error when it is too long, or takes too long."""

    def __init__(self, receive: Receive, limits: Limits) -> None:
        self._receive = receive
        self._limits = limits
        self._left = limits.most_bytes
        self._until = asyncio.get_running_loop().time() + limits.timeout_s
        self._whole = False

    async def __call__(self) -> Message:
        if self._whole:
            return await self._receive()  # nothing but the end of the connection is left to hear of
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            raise HTTPException(408, f"The body took longer than {self._limits.timeout_s:g} s") from None
        if message["type"] == "http.request":
            self._left -= len(message.get("body", b""))
            self._whole = not message.get("more_body", False)
            if self._left < 0:
                raise HTTPException(413, f"A body may have {self._limits.most_bytes:,} bytes")
        return message


COOKIE = "holdfast_key"
SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))


def cookie_of(headers: Mapping[str, str]) -> str:
    """Return the key in the cookie, or an empty text."""
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


def from_own_page(method: str, headers: Mapping[str, str]) -> bool:
    """
    Whether the request comes from a page of this very server, or from the user at the browser.

    A cookie goes with every request to this address, whoever causes it.  So what changes something has to name
    this server as its origin, which no page elsewhere can do; what only reads may also be a link or a bookmark.
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    own = origin is not None and urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
    if method in SAFE_METHODS:
        read = site in (None, "none", "same-origin") or headers.get("sec-fetch-mode") == "navigate"
        return read and (origin is None or own)  # a script of another page says whose it is
    if origin is None:
        return site == "same-origin"
    return site in (None, "same-origin") and own


def names_another_page(headers: Mapping[str, str]) -> bool:
    """Whether the request says that a page elsewhere sent it; a program says nothing."""
    known = "origin" in headers or "sec-fetch-site" in headers
    return known and not from_own_page("POST", headers)


def wants_page(method: str, headers: Mapping[str, str]) -> bool:
    """Whether a browser opens an address, so that even an error is answered as a page."""
    return method == "GET" and "text/html" in headers.get("accept", "") and "authorization" not in headers


_MOST_KEYS = 10_000


class Rates:
    """
    At most *per_minute* requests a key in any minute, in bursts of a tenth of that.

    In the memory of one process; the least recently used keys are let go, and start anew with a full bucket.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float]) -> None:
        self._per_s = per_minute / 60
        self._burst = max(1.0, per_minute / 10)
        self._clock = clock
        self._buckets: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def take(self, key: Hashable) -> float:
        """Return 0 when the request may pass, else the seconds to wait."""
        now = self._clock()
        left, at = self._buckets.pop(key, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._per_s)
        passes = left >= 1
        self._buckets[key] = (left - 1 if passes else left, now)
        if len(self._buckets) > _MOST_KEYS:
            self._buckets.popitem(last=False)
        return 0.0 if passes else (1 - left) / self._per_s


class Quotas:
    """The limits of *settings*, counted in the store; where none is set nothing is counted."""

    def __init__(self, keys: ApiKeys, settings: ServerSettings) -> None:
        self._keys = keys
        self.limits = {
            "day": settings.messages_per_day,
            "month": settings.messages_per_month,
            "org_day": settings.org_messages_per_day,
            "org_month": settings.org_messages_per_month,
        }

    def take(self, key: ApiKey | None, messages: int) -> int:
        """Count, and return 0 if there is room; else the seconds until there is."""
        return 0 if key is None else self._keys.count_messages(key, messages, **self.limits)

    def give_back(self, key: ApiKey | None, messages: int) -> None:
        """Uncount messages that were not stored."""
        self.take(key, -messages)

    def is_short(self, key: ApiKey | None, messages: int) -> bool:
        """Whether there is no room for so many messages now."""
        if self.take(key, messages):
            return True
        self.give_back(key, messages)
        return False

    @contextmanager
    def counting(self, key: ApiKey | None, messages: int) -> Iterator[int]:
        """Count messages while they are stored, and uncount them when that fails for any reason; yields what `take` returns."""
        wait_s = self.take(key, messages)
        done = False
        try:
            yield wait_s
            done = True
        finally:
            if not done and not wait_s:
                self.give_back(key, messages)


def count_messages(export: Mapping[str, Any]) -> int:
    """Count the messages of an export; 0 for what is none, which is refused later."""
    talks = export.get("conversations")
    found = (talk.get("messages") for talk in talks if isinstance(talk, dict)) if isinstance(talks, list) else ()
    return sum(len(messages) for messages in found if isinstance(messages, list))


def quota_exceeded(wait_s: int) -> Response:
    """Return the answer to messages beyond a quota."""
    when = "today" if wait_s <= 86_401 else "this month"
    hint = "the operator says how many a key and an org may store a day and a month"
    return problem(429, "quota", f"No more messages {when}", hint=hint, headers={"Retry-After": str(wait_s)})
