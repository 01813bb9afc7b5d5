"""
Erase facts with the words they rest on, whole subjects, whole users; and replay a ledger on an older copy.

A forgotten fact takes its words along, or the next rebuild would learn it again.  They are blanked where they
were said (as many characters, so that other quotes stay in place), and so is its value in the replies that
followed directly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ..reconcile.erase import Removed
from ..reports import ErasureReceipt
from ..scope import Scope
from ..store import ConsentRow, ErasureRow, FactRow, ReadView, UserRow, WriteView
from ..types import Message
from .consent import ConsentChoices
from .erasure import (
    MESSAGE,
    SUBJECT,
    USER,
    ErasedButPresent,
    ErasedItem,
    Eraser,
    Erasing,
    ErasureChanges,
    Find,
    Place,
    blank_spans,
    find_erased,
    record_erased,
    rows_by_place,
    spans_by_message,
)

REPLIES = 8  # messages after a statement that are looked at for an echo, up to the next user message
LEAST_ECHO_CHARS = 3
USERS_PAGE = 1000
SAMPLED_MESSAGES = 50  # of each conversation of an erased user, for the search of the bytes
TABLES = {
    "conversation": "conversations", "message": "messages", "summary": "summaries", "fact": "facts",
    "evidence": "quotes", "rejected": "refused", "idempotency": "keys", "doc": "documents", "posting": "terms",
    "vector": "vectors", "derivation": "edges", "coverage": "coverage", "job": "jobs", "prefix": "prefixes",
    "blocked_topic": "topics", "episode_range": "episode ranges", "rebuild": "rebuilds",
    "read_range": "read ranges", "context_stats": "measured replies", "prompt": "prompts", "usage": "usage",
    "provider_key": "provider keys", "event": "events",
    "subject": "subjects",
}  # fmt: skip


def forget_facts(choose: Callable[[ReadView], Sequence[FactRow]], *, refusals: bool = False) -> Find:
    """Name the changes that forget facts: the rows, and their words in the messages."""

    def find(view: ReadView) -> ErasureChanges:
        chosen = tuple(choose(view))
        return ErasureChanges(_without_words(view, chosen), chosen, whole=False, refusals=refusals)

    return find


def facts_of(scope: Scope) -> Callable[[ReadView], list[FactRow]]:
    """Choose every fact of the user, live and past, or of the scope's subject alone."""
    return lambda view: [row for row in view.all_facts() if scope.subject is None or row.fact.subject == scope.subject]


def _without_words(view: ReadView, rows: Sequence[FactRow]) -> dict[Place, dict[int, Message | None]]:
    """Blank the quotes of facts where they were said, and their values in the replies."""
    messages: dict[Place, dict[int, Message | None]] = {}
    for row in rows:
        for evidence in row.fact.evidence:
            place = (evidence.home, evidence.conversation)
            _blank(view, messages, place, evidence.seq, [(evidence.start, evidence.end)])
            if row.fact.value.casefold() in evidence.quote.casefold():
                _blank_echoes(view, messages, place, evidence.seq, row.fact.value)
    return messages


def _blank(
    view: ReadView,
    messages: dict[Place, dict[int, Message | None]],
    place: Place,
    seq: int,
    spans: Sequence[tuple[int, int]],
) -> None:
    there = messages.setdefault(place, {})
    message = there.get(seq) or next(iter(view.at(*place).messages(start_seq=seq, end_seq=seq)), None)
    if message is not None:
        there[seq] = blank_spans(message, spans)


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


def erase_user(eraser: Eraser, scope: Scope) -> ErasureReceipt:
    """Erase everything about a user, or about one subject; a pause or an opt-out stays."""
    if scope.subject is not None:
        return _erase_subject(eraser, scope)

    def work(view: WriteView) -> Removed:
        removed = Removed()
        for table, number in view.count_rows().items():
            if table in TABLES:
                removed.count(TABLES[table], number)
        for row in view.conversations():
            found = view.at(row.subject, row.conversation).messages(limit=SAMPLED_MESSAGES)
            removed.texts += [message.content for message in found]
        removed.texts += [row.fact.text for row in view.all_facts()]
        removed.texts += [row.text for row in view.prompts()]
        if removed.rows:
            record_erased(view, [ErasedItem(view.scope, USER)], eraser.now_ms())
        if removed.rows or view.user() != UserRow():  # otherwise the user is unknown
            view.remove_user()
        return removed

    return eraser.receipt(eraser.store.write(scope, work))


