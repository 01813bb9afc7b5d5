"""
Memory for Strands Agents: `HoldfastPlugin`.

    agent = Agent(model=model, plugins=[HoldfastPlugin(memory, user="ana", conversation="web-42")])
    agent("What may I eat?")

What memory adds is in the call of the model alone: the agent's messages do not hold it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..aio import AsyncMemory
from ..memory import Memory
from ..types import Message
from .common import AdapterMemory, MemoryBlocks, in_thread, missing_package

try:
    from strands.hooks import AfterInvocationEvent, BeforeInvocationEvent
    from strands.middleware import InvokeModelStage
    from strands.plugins import Plugin
except ImportError as error:
    raise missing_package("Strands", "strands", error) from error

__all__ = ["HoldfastPlugin"]

BLOCKS = "holdfast.blocks"
"""The key of an invocation's state under which what memory has for it is kept until it ends."""


class HoldfastPlugin(Plugin):
    """
    A plugin that gives an agent memory.

    ``agent(…, invocation_state={"user_id": …, "session_id": …, "idempotency_key": …})`` names the user, the conversation and
    the turn of one invocation.  Without it they are *user*, and *conversation* or the session of the agent.

    Args:
        memory: a `Memory` or an `AsyncMemory`.
        user: whose memory it is when an invocation names no user.
        conversation: the conversation when an invocation names none.
        org: the tenant.
        bot: the assistant.
        subject: whom or what the conversations are about, when that is not the user.
        budget_tokens: what memory may add to a prompt; ``Config.budget_tokens`` when not given.
        read: ``False`` to store only.
        write: ``False`` to read only.
    """

    name = "holdfast"

    def __init__(
        self,
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
    ) -> None:
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
        self._conversation = conversation
        super().__init__()

    def init_agent(self, agent: Any) -> None:
        """Register with an agent."""
        agent.add_hook(self._before, BeforeInvocationEvent)
        agent.add_hook(self._after, AfterInvocationEvent)
        agent.add_middleware(InvokeModelStage.Input, self._add_memory)

    async def _before(self, event: BeforeInvocationEvent) -> None:
        """Store what the user said, and ask the memory once for the whole invocation."""
        state = event.invocation_state
        state.pop(BLOCKS, None)
        said = _question(event.messages or ())
        if not said:
            return
        user, conversation = self._of(event.agent, state)
        await in_thread(self._members.record, conversation, [(_key(state, 0), Message("user", said))], user)
        state[BLOCKS] = await in_thread(self._members.blocks, conversation, said, user)

    async def _add_memory(self, context: Any) -> Any:
        """Put what memory has into the messages of one call of the model."""
        blocks = context.invocation_state.get(BLOCKS)
        if not isinstance(blocks, MemoryBlocks):
            return context
        messages, trailing = _with_memory(context.messages, blocks)
        return context.replace(messages=messages, dynamic_trailing_blocks=context.dynamic_trailing_blocks + trailing)

    async def _after(self, event: AfterInvocationEvent) -> None:
        """Store what the agent replied."""
        state = event.invocation_state
        asked = state.pop(BLOCKS, None) is not None
        reply = _text(event.result.message) if event.result is not None else ""
        if asked and reply:
            user, conversation = self._of(event.agent, state)
            await in_thread(self._members.record, conversation, [(_key(state, 1), Message("assistant", reply))], user)

    def _of(self, agent: Any, state: Mapping[str, Any]) -> tuple[str, str]:
        conversation = state.get("session_id") or self._conversation or agent.session_id
        return self._members.checked_user(state.get("user_id")), str(conversation)


def _key(state: Mapping[str, Any], number: int) -> str | None:
    named = state.get("idempotency_key")
    return None if named is None else f"strands {named}:{number}"


def _text(message: Mapping[str, Any]) -> str:
    return "\n".join(block["text"] for block in message.get("content", ()) if block.get("text")).strip()


def _question(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the words of the last message of the user, which answers no tool."""
    last = messages[-1] if messages else None
    if last is None or last["role"] != "user" or any("toolResult" in block for block in last["content"]):
        return ""
    return _text(last)


def _with_memory(given: Sequence[Any], blocks: MemoryBlocks) -> tuple[list[Any], int]:
    """
    Return the messages with memory in them, and how many blocks at their end change with the question.

    Models want the roles to alternate, so the blocks go into the messages of the user: the stable one begins the first, the
    volatile one ends the last, behind what a provider keeps cached.
    """
    before: list[Any] = [_user(blocks.stable)] if blocks.stable else []
    if len(given) == 1:
        before += [{"role": said["role"], "content": [{"text": said["content"]}]} for said in blocks.recent]
    after = [_user(blocks.volatile)] if blocks.volatile else []
    messages: list[Any] = []
    for message in [*before, *given, *after]:
        if messages and messages[-1]["role"] == message["role"]:
            messages[-1] = {**messages[-1], "content": [*messages[-1]["content"], *message["content"]]}
        else:
            messages.append(dict(message))
    return messages, len(after)


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"text": text}]}
