"""
One turn of a wrapped callable: the input stored once, the context, the reply stored after it.

Turns are in conversations of a memory, or in a store of plain messages.
"""

from __future__ import annotations

import hashlib
import inspect
import logging
import threading
import unicodedata
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from itertools import zip_longest
from typing import Any, NoReturn, Protocol

from ...clock import utc_now
from ...context.material import Count
from ...conversation import Conversation
from ...errors import BadInput, ConfigError, Conflict
from ...memory import Memory
from ...reports import Receipt
from ...scope import MAX_NAME_CHARS
from ...store.messages import MAX_MESSAGE_CHARS, KeepsSummaries, MessageLog, checked_session
from ...text import dataclass
from ...text.terms import MESSAGE_OVERHEAD_TOKENS, CalibratedCounter, count_tokens
from ...text.validate import MessageLike, checked_messages, is_pair
from ...types import Message, ReplyUsage, RollingSummary
from .replies import ReplyText, StreamedReply, get_part, reply_message, reported_usage
from .strategies import Buffer, Strategy, Summary, SummaryBuffer, TokenBuffer, Window

CLASSIC_STRATEGIES = (Buffer, Window, TokenBuffer, Summary, SummaryBuffer)
TURN_KEY, INCOMPLETE = "turn", "incomplete"  # keys of a message's meta
COMPARED_META = ("tool_calls", "tool_call_id", "parts")
HASHED_NAME_PREFIX = "~"
MAX_MESSAGES_TO_REPLY = 100  # messages after an input among which its reply is looked for
LOCKS = 64
SESSION_KEY, THREAD_KEY = "session_id", "thread_id"  # the second is LangGraph's name for it
_PARTS = ("configurable", "metadata")
_NAMED_BY = 'use config={{"configurable": {{"{key}": "…"}}}}'
FRAMEWORK_ROLES = {"human": "user", "ai": "assistant", "system": "system"}  # of LangChain and others

_log = logging.getLogger("holdfast")


class CallConfig(dict[str, Any]):
    """The configuration of one call, a mapping; its two parts are there even when the call gave none."""

    def __init__(self, given: object = None) -> None:
        parts = {part: get_part(given, part) for part in _PARTS}
        super().__init__(given if isinstance(given, Mapping) else {k: v for k, v in parts.items() if v is not None})

    @property
    def configurable(self) -> Mapping[str, Any]:
        """The part that names what the call works on."""
        return self._part("configurable")

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The part that says more about the call."""
        return self._part("metadata")

    def _part(self, name: str) -> Mapping[str, Any]:
        found = self.get(name)
        return found if isinstance(found, Mapping) else {}


NameOf = Callable[[CallConfig], str | None]
"""Returns a name from the configuration of a call."""


@dataclass(frozen=True, slots=True)
class WrapOptions:
    """The options of `with_memory`."""

    session: str | NameOf | None
    user: str | NameOf | None
    session_key: str
    user_key: str
    org: str
    bot: str
    strategy: Strategy | None
    budget_tokens: int | None
    system: str | None
    reply_text: ReplyText | None
    count: Count | None
    input_key: str | None
    history_key: str | None

    def system_messages(self) -> list[dict[str, Any]]:
        """Return the system prompt as the messages to put first."""
        return [] if self.system is None else [{"role": "system", "content": self.system}]


TurnId = tuple[tuple[str, ...], int]
"""The identity of a session, and the number of the last message of an input there."""


class TurnSession(Protocol):
    """The store of one session's turns."""

    @property
    def identity(self) -> tuple[str, ...]:
        """Return the names that identify the session."""

    def store_input(self, new: Sequence[Message], key: str | None, running: Container[TurnId]) -> int:
        """
        Store *new*, unless it repeats an unanswered input whose turn is not *running*.

        Returns the number of its last message.
        """

    def build_context(self, new: Sequence[Message], *, stored: bool = True) -> list[dict[str, Any]]:
        """Return the messages for the model, *new* at the end, whether they are *stored* or not."""

    def store_reply(self, reply: Message, key: str | None) -> None:
        """Store a reply."""


@dataclass(frozen=True, slots=True, eq=False)
class WrappedTurn:
    """A turn that is being answered; the model is given ``messages``.  The reply is stored if ``write`` is set."""

    session: TurnSession
    seq: int
    key: str | None
    write: bool = True
    messages: list[dict[str, Any]] = field(default_factory=list)
    wanted: dict[str, Any] | None = None  # what the callable takes instead of messages

    @property
    def id(self) -> TurnId:
        """Return the id that all attempts at this turn share."""
        return (self.session.identity, self.seq)


