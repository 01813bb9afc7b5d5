"""
The part of the waist that has to do with keys: who may ask over the network, and sealed keys of providers.

`holdfast.store.protocol` takes it up into `Store`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from .vault import SealedLooks


@dataclass(frozen=True, slots=True)
class KeyRow:
    """One key as it is stored: times in milliseconds UTC, ``None`` where there is none; names ``""``."""

    org: str
    id: str
    digest: str
    role: str
    user: str
    bot: str
    subject: str
    label: str
    created: int
    expires: int | None = None
    revoked: int | None = None
    parent: str = ""


class SpendLooks(Protocol):
    """What a `Store` keeps of how much was stored, for all processes together."""

    def spend(
        self, org: str, limits: Mapping[tuple[str, str], int | None], messages: int, *, before: str
    ) -> tuple[str, str] | None:
        """
        Count so many messages, all of them or none.

        Args:
            org: whose they are.
            limits: the most for each (key id, period); an empty id stands for all keys, ``None`` for no limit.
            messages: how many; a negative number gives back.
            before: counts of periods before this one are let go.

        Returns:
            The first (key id, period) whose limit they would pass: then nothing is counted.
        """

    def spent(self, org: str) -> list[tuple[str, str, int]]:
        """(key id, period, messages) of an org, by period."""


class KeyLooks(SealedLooks, SpendLooks, Protocol):
    """What a `Store` keeps of keys."""

    def key(self, key_id: str) -> KeyRow | None:
        """The key of that id, whatever its state."""

    def keys(self, org: str | None = None) -> list[KeyRow]:
        """All keys of an org, or of all, oldest first."""

    def add_key(self, row: KeyRow, *, spent_before_ms: int) -> None:
        """Insert a key, and delete those of its org that expired before *spent_before_ms*."""

    def revoke_key(self, org: str, key_id: str, now_ms: int) -> bool:
        """End a key, and those that were made from it; ``False`` when the org has none of that id that still stands."""
