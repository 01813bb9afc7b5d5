"""One turn of a wrapped call: its input stored once, its context, its reply stored after it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ..clock import utc_now
from ..context.budget import Count
from ..errors import BadInput, Conflict
from ..incoming import checked_messages
from ..store.messages import MAX_MESSAGE_CHARS
from ..strategies import Strategy
from ..text.counters import CalibratedCounter
from ..types import Message
from .replies import ReplyText, Spoken, reply_message, reported_usage

KEY, INCOMPLETE = "turn", "incomplete"  # of a message's meta
OWN = ("session", "user", "idempotency_key")
LOCKS = 64
_ALIKE = ("tool_calls", "tool_call_id", "parts")


@dataclass(frozen=True, slots=True)
class Options:
    """What `with_memory` was given."""

    session: str
    user: str | None
    org: str
    bot: str
    strategy: Strategy | None
    budget_tokens: int | None
    system: str | None
    reply_text: ReplyText | None
    count: Count | None


Mark = tuple[tuple[str, ...], int]
"""The name of a place, and the number of the last message of an input there."""


class Place(Protocol):
    """Where the turns of one session go."""

    @property
    def name(self) -> tuple[str, ...]:
        """What tells it from others."""

    def take(self, new: Sequence[Message], key: str | None, at_work: Container[Mark]) -> int:
        """
        Store *new*, unless they are an input that was stored before, has no reply, and is not *at_work*.

        Returns the number of the last one.
        """

    def context(self, new: Sequence[Message]) -> list[dict[str, Any]]:
        """What the model should see, *new* at the end."""

    def put(self, reply: Message, key: str | None) -> None:
        """Store a reply."""


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """A turn at work: ``messages`` are what the model is given."""

    place: Place
    seq: int
    key: str | None
    messages: list[dict[str, Any]] = field(default_factory=list)

    @property
    def mark(self) -> Mark:
        """What tells it from other turns, but not from another attempt at it."""
        return (self.place.name, self.seq)


class Turns:
    """All turns of one wrapped callable."""

    def __init__(self, options: Options, place: Callable[[str, str | None], Place]) -> None:
        """Keep the turns of a session (of a user, if one is named) where *place* says."""
        self.options, self._place = options, place
        self._locks = [threading.Lock() for _ in range(LOCKS)]
        self._at_work: dict[Mark, Turn] = {}

    def begin(self, given: Any, more: dict[str, Any]) -> Turn:
        """
        Store the input and build the context; our own keywords are taken out of *more*.

        Raises:
            BadInput: the input, the session or the user cannot be used; nothing was stored.
            Conflict: the idempotency key was used for another input, or was answered already.
        """
        session, user, key = (_named(more, name) for name in OWN)
        new = _input(given, key)
        named = self.options.session if session is None else session  # an empty one is an error, not the default
        place = self._place(named, self.options.user if user is None else user)
        with self._locks[hash(place.name) % LOCKS]:
            turn = Turn(place, place.take(new, key, self._at_work), key)
            self._at_work[turn.mark] = turn
        with self.failing(turn):
            turn.messages.extend(place.context(new))
        return turn

    def finish(self, turn: Turn, reply: object) -> None:
        """
        Store a whole *reply*.

        Raises:
            BadInput: there is no text in it that we know to find.
        """
        try:
            text = self.options.reply_text(reply) if self.options.reply_text else None
            said = Message("assistant", text) if text is not None else reply_message(reply)
            if said is None:
                raise _unreadable(reply)
            self._put(turn, said, reported_usage(reply))
        finally:
            self.let_go(turn)

    def finish_stream(self, turn: Turn, spoken: Spoken, whole: bool) -> None:
        """
        Store what a stream said, marked unless it is *whole*; nothing when it said nothing.

        Raises:
            BadInput: it came to its end, and there was no text in it that we know to find.
        """
        try:
            said = spoken.message()
            if said is not None:
                mark = {} if whole else {INCOMPLETE: True}
                self._put(turn, replace(said, meta={**said.meta, **mark}), spoken.usage)
            elif whole and spoken.heard:
                raise _unreadable(None)
        finally:
            self.let_go(turn)

    @contextmanager
    def failing(self, turn: Turn) -> Iterator[None]:
        """When what is done here fails, *turn* is no longer at work, and may be tried again."""
        try:
            yield
        except BaseException:
            self.let_go(turn)
            raise

    def let_go(self, turn: Turn) -> None:
        """*turn* is no longer at work; another attempt at it may be."""
        if self._at_work.get(turn.mark) is turn:
            self._at_work.pop(turn.mark, None)

    def _put(self, turn: Turn, said: Message, usage: tuple[str, int] | None) -> None:
        if turn.key is not None:
            said = replace(said, meta={**said.meta, KEY: turn.key})
        turn.place.put(said, None if said.meta.get(INCOMPLETE) else turn.key)
        if usage is not None and isinstance(self.options.count, CalibratedCounter):
            self.options.count.learn(turn.messages, usage[1], model=usage[0])


def answered(key: str) -> Conflict:
    """What is said of a key that comes again after its reply."""
    return Conflict(
        f"the turn with idempotency key {key!r} was answered already", hint="load the reply, or use a new key"
    )


def being_answered(key: str) -> Conflict:
    """What is said of a key that comes again before its reply."""
    return Conflict(f"the turn with idempotency key {key!r} is being answered", hint="wait for that call")


def retried(tail: Sequence[Message], new: Sequence[Message]) -> Message | None:
    """The last message of the input at the end of *tail* that *new* is once more, when it has no whole reply."""
    if tail and tail[-1].role == "assistant" and tail[-1].meta.get(INCOMPLETE):
        tail = tail[:-1]
    before = tail[-len(new) :]
    return before[-1] if len(before) == len(new) and all(map(alike, before, new)) else None


def alike(a: Message, b: Message) -> bool:
    """Whether two messages say the same."""
    same = (a.role, a.content, a.name) == (b.role, b.content, b.name)
    return same and all(a.meta.get(name) == b.meta.get(name) for name in _ALIKE)


def _input(given: Any, key: str | None) -> list[Message]:
    messages = [Message("user", given)] if isinstance(given, str) else given
    new = checked_messages(messages, now=utc_now(), max_chars=MAX_MESSAGE_CHARS)
    mark = {KEY: key} if key else {}
    return [replace(each, at=each.at if dated else None, meta={**each.meta, **mark}) for each, dated in new]


def _named(more: dict[str, Any], name: str) -> str | None:
    """One of our keywords, or what the call's configuration says."""
    config = more.get("config")
    value = more.pop(name, None)
    for part in ("configurable", "metadata"):
        inner = config.get(part) if isinstance(config, Mapping) else None
        if value is None and isinstance(inner, Mapping):
            value = inner.get(name if name == "idempotency_key" else f"{name}_id")
    if value is not None and not isinstance(value, str):
        raise BadInput(f"{name} must be text, not {type(value).__name__}")
    return value


def _unreadable(reply: object) -> BadInput:
    what = "none of the chunks holds" if reply is None else f"a reply of type {type(reply).__name__} holds no"
    return BadInput(f"{what} text that could be stored", hint="pass reply_text=, which returns the text")
