"""
How often one key of a provider may be asked, by all processes that share a store.

Requests and tokens each run along a line of time: every one takes its share of a minute, and the line may be ahead of the
clock by a tenth of a minute's worth (the generic cell rate algorithm).  So in no 60 seconds there are more requests than
the limit; of tokens one request that is larger than a tenth may go beyond.  The line stands in the store and is moved by
compare-and-swap.  A provider that asks for a pause gets it from all processes.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from ..clock import from_ms
from ..config import Config
from ..llm.protocol import ModelError
from ..store import PaceRow, Store
from .gate import MOST_WAIT_MS, NotNow

MINUTE_US = 60_000_000
_BURST = 10  # a tenth of a minute's worth may come at once
# So long a caller waits here for its turn; who would wait longer is told when to come back.
PATIENCE_US = 5_000_000
# Turns are given out so far ahead; who comes later is told the last of them.
_AHEAD_US = 10 * MINUTE_US
_IDLE_US = 24 * 60 * MINUTE_US
_TRIES = 50


@dataclass(frozen=True, slots=True)
class Limits:
    """What one key may be asked in a minute; ``None`` for as much as there is."""

    requests: int | None
    tokens: int | None


def turn(row: PaceRow, limits: Limits, tokens: int, now_us: int) -> tuple[PaceRow, int]:
    """
    The row after one more request of so many tokens, and ``0``; or the row as it is, and when there is room for it.
    """
    asked = ((limits.requests, row.requests_at, 1), (limits.tokens, row.tokens_at, tokens))
    moved, free_at = [row.requests_at, row.tokens_at], 0
    for number, (limit, at, cost) in enumerate(asked):
        if limit is None:
            moved[number] = max(at, now_us)
            continue
        burst = max(1, limit // _BURST)
        each = MINUTE_US / (limit - burst + 1)
        moved[number] = round(max(at, now_us) + cost * each)
        ahead = round(max(burst, cost) * each)  # what is larger than a burst waits until the line is reached
        free_at = max(free_at, moved[number] - ahead)
    if free_at > now_us:
        return row, free_at
    return replace(row, version=row.version + 1, requests_at=moved[0], tokens_at=moved[1]), 0


def sent_away(row: PaceRow, limits: Limits, free_at: int, now_us: int) -> PaceRow:
    """The row after somebody was told to come back at its ``booked_until``: one after the other, not all at once."""
    step = MINUTE_US // limits.requests if limits.requests else 0
    later = min(max(row.booked_until, free_at) + step, now_us + _AHEAD_US)
    return replace(row, version=row.version + 1, booked_until=max(later, free_at))


def used(row: PaceRow, limits: Limits, difference: int) -> PaceRow:
    """The row after a request took so many tokens more (or, below 0, fewer) than it was let in with."""
    if limits.tokens is None:
        return row
    each = MINUTE_US / (limits.tokens - max(1, limits.tokens // _BURST) + 1)
    return replace(row, version=row.version + 1, tokens_at=round(row.tokens_at + difference * each))


class Pace:
    """Of one model and its key; safe to use from any thread, in any number of processes."""

    def __init__(
        self,
        store: Store,
        config: Config,
        pace_id: str,
        now_ms: Callable[[], int],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._store, self._id, self._now_ms, self._sleep = store, pace_id, now_ms, sleep
        self.limits = Limits(config.model_requests_per_minute, config.model_tokens_per_minute)

    def enter(self, tokens: int) -> None:
        """
        Take a turn for one request of some *tokens*, and wait a little for it.

        Raises:
            NotNow: the provider asked for a pause, or the turn comes later.
        """
        patience = PATIENCE_US
        for _ in range(_TRIES):
            now_us, row = self._now_us(), self._store.pace(self._id)
            if row.closed_until > now_us:
                raise _not_now("the provider asked for a pause", row.closed_until)
            if self.limits == Limits(None, None):
                return
            moved, free_at = turn(row, self.limits, tokens, now_us)
            if free_at and free_at - now_us <= patience:
                patience -= free_at - now_us
                self._sleep((free_at - now_us) / 1_000_000)
                continue
            after = sent_away(row, self.limits, free_at, now_us) if free_at else moved
            if not self._keep(after, now_us):
                self._sleep(random.uniform(0, 0.02))
                continue
            if free_at:
                raise _not_now("the limit of requests or tokens a minute is reached", after.booked_until)
            return
        raise _not_now("many ask at the same time", self._now_us() + 1_000_000)

    def left(self, taken: int, spent: int) -> None:
        """A request that took a turn for *taken* tokens has used *spent*."""
        if self.limits.tokens is not None and taken != spent:
            self._change(lambda row: used(row, self.limits, spent - taken))

    def failed(self, error: ModelError) -> None:
        """Keep everybody away for as long as the provider asked."""
        wait_ms = 0 if error.setup else min(MOST_WAIT_MS, int(1000 * (error.retry_after_s or 0)))
        if wait_ms > 0:
            until = self._now_us() + wait_ms * 1000
            self._change(lambda row: replace(row, version=row.version + 1, closed_until=max(row.closed_until, until)))

    def _change(self, work: Callable[[PaceRow], PaceRow]) -> None:
        for _ in range(_TRIES):
            if self._keep(work(self._store.pace(self._id)), self._now_us()):
                return
            self._sleep(random.uniform(0, 0.02))

    def _keep(self, row: PaceRow, now_us: int) -> bool:
        return self._store.save_pace(row, idle_before=now_us - _IDLE_US)

    def _now_us(self) -> int:
        return self._now_ms() * 1000


def _not_now(why: str, until_us: int) -> NotNow:
    until_ms = -(-until_us // 1000)
    return NotNow(f"{why}, until {from_ms(until_ms):%H:%M:%S} UTC", until_ms, hint="it is asked again then")
