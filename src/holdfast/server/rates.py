"""How often a key may ask: a bucket a key that fills steadily."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable

_MOST_KEYS = 10_000


class Rates:
    """
    At most *per_minute* requests a key in any minute, in bursts of a tenth of that.

    In the memory of one process; the least recently used keys are let go, and start anew with a full bucket.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float]) -> None:
        self._per_s = per_minute / 60
        self._burst = max(1.0, per_minute / 10)
        self._clock = clock
        self._buckets: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def take(self, key: Hashable) -> float:
        """0 when the request may pass, else the seconds to wait."""
        now = self._clock()
        left, at = self._buckets.pop(key, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._per_s)
        passes = left >= 1
        self._buckets[key] = (left - 1 if passes else left, now)
        if len(self._buckets) > _MOST_KEYS:
            self._buckets.popitem(last=False)
        return 0.0 if passes else (1 - left) / self._per_s
