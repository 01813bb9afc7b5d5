"""How much was stored, counted for all processes, in terms of named queries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TypeVar

from .readview import Driver

T = TypeVar("T")


class _TooMuch(Exception):
    """Ends the transaction, so that nothing of it is counted."""


class SqlSpend(ABC):
    """See `holdfast.store.access.SpendLooks`."""

    @abstractmethod
    def _reading(self, work: Callable[[Driver], T]) -> T:
        """Run *work* over one snapshot."""

    @abstractmethod
    def _writing(self, work: Callable[[Driver], T]) -> T:
        """Run *work* in one transaction; durable when this returns."""

    def spend(
        self, org: str, limits: Mapping[tuple[str, str], int | None], messages: int, *, before: str
    ) -> tuple[str, str] | None:
        """See the protocol."""
        passed: list[tuple[str, str]] = []

        def work(driver: Driver) -> None:
            for key_id, period in sorted(limits):  # everybody takes them in this order, so nobody waits in a circle
                row = {"org": org, "key_id": key_id, "period": period, "messages": messages}
                ((now,),) = driver.run("spend", row)
                most = limits[key_id, period]
                if most is not None and messages > 0 and now > most:
                    passed[:] = [(key_id, period)]
                    raise _TooMuch
                if now == messages:  # the first of its period
                    driver.run("remove_old_allowances", {"org": org, "before": before})

        try:
            self._writing(work)
        except _TooMuch:
            return passed[0]
        return None

    def spent(self, org: str) -> list[tuple[str, str, int]]:
        """See the protocol."""
        found = self._reading(lambda driver: driver.run("allowances", {"org": org}))
        return [(key_id, period, int(messages)) for key_id, period, messages in found]
