"""
Memory for Haystack agents: `memory_hooks`.

    agent = Agent(chat_generator=generator, hooks=memory_hooks(memory))
    agent.run([ChatMessage.from_user("What may I eat?")], hook_context={"user_id": "ana", "conversation": "web-42"})

What memory adds is in the messages while the model is asked, and in none that a run returns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..aio import AsyncMemory
from ..errors import ConfigError
from ..memory import Memory
from ..types import Message
from .common import AdapterMemory, MemoryBlocks, missing_package

try:
    from haystack.components.agents.state import State, replace_values
    from haystack.dataclasses import ChatMessage, ChatRole
    from haystack.hooks import HookPoint
except ImportError as error:
    raise missing_package("Haystack", "haystack", error) from error

__all__ = ["MemoryHook", "memory_hooks"]

BLOCKS = "holdfast.blocks"
"""The key of a run's hook context under which what memory has for the run is kept."""
MARK = {"holdfast": "memory"}
"""The meta of a message that memory added."""


class MemoryHook:
    """A hook at one point of an agent's run; made by `memory_hooks`."""

    def __init__(self, point: HookPoint, call: Callable[[State], None]) -> None:
        self.allowed_hook_points = (point,)
        self._call = call

    def run(self, state: State) -> None:
        """Do the work of this point; a run with ``async`` calls it in a worker thread."""
        self._call(state)

    def to_dict(self) -> dict[str, Any]:
        """
        Refuse to be written to a file.

        Raises:
            ConfigError: always: a memory is not part of a pipeline's file.
        """
        raise ConfigError(
            "a memory cannot be written to a pipeline's file",
            hint="serialize the agent without its hooks, and pass hooks=memory_hooks(memory) when you load it",
        )


def memory_hooks(
    memory: Memory | AsyncMemory,
    *,
    user: str | None = None,
    conversation: str | None = None,
    org: str = "default",
    bot: str = "default",
    subject: str | None = None,
    budget_tokens: int | None = None,
    read: bool = True,
    write: bool = True,
) -> dict[HookPoint, list[Any]]:
    """
    Return the hooks that give an agent memory, for its ``hooks``.

    ``agent.run(…, hook_context={"user_id": …, "conversation": …, "idempotency_key": …})`` names the user, the conversation
    and the turn of a run.

    Args:
        memory: a `Memory` or an `AsyncMemory`.
        user: whose memory it is when a run names no user.
        conversation: the conversation when a run names none.
        org: the tenant.
        bot: the assistant.
        subject: whom or what the conversations are about, when that is not the user.
        budget_tokens: what memory may add to a prompt; ``Config.budget_tokens`` when not given.
        read: ``False`` to store only.
        write: ``False`` to read only.
    """
    members = AdapterMemory(
        memory,
        user=user,
        org=org,
        bot=bot,
        subject=subject,
        budget_tokens=budget_tokens,
        read=read,
        write=write,
    )
    work = _Hooks(members, conversation)
    points: dict[HookPoint, Callable[[State], None]] = {
        "before_run": work.begin,
        "before_llm": work.add_memory,
        "before_tool": work.remove_memory,
        "on_exit": work.remove_memory,
        "after_run": work.finish,
    }
    return {point: [MemoryHook(point, call)] for point, call in points.items()}


class _Hooks:
    def __init__(self, members: AdapterMemory, conversation: str | None) -> None:
        self._members, self._conversation = members, conversation

    def begin(self, state: State) -> None:
        """Store what the user said, and ask the memory once for the whole run."""
        messages = state.data["messages"]
        at = _question_at(messages)
        said = "\n".join(messages[at].texts).strip() if at is not None else ""
        if not said:
            return
        given = state.data.get("hook_context") or {}
        user, conversation = self._of(given)
        self._members.record(conversation, [(_key(given, 0), Message("user", said))], user)
        blocks = self._members.blocks(conversation, said, user, turn=_key(given, 0))
        state.set("hook_context", {**given, BLOCKS: blocks}, handler_override=replace_values)

    def add_memory(self, state: State) -> None:
        """Put what memory has into the messages, before the model is asked."""
        self.remove_memory(state)
        blocks = (state.data.get("hook_context") or {}).get(BLOCKS)
        messages = state.data["messages"]
        at = _question_at(messages)
        if not isinstance(blocks, MemoryBlocks) or at is None:
            return
        head = next((i for i, message in enumerate(messages) if not message.is_from(ChatRole.SYSTEM)), at)
        stable = [_note("user", blocks.stable)] if blocks.stable else []
        earlier = [] if at > head else [_note(said["role"], said["content"]) for said in blocks.recent]
        recalled = [_note("user", blocks.volatile)] if blocks.volatile else []
        _set(state, [*messages[:head], *stable, *earlier, *messages[head:at], *recalled, *messages[at:]])

    def remove_memory(self, state: State) -> None:
        """Take what memory added out of the messages."""
        messages = state.data["messages"]
        own = [message for message in messages if message.meta != MARK]
        if len(own) < len(messages):
            _set(state, own)

    def finish(self, state: State) -> None:
        """Store what the agent replied."""
        self.remove_memory(state)
        given = dict(state.data.get("hook_context") or {})
        asked = given.pop(BLOCKS, None) is not None
        messages = state.data["messages"]
        at = _question_at(messages)
        if not asked or at is None:
            return
        state.set("hook_context", given, handler_override=replace_values)
        texts = ["\n".join(m.texts).strip() for m in messages[at + 1 :] if m.is_from(ChatRole.ASSISTANT)]
        reply = next((text for text in reversed(texts) if text), "")
        if reply:
            user, conversation = self._of(given)
            self._members.record(conversation, [(_key(given, 1), Message("assistant", reply))], user)

    def _of(self, given: Mapping[str, Any]) -> tuple[str, str]:
        conversation = given.get("conversation") or self._conversation or "default"
        return self._members.checked_user(given.get("user_id")), str(conversation)


def _key(given: Mapping[str, Any], number: int) -> str | None:
    named = given.get("idempotency_key")
    return None if named is None else f"haystack {named}:{number}"


def _question_at(messages: Sequence[ChatMessage]) -> int | None:
    """Return where the last message of the user is."""
    found = (i for i, m in enumerate(messages) if m.is_from(ChatRole.USER) and m.meta != MARK)
    return max(found, default=None)


def _note(role: str, text: str) -> ChatMessage:
    make = ChatMessage.from_user if role == "user" else ChatMessage.from_assistant
    return make(text, meta=dict(MARK))


def _set(state: State, messages: list[ChatMessage]) -> None:
    state.set("messages", messages, handler_override=replace_values)
