"""
Counters of use: the tokens and cost of model calls, the facts that were shown, and the contexts before replies.

A read must not wait for the disk.  So the uses of facts and the sizes of contexts wait in memory, and are written with
the next write about the same user or conversation.  A count that is lost in a crash does no harm.
"""

from __future__ import annotations

import hashlib
import json
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import cache
from math import ceil, log
from typing import Any, NamedTuple, TypeVar

from ..clock import from_ms
from ..config import Config
from ..context.result import Context, ContextSource
from ..errors import BadInput, NotFound, StoreError
from ..reconcile.archive import record_uses
from ..reports import SentContext, SentItem, SentSection, Usage
from ..scope import BACKGROUND, Scope, actor
from ..store import ContextStatsRow, ReadView, Store, UsageRow, UserRow, WriteView, effective_consent
from ..text import dataclass, remembered
from ..text.terms import terms
from ..types import Message, ReplyUsage
from .observer import Observer

NANO = 10**9
KEY_PARTS = ("org", "user", "bot", "day", "layer", "model")

MAX_USERS = 1_000
MAX_FACTS = 500
MAX_READS = 20  # of one user that differ and wait
MAX_IDLE_USERS = 50  # whose counts are written at once while there is nothing else to do

SHORTEST_S = 1e-5
LONGER = 1.1  # each step of time than the one before

MAX_CONTEXTS = 1_000
PREFIX_DIGITS = 16
MARK_DIGITS = 8  # of the references of a section
LAST_SEQ = 2**53
MIN_SHARED_WORDS = 2
"""The rare words of a recalled item, beyond those of the question, that show that a reply used it."""

UserKey = tuple[str, str, str]
T = TypeVar("T")
ConversationKey = tuple[str, str, str, str | None, str | None]
FactUses = Mapping[str, tuple[int, int]]
"""``{fact id: (times, last in milliseconds)}``"""
Read = tuple[str, str, str | None, str | None]
"""Who read what, in which subject and conversation."""


class UseCounts(NamedTuple):
    """The uses of one user's facts, and the reads for the access log with how often, that wait to be written."""

    facts: FactUses
    reads: Mapping[Read, int]


def usage_of_all(
    store: Store,
    by: Sequence[str],
    since: date | None,
    until: date | None,
    *,
    org: str | None = None,
    user: str | None = None,
    bot: str | None = None,
) -> list[Usage]:
    """
    Return the usage of models by all users, or by those that are named, in sums.

    Raises:
        BadInput: *by* names something else than parts of the key, or a day is none.
    """
    parts, first, last = _checked(by), day_text(since), day_text(until)
    found = store.usage(parts, since=first or "", until=last or "9999", org=org, user=user, bot=bot)
    return [_usage(key, row) for key, row in found if row.calls]


def usage_of_user(store: Store, scope: Scope, by: Sequence[str], since: date | None, until: date | None) -> list[Usage]:
    """
    Return the usage of models for one user, read from their rows alone.

    Raises:
        BadInput: as `usage_of_all`.
    """
    parts, last = _checked(by), day_text(until)
    first = day_text(since)
    rows = store.read(scope, lambda view: view.usage(since=first or ""))
    owner = (scope.org, scope.user, scope.bot)
    org, user, bot = (value if name in parts else "" for name, value in zip(KEY_PARTS, owner, strict=False))
    sums: dict[tuple[str, str, str], UsageRow] = {}
    for row in rows:
        if last and row.day > last:
            continue
        day, layer, model = (getattr(row, name) if name in parts else "" for name in KEY_PARTS[3:])
        sums[day, layer, model] = sums.get((day, layer, model), UsageRow(day, layer, model)) + row
    return [_usage((org, user, bot), sums[key]) for key in sorted(sums)]


def day_of(now_ms: int) -> str:
    """Return the day in UTC, as ``2026-11-21``."""
    return from_ms(now_ms).date().isoformat()


def day_text(day: date | None) -> str | None:
    """
    Return the day in UTC as the store keeps it.

    Raises:
        BadInput: not a day, or a time without its zone.
    """
    if day is None:
        return None
    if not isinstance(day, date):
        raise BadInput(f"a day must be a date or a datetime, not {type(day).__name__}")
    if isinstance(day, datetime):
        if day.tzinfo is None:
            raise BadInput("a time needs its zone", hint="datetime.now(UTC), for example")
        day = day.astimezone(UTC).date()
    return day.isoformat()


