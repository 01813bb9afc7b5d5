"""
`with_memory`: give a memory to any callable that takes messages and returns a reply.

    chat = with_memory(model, memory)
    chat("I'm vegetarian.", session="web-42", user="ana")

The wrapper stores the input and builds the context before the call, and stores the reply after it.  After a
failure in between, the store holds:

    the model fails                  the input, once; the same input again in that session goes on from it
    a stream is closed, or fails     the input, and the text so far, marked ``meta={"incomplete": True}``
    the process dies                 the input; the same input again goes on from it
    the same key comes again         the input, once; `Conflict` when it was answered already

An input that equals the last one of its session is a retry of it, as long as that one has no whole reply and no
call of this process is still answering it.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import inspect
import json
import logging
import threading
import unicodedata
import weakref
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Container,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ..aio import AsyncMemory
from ..clock import utc_now
from ..context.material import Count
from ..conversation import Conversation
from ..errors import BadInput, ConfigError, Conflict
from ..memory import Memory
from ..reports import Receipt
from ..scope import MAX_NAME_CHARS
from ..store.messages import MAX_MESSAGE_CHARS, KeepsSummaries, MessageLog, checked_session
from ..text.terms import MESSAGE_OVERHEAD_TOKENS, CalibratedCounter, count_tokens
from ..text.validate import MessageLike, checked_messages
from ..types import Message, ReplyUsage, RollingSummary
from .strategies import Buffer, Strategy, Summary, SummaryBuffer, TokenBuffer, Window

__all__ = ["UserMessages", "with_memory"]

ReplyText = Callable[[Any], str | None]
"""Returns the text of a reply, or of one chunk of it; ``None`` where it holds none."""

CLASSIC_STRATEGIES = (Buffer, Window, TokenBuffer, Summary, SummaryBuffer)
TURN_KEY, INCOMPLETE = "turn", "incomplete"  # keys of a message's meta
WRAPPER_KEYWORDS = ("session", "user", "idempotency_key")
COMPARED_META = ("tool_calls", "tool_call_id", "parts")
HASHED_NAME_PREFIX = "~"
MAX_MESSAGES_TO_REPLY = 100  # messages after an input among which its reply is looked for
LOCKS = 64

_log = logging.getLogger("holdfast")


@dataclass(frozen=True, slots=True)
class WrapOptions:
    """The options of `with_memory`."""

    session: str
    user: str | None
    org: str
    bot: str
    strategy: Strategy | None
    budget_tokens: int | None
    system: str | None
    reply_text: ReplyText | None
    count: Count | None

    def system_messages(self) -> list[dict[str, Any]]:
        """Return the system prompt as the messages to put first."""
        return [] if self.system is None else [{"role": "system", "content": self.system}]


def with_memory(
    call: Any,
    memory_or_store: Memory | AsyncMemory | MessageLog,
    *,
    session: str = "default",
    user: str | None = None,
    org: str = "default",
    bot: str = "default",
    strategy: Strategy | None = None,
    budget_tokens: int | None = None,
    system: str | None = None,
    reply_text: ReplyText | None = None,
    count: Count | None = None,
) -> Callable[..., Any]:
    """
    Wrap *call* so that it is given the context of its session, and every turn is stored.

    The result takes the new input (text, a message, or a list of them) where *call* takes all
    messages, and passes further arguments on.  It is sync, async, a generator or an async generator
    as *call* is, and returns or yields the same.  The wrapper reads three keywords itself:

    - ``session``: which conversation.  Otherwise ``config["configurable"]["session_id"]``, then
      ``config["metadata"]["session_id"]``, then the default given here.
    - ``user``: whose memory, in the same way as ``user_id``.  A message store knows sessions only.
    - ``idempotency_key``: names one turn with all its attempts, in the same way.

    ``config`` reaches *call* when it has such a parameter.

    Args:
        call: is given messages in OpenAI's shape and returns text, a message, a provider's response, or a
            stream of it; an object with ``invoke`` will do.
        memory_or_store: where turns are kept.  An `AsyncMemory` that is not open yet is opened by the first call.
        session: the conversation when a call names none.
        user: whose memory it is when a call names no user; ``"default"`` when not given.
        org: the tenant.
        bot: the assistant.
        strategy: what *call* sees: the layered one for a memory, `Buffer` for a message store when not given.
        budget_tokens: what the messages may cost; ``Config.budget_tokens`` for a memory, without bound for
            a message store when not given.
        system: a system prompt, put first and not stored.
        reply_text: the text of a reply, or of a chunk of it, when its shape is not known here.
        count: how tokens are counted; a `CalibratedCounter` learns from the usage that replies report.

    Raises:
        ConfigError: *call* cannot be called, or an option does not go with a message store.
    """
    options = WrapOptions(session, user, org, bot, strategy, budget_tokens, system, reply_text, count)
    if isinstance(memory_or_store, AsyncMemory):
        later = memory_or_store  # opened by the thread of a call: opening here would block the event loop
        sessions = _memory_sessions(lambda: later._sync, options)
    elif isinstance(memory_or_store, Memory):
        memory = memory_or_store
        sessions = _memory_sessions(lambda: memory, options)
    else:
        sessions = _store_sessions(memory_or_store, options)
    target = call if callable(call) else getattr(call, "invoke", None)
    if not callable(target):
        raise ConfigError(f"{type(call).__name__} cannot be called", hint="give a function, or an object with invoke")
    return _wrap(target, TurnRecorder(options, sessions))


def _wrap(call: Callable[..., Any], recorder: TurnRecorder) -> Callable[..., Any]:
    takes_config = _takes_config(call)

    def ask(turn: WrappedTurn, args: tuple[Any, ...], more: dict[str, Any]) -> Any:
        if not takes_config:
            more.pop("config", None)
        with recorder.released_on_error(turn):
            return call(turn.messages, *args, **more)

    def sync_call(given: Any, /, *args: Any, **more: Any) -> Any:
        turn = recorder.begin(given, more)
        reply = ask(turn, args, more)
        if inspect.isawaitable(reply):
            return _store_awaited(recorder, turn, reply)
        if hasattr(reply, "__aiter__"):
            return _release_if_discarded(_relay_async(recorder, turn, reply), recorder, turn)
        if hasattr(reply, "__next__"):
            return _release_if_discarded(_relay(recorder, turn, reply), recorder, turn)
        recorder.finish(turn, reply)
        return reply

    async def async_call(given: Any, /, *args: Any, **more: Any) -> Any:
        turn = await asyncio.to_thread(recorder.begin, given, more)
        return await _store_awaited(recorder, turn, ask(turn, args, more))

    async def async_stream(given: Any, /, *args: Any, **more: Any) -> AsyncIterator[Any]:
        turn = await asyncio.to_thread(recorder.begin, given, more)
        relayed = _relay_async(recorder, turn, ask(turn, args, more))
        try:
            async for chunk in relayed:
                yield chunk
        finally:
            await relayed.aclose()

    wrapped: Callable[..., Any] = sync_call
    if inspect.isasyncgenfunction(call):
        wrapped = async_stream
    elif inspect.iscoroutinefunction(call):
        wrapped = async_call
    return functools.wraps(call)(wrapped)


async def _store_awaited(recorder: TurnRecorder, turn: WrappedTurn, awaited: Awaitable[Any]) -> Any:
    """Await the reply and store it; return the stream if it turns out to be one."""
    with recorder.released_on_error(turn):
        reply = await awaited
    if hasattr(reply, "__aiter__"):
        return _release_if_discarded(_relay_async(recorder, turn, reply), recorder, turn)
    await asyncio.shield(asyncio.to_thread(recorder.finish, turn, reply))
    return reply


def _relay(recorder: TurnRecorder, turn: WrappedTurn, chunks: Iterator[Any]) -> Generator[Any, None, None]:
    """Yield *chunks*, and store their text however the stream ends."""
    reply, complete = StreamedReply(recorder.options.reply_text), False
    try:
        for chunk in chunks:
            reply.add(chunk)
            yield chunk
        complete = True
    finally:
        try:
            if not complete and hasattr(chunks, "close"):
                chunks.close()
        finally:
            recorder.finish_stream(turn, reply, complete)


async def _relay_async(
    recorder: TurnRecorder, turn: WrappedTurn, chunks: AsyncIterator[Any]
) -> AsyncGenerator[Any, None]:
    """Do as `_relay` for an async stream; the reply is stored even when the task is canceled meanwhile."""
    reply, complete = StreamedReply(recorder.options.reply_text), False
    try:
        async for chunk in chunks:
            reply.add(chunk)
            yield chunk
        complete = True
    finally:
        try:
            if not complete and hasattr(chunks, "aclose"):
                await chunks.aclose()
        finally:
            await asyncio.shield(asyncio.to_thread(recorder.finish_stream, turn, reply, complete))


def _release_if_discarded(stream: Any, recorder: TurnRecorder, turn: WrappedTurn) -> Any:
    """Return *stream*, and release its turn when the stream is discarded unread."""
    weakref.finalize(stream, recorder.release, turn).atexit = False
    return stream


def _takes_config(call: Callable[..., Any]) -> bool:
    try:
        return "config" in inspect.signature(call).parameters
    except (TypeError, ValueError):  # some callables in C have no signature
        return False


# Turns: the input stored once, the context, the reply stored after it.

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

    def build_context(self, new: Sequence[Message]) -> list[dict[str, Any]]:
        """Return the messages for the model, *new* at the end."""

    def store_reply(self, reply: Message, key: str | None) -> None:
        """Store a reply."""


@dataclass(frozen=True, slots=True, eq=False)
class WrappedTurn:
    """A turn that is being answered; the model is given ``messages``."""

    session: TurnSession
    seq: int
    key: str | None
    messages: list[dict[str, Any]] = field(default_factory=list)

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
        named, user, key = (_keyword_or_config(more, name) for name in WRAPPER_KEYWORDS)
        new = _input_messages(given, key)
        name = self.options.session if named is None else named  # an empty one is an error, not the default
        session = self._open_session(name, self.options.user if user is None else user)
        with self._locks[hash(session.identity) % LOCKS]:
            turn = WrappedTurn(session, session.store_input(new, key, self._running), key)
            self._running[turn.id] = turn
        with self.released_on_error(turn):
            turn.messages.extend(session.build_context(new))
        return turn

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
            self._store_reply(turn, message, reported_usage(reply))
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


def _same_messages(stored: Sequence[Message], new: Sequence[Message]) -> bool:
    return len(stored) == len(new) and all(map(_same_message, stored, new))


def _same_message(a: Message, b: Message) -> bool:
    same = (a.role, a.content, a.name) == (b.role, b.content, b.name)
    return same and all(a.meta.get(name) == b.meta.get(name) for name in COMPARED_META)


def _input_messages(given: Any, key: str | None) -> list[Message]:
    messages = [Message("user", given)] if isinstance(given, str) else given
    new = checked_messages(messages, now=utc_now(), max_chars=MAX_MESSAGE_CHARS)
    mark = {TURN_KEY: key} if key else {}
    return [replace(each, at=each.at if dated else None, meta={**each.meta, **mark}) for each, dated in new]


def _keyword_or_config(more: dict[str, Any], name: str) -> str | None:
    """Remove the keyword *name* from *more*; without it read the call's configuration."""
    config = more.get("config")
    value = more.pop(name, None)
    for part in ("configurable", "metadata"):
        inner = config.get(part) if isinstance(config, Mapping) else None
        if value is None and isinstance(inner, Mapping):
            value = inner.get(name if name == "idempotency_key" else f"{name}_id")
    if value is not None and not isinstance(value, str):
        raise BadInput(f"{name} must be text, not {type(value).__name__}")
    return value


