"""
The memory's part of one chat: store the input once, add the context, store the answer.

Everything here is synchronous and may raise; whoever calls it sees to it that a chat never fails for that.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from ...context.assemble import LAYERED, Layout
from ...context.material import Material, TokenMeter
from ...context.result import Context
from ...conversation import Conversation
from ...ingest.redact import redact_secrets
from ...integrations.callable import INCOMPLETE
from ...memory import Memory
from ...types import Message, Summary
from ..gate import Grant, Quotas
from .answer import ReportedUse
from .matching import LOOKED_BACK, Continuation, Same, continuation, digest_of, shown_from, split, stored
from .request import ChatRequest, Inserted, MemoryOptions

UNNAMED = "chat-"
_NAME = "chat-20260101-000000-00000000-"  # how long the part of such a name is that is random
MOST_CANDIDATES = 20  # conversations without a name of the client's among which one is looked for
LOCKS = 64
_INSTRUCTIONS = ("system", "developer")

State = Literal["on", "off", "degraded"]


@dataclass(slots=True)
class ProxiedChat:
    """
    One chat on its way through the proxy.

    ``chat`` is ``None`` when there is no memory for it.  ``keeps``: its answer is stored.  ``notes`` say what was done,
    for the answer's headers.
    """

    state: State
    reason: str = ""
    chat: Conversation | None = None
    keeps: bool = False
    inserted: Sequence[Inserted] = ()
    notes: dict[str, int] = field(default_factory=dict)

    @property
    def header_value(self) -> str:
        """Return the value of the header: ``on; facts=2; tokens=61``, ``off; reason=paused``."""
        if self.reason:
            return f"{self.state}; reason={self.reason}"
        return "; ".join([self.state, *(f"{name}={count}" for name, count in self.notes.items())])


class ChatMemory:
    """The memory's part of all chats of one server."""

    def __init__(self, memory: Memory, quotas: Quotas) -> None:
        self._memory, self._quotas = memory, quotas
        self._locks = [threading.Lock() for _ in range(LOCKS)]
        config = memory.config
        self._same: Same = lambda sent, stored: (
            sent == stored or (config.redact_messages and redact_secrets(sent, config.detectors) == stored)
        )

    def begin(self, request: ChatRequest, wanted: MemoryOptions, grant: Grant, turn: ProxiedChat) -> None:
        """
        Store what is new and build the context; *turn* records how far it got.

        Raises:
            HoldfastError: the store cannot do it, or a name or message cannot be used.
        """
        assert wanted.user is not None
        whose: dict[str, Any] = {"org": grant.org, "bot": grant.bot, "subject": grant.subject or None}
        user = self._memory.user(wanted.user, **whose)
        state = user.status().state
        if state != "active":
            turn.state, turn.reason = "off", state
            return
        before, new = split(request.messages)
        with self._locks[hash((grant.org, grant.bot, wanted.user)) % LOCKS]:
            name = wanted.conversation or self._found(user.conversations(), wanted.user, whose, before, new)
            chat = self._memory.conversation(name, user=wanted.user, **whose)
            tail = chat.load(last=len(before) + len(new) + LOOKED_BACK)
            after = tail[-1].seq + 1 if tail else 1
            already = stored(before, new, tail, self._same)
            first_new = already[0].seq if already else after
            if wanted.store and (fresh := new[len(already) :]):
                with self._quotas.counting(grant.key, len(fresh) + 1) as wait_s:  # with the answer
                    if wait_s:
                        turn.state, turn.reason = "off", "quota"
                        return
                    receipt = chat.append(fresh)
                if receipt.skipped:
                    turn.state, turn.reason = "off", receipt.skipped
                    return
        turn.chat, turn.keeps = chat, wanted.store
        if wanted.recall:
            start = first_new if not before else self._shown_from(chat, before, tail)
            question = None if wanted.store else _question(new)
            context = chat.context(question, strategy=Beside(max(1, start)))
            turn.inserted = _beside(context, request.messages)
            turn.notes = _counted(context)

    def finish(self, turn: ProxiedChat, answer: Message | None, used: ReportedUse | None, *, whole: bool) -> None:
        """
        Store the reply, marked unless it is *whole*, and the tokens it used.

        Raises:
            HoldfastError: the store cannot do it.
        """
        if turn.chat is None or not turn.keeps:
            return
        if answer is not None:
            mark = {} if whole else {INCOMPLETE: True}
            turn.chat.append(replace(answer, meta={**answer.meta, **mark}))
        if used is not None:
            turn.chat.record_usage(
                used.model[:200],
                input_tokens=used.input_tokens,
                output_tokens=used.output_tokens,
                cached_tokens=used.cached_tokens,
            )

    def _found(
        self,
        names: Sequence[str],
        user: str,
        whose: Mapping[str, Any],
        before: Sequence[Message],
        new: Sequence[Message],
    ) -> str:
        """Find the one unnamed conversation that all of this request continues; in doubt make a new name."""
        ours = sorted((name for name in names if name.startswith(UNNAMED)), reverse=True)
        likely: dict[Continuation, list[str]] = {}
        for name in ours[: MOST_CANDIDATES if before else 1]:
            chat = self._memory.conversation(name, user=user, **whose)
            if not before:
                tail = chat.load(last=len(new) + LOOKED_BACK)
                asked = [message for message in tail if not message.meta.get(INCOMPLETE)]
                if len(stored(before, new, tail, self._same)) == len(asked):
                    return name  # its first request, tried again
                continue
            most = 2 * (len(before) + len(new)) + LOOKED_BACK
            kept = chat.load(last=most)
            whole = len(kept) < most or kept[0].seq == chat.load(limit=1)[0].seq
            how = continuation(before, new, kept, self._same, whole=whole, brought=name[len(_NAME) :])
            if how is Continuation.NEXT:
                return name
            if how is not None:
                likely.setdefault(how, []).append(name)
        surest = likely[min(likely)] if likely else []
        if len(surest) == 1:
            return surest[0]
        older = digest_of(before)  # so that the next request, which shows it too, is known again
        named = f"{UNNAMED}{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(4)}"
        return f"{named}-{older}" if older else named

    def _shown_from(self, chat: Conversation, before: Sequence[Message], tail: Sequence[Message]) -> int:
        """Return the number of the first message that the client shows; 1 when that is unknown."""
        first = chat.load(start_seq=1, limit=2)
        if first and shown_from(before, first, self._same) == first[0].seq:
            return 1
        return shown_from(before, tail, self._same) or 1