def with_tokens(row: UsageRow, tokens: tuple[int, int, int], cost: float | None) -> UsageRow:
    """Return *row* with the tokens of one answer (input, output, cached input) and its cost in US dollars."""
    input_tokens, output_tokens, cached = (max(0, count) for count in tokens)
    return replace(
        row,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cached_tokens=cached,
        cost=round((cost or 0) * NANO),
        unpriced=int(cost is None),
    )


def publish_tokens(observer: Observer, label: str, row: UsageRow) -> None:
    """Publish the tokens of one call to the observers."""
    fresh = max(0, row.input_tokens - row.cached_tokens)
    counts = {"tokens.input": fresh, "tokens.cached": row.cached_tokens, "tokens.output": row.output_tokens}
    for name, count in counts.items():
        if count:
            observer.report(name, label, count)


def record(store: Store, scope: Scope, row: UsageRow, days: int) -> None:
    """Add a call to the recorded usage, which is kept for so many days."""

    def work(view: WriteView) -> None:
        if view.user() == UserRow():
            return  # erased during the call: nothing of the user comes back
        if not view.usage(since=row.day):
            view.remove_usage((date.fromisoformat(row.day) - timedelta(days=days)).isoformat())
        view.add_usage(row)

    store.write(scope, work)


def note_usage(view: WriteView, seq: int, used: ReplyUsage) -> None:
    """
    Keep with a reply what it used, unless the user paused or opted out.

    Raises:
        NotFound: there is no such message.
        BadInput: it is not an assistant's.
    """
    if effective_consent(view.consent(), view.scope.subject) != "active":
        return
    found = view.message_rows(start_seq=seq, end_seq=seq)
    if not found or found[0].message.role == "erased":
        raise NotFound(f"there is no message {seq} here", hint="append returns the numbers")
    if found[0].message.role != "assistant":
        raise BadInput(f"message {seq} is no reply of an assistant", hint="give the number of the reply")
    message = found[0].message
    view.annotate_message(replace(found[0], message=replace(message, meta={**message.meta, **used.meta})))


def _checked(by: Sequence[str]) -> tuple[str, ...]:
    parts = (by,) if isinstance(by, str) else tuple(by)
    if unknown := [part for part in parts if part not in KEY_PARTS]:
        raise BadInput(f"usage is not kept by {unknown[0]!r}", hint=f"use any of {', '.join(KEY_PARTS)}")
    return parts


def _usage(owner: tuple[str, str, str], row: UsageRow) -> Usage:
    return Usage(
        *owner,
        day=row.day,
        layer=row.layer,
        model=row.model,
        calls=row.calls,
        failed=row.failed,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        cached_tokens=row.cached_tokens,
        cost=None if row.unpriced else row.cost / NANO,
        unpriced=row.unpriced,
    )


