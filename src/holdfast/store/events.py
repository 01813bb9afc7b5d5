"""
The part of the waist that tells what happened.

`holdfast.store.protocol` takes it up.  Rows are written by the store itself, in the transaction that changes
something; nobody else writes any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..reports import Event, News, UserKey


@dataclass(frozen=True, slots=True)
class Kept:
    """How much of what happened stays on record: so many rows a user, for so many days."""

    rows: int = 10_000
    days: int = 90


class EventReads(Protocol):
    """What a `ReadView` tells."""

    def news(self, after: int, *, limit: int) -> News:
        """What happened to the user after number *after*, in all places; 0: from the first row that is kept."""

    def events_before(self, before: int | None, *, limit: int) -> list[Event]:
        """The newest events below a number, or of all, newest first."""


class EventWrites(EventReads, Protocol):
    """What a `WriteView` takes."""

    def forget_subject(self) -> None:
        """Take the name of the scope's subject out of what happened; the numbers stay."""


class EventLooks(Protocol):
    """
    What a `Store` tells across users.

    ``counting`` hears after each transaction of this process what it changed: how many, by (what, of which kind).
    """

    counting: Callable[[Counter[tuple[str, str]]], None] | None

    def size_bytes(self) -> int:
        """How large the store is."""

    def changes(self) -> int:
        """
        Another number whenever somebody has committed since the last call, in whatever process.

        It may be another one without cause; then somebody looks in vain.
        """

    def news(self, heads: Mapping[UserKey, int], *, limit: int) -> dict[UserKey, News]:
        """For many users at once: what happened after the given number, of those whose newest is another."""

    def events_of_org(self, org: str, before: int | None, *, limit: int) -> Sequence[Event]:
        """What happened to an org as a whole, newest first: keys, and that somebody was erased."""
