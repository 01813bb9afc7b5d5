"""
Memory for LlamaIndex: `HoldfastMemory`.

    agent = FunctionAgent(llm=llm, tools=tools)
    await agent.run("What may I eat?", memory=HoldfastMemory.of(memory, "web-42", user="ana"))

It holds the messages of a conversation as LlamaIndex gives them, and begins them with what is known of the user.  Every
message is stored when it is put, not when a buffer overflows.
"""

from __future__ import annotations

from typing import Any

from ..aio import AsyncMemory
from ..conversation import Conversation
from ..errors import ConfigError
from ..memory import Memory
from ..types import Message
from .common import AdapterMemory, HeldMessages, item_of, missing_package, with_item

try:
    from llama_index.core.base.llms.types import ChatMessage, MessageRole
    from llama_index.core.bridge.pydantic import PrivateAttr
    from llama_index.core.memory.types import BaseMemory
except ImportError as error:
    raise missing_package("LlamaIndex", "llamaindex", error) from error

__all__ = ["HoldfastMemory"]

ROLES = {"user": "user", "assistant": "assistant", "chatbot": "assistant", "model": "assistant", "tool": "tool"}


class HoldfastMemory(BaseMemory):
    """A memory of LlamaIndex over a conversation; made by `of`."""

    _members: AdapterMemory = PrivateAttr()
    _session: str = PrivateAttr()
    _turn: str | None = PrivateAttr(default=None)
    _number: int = PrivateAttr(default=0)
    _held: HeldMessages = PrivateAttr()

    @classmethod
    def of(
        cls,
        memory: Memory | AsyncMemory,
        session: str,
        *,
        user: str,
        org: str = "default",
        bot: str = "default",
        subject: str | None = None,
        turn: str | None = None,
        budget_tokens: int | None = None,
        read: bool = True,
        write: bool = True,
    ) -> HoldfastMemory:
        """
        Return the memory of one conversation.

        Args:
            memory: a `Memory` or an `AsyncMemory`.
            session: the conversation.
            user: whose memory it is.
            org: the tenant.
            bot: the assistant.
            subject: whom or what the conversation is about, when that is not the user.
            turn: names the turn that this object is made for, so that a request that comes again is stored once.
            budget_tokens: what memory may add; ``Config.budget_tokens`` when not given.
            read: ``False``: nothing but the conversation itself is returned.
            write: ``False``: nothing is stored.
        """
        made = cls()
        made._members = AdapterMemory(
            memory,
            user=user,
            org=org,
            bot=bot,
            subject=subject,
            budget_tokens=budget_tokens,
            read=read,
            write=write,
        )
        made._held = HeldMessages(made._members)
        made._session, made._turn = session, turn
        return made

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex knows the class."""
        return "HoldfastMemory"

    @classmethod
    def from_defaults(cls, **kwargs: Any) -> HoldfastMemory:
        """
        Do as `of`, by keywords.

        Raises:
            ConfigError: the memory, the session or the user is missing.
        """
        if missing := {"memory", "session", "user"} - set(kwargs):
            raise ConfigError(f"{min(missing)} is missing", hint="from_defaults(memory=…, session=…, user=…)")
        return cls.of(kwargs.pop("memory"), kwargs.pop("session"), **kwargs)

    def get(self, input: str | None = None, **kwargs: Any) -> list[ChatMessage]:
        """Return the messages for the model: what is known, the conversation, and what is recalled before the question."""
        said = self.get_all()
        at = max((i for i, message in enumerate(said) if message.role == MessageRole.USER), default=None)
        stored = said[at].content if at is not None and all(m.role != "assistant" for m in said[at:]) else None
        question = input or stored
        blocks = self._members.blocks(self._session, question, turn=self._next_key())
        before = [_note(blocks.stable)] if blocks.stable else []
        recalled = [_note(blocks.volatile)] if blocks.volatile else []
        cut = at if at is not None and stored is not None and question == stored else len(said)
        return [*before, *said[:cut], *recalled, *said[cut:]]

    def get_all(self) -> list[ChatMessage]:
        """Return the messages of the conversation; without those that an earlier attempt at the turn stored."""
        if self._held.is_needed():
            return list(self._held.of(self._session))
        key, said = self._next_key(), self._chat().load()
        stop = None if key is None else self._members.seq_of(self._session, key)
        return [_restored(message) for message in said if stop is None or (message.seq or 0) < stop]

    def put(self, message: ChatMessage) -> None:
        """Store a message."""
        key, self._number = self._next_key(), self._number + 1
        if self._held.is_needed():
            self._held.of(self._session).append(message)
            return
        ready = _stored(message)
        if key is not None:
            self._members.record(self._session, [(key, ready)])
        elif ready.role == "user":
            self._members.record(self._session, [(None, ready)])
        else:
            self._chat().append(ready)

    def set(self, messages: list[ChatMessage]) -> None:
        """Make the conversation say this: add what is new at its end; erase it first when it begins differently."""
        known = self.get_all()
        if messages[: len(known)] != known:
            self.reset()
            known = []
        for message in messages[len(known) :]:
            self.put(message)

    def reset(self) -> None:
        """Erase the conversation, with all that was learned from it alone."""
        self._chat().clear()

    def _next_key(self) -> str | None:
        """Return the key of the next message of the turn: what is stored under it is of an earlier attempt."""
        return None if self._turn is None else f"llamaindex {self._turn}:{self._number + 1}"

    def _chat(self) -> Conversation:
        return self._members.chat(self._session)


def _note(text: str) -> ChatMessage:
    return ChatMessage(role=MessageRole.USER, content=text)


def _stored(message: ChatMessage) -> Message:
    role = ROLES.get(message.role.value, "system")
    item = message.model_dump(mode="json", exclude_none=True)
    more = {}
    if role == "tool":
        more["tool_call_id"] = str(message.additional_kwargs.get("tool_call_id") or "unknown")
    return with_item(role, message.content or "", item, **more)


def _restored(message: Message) -> ChatMessage:
    item = item_of(message)
    if isinstance(item, dict):
        return ChatMessage.model_validate(item)
    return ChatMessage(role=message.role, content=message.content)
