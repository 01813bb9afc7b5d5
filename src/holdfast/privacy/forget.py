"""
Erase facts with the words they rest on, whole subjects, whole users; leave branches; replay a ledger on an older copy.

A forgotten fact takes its words along, or the next rebuild would learn it again.  They are blanked where they
were said (as many characters, so that other quotes stay in place), and so is its value in the replies that
followed directly.  Where another fact rests on the same words ("allergic to nuts and shellfish"), only the words that
are the forgotten one's alone go, and the other stays; one that says the same words goes as well.

A message of a branch that was left (by editing, or by asking for another answer) keeps its row, with the role
``abandoned``; its words are in the meta.  It is no evidence and no document, and comes back whole
with its branch.  When something of the conversation is edited or erased, what was left there is erased with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ..errors import NotFound
from ..ingest.append import ABANDONED, FOLLOWS
from ..reconcile.erase import Removed
from ..reports import ErasureReceipt
from ..scope import Scope
from ..store import ConsentRow, ErasureRow, FactRow, MessageRow, ReadView, UserRow, WriteView
from ..text import dataclass
from ..types import BY_HAND_CONVERSATION, BY_HAND_SOURCE, Evidence, Fact, Message
from .consent import ConsentChoices
from .erasure import Eraser, Erasing, ErasureChanges, Find, Place, distinctive_words, every_word
from .ledger import (
    ERASED,
    MESSAGE,
    SUBJECT,
    USER,
    ErasedButPresent,
    ErasedItem,
    blank_spans,
    find_erased,
    record_erased,
    restored,
    rows_by_place,
    spans_by_message,
)

REPLIES = 8  # messages after a statement that are looked at for an echo, up to the next user message
LEAST_ECHO_CHARS = 3
LEAST_OWN_CHARS = 2
MOST_OF_NOTE = 0.75  # of the words of an event by hand, in a message that says it, too
USERS_PAGE = 1000
SAMPLED_MESSAGES = 50  # of each conversation of an erased user, for the search of the bytes
TABLES = {
    "conversation": "conversations", "message": "messages", "summary": "summaries", "story": "stories", "fact": "facts",
    "evidence": "quotes", "rejected": "refused", "idempotency": "keys", "doc": "documents",
    "segment": "packed documents", "vector": "vectors", "derivation": "edges", "coverage": "coverage", "job": "jobs", "prefix": "prefixes",
    "blocked_topic": "topics", "episode_range": "episode ranges", "rebuild": "rebuilds",
    "read_range": "read ranges", "context_stats": "measured replies", "prompt": "prompts", "usage": "usage",
    "provider_key": "provider keys", "event": "events",
    "subject": "subjects", "item": "items",
}  # fmt: skip


def forget_facts(choose: Callable[[ReadView], Sequence[FactRow]], *, refusals: bool = False) -> Find:
    """Name the changes that forget facts: the rows, and their words in the messages."""

    def find(view: ReadView) -> ErasureChanges:
        chosen = tuple(choose(view))
        messages, kept = _without_words(view, chosen)
        return ErasureChanges(messages, chosen, whole=False, refusals=refusals, kept=kept)

    return find


def facts_of(scope: Scope) -> Callable[[ReadView], list[FactRow]]:
    """Choose every fact of the user, live and past, or of the scope's subject alone."""
    return lambda view: [row for row in view.all_facts() if scope.subject is None or row.fact.subject == scope.subject]


Messages = dict[Place, dict[int, Message | None]]


def _without_words(view: ReadView, rows: Sequence[FactRow]) -> tuple[Messages, frozenset[str]]:
    """Blank the words of facts where they were said, and their values in the replies; return the siblings that stay."""
    messages: Messages = {}
    kept: set[str] = set()
    lost: set[str] = set()
    chosen = {row.fact.id for row in rows}
    for row in rows:
        by_hand = _only_by_hand(view, row.fact)
        for evidence in row.fact.evidence:
            place = (evidence.home, evidence.conversation)
            others = [other for other in _siblings(view, evidence) if other.id not in chosen]
            noted = by_hand and evidence.conversation != BY_HAND_CONVERSATION
            spans, stay = (noted_words if noted else own_words)(row.fact, evidence, others)
            kept.update(stay)
            lost.update(other.id for other in others if other.id not in stay)
            if spans:
                _blank(view, messages, place, evidence.seq, spans)
            if row.fact.value.casefold() in evidence.quote.casefold():
                _blank_echoes(view, messages, place, evidence.seq, row.fact.value)
    for place, seq in _left_behind_with(view, [row.fact for row in rows]):
        messages.setdefault(place, {})[seq] = None
    return messages, frozenset(kept - lost)


