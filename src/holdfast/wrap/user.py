"""Turns that are kept in a memory, and a user's conversations as a message store."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from typing import Any

from ..conversation import Conversation
from ..incoming import MessageLike
from ..memory import Memory
from ..reports import Receipt
from ..scope import MAX_NAME_CHARS
from ..store.messages import checked_session
from ..types import Message
from .session import openai_message
from .turns import INCOMPLETE, KEY, Mark, Options, Place, answered, being_answered, retried

DIGEST = "~"
MOST_LATER = 100  # messages after an input among which its reply is looked for


class UserMessages:
    """
    One user's conversations as a store of messages: a session is a conversation.

        store = UserMessages(memory, user="ana")
        store.append("s1", {"role": "user", "content": "Hello"})

    What is appended here is read, summarised and recalled like everything in the memory.
    """

    def __init__(self, memory: Memory, *, user: str, org: str = "default", bot: str = "default") -> None:
        self._memory, self._user, self._org, self._bot = memory, user, org, bot

    def append(self, session: str, message_or_messages: MessageLike | Sequence[MessageLike]) -> None:
        """See `MessageLog.append`."""
        self.conversation(session).append(message_or_messages)

    def load(self, session: str) -> list[Message]:
        """See `MessageLog.load`."""
        return [replace(message, conversation=session) for message in self.conversation(session).load()]

    def clear(self, session: str) -> None:
        """See `MessageStore.clear`; what was learned from the session alone goes with it."""
        self.conversation(session).clear()

    def conversation(self, session: str) -> Conversation:
        """The conversation that holds *session*; a session that cannot name one has its digest for a name."""
        name = checked_session(session)
        plain = len(name) <= MAX_NAME_CHARS and not any(unicodedata.category(char) == "Cc" for char in name)
        if not plain or name.startswith(DIGEST):
            name = DIGEST + hashlib.sha256(name.encode()).hexdigest()
        return self._memory.conversation(name, user=self._user, org=self._org, bot=self._bot)


def user_places(memory: Memory, options: Options) -> Callable[[str, str | None], Place]:
    """Where the turns of a session are: in a conversation of *memory*."""
    return lambda session, user: _Talk(memory, options, session, "default" if user is None else user)


class _Talk:
    def __init__(self, memory: Memory, options: Options, session: str, user: str) -> None:
        self._options = options
        self._chat = memory.conversation(
            session, user=user, org=options.org, bot=options.bot, strategy=options.strategy
        )
        self._kept = True
        self._name = (options.org, options.bot, user, session)

    @property
    def name(self) -> tuple[str, ...]:
        return self._name

    def take(self, new: Sequence[Message], key: str | None, at_work: Container[Mark]) -> int:
        if key is None:
            again = retried(self._chat.load(last=len(new) + 1), new)
            if again is not None and (self.name, again.seq) not in at_work:
                return again.seq
            return self._last(self._chat.append(list(new)))
        receipt = self._chat.append(list(new), idempotency_key=f"input {key}")
        if receipt.skipped:
            return self._last(receipt)
        later = self._chat.load(start_seq=receipt.seqs[-1] + 1, limit=MOST_LATER) if receipt.duplicate else []
        if receipt.duplicate and (self.name, receipt.seqs[-1]) in at_work:
            raise being_answered(key)
        if any(m.role == "assistant" and m.meta.get(KEY) == key and not m.meta.get(INCOMPLETE) for m in later):
            raise answered(key)
        return receipt.seqs[-1]

    def _last(self, receipt: Receipt) -> int:
        """The number of the last message; 0 when the user does not want to be remembered."""
        self._kept = not receipt.skipped
        return receipt.seqs[-1] if self._kept else 0

    def context(self, new: Sequence[Message]) -> list[dict[str, Any]]:
        if not self._kept:
            head = [] if self._options.system is None else [{"role": "system", "content": self._options.system}]
            return [*head, *map(openai_message, new)]
        asked = new[-1].content if new[-1].role == "user" else ""
        context = self._chat.context(
            asked if asked.strip() else None,
            budget_tokens=self._options.budget_tokens,
            system=self._options.system,
            count=self._options.count,
        )
        return [dict(message) for message in context.messages]

    def put(self, reply: Message, key: str | None) -> None:
        self._chat.append(reply, idempotency_key=None if key is None else f"reply {key}")
