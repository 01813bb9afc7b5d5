"""
Memory for LangChain: `MemoryMiddleware` for agents, `HoldfastChatMessageHistory` for chains.

    agent = create_agent(model, tools, middleware=[MemoryMiddleware(memory)])
    agent.invoke({"messages": [("user", "What may I eat?")]}, {"configurable": {"thread_id": "web-42", "user_id": "ana"}})

What is known of the user goes in front of the messages, where it stays the same from turn to turn; what is recalled for
the question goes right before it.  Both are in the request to the model alone, never in the state of the agent.

    RunnableWithMessageHistory(chain, lambda session_id: HoldfastChatMessageHistory(memory, session_id, user="ana"))

The history returns what was added as it was given.  LangChain deprecates its history classes; agents take the middleware.
"""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from ..aio import AsyncMemory
from ..errors import BadInput
from ..memory import Memory
from ..types import Message
from .common import AdapterMemory, MemoryBlocks, in_thread, item_of, missing_package, with_item

try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # they say so when a history is made, too
        from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_core.messages import (
        AIMessage,
        AnyMessage,
        BaseMessage,
        HumanMessage,
        SystemMessage,
        message_to_dict,
        messages_from_dict,
    )
    from langgraph.config import get_config
except ImportError as error:
    raise missing_package("LangChain", "langchain", error) from error

__all__ = ["HoldfastChatMessageHistory", "MemoryMiddleware"]

USER_KEYS = ("user_id", "langgraph_auth_user_id")
REMEMBERED_TURNS = 256


class MemoryMiddleware(AgentMiddleware[Any, Any, Any]):
    """
    Middleware that gives an agent memory.

    The user is ``user_id`` of the run's context or ``configurable``, else *user*; the conversation is ``thread_id``, else
    *session*.  ``idempotency_key`` in ``configurable`` names a turn with all its attempts; without it the ids of the
    messages do.

    Args:
        memory: a `Memory` or an `AsyncMemory`.
        user: whose memory it is when a run names no user.
        session: the conversation of runs without a thread.
        org: the tenant.
        bot: the assistant.
        subject: whom or what the conversations are about, when that is not the user.
        budget_tokens: what memory may add to a request; ``Config.budget_tokens`` when not given.
        read: ``False`` to store only.
        write: ``False`` to read only.
    """

    def __init__(
        self,
        memory: Memory | AsyncMemory,
        *,
        user: str | None = None,
        session: str = "default",
        org: str = "default",
        bot: str = "default",
        subject: str | None = None,
        budget_tokens: int | None = None,
        read: bool = True,
        write: bool = True,
    ) -> None:
        super().__init__()
        self.tools: Sequence[Any] = []
        self._session = session
        self._members = AdapterMemory(
            memory,
            user=user,
            org=org,
            bot=bot,
            subject=subject,
            budget_tokens=budget_tokens,
            read=read,
            write=write,
        )
        self._blocks: OrderedDict[tuple[str, str, str], MemoryBlocks] = OrderedDict()
        self._lock = threading.Lock()

    def before_agent(self, state: Any, runtime: Any) -> None:
        """Store what the user said, before the model is asked."""
        self._store(state["messages"], self._run(runtime), "user")

    async def abefore_agent(self, state: Any, runtime: Any) -> None:
        """Do as `before_agent` in a worker thread."""
        run = self._run(runtime)
        await in_thread(self._store, state["messages"], run, "user")

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Ask the model with what memory has for the question."""
        return handler(self._with_memory(request, self._run(request.runtime)))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Do as `wrap_model_call`; the memory is read in a worker thread."""
        run = self._run(request.runtime)
        return await handler(await in_thread(self._with_memory, request, run))

    def after_agent(self, state: Any, runtime: Any) -> None:
        """Store what the agent replied."""
        self._store(state["messages"], self._run(runtime), "assistant")

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        """Do as `after_agent` in a worker thread."""
        run = self._run(runtime)
        await in_thread(self._store, state["messages"], run, "assistant")

    def _run(self, runtime: Any) -> tuple[str, str, str | None]:
        """Return user, conversation and idempotency key of the run that calls."""
        try:
            given: Mapping[str, Any] = get_config().get("configurable") or {}
        except RuntimeError:  # outside of a graph
            given = {}
        context = getattr(runtime, "context", None)
        own = context.get("user_id") if isinstance(context, Mapping) else getattr(context, "user_id", None)
        named = own or next((given[key] for key in USER_KEYS if given.get(key)), None)
        key = given.get("idempotency_key")
        thread = given.get("thread_id")
        return self._members.checked_user(named), str(thread or self._session), None if key is None else str(key)

    def _store(self, messages: Sequence[AnyMessage], run: tuple[str, str, str | None], role: str) -> None:
        """Store the messages of the present turn in one role; earlier ones were stored then, or were not to be."""
        user, thread, key = run
        turn = list(enumerate(_present_turn(messages)))
        said = [
            (f"langchain {key}:{number}" if key else f"langchain {message.id}", Message(role, text))
            for number, message in turn
            if (text := _said(message)) and _role(message) == role
        ]
        self._members.record(thread, said, user)

    def _with_memory(self, request: ModelRequest[Any], run: tuple[str, str, str | None]) -> ModelRequest[Any]:
        messages = list(request.messages)
        at = max((i for i, message in enumerate(messages) if isinstance(message, HumanMessage)), default=None)
        if at is None:
            return request
        question = messages[at]
        blocks = self._blocks_for(run, question)
        before = [HumanMessage(blocks.stable)] if blocks.stable else []
        history = messages[:at]
        if not history:
            history = [_message(said) for said in blocks.recent]
        recalled = [HumanMessage(blocks.volatile)] if blocks.volatile else []
        return request.override(messages=[*before, *history, *recalled, *messages[at:]])

    def _blocks_for(self, run: tuple[str, str, str | None], question: AnyMessage) -> MemoryBlocks:
        """Return what memory has for a question, the same for every call of the model in one turn."""
        user, thread, _ = run
        turn = (user, thread, str(question.id or ""))
        with self._lock:
            found = self._blocks.get(turn) if question.id else None
        if found is None:
            found = self._members.blocks(thread, _said(question), user)
            with self._lock:
                self._blocks[turn] = found
                while len(self._blocks) > REMEMBERED_TURNS:
                    self._blocks.popitem(last=False)
        return found