class TurnRecorder:
    """Stores the turns of one wrapped callable, and knows which are being answered."""

    def __init__(self, options: WrapOptions, open_session: Callable[[str, str | None], TurnSession]) -> None:
        self.options, self._open_session = options, open_session
        self._locks = [threading.Lock() for _ in range(LOCKS)]
        self._running: dict[TurnId, WrappedTurn] = {}

    def begin(self, given: Any, more: dict[str, Any]) -> WrappedTurn:
        """
        Store the input and build the context; remove the wrapper's keywords from *more*.

        Raises:
            BadInput: the input, the session or the user cannot be used; nothing was stored.
            Conflict: the idempotency key was used for another input, or was answered already.
        """
        name, user = self.names(more)
        key = _chosen(more, "idempotency_key", None, "idempotency_key")
        read, write = _switched_on(more, "read"), _switched_on(more, "write")
        options = self.options
        keyed = isinstance(given, Mapping) and options.input_key is not None and options.input_key in given
        if isinstance(given, Mapping) and not keyed and "role" not in given:
            _refuse_mapping(given, options.input_key)
        new = _input_messages(given[options.input_key] if keyed else given, key)
        session = self._open_session(name, user)
        with self._locks[hash(session.identity) % LOCKS]:
            wanted: dict[str, Any] | None = None if options.input_key is None else dict(given) if keyed else {}
            seq = session.store_input(new, key, self._running) if write else 0
            turn = WrappedTurn(session, seq, key, write, wanted=wanted)
            if write:
                self._running[turn.id] = turn
        with self.released_on_error(turn):
            alone = [*options.system_messages(), *map(_openai_message, new)]
            turn.messages.extend(_with_parts(session.build_context(new, stored=write) if read else alone, new))
            if turn.wanted is not None and options.input_key is not None:
                self._fill(turn.wanted, options.input_key, turn.messages, len(new))
        return turn

    def names(self, more: dict[str, Any]) -> tuple[str, str | None]:
        """
        Return the session and the user of a call, and remove their keywords from *more*.

        Raises:
            BadInput: the call names no session, and there is no default.
        """
        options = self.options
        session = _chosen(more, "session", options.session, options.session_key)
        if session is None:
            hint = f'pass session="…", or config={{"configurable": {{"{options.session_key}": "…"}}}}'
            raise BadInput("the call names no session", hint=hint)
        return session, _chosen(more, "user", options.user, options.user_key)

    def _fill(self, wanted: dict[str, Any], input_key: str, messages: list[dict[str, Any]], new: int) -> None:
        """Put the messages under the keys that the callable reads: all under one, or those before the input apart."""
        if self.options.history_key is None:
            wanted[input_key] = messages
            return
        wanted[self.options.history_key] = messages[: len(messages) - new]
        wanted.setdefault(input_key, messages[-1]["content"] if new == 1 else messages[-new:])

    def finish(self, turn: WrappedTurn, reply: object) -> None:
        """
        Store a whole *reply*.

        Raises:
            BadInput: its shape is unknown, so no text was found in it.
        """
        try:
            text = self.options.reply_text(reply) if self.options.reply_text else None
            message = Message("assistant", text) if text is not None else reply_message(reply)
            if message is None:
                raise _unreadable(f"a reply of type {type(reply).__name__} holds no")
            self._store_reply(turn, replace(message, role="assistant"), reported_usage(reply))
        finally:
            self.release(turn)

    def finish_stream(self, turn: WrappedTurn, reply: StreamedReply, complete: bool) -> None:
        """
        Store the text of a stream, marked unless it is *complete*; store nothing when it held none.

        Raises:
            BadInput: it is complete, and the shape of its chunks is unknown.
        """
        try:
            message = reply.message()
            if message is not None:
                mark = {} if complete else {INCOMPLETE: True}
                self._store_reply(turn, replace(message, meta={**message.meta, **mark}), reply.usage)
            elif complete and reply.chunk_count:
                raise _unreadable("none of the chunks holds")
        finally:
            self.release(turn)

    @contextmanager
    def released_on_error(self, turn: WrappedTurn) -> Iterator[None]:
        """Release *turn* when the block fails, so that it may be tried again."""
        try:
            yield
        except BaseException:
            self.release(turn)
            raise

    def release(self, turn: WrappedTurn) -> None:
        """Mark *turn* as no longer running; another attempt at it that runs stays marked."""
        if self._running.get(turn.id) is turn:
            self._running.pop(turn.id, None)

    def _store_reply(self, turn: WrappedTurn, reply: Message, usage: ReplyUsage | None) -> None:
        if usage is not None:
            reply = replace(reply, meta={**reply.meta, **usage.meta})
        if turn.key is not None:
            reply = replace(reply, meta={**reply.meta, TURN_KEY: turn.key})
        if turn.write:
            turn.session.store_reply(reply, None if reply.meta.get(INCOMPLETE) else turn.key)
        if usage is not None and isinstance(self.options.count, CalibratedCounter):
            self.options.count.learn(turn.messages, usage.input_tokens, model=usage.model)