class UseCounter:
    """
    The uses of facts, and the reads for the access log, that are not yet in the store; safe to use from any thread.

    Beyond ``MAX_USERS`` the oldest user is dropped, and beyond ``MAX_FACTS`` and ``MAX_READS`` of one user no more
    are counted.
    """

    def __init__(self, store: Store, now_ms: Callable[[], int], half_life_ms: float, config: Config) -> None:
        self._store, self._now_ms, self._half_life_ms, self._config = store, now_ms, half_life_ms, config
        self._counts: dict[UserKey, dict[str, tuple[int, int]]] = {}
        self._reads: dict[UserKey, dict[Read, int]] = {}
        self._lock = threading.Lock()

    def read(self, what: str, scope: Scope, work: Callable[[ReadView], T]) -> T:
        """Run *work* in one snapshot, as a read that the access log may name *what*."""
        found = self._store.read(scope, work)
        self.note_read(what, scope)
        return found

    def note_read(self, what: str, scope: Scope) -> None:
        """Keep a read for the access log, or not: `Config.read_log_share` are kept."""
        share, who = self._config.read_log_share, actor()
        if who == BACKGROUND or share <= 0 or (share < 1 and random.random() >= share):
            return
        read = (who, what, scope.subject, scope.conversation)
        with self._lock:
            reads = self._reads.setdefault(scope.user_key, {})
            if read in reads or len(reads) < MAX_READS:
                reads[read] = reads.get(read, 0) + 1
            while len(self._reads) > MAX_USERS:
                del self._reads[next(iter(self._reads))]

    def note_preview(self, scope: Scope, dry_run: bool = True) -> None:
        """Keep a call that only says what it would do, with words of the memory, for the access log."""
        if dry_run:
            self.note_read("preview", scope)

    def forget_reads(self) -> None:
        """Drop the reads that wait, after an erasure: a user who comes back has none from before."""
        with self._lock:
            self._reads.clear()

    def add(self, scope: Scope, fact_ids: Iterable[str]) -> None:
        """Count that these facts of the scope's user were just shown for a question."""
        now_ms, ids = self._now_ms(), list(dict.fromkeys(fact_ids))
        if not ids:
            return
        with self._lock:
            counts = self._counts.setdefault(scope.user_key, {})
            for fact_id in ids:
                if fact_id in counts or len(counts) < MAX_FACTS:
                    counts[fact_id] = (counts.get(fact_id, (0, 0))[0] + 1, now_ms)
            while len(self._counts) > MAX_USERS:
                del self._counts[next(iter(self._counts))]

    def pop(self, scope: Scope) -> UseCounts:
        """Remove and return the counts of the scope's user, for the caller to `write` or `restore`."""
        with self._lock:
            return UseCounts(self._counts.pop(scope.user_key, {}), self._reads.pop(scope.user_key, {}))

    def restore(self, scope: Scope, popped: UseCounts) -> None:
        """Put counts back whose write failed."""
        with self._lock:
            counts = self._counts.setdefault(scope.user_key, {})
            for fact_id, (times, at_ms) in popped.facts.items():
                before = counts.get(fact_id, (0, 0))
                counts[fact_id] = (before[0] + times, max(before[1], at_ms))
            reads = self._reads.setdefault(scope.user_key, {})
            for read, often in popped.reads.items():
                reads[read] = reads.get(read, 0) + often

    def write(self, view: WriteView, counts: UseCounts) -> None:
        """Write counts inside the caller's transaction."""
        self.write_reads(view, counts)
        rows = view.uses(list(counts.facts)) if counts.facts else []
        view.save_uses([record_uses(row, *counts.facts[row.id], self._half_life_ms) for row in rows])

    @staticmethod
    def write_reads(view: WriteView, counts: UseCounts) -> None:
        """Write the reads inside the caller's transaction; of a user who was erased nothing comes back."""
        if counts.reads and view.user() != UserRow():
            for (who, what, subject, conversation), times in counts.reads.items():
                view.at(subject, conversation).note_read(who, what if times == 1 else f"{what} {times}")

    def flush(self, scope: Scope | None = None) -> None:
        """Write the counts of all users or of one; drop those of users who paused memory."""
        with self._lock:
            users = [key for key in self._waiting() if scope is None or key == scope.user_key]
        for user_key in users:
            self._flush_user(*user_key)

    def flush_some(self) -> None:
        """Write the counts of a few users, for a process that has nothing else to do; what fails is kept for later."""
        with self._lock:
            users = self._waiting()[:MAX_IDLE_USERS]
        with suppress(StoreError):
            for user_key in users:
                self._flush_user(*user_key)

    def _waiting(self) -> list[UserKey]:
        return list({**self._counts, **self._reads})

    def _flush_user(self, org: str, user: str, bot: str) -> None:
        whole = Scope(org=org, user=user, bot=bot)
        counts = self.pop(whole)

        def work(view: WriteView) -> None:
            state = effective_consent(view.consent(), None)
            if state == "active":
                self.write(view, counts)
            elif state == "paused":
                self.write_reads(view, counts)

        try:
            self._store.write(whole, work)
        except StoreError:
            self.restore(whole, counts)
            raise