def _unreadable(what: str) -> BadInput:
    return BadInput(f"{what} text that could be stored", hint="pass reply_text=, which returns the text")


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


def _memory_sessions(
    open_memory: Callable[[], Memory], options: WrapOptions
) -> Callable[[str, str | None], TurnSession]:
    return lambda session, user: _MemorySession(open_memory(), options, session, "default" if user is None else user)


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

    def build_context(self, new: Sequence[Message]) -> list[dict[str, Any]]:
        if not self._remembered:
            return [*self._options.system_messages(), *map(_openai_message, new)]
        question = new[-1].content if new[-1].role == "user" else ""
        context = self._chat.context(
            question if question.strip() else None,
            budget_tokens=self._options.budget_tokens,
            system=self._options.system,
            count=self._options.count,
        )
        return [dict(message) for message in context.messages]

    def store_reply(self, reply: Message, key: str | None) -> None:
        self._chat.append(reply, idempotency_key=None if key is None else f"reply {key}")


# Turns in a store of plain messages.


@dataclass(slots=True)
class _StoreOptions:
    """The options that all sessions of one message store share, and the summaries that the store cannot keep."""

    store: MessageLog
    strategy: Buffer | Window | TokenBuffer | Summary | SummaryBuffer
    options: WrapOptions
    summaries: dict[str, RollingSummary] = field(default_factory=dict)


