"""
Whether a model may be asked now: the budgets of the day, and how long it asked to be left alone.

A job that may not ask waits: its attempts are not counted, and its reason says for what and until when.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable

from ..clock import DAY_MS, from_ms
from ..config import Config
from ..llm.protocol import ModelError
from ..scope import Scope
from ..store import Store, UsageRow
from ..types import Budget

NANO = 10**9
# So long totals across users are taken from memory; what other processes use meanwhile is seen later.
TOTALS_SECONDS = 10.0
# So long nobody is asked after a fault that only a user can mend, unless the memory is opened anew.
SETUP_WAIT_MS = 15 * 60_000
MOST_WAIT_MS = 10 * 60_000


class NotNow(ModelError):
    """A model may not be asked before ``until_ms``; nothing was sent."""

    code = "waiting"

    def __init__(self, message: str, until_ms: int, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.until_ms = until_ms


class Gate:
    """One per memory; safe to use from any thread."""

    def __init__(self, store: Store, config: Config, model: str) -> None:
        self._store, self._config, self._model = store, config, model
        self._lock = threading.Lock()
        self._day, self._read_at = "", 0.0
        self._totals: dict[str, UsageRow] = {}
        self._closed_until_ms, self._closed_because = 0, ""

    def check(self, scope: Scope, now_ms: int) -> None:
        """
        Raises:
            NotNow: a budget is spent, or the model asked to be left alone.
        """
        if now_ms < self._closed_until_ms:
            raise NotNow(self._closed_because, self._closed_until_ms, hint="or when the memory is opened anew")
        day = day_of(now_ms)
        for whose, budget, rows in self._budgets(scope, day):
            said = overspent(budget, rows)
            if said:
                until_ms = (now_ms // DAY_MS + 1) * DAY_MS
                raise NotNow(f"budget of {whose}: {said}", until_ms, hint="or raise it and open the memory anew")

    def failed(self, error: ModelError, now_ms: int) -> None:
        """Close the gate for as long as the provider asked, or until somebody may have mended the fault."""
        wait_ms = SETUP_WAIT_MS if error.setup else min(MOST_WAIT_MS, int(1000 * (error.retry_after_s or 0)))
        if wait_ms:
            with self._lock:
                self._closed_until_ms = now_ms + wait_ms
                self._closed_because = str(error) if error.setup else error.message

    def used(self, scope: Scope, row: UsageRow) -> None:
        """Count what was just put on record."""
        with self._lock:
            if row.day == self._day:
                self._totals[scope.org] = self._totals.get(scope.org, UsageRow(row.day, "", "")) + row

    def _budgets(self, scope: Scope, day: str) -> Iterable[tuple[str, Budget, Iterable[UsageRow]]]:
        config = self._config
        if config.budget is not None:
            yield "the memory", config.budget, self._of_the_day(day).values()
        if config.budget_org is not None:
            row = self._of_the_day(day).get(scope.org)
            yield f"org {scope.org!r}", config.budget_org, [row] if row else []
        if config.budget_user is not None:
            yield "this user", config.budget_user, self._store.read(scope, lambda view: view.usage(since=day))

    def _of_the_day(self, day: str) -> dict[str, UsageRow]:
        with self._lock:
            if day == self._day and time.monotonic() - self._read_at < TOTALS_SECONDS:
                return dict(self._totals)
        found = {org: row for (org, _, _), row in self._store.usage(["org"], since=day, until=day)}
        with self._lock:
            self._day, self._read_at, self._totals = day, time.monotonic(), found
            return dict(found)


def day_of(now_ms: int) -> str:
    """The day in UTC, as ``2026-11-21``."""
    return from_ms(now_ms).date().isoformat()


def overspent(budget: Budget, rows: Iterable[UsageRow]) -> str:
    """Words for what is used up; empty while there is something left."""
    rows = list(rows)
    tokens = sum(row.input_tokens + row.output_tokens for row in rows)
    cost = sum(row.cost for row in rows) / NANO
    if budget.tokens_per_day is not None and tokens >= budget.tokens_per_day:
        return f"{tokens:,} of {budget.tokens_per_day:,} tokens are used today"
    if budget.usd_per_day is not None and cost >= budget.usd_per_day:
        return f"{cost:.2f} of {budget.usd_per_day:.2f} dollars are used today"
    return ""