def _already_answered(key: str) -> Conflict:
    return Conflict(
        f"the turn with idempotency key {key!r} was answered already", hint="load the reply, or use a new key"
    )


def _being_answered(key: str) -> Conflict:
    return Conflict(f"the turn with idempotency key {key!r} is being answered", hint="wait for that call")


def _find_retried(tail: Sequence[Message], new: Sequence[Message]) -> Message | None:
    """Return the last message of the unanswered input at the end of *tail*, when *new* repeats that input."""
    if tail and tail[-1].role == "assistant" and tail[-1].meta.get(INCOMPLETE):
        tail = tail[:-1]
    before = tail[-len(new) :]
    return before[-1] if _same_messages(before, new) else None


def _is_retried(reply: Message, after: Message | None) -> bool:
    """Whether a reply was cut, and the next message is the one that the retry brought."""
    return bool(reply.meta.get(INCOMPLETE)) and after is not None and after.role == "assistant"


def _same_messages(stored: Sequence[Message], new: Sequence[Message]) -> bool:
    return len(stored) == len(new) and all(map(_same_message, stored, new))


def _same_message(a: Message, b: Message) -> bool:
    same = (a.role, a.content, a.name) == (b.role, b.content, b.name)
    return same and all(a.meta.get(name) == b.meta.get(name) for name in COMPARED_META)


def _input_messages(given: Any, key: str | None) -> list[Message]:
    given = given.to_messages() if hasattr(given, "to_messages") else given  # what a prompt of LangChain makes
    several = isinstance(given, Sequence) and not isinstance(given, str | bytes) and not is_pair(given)
    messages = list(map(_plain_message, given)) if several else _plain_message(given)
    new = checked_messages(messages, now=utc_now(), max_chars=MAX_MESSAGE_CHARS)
    mark = {TURN_KEY: key} if key else {}
    return [replace(each, at=each.at if dated else None, meta={**each.meta, **mark}) for each, dated in new]


def _refuse_mapping(given: Mapping[str, Any], input_key: str | None) -> NoReturn:
    """Refuse an input that is a mapping and no message."""
    if input_key is not None:
        raise BadInput(f"the input has no {input_key!r}, which input_key names", hint=f"it has {sorted(given)}")
    hint = f"name the key that holds the text: with_memory(…, input_key={next(iter(given), 'input')!r})"
    raise BadInput("the input is a mapping without a role, so it is no message", hint=hint)


def _plain_message(given: Any) -> Any:
    """Return a message of LangChain, or a pair of its role and text, as a mapping; anything else unchanged."""
    if is_pair(given):
        return {"role": given[0], "content": given[1]}
    kind = getattr(given, "type", None)
    if not isinstance(given, str | Message | Mapping) and kind == "tool" and hasattr(given, "tool_call_id"):
        return {"role": "tool", "content": given.content, "tool_call_id": given.tool_call_id, "name": given.name}
    if isinstance(given, str | Message | Mapping) or kind not in FRAMEWORK_ROLES or not hasattr(given, "content"):
        return given
    return reply_message(given) if kind == "ai" else {"role": FRAMEWORK_ROLES[kind], "content": given.content}


