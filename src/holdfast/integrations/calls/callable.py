"""
`with_memory`: give a memory to anything that takes messages and returns a reply.

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
import inspect
import sys
import threading
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ...aio import AsyncMemory
from ...context.classic import as_strategy
from ...context.material import Count
from ...errors import BadInput, ConfigError
from ...memory import Memory
from ...store.messages import MessageLog
from ...text import dataclass
from .replies import ReplyText, StreamedReply
from .strategies import KINDS, Strategy
from .turns import (
    NameOf,
    TurnRecorder,
    TurnSession,
    UserMessages,
    WrapOptions,
    WrappedTurn,
    memory_sessions,
    store_sessions,
)

__all__ = ["MemoryRunnable", "UserMessages", "with_memory"]

SIDE_BY_SIDE = 8  # sessions of a batch that are answered at a time


def with_memory(
    call: Any,
    memory_or_store: Memory | AsyncMemory | MessageLog,
    session: str | NameOf | None = "default",
    *,
    user: str | NameOf | None = None,
    session_key: str = "session_id",
    user_key: str = "user_id",
    org: str = "default",
    bot: str = "default",
    strategy: Strategy | str | None = None,
    budget_tokens: int | None = None,
    system: str | None = None,
    model: str | None = None,
    input_key: str | None = None,
    history_key: str | None = None,
    reply_text: ReplyText | None = None,
    count: Count | None = None,
) -> MemoryRunnable:
    """
    Wrap *call* so that it is given the context of its session, and every turn is stored.

    Called itself, the result is sync, async, a generator or an async generator as *call* is, takes the new input (text, a
    message, or a list of them), and passes further arguments on; ``config`` reaches *call* when it has such a parameter.
    Keywords of the wrapper's: ``session``, ``user`` and ``idempotency_key``, which names one turn with all its attempts (else it
    reads ``config["configurable"]``, then ``config["metadata"]``); ``read=False``: the input alone, ``write=False``: store nothing.

    Args:
        call: is given messages in OpenAI's shape and returns text, a message, a provider's response, or a stream of it:
            a function, a client with ``chat.completions.create`` or ``responses.create``, or an object with ``invoke``.
        memory_or_store: where turns are kept.  An `AsyncMemory` that is not open yet is opened by the first call.
        session: the conversation when a call names none; ``None``: each call must name one.  A function returns it from
            the configuration of the call.
        user: whose memory it is when a call names none; when not given, each session has a user of its own.  As for *session*.
        session_key: the name of the session in a configuration.
        user_key: the name of the user in a configuration.
        org: the tenant.
        bot: the assistant.
        strategy: what *call* sees, itself or its name (``window/5``); when not given, the layered one for a memory and
            `Buffer` for a message store.
        budget_tokens: what the messages may cost; ``Config.budget_tokens`` for a memory, without bound for
            a message store when not given.
        system: a system prompt, put first and not stored.
        model: the model that a client is asked for.
        input_key: *call* takes a mapping with the messages under this key; an input may be such a mapping.
        history_key: the messages before the input go under this key, and the input alone under *input_key*.
        reply_text: the text of a reply, or of a chunk of it, when its shape is not known here.
        count: how tokens are counted; a `CalibratedCounter` learns from the usage that replies report.

    Raises:
        BadInput: no strategy has that name.
        ConfigError: *call* cannot be called, or an option does not go with a message store.
    """
    if history_key is not None and input_key is None:
        raise ConfigError("history_key needs an input_key", hint='input_key="input" names what the callable reads')
    options = WrapOptions(
        session, user, session_key, user_key, org, bot, as_strategy(strategy, KINDS), budget_tokens, system, reply_text, count,
        input_key, history_key,
    )  # fmt: skip
    return MemoryRunnable(_target_of(call, model), TurnRecorder(options, _sessions_of(memory_or_store, options)))


def _sessions_of(
    memory_or_store: Memory | AsyncMemory | MessageLog, options: WrapOptions
) -> Callable[[str, str | None], TurnSession]:
    if isinstance(memory_or_store, AsyncMemory):
        later = memory_or_store  # opened by the thread of a call: opening here would block the event loop
        return memory_sessions(lambda: later._sync, options)
    if isinstance(memory_or_store, Memory):
        return memory_sessions(lambda: memory_or_store, options)
    return store_sessions(memory_or_store, options)


# Targets: what can be wrapped.


@dataclass(frozen=True, slots=True)
class Target:
    """The calls of what is wrapped; each takes messages first.  ``original`` gives the wrapper its name."""

    original: Any
    call: Callable[..., Any]
    async_call: Callable[..., Any] | None = None
    stream: Callable[..., Any] | None = None
    async_stream: Callable[..., Any] | None = None
    convert: Callable[[Any], Any] | None = None


def _target_of(call: Any, model: str | None) -> Target:
    """
    Return the target for a function, a client, or a runnable.

    Raises:
        ConfigError: it is none of them.
    """
    if inspect.isroutine(call):
        return _no_model(Target(call, call), model)
    for path, name in (("chat.completions", "messages"), ("responses", "input")):
        client = functools.reduce(lambda one, part: getattr(one, part, None), path.split("."), call)
        if callable(create := getattr(client, "create", None)):
            given = {} if model is None else {"model": model}
            ask = functools.partial(_ask_client, create, name, given)
            return Target(create, ask, stream=functools.partial(ask, stream=True))
    if callable(invoke := getattr(call, "invoke", None)):
        ainvoke, stream, astream = (getattr(call, name, None) for name in ("ainvoke", "stream", "astream"))
        return _no_model(Target(invoke, invoke, ainvoke, stream, astream, _converter(call)), model)
    if callable(call):
        return _no_model(Target(call, call), model)
    hint = "give a function, a client with chat.completions.create, or an object with invoke"
    raise ConfigError(f"{type(call).__name__} cannot be called", hint=hint)


def _ask_client(create: Callable[..., Any], name: str, given: Mapping[str, Any], messages: Any, **more: Any) -> Any:
    return create(**{name: messages, **given, **more})


def _no_model(target: Target, model: str | None) -> Target:
    if model is not None:
        raise ConfigError("model= is for a client", hint="a function or a runnable knows its model")
    return target


def _converter(runnable: object) -> Callable[[Any], Any] | None:
    """Return LangChain's own conversion of messages when *runnable* is one of LangChain's, which is imported then."""
    base = getattr(sys.modules.get("langchain_core.runnables"), "Runnable", None)
    convert: Callable[[Any], Any] | None = getattr(
        sys.modules.get("langchain_core.messages"), "convert_to_messages", None
    )
    return convert if base is not None and isinstance(runnable, base) else None


class MemoryRunnable:
    """
    A callable with a memory, from `with_memory`.

    ``invoke`` and ``ainvoke`` return a whole reply (of a stream its text), ``stream`` and ``astream`` yield chunks (of a
    whole reply one), ``batch`` and ``abatch`` answer several inputs: those of a session in their order, sessions side by
    side.  A sync call of something async needs a thread without a running event loop.
    """

    def __init__(self, target: Target, recorder: TurnRecorder) -> None:
        self._target, self._recorder = target, recorder
        self._answer = _as_is(target.call, self)
        functools.update_wrapper(self, target.original, updated=())
        if inspect.iscoroutinefunction(target.call):
            _mark_coroutine_function(self)

    def __call__(self, given: Any, /, *args: Any, **more: Any) -> Any:
        """Answer one input, as the wrapped callable does."""
        return self._answer(given, *args, **more)

    def invoke(self, input: Any, config: Any = None, **more: Any) -> Any:
        """Answer one input, and return the reply."""
        turn = self.begin(input, config, more)
        reply = self.ask(turn, self._target.call, (), more)
        if inspect.isawaitable(reply):
            with self._recorder.released_on_error(turn):
                reply = _run(reply)
        if hasattr(reply, "__aiter__"):
            with self._recorder.released_on_error(turn):
                return _run(self._collect_async(_relay_async(self._recorder, turn, reply)))
        if hasattr(reply, "__next__"):
            return self._collect(_relay(self._recorder, turn, reply))
        self._recorder.finish(turn, reply)
        return reply

    async def ainvoke(self, input: Any, config: Any = None, **more: Any) -> Any:
        """Answer one input without blocking the event loop, and return the reply."""
        turn = await self.begin_async(input, config, more)
        reply = await self._ask_async(turn, self._target.async_call, self._target.call, more)
        if hasattr(reply, "__aiter__"):
            return await self._collect_async(_relay_async(self._recorder, turn, reply))
        if hasattr(reply, "__next__"):
            return await asyncio.to_thread(self._collect, _relay(self._recorder, turn, reply))
        await asyncio.shield(asyncio.to_thread(self._recorder.finish, turn, reply))
        return reply

    def stream(self, input: Any, config: Any = None, **more: Any) -> Iterator[Any]:
        """Answer one input, and yield the reply chunk by chunk; it is stored once, when the stream ends or is cut."""
        turn = self.begin(input, config, more)
        reply = self.ask(turn, self._target.stream or self._target.call, (), more)
        with self._recorder.released_on_error(turn):
            reply = _run(reply) if inspect.isawaitable(reply) else reply
            if hasattr(reply, "__aiter__"):
                raise BadInput("the stream is async", hint="use astream")
        if hasattr(reply, "__next__"):
            yield from _relay(self._recorder, turn, reply)
        else:
            self._recorder.finish(turn, reply)
            yield reply

    async def astream(self, input: Any, config: Any = None, **more: Any) -> AsyncIterator[Any]:
        """Answer one input, and yield the reply chunk by chunk without blocking the event loop."""
        turn = await self.begin_async(input, config, more)
        reply = await self._ask_async(turn, self._target.async_stream, self._target.stream or self._target.call, more)
        if not hasattr(reply, "__aiter__") and not hasattr(reply, "__next__"):
            await asyncio.shield(asyncio.to_thread(self._recorder.finish, turn, reply))
            yield reply
            return
        relayed = _relay_async(self._recorder, turn, reply if hasattr(reply, "__aiter__") else _in_threads(reply))
        try:
            async for chunk in relayed:
                yield chunk
        finally:
            await relayed.aclose()

    def batch(
        self, inputs: Sequence[Any], config: Any = None, *, return_exceptions: bool = False, **more: Any
    ) -> list[Any]:
        """Answer several inputs, and return the replies in their order; *config* is of all, or a list of one for each."""
        configs, groups = self._grouped(inputs, config, more)
        replies: list[Any] = [None] * len(inputs)

        def answer(numbers: list[int]) -> None:
            for number in numbers:
                try:
                    replies[number] = self.invoke(inputs[number], configs[number], **more)
                except Exception as error:
                    if not return_exceptions:
                        raise
                    replies[number] = error

        with ThreadPoolExecutor(max_workers=_side_by_side(configs)) as pool:
            for one in [pool.submit(answer, numbers) for numbers in groups]:
                one.result()
        return replies

    async def abatch(
        self, inputs: Sequence[Any], config: Any = None, *, return_exceptions: bool = False, **more: Any
    ) -> list[Any]:
        """Do as `batch` without blocking the event loop."""
        configs, groups = self._grouped(inputs, config, more)
        replies: list[Any] = [None] * len(inputs)
        free = asyncio.Semaphore(_side_by_side(configs))

        async def answer(numbers: list[int]) -> None:
            async with free:
                for number in numbers:
                    try:
                        replies[number] = await self.ainvoke(inputs[number], configs[number], **more)
                    except Exception as error:
                        if not return_exceptions:
                            raise
                        replies[number] = error

        await asyncio.gather(*map(answer, groups))
        return replies

    def begin(self, given: Any, config: Any, more: dict[str, Any]) -> WrappedTurn:
        """Store the input and build the context; the wrapper's keywords are removed from *more*."""
        if config is not None:
            more["config"] = config
        return self._recorder.begin(given, more)

    async def begin_async(self, given: Any, config: Any, more: dict[str, Any]) -> WrappedTurn:
        """Do as `begin` in a thread; a turn that begins there after its caller was canceled is released at once."""
        begun: list[WrappedTurn] = []
        canceled = threading.Event()

        def begin() -> WrappedTurn:
            begun.append(self.begin(given, config, more))
            if canceled.is_set():
                self._recorder.release(begun[0])
            return begun[0]

        try:
            return await asyncio.to_thread(begin)
        except asyncio.CancelledError:
            canceled.set()
            for turn in begun:
                self._recorder.release(turn)
            raise

    def ask(self, turn: WrappedTurn, call: Callable[..., Any], args: tuple[Any, ...], more: dict[str, Any]) -> Any:
        """Call what is wrapped, with the messages of the turn in the form that it takes."""
        if not _takes_config(call):
            more.pop("config", None)
        with self._recorder.released_on_error(turn):
            return call(self._shaped(turn), *args, **more)

    def _shaped(self, turn: WrappedTurn) -> Any:
        convert = self._target.convert
        if turn.wanted is None:
            return convert(turn.messages) if convert else turn.messages
        key = self._recorder.options.history_key or self._recorder.options.input_key
        return {**turn.wanted, key: convert(turn.wanted[key])} if convert and key else turn.wanted

    async def _ask_async(
        self, turn: WrappedTurn, call: Callable[..., Any] | None, sync: Callable[..., Any], more: dict[str, Any]
    ) -> Any:
        """Call what is wrapped: its async form where there is one, else in a thread; return the reply or its stream."""
        with self._recorder.released_on_error(turn):
            if call is not None or inspect.iscoroutinefunction(sync):
                reply = self.ask(turn, call or sync, (), more)
            else:
                reply = await asyncio.to_thread(self.ask, turn, sync, (), more)
            return await reply if inspect.isawaitable(reply) else reply

    def _collect(self, chunks: Iterator[Any]) -> str:
        reply = StreamedReply(self._recorder.options.reply_text)
        for chunk in chunks:
            reply.add(chunk)
        return reply.text

    async def _collect_async(self, chunks: AsyncIterator[Any]) -> str:
        reply = StreamedReply(self._recorder.options.reply_text)
        async for chunk in chunks:
            reply.add(chunk)
        return reply.text

    def _grouped(
        self, inputs: Sequence[Any], config: Any, more: Mapping[str, Any]
    ) -> tuple[list[Any], list[list[int]]]:
        """Return the configuration of each input, and the numbers of the inputs by session."""
        configs = list(config) if isinstance(config, list | tuple) else [config] * len(inputs)
        if len(configs) != len(inputs):
            raise BadInput(f"{len(inputs)} inputs have {len(configs)} configurations", hint="give one for each, or one")
        groups: dict[tuple[str, str | None], list[int]] = {}
        for number, one in enumerate(configs):
            groups.setdefault(self._recorder.names({**more, "config": one}), []).append(number)
        return configs, list(groups.values())


