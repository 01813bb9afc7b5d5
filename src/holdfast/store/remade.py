"""The part of the store's protocol that is about making derived rows again."""

from __future__ import annotations

from typing import Protocol

from .values import RebuiltRow, SummaryRow


class RemadeReads(Protocol):
    """What of a conversation was read by whom, and what was made again."""

    def readings(self) -> list[tuple[str, int, int]]:
        """``(model, start_seq, end_seq)``: who has read which messages of the scope's conversation for facts."""

    def rebuilt(self) -> list[RebuiltRow]:
        """The ranges of the scope's conversation that were made again, oldest first."""


class RemadeWrites(Protocol):
    """Putting one version of a derived row in the place of another."""

    def rewrite_summary(self, row: SummaryRow) -> None:
        """
        Write an existing summary's ``live``, ``stale``, ``parent`` and document.

        Level 1 that goes live covers its range; one that stops being live leaves it.
        """

    def add_reading(self, model: str, start_seq: int, end_seq: int) -> None:
        """Note that a model read a range for facts; what joins an earlier one becomes one with it."""

    def add_rebuilt(self, row: RebuiltRow) -> None:
        """Note that a range of the scope's conversation was made again."""
