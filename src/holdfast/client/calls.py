"""
One request as a value: what it asks, for which user or conversation, and the values and errors that come back.

    HoldfastError
    ├── NotAllowed      the key opens nothing, or not this
    ├── TooOften        the key asked more often than it may
    └── Unreachable     no answer came: no server listens, the connection broke, it took too long

Every other problem is the error that the library raises for it.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import secrets
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
from datetime import date, datetime
from functools import cache
from typing import Any, Generic, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints
from urllib.parse import quote

from .. import errors
from ..clock import to_ms
from ..errors import BadInput, HoldfastError
from ..llm import protocol as models
from ..reports import BackfillReport
from ..scope import checked_name
from ..text import dataclass
from ..types import Message

T = TypeVar("T")
RAW: TypeAlias = dict[str, Any]
OWN = "default"
"""An org or bot of this name means that of the key, so it is not sent."""


def part(name: str) -> str:
    """Encode *name* as one part of a path, or a header; dots alone would mean "here" and "above"."""
    return quote(name, safe="") if name.strip(".") else "%2E" * len(name)


def cursor_of(position: str | Sequence[str | int | datetime] | None) -> str | None:
    """Return the server's cursor for the position of the last item of a page."""
    if position is None:
        return None
    parts = [position] if isinstance(position, str) else position
    key = json.dumps([to_ms(each) if isinstance(each, datetime) else each for each in parts])
    return base64.urlsafe_b64encode(key.encode()).decode().rstrip("=")


@dataclass(frozen=True, slots=True)
class UserScope:
    """The user, and the org, bot and subject, that a call is about."""

    org: str = OWN
    bot: str = OWN
    user: str = ""
    subject: str | None = None

    @property
    def path(self) -> str:
        """The path of everything about the user."""
        return f"/v1/users/{part(self.user)}"

    def call(self, method: str, below: str, returns: type[T], **more: Any) -> Call[T]:
        """Return a call *below* that path."""
        query = dict(more.pop("query", {}))
        if self.bot != OWN:
            query["bot"] = self.bot
        if self.subject is not None:
            query["subject"] = self.subject
        return Call(method, self.path + below, returns, query=query, org=self.org, **more)


@dataclass(frozen=True, slots=True)
class ConversationScope:
    """One conversation *of* a user."""

    of: UserScope
    id: str
    incognito: bool = False
    own_facts: bool | None = None
    strategy: str | None = None

    def call(self, method: str, below: str, returns: type[T], **more: Any) -> Call[T]:
        """Return a call *below* the path of the conversation."""
        if self.incognito:
            more["query"] = {**more.get("query", {}), "incognito": True}
        if self.own_facts is not None:
            more["query"] = {**more.get("query", {}), "own_facts": self.own_facts}
        if self.strategy is not None:
            more["query"] = {**more.get("query", {}), "strategy": self.strategy}
        return self.of.call(method, f"/conversations/{part(self.id)}{below}", returns, **more)


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """
    One request.

    ``returns`` is the type of the answer.  ``once`` is an idempotency key.  ``match``: only while it has
    one of these versions.
    ``again``: it may be sent again when its answer was lost.  ``key`` goes before the client's own.  ``wait_s`` is how long
    the server takes at most on purpose.
    """

    method: str
    path: str
    returns: type[T]
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    org: str = OWN
    once: str | None = None
    match: Sequence[str | int] = ()
    again: bool = False
    key: str | None = None
    wait_s: float = 0.0

    def with_query(self, **query: Any) -> Call[T]:
        """Return the same call with more in its query."""
        return replace(self, query={**self.query, **query})

    @property
    def target(self) -> str:
        """Path and query."""
        pairs = []
        for name, value in self.query.items():
            for item in value if isinstance(value, list | tuple) else [value]:
                if item is not None:
                    pairs.append(f"{name}={quote(_written(item), safe='')}")
        return self.path + ("?" + "&".join(pairs) if pairs else "")

    @property
    def headers(self) -> dict[str, str]:
        """The headers besides the key."""
        found = {}
        if self.org != OWN:
            found["X-Holdfast-Org"] = part(self.org)
        if self.once is not None:
            found["Idempotency-Key"] = self.once
        if self.match:
            found["If-Match"] = ", ".join(f'"{version}"' for version in self.match)
        return found

    @property
    def repeatable(self) -> bool:
        """Whether doing it twice is doing it once."""
        return not self.match and (self.again or self.once is not None or self.method in ("GET", "PUT"))


def versions(if_version: str | int | Collection[str] | Collection[int] | None) -> Sequence[str | int]:
    """Return the versions that a change is meant for; none when it is meant for any."""
    if if_version is None:
        return ()
    found = [if_version] if isinstance(if_version, str | int) else [*if_version]
    return found or [""]  # an empty list matches nothing


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, date) else str(value)


