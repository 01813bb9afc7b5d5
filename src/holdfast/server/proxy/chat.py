"""
The memory's part of one chat: store the input once, add the context, store the answer.

Everything here is synchronous and may raise; whoever calls it sees to it that a chat never fails for that.

Clients of OpenAI's protocol send the whole conversation every time.  New is what follows the last answer; what
comes before it was said in earlier requests, or was never meant for this memory, and is not stored a second time.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from enum import IntEnum
from hashlib import sha256
from typing import Any, Literal
from weakref import WeakValueDictionary

from ...context.assemble import Layout, Until
from ...context.material import Material, TokenMeter
from ...context.result import Context
from ...conversation import Conversation
from ...ingest.redact import redact_secrets
from ...integrations.calls.turns import INCOMPLETE
from ...memory import Memory
from ...privacy.ledger import is_withheld, note_withheld
from ...text import dataclass
from ...types import Message, ReplyUsage
from ...user import User
from ..gate import Grant, Quotas
from .request import NEW, STORE, ChatRequest, Inserted, MemoryOptions
from .shapes import INSTRUCTIONS, REFERS

UNNAMED = "chat-"
_NAME = "chat-20260101-000000-00000000-"  # how long the part of such a name is that is random
MOST_CANDIDATES = 20  # conversations without a name of the client's among which one is looked for
LOCKS = 64
REPLIES = 10_000
LONGEST = 2_000  # messages of a conversation that are looked at
MOST_HISTORY = 2_000  # messages of an older history that are taken in
REQUEST = "request"  # in the meta of an input: its idempotency key, hashed
RESPONSE, SHOWN = "response_id", "memory_sha256"  # in that of a reply: its id, hashed; what memory the model had then
ITEMS = "item_ids"  # in that of a reply, too: the ids of its parts, hashed
ANSWERS = "answers"  # the number of the message that it answers, where others came in between
WITHIN = "held_in"  # and the conversation in which the model's server holds it, hashed
CHAINS = 50  # conversations in which the reply is looked for that a request goes on from

State = Literal["on", "off", "degraded"]


@dataclass(slots=True, weakref_slot=True)
class Flight:
    """Identical requests that are under way at the same time: where their input is stored, and the answer."""

    chat: str | None = None
    after: int = 0
    reply: Message | None = None

    @property
    def answered(self) -> bool:
        """Whether the answer is stored."""
        return self.reply is not None


@dataclass(slots=True)
class ProxiedChat:
    """
    One chat on its way through the proxy.

    ``chat`` is ``None`` when there is no memory for it.  ``keeps``: its answer is stored.  ``notes`` say what was done,
    for the answer's headers.  ``shown`` is a digest of the part of the memory that seldom changes, ``had`` that of what the
    model's server held of it before, ``known`` whether they are the same.  ``after`` is the message that the answer follows,
    ``branches`` whether the client shows its history, so that others may follow it, too.  ``within`` is the conversation of
    the model's server that it is in.  ``switched_off``: ``store`` or ``recall``, when the request did not want it.
    """

    state: State
    reason: str = ""
    chat: Conversation | None = None
    keeps: bool = False
    shown: str = ""
    had: str = ""
    known: bool = False
    whose: tuple[Any, ...] = ()
    after: int = 0
    branches: bool = False
    within: str = ""
    flight: Flight | None = None
    inserted: Sequence[Inserted] = ()
    switched_off: Sequence[str] = ()
    notes: dict[str, int] = field(default_factory=dict)

    @property
    def held(self) -> str:
        """Return the digest of the memory that the model's server holds after this turn."""
        return self.shown if self.state == "on" and (self.inserted or self.known) else self.had

    @property
    def header_value(self) -> str:
        """Return the value of the header: ``on; facts=2; tokens=61``, ``on; store=off``, ``off; reason=paused``."""
        if self.reason:
            return f"{self.state}; reason={self.reason}"
        switches = (f"{name}=off" for name in self.switched_off)
        return "; ".join([self.state, *switches, *(f"{name}={count}" for name, count in self.notes.items())])