def _chosen(more: dict[str, Any], name: str, usual: str | NameOf | None, key: str) -> str | None:
    """Remove the keyword *name* from *more*; without it return what the call's configuration says, or what is usual."""
    value, given = more.pop(name, None), more.get("config")
    if given is not None and not isinstance(given, Mapping) and not any(hasattr(given, part) for part in _PARTS):
        raise BadInput(f"config must be a mapping, not {type(given).__name__}", hint=_NAMED_BY.format(key=key))
    config = CallConfig(given)
    if value is None and callable(usual):
        try:
            value = usual(config)
        except LookupError as error:
            raise BadInput(f"the function for the {name} found nothing: {error!r}") from error
    elif value is None:
        keys = (key, THREAD_KEY) if key == SESSION_KEY else (key,)
        parts = (config.configurable, config.metadata)
        found = (part[one] for one in keys for part in parts if part.get(one) is not None)
        value = next(found, usual)  # an empty one is an error, not the default
        if value is usual and any(one in config for one in keys):
            raise BadInput(f"config names the {name} at its top", hint=_NAMED_BY.format(key=key))
    if value is not None and not isinstance(value, str):
        raise BadInput(f"{name} must be text, not {type(value).__name__}")
    return value


def _switched_on(more: dict[str, Any], name: str) -> bool:
    """Remove the keyword *name*, ``read`` or ``write``, from *more*, and return it; without it, it is on."""
    value = more.pop(name, True)
    if not isinstance(value, bool):
        raise BadInput(f"{name} must be True or False, not {type(value).__name__}")
    return value


def _unreadable(what: str) -> BadInput:
    return BadInput(f"{what} text that could be stored", hint="pass reply_text=, which returns the text")


