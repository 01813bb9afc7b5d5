"""
Memory for Pydantic AI: `MemoryCapability`.

    agent = Agent("openai:gpt-5", capabilities=[MemoryCapability(memory, user="ana")])
    await agent.run("What may I eat?", conversation_id="web-42")

What memory adds is in the request to the model alone: the history of a run does not hold it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..aio import AsyncMemory
from ..memory import Memory
from ..types import Message
from .common import AdapterMemory, MemoryBlocks, in_thread, missing_package

try:
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import (
        ModelMessage,
        ModelRequest,
        ModelResponse,
        SystemPromptPart,
        TextPart,
        UserContent,
        UserPromptPart,
    )
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.run import AgentRunResult
    from pydantic_ai.tools import RunContext
except ImportError as error:
    raise missing_package("Pydantic AI", "pydantic-ai", error) from error

__all__ = ["MemoryCapability"]


@dataclass
class MemoryCapability(AbstractCapability[Any]):
    """
    A capability that gives an agent memory.

    The user is *user*, a function of the run's context, or the ``user_id`` of its ``deps``; the conversation is the run's
    ``conversation_id``.  ``metadata={"idempotency_key": …}`` of a run names a turn with all its attempts.

    Args:
        memory: a `Memory` or an `AsyncMemory`.
        user: whose memory it is.
        org: the tenant.
        bot: the assistant.
        subject: whom or what the conversations are about, when that is not the user.
        budget_tokens: what memory may add to a request; ``Config.budget_tokens`` when not given.
        read: ``False`` to store only.
        write: ``False`` to read only.
    """

    memory: Memory | AsyncMemory
    user: str | Callable[[RunContext[Any]], str] | None = None
    org: str = "default"
    bot: str = "default"
    subject: str | None = None
    budget_tokens: int | None = None
    read: bool = True
    write: bool = True

    def __post_init__(self) -> None:
        self._members = AdapterMemory(
            self.memory,
            user=self.user if isinstance(self.user, str) else None,
            org=self.org,
            bot=self.bot,
            subject=self.subject,
            budget_tokens=self.budget_tokens,
            read=self.read,
            write=self.write,
        )
        self._blocks: MemoryBlocks | None = None

    async def for_run(self, ctx: RunContext[Any]) -> MemoryCapability:
        """Return the capability of one run, which asks the memory once."""
        return replace(self)

    async def before_run(self, ctx: RunContext[Any]) -> None:
        """Store what the user said, before the model is asked."""
        said = _text(ctx.prompt)
        if said:
            await in_thread(
                self._members.record, self._conversation(ctx), [(_key(ctx, 0), Message("user", said))], self._user(ctx)
            )

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Put what memory has for the question into the request."""
        if self._blocks is None:
            question = _text(ctx.prompt)
            self._blocks = await in_thread(
                self._members.blocks, self._conversation(ctx), question or None, self._user(ctx)
            )
        return replace(request_context, messages=_with_memory(request_context.messages, self._blocks))

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        """Store what the agent replied."""
        texts = [
            part.content
            for message in result.new_messages()
            if isinstance(message, ModelResponse)
            for part in message.parts
            if isinstance(part, TextPart) and part.content
        ]
        reply = "\n".join(texts) if texts else str(result.output)
        if reply:
            stored = [(_key(ctx, 1), Message("assistant", reply))]
            await in_thread(self._members.record, self._conversation(ctx), stored, self._user(ctx))
        return result

    def _user(self, ctx: RunContext[Any]) -> str:
        if callable(self.user):
            return self._members.checked_user(self.user(ctx))
        deps = ctx.deps
        named = deps.get("user_id") if isinstance(deps, Mapping) else getattr(deps, "user_id", None)
        return self._members.checked_user(named)

    def _conversation(self, ctx: RunContext[Any]) -> str:
        return ctx.conversation_id or ctx.run_id or "default"


def _key(ctx: RunContext[Any], number: int) -> str:
    named = (ctx.metadata or {}).get("idempotency_key") or ctx.run_id
    return f"pydantic-ai {named}:{number}"


def _text(prompt: str | Sequence[UserContent] | None) -> str:
    """Return the words of a prompt."""
    if prompt is None or isinstance(prompt, str):
        return prompt or ""
    texts = (part if isinstance(part, str) else getattr(part, "content", None) for part in prompt)
    return "\n".join(text for text in texts if isinstance(text, str))


def _with_memory(given: Sequence[ModelMessage], blocks: MemoryBlocks) -> list[ModelMessage]:
    """Return the messages with the stable block behind the system prompt, and the volatile one before the question."""
    messages = list(given)
    at = max((i for i, message in enumerate(messages) if _asks(message)), default=None)
    if at is None:
        return messages
    head: list[ModelMessage] = []
    first = messages[0]
    system = [part for part in first.parts if isinstance(part, SystemPromptPart)]
    if isinstance(first, ModelRequest) and system and len(system) < len(first.parts):
        head = [replace(first, parts=system)]
        messages[0] = replace(first, parts=[part for part in first.parts if not isinstance(part, SystemPromptPart)])
    elif system:
        head, messages, at = messages[:1], messages[1:], at - 1
    history: list[ModelMessage] = messages[:at] or [_message(said) for said in blocks.recent]
    stable, volatile = _block(blocks.stable), _block(blocks.volatile)
    return [*head, *stable, *history, *volatile, *messages[at:]]


def _asks(message: ModelMessage) -> bool:
    return isinstance(message, ModelRequest) and any(isinstance(part, UserPromptPart) for part in message.parts)


def _block(text: str) -> list[ModelMessage]:
    return [ModelRequest(parts=[UserPromptPart(text)])] if text else []


def _message(said: Mapping[str, Any]) -> ModelMessage:
    if said["role"] == "user":
        return ModelRequest(parts=[UserPromptPart(said["content"])])
    return ModelResponse(parts=[TextPart(said["content"])])