class ChatMemory:
    """The memory's part of all chats of one server."""

    def __init__(self, memory: Memory, quotas: Quotas) -> None:
        self._memory, self._quotas = memory, quotas
        self._locks = [threading.Lock() for _ in range(LOCKS)]
        self._replies: dict[tuple[Any, ...], str] = {}  # in which conversation each of the latest replies is
        self._same_replies: dict[tuple[Any, ...], str] = {}  # digests of replies stored once, by those of their twins
        self._flights: WeakValueDictionary[tuple[Any, ...], Flight] = WeakValueDictionary()
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
        before, new = split(self._resolved(request.shape.said(request.messages), wanted, user, whose))
        turn.whose = (*whose.values(), wanted.user)
        with self._lock(turn):
            name, chain = wanted.conversation, None
            if wanted.follows is not None:
                name, chain = self._chain(wanted.follows, name, wanted.user, whose)
            flight = turn.flight or Flight()
            name = flight.chat or name or self._found(user, wanted, whose, before, new)
            takes_in = chain is None and self._takes_in(user, wanted, whose, name, before)
            name = name or _new_name(() if takes_in else before)
            chat = self._memory.conversation(name, user=wanted.user, **whose)
            before = [*(chain or ()), *before]
            place = self._place(chat, wanted, before, new)
            if flight.chat is not None:
                place = replace(place, after=flight.after, known=len(new))
            tail = chat.load(last=len(before) + len(new) + LOOKED_BACK)
            if wanted.held:
                turn.had = next((str(one.meta.get(SHOWN, "")) for one in before[-1:] or tail[-1:]), "")
            if wanted.rating is not None and wanted.store and any(said.role == "assistant" for said in tail):
                chat.rate(wanted.rating)
            turn.after = place.after
            older = before[-MOST_HISTORY:] if takes_in and not place.end else ()
            first_new, fresh = self._store_new(chat, wanted, grant, turn, place, older, new)
            if turn.reason:
                return
            if not wanted.store:
                self.keep_apart(wanted.user, grant)
            flight.chat, flight.after, turn.branches = name, turn.after, place.branches
        turn.chat, turn.keeps = chat, wanted.store
        if wanted.recall:
            start = first_new if not before else self._shown_from(chat, before, tail)
            question = None if wanted.store and fresh else _question(new)
            context = chat.context(question, strategy=Beside(1 if wanted.held else max(1, start)))
            turn.shown = _digest_of_stable(context)
            turn.known = wanted.held and turn.had == turn.shown
            turn.inserted = _beside(context, request, only_recalled=turn.known)
            turn.notes = _counted(context)

    def _store_new(
        self,
        chat: Conversation,
        wanted: MemoryOptions,
        grant: Grant,
        turn: ProxiedChat,
        place: Place,
        history: Sequence[Message],
        new: Sequence[Message],
    ) -> tuple[int, bool]:
        """
        Store what is new, and a *history* from before the conversation where there is room for it.

        Returns:
            The number of the first new message, and whether anything was to be stored; *turn* has a reason if it could not be.
        """
        first_new = place.first_new
        older = place.missing or [message for message in history if not message.meta.get(REFERS)]
        if wanted.store and history and self._quotas.is_short(grant.key, len(older) + len(new) + 1):
            older = ()
        fresh = [*older, *new[place.known :]]
        if wanted.store and fresh:
            marks = {REQUEST: wanted.request} if wanted.request else {}
            fresh = [*fresh[:-1], replace(fresh[-1], meta={**fresh[-1].meta, **marks})]
            with self._quotas.counting(grant.key, len(fresh) + 1) as wait_s:  # with the answer
                if wait_s:
                    turn.state, turn.reason = "off", "quota"
                    return 0, True
                receipt = chat.append(fresh, after=None if place.after == place.end else place.after)
            if receipt.skipped:
                turn.state, turn.reason = "off", receipt.skipped
                return 0, True
            first_new = first_new or receipt.seqs[min(len(older), len(receipt.seqs) - 1)]
            turn.after = receipt.seqs[-1]
        return first_new or place.end + 1, bool(fresh)

    def _lock(self, turn: ProxiedChat) -> threading.Lock:
        """Return the lock of a user's chats."""
        org, bot, _, user = turn.whose
        return self._locks[hash((org, bot, user)) % LOCKS]

    def flight(self, *names: Any) -> Flight:
        """Return the flight of a request, one for all that are the same and wait for an answer."""
        found = self._flights.get(names)
        if found is None or found.answered:  # after the answer, the same words are said anew
            found = self._flights[names] = Flight()
        return found

    def _place(
        self, chat: Conversation, wanted: MemoryOptions, before: Sequence[Message], new: Sequence[Message]
    ) -> Place:
        """Find where the input of a request belongs; the whole conversation is read only when it is not at the end."""
        state = chat.state()
        if state is None:
            return Place(0, 0, branches=bool(before) or "whole" in wanted.history)
        tail = chat.load(last=len(before) + len(new) + LOOKED_BACK)
        end, same = state.messages, self._same
        asked = next((one for one in reversed(tail) if one.role == "user"), None)
        if wanted.request and asked is not None and asked.meta.get(REQUEST) == wanted.request:
            return Place(end, asked.seq, known=len(new), first_new=asked.seq, branches=True)
        if not new or not (before or "whole" in wanted.history):  # no history: perhaps a client that keeps none
            waiting = waiting_input(new, tail, same)
            after = waiting[-1].seq if waiting else end
            return Place(end, after, len(waiting), waiting[0].seq if waiting else None, branches=bool(waiting))
        if before and tail and tail[-1].seq == end and _agree(before, tail[-len(before) :], same):
            return Place(end, end, branches=True)
        return place_in(chat.load(abandoned=True), end, before, new, same)

    def _resolved(
        self, said: Sequence[Message], wanted: MemoryOptions, user: User, whose: Mapping[str, Any]
    ) -> list[Message]:
        """Put what was said in place of references to it, where it is known."""
        assert wanted.user is not None
        stored = {
            item: self._stored_as((*whose.values(), wanted.user), item)
            for message in said
            for item in message.meta.get(REFERS, ())
        }
        missing = set(stored.values())
        if not missing:
            return list(said)
        newest = user.overview(limit=CHAINS) if wanted.conversation is None else ()
        ours = [row.conversation for row in newest if row.conversation.startswith(UNNAMED)][:MOST_CANDIDATES]
        known: dict[str, Message] = {}
        for name in ours if wanted.conversation is None else [wanted.conversation]:
            chat = self._memory.conversation(name, user=wanted.user, **whose)
            kept = chat.load(last=LONGEST, abandoned=True)
            known |= {item: message for message in kept for item in message.meta.get(ITEMS, ())}
            if missing <= known.keys():
                break
        by_name = {item: known[digest] for item, digest in stored.items() if digest in known}
        return [_referred(message, by_name) for message in said]

    def _chain(
        self, follows: str, name: str | None, user: str, whose: Mapping[str, Any]
    ) -> tuple[str, Sequence[Message]]:
        """Find the conversation that holds a reply, and what was said in it up to that reply; else it is named after it."""
        known = name or self._replies.get((*whose.values(), user, follows))
        wanted = self._stored_as((*whose.values(), user), follows)
        newest = self._memory.user(user, **whose).overview(limit=CHAINS) if known is None else ()
        names = [row.conversation for row in newest] if known is None else [known]
        for last in (LOOKED_BACK, LONGEST):
            for one in names:
                said = self._memory.conversation(one, user=user, **whose).load(last=last, abandoned=True)
                for message in reversed(said):
                    if message.meta.get(RESPONSE) == wanted:
                        said = self._memory.conversation(one, user=user, **whose).load(abandoned=True)
                        return one, way_to(said, message.seq)
        return known or digest_of_name(follows), ()

    def _remember_reply(self, turn: ProxiedChat, name: str) -> None:
        """Remember where a reply is, so that what goes on from it is found without a search."""
        if turn.chat is not None:
            self._replies[(*turn.whose, name)] = turn.chat.id
            _forget_oldest(self._replies)

    def _stored_as(self, whose: tuple[Any, ...], name: str) -> str:
        """Return the digest under which a reply, or a part of one, is stored."""
        digest = digest_of_name(name)
        return self._same_replies.get((*whose, digest), digest)

    def _remember_same(self, turn: ProxiedChat, reply: Message, stored: Message) -> None:
        """Remember the names of a reply that was stored under other ones, as the client may go on from either."""
        pairs = [(reply.meta.get(RESPONSE), stored.meta.get(RESPONSE))]
        pairs += zip(reply.meta.get(ITEMS, ()), stored.meta.get(ITEMS, ()), strict=False)
        for name, known in pairs:
            if name and known and name != known:
                self._same_replies[(*turn.whose, name)] = known
        _forget_oldest(self._same_replies)

    def finish(
        self,
        turn: ProxiedChat,
        answer: Message | None,
        used: ReplyUsage | None,
        *,
        whole: bool,
        name: str = "",
        items: Sequence[str] = (),
    ) -> None:
        """
        Store the reply, marked unless it is *whole*, and the tokens it used.

        With *name*, a later request may go on from it; it may show *items* in place of what the reply says.

        Raises:
            HoldfastError: the store cannot do it.
        """
        if turn.chat is None or not turn.keeps:
            return
        if name:
            self._remember_reply(turn, name)
        if answer is not None:
            mark = {} if whole else {INCOMPLETE: True}
            spent = {} if used is None else replace(used, model=used.model[:200]).meta
            held = {RESPONSE: digest_of_name(name), SHOWN: turn.held} if name else {}
            parts: dict[str, Any] = {ITEMS: [digest_of_name(item) for item in items]} if items else {}
            parts |= {WITHIN: turn.within} if turn.within else {}
            reply = replace(answer, meta={**answer.meta, **mark, **spent, **held, **parts})
            with self._lock(turn):
                self._answer(turn, turn.chat, reply, whole=whole)
        if used is not None:
            turn.chat.record_usage(
                used.model[:200],
                input_tokens=used.input_tokens,
                output_tokens=used.output_tokens,
                cached_tokens=used.cached_tokens,
            )

    def _answer(self, turn: ProxiedChat, chat: Conversation, reply: Message, *, whole: bool) -> None:
        """Store a reply behind its question, once; an earlier reply to the same question is left behind."""
        if turn.flight is not None and turn.flight.reply is not None:
            self._remember_same(turn, reply, turn.flight.reply)
            return
        state = chat.state()
        end = 0 if state is None else state.messages
        if turn.branches and turn.after != end:
            known = children(chat.load(abandoned=True), turn.after)
            stored = (one for one in known if _alike(reply, one, self._same) and not one.meta.get("abandoned"))
            if (same := next(stored, None)) is not None:
                self._remember_same(turn, reply, same)
                return
            chat.append(reply, after=turn.after)
        else:
            apart = {ANSWERS: turn.after} if turn.after not in (0, end) else {}
            chat.append(replace(reply, meta={**reply.meta, **apart}))
        if turn.flight is not None and whole:
            turn.flight.reply = reply

    def _found(
        self,
        user: User,
        wanted: MemoryOptions,
        whose: Mapping[str, Any],
        before: Sequence[Message],
        new: Sequence[Message],
    ) -> str | None:
        """Find the one unnamed conversation that all of this request continues; ``None`` in doubt."""
        assert wanted.user is not None
        newest = user.overview(limit=CHAINS)
        ours = [row for row in newest if row.conversation.startswith(UNNAMED)][:MOST_CANDIDATES]
        likely: dict[Continuation, list[str]] = {}
        for row in ours:
            name = row.conversation
            chat = self._memory.conversation(name, user=wanted.user, **whose)
            if not before:
                tail = chat.load(last=len(new) + LOOKED_BACK)
                if wanted.request and any(message.meta.get(REQUEST) == wanted.request for message in tail):
                    return name
                if row.last_at != ours[0].last_at:
                    continue
                asked = [message for message in tail if not message.meta.get(INCOMPLETE)]
                if len(waiting_input(new, tail, self._same)) == len(asked):
                    return name  # its first request, tried again
                continue
            kept = chat.load(abandoned=True)
            ways = [continuation(before, new, way, self._same, brought=name[len(_NAME) :]) for way in branches_of(kept)]
            how = min((one for one in ways if one is not None), default=None)
            if how is Continuation.NEXT:
                return name
            if how is not None:
                likely.setdefault(how, []).append(name)
        surest = likely[min(likely)] if likely else []
        return surest[0] if len(surest) == 1 else None

    def _takes_in(
        self, user: User, wanted: MemoryOptions, whose: Mapping[str, Any], name: str | None, before: Sequence[Message]
    ) -> bool:
        """
        Whether the history that a request shows is stored, as it was said before this memory saw the conversation.

        Not by itself when some of it may be what the user erased, said during a pause, or did not want stored, nor when
        another conversation begins as it does, which it may be a copy or a branch of.
        """
        assert wanted.user is not None
        asked = next((index for index, message in enumerate(before) if message.role == "user"), None)
        if asked is None or NEW in wanted.history:
            return False
        if name and self._memory.conversation(name, user=wanted.user, **whose).state() is not None:
            return False
        if STORE in wanted.history:
            return True
        newest = user.overview(limit=CHAINS)
        others = [row.conversation for row in newest if name or row.conversation.startswith(UNNAMED)]
        withheld = self._memory._engine.store.read(user._scope, is_withheld)
        if withheld or len(others) >= (CHAINS if name else MOST_CANDIDATES):
            return False
        opening = before[asked : asked + (2 if name else 1)]
        for one in others:
            chat = self._memory.conversation(one, user=wanted.user, **whose)
            said = chat.load(limit=LOOKED_BACK) if name else chat.load(last=LONGEST, abandoned=True)
            if any(_agree(opening, said[at : at + len(opening)], self._same) for at in range(len(said))):
                return False
        return True

    def keep_apart(self, name: str, grant: Grant) -> None:
        """Note that a user says something that is not to be stored, so that no history brings it in later."""
        user = self._memory.user(name, org=grant.org, bot=grant.bot)
        engine, scope = self._memory._engine, user._scope
        if not engine.store.read(scope, is_withheld):
            engine.store.write(scope, lambda view: note_withheld(view, engine.now_ms()))

    def _shown_from(self, chat: Conversation, before: Sequence[Message], tail: Sequence[Message]) -> int:
        """Return the number of the first message that the client shows; 1 when that is unknown."""
        first = chat.load(start_seq=1, limit=2)
        if first and shown_from(before, first, self._same) == first[0].seq:
            return 1
        return shown_from(before, tail, self._same) or 1


