"""
The part of the waist that has to do with work: what is to be done and how often models are asked, across people, and what
was ordered.

`holdfast.store.protocol` takes it up into its `Store`.
"""

from __future__ import annotations

from typing import Protocol

from ..figures import Backlog, Order
from ..reports import PersonKey
from .values import PaceRow


class OrderLooks(Protocol):
    """What a `Store` keeps of long work that was ordered."""

    def add_order(self, order: Order, *, ended_before_ms: int) -> Order:
        """
        Insert an order, or return the one that stands under the same ``once``, unless that was interrupted.

        Those of its org that ended before *ended_before_ms* are let go.
        """

    def save_order(self, order: Order) -> bool | None:
        """What has become of it; whether somebody wants it to end, ``None`` when its row is gone."""

    def order(self, order_id: str) -> Order | None:
        """The order of that id."""

    def orders(self, *, limit: int, of: PersonKey | None = None) -> list[Order]:
        """The newest first, of one person's or of all."""

    def stop_order(self, order_id: str) -> bool:
        """Have it end before its next part; ``False`` when it is over or there is none."""


class WorkLooks(OrderLooks, Protocol):
    """What a `Store` tells of the work of all people together."""

    def backlog(self, now_ms: int) -> tuple[Backlog, ...]:
        """Jobs that are not finished, counted by kind and state."""

    def pace(self, pace_id: str) -> PaceRow:
        """How often a provider's key is used; version 0 when nobody has used it."""

    def keep_pace(self, row: PaceRow, *, idle_before: int) -> bool:
        """
        Write what follows from the row whose version is one less; ``False`` when somebody else has changed it since.

        The first row of a key takes those away that were not used after *idle_before* (microseconds).
        """