def _only_by_hand(view: ReadView, fact: Fact) -> bool:
    """Whether the user wrote an event by hand for a range, rather than correct one that was extracted from it."""
    if fact.kind != "episode" or fact.source != BY_HAND_SOURCE:
        return False
    ever = [row.fact for row in view.all_facts()] if len(fact.evidence) > 1 else []
    before, left = {fact.id}, [fact]
    while left:
        left = [one for one in ever if one.superseded_by in before and one.id not in before]
        before.update(one.id for one in left)
    return all(one.source == BY_HAND_SOURCE for one in ever if one.id in before)


def _left_behind_with(view: ReadView, facts: Sequence[Fact]) -> Iterator[tuple[Place, int]]:
    """Yield place and number of each message of the user that was left behind with a word of one of *facts*."""
    sought = frozenset[str]().union(*map(_words_of, facts))
    everybody = view.at(None, None)
    for subject, conversation in everybody.places_of(ABANDONED) if sought else ():
        for row in view.at(subject, conversation).message_rows():
            if row.message.role == ABANDONED and every_word(_all_text(restored(row.message))) & sought:
                yield (subject, conversation), row.message.seq


def _words_of(fact: Fact) -> frozenset[str]:
    """Return the words that may say a fact: those of its value, and of the quotes that say it in others."""
    value = fact.value.casefold()
    others = [said.quote for said in fact.evidence if value not in said.quote.casefold()]
    found = frozenset[str]().union(*map(distinctive_words, (fact.value, *others)))
    return found or every_word(f"{fact.value} {fact.text}")


def _all_text(message: Message) -> str:
    return f"{message.content} {json.dumps(dict(message.meta), ensure_ascii=False)}"


def _siblings(view: ReadView, said: Evidence) -> list[Fact]:
    """Return the facts, live and past, that rest on some of the same words."""
    everybody, here = view.at(None, None), view.at(said.home, said.conversation)
    found = [everybody.fact(child) for kind, child in here.derived_from(said.seq, said.seq) if kind == "fact"]
    return [row.fact for row in found if row is not None and any(_overlap(said, other) for other in row.fact.evidence)]


def _overlap(one: Evidence, other: Evidence) -> bool:
    same = (one.home, one.conversation, one.seq) == (other.home, other.conversation, other.seq)
    return same and one.start < other.end and other.start < one.end


def own_words(fact: Fact, said: Evidence, others: Sequence[Fact]) -> tuple[list[tuple[int, int]], set[str]]:
    """
    Return the places of the words that are the fact's alone in a message that it quotes, and the ids of *others* that stay.

    Those are its value where the quote has it, else the words of its sentence that no other fact holds.  A fact that
    holds one of these words says the same, and cannot stay.
    """
    words = {other.id: every_word(f"{other.value} {other.text}") for other in others}
    whole = [(said.start, said.end)]
    value = _spans(said, re.escape(fact.value)) if len(fact.value) >= LEAST_OWN_CHARS else []
    if value:
        mine = distinctive_words(fact.value) or every_word(fact.value)
    else:
        common = frozenset[str]().union(*words.values())
        mine = (distinctive_words(fact.text) & every_word(said.quote)) - common
        value = [span for word in mine for span in _spans(said, re.escape(word))]
    stay = {id_ for id_, held in words.items() if not held & mine}
    return (value, stay) if stay and value else (whole, set())