class CallTimes:
    """
    Times of calls by hour, of all processes that count: numbers alone, without names; from `Admin.call_times`.

    A time is kept as its step, and each step is a tenth longer than the one before: a percentile is off by a twentieth
    at most, and an hour has some dozens of numbers however many calls it had.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    @staticmethod
    def step_of(seconds: float) -> int:
        """Return the step of a time; 0 ends at one second."""
        return ceil(log(max(seconds, SHORTEST_S)) / log(LONGER))

    @staticmethod
    def percentile(steps: Mapping[int, int], share: float) -> float | None:
        """Return the seconds within which *share* of calls ended, by how many were of which step; ``None`` where there were none."""
        left = share * sum(steps.values())
        for step in sorted(steps):
            left -= steps[step]
            if left < 0 or step == max(steps):
                return float(LONGER ** (step - 0.5))
        return None

    def since(self, call: str, hour: int) -> dict[int, dict[int, int]]:
        """Return how many calls since an hour (of 1970, UTC) were of which step, by hour."""
        found = dict[int, dict[int, int]]()
        for at, step, calls in self._store.call_times(call, hour):
            found.setdefault(at, {})[step] = calls
        return found

    def add(self, taken: Mapping[tuple[str, int, int], int], *, before_hour: int) -> None:
        """Count calls, by name, hour, and step; those before *before_hour* are removed."""
        self._store.add_call_times(taken, before_hour=before_hour)


@dataclass(frozen=True, slots=True)
class ContextSize:
    """
    The size of one context without the caller's system text, its stable prefix, and the recalled texts.

    ``sections`` are name, tokens and whether it is stable, of each.  ``erasures`` is how many erasures there had been
    when it was made.
    """

    at_ms: int
    strategy: str
    sent: int
    prefix: str
    question: str
    recalled: tuple[str, ...]
    budget_tokens: int
    sections: tuple[tuple[str, int, bool], ...]
    sources: tuple[ContextSource, ...]
    erasures: int


class Answered(NamedTuple):
    """A context that was answered: the reply's place in its batch, and how many recalled items it used."""

    place: int
    size: ContextSize
    used: int


class ContextStats:
    """
    The newest context of each conversation that waits for its reply; safe to use from any thread.

    Recalled texts are kept only until the reply; only sizes, counts, digests and references are written.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._waiting: dict[ConversationKey, ContextSize] = {}
        self._erasures = 0
        self._lock = threading.Lock()

    def add(self, scope: Scope, strategy: str, context: Context, question: str, recalled: Sequence[str]) -> None:
        """Keep the size of a context that was just made for the scope's conversation, and what it was made of."""
        key, sections = (
            _conversation_key(scope),
            tuple((s.name, s.tokens, s.stable) for s in context.sections if s.tokens),
        )
        sent = sum(tokens for name, tokens, _ in sections if name != "system")
        sizes = (self._now_ms(), strategy, sent, context.prefix_sha256[:PREFIX_DIGITS])
        parts = (tuple(recalled), context.budget_tokens, sections, context.sources)
        with self._lock:
            self._waiting.pop(key, None)
            self._waiting[key] = ContextSize(*sizes, question, *parts, self._erasures)
            while len(self._waiting) > MAX_CONTEXTS:
                del self._waiting[next(iter(self._waiting))]

    def pop(self, scope: Scope, messages: Sequence[Message]) -> Answered | None:
        """Remove and return the context that a reply among *messages* answers."""
        reply = next((at for at, message in enumerate(messages) if message.role == "assistant"), None)
        if reply is None:
            return None
        with self._lock:
            size = self._waiting.pop(_conversation_key(scope), None)
        if size is None:
            return None
        return Answered(reply, size, count_used(messages[reply].content, size.recalled, size.question))

    def restore(self, scope: Scope, popped: Answered | None) -> None:
        """Put back a context whose write failed, unless a newer context or an erasure came in between."""
        with self._lock:
            if popped is not None and popped.size.erasures == self._erasures:
                self._waiting.setdefault(_conversation_key(scope), popped.size)

    def clear(self) -> None:
        """Drop all recalled texts after an erasure."""
        with self._lock:
            self._erasures += 1
            self._waiting.clear()

    @staticmethod
    def write(view: WriteView, popped: Answered, first_seq: int) -> None:
        """Write a context for the reply whose batch begins at *first_seq*, inside the caller's transaction."""
        size, seq = popped.size, first_seq + popped.place
        before = next(iter(view.contexts_sent(seq - 1, 1)), None)
        view.add_context_stats(
            ContextStatsRow(
                seq,
                size.at_ms,
                size.strategy,
                size.sent,
                size.prefix,
                len(size.recalled),
                popped.used,
                _references(size, view.scope.conversation or "", before),
            )
        )


