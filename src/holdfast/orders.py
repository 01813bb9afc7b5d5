"""The door to long work that requests ordered: what stands on record of it, for every process of a service."""

from __future__ import annotations

from .figures import Order
from .pipeline import Pipeline
from .reports import UserKey

_KEPT_MS = 7 * 86_400_000  # how long what is over stays on record


class Orders:
    """
    Long work on record; made by `Memory.orders`.

    Whoever works on an order saves it every few seconds, so that others see how far it is, and that it goes on.  A row
    holds figures, ids and states, never a word that anybody said, and goes when its user is erased.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._store = pipeline.store

    def add(self, order: Order) -> Order:
        """Put an order on record, or return the one that stands under the same ``once`` and was not interrupted."""
        return self._store.add_order(order, ended_before_ms=order.created_ms - _KEPT_MS)

    def save(self, order: Order) -> bool | None:
        """Note how far it is; whether somebody wants it to end, or ``None`` when it is on record no more."""
        return self._store.save_order(order)

    def get(self, order_id: str) -> Order | None:
        """The order of that id."""
        return self._store.order(order_id)

    def newest(self, limit: int = 20, *, of: UserKey | None = None) -> list[Order]:
        """At most *limit* orders, the newest first: of one user (org, user, bot), or of all."""
        return self._store.orders(limit=limit, of=of)

    def stop(self, order_id: str) -> bool:
        """Have whoever works on it end before the next part; ``False`` when it is over or there is none."""
        return self._store.stop_order(order_id)