def _side_by_side(configs: Sequence[Any]) -> int:
    given = next((one.get("max_concurrency") for one in configs if isinstance(one, Mapping)), None)
    return max(1, given) if isinstance(given, int) else SIDE_BY_SIDE


def _as_is(call: Callable[..., Any], runnable: MemoryRunnable) -> Callable[..., Any]:
    """Return the wrapped call of the kind that *call* is."""
    recorder = runnable._recorder

    def sync_call(given: Any, /, *args: Any, **more: Any) -> Any:
        turn = runnable.begin(given, None, more)
        reply = runnable.ask(turn, call, args, more)
        if inspect.isawaitable(reply):
            return _store_awaited(recorder, turn, reply)
        if hasattr(reply, "__aiter__"):
            return _release_if_discarded(_relay_async(recorder, turn, reply), recorder, turn)
        if hasattr(reply, "__next__"):
            return _release_if_discarded(_relay(recorder, turn, reply), recorder, turn)
        recorder.finish(turn, reply)
        return reply

    async def async_call(given: Any, /, *args: Any, **more: Any) -> Any:
        turn = await runnable.begin_async(given, None, more)
        return await _store_awaited(recorder, turn, runnable.ask(turn, call, args, more))

    async def async_stream(given: Any, /, *args: Any, **more: Any) -> AsyncIterator[Any]:
        turn = await runnable.begin_async(given, None, more)
        relayed = _relay_async(recorder, turn, runnable.ask(turn, call, args, more))
        try:
            async for chunk in relayed:
                yield chunk
        finally:
            await relayed.aclose()

    if inspect.isasyncgenfunction(call):
        return async_stream
    return async_call if inspect.iscoroutinefunction(call) else sync_call


