"""The part of the store's protocol that is about making derived rows again."""

from __future__ import annotations

from typing import Protocol

from .values import RebuiltRow, SummaryRow


class RemadeReads(Protocol):
    """What of a conversation was made again."""

    def rebuilt(self) -> list[RebuiltRow]:
        """The ranges of the scope's conversation that were made again, oldest first."""


class RemadeWrites(Protocol):
    """Putting one version of a derived row in the place of another."""

    def rewrite_summary(self, row: SummaryRow) -> None:
        """
        Write an existing summary's ``live``, ``stale``, ``parent`` and document.

        Level 1 that goes live covers its range; one that stops being live leaves it.
        """

    def add_rebuilt(self, row: RebuiltRow) -> None:
        """Note that a range of the scope's conversation was made again."""