def _referred(message: Message, known: Mapping[str, Message]) -> Message:
    """Return the stored reply to which a message refers, as a client would show it."""
    found = next((known[item] for item in message.meta.get(REFERS, ()) if item in known), None)
    if found is None:
        return message
    calls = found.meta.get("tool_calls")
    return Message(found.role, found.content, meta={"tool_calls": calls} if calls else {})


def _question(new: Sequence[Message]) -> str | None:
    said = [message.content for message in new if message.role == "user" and message.content.strip()]
    return said[-1] if said else None


def _beside(context: Context, request: ChatRequest, *, only_recalled: bool = False) -> list[Inserted]:
    """
    Place the parts of *context* among the client's messages, in the request's shape.

    What seldom changes goes behind the client's instructions, so that the same bytes open every request; earlier
    messages follow it; what was recalled for this question goes before the question.  With *only_recalled* the model's
    server holds the other part already.
    """
    roles = [request.shape.role(message) for message in request.messages]
    head = next((index for index, role in enumerate(roles) if role not in INSTRUCTIONS), len(roles))
    asked = max((index for index, role in enumerate(roles) if role == "user"), default=None)
    stable = context.stable_messages
    text = context.section("recalled").text
    volatile = [message for message in context.messages[stable:] if text and message["content"] == text]
    beginning = [] if only_recalled else [one for one in context.messages if one not in volatile]
    placed = [
        *((head, message) for message in beginning),
        *((head if asked is None else asked, message) for message in volatile),
    ]
    if asked is None and request.shape.role(request.messages[0]) == "tool":
        return []  # results of tools alone, which nothing may come before
    return [(index, item) for index, message in placed for item in request.shape.items(message)]