def _references(size: ContextSize, here: str, before: ContextStatsRow | None) -> str:
    """
    Return the sections of a context as JSON, with references to their items.

    A section with the items of an earlier reply names that reply in their place: the facts and summaries of a long
    conversation change seldom.
    """
    known = {old[0]: old for old in _parsed(before)["sections"]} if before else {}
    sections, mark_of = [], cache(_mark_of)
    refs: dict[str, list[Any]] = {name: [] for name, _, _ in size.sections}
    for one in size.sources:
        if one.kind != "query" and one.section in refs:
            refs[one.section].append(_reference(one, here, mark_of))
    for name, tokens, stable in size.sections:
        held: Any = list(_joined([ref for ref in refs[name] if ref is not None]))
        mark = hashlib.sha256(json.dumps(held).encode()).hexdigest()[:MARK_DIGITS]
        old = known.get(name)
        if before and old and old[3] == mark and held:
            held = old[4] if isinstance(old[4], int) else before.seq
        sections.append([name, tokens, int(stable), mark, held])
    return json.dumps({"budget": size.budget_tokens, "sections": sections}, separators=(",", ":"))


def _parsed(row: ContextStatsRow) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(row.sent) if row.sent else {"budget": 0, "sections": []}
    return found


def _reference(source: ContextSource, here: str, mark_of: Callable[[str], str]) -> Any:
    """Return what names an item: the id of a fact, ``[first, last]`` of messages here, or kind, conversation and number."""
    if source.kind == "fact":
        return source.id
    at = "" if source.conversation in ("", here) else mark_of(source.conversation)
    if source.kind == "message":
        if source.start_seq < 1:
            return None
        return ["m", at, source.start_seq] if at else [source.start_seq, source.end_seq]
    return [source.kind[:2], at, source.id] if source.id else None


def _mark_of(conversation: str) -> str:
    """Return a digest of a conversation's name: once the conversation is erased, its name is in no record."""
    return hashlib.sha256(conversation.encode()).hexdigest()[:PREFIX_DIGITS]


def _joined(refs: Iterable[Any]) -> Iterator[Any]:
    """Yield references, with messages that follow one another as one range."""
    span: list[int] | None = None
    for ref in refs:
        if isinstance(ref, list) and isinstance(ref[0], int):
            if span and ref[0] == span[1] + 1:
                span[1] = ref[1]
                continue
            if span:
                yield span
            span = list(ref)
            continue
        if span:
            yield span
            span = None
        yield ref
    if span:
        yield span


def sent_context(view: ReadView, seq: int | None = None) -> SentContext | None:
    """Return the context that was sent for a reply of the scope's conversation; see `Conversation.sent`."""
    rows = view.contexts_sent(LAST_SEQ if seq is None else seq, 2)
    if not rows or not rows[0].sent or (seq is not None and rows[0].seq != seq):
        return None
    row, before = rows[0], rows[1] if len(rows) > 1 and rows[1].sent else None
    names = {_mark_of(name): name for name in view.of_user().conversation_names()}
    names[""] = view.scope.conversation or ""
    was, old = _sections_of(view, before), _parsed(before)["sections"] if before else []
    sections = []
    for (name, tokens, stable, *_), refs in _sections_of(view, row):
        held = next((found for section, found in was if section[0] == name), [])
        fresh = {json.dumps(ref) for ref in refs} - {json.dumps(ref) for ref in held}
        lost = [ref for ref in held if ref not in refs]
        items = (_sent_item(view, ref, names, json.dumps(ref) in fresh if before else False) for ref in refs)
        gone = (_sent_item(view, ref, names, False) for ref in lost)
        past = next((one[1] for one in old if one[0] == name), 0) if before else None
        sections.append(SentSection(name, tokens, bool(stable), tuple(items), past, tuple(gone)))
    said = view.messages(start_seq=row.seq, end_seq=row.seq)
    return SentContext(
        seq=row.seq,
        at=from_ms(row.at),
        strategy=row.strategy,
        tokens=row.tokens,
        budget_tokens=_parsed(row)["budget"],
        prefix=row.prefix,
        prefix_changed_because=_prefix_change(row, before, sections),
        sections=tuple(sections),
        recalled=row.recalled,
        used=row.used,
        usage=said[0].usage if said else None,
        previous_seq=before.seq if before else None,
    )


