"""
What the context before a reply came to: noted when it is made, written with the reply.

A read must not wait for the disk, so it waits here until the reply is stored by the same process.  What was
recalled is kept as words only until then; what is written are sizes, counts and a digest.  A context that no reply
follows leaves nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..scope import Scope
from ..store import ShownRow, WriteView
from ..text.terms import terms
from ..types import Message

MAX_WAITING = 1_000
PREFIX_DIGITS = 16
SHARED_WORDS = 2
"""So many telling words of a recalled item, that the question does not hold, make a reply take it up."""

Place = tuple[str, str, str, str | None, str | None]


@dataclass(frozen=True, slots=True)
class Glimpse:
    """One context: its size without the caller's own system text, its stable part, the words of what was recalled."""

    at_ms: int
    strategy: str
    sent: int
    prefix: str
    question: str
    recalled: tuple[str, ...]
    erasures: int


class Shown:
    """The newest context of each conversation that waits for its reply; safe to use from any thread."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._waiting: dict[Place, Glimpse] = {}
        self._erasures = 0
        self._lock = threading.Lock()

    def note(self, scope: Scope, strategy: str, sent: int, sha256: str, question: str, recalled: Sequence[str]) -> None:
        """A context was made for the scope's conversation just now."""
        sizes = (self._now_ms(), strategy, sent, sha256[:PREFIX_DIGITS])
        with self._lock:
            glimpse = Glimpse(*sizes, question, tuple(recalled), self._erasures)
            self._waiting.pop(_place(scope), None)
            self._waiting[_place(scope)] = glimpse
            while len(self._waiting) > MAX_WAITING:
                del self._waiting[next(iter(self._waiting))]

    def take(self, scope: Scope, messages: Sequence[Message]) -> tuple[int, Glimpse] | None:
        """The context that a reply among *messages* answers, and the reply's place among them; ``None`` without one."""
        reply = next((at for at, message in enumerate(messages) if message.role == "assistant"), None)
        if reply is None:
            return None
        with self._lock:
            glimpse = self._waiting.pop(_place(scope), None)
        return None if glimpse is None else (reply, glimpse)

    def restore(self, scope: Scope, taken: tuple[int, Glimpse] | None) -> None:
        """Put back what was taken for a write that failed, unless a newer context or an erasure came in between."""
        with self._lock:
            if taken is not None and taken[1].erasures == self._erasures:
                self._waiting.setdefault(_place(scope), taken[1])

    def forget(self) -> None:
        """Something was erased: no words of what was recalled may wait any longer."""
        with self._lock:
            self._erasures += 1
            self._waiting.clear()


def pour(view: WriteView, taken: tuple[int, Glimpse], reply: str, first_seq: int) -> None:
    """Write what was taken, for the *reply* whose batch begins at *first_seq*, inside the caller's transaction."""
    place, glimpse = taken
    taken_up = sum(takes_up(reply, item, glimpse.question) for item in glimpse.recalled)
    view.add_shown(
        ShownRow(
            first_seq + place,
            glimpse.at_ms,
            glimpse.strategy,
            glimpse.sent,
            glimpse.prefix,
            len(glimpse.recalled),
            taken_up,
        )
    )


def takes_up(reply: str, item: str, question: str) -> bool:
    """
    Whether a reply shares telling words with a recalled item that the question does not hold: a guess.

    Two of them, or all that the item has beyond the question.
    """
    own = set(terms(item)) - set(terms(question))
    return bool(own) and len(own & set(terms(reply))) >= min(SHARED_WORDS, len(own))


def _place(scope: Scope) -> Place:
    return (*scope.user_key, scope.subject, scope.conversation)
