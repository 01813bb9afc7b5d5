"""
Messages on their way in: validated and redacted, then stored with their index entries and the work they cause.

A batch is one transaction.  When it returns, the messages are on disk: acknowledged means stored.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from datetime import datetime
from typing import Literal

from ..clock import MAX_AHEAD, to_ms
from ..config import Config
from ..errors import BadInput, Conflict, KeyReused, NotFound
from ..store import ConversationRow, DocRow, MessageRow, UserRow, WriteView, effective_consent, pack_words
from ..text import dataclass
from ..text.terms import MESSAGE_OVERHEAD_TOKENS, count_tokens, dated_terms, signals
from ..text.validate import MessageLike, checked_messages
from ..types import Detector, Message
from . import redact

ROLLED_MESSAGES = 6  # that a rolling summary of a model takes up at once, at least
ROLLED_PART = 4  # of the tokens of a chunk, see digest/chunk.py
FOLLOWS = "follows"  # in the meta of a message: the number of the one that it was said after, when that is no longer the one before
ABANDONED = "abandoned"  # the role of a message that was left behind with its branch, and in its meta what it was
RATED_PAGE = 200  # messages that are read at once to find the latest reply


@dataclass(frozen=True, slots=True)
class AppendResult:
    """
    The numbers given to the messages; ``duplicate``: an earlier call with this key had stored them.

    ``read``: nothing has changed since `WorkSettings.read_from`, so what was read in the messages can be learned.
    """

    first_seq: int
    last_seq: int
    duplicate: bool
    read: bool = False


@dataclass(frozen=True, slots=True)
class ReadFrom:
    """The rows of user and conversation from which messages were read for facts before they are stored."""

    user: UserRow
    conversation: ConversationRow | None

    def holds(self, user: UserRow, conversation: ConversationRow | None) -> bool:
        """Return whether facts, and the conversation, are still as they were."""
        same = (self.user.epoch, self.user.facts_rev) == (user.epoch, user.facts_rev)
        return same and self.conversation == conversation


@dataclass(frozen=True, slots=True)
class WorkSettings:
    """
    The background work that messages cause, and when reading facts is due.

    ``reads``: a model reads facts every few ``turns``, with each of the ``chunks``, or not at all; ``states``:
    one of the messages may state something.  ``embed``: there is an embedder.  ``extract_after_ms``: how long the background leaves the reading
    to the caller, who is about to do it.  ``digest``: what is written by hand is not digested.  ``own_facts``: whether the
    conversation shall have facts of its own; ``None``: as it began.  ``summarize``: whether chunks are summarized;
    with ``rolling`` a model summarizes all but the last so many exchanges, a few at a time.  ``begin`` begins a branch in
    the same transaction, and returns the message that it follows.  ``read_from``: the caller has read the messages for facts,
    and learns these in the same transaction where the rows are still the same.
    """

    embed: bool
    extract_after_ms: int = 0
    digest: bool = True
    own_facts: bool | None = None
    summarize: bool = True
    rolling: int = 0
    reads: Literal["", "turns", "chunks"] = ""
    states: bool = False
    begin: Callable[[WriteView], int] | None = None
    read_from: ReadFrom | None = None

    def have_read(self, user: UserRow, conversation: ConversationRow | None) -> bool:
        """Return whether what was read in the messages beforehand holds for these rows."""
        digested = self.digest and self.begin is None
        return digested and self.read_from is not None and self.read_from.holds(user, conversation)


def append(
    view: WriteView,
    prepared: Sequence[PreparedMessage],
    config: Config,
    orders: WorkSettings,
    *,
    key: str | None,
    digest: str,
    now_ms: int,
) -> AppendResult:
    """
    Insert *prepared* at the end of the view's conversation.

    Args:
        view: one open transaction.
        prepared: checked messages, oldest first.
        config: the settings that say when a sitting and a chunk end.
        orders: which background work this memory has.
        key: the caller's idempotency key; the same key with the same *digest* stores nothing.
        digest: SHA-256 of the body.
        now_ms: the time of storing.

    Raises:
        KeyReused: *key* was used in this conversation with another body.
        Conflict: the conversation began with, or without, facts of its own, and *orders* say otherwise.
    """
    if key is not None and (before := view.idempotency(key)) is not None:
        if before[0] not in ("", digest):  # '': what it stored was erased, and must not come back
            raise KeyReused(
                f"idempotency key {key!r} was used in this conversation with another body",
                hint="use a new key for a new message",
            )
        return AppendResult(before[1], before[2], duplicate=True)
    if orders.begin is not None:
        prepared = [_following(prepared[0], orders.begin(view)), *prepared[1:]]
    user, stored = view.user(), view.conversation()
    read = orders.have_read(user, stored)
    if user == UserRow():  # somebody new, or erased: no cache may take the counters for those of before
        user = replace(user, epoch=now_ms)
    row = stored or _fresh(view, prepared, config, orders, now_ms)
    if orders.own_facts is not None and orders.own_facts != bool(row.own_facts):
        raise Conflict(
            f"this conversation began with own_facts={bool(row.own_facts)}",
            hint="leave own_facts out, or begin another conversation",
        )
    rows, docs, after = _number(prepared, row, user, config, now_ms)
    if read or not orders.digest:
        after = replace(after, extracted_seq=after.next_seq - 1)
    after = _unread(after, rows, orders)
    view.save_user(replace(user, next_doc=user.next_doc + len(rows), version=user.version + 1), now_ms)
    view.save_conversation(after)
    view.add_messages(rows)
    view.add_docs(docs)
    if (rolled := _close_before_last(view, after, config, orders)) != after:
        after = rolled
        view.save_conversation(after)
    if key is not None:
        view.add_idempotency(key, digest, rows[0].message.seq, rows[-1].message.seq, now_ms)
    _order_work(view, rows, row, after, config, orders, now_ms)
    return AppendResult(rows[0].message.seq, rows[-1].message.seq, duplicate=False, read=read)


def _following(item: PreparedMessage, seq: int) -> PreparedMessage:
    return replace(item, message=replace(item.message, meta={**item.message.meta, FOLLOWS: seq}))


def _fresh(
    view: WriteView, prepared: Sequence[PreparedMessage], config: Config, orders: WorkSettings, now_ms: int
) -> ConversationRow:
    subject, conversation = view.scope.subject, view.scope.conversation
    assert subject is not None
    assert conversation is not None
    return ConversationRow(
        subject=subject,
        conversation=conversation,
        next_seq=1,
        chunk_start=1,
        ended_seq=0,
        extracted_seq=0,
        session=1,
        last_at=_at(prepared[0].message),
        created_at=now_ms,
        own_facts=int((config.own_facts if orders.own_facts is None else orders.own_facts) and orders.digest),
    )


def _number(
    prepared: Sequence[PreparedMessage], row: ConversationRow, user: UserRow, config: Config, now_ms: int
) -> tuple[list[MessageRow], list[DocRow], ConversationRow]:
    """Give each message its number, its sitting (a long silence opens the next) and its document."""
    gap_ms = config.chunk_gap_minutes * 60_000
    rows: list[MessageRow] = []
    docs: list[DocRow] = []
    session, last_at = row.session, row.last_at
    for offset, item in enumerate(prepared):
        at, seq, doc = _at(item.message), row.next_seq + offset, user.next_doc + offset
        if at - last_at >= gap_ms:
            session += 1
        last_at = at
        message = replace(item.message, seq=seq, conversation=row.conversation)
        rows.append(MessageRow(message, session, doc, now_ms))
        docs.append(build_document(rows[-1], item, row.subject))
    return rows, docs, replace(row, next_seq=row.next_seq + len(rows), session=session, last_at=last_at)


def _close_before_last(
    view: WriteView, after: ConversationRow, config: Config, orders: WorkSettings
) -> ConversationRow:
    """Return the conversation with an end before its last exchanges, where a model rolls a summary and enough came."""
    least = ROLLED_MESSAGES + 2 * orders.rolling
    waits = after.ended_seq >= after.chunk_start
    if not orders.rolling or not orders.reads or waits or after.next_seq - after.chunk_start < least:
        return after
    said = view.messages(start_seq=after.chunk_start)
    starts = [message.seq for message in said if message.role == "user"]
    through = starts[-orders.rolling] - 1 if len(starts) > orders.rolling else 0
    tokens = sum(message.tokens for message in said if message.seq <= through)
    worth = after.chunk_start == 1 or tokens * ROLLED_PART >= config.chunk_tokens
    rolled = worth and through - after.chunk_start + 1 >= ROLLED_MESSAGES
    return replace(after, ended_seq=through) if rolled else after


def _unread(after: ConversationRow, rows: Sequence[MessageRow], orders: WorkSettings) -> ConversationRow:
    """Return the range that a model still has to read; an empty one leaves nothing behind."""
    if not orders.reads or not orders.digest:
        return replace(after, read_seq=after.next_seq - 1, stated_seq=0, unread_turns=0)
    said = [row.message.seq for row in rows if row.message.role == "user"]
    stated = said[-1] if said and orders.states else after.stated_seq
    return replace(after, stated_seq=stated, unread_turns=after.unread_turns + len(said))


def build_document(row: MessageRow, item: PreparedMessage, subject: str) -> DocRow:
    """Return the index document of a stored message."""
    message = row.message
    return DocRow(
        subject=subject,
        kind="message",
        doc=row.doc,
        conversation=message.conversation,
        seq=message.seq,
        ref="",
        session=row.session,
        speaker=message.speaker,
        role=message.role,
        at=_at(message),
        terms=item.terms.total(),
        chars=len(message.content),
        signals=item.signals,
        words=pack_words(item.terms),
    )


def _order_work(
    view: WriteView,
    rows: Sequence[MessageRow],
    before: ConversationRow,
    after: ConversationRow,
    config: Config,
    orders: WorkSettings,
    now_ms: int,
) -> None:
    """
    Queue the work of these messages: reading facts, closing chunks, embedding.

    A chunk can close once it is full and the next message is there, or when the conversation was
    said to be over; before that only a silence closes it, so the work waits until it is long enough.
    A chunk of few long messages is noticed at the next long one.
    """
    last_seq = after.next_seq - 1
    if after.extracted_seq < last_seq and any(row.message.role == "user" for row in rows):
        view.want("extract", "", wanted=last_seq, run_at_ms=now_ms + orders.extract_after_ms, now_ms=now_ms)
    waiting = after.next_seq - after.chunk_start
    silence_ms = config.chunk_gap_minutes * 60_000
    ended = after.ended_seq >= after.chunk_start
    long = any(row.message.tokens >= config.chunk_max_tokens / config.chunk_messages for row in rows)
    closable = ended or waiting > config.chunk_messages or after.session != before.session or (long and waiting > 2)
    due = now_ms if closable else max(now_ms, after.last_at + silence_ms)
    if orders.digest and orders.summarize and config.summaries:
        view.want("chunk", "", wanted=last_seq, run_at_ms=due, now_ms=now_ms)
    if orders.digest and orders.reads == "turns" and after.unread_turns:
        soon = is_reading_due(after, config.extract_every_user_turns)
        at = now_ms if soon else max(now_ms, after.last_at + silence_ms)
        view.want("read", "", wanted=last_seq, run_at_ms=at, now_ms=now_ms)
    if orders.embed:
        view.want("embed", "", wanted=last_seq, run_at_ms=now_ms, now_ms=now_ms)


def _at(message: Message) -> int:
    assert message.at is not None
    return to_ms(message.at)


UNSTATED_FACTOR = 3  # times as many messages wait, while the rules see no statement in them


def is_reading_due(row: ConversationRow, every: int) -> bool:
    """
    Whether unread messages may be due before their chunk closes: something was stated, and no call was early lately.

    With *every* at 1 each message is due.  Messages in which the rules saw no statement become due when there are many: a
    conversation without summaries closes no chunk that would read them.
    """
    if every == 1:
        return row.unread_turns > 0
    if row.stated_seq <= row.read_seq:
        return row.unread_turns >= UNSTATED_FACTOR * every
    return row.unread_turns >= every + max(0, row.ahead_turns) // 2 or row.ahead_turns <= 0


def advance_reading(row: ConversationRow, read: Sequence[Message], every: int, *, turns: int) -> ConversationRow:
    """Return the row after the messages *read*, with so many *turns*, have been read by one call."""
    if not read or read[-1].seq <= row.read_seq:
        return row  # another call has read them meanwhile
    said = sum(message.role == "user" and message.seq > row.read_seq for message in read)
    ahead = max(-2 * every, min(2 * every, row.ahead_turns + every - turns))
    return replace(row, read_seq=read[-1].seq, unread_turns=max(0, row.unread_turns - said), ahead_turns=ahead)


@dataclass(frozen=True, slots=True)
class PreparedMessage:
    """
    A message ready to be stored, with its index terms; ``dated``: the caller gave the time.

    ``discarded`` counts by kind what was found in it that must not be remembered; none of it is
    among the terms.
    """

    message: Message
    terms: Counter[str]
    signals: int
    dated: bool
    discarded: Counter[str] = field(default_factory=Counter)


def prepare(
    given: MessageLike | Sequence[MessageLike],
    *,
    now: datetime,
    max_chars: int,
    language: str | None = None,
    detectors: Sequence[Detector] = (),
    redact_messages: bool = False,
) -> list[PreparedMessage]:
    """
    Validate and clean one message or a list of them.

    What a message may be: see `checked_messages`; what its meta says about branches is left out.  With *redact_messages* what must not be
    remembered is taken out of the message itself, otherwise only out of what is made from it;
    *detectors* find more of it.

    Raises:
        BadInput: says which message (from 0) and what is wrong with it.
        TooLarge: its content is longer than *max_chars*.
    """
    found = []
    for message, dated in checked_messages(given, now=now, max_chars=max_chars):
        if FOLLOWS in message.meta or ABANDONED in message.meta:
            own = {name: value for name, value in message.meta.items() if name not in (FOLLOWS, ABANDONED)}
            message = replace(message, meta=own)
        counts = redact.count_secrets(message.content, detectors)
        kept = redact_message(message, detectors) if redact_messages else message
        found.append(replace(index_message(kept, now, language, detectors), dated=dated, discarded=counts))
    return found


def refuse_future(prepared: Sequence[PreparedMessage], now: datetime) -> None:
    """
    Check that no time which the caller gave lies more than a day ahead of *now*.

    Raises:
        BadInput: one does; what it states would be the newest until then, whatever the user says meanwhile.
    """
    for index, item in enumerate(prepared):
        if item.dated and item.message.at is not None and item.message.at - now > MAX_AHEAD:
            raise BadInput(
                f"message {index}: at lies more than a day in the future",
                hint="give the time when it was said, or leave at out",
            )


def index_message(
    message: Message, now: datetime, language: str | None, detectors: Sequence[Detector]
) -> PreparedMessage:
    """Return a checked message with its index terms, none of them from a secret."""
    text = redact.mask_secrets(message.content, detectors)
    return PreparedMessage(message, dated_terms(text, message.at or now, language), signals(text), dated=True)


def redact_message(message: Message, detectors: Sequence[Detector]) -> Message:
    """Return the message without secrets in its content and its meta."""
    content = redact.redact_secrets(message.content, detectors)
    meta = redact.redact_value(dict(message.meta), detectors)
    if content == message.content and meta == message.meta:
        return message
    return replace(message, content=content, meta=meta, tokens=count_tokens(content) + MESSAGE_OVERHEAD_TOKENS)


def body_digest(prepared: Sequence[PreparedMessage]) -> str:
    """Hash the caller's input with SHA-256, without times that the clock gave."""
    body = [
        [p.message.role, p.message.content, p.message.name, _ms(p.message) if p.dated else None, dict(p.message.meta)]
        for p in prepared
    ]
    return hashlib.sha256(json.dumps(body, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def _ms(message: Message) -> int | None:
    return to_ms(message.at) if message.at else None


def rate_reply(view: WriteView, score: float, seq: int | None, rated_at: str) -> Message:
    """
    Write what a user thought of a reply of the view's conversation, the latest one when *seq* is not given.

    Raises:
        NotFound: there is no such reply.
        BadInput: the message is no reply of the assistant.
        Conflict: the user paused memory or opted out.
    """
    if effective_consent(view.consent(), view.scope.subject) != "active":
        raise Conflict("the user does not want anything written now", hint="resume() first")
    row = view.conversation()
    last = row.next_seq - 1 if row else 0
    rows: Sequence[MessageRow] = ()
    if seq is not None:
        rows = view.message_rows(start_seq=seq, end_seq=seq)
        if rows and rows[0].message.role not in ("assistant", "erased"):
            raise BadInput(f"message {seq} is no reply of the assistant", hint="load() shows who said what")
    else:
        for end in range(last, 0, -RATED_PAGE):
            found = view.message_rows(start_seq=max(1, end - RATED_PAGE + 1), end_seq=end)
            rows = [one for one in found if one.message.role == "assistant"][-1:]
            if rows:
                break
    if not rows or rows[0].message.role == "erased":
        raise NotFound("there is no such reply to rate", hint="load() lists the messages with their numbers")
    said = rows[0].message
    rated = replace(said, meta={**said.meta, "rating": score, "rated_at": rated_at})
    view.rate_message(replace(rows[0], message=rated), score)
    return rated