def _prefix_change(row: ContextStatsRow, before: ContextStatsRow | None, sections: Sequence[SentSection]) -> str | None:
    """Return in words why the stable part is another than for the reply before, ``None`` where it is the same."""
    if before is None:
        return "it is the first context on record here"
    if row.prefix == before.prefix:
        return None
    said = []
    for section in (one for one in sections if one.stable):
        new, gone = sum(item.new for item in section.items), len(section.gone)
        counts = [f"{new} new"] * (new > 0) + [f"{gone} no longer shown"] * (gone > 0)
        if counts:
            said.append(f"{section.name}: {', '.join(counts)}")
        elif section.tokens != section.tokens_before:
            said.append(f"{section.name}: {section.tokens_before:,} tokens became {section.tokens:,}")
    return "; ".join(said) or "its wording changed, not its items"


def _sections_of(view: ReadView, row: ContextStatsRow | None) -> list[tuple[list[Any], list[Any]]]:
    """Return the sections of a context with the references to their items, a message each."""
    found, earlier = [], dict[int, dict[str, Any]]()
    for section in _parsed(row)["sections"] if row else ():
        held = section[4]
        if isinstance(held, int):
            if held not in earlier:
                rows = view.contexts_sent(held, 1)
                earlier[held] = {one[0]: one[4] for one in _parsed(rows[0])["sections"]} if rows else {}
            held = earlier[held].get(section[0], ())
            held = held if isinstance(held, list) else []
        found.append((section, [single for ref in held for single in _singles(ref)]))
    return found


def _singles(ref: Any) -> Iterator[Any]:
    if isinstance(ref, list) and isinstance(ref[0], int):
        yield from ([seq, seq] for seq in range(ref[0], ref[1] + 1))
    else:
        yield ref


def _sent_item(view: ReadView, ref: Any, names: Mapping[str, str], new: bool) -> SentItem:
    """Return the item that a reference names, with what it says today."""
    if isinstance(ref, str):
        row = view.fact(ref)
        return SentItem("fact", ref, "", 0, 0, row.fact.text if row else None, new)
    here = view.scope.conversation or ""
    if isinstance(ref[0], int) or ref[0] == "m":
        seq, name = (ref[0], here) if isinstance(ref[0], int) else (ref[2], names.get(ref[1], ""))
        said = view.at(view.scope.subject, name).messages(start_seq=seq, end_seq=seq) if name else []
        return SentItem("message", "", name, seq, seq, said[0].content if said else None, new)
    if ref[0] == "st":
        story = next((one for one in view.stories() if one.id == ref[2]), None)
        return SentItem(
            "story", ref[2], "", 0, 0, "\n".join(line.dated for line in story.lines) if story else None, new
        )
    name = names.get(ref[1], "")
    found = view.at(view.scope.subject, name).summary_text(ref[2]) if name else None
    start_seq, end_seq, text = found or (0, 0, None)
    return SentItem("summary", ref[2], name, start_seq, end_seq, text, new)


def count_used(reply: str, items: Sequence[str], question: str) -> int:
    """
    Guess how many recalled items a reply used, by rare words of an item that the question does not hold.

    They share two such words, or all that the item has.
    """
    asked, said = (_stems(text) if items else frozenset() for text in (question, reply))
    rare = (_stems(item) - asked for item in items)
    return sum(len(own & said) >= min(MIN_SHARED_WORDS, len(own)) for own in rare if own)


@remembered(4096)  # the next reply answers a context that recalls most of the same turns
def _stems(text: str) -> frozenset[str]:
    return frozenset(terms(text))


def _conversation_key(scope: Scope) -> ConversationKey:
    return (*scope.user_key, scope.subject, scope.conversation)