def _with_parts(messages: list[dict[str, Any]], new: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the messages for the model, with pictures and other parts in those that are new, which end them."""
    for sent, message in zip(messages[len(messages) - len(new) :], new, strict=False):
        if message.meta.get("parts") and sent.get("content") == message.content:
            sent["content"] = message.meta["parts"]
    return messages


def _openai_message(message: Message) -> dict[str, Any]:
    sent: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.name:
        sent["name"] = message.name
    if message.meta.get("tool_calls"):
        sent["tool_calls"] = message.meta["tool_calls"]
        sent["content"] = message.content or None
    if message.role == "tool":
        sent["tool_call_id"] = message.meta["tool_call_id"]
    return sent


# Turns in a memory.


class UserMessages:
    """
    One user's conversations as a store of messages: a session is a conversation.

        store = UserMessages(memory, user="ana")
        store.append("s1", {"role": "user", "content": "Hello"})

    Messages appended here are read, summarized and recalled like all others in the memory.
    """

    def __init__(self, memory: Memory, *, user: str, org: str = "default", bot: str = "default") -> None:
        self._memory, self._user, self._org, self._bot = memory, user, org, bot

    def append(self, session: str, message_or_messages: MessageLike | Sequence[MessageLike]) -> None:
        """Store one message, or all of several."""
        self.conversation(session).append(message_or_messages)

    def load(self, session: str) -> list[Message]:
        """Return the messages of a session, oldest first."""
        return [replace(message, conversation=session) for message in self.conversation(session).load()]

    def clear(self, session: str) -> None:
        """Delete a session, with the facts that were learned from it alone."""
        self.conversation(session).clear()

    def conversation(self, session: str) -> Conversation:
        """Return the conversation that holds *session*; a name that no conversation can have is hashed."""
        name = checked_session(session)
        valid = len(name) <= MAX_NAME_CHARS and not any(unicodedata.category(char) == "Cc" for char in name)
        if not valid or name.startswith(HASHED_NAME_PREFIX):
            name = HASHED_NAME_PREFIX + hashlib.sha256(name.encode()).hexdigest()
        return self._memory.conversation(name, user=self._user, org=self._org, bot=self._bot)


def memory_sessions(
    open_memory: Callable[[], Memory], options: WrapOptions
) -> Callable[[str, str | None], TurnSession]:
    """Return the function that opens a session of a memory."""
    return lambda session, user: _MemorySession(open_memory(), options, session, user or _user_of(session, options))


def _user_of(session: str, options: WrapOptions) -> str:
    """Return the user of a session that names none: one for this session alone, so that sessions share nothing by accident."""
    return "default" if session in ("default", options.session) else f"session:{session}"[:MAX_NAME_CHARS]


class _MemorySession:
    """The turns of a session in a conversation of a memory."""

    def __init__(self, memory: Memory, options: WrapOptions, session: str, user: str) -> None:
        self._options = options
        self._chat = memory.conversation(
            session, user=user, org=options.org, bot=options.bot, strategy=options.strategy
        )
        self._remembered = True
        self.identity = (options.org, options.bot, user, session)

    def store_input(self, new: Sequence[Message], key: str | None, running: Container[TurnId]) -> int:
        if key is None:
            again = _find_retried(self._chat.load(last=len(new) + 1), new)
            if again is not None and (self.identity, again.seq) not in running:
                return again.seq
            return self._last_seq(self._chat.append(list(new)))
        receipt = self._chat.append(list(new), idempotency_key=f"input {key}")
        if receipt.skipped:
            return self._last_seq(receipt)
        if receipt.duplicate:
            after = self._chat.load(start_seq=receipt.seqs[-1] + 1, limit=MAX_MESSAGES_TO_REPLY)
            if (self.identity, receipt.seqs[-1]) in running:
                raise _being_answered(key)
            if any(m.role == "assistant" and m.meta.get(TURN_KEY) == key and not m.meta.get(INCOMPLETE) for m in after):
                raise _already_answered(key)
        return receipt.seqs[-1]

    def _last_seq(self, receipt: Receipt) -> int:
        """Return the number of the last message; 0 when the user does not want to be remembered."""
        self._remembered = not receipt.skipped
        return receipt.seqs[-1] if self._remembered else 0

    def build_context(self, new: Sequence[Message], *, stored: bool = True) -> list[dict[str, Any]]:
        if not self._remembered:
            return [*self._options.system_messages(), *map(_openai_message, new)]
        question = new[-1].content if new[-1].role == "user" else ""
        context = self._chat.context(
            question if question.strip() else None,
            budget_tokens=self._options.budget_tokens,
            system=self._options.system,
            count=self._options.count,
        )
        messages = [dict(message) for message in context.messages]
        if stored:
            return messages
        asked = bool(messages) and messages[-1]["role"] == "user" and messages[-1]["content"] == question
        return [*(messages[:-1] if asked else messages), *map(_openai_message, new)]

    def store_reply(self, reply: Message, key: str | None) -> None:
        self._chat.append(reply, idempotency_key=None if key is None else f"reply {key}")


# Turns in a store of plain messages.


@dataclass(slots=True)
class _StoreOptions:
    """The options that all sessions of one message store share, and the summaries that the store cannot keep."""

    store: MessageLog
    strategy: Buffer | Window | TokenBuffer | Summary | SummaryBuffer
    options: WrapOptions
    summaries: dict[str, tuple[RollingSummary, str]] = field(
        default_factory=dict
    )  # with the last message that each covers
    running: dict[str, bool] = field(default_factory=dict)  # sessions whose summary is being written; whether once more
    lock: threading.Lock = field(default_factory=threading.Lock)

    def later(self, session: str, work: Callable[[], None]) -> None:
        """Bring a summary up to date: at once by rules, in a thread by a function of the user's, for which no reply waits."""
        if getattr(self.strategy, "summarize", None) is None:
            work()
            return
        with self.lock:
            again = session in self.running
            self.running[session] = again
        if not again:
            threading.Thread(target=self._write, args=(session, work), name="holdfast-summary").start()

    def _write(self, session: str, work: Callable[[], None]) -> None:
        while True:
            work()
            with self.lock:
                if not self.running.pop(session):
                    return
                self.running[session] = False


def store_sessions(store: MessageLog, options: WrapOptions) -> Callable[[str, str | None], TurnSession]:
    """
    Return the function that opens a session of *store*; it ignores the user of a call's configuration.

    Raises:
        ConfigError: the strategy needs a memory, a user was named, or *store* is no store.
    """
    strategy = options.strategy if options.strategy is not None else Buffer()
    if not isinstance(strategy, CLASSIC_STRATEGIES):
        hint = "use Buffer, Window, TokenBuffer, Summary or SummaryBuffer, or a Memory"
        raise ConfigError(f"the strategy {getattr(strategy, 'name', strategy)!s} needs a memory", hint=hint)
    if isinstance(options.user, str):
        raise ConfigError("a message store knows no users", hint="put the user into the session")
    if not all(callable(getattr(store, name, None)) for name in ("append", "load")):
        raise ConfigError(f"{type(store).__name__} is neither a Memory nor a message store")
    if any(inspect.iscoroutinefunction(getattr(store, name, None)) for name in ("append", "load", "clear")):
        hint = "give it plain functions: the async calls of the wrapper run them in a thread"
        raise ConfigError(f"{type(store).__name__} is an async store, which cannot be used", hint=hint)
    shared = _StoreOptions(store, strategy, options)
    return lambda session, user: _StoreSession(shared, checked_session(session))


class _StoreSession:
    """The turns of a session in a message store."""

    def __init__(self, shared: _StoreOptions, session: str) -> None:
        self._shared, self._session = shared, session
        self._history: list[Message] = []
        self.identity = (session,)

    def store_input(self, new: Sequence[Message], key: str | None, running: Container[TurnId]) -> int:
        history = self._shared.store.load(self._session)
        again = self._find_by_key(history, new, key) if key is not None else _find_retried(history, new)
        busy = again is not None and (self.identity, again.seq) in running
        if busy and key is not None:
            raise _being_answered(key)
        if again is not None and not busy:
            broken_off = history[-1].role == "assistant" and history[-1].meta.get(INCOMPLETE)
            self._history = history[:-1] if broken_off else history
            return again.seq
        self._append(new)
        self._history = [*history, *new]
        return len(self._history)

    def _find_by_key(self, history: Sequence[Message], new: Sequence[Message], key: str) -> Message | None:
        """Return the last message of the unanswered input that was stored under *key*."""
        known = [message for message in history if message.meta.get(TURN_KEY) == key]
        before = [message for message in known if message.role != "assistant"]
        if any(message.role == "assistant" and not message.meta.get(INCOMPLETE) for message in known):
            raise _already_answered(key)
        if before and not _same_messages(before, new):
            raise Conflict(f"idempotency key {key!r} was used in this session with another input")
        return before[-1] if before else None

    def build_context(self, new: Sequence[Message], *, stored: bool = True) -> list[dict[str, Any]]:
        if not stored:
            self._history = [*self._shared.store.load(self._session), *new]
        options, summary = self._shared.options, self._load_summary()
        budget, system = options.budget_tokens, options.system
        if budget is not None and system is not None:
            budget -= (options.count or count_tokens)(system) + MESSAGE_OVERHEAD_TOKENS
            if budget < 1:
                raise BadInput("the system text alone takes the whole budget", hint="raise budget_tokens")
        told = [one for one, after in zip_longest(self._history, self._history[1:]) if not _is_retried(one, after)]
        shown = self._shared.strategy.apply(
            told if summary is None else self._history, budget_tokens=budget, summary=summary, count=options.count
        )
        return [*options.system_messages(), *map(_openai_message, shown)]

    def store_reply(self, reply: Message, key: str | None) -> None:
        self._append([reply])
        if isinstance(self._shared.strategy, Summary | SummaryBuffer):
            self._shared.later(self._session, lambda: self._update_summary(self._shared.strategy))

    def _append(self, messages: Sequence[Message]) -> None:
        """Store *messages*: together in a store of ours, one by one in another, which need not know lists."""
        store = self._shared.store
        if len(messages) > 1 and isinstance(store, KeepsSummaries | UserMessages):
            store.append(self._session, list(messages))
            return
        for message in messages:
            store.append(self._session, message)

    def _update_summary(self, strategy: Strategy) -> None:
        """Fold new messages into the summary; done after the reply, which a failure here must not cost."""
        options = self._shared.options
        try:
            self._history = messages = self._shared.store.load(self._session)
            before = self._load_summary()
            assert isinstance(strategy, Summary | SummaryBuffer)
            after = strategy.fold(messages, before, budget_tokens=options.budget_tokens, count=options.count)
            if before is not None and after.through <= before.through:
                return
            if isinstance(self._shared.store, KeepsSummaries):
                self._shared.store.save_summary(self._session, after)
            elif after.through:
                self._shared.summaries[self._session] = (after, messages[after.through - 1].content)
        except Exception as error:  # noqa: BLE001 - a summary can wait, the reply is there
            _log.warning("the summary of a session was not brought up to date: %s", type(error).__name__)

    def _load_summary(self) -> RollingSummary | None:
        if not isinstance(self._shared.strategy, Summary | SummaryBuffer):
            return None
        if isinstance(self._shared.store, KeepsSummaries):
            return self._shared.store.load_summary(self._session)
        summary, last = self._shared.summaries.get(self._session, (None, ""))
        if summary is None or self._history[summary.through - 1 : summary.through] == []:
            return None
        # one of messages that are no longer there was made before the session was cleared
        return summary if self._history[summary.through - 1].content == last else None