def _erase_subject(eraser: Eraser, scope: Scope) -> ErasureReceipt:
    """Erase a subject's facts with their words, wherever they were said, and its conversations, in one transaction."""

    def find(view: ReadView) -> ErasureChanges:
        chosen = tuple(facts_of(scope)(view))
        elsewhere = {at: found for at, found in _without_words(view, chosen).items() if at[0] != scope.subject}
        return ErasureChanges(elsewhere, chosen, whole=False, refusals=True)

    def clear(erasing: Erasing) -> None:
        for row in erasing.view.conversations():
            erasing.at(row.subject, row.conversation).clear_conversation()
        if any(row.subject == scope.subject for row in erasing.view.subjects()):
            erasing.removed.count("subjects")
            erasing.view.remove_subject(scope.subject or "")
        if erasing.removed.rows:
            erasing.view.forget_subject()
            erasing.ledger.append(ErasedItem(scope, SUBJECT))

    return eraser.change(scope, find, also=clear)


@dataclass(frozen=True, slots=True)
class ErasureReplay:
    """Apply the ledger of another copy to one store."""

    eraser: Eraser
    choices: ConsentChoices

    def users(
        self, key: str, rows: Sequence[ErasureRow], progress: Callable[[int], None] | None = None
    ) -> Iterator[tuple[Scope, ErasedButPresent]]:
        """Yield each user who still holds something that the ledger says is erased, with what that is."""
        places = rows_by_place(rows)
        if not places:
            return
        for number, user in enumerate(self._all_users(), 1):
            found = self.eraser.store.read(user, partial(find_erased, key=key, places=places))
            if progress is not None:
                progress(number)
            if found.counts():
                yield user, found

    def erase(self, user: Scope, found: ErasedButPresent) -> None:
        """Erase what was found of one user, with everything that rests on it."""
        if found.whole:
            erase_user(self.eraser, user)
            return
        for subject in found.subjects:
            erase_user(self.eraser, user.about(subject))
        for place in found.conversations:
            self.eraser.clear_conversation(place)
        if found.facts:
            ids = set(found.facts)
            chosen = forget_facts(lambda view: [r for r in view.all_facts() if r.fact.id in ids])
            self.eraser.change(user, chosen)
        for place, rows in found.messages.items():
            for find in (_messages_gone(place, rows), _words_gone(place, rows)):
                self.eraser.change(place, find)

    def apply_choices(self, chosen: Sequence[tuple[Scope, ConsentRow]], *, dry_run: bool) -> int:
        """Apply the consent choices of another copy where they differ; return how many did."""
        number = 0
        for user, row in chosen:
            scope = user.about(row.subject or None)
            if self.choices.status(scope).state != row.state:
                number += 1
                if not dry_run:
                    self.choices.choose(scope, row.state)  # type: ignore[arg-type]
        return number

    def _all_users(self) -> Iterator[Scope]:
        after = None
        while page := self.eraser.store.users(limit=USERS_PAGE, after=after):
            for org, user, bot in page:
                yield Scope(org=org, user=user, bot=bot, subject=None)
            after = page[-1]


def _messages_gone(place: Scope, rows: Sequence[ErasureRow]) -> Callable[[ReadView], ErasureChanges]:
    seqs = sorted({row.seq for row in rows if row.kind == MESSAGE})

    def find(view: ReadView) -> ErasureChanges:
        here: dict[int, Message | None] = {seq: None for seq in seqs if view.messages(start_seq=seq, end_seq=seq)}
        return _changes(place, here, whole=True)

    return find


def _words_gone(place: Scope, rows: Sequence[ErasureRow]) -> Callable[[ReadView], ErasureChanges]:
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
