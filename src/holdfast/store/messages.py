"""
Stores of plain messages: append, load and clear, by session.

They hold what was said and nothing else: no facts, no search.  `strategies` choose from them what
a model sees, and `with_memory` wraps a model around one of them.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from ..clock import Clock, utc_now
from ..errors import BadInput
from ..text.validate import MessageLike, checked_messages
from ..types import Message, RollingSummary

MAX_MESSAGE_CHARS = 4_000_000


class MessageLog(Protocol):
    """
    What is kept of sessions, and grows.  Safe to call from any thread.

    A session is any text but the empty one; two that differ in one code point never meet.
    """

    def append(self, session: str, message_or_messages: MessageLike | Sequence[MessageLike]) -> None:
        """Store one message, or a list of them as a whole, after those that are there."""

    def load(self, session: str) -> list[Message]:
        """All messages of the session, oldest first, numbered from 1; none when there is no such session."""


class MessageStore(MessageLog, Protocol):
    """A log that can forget: three operations, keyed by a session."""

    def clear(self, session: str) -> None:
        """Forget the session, with its summary; nothing happens when there is none."""


@runtime_checkable
class KeepsSummaries(Protocol):
    """What a message store offers when it can also keep the rolling summary of a session."""

    def load_summary(self, session: str) -> RollingSummary | None:
        """The summary that was kept last, if any."""

    def save_summary(self, session: str, summary: RollingSummary) -> None:
        """Keep *summary* instead of the one before, unless that reaches further."""


class InMemoryMessages:
    """Sessions in this process, gone when it ends: for tests and short talks."""

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or utc_now
        self._lock = threading.Lock()
        self._messages: dict[str, list[Message]] = {}
        self._summaries: dict[str, RollingSummary] = {}

    def append(self, session: str, message_or_messages: MessageLike | Sequence[MessageLike]) -> None:
        """See `MessageLog.append`; raises `BadInput` when one cannot be used, and stores none then."""
        new = incoming(message_or_messages, self._clock)
        with self._lock:
            there = self._messages.setdefault(checked_session(session), [])
            there += numbered(new, session, len(there) + 1)

    def load(self, session: str) -> list[Message]:
        """See `MessageLog.load`."""
        with self._lock:
            return list(self._messages.get(checked_session(session), ()))

    def clear(self, session: str) -> None:
        """See `MessageStore.clear`."""
        with self._lock:
            self._messages.pop(checked_session(session), None)
            self._summaries.pop(session, None)

    def load_summary(self, session: str) -> RollingSummary | None:
        """See `KeepsSummaries.load_summary`."""
        with self._lock:
            return self._summaries.get(checked_session(session))

    def save_summary(self, session: str, summary: RollingSummary) -> None:
        """See `KeepsSummaries.save_summary`."""
        with self._lock:
            there = len(self._messages.get(checked_session(session), ()))
            if furthest(self._summaries.get(session), summary, there) is summary:
                self._summaries[session] = summary

    def sessions(self) -> list[str]:
        """Every session with a message, by name."""
        with self._lock:
            return sorted(self._messages)


def checked_session(session: object) -> str:
    """
    Return *session* when it can name one.

    Raises:
        BadInput: not a string, empty, or holding a lone surrogate, which no encoding can write.
    """
    if not isinstance(session, str):
        raise BadInput(f"a session must be a string, not {type(session).__name__}")
    if not session:
        raise BadInput("a session must not be empty")
    if any("\ud800" <= char <= "\udfff" for char in session):
        raise BadInput("a session holds a lone surrogate; use printable text")
    return session


def incoming(given: MessageLike | Sequence[MessageLike], clock: Clock) -> list[Message]:
    """What the caller gave as clean messages without numbers; see `checked_messages`."""
    return [message for message, _ in checked_messages(given, now=clock(), max_chars=MAX_MESSAGE_CHARS)]


def numbered(messages: Sequence[Message], session: str, first: int) -> list[Message]:
    """*messages* with their place in *session*."""
    return [
        replace(message, seq=seq, conversation=session, meta=dict(message.meta))
        for seq, message in enumerate(messages, first)
    ]


def furthest(kept: RollingSummary | None, new: RollingSummary, messages: int) -> RollingSummary | None:
    """
    The one that reaches further, so that a slow writer never puts an older summary back.

    One that speaks of more messages than there are was made before the session was cleared.
    """
    return kept if new.through > messages or (kept is not None and kept.through > new.through) else new
