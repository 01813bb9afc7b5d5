"""
The part of the waist that remembers what was erased, without remembering it.

`holdfast.store.protocol` takes it up into `Store` and its views.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..scope import Scope
from .values import ConsentRow


@dataclass(frozen=True, slots=True)
class ErasedRow:
    """
    One thing that was erased.

    ``place`` is a digest of who and which conversation it was, ``kind`` says what went: ``user``, ``subject``,
    ``conversation``; in a conversation ``message`` number ``seq``, or the ``words`` between the offsets
    ``spans`` of it; of a user the ``fact`` of that id.
    """

    id: str
    place: str
    kind: str
    at: int
    seq: int = 0
    fact: str = ""
    spans: tuple[tuple[int, int], ...] = ()


class LedgerWrites(Protocol):
    """What a `WriteView` takes."""

    def ledger_key(self) -> str:
        """The key under which places are digested, 64 hexadecimal digits; made when there is none yet."""

    def add_erased(self, rows: Sequence[ErasedRow]) -> None:
        """Note what the transaction erases; a row whose id is there already is passed over."""


class LedgerLooks(Protocol):
    """What a `Store` tells across users."""

    def ledger(self) -> tuple[str, list[ErasedRow]]:
        """The key (``""``: nothing was ever erased) and all that was erased, oldest first."""

    def take_ledger(self, key: str, rows: Sequence[ErasedRow]) -> None:
        """Take over the ledger of another copy of this store, its key too when there is none here."""

    def choices(self) -> list[tuple[Scope, ConsentRow]]:
        """What everybody chose about memory, by user."""