def _forget_oldest(names: dict[tuple[Any, ...], str]) -> None:
    while len(names) > REPLIES:
        names.pop(next(iter(names)), None)


def digest_of_name(name: str) -> str:
    """Return the form in which the name of a reply, an item, or a conversation of the model's server is kept."""
    return sha256(name.encode()).hexdigest()[:32]


def _digest_of_stable(context: Context) -> str:
    stable = json.dumps(context.messages[: context.stable_messages], ensure_ascii=False)
    return digest_of_name(stable)


def _counted(context: Context) -> dict[str, int]:
    """Count the items of each section, and all tokens."""
    names = ("character", "earlier", "summaries", "facts", "recalled", "recent")
    held = {section.name: len(section.items) for section in context.sections}
    counts = {name: held.get(name, 0) for name in names}
    return {name: count for name, count in counts.items() if count} | {"tokens": context.tokens}


def _new_name(shown: Sequence[Message]) -> str:
    """Name a conversation; *shown* is a history that is not stored, by which the next request, showing it too, is known."""
    named = f"{UNNAMED}{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(4)}"
    return f"{named}-{digest_of(shown)}" if shown else named


class Beside(Until):
    """The layered strategy for a client that shows everything from message *stop* on by itself, the question too."""

    __slots__ = ()

    def lay_out(self, material: Material, room: int, recent_messages: int, meter: TokenMeter) -> Layout:
        """See `Strategy.lay_out`."""
        return super().lay_out(replace(material, query=None, searched=False), room, recent_messages, meter)


