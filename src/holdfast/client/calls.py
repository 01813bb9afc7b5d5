"""One request as a value: what is asked, for whom, and what comes back."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, Generic, TypeAlias, TypeVar
from urllib.parse import quote

T = TypeVar("T")
RAW: TypeAlias = dict[str, Any]
OWN = "default"
"""An org or bot of this name stands for the key's own, so it is not sent."""


def part(name: str) -> str:
    """*name* as one part of a path, or a header; dots alone would be read as "here" and "above"."""
    return quote(name, safe="") if name.strip(".") else "%2E" * len(name)


@dataclass(frozen=True, slots=True)
class Whose:
    """Whose memory a call is about."""

    org: str = OWN
    bot: str = OWN
    user: str = ""
    subject: str | None = None

    @property
    def path(self) -> str:
        """Where everything about the user stands."""
        return f"/v1/users/{part(self.user)}"

    def order(self, method: str, below: str, **more: Any) -> Call[RAW]:
        """A call below that path whose answer is read as it is, or not at all."""
        return self.call(method, below, RAW, **more)

    def call(self, method: str, below: str, returns: type[T], **more: Any) -> Call[T]:
        """A call below that path."""
        query = dict(more.pop("query", {}))
        if self.bot != OWN:
            query["bot"] = self.bot
        if self.subject is not None:
            query["subject"] = self.subject
        return Call(method, self.path + below, returns, query=query, org=self.org, **more)


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

    def asking(self, **query: Any) -> Call[T]:
        """The same with more in its query."""
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
        """What it needs besides the key."""
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
