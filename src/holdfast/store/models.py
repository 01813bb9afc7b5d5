"""
The part of the waist that has to do with models: what they cost, and in whose words they are instructed.

`holdfast.store.protocol` takes it up into its views.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from ..types import Job
from .values import PromptRow, ShownRow, UsageRow


class ModelReads(Protocol):
    """What a `ReadView` tells."""

    def usage(self, since: str = "") -> list[UsageRow]:
        """What models cost for the user, from the day *since* (``2026-11-21``), by (day, layer, model)."""

    def jobs(self) -> list[Job]:
        """The user's background work that is not finished, oldest first."""

    def prompts(self) -> list[PromptRow]:
        """Every version of the user's own prompts, by (name, version)."""

    def shown(self) -> list[ShownRow]:
        """What the contexts before the replies of the scope's conversation came to, by reply."""


class ModelWrites(ModelReads, Protocol):
    """What a `WriteView` takes."""

    def add_usage(self, row: UsageRow) -> None:
        """Add counters to those of the same day, layer and model."""

    def remove_usage(self, before: str) -> None:
        """Delete the counters of the days before *before*."""

    def add_prompt(self, row: PromptRow) -> None:
        """Insert a version of a prompt."""

    def remove_prompts(self, name: str, version: int) -> None:
        """Delete the versions of one prompt up to *version*."""

    def add_shown(self, row: ShownRow) -> None:
        """Insert what the context before a reply of the scope's conversation came to."""


class ModelLooks(Protocol):
    """What a `Store` tells across users."""

    def usage(
        self,
        by: Collection[str],
        *,
        since: str = "",
        until: str = "9999",
        org: str | None = None,
        user: str | None = None,
        bot: str | None = None,
    ) -> list[tuple[tuple[str, str, str], UsageRow]]:
        """
        ``((org, user, bot), counters)``, summed over what *by* does not name, and that is ``""`` then.

        *by* names any of org, user, bot, day, layer, model.
        """

    def hurry(self, job_id: str, now_ms: int) -> bool:
        """Make a job that is ready due at once; ``False`` when there is none."""

    def release(self, now_ms: int, *, limit: int = 10_000) -> int:
        """Make jobs due whose reason begins with ``waiting:``, so many at most; how many there were."""