LOOKED_BACK = 8  # messages before the new ones that are compared

Same = Callable[[str, str], bool]
"""Whether a text that was sent is one that was stored."""


def split(known: Sequence[Message]) -> tuple[list[Message], list[Message]]:
    """Return ``(what was said before, the new input)`` of what a request shows."""
    last = max((index for index, message in enumerate(known) if message.role == "assistant"), default=-1)
    return list(known[: last + 1]), list(known[last + 1 :])


def waiting_input(new: Sequence[Message], tail: Sequence[Message], same: Same) -> Sequence[Message]:
    """
    Return the stored messages that the first of *new* are, where *tail* are the store's last ones.

    They wait there for an answer: the request is tried again, or goes on from one that failed.
    """
    answers = [i for i, m in enumerate(tail) if m.role == "assistant" and not m.meta.get(INCOMPLETE)]
    waiting = [m for m in tail[answers[-1] + 1 if answers else 0 :] if m.role != "assistant"]
    for count in range(min(len(waiting), len(new)), 0, -1):
        if _agree(new[:count], waiting[-count:], same):
            return waiting[-count:]
    return ()


@dataclass(frozen=True, slots=True)
class Place:
    """
    The place of a request in a stored conversation.

    It follows message *after*, on which its first *known* messages lie already, from *first_new* on; *end* is the last
    number that was given.  ``missing`` are messages that the client shows before it and that were never stored.
    """

    end: int
    after: int
    known: int = 0
    first_new: int | None = None
    branches: bool = False
    missing: Sequence[Message] = ()


