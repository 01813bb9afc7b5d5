"""Turns that are kept in a store of plain messages."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import BadInput, ConfigError, Conflict
from ..store.messages import KeepsSummaries, MessageLog, checked_session
from ..strategies import Buffer, Summary, SummaryBuffer, TokenBuffer, Window
from ..text.tokens import MESSAGE_OVERHEAD_TOKENS, count_tokens
from ..types import Message, RollingSummary
from .turns import INCOMPLETE, KEY, Mark, Options, Place, alike, answered, being_answered, retried

CLASSIC = (Buffer, Window, TokenBuffer, Summary, SummaryBuffer)
_log = logging.getLogger("holdfast")


@dataclass(slots=True)
class _Shared:
    """What all sessions of one wrapped callable have in common; ``summaries`` are of stores that keep none."""

    store: MessageLog
    strategy: Buffer | Window | TokenBuffer | Summary | SummaryBuffer
    options: Options
    summaries: dict[str, RollingSummary] = field(default_factory=dict)


def session_places(store: MessageLog, options: Options) -> Callable[[str, str | None], Place]:
    """
    Where the turns of a session are: in *store*.  A user that a call's configuration names changes nothing.

    Raises:
        ConfigError: the strategy needs a memory, a user was named, or *store* is no store.
    """
    strategy = options.strategy if options.strategy is not None else Buffer()
    if not isinstance(strategy, CLASSIC):
        hint = "use Buffer, Window, TokenBuffer, Summary or SummaryBuffer, or a Memory"
        raise ConfigError(f"the strategy {strategy.name} needs a memory", hint=hint)
    if options.user is not None:
        raise ConfigError("a message store knows no users", hint="put the user into the session")
    if not all(callable(getattr(store, name, None)) for name in ("append", "load")):
        raise ConfigError(f"{type(store).__name__} is neither a Memory nor a message store")
    shared = _Shared(store, strategy, options)
    return lambda session, user: _Session(shared, checked_session(session))


class _Session:
    def __init__(self, shared: _Shared, session: str) -> None:
        self._shared, self._session = shared, session
        self._history: list[Message] = []

    @property
    def name(self) -> tuple[str, ...]:
        return (self._session,)

    def take(self, new: Sequence[Message], key: str | None, at_work: Container[Mark]) -> int:
        history = self._shared.store.load(self._session)
        again = self._keyed(history, new, key) if key is not None else retried(history, new)
        busy = again is not None and (self.name, again.seq) in at_work
        if busy and key is not None:
            raise being_answered(key)
        if again is not None and not busy:
            broken_off = history[-1].role == "assistant" and history[-1].meta.get(INCOMPLETE)
            self._history = history[:-1] if broken_off else history
            return again.seq
        self._shared.store.append(self._session, list(new))
        self._history = [*history, *new]
        return len(self._history)

    def _keyed(self, history: Sequence[Message], new: Sequence[Message], key: str) -> Message | None:
        """The last message of the input that was stored under *key*, when it has no whole reply."""
        known = [message for message in history if message.meta.get(KEY) == key]
        before = [message for message in known if message.role != "assistant"]
        if any(message.role == "assistant" and not message.meta.get(INCOMPLETE) for message in known):
            raise answered(key)
        if before and not (len(before) == len(new) and all(map(alike, before, new))):
            raise Conflict(f"idempotency key {key!r} was used in this session with another input")
        return before[-1] if before else None

    def context(self, new: Sequence[Message]) -> list[dict[str, Any]]:
        options, summary = self._shared.options, self._summary()
        budget, system = options.budget_tokens, options.system
        if budget is not None and system is not None:
            budget -= (options.count or count_tokens)(system) + MESSAGE_OVERHEAD_TOKENS
            if budget < 1:
                raise BadInput("the system text alone takes the whole budget", hint="raise budget_tokens")
        shown = self._shared.strategy.apply(self._history, budget_tokens=budget, summary=summary, count=options.count)
        head = [] if system is None else [{"role": "system", "content": system}]
        return [*head, *map(openai_message, shown)]

    def put(self, reply: Message, key: str | None) -> None:
        store = self._shared.store
        store.append(self._session, reply)
        if isinstance(self._shared.strategy, Summary | SummaryBuffer):
            self._fold(self._shared.strategy, store.load(self._session))

    def _fold(self, strategy: Summary | SummaryBuffer, messages: Sequence[Message]) -> None:
        """Bring the summary up to date, now that nobody waits for a reply."""
        before, options = self._summary(), self._shared.options
        try:
            after = strategy.fold(messages, before, budget_tokens=options.budget_tokens, count=options.count)
        except Exception:  # noqa: BLE001 - a summary can wait, the reply is there
            _log.warning("the summary of a session was not brought up to date", exc_info=True)
            return
        if before is None or after.through > before.through:
            if isinstance(self._shared.store, KeepsSummaries):
                self._shared.store.save_summary(self._session, after)
            else:
                self._shared.summaries[self._session] = after

    def _summary(self) -> RollingSummary | None:
        if not isinstance(self._shared.strategy, Summary | SummaryBuffer):
            return None
        if isinstance(self._shared.store, KeepsSummaries):
            return self._shared.store.load_summary(self._session)
        return self._shared.summaries.get(self._session)


def openai_message(message: Message) -> dict[str, Any]:
    """*message* in OpenAI's shape."""
    sent: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.name:
        sent["name"] = message.name
    if message.meta.get("tool_calls"):
        sent["tool_calls"] = message.meta["tool_calls"]
        sent["content"] = message.content or None
    if message.role == "tool":
        sent["tool_call_id"] = message.meta["tool_call_id"]
    return sent
