"""
What is erased by name: facts with the words they rest on, whole conversations, whole users.

A fact that is forgotten takes its words along, or the next rebuild would learn it again: they are
blanked where they were said (as many characters, so that other quotes stay in place), and so is its
value in the replies that followed directly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ..ingest.redact import MASK
from ..reconcile.erase import Removed, remove_quotes, undo_retractions
from ..reports import ErasureReceipt
from ..scope import SELF, Scope
from ..store import ConsentRow, ErasedRow, FactRow, ReadView, UserRow, WriteView
from ..types import Message
from .consent import ConsentChoices
from .erasure import (
    CONVERSATION,
    MESSAGE,
    SUBJECT,
    USER,
    ErasedButPresent,
    ErasedItem,
    Eraser,
    ErasureChanges,
    Find,
    Place,
    blank_spans,
    find_erased,
    finish_erasure,
    record_erased,
    remove_unsupported,
    rows_by_place,
    spans_by_message,
)

REPLIES = 8  # messages after a statement that are looked at for an echo, up to the next user message
LEAST_ECHO_CHARS = 3
SAMPLED_MESSAGES = 50  # of each conversation of an erased user, for the search of the bytes
TABLES = {
    "conversation": "conversations", "message": "messages", "summary": "summaries", "fact": "facts",
    "evidence": "quotes", "rejected": "refused", "idempotency": "keys", "doc": "documents", "posting": "terms",
    "vector": "vectors", "derivation": "edges", "coverage": "coverage", "job": "jobs", "prefix": "prefixes",
    "never": "topics", "episodes": "asked for episodes", "rebuilt": "rebuilds",
    "reading": "readings", "shown": "measured replies", "prompt": "prompts", "usage": "usage",
    "provider_key": "provider keys", "event": "events",
}  # fmt: skip


def forget_facts(choose: Callable[[ReadView], Sequence[FactRow]], *, refusals: bool = False) -> Find:
    """The changes that forget facts: the rows, and their words in the messages."""

    def find(view: ReadView) -> ErasureChanges:
        chosen = tuple(choose(view))
        messages: dict[Place, dict[int, Message | None]] = {}
        for row in chosen:
            for evidence in row.fact.evidence:
                place = (evidence.home, evidence.conversation)
                _blank(view, messages, place, evidence.seq, [(evidence.start, evidence.end)])
                if row.fact.value.casefold() in evidence.quote.casefold():
                    _blank_echoes(view, messages, place, evidence.seq, row.fact.value)
        return ErasureChanges(messages, chosen, whole=False, refusals=refusals)

    return find


def _blank(
    view: ReadView,
    messages: dict[Place, dict[int, Message | None]],
    place: Place,
    seq: int,
    spans: Sequence[tuple[int, int]],
) -> None:
    there = messages.setdefault(place, {})
    message = there.get(seq) or next(iter(view.at(*place).messages(start_seq=seq, end_seq=seq)), None)
    if message is None:
        return
    content = message.content
    for start, end in spans:
        content = content[:start] + re.sub(r"[^\n]", MASK, content[start:end]) + content[end:]
    there[seq] = replace(message, content=content, meta={k: v for k, v in message.meta.items() if k != "parts"})


def _blank_echoes(
    view: ReadView, messages: dict[Place, dict[int, Message | None]], place: Place, seq: int, value: str
) -> None:
    if len(value) < LEAST_ECHO_CHARS:
        return
    word = re.escape(value)
    echo = re.compile(rf"(?<!\w){word}(?!\w)" if value.isascii() else word, re.IGNORECASE)
    for message in view.at(*place).messages(start_seq=seq + 1, limit=REPLIES):
        if message.role == "user":
            return
        spans = [found.span() for found in echo.finditer(message.content)]
        if spans:
            _blank(view, messages, place, message.seq, spans)


def facts_of(scope: Scope) -> Callable[[ReadView], list[FactRow]]:
    """Every fact of the user, live and past, or of the scope's subject alone."""
    return lambda view: [row for row in view.facts_ever() if scope.subject is None or row.fact.subject == scope.subject]


def clear_conversation(eraser: Eraser, scope: Scope) -> ErasureReceipt:
    """Erase one conversation with its numbers and keys, and what rested only on it."""

    def work(view: WriteView) -> Removed:
        fallen, now_ms, row = Removed(), eraser.now_ms(), view.conversation()
        if row is None:
            return fallen
        seqs, subject = range(1, row.next_seq), scope.subject or SELF
        undo_retractions(view, seqs, now_ms)
        remove_quotes(view, seqs, lambda evidence: True, fallen, now_ms)
        messages, summaries = view.stored(), view.summary_rows()
        view.remove_docs(subject, "message", [m.doc for m in messages if m.doc])
        view.remove_docs(subject, "summary", [s.doc for s in summaries if s.live])
        view.remove_summaries([s.summary for s in summaries])
        fallen.count("conversations")
        fallen.count("messages", len(messages))
        fallen.count("summaries", len(summaries))
        fallen.count("refused", view.remove_rejected(1, row.next_seq))
        fallen.texts += [*(m.message.content for m in messages), *(s.summary.text for s in summaries)]
        view.remove_conversation()
        record_erased(view, [ErasedItem(view.scope, CONVERSATION)], now_ms)
        remove_unsupported(view, [m.message.content for m in messages], fallen, now_ms)
        finish_erasure(view, now_ms)
        return fallen

    return eraser.receipt(eraser.store.write(scope, work))