def way_to(tree: Sequence[Message], seq: int) -> list[Message]:
    """Return the messages that lead to message *seq*, its own included."""
    there, way = {message.seq: message for message in tree}, list[Message]()
    before = dict(zip(there, [0, *there], strict=False))
    while seq in there:
        way.append(there[seq])
        seq = _followed(there[seq], before[seq])
    return way[::-1]


def _followed(message: Message, before: int) -> int:
    """Return the number of the message that one follows; *before* is that of the stored one before it."""
    follows = message.meta.get("follows")
    return follows if isinstance(follows, int) and 0 <= follows < message.seq else before


def children(tree: Sequence[Message], seq: int) -> list[Message]:
    """Return the messages that follow message *seq* directly; those of branches that were left behind come first."""
    there = [0, *(message.seq for message in tree)]
    found = [m for before, m in zip(there, tree, strict=False) if _followed(m, before) == seq]
    return sorted(found, key=lambda message: (not message.meta.get("abandoned"), message.seq))


def branches_of(tree: Sequence[Message]) -> list[list[Message]]:
    """Return the way to the end of each branch, the one in use first."""
    there = [0, *(message.seq for message in tree)]
    inner = {_followed(m, before) for before, m in zip(there, tree, strict=False)}
    ends = [message for message in reversed(tree) if message.seq not in inner]
    ends.sort(key=lambda message: bool(message.meta.get("abandoned")))
    return [way_to(tree, message.seq) for message in ends]


