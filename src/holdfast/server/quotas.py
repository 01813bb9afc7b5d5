"""How many messages a key, and all keys of an org, may store a day (UTC)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from ..types import ApiKey


class Quotas:
    """Counted in the memory of one process, from the midnight before or from its start; ``None``: as many as they like."""

    def __init__(
        self, per_key: int | None, per_org: int | None, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._most = (per_key, per_org)
        self._clock = clock
        self._day = ""
        self._stored: Counter[tuple[str, ...]] = Counter()

    def take(self, key: ApiKey, messages: int) -> int:
        """0 when so many more messages may be stored, and then they count; else the seconds until midnight."""
        now = self._clock()
        if f"{now:%Y-%m-%d}" != self._day:
            self._day = f"{now:%Y-%m-%d}"
            self._stored.clear()
        whose = ((key.org, key.id), (key.org,))
        if any(
            most is not None and self._stored[who] + messages > most
            for who, most in zip(whose, self._most, strict=True)
        ):
            midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
            return int((midnight - now).total_seconds()) + 1
        self._stored.update(dict.fromkeys(whose, messages))
        return 0