def noted_words(fact: Fact, said: Evidence, others: Sequence[Fact]) -> tuple[list[tuple[int, int]], set[str]]:
    """
    Return, as `own_words` does, what of a message goes with an event that was written by hand for a range with it.

    The event was not said there, so that the message stays.  One that says it all the same, in most of its words, loses those
    that no other fact has but a former version of the event.
    """
    now = [other for other in others if not (other.superseded_by and other.source == BY_HAND_SOURCE)]
    common = frozenset[str]().union(*(every_word(f"{other.value} {other.text}") for other in now))
    words = distinctive_words(fact.text)
    told = words & every_word(said.quote)
    mine = told - common if len(told) >= MOST_OF_NOTE * len(words) else ()
    return [span for word in mine for span in _spans(said, re.escape(word))], {other.id for other in now}


def _spans(said: Evidence, pattern: str) -> list[tuple[int, int]]:
    """Return where the quote has the words, as places in the message."""
    edge = r"(?<!\w){}(?!\w)" if pattern.isascii() else "{}"
    found = re.finditer(edge.format(pattern), said.quote, re.IGNORECASE)
    return [(said.start + one.start(), said.start + one.end()) for one in found]


def _blank(
    view: ReadView,
    messages: Messages,
    place: Place,
    seq: int,
    spans: Sequence[tuple[int, int]],
) -> None:
    there = messages.setdefault(place, {})
    message = there.get(seq) or next(iter(view.at(*place).messages(start_seq=seq, end_seq=seq)), None)
    if message is not None:
        there[seq] = blank_spans(message, spans)


def _blank_echoes(view: ReadView, messages: Messages, place: Place, seq: int, value: str) -> None:
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
    """Erase everything about a user, or about one subject; a pause, an opt-out and blocked categories stay."""
    if scope.subject is not None:
        return _erase_subject(eraser, scope)

    def work(view: WriteView) -> Removed:
        removed, categories = Removed(), eraser.reader.registry.categories
        stays = [(subject, topic) for subject, topic in view.blocked_topics() if not subject and topic in categories]
        for table, number in view.count_rows().items():
            if table in TABLES:
                removed.count(TABLES[table], number - (len(stays) if table == "blocked_topic" else 0))
        for row in view.conversations():
            found = view.at(row.subject, row.conversation).messages(limit=SAMPLED_MESSAGES)
            removed.texts += [message.content for message in found]
        removed.texts += [row.fact.text for row in view.all_facts()]
        removed.texts += [row.text for row in view.prompts()]
        if removed.rows:
            record_erased(view, [ErasedItem(view.scope, USER)], eraser.now_ms())
        if removed.rows or view.user() != UserRow():  # otherwise the user is unknown
            view.remove_user()
        for subject, topic in stays:
            view.set_blocked_topic(subject, topic, blocked=True, now_ms=eraser.now_ms())
        return removed

    removed = eraser.store.write(scope, work)
    eraser.forget_held(scope)
    return eraser.receipt(removed)


def _erase_subject(eraser: Eraser, scope: Scope) -> ErasureReceipt:
    """Erase a subject's facts with their words, wherever they were said, and its conversations, in one transaction."""

    def find(view: ReadView) -> ErasureChanges:
        chosen = tuple(facts_of(scope)(view))
        messages, kept = _without_words(view, chosen)
        elsewhere = {at: found for at, found in messages.items() if at[0] != scope.subject}
        return ErasureChanges(elsewhere, chosen, whole=False, refusals=True, kept=kept)

    def clear(erasing: Erasing) -> None:
        places = {(row.subject, row.conversation) for row in erasing.view.conversations()}
        places |= {place for place in erasing.view.item_homes() if place[0] == scope.subject}
        for place in sorted(places):
            there = erasing.at(*place)
            eraser.erase_corrections(there)
            there.clear_conversation()
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


def _there(view: ReadView, seq: int) -> list[Message]:
    """Return a message unless it was erased, as a list; one that was left behind, too."""
    rows = view.message_rows(start_seq=seq, end_seq=seq)
    return [row.message for row in rows if row.message.role != ERASED]


def _messages_gone(place: Scope, rows: Sequence[ErasureRow]) -> Callable[[ReadView], ErasureChanges]:
    seqs = sorted({row.seq for row in rows if row.kind == MESSAGE})

    def find(view: ReadView) -> ErasureChanges:
        here: dict[int, Message | None] = {seq: None for seq in seqs if _there(view, seq)}
        return _changes(place, here, whole=True)

    return find