def _question(new: Sequence[Message]) -> str | None:
    said = [message.content for message in new if message.role == "user" and message.content.strip()]
    return said[-1] if said else None


def _beside(context: Context, messages: Sequence[Mapping[str, Any]]) -> list[Inserted]:
    """
    Place the parts of *context* among the client's *messages*.

    What seldom changes goes behind the client's instructions, so that the same bytes open every request; earlier
    messages follow it; what was recalled for this question goes before the question.
    """
    roles = [message.get("role") for message in messages]
    head = next((index for index, role in enumerate(roles) if role not in _INSTRUCTIONS), len(roles))
    asked = max((index for index, role in enumerate(roles) if role == "user"), default=head)
    stable = context.stable_messages
    recalled = 1 if context.section("recalled").items else 0
    beginning = [*context.messages[:stable], *context.messages[stable + recalled :]]
    return [
        *((head, message) for message in beginning),
        *((asked, message) for message in context.messages[stable : stable + recalled]),
    ]


def _counted(context: Context) -> dict[str, int]:
    """Count the items of each section, and all tokens."""
    names = ("character", "summaries", "facts", "recalled", "recent")
    held = {section.name: len(section.items) for section in context.sections}
    counts = {name: held.get(name, 0) for name in names}
    return {name: count for name, count in counts.items() if count} | {"tokens": context.tokens}


@dataclass(frozen=True, slots=True)
class Beside:
    """The layered strategy for a client that shows everything from message *shown_from* on by itself."""

    shown_from: int

    @property
    def name(self) -> str:
        """See `Strategy.name`."""
        return "beside"

    @property
    def memory_role(self) -> Literal["user", "system", "developer"]:
        """See `Strategy.memory_role`."""
        return LAYERED.memory_role

    @property
    def recalls(self) -> bool:
        """See `Strategy.recalls`."""
        return True

    def first_wanted(self, summaries: Sequence[Summary], total: int, recent_messages: int, budget_tokens: int) -> int:
        """See `Strategy.first_wanted`."""
        before = [summary for summary in summaries if summary.end_seq < self.shown_from]
        return LAYERED.first_wanted(before, min(total, self.shown_from - 1), recent_messages, budget_tokens)

    def lay_out(self, material: Material, room: int, recent_messages: int, meter: TokenMeter) -> Layout:
        """See `Strategy.lay_out`."""
        shown_from, here = self.shown_from, material.conversation
        earlier = replace(
            material,
            messages=[message for message in material.messages if message.seq < shown_from],
            summaries=[summary for summary in material.summaries if summary.end_seq < shown_from],
            hits=[
                hit
                for hit in material.hits
                if not (hit.kind == "message" and hit.conversation == here and hit.seq >= shown_from)
            ],
            beside={
                key: hit
                for key, hit in material.beside.items()
                if not (hit.conversation == here and hit.seq >= shown_from)
            },
            total_messages=min(material.total_messages, shown_from - 1),
            messages_from=min(material.messages_from, shown_from),
            query=None,
            searched=False,
            opening=[message for message in material.opening if message.seq < shown_from],
        )
        return LAYERED.lay_out(earlier, room, recent_messages, meter)