def _present_turn(messages: Sequence[AnyMessage]) -> Sequence[AnyMessage]:
    """Return the messages from the first that is not answered on, and what answers them."""
    last = max((i for i, message in enumerate(messages) if isinstance(message, HumanMessage)), default=None)
    if last is None:
        return []
    first = last
    while first > 0 and isinstance(messages[first - 1], HumanMessage):
        first -= 1
    return messages[first:]


def _role(message: AnyMessage) -> str:
    return {"human": "user", "ai": "assistant"}.get(str(message.type), str(message.type))


def _said(message: AnyMessage) -> str:
    return str(message.text)


def _message(said: Mapping[str, Any]) -> AnyMessage:
    if said["role"] == "user":
        return HumanMessage(said["content"])
    if said["role"] == "assistant":
        return AIMessage(said["content"])
    raise BadInput(f"a message of role {said['role']!r} is not part of a context")


# Message history

ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
CLASSES: dict[str, Any] = {"user": HumanMessage, "assistant": AIMessage, "system": SystemMessage}


class HoldfastChatMessageHistory(BaseChatMessageHistory):
    """
    The messages of one session, kept in a conversation.

    A message with an id is stored once, however often it is added.

    Args:
        memory: a `Memory` or an `AsyncMemory`.
        session_id: the conversation.
        user: whose memory it is.
        org: the tenant.
        bot: the assistant.
        last: only so many messages are returned, from the end; all when not given.
    """

    def __init__(
        self,
        memory: Memory | AsyncMemory,
        session_id: str,
        *,
        user: str,
        org: str = "default",
        bot: str = "default",
        last: int | None = None,
    ) -> None:
        self._members = AdapterMemory(memory, user=user, org=org, bot=bot)
        self._session, self._last = session_id, last

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """The messages, oldest first; those that were erased are left out."""
        stored = self._members.chat(self._session).load(last=self._last)
        return [_restored(message) for message in stored if message.role in (*CLASSES, "tool")]

    async def aget_messages(self) -> list[BaseMessage]:
        """Return the messages, read in a worker thread."""
        return await in_thread(lambda: self.messages)

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store messages, in order."""
        chat = self._members.chat(self._session)
        for message in messages:
            ready = _stored(message)
            if message.id:
                self._members.record(self._session, [(f"langchain {message.id}", ready)])
            else:
                chat.append(ready)

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store messages in a worker thread."""
        await in_thread(self.add_messages, list(messages))

    def clear(self) -> None:
        """Erase the conversation, with all that was learned from it alone."""
        self._members.chat(self._session).clear()

    async def aclear(self) -> None:
        """Erase the conversation in a worker thread."""
        await in_thread(self.clear)


def _stored(message: BaseMessage) -> Message:
    item = message_to_dict(message)
    role = ROLES.get(message.type, "system")
    more = {"tool_call_id": item["data"].get("tool_call_id") or message.id or "unknown"} if role == "tool" else {}
    return with_item(role, str(message.text), item, **more)


def _restored(message: Message) -> BaseMessage:
    item = item_of(message)
    if isinstance(item, dict):
        return messages_from_dict([item])[0]
    return CLASSES.get(message.role, SystemMessage)(message.content)