def place_in(tree: Sequence[Message], end: int, before: Sequence[Message], new: Sequence[Message], same: Same) -> Place:
    """
    Find the place of *new* behind *before* among all branches of a conversation.

    In doubt it goes to the end of the one in use.
    """
    live = [message for message in tree if not message.meta.get("abandoned")]
    after, missing = (live[-1].seq if live else 0), list[Message]()
    if not before:
        after = 0
    else:
        found = _end_of(tree, before, same)
        changed = before[-1].role == "assistant" and not before[-1].meta.get(REFERS) and len(before) > 1
        if found is None and changed:  # an answer that the client changed
            asked = _end_of(tree, before[:-1], same)
            numbers = {message.seq for message in tree}
            if asked is not None and (asked + 1 in numbers or asked == end):  # not one that was erased
                found, missing = asked, [before[-1]]
        after = after if found is None else found
    known, first = 0, None
    for message in new if not missing else ():
        next_ones = [one for one in children(tree, after) if _alike(message, one, same)]
        if not next_ones:
            break
        known, after = known + 1, next_ones[-1].seq
        first = first or after
    return Place(end, after, known, first, branches=True, missing=missing)


def _end_of(tree: Sequence[Message], before: Sequence[Message], same: Same) -> int | None:
    """Return the message with which all that is shown ends; of several the one in use, and the latest."""
    for shown, spoken in ((before, False), (_spoken(before), True)):
        ends = [message for message in tree if shown and _alike(shown[-1], message, same)]
        ends.sort(key=lambda message: (bool(message.meta.get("abandoned")), -message.seq))
        for message in ends:
            way = way_to(tree, message.seq)
            way = _spoken(way) if spoken else way
            part = min(len(way), len(shown))
            if _agree(shown[-part:], way[-part:], same):
                return message.seq
    for way in branches_of(tree):
        spoken_way = _spoken(way)
        for count in range(len(spoken_way), 0, -1):
            if _aligned(_spoken(before), spoken_way[:count], same) is not None:
                return spoken_way[count - 1].seq
    return None


class Continuation(IntEnum):
    """How a request goes on with a stored conversation, the surest first."""

    NEXT = 0  # all that it shows is all that is stored, to the end
    AGAIN = 1  # the last input, tried or answered again
    EDITED = 2  # another input in place of stored ones
    WINDOW = 3  # it shows the end of what is stored


