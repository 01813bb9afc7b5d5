"""
The part of the waist that has to do with keys of providers: sealed rows, which nothing here can open.

`holdfast.store.access` takes it up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class SealedRow:
    """One key of a provider as it is stored; ``user`` is ``""`` for an org's own, ``set_at`` in milliseconds UTC."""

    org: str
    user: str
    id: str
    provider: str
    model: str
    base_url: str
    master: str
    sealed: str
    print: str
    set_at: int

    @property
    def bound(self) -> tuple[str, ...]:
        """What its seal covers: where it is moved or changed, it does not open."""
        return (self.org, self.user, self.id, self.provider, self.base_url)


class SealedLooks(Protocol):
    """What a `Store` keeps of keys of providers."""

    def provider_keys(self, org: str, user: str) -> list[SealedRow]:
        """Those of one user, or with ``""`` of the org itself; the one that was set last comes first."""

    def any_provider_key(self) -> bool:
        """Whether anybody at all brought one."""

    def sealed_otherwise(self, master: str, *, limit: int = 100) -> list[SealedRow]:
        """Keys of anybody that another master key sealed, by key of the row."""

    def save_provider_key(self, row: SealedRow) -> None:
        """Insert a key, or replace it, in place of others that its owner has for the same provider."""

    def remove_provider_key(self, org: str, user: str, key_id: str) -> bool:
        """Delete a key; ``False`` when there is none of that id."""

    def reseal_provider_key(self, row: SealedRow, was: str) -> bool:
        """Put the new seal in place of the one that *was* there; ``False`` when that is gone."""
