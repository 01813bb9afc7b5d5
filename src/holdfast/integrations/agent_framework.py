"""
Memory for Microsoft's Agent Framework: `HoldfastHistoryProvider`.

    agent = Agent(client, "Be brief.", context_providers=[HoldfastHistoryProvider(memory, user="ana")])
    await agent.run("What may I eat?", session=AgentSession(session_id="web-42"))

It holds the history of sessions, begins it with what is known of the user, and puts what is recalled right before the question.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..aio import AsyncMemory
from ..memory import Memory
from ..types import Message as StoredMessage
from .common import AdapterMemory, HeldMessages, in_thread, item_of, missing_package, with_item

try:
    from agent_framework import AgentSession, HistoryProvider, Message, SessionContext
except ImportError as error:
    raise missing_package("Microsoft's Agent Framework", "agent-framework", error) from error

__all__ = ["HoldfastHistoryProvider"]

ROLES = ("user", "assistant", "system", "tool")


class HoldfastHistoryProvider(HistoryProvider):
    """
    A history provider with memory.

    The user is ``session.state["user_id"]``, else *user*; the conversation is the session.  A ``message_id`` of the first
    new message names the turn, so that a request that comes again is stored once.

    Args:
        memory: a `Memory` or an `AsyncMemory`.
        user: whose memory it is when a session names no user.
        org: the tenant.
        bot: the assistant.
        subject: whom or what the conversations are about, when that is not the user.
        budget_tokens: what memory may add to a prompt; ``Config.budget_tokens`` when not given.
        read: ``False``: nothing but the conversation itself is shown.
        write: ``False``: nothing is stored.
        source_id: the name of this provider among those of an agent.
    """

    def __init__(
        self,
        memory: Memory | AsyncMemory,
        *,
        user: str | None = None,
        org: str = "default",
        bot: str = "default",
        subject: str | None = None,
        budget_tokens: int | None = None,
        read: bool = True,
        write: bool = True,
        source_id: str = "holdfast",
    ) -> None:
        super().__init__(source_id)
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
        self._held = HeldMessages(self._members)

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """Return the messages of a session of the provider's own user."""
        return await in_thread(self._load, session_id or "default", self._members.checked_user())

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Store messages in a session of the provider's own user."""
        user = self._members.checked_user()
        await in_thread(self._save, session_id or "default", user, list(messages), None, 0)

    async def before_run(
        self, *, agent: Any, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Add history and memory to the context, and store what the user said."""
        user, name = self._of(session, context)
        new = list(context.input_messages)
        context.extend_messages(self, await in_thread(self._before, name, user, new))
        await in_thread(self._save, name, user, new, _turn(new), 0)

    async def after_run(
        self, *, agent: Any, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Store what the agent replied."""
        user, name = self._of(session, context)
        new = list(context.input_messages)
        replies = list(context.response.messages) if context.response is not None else []
        await in_thread(self._save, name, user, replies, _turn(new), len(new))

    def _of(self, session: AgentSession, context: SessionContext) -> tuple[str, str]:
        named = session.state.get("user_id") if session is not None else None
        return self._members.checked_user(named), str(context.session_id or "default")

    def _before(self, name: str, user: str, new: list[Message]) -> list[Message]:
        history = self._load(name, user)
        asked = next((m.text for m in reversed(new) if m.role == "user"), None)
        if history and new and (history[-1].role, history[-1].text) == ("user", new[0].text):
            history.pop()  # the same turn, tried again
        blocks = self._members.blocks(name, asked, user)
        before = [Message("user", [blocks.stable])] if blocks.stable else []
        recalled = [Message("user", [blocks.volatile])] if blocks.volatile else []
        return [*before, *history, *recalled]

    def _load(self, name: str, user: str) -> list[Message]:
        if self._held.is_needed(user):
            return list(self._held.of(name, user))
        return [_restored(message) for message in self._members.chat(name, user).load()]

    def _save(self, name: str, user: str, messages: list[Message], turn: str | None, first: int) -> None:
        if not messages:
            return
        if self._held.is_needed(user):
            self._held.of(name, user).extend(messages)
            return
        keyed = [
            (None if turn is None else f"agent-framework {turn}:{number}", _stored(message))
            for number, message in enumerate(messages, first)
        ]
        self._members.record(name, keyed, user)


def _turn(new: Sequence[Message]) -> str | None:
    return next((str(message.message_id) for message in new if message.message_id), None)


def _stored(message: Message) -> StoredMessage:
    role = str(message.role)
    more: dict[str, Any] = {}
    if role == "tool":
        calls = (getattr(content, "call_id", None) for content in message.contents)
        more["tool_call_id"] = next((str(call) for call in calls if call), "unknown")
    return with_item(role if role in ROLES else "system", message.text, message.to_dict(), **more)


def _restored(message: StoredMessage) -> Message:
    item = item_of(message)
    return Message.from_dict(item) if isinstance(item, dict) else Message(message.role, [message.content])