def erase_user(eraser: Eraser, scope: Scope) -> ErasureReceipt:
    """Erase everything about a user, or about one subject; a choice not to be remembered stays."""
    if scope.subject is not None:
        return _erase_subject(eraser, scope)

    def work(view: WriteView) -> Removed:
        fallen = Removed()
        for table, number in view.count_rows().items():
            if table in TABLES:
                fallen.count(TABLES[table], number)
        for row in view.conversations():
            found = view.at(row.subject, row.conversation).messages(limit=SAMPLED_MESSAGES)
            fallen.texts += [message.content for message in found]
        fallen.texts += [row.fact.text for row in view.facts_ever()]
        fallen.texts += [row.text for row in view.prompts()]
        if fallen.rows:
            record_erased(view, [ErasedItem(view.scope, USER)], eraser.now_ms())
        if fallen.rows or view.user() != UserRow():  # else there is nobody, and nothing to tell of
            view.remove_user()
        return fallen

    return eraser.receipt(eraser.store.write(scope, work))


def _erase_subject(eraser: Eraser, scope: Scope) -> ErasureReceipt:
    receipts = [eraser.change(scope, forget_facts(facts_of(scope), refusals=True))]
    for row in eraser.store.read(scope, lambda view: view.conversations()):
        receipts.append(clear_conversation(eraser, scope.within(row.conversation)))
    if any(receipt.rows for receipt in receipts):
        eraser.store.write(scope, lambda view: view.forget_subject())
    done = [receipt for receipt in receipts if receipt.rows]
    if done:
        eraser.store.write(scope, lambda view: record_erased(view, [ErasedItem(scope, SUBJECT)], eraser.now_ms()))
    rows: dict[str, int] = {}
    for receipt in done:
        for kind, number in receipt.rows.items():
            rows[kind] = rows.get(kind, 0) + number
    worst = min(done, key=lambda receipt: receipt.level, default=receipts[0])
    return replace(worst, rows=rows)


_PAGE = 1000


@dataclass(frozen=True, slots=True)
class ErasureReplay:
    """The ledger of another copy, applied to one store."""

    eraser: Eraser
    choices: ConsentChoices

    def users(
        self, key: str, rows: Sequence[ErasedRow], progress: Callable[[int], None] | None = None
    ) -> Iterator[tuple[Scope, ErasedButPresent]]:
        """Who is held here, and what of theirs the ledger says is gone; users with nothing of it are left out."""
        places = rows_by_place(rows)
        if not places:
            return
        for number, user in enumerate(self._everybody(), 1):
            found = self.eraser.store.read(user, partial(find_erased, key=key, places=places))
            if progress is not None:
                progress(number)
            if found.counts():
                yield user, found

    def erase(self, user: Scope, found: ErasedButPresent) -> None:
        """Erase what was found of one user, with all that rests on it."""
        if found.whole:
            erase_user(self.eraser, user)
            return
        for subject in found.subjects:
            erase_user(self.eraser, user.about(subject))
        for place in found.conversations:
            clear_conversation(self.eraser, place)
        if found.facts:
            ids = set(found.facts)
            chosen = forget_facts(lambda view: [r for r in view.facts_ever() if r.fact.id in ids])
            self.eraser.change(user, chosen)
        for place, rows in found.messages.items():
            for find in (_messages_gone(place, rows), _words_gone(place, rows)):
                self.eraser.change(place, find)

    def choose(self, chosen: Sequence[tuple[Scope, ConsentRow]], *, dry_run: bool) -> int:
        """Let the choices of another copy hold here, where they are not the same; how many were not."""
        number = 0
        for user, row in chosen:
            scope = user.about(row.subject or None)
            if self.choices.status(scope).state != row.state:
                number += 1
                if not dry_run:
                    self.choices.choose(scope, row.state)  # type: ignore[arg-type]
        return number

    def _everybody(self) -> Iterator[Scope]:
        after = None
        while page := self.eraser.store.users(limit=_PAGE, after=after):
            for org, user, bot in page:
                yield Scope(org=org, user=user, bot=bot, subject=None)
            after = page[-1]


def _messages_gone(place: Scope, rows: Sequence[ErasedRow]) -> Callable[[ReadView], ErasureChanges]:
    seqs = sorted({row.seq for row in rows if row.kind == MESSAGE})

    def find(view: ReadView) -> ErasureChanges:
        here: dict[int, Message | None] = {seq: None for seq in seqs if view.messages(start_seq=seq, end_seq=seq)}
        return _changes(place, here, whole=True)

    return find


def _words_gone(place: Scope, rows: Sequence[ErasedRow]) -> Callable[[ReadView], ErasureChanges]:
    def find(view: ReadView) -> ErasureChanges:
        here: dict[int, Message | None] = {}
        for seq, spans in spans_by_message(rows):
            for message in view.messages(start_seq=seq, end_seq=seq):
                blank = blank_spans(message, spans)
                if blank.content != message.content:
                    here[seq] = blank
        return _changes(place, here, whole=False)

    return find


def _changes(place: Scope, here: Mapping[int, Message | None], *, whole: bool) -> ErasureChanges:
    named = (place.subject or "", place.conversation or "")
    return ErasureChanges({named: here} if here else {}, whole=whole)
