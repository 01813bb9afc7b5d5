"""
The part of the waist that counts what is to be done, across people; it names nobody.

`holdfast.store.protocol` takes it up into its `Store`.
"""

from __future__ import annotations

from typing import Protocol

from ..figures import Backlog


class WorkLooks(Protocol):
    """What a `Store` tells of the work of all people together."""

    def backlog(self, now_ms: int) -> tuple[Backlog, ...]:
        """Jobs that are not finished, counted by kind and state."""
