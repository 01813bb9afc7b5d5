"""Long work that was ordered, on record for every process, in terms of named queries."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TypeVar

from ..figures import Operation
from ..reports import UserKey
from .readview import Driver
from .rows import Row, compact_json
from .told import Told

T = TypeVar("T")

_KINDS = {"ready": "job.queued", "running": "job.progress", "done": "job.done", "failed": "job.failed",
          "cancelled": "job.cancelled", "interrupted": "job.failed"}  # fmt: skip


class SqlOrders(ABC):
    """See `holdfast.store.work.OrderLooks`."""

    @abstractmethod
    def _reading(self, work: Callable[[Driver], T]) -> T:
        """Run *work* over one snapshot."""

    @abstractmethod
    def _telling(self, work: Callable[[Driver, Told], T], whose: Callable[[T], UserKey | None]) -> T:
        """Run *work* in one transaction, together with the rows that tell what it did."""

    def add_order(self, order: Operation, *, ended_before_ms: int) -> Operation:
        """See the protocol."""

        def add(driver: Driver, told: Told) -> Operation:
            if order.once:
                there = [_order(row) for row in driver.run("task_once", _key(order) | {"once": order.once})]
                if there and there[0].state != "interrupted":
                    return there[0]
            driver.run("remove_old_tasks", {"org": order.org, "before": ended_before_ms})
            driver.run("add_task", _columns(order))
            _tell(told, order)
            return order

        return self._telling(add, lambda found: _user(found))

    def save_order(self, order: Operation) -> bool | None:
        """See the protocol."""

        def save(driver: Driver, told: Told) -> bool | None:
            found = driver.run("save_task", _columns(order))
            if not found:
                return None
            _tell(told, order)
            return bool(found[0][0])

        return self._telling(save, lambda _: _user(order))

    def order(self, order_id: str) -> Operation | None:
        """See the protocol."""
        found = self._reading(lambda driver: driver.run("task", {"id": order_id}))
        return _order(found[0]) if found else None

    def orders(self, *, limit: int, of: UserKey | None = None) -> list[Operation]:
        """See the protocol."""
        name = "tasks_newest" if of is None else "tasks_of"
        key = {} if of is None else dict(zip(("org", "user_id", "bot"), of, strict=True))
        return [_order(row) for row in self._reading(lambda driver: driver.run(name, {"limit": max(0, limit), **key}))]

    def stop_order(self, order_id: str) -> bool:
        """See the protocol."""
        order = self.order(order_id)
        if order is None:
            return False
        args = _key(order) | {"id": order_id}
        return self._telling(lambda driver, _: bool(driver.run("stop_task", args)), lambda _: None)


def _key(order: Operation) -> dict[str, Any]:
    return {"org": order.org, "user_id": order.user, "bot": order.bot}


def _user(order: Operation) -> UserKey | None:
    """To whom it is told; what concerns everybody is told to nobody by name."""
    return (order.org, order.user, order.bot) if order.user else None


def _tell(told: Told, order: Operation) -> None:
    if order.user:
        told.note(_KINDS[order.state], (order.subject, order.conversation), order.id)


def _columns(order: Operation) -> dict[str, Any]:
    columns = asdict(order) | {"stop": int(order.stop)}
    columns["report"] = "" if order.report is None else compact_json(order.report)
    names = {"user": "user_id", "created_ms": "created", "seen_ms": "seen", "ended_ms": "ended"}
    return {names.get(name, name): value for name, value in columns.items()}


def _order(row: Row) -> Operation:
    report = json.loads(row[12]) if row[12] else None
    values: tuple[Any, ...] = (*row[:12], report, *row[13:15], bool(row[15]), *row[16:])
    return Operation(*values)
