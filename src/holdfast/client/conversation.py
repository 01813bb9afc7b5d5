"""The door to one conversation on a server."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..clock import utc_now
from ..context.budget import Count
from ..context.layered import Strategy
from ..context.result import Context
from ..errors import BadInput, NotFound
from ..reports import ConversationState, ErasureReceipt, RebuildReport, Rebuilt, Receipt
from ..scope import SELF, checked_name
from ..text.validate import MessageLike, checked_count, checked_messages, checked_query
from ..types import Fact, Hit, Message, Summary
from .calls import RAW, Call, T, Whose, part
from .values import message_body, no_function, strategy_body
from .wire import Wire


@dataclass(frozen=True, slots=True)
class Chat:
    """Which conversation it is."""

    whose: Whose
    id: str
    incognito: bool = False

    def order(self, method: str, below: str, **more: Any) -> Call[RAW]:
        """A call below the conversation whose answer is read as it is, or not at all."""
        return self.call(method, below, RAW, **more)

    def call(self, method: str, below: str, returns: type[T], **more: Any) -> Call[T]:
        """A call below the conversation."""
        if self.incognito:
            more["query"] = {**more.get("query", {}), "incognito": True}
        return self.whose.call(method, f"/conversations/{part(self.id)}{below}", returns, **more)


class Conversation:
    """One conversation; made by `Client.conversation`.  See `holdfast.Conversation`."""

    def __init__(self, wire: Wire, chat: Chat, strategy: Strategy | None = None) -> None:
        self._wire = wire
        self._chat = chat
        self._strategy = strategy

    def __repr__(self) -> str:
        return f"Conversation({self.id!r}, user={self._chat.whose.user!r})"

    @property
    def id(self) -> str:
        """Its name, given or made."""
        return self._chat.id

    def append(
        self, message_or_messages: MessageLike | Sequence[MessageLike], *, idempotency_key: str | None = None
    ) -> Receipt:
        """
        Store one message or a list of them; see `holdfast.Conversation.append`.

        Without a key the client makes one, so that a request whose answer was lost is sent again and stored once.
        """
        given = checked_messages(message_or_messages, now=utc_now(), max_chars=sys.maxsize)
        body = {"messages": [message_body(message, dated=dated) for message, dated in given]}
        once = checked_key(idempotency_key) or secrets.token_hex(12)
        return self._wire.send(self._chat.call("POST", "/messages", Receipt, body=body, once=once))

    def record(
        self,
        user_text: str,
        assistant_text: str | None = None,
        *,
        at: datetime | None = None,
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Store one exchange: what the user said and, if there is one, the reply."""
        messages = [Message("user", user_text, at=at)]
        if assistant_text is not None:
            messages.append(Message("assistant", assistant_text, at=at))
        return self.append(messages, idempotency_key=idempotency_key)

    def load(self, *, start_seq: int | None = None, limit: int | None = None, last: int | None = None) -> list[Message]:
        """The messages as they were stored, oldest first; see `holdfast.Conversation.load`."""
        query = {"start_seq": max(1, start_seq or 1), "last": None if last is None else checked_count("last", last)}
        return self._wire.pages(self._chat.order("GET", "/messages", query=query), Message, limit)

    def context(
        self,
        query: str | None = None,
        *,
        budget_tokens: int | None = None,
        strategy: Strategy | None = None,
        system: str | None = None,
        count: Count | None = None,
        note: bool = True,
    ) -> Context:
        """
        What the model should see now; see `holdfast.Conversation.context`.

        The server counts the tokens, so ``count`` is refused; the strategy is one of `holdfast.strategies`.
        """
        no_function("count", count)
        body = {
            "query": checked_query(query) if query else None,
            "budget_tokens": None if budget_tokens is None else checked_count("budget_tokens", budget_tokens),
            "system": system,
            "strategy": strategy_body(strategy if strategy is not None else self._strategy),
            "note": note,
        }
        return self._wire.send(self._chat.call("POST", "/context", Context, body=body, again=True))

    def recall(self, query: str, *, last: int = 50, limit: int = 5) -> list[Hit]:
        """The messages among the last ones that are nearest to *query*, best first."""
        body = {
            "query": checked_query(query),
            "last": checked_count("last", last),
            "limit": checked_count("limit", limit),
        }
        return self._wire.send(self._chat.call("POST", "/recall", list[Hit], body=body, again=True))

    def summaries(self, level: int | None = None, *, live: bool = True) -> list[Summary]:
        """Its summaries by range; with ``live=False`` older versions, too."""
        query = {"level": level, "live": live}
        return self._wire.pages(self._chat.order("GET", "/summaries", query=query), Summary)

    def episodes(self) -> list[Fact]:
        """Facts of kind episode that rest on this conversation, by range."""
        return self._wire.pages(self._chat.order("GET", "/episodes"), Fact)

    def learned(self, *, start_seq: int | None = None, end_seq: int | None = None) -> list[Fact]:
        """Facts, live and past, that rest on messages of this conversation, by where they were first said in it."""
        first, last = start_seq or 1, end_seq or sys.maxsize
        query = {"start_seq": first, "end_seq": end_seq or None}
        found = self._wire.pages(self._chat.order("GET", "/learned", query=query), Fact)
        home = self._chat.whose.subject or SELF

        def place(fact: Fact) -> tuple[int, datetime, str]:
            said = [e.seq for e in fact.evidence if e.conversation == self.id and e.home == home]
            return min(seq for seq in said if first <= seq <= last), fact.recorded_at, fact.id

        return sorted(found, key=place)

    def state(self) -> ConversationState | None:
        """How far it has come; ``None`` before its first message."""
        try:
            return self._wire.send(self._chat.call("GET", "", ConversationState))
        except NotFound:
            return None

    def record_usage(
        self, model: str, *, input_tokens: int, output_tokens: int, cached_tokens: int = 0, cost: float | None = None
    ) -> None:
        """Put on record what your own model used for a reply; see `holdfast.Conversation.record_usage`."""
        body = {
            "model": model,
            "input_tokens": input_tokens,
            "output_tokens": output_tokens,
            "cached_tokens": cached_tokens,
            "cost": cost,
        }
        self._wire.do(self._chat.order("POST", "/usage", body=body))

    def end(self) -> None:
        """Close the open chunk: the conversation is over for now, and its rest can be summarised."""
        self._wire.do(self._chat.order("POST", "/end", again=True))

    def edit(self, seq: int, content: str) -> ErasureReceipt:
        """Put other words in place of a message; what was learned from the old ones goes, the new ones are read."""
        call = self._chat.call("PATCH", message_path(seq), ErasureReceipt, body={"content": content}, again=True)
        return self._wire.send(call)

    def forget(self, seq: int) -> ErasureReceipt:
        """Erase one message and what rested only on it; its number stays, empty."""
        return self._wire.send(self._chat.call("DELETE", message_path(seq), ErasureReceipt))

    def clear(self) -> ErasureReceipt:
        """Erase the conversation and all that rested only on it; the next message is number 1 again."""
        return self._wire.send(self._chat.call("DELETE", "", ErasureReceipt, again=True))

    def rebuild(
        self,
        layer: str,
        *,
        start_seq: int | None = None,
        end_seq: int | None = None,
        dry_run: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> RebuildReport:
        """
        Make one layer again; see `holdfast.Conversation.rebuild`.

        The server does it as a job, and this waits for it; a job whose server ends is raised as `Unreachable` or
        `NotFound`: what it made stays, and the same call does the rest.
        """
        body: dict[str, Any] = {"layer": layer, "dry_run": dry_run}
        body["start_seq"] = None if start_seq is None else checked_count("start_seq", start_seq)
        body["end_seq"] = None if end_seq is None else checked_count("end_seq", end_seq)
        if dry_run:
            estimate = self._chat.call("POST", "/rebuild", RebuildReport, body=body, again=True)
            return self._wire.send(estimate)
        order = self._chat.order("POST", "/rebuild", body=body, once=secrets.token_hex(12))
        return self._wire.finish(order, RebuildReport, progress)

    def rebuilds(self) -> list[Rebuilt]:
        """What was made again here, oldest first; each can be put back with `restore`."""
        return self._wire.pages(self._chat.order("GET", "/rebuilds"), Rebuilt)

    def restore(self, rebuild_id: str) -> RebuildReport:
        """Put back what stood before a rebuild, in one transaction; itself a rebuild that can be put back."""
        return self._wire.send(self._chat.call("POST", f"/rebuilds/{part(rebuild_id)}/restore", RebuildReport))


def checked_key(key: str | None) -> str | None:
    """
    A key of the caller's, which has to pass through a header.

    Raises:
        BadInput: it cannot.
    """
    if key is None:
        return None
    if not checked_name("idempotency_key", key).isascii() or key != key.strip():
        raise BadInput("an idempotency_key that is sent may hold ASCII only", hint="a UUID, for example")
    return key


def message_path(seq: int) -> str:
    return f"/messages/{checked_count('seq', seq)}"
