"""
What one transaction changed, gathered while it runs and written as rows at its end.

A thing that changes several times in one transaction is told of once.  Numbers follow one another without a gap; the
first of a user comes from the clock, so that somebody who was erased and comes back has higher ones than before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..clock import DAY_MS
from .events import Kept
from .readview import Driver

ERASED = "erased"
LOOK_EVERY = 256  # rows after which old ones are removed
A_MS = 1_000  # numbers that the clock leaves for one millisecond

# Of several things that happen to one fact in one transaction, the weightiest is told.
_WEIGHT = {"fact.changed": 0, "fact.confirmed": 1, "fact.added": 3, "fact.forgotten": 4}
_ENDED = {"": "fact.changed", "replaced": "fact.replaced", "never_true": "fact.corrected"}

_Place = tuple[str, str]


class Told:
    """What one transaction of *actor* has to tell at *now_ms*."""

    def __init__(self, actor: str, now_ms: int) -> None:
        self._actor = actor
        self._now_ms = now_ms
        self._found: dict[tuple[str, str, str, str], str] = {}
        self._gone = False
        self.counted: Counter[tuple[str, str]] = Counter()

    def note(self, kind: str, place: _Place, ref: str | int = "") -> None:
        """Something of this *kind* happened to *ref* in (subject, conversation)."""
        self._found[kind, *place, str(ref)] = kind

    def fact(self, kind: str, fact_id: str, about: str, said: _Place) -> None:
        """
        Something happened to a fact about *about*, in a conversation *said*.

        The conversation is named only where it is about the same: another's stays unknown to whoever sees the fact.
        """
        key = ("fact.", about, said[1] if said[0] == about else "", fact_id)
        before = self._found.get(key, kind)
        self._found[key] = kind if _WEIGHT.get(kind, 2) >= _WEIGHT.get(before, 2) else before

    def ended(self, because: str, fact_id: str, about: str, said: _Place) -> None:
        """A fact was written with this reason for its end, ``""`` while it is believed."""
        self.fact(_ENDED.get(because, "fact.ended"), fact_id, about, said)

    def count(self, what: str, of: str, number: int = 1) -> None:
        """Count something for the metrics of this process; nothing of it is stored."""
        self.counted[what, of] += number

    def forget(self, place: _Place) -> None:
        """Nothing that happened in (subject, conversation) is told by name."""
        self._found = {key: kind for key, kind in self._found.items() if key[1:3] != place}

    def user_gone(self) -> None:
        """The user was erased: all that is told is that somebody was."""
        self._found.clear()
        self._gone = True

    def flush(self, driver: Driver, user: tuple[str, str, str], kept: Kept) -> None:
        """Write the rows, at the end of the transaction."""
        if self._gone:
            self._write(driver, (user[0], "", ""), [(ERASED, "", "", "user")], kept)
        if self._found:
            told = [(kind, subject, conversation, ref) for (_, subject, conversation, ref), kind in self._found.items()]
            self._write(driver, user, told, kept)
        for kind in self._found.values():
            self.counted["event", kind] += 1

    def _write(
        self, driver: Driver, user: tuple[str, str, str], told: Sequence[tuple[str, str, str, str]], kept: Kept
    ) -> None:
        key = dict(zip(("org", "user_id", "bot"), user, strict=True))
        found = driver.run("newest_event", key)
        before = found[0][3] if found else max(1, self._now_ms * A_MS) - 1
        first = before + 1
        driver.many(
            "add_event",
            [
                (*user, number, self._now_ms, kind, self._actor, subject, conversation, ref)
                for number, (kind, subject, conversation, ref) in enumerate(told, first)
            ],
        )
        newest = first + len(told) - 1
        if newest // LOOK_EVERY != before // LOOK_EVERY:
            since = driver.run("first_event_since", key | {"since": self._now_ms - kept.days * DAY_MS})
            oldest = max(newest - kept.rows + 1, since[0][0] if since else newest)
            driver.run("remove_events", key | {"first": oldest})