def _store_sessions(store: MessageLog, options: WrapOptions) -> Callable[[str, str | None], TurnSession]:
    """
    Return the function that opens a session of *store*; it ignores the user of a call's configuration.

    Raises:
        ConfigError: the strategy needs a memory, a user was named, or *store* is no store.
    """
    strategy = options.strategy if options.strategy is not None else Buffer()
    if not isinstance(strategy, CLASSIC_STRATEGIES):
        hint = "use Buffer, Window, TokenBuffer, Summary or SummaryBuffer, or a Memory"
        raise ConfigError(f"the strategy {strategy.name} needs a memory", hint=hint)
    if options.user is not None:
        raise ConfigError("a message store knows no users", hint="put the user into the session")
    if not all(callable(getattr(store, name, None)) for name in ("append", "load")):
        raise ConfigError(f"{type(store).__name__} is neither a Memory nor a message store")
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
        self._shared.store.append(self._session, list(new))
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

    def build_context(self, new: Sequence[Message]) -> list[dict[str, Any]]:
        options, summary = self._shared.options, self._load_summary()
        budget, system = options.budget_tokens, options.system
        if budget is not None and system is not None:
            budget -= (options.count or count_tokens)(system) + MESSAGE_OVERHEAD_TOKENS
            if budget < 1:
                raise BadInput("the system text alone takes the whole budget", hint="raise budget_tokens")
        shown = self._shared.strategy.apply(self._history, budget_tokens=budget, summary=summary, count=options.count)
        return [*options.system_messages(), *map(_openai_message, shown)]

    def store_reply(self, reply: Message, key: str | None) -> None:
        store = self._shared.store
        store.append(self._session, reply)
        if isinstance(self._shared.strategy, Summary | SummaryBuffer):
            self._update_summary(self._shared.strategy, store.load(self._session))

    def _update_summary(self, strategy: Summary | SummaryBuffer, messages: Sequence[Message]) -> None:
        """Fold new messages into the summary; done after the reply, which a failure here must not cost."""
        before, options = self._load_summary(), self._shared.options
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

    def _load_summary(self) -> RollingSummary | None:
        if not isinstance(self._shared.strategy, Summary | SummaryBuffer):
            return None
        if isinstance(self._shared.store, KeepsSummaries):
            return self._shared.store.load_summary(self._session)
        return self._shared.summaries.get(self._session)