def _mark_coroutine_function(wrapper: object) -> None:
    """Make ``iscoroutinefunction`` true of an object whose call returns a coroutine."""
    mark = getattr(inspect, "markcoroutinefunction", None)
    if mark is not None:
        mark(wrapper)
    if marker := getattr(asyncio.coroutines, "_is_coroutine", None):  # before Python 3.12
        wrapper._is_coroutine = marker  # type: ignore[attr-defined]


def _run(awaitable: Awaitable[Any]) -> Any:
    """
    Run something async to its end.

    Raises:
        BadInput: an event loop is running in this thread.
    """

    async def wait() -> Any:
        return await awaitable

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(wait())
    if inspect.iscoroutine(awaitable):
        awaitable.close()
    raise BadInput(
        "what is wrapped is async, and an event loop is running here", hint="await ainvoke(…), or use astream"
    )


async def _in_threads(chunks: Iterator[Any]) -> AsyncGenerator[Any, None]:
    """Yield what a sync stream yields; each chunk is awaited in a thread, and the stream closed when none is."""
    end = object()
    pending: asyncio.Future[Any] | None = None

    async def close() -> None:
        if pending is not None:  # a generator cannot be closed while it runs
            await asyncio.gather(pending, return_exceptions=True)
        if hasattr(chunks, "close"):
            await asyncio.to_thread(chunks.close)

    try:
        while True:
            pending = asyncio.ensure_future(asyncio.to_thread(next, chunks, end))
            if (chunk := await asyncio.shield(pending)) is end:
                break
            yield chunk
    finally:
        await asyncio.shield(close())


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