def _words_gone(place: Scope, rows: Sequence[ErasureRow]) -> Callable[[ReadView], ErasureChanges]:
    def find(view: ReadView) -> ErasureChanges:
        here: dict[int, Message | None] = {}
        for seq, spans in spans_by_message(rows):
            for message in _there(view, seq):
                blank = blank_spans(message, spans)
                if message.role == ABANDONED:  # its words lie elsewhere
                    here[seq] = None
                elif blank.content != message.content:
                    here[seq] = blank
        return _changes(place, here, whole=False)

    return find


def _changes(place: Scope, here: Mapping[int, Message | None], *, whole: bool) -> ErasureChanges:
    named = (place.subject or "", place.conversation or "")
    return ErasureChanges({named: here} if here else {}, whole=whole)


def beginning_of_branch(eraser: Eraser, scope: Scope, after: int) -> Callable[[WriteView], int]:
    """
    Return what makes message *after* the last one of the conversation, in a transaction, and returns its number.

    Everything that is not on the way to it is left behind; a message of another branch comes back with what it followed.
    It raises `NotFound` when there is no such message.
    """
    statements = not eraser.read_mode(scope)

    def begin(view: WriteView) -> int:
        eraser.change_within(view, partial(_leave, after=after))
        for seq in _missing(view, after):
            eraser.change_within(view, partial(_bring_back, seq=seq), reread=seq, statements=statements)
        return after

    return begin


def load_branches(view: ReadView, start_seq: int = 1, last: int | None = None) -> list[Message]:
    """Return messages of a conversation with their words, ``meta["abandoned"]`` in those that were left behind."""
    row = view.conversation()
    rows = view.message_rows(start_seq=max(start_seq, row.next_seq - last) if row and last is not None else start_seq)
    found = [row.message for row in rows if row.message.role != ERASED]
    return [
        replace(one := restored(message), meta={**one.meta, ABANDONED: True}) if message.role == ABANDONED else message
        for message in found
    ]


def _leave(view: ReadView, after: int) -> ErasureChanges:
    """Name the changes that leave behind what is not on the way to message *after*."""
    row = view.conversation()
    rows = view.message_rows() if row is not None else []
    on_the_way = _way_to(rows, after)
    behind = {
        one.message.seq: _left_behind(one.message)
        for one in rows
        if one.message.role not in (ERASED, ABANDONED) and one.message.seq not in on_the_way
    }
    return ErasureChanges({(row.subject, row.conversation): behind} if row is not None and behind else {}, branch=True)


def _missing(view: ReadView, after: int) -> list[int]:
    """Return the messages on the way to *after* that were left behind, the first one first."""
    rows = view.message_rows()
    on_the_way = _way_to(rows, after)
    return [one.message.seq for one in rows if one.message.role == ABANDONED and one.message.seq in on_the_way]


def _bring_back(view: ReadView, seq: int) -> ErasureChanges:
    row, found = view.conversation(), view.message_rows(start_seq=seq, end_seq=seq)
    if row is None or not found or found[0].message.role != ABANDONED:
        return ErasureChanges({})
    return ErasureChanges({(row.subject, row.conversation): {seq: restored(found[0].message)}}, branch=True)


def _way_to(rows: Sequence[MessageRow], after: int) -> set[int]:
    """
    Return the numbers of the messages that lead to message *after*, its own included.

    Raises:
        NotFound: there is no such message.
    """
    there = {row.message.seq: row.message for row in rows if row.message.role != ERASED}
    if after and after not in there:
        raise NotFound(f"there is no message {after} in this conversation", hint="load(abandoned=True) lists them")
    way, at = set[int](), after
    while at in there and there[at].role == ABANDONED:
        way.add(at)
        follows = restored(there[at]).meta.get(FOLLOWS)
        at = (
            follows
            if isinstance(follows, int) and 0 <= follows < at
            else max((seq for seq in there if seq < at), default=0)
        )
    return way | {seq for seq, message in there.items() if seq <= at and message.role != ABANDONED}


def _left_behind(message: Message) -> Message:
    kept: dict[str, Any] = {"role": message.role, "name": message.name, "content": message.content}
    kept |= {"tokens": message.tokens, "meta": dict(message.meta)}
    return replace(message, role=ABANDONED, name=None, content="", tokens=0, meta={ABANDONED: kept})