# Replies: the shapes of OpenAI (chat and responses), Anthropic, Google and LangChain, as objects or mappings.  A
# shape that is not known gives ``None``, never an empty text.


def reply_message(reply: object) -> Message | None:
    """Return the assistant's message in a whole *reply*."""
    if isinstance(reply, str):
        return Message("assistant", reply)
    if isinstance(reply, Message):
        return reply
    choice = _first(_get(reply, "choices"))
    message = _get(choice, "message") if choice is not None else reply
    if isinstance(message, str):
        return Message("assistant", message)
    text = _message_text(message)
    calls = _tool_calls(message)
    if text is None and not calls:
        return None
    return Message("assistant", text or "", meta={"tool_calls": calls} if calls else {})


def reported_usage(reply: object) -> ReplyUsage | None:
    """Return the tokens as the provider counted them, where *reply* or a chunk reports them, in OpenAI's or Anthropic's words."""
    usage = _get(reply, "usage")
    asked = _tokens(usage, "prompt_tokens", "input_tokens")
    if not asked:
        return None
    details = _get(usage, "prompt_tokens_details") or _get(usage, "input_tokens_details")
    read, written = _tokens(usage, "cache_read_input_tokens"), _tokens(usage, "cache_creation_input_tokens")
    cached = min(asked, _tokens(details, "cached_tokens")) if details is not None else read
    model, said = _get(reply, "model"), _tokens(usage, "completion_tokens", "output_tokens")
    return ReplyUsage(model if isinstance(model, str) else "", asked + read + written, said, cached)


