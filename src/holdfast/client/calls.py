"""One request as a value: what it asks, for which user or conversation, and what comes back."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any, Generic, TypeAlias, TypeVar
from urllib.parse import quote

from ..clock import to_ms
from ..errors import BadInput
from ..reports import BackfillReport
from ..scope import checked_name

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
