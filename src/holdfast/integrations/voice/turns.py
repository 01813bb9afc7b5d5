"""The part of a voice program's turn that is the same in every framework: the blocks for the model, and what was said, in order."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from typing import Any

from ...aio import AsyncMemory
from ...memory import Memory
from ...types import Message
from ..calls.turns import INCOMPLETE
from ..common import AdapterMemory, MemoryBlocks, in_thread

log = logging.getLogger("holdfast")

MEASURED = 1_000  # turns of which the time is kept


class VoiceTurns:
    """
    One conversation of one user, by voice.

    Messages are stored in the order in which they were said, behind the turn that they belong to: nobody waits for it but
    the next question.  A memory that fails costs no reply: the call goes on without it, and the log has the kind of the
    error.  ``milliseconds`` holds what memory has cost each of the last turns before its model was asked.
    """

    def __init__(self, members: AdapterMemory, user: str, conversation: str) -> None:
        self._members, self._user, self._conversation = members, user, conversation
        self._last: asyncio.Task[None] | None = None
        self.milliseconds: deque[float] = deque(maxlen=MEASURED)

    async def blocks(self, question: str) -> MemoryBlocks:
        """Return what the prompt gets from memory for a question; nothing when memory fails."""
        begun = time.perf_counter()
        await self.flush()
        try:
            blocks = await in_thread(self._members.blocks, self._conversation, question, self._user)
        except Exception as error:  # noqa: BLE001 - whatever it is, the caller waits for a reply
            log.warning("a turn by voice goes on without memory: %s", type(error).__name__)
            blocks = MemoryBlocks("", "", ())
        self.milliseconds.append((time.perf_counter() - begun) * 1000)
        return blocks

    def said(self, role: str, text: str, *, key: str | None = None, interrupted: bool = False) -> None:
        """Store what was said, soon; of an interrupted reply that is what the user heard."""
        if text.strip():
            message = Message(role, text, meta={INCOMPLETE: True} if interrupted else {})
            self._last = asyncio.create_task(self._store(self._last, key, message))

    async def flush(self) -> None:
        """Wait until all that was said is stored."""
        if self._last is not None:
            await asyncio.shield(self._last)

    async def _store(self, before: asyncio.Task[None] | None, key: str | None, message: Message) -> None:
        if before is not None:
            await asyncio.wait([before])
        try:
            await in_thread(self._members.record, self._conversation, [(key, message)], self._user)
        except Exception as error:  # noqa: BLE001 - nobody asks how this ended
            log.warning("what was said in a turn by voice is not stored: %s", type(error).__name__)


class VoiceMemory:
    """
    The part of a voice framework's own class that has a memory: mixed in before that class.

    ``milliseconds`` holds what memory has cost each of the last turns.

    Args:
        memory: a `Memory` or an `AsyncMemory`.
        user: who speaks.
        conversation: the conversation, such as the id of the call or the name of the room.
        org: the tenant.
        bot: the assistant.
        subject: whom or what the conversation is about, when that is not the user.
        budget_tokens: what memory may add to a prompt; ``Config.budget_tokens`` when not given.
        read: ``False`` to store only.
        write: ``False`` to read only.
        options: passed on to the framework's class.
    """

    def __init__(
        self,
        memory: Memory | AsyncMemory,
        *,
        user: str,
        conversation: str,
        org: str = "default",
        bot: str = "default",
        subject: str | None = None,
        budget_tokens: int | None = None,
        read: bool = True,
        write: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(**options)
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
        self._turns = VoiceTurns(members, members.checked_user(), conversation)
        self.milliseconds = self._turns.milliseconds

    async def flush(self) -> None:
        """Wait until all that was said is stored."""
        await self._turns.flush()
