"""
Memory for CrewAI: `CrewMemory`.

    crew_memory = CrewMemory(memory)
    with crew_memory.turn("What may I eat?", user="ana", conversation="web-42"):
        crew.kickoff(inputs={"question": "What may I eat?"})

Every call of a model within the block sees what is known of the user; the output of the crew or flow is the reply.  CrewAI's
own memory is not used: it asks a model and an embedder before it asks any storage.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

from ..aio import AsyncMemory
from ..memory import Memory
from ..text import expression
from ..types import Message
from .common import AdapterMemory, MemoryBlocks, in_thread, missing_package

try:
    from crewai.hooks.dispatch import InterceptionPoint, scoped_hooks
except ImportError as error:
    raise missing_package("CrewAI", "crewai", error) from error

__all__ = ["CrewMemory", "CrewTurn"]

FINAL_ANSWER = expression(r"(?s)^.*\bFinal Answer:\s*")


class CrewMemory:
    """
    The memory of crews, flows and agents.

    Args:
        memory: a `Memory` or an `AsyncMemory`.
        user: whose memory it is when a turn names no user.
        org: the tenant.
        bot: the assistant.
        subject: whom or what the conversations are about, when that is not the user.
        budget_tokens: what memory may add to a prompt; ``Config.budget_tokens`` when not given.
        read: ``False`` to store only.
        write: ``False`` to read only.
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

    def turn(
        self, said: str, *, conversation: str, user: str | None = None, idempotency_key: str | None = None
    ) -> CrewTurn:
        """
        Return a turn, to be used with ``with`` or ``async with``.

        Args:
            said: what the user said.
            conversation: the conversation.
            user: whose memory it is.
            idempotency_key: names the turn with all its attempts.
        """
        return CrewTurn(self._members, said, conversation, self._members.checked_user(user), idempotency_key)


class CrewTurn:
    """
    One turn of a conversation, while a crew, a flow or an agent works on it.

    ``reply`` is what is stored as the answer at the end: the output of the last crew or flow, else what a model said last.
    Set it to store something else.
    """

    def __init__(
        self, members: AdapterMemory, said: str, conversation: str, user: str, idempotency_key: str | None
    ) -> None:
        self._members, self._key = members, idempotency_key
        self._said, self._conversation, self._user = said, conversation, user
        self._blocks = MemoryBlocks("", "", ())
        self._scope: AbstractContextManager[Any] | None = None
        self._prompts: list[_Prompt] = []
        self._answer = ""
        self.reply: str | None = None

    def __enter__(self) -> CrewTurn:
        self._begin()
        return self._hooked()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._unhook()
        if kind is None:
            self._finish()

    async def __aenter__(self) -> CrewTurn:
        await in_thread(self._begin)
        return self._hooked()

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._unhook()
        if kind is None:
            await in_thread(self._finish)

    def _begin(self) -> None:
        """Store what the user said, and ask the memory once for all calls of the turn."""
        if self._said.strip():
            self._record(0, Message("user", self._said))
        self._blocks = self._members.blocks(self._conversation, self._said, self._user)

    def _finish(self) -> None:
        reply = self._answer if self.reply is None else self.reply
        if reply.strip():
            self._record(1, Message("assistant", reply))

    def _record(self, number: int, message: Message) -> None:
        key = None if self._key is None else f"crewai {self._key}:{number}"
        self._members.record(self._conversation, [(key, message)], self._user)

    def _hooked(self) -> CrewTurn:
        self._scope = scoped_hooks(
            {
                InterceptionPoint.PRE_MODEL_CALL: [self._before_model],
                InterceptionPoint.POST_MODEL_CALL: [self._after_model],
                InterceptionPoint.OUTPUT: [self._output],
            }
        )
        self._scope.__enter__()
        return self

    def _unhook(self) -> None:
        assert self._scope is not None, "the turn was entered"
        self._scope.__exit__(None, None, None)
        for prompt in self._prompts:
            prompt.remove()
        self._prompts.clear()

    def _before_model(self, context: Any) -> None:
        """Put what memory has into the messages of a call."""
        prompt = next((one for one in self._prompts if one.messages is context.messages), None)
        if prompt is None:
            prompt = _Prompt(context.messages, self._blocks)
            self._prompts.append(prompt)
        prompt.add()

    def _after_model(self, context: Any) -> None:
        """Take it out again: the messages are part of what a task returns."""
        for prompt in self._prompts:
            if prompt.messages is context.messages:
                prompt.remove()
        if self.reply is None and isinstance(context.response, str):
            self._answer = FINAL_ANSWER.sub("", context.response, count=1).strip()

    def _output(self, context: Any) -> None:
        if type(context.flow).__module__.startswith("crewai."):
            return  # an agent is a flow of CrewAI's own, which says only that it ended
        raw = getattr(context.payload, "raw", context.payload)
        self._answer = raw if isinstance(raw, str) else str(raw)


class _Prompt:
    """The messages of one agent or call, with the place of its question."""

    def __init__(self, messages: list[Any], blocks: MemoryBlocks) -> None:
        self.messages = messages
        self._question = next((m for m in reversed(messages) if m.get("role") == "user"), None)
        self._stable = [{"role": "user", "content": blocks.stable}] if blocks.stable else []
        self._recalled = [{"role": "user", "content": blocks.volatile}] if blocks.volatile else []

    def add(self) -> None:
        """Put the stable block behind the system prompt, and the volatile one right before the question."""
        self.remove()
        at = next((i for i, message in enumerate(self.messages) if message is self._question), None)
        if at is None:
            return
        head = next((i for i, message in enumerate(self.messages) if message.get("role") != "system"), at)
        self.messages[at:at] = self._recalled
        self.messages[head:head] = self._stable

    def remove(self) -> None:
        """Take both out."""
        own = list(self._own())
        self.messages[:] = [message for message in self.messages if not any(message is one for one in own)]

    def _own(self) -> Iterator[dict[str, Any]]:
        yield from self._stable
        yield from self._recalled