def user_scope(org: str, bot: str, user: str, subject: str | None) -> UserScope:
    """
    Check the names of a scope.

    Raises:
        BadInput: one of them is empty, too long, or holds control characters.
    """
    return UserScope(
        org=checked_name("org", org),
        bot=checked_name("bot", bot),
        user=checked_name("user", user),
        subject=None if subject is None else checked_name("subject", subject),
    )


def idempotency_key_of(key: str | None) -> str:
    """
    Return the caller's key, which has to pass through a header, or a new one.

    Raises:
        BadInput: it cannot.
    """
    if key is None:
        return secrets.token_hex(12)
    if not checked_name("idempotency_key", key).isascii() or key != key.strip():
        raise BadInput("an idempotency_key that is sent may hold ASCII only", hint="a UUID, for example")
    return key


def processed(progress: Callable[[BackfillReport], None]) -> Callable[[int, int], None]:
    """Call *progress* with a report of how many ranges were processed."""
    return lambda done, _total: progress(BackfillReport(processed=done))


def value_of(kind: Any, data: Any) -> Any:
    """
    Return *data* as a value of the type *kind*.

    Fields that this version does not know are passed over; those that are missing have their defaults.
    """
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _one_of(inside, data)
    if kind is Any or origin is Literal or data is None:
        return data
    if origin in (list, tuple):
        items = [value_of(inside[0], item) for item in data]
        return items if origin is list else tuple(items)
    if origin is not None and issubclass(origin, Mapping):
        return {name: value_of(inside[1], item) for name, item in data.items()}
    if kind is datetime:
        return datetime.fromisoformat(data)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        known = _fields(kind)
        return kind(**{name: value_of(known[name], item) for name, item in data.items() if name in known})
    return data


def _one_of(kinds: tuple[Any, ...], data: Any) -> Any:
    """Return the value of the union's dataclass whose fields the data have, or of its only type beside None."""
    if data is None:
        return None
    some = [kind for kind in kinds if kind is not type(None)]
    if len(some) > 1 and isinstance(data, dict):
        some.sort(key=lambda kind: -len(_fields(kind).keys() & data.keys()))
    return value_of(some[0], data)


@cache
def _fields(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def plain(value: Any) -> Any:
    """Return *value* as JSON can hold it."""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def message_body(message: Message, *, dated: bool) -> dict[str, Any]:
    """Return a message as it is sent; its time only where the caller gave one."""
    body: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.name is not None:
        body["name"] = message.name
    if dated:
        body["at"] = plain(message.at)
    if message.meta:
        body["meta"] = dict(message.meta)
    return body


def refuse_function(name: str, given: object) -> None:
    """
    Refuse a function, which cannot be sent.

    Raises:
        BadInput: there is one.
    """
    if given is not None:
        raise BadInput(f"{name} cannot be sent to a server", hint="leave it out; the server counts by its estimate")


class NotAllowed(HoldfastError):
    """The key opens nothing, or not this; ``code`` says which: ``no-key``, ``forbidden``, ``wrong-host``…"""

    code = "forbidden"


class TooOften(HoldfastError):
    """The key asked more often than it may, or its quota is spent."""

    code = "too-often"


class Unreachable(HoldfastError):
    """
    No answer came: the server does not listen, the connection broke, or it took too long.

    A call that changes something may have been done nevertheless; with an idempotency key it can be repeated.
    """

    code = "unreachable"


_CLASSES: dict[str, type[HoldfastError]] = {
    found.code: found
    for home in (errors, models)
    for found in vars(home).values()
    if isinstance(found, type) and issubclass(found, HoldfastError)
}


def of_problem(status: int, body: bytes) -> HoldfastError:
    """Return the error for an answer of *status*."""
    problem = _parse_problem(body)
    title = str(problem.get("title") or f"the server answered {status}")
    code, message = str(problem.get("code") or "http"), str(problem.get("detail") or title)
    error = of_code(code, message, str(problem.get("hint") or ""), status=status)
    if isinstance(error, NotAllowed) and problem.get("detail"):
        error.message = f"{title}: {message}"
    return error


def of_code(code: str, message: str, hint: str = "", *, status: int = 500) -> HoldfastError:
    """Return the error for a code; the root class where it is one of the server's own."""
    kind = _CLASSES.get(code)
    if kind is None:
        kind = NotAllowed if status in (401, 403, 421) else TooOften if status == 429 else HoldfastError
    error = kind(message, hint=hint)
    error.code = code
    return error


def _parse_problem(body: bytes) -> dict[str, Any]:
    try:
        problem = json.loads(body)
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}