def _tokens(usage: object, *names: str) -> int:
    found = (_get(usage, name) for name in names)
    return next((count for count in found if isinstance(count, int) and not isinstance(count, bool) and count > 0), 0)


class StreamedReply:
    """A reply put together from the chunks of a stream."""

    def __init__(self, reply_text: ReplyText | None = None) -> None:
        self._reply_text = reply_text or _chunk_text
        self._texts: list[str] = []
        self._calls: dict[int, dict[str, Any]] = {}
        self.chunk_count = 0
        self.usage: ReplyUsage | None = None

    def add(self, chunk: object) -> None:
        """Add the next chunk."""
        self.chunk_count += 1
        text = self._reply_text(chunk)
        if text is not None:
            self._texts.append(text)
        self.usage = reported_usage(chunk) or self.usage
        for part in _get(_get(_first(_get(chunk, "choices")), "delta"), "tool_calls") or ():
            self._add_call(part)

    def message(self) -> Message | None:
        """Return the message so far; ``None`` while no chunk held text or a tool call."""
        if not self._texts and not self._calls:
            return None
        calls = [self._calls[index] for index in sorted(self._calls)]
        return Message("assistant", "".join(self._texts), meta={"tool_calls": calls} if calls else {})

    def _add_call(self, part: object) -> None:
        """Add a piece of a tool call: OpenAI sends its id and name first, its arguments bit by bit."""
        index, function = _get(part, "index"), _get(part, "function")
        empty = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
        call = self._calls.setdefault(index if isinstance(index, int) else len(self._calls), empty)
        call["id"] = _get(part, "id") or call["id"]
        call["function"]["name"] += _get(function, "name") or ""
        call["function"]["arguments"] += _get(function, "arguments") or ""


def _chunk_text(chunk: object) -> str | None:
    if isinstance(chunk, str):
        return chunk
    choice = _first(_get(chunk, "choices"))
    if choice is not None:
        return _join_parts(_get(_get(choice, "delta"), "content"))
    delta = _get(chunk, "delta")
    if isinstance(delta, str):
        return delta if str(_get(chunk, "type")).endswith("output_text.delta") else None
    if delta is not None:
        return _join_parts(_get(delta, "text"))
    content = _join_parts(_get(chunk, "content"))
    if content is not None or _get(chunk, "type") is not None:
        return content
    return _join_parts(_get(chunk, "text"))


def _message_text(message: object) -> str | None:
    for name in ("content", "output_text", "text"):
        text = _join_parts(_get(message, name))
        if text is not None:
            return text
    return None


def _join_parts(content: object) -> str | None:
    """Return text as it is, or the joined text of those parts that hold some."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list | tuple):
        return None
    texts = [part if isinstance(part, str) else _get(part, "text") for part in content]
    found = [text for text in texts if isinstance(text, str)]
    return "".join(found) if found else None


def _tool_calls(message: object) -> list[dict[str, Any]]:
    """Return tool calls in OpenAI's shape, from OpenAI's, LangChain's or Anthropic's."""
    given = _get(message, "tool_calls")
    blocks = _get(message, "content")
    found = list(given) if isinstance(given, list | tuple) else []
    if not found and isinstance(blocks, list | tuple):
        found = [block for block in blocks if _get(block, "type") == "tool_use"]
    return [call for call in map(_tool_call, found) if call["id"] and call["function"]["name"]]


def _tool_call(given: object) -> dict[str, Any]:
    function = _get(given, "function")
    name = _get(function if function is not None else given, "name")
    arguments: Any = next(
        (a for a in (_get(function, "arguments"), _get(given, "args"), _get(given, "input")) if a is not None), {}
    )
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, default=str)
    return {"id": _get(given, "id") or "", "type": "function", "function": {"name": name or "", "arguments": text}}


def _get(value: object, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _first(values: object) -> Any:
    return values[0] if isinstance(values, list | tuple) and values else None