def continuation(
    before: Sequence[Message],
    new: Sequence[Message],
    kept: Sequence[Message],
    same: Same,
    *,
    whole: bool = True,
    brought: str = "",
) -> Continuation | None:
    """
    Return how a request goes on with a conversation; ``None`` when it may be another one.

    Every earlier message that the request shows must be there, in order: its last exchange alone proves nothing, as two
    chats may open with the same words.  What only the store has are earlier versions of an input or an answer, or, with
    two of the user's messages shown, what a client no longer shows.

    Args:
        before: what the client shows of what was said, not empty.
        new: the new input.
        kept: the stored messages, up to the last one.
        same: whether two texts are the same.
        whole: *kept* begins with the first stored message.
        brought: `digest_of` what the client showed before the first stored message.
    """
    shown, theirs = _spoken(before), _spoken(kept)
    asked = sum(message.role == "user" for message in shown)
    for end in range(len(theirs), 0, -1):
        found = _aligned(shown, theirs[:end], same)
        if found is None:
            continue
        first, older = found
        again = _begins(theirs[end:], new, same)
        if digest_of(older) != brought and (older or first == 0):
            continue
        if first > 0 or not whole:  # the client leaves out the beginning
            return Continuation.WINDOW if asked > 1 and (again or end == len(theirs)) else None
        if end == len(theirs):
            return Continuation.NEXT
        return Continuation.AGAIN if again else Continuation.EDITED if asked > 1 else None
    return None


def digest_of(older: Sequence[Message]) -> str:
    """Return a digest of what was said before a conversation was stored; empty when the user said nothing there."""
    if not any(message.role == "user" for message in older):
        return ""
    lines = (f"{message.role}\0{message.content.strip()}\0" for message in _spoken(older))
    return sha256("".join(lines).encode()).hexdigest()[:12]


def _spoken(messages: Sequence[Message]) -> list[Message]:
    """Leave out tools and the calls to them, which clients often forget."""
    return [message for message in messages if message.role != "tool" and (message.content or message.role == "user")]


def _aligned(shown: Sequence[Message], kept: Sequence[Message], same: Same) -> tuple[int, Sequence[Message]] | None:
    """
    Return where in *kept* the shown messages begin, and those that are older; ``None`` when one of them is missing.

    The last of both must be the same.  Between two others the store may hold versions that were replaced.
    """
    at = len(kept) - 1
    for number in range(len(shown) - 1, -1, -1):
        if at < 0:
            return 0, shown[: number + 1]
        while number < len(shown) - 1 and at >= 0 and not _alike(shown[number], kept[at], same):
            at -= 1
        if at < 0 or not _alike(shown[number], kept[at], same):
            return None
        at -= 1
    return at + 1, ()


def _begins(kept: Sequence[Message], new: Sequence[Message], same: Same) -> bool:
    """Whether all inputs of the stored messages are the first of the new ones."""
    asked, theirs = ([message for message in some if message.role == "user"] for some in (new, kept))
    return 0 < len(theirs) <= len(asked) and _agree(asked[: len(theirs)], theirs, same)


def shown_from(before: Sequence[Message], tail: Sequence[Message], same: Same) -> int | None:
    """Return the number of the message in *tail* with which *before* begins; ``None`` when it is not there."""
    for start in range(len(tail)):
        length = min(2, len(before), len(tail) - start)
        if length and _agree(before[:length], tail[start : start + length], same):
            return tail[start].seq
    return None


def _agree(sent: Sequence[Message], stored: Sequence[Message], same: Same) -> bool:
    return len(sent) == len(stored) and all(_alike(a, b, same) for a, b in zip(sent, stored, strict=True))


def _alike(sent: Message, stored: Message, same: Same) -> bool:
    if sent.role != stored.role:
        return False
    if sent.role == "assistant" and (sent.meta.get("tool_calls") or stored.meta.get("tool_calls")):
        return _call_ids(sent) == _call_ids(stored)
    if sent.role == "tool":
        return sent.meta.get("tool_call_id") == stored.meta.get("tool_call_id")
    a, b = sent.content.strip(), stored.content.strip()
    if stored.meta.get(INCOMPLETE) and a and b:
        return a.startswith(b) or b.startswith(a)
    return same(a, b)


def _call_ids(message: Message) -> list[Any]:
    calls = message.meta.get("tool_calls")
    return [call.get("id") if isinstance(call, Mapping) else None for call in calls or ()]
