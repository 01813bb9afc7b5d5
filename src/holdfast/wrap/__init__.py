"""
`with_memory`: any callable "messages in, reply out" becomes one that remembers.

    chat = with_memory(model, memory)
    chat("I'm vegetarian.", session="web-42", user="ana")

Before the call the input is stored and the context is built; after it the reply is stored.  What
may go wrong in between, and what is in the store then:

    the model fails              the input, once; the same input again in that session goes on from it
    a stream is left, or fails   the input, and what was said, marked ``meta={"incomplete": True}``
    the process dies             the input; the same input again goes on from it
    the same key comes again     the input, once; `Conflict` when it was answered already

So that nothing is told twice, an input that equals the last one of its session, still without a
whole reply and with no call of this process at work on it, is that one tried again.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator
from typing import Any

from ..aio import AsyncMemory
from ..context.budget import Count
from ..errors import ConfigError
from ..memory import Memory
from ..store.messages import MessageLog
from ..strategies import Strategy
from .replies import ReplyText, Spoken
from .session import session_places
from .turns import Options, Turn, Turns
from .user import UserMessages, user_places

__all__ = ["UserMessages", "with_memory"]


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
    as *call* is, and returns or yields what *call* does.  Three keywords are its own:

    - ``session``: which conversation.  Otherwise ``config["configurable"]["session_id"]``, then
      ``config["metadata"]["session_id"]``, then the default given here.
    - ``user``: whose memory, in the same way as ``user_id``.  A message store knows sessions only.
    - ``idempotency_key``: names one turn with all its attempts, in the same way.

    ``config`` reaches *call* when it has such a parameter.

    Args:
        call: is given messages in OpenAI's shape and returns text, a message, a provider's response, or a
            stream of it; an object with ``invoke`` will do.
        memory_or_store: where turns are kept.
        session: the conversation when a call names none.
        user: whose memory it is when a call names nobody; ``"default"`` when not given.
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
    store = memory_or_store._sync if isinstance(memory_or_store, AsyncMemory) else memory_or_store
    options = Options(session, user, org, bot, strategy, budget_tokens, system, reply_text, count)
    places = user_places(store, options) if isinstance(store, Memory) else session_places(store, options)
    target = call if callable(call) else getattr(call, "invoke", None)
    if not callable(target):
        raise ConfigError(f"{type(call).__name__} cannot be called", hint="give a function, or an object with invoke")
    return _wrapped(target, Turns(options, places))


def _wrapped(call: Callable[..., Any], turns: Turns) -> Callable[..., Any]:
    takes_config = _takes_config(call)

    def ask(turn: Turn, args: tuple[Any, ...], more: dict[str, Any]) -> Any:
        if not takes_config:
            more.pop("config", None)
        with turns.failing(turn):
            return call(turn.messages, *args, **more)

    def sync_call(given: Any, /, *args: Any, **more: Any) -> Any:
        turn = turns.begin(given, more)
        reply = ask(turn, args, more)
        if inspect.isawaitable(reply):
            return _answered(turns, turn, reply)
        if hasattr(reply, "__aiter__"):
            return _left(_relayed_async(turns, turn, reply), turns, turn)
        if hasattr(reply, "__next__"):
            return _left(_relayed(turns, turn, reply), turns, turn)
        turns.finish(turn, reply)
        return reply

    async def async_call(given: Any, /, *args: Any, **more: Any) -> Any:
        turn = await asyncio.to_thread(turns.begin, given, more)
        return await _answered(turns, turn, ask(turn, args, more))

    async def async_stream(given: Any, /, *args: Any, **more: Any) -> AsyncIterator[Any]:
        turn = await asyncio.to_thread(turns.begin, given, more)
        relayed = _relayed_async(turns, turn, ask(turn, args, more))
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


async def _answered(turns: Turns, turn: Turn, awaited: Awaitable[Any]) -> Any:
    """The reply, stored; or the stream that it turned out to be."""
    with turns.failing(turn):
        reply = await awaited
    if hasattr(reply, "__aiter__"):
        return _left(_relayed_async(turns, turn, reply), turns, turn)
    await asyncio.shield(asyncio.to_thread(turns.finish, turn, reply))
    return reply


def _relayed(turns: Turns, turn: Turn, chunks: Iterator[Any]) -> Generator[Any, None, None]:
    """Hand on *chunks*, and store what they said however they end."""
    spoken, whole = Spoken(turns.options.reply_text), False
    try:
        for chunk in chunks:
            spoken.add(chunk)
            yield chunk
        whole = True
    finally:
        try:
            if not whole and hasattr(chunks, "close"):
                chunks.close()
        finally:
            turns.finish_stream(turn, spoken, whole)


async def _relayed_async(turns: Turns, turn: Turn, chunks: AsyncIterator[Any]) -> AsyncGenerator[Any, None]:
    """`_relayed` for an async stream; storing runs to its end even when the task is cancelled meanwhile."""
    spoken, whole = Spoken(turns.options.reply_text), False
    try:
        async for chunk in chunks:
            spoken.add(chunk)
            yield chunk
        whole = True
    finally:
        try:
            if not whole and hasattr(chunks, "aclose"):
                await chunks.aclose()
        finally:
            await asyncio.shield(asyncio.to_thread(turns.finish_stream, turn, spoken, whole))


def _left(stream: Any, turns: Turns, turn: Turn) -> Any:
    """*stream*; when it is thrown away without a look into it, its turn is no longer at work."""
    weakref.finalize(stream, turns.let_go, turn).atexit = False
    return stream


def _takes_config(call: Callable[..., Any]) -> bool:
    try:
        return "config" in inspect.signature(call).parameters
    except (TypeError, ValueError):  # some callables in C have no signature
        return False
