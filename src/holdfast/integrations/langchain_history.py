"""
LangChain's chat message history over a conversation: `HoldfastChatMessageHistory`.

    RunnableWithMessageHistory(chain, lambda session_id: HoldfastChatMessageHistory(memory, session_id, user="ana"))

What is added is stored as it was given, and read for facts like every message.  LangChain deprecates its history classes;
agents take the middleware in `langchain`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from ..aio import AsyncMemory
from ..memory import Memory
from ..types import Message
from .common import AdapterMemory, in_thread, item_of, missing_package, with_item

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # they say so when a history is made, too
        from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_core.messages import (
        AIMessage,
        BaseMessage,
        HumanMessage,
        SystemMessage,
        message_to_dict,
        messages_from_dict,
    )
except ImportError as error:
    raise missing_package("LangChain", "langchain", error) from error

__all__ = ["HoldfastChatMessageHistory"]

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
