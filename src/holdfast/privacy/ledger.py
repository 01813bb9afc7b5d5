"""
What was erased stays erased when an older copy of the store is put back.

Every erasure notes in its own transaction what it took away: a digest of the place, numbers, offsets; no name and
no word.  An older copy is gone through with that ledger: its users and conversations are digested in the same
way, and what matches is erased there again, with all that rests on it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from ..clock import new_id
from ..ingest.redact import MASK
from ..scope import SELF, Scope
from ..store.ledger import ErasedRow
from ..store.protocol import ReadView, WriteView
from ..types import Message

USER, SUBJECT, CONVERSATION, MESSAGE, WORDS, FACT = "user", "subject", "conversation", "message", "words", "fact"
KINDS = (USER, SUBJECT, CONVERSATION, MESSAGE, WORDS, FACT)


@dataclass(frozen=True, slots=True)
class Gone:
    """One thing that an erasure takes away; see `holdfast.store.ledger.ErasedRow`."""

    scope: Scope
    kind: str
    seq: int = 0
    fact: str = ""
    spans: tuple[tuple[int, int], ...] = ()


@dataclass(slots=True)
class Held:
    """What one user's memory in an older copy holds that was erased since."""

    whole: bool = False
    subjects: list[str] = field(default_factory=list)
    conversations: list[Scope] = field(default_factory=list)
    messages: dict[Scope, list[ErasedRow]] = field(default_factory=dict)
    facts: list[str] = field(default_factory=list)

    def counts(self) -> dict[str, int]:
        """How many of each kind."""
        found = {
            USER: int(self.whole),
            SUBJECT: len(self.subjects),
            CONVERSATION: len(self.conversations),
            MESSAGE: sum(len({row.seq for row in rows}) for rows in self.messages.values()),
            FACT: len(self.facts),
        }
        return {kind: number for kind, number in found.items() if number}


def place_of(key: str, scope: Scope) -> str:
    """The digest of a user, of one of their subjects, or of a conversation."""
    names = [scope.org, scope.bot, scope.user, scope.subject, scope.conversation]
    return hmac.new(bytes.fromhex(key), json.dumps(names).encode(), hashlib.sha256).hexdigest()


def note(view: WriteView, gone: Iterable[Gone], now_ms: int) -> None:
    """Write into the ledger what the transaction erases."""
    found = list(gone)
    if found:
        key = view.ledger_key()
        view.add_erased(
            [
                ErasedRow(
                    new_id("gone", now_ms), place_of(key, one.scope), one.kind, now_ms, one.seq, one.fact, one.spans
                )
                for one in found
            ]
        )


def of_message(scope: Scope, seq: int, before: str, after: str | None) -> Gone:
    """What became of one message: some words of it were blanked, or all of it went."""
    spans = None if after is None else blanked(before, after)
    return Gone(scope, MESSAGE, seq) if spans is None else Gone(scope, WORDS, seq, spans=spans)


def blanked(before: str, after: str) -> tuple[tuple[int, int], ...] | None:
    """The offsets that were blanked in a text; ``None`` when more than that has changed."""
    if len(before) != len(after) or any(a != b and b != MASK for a, b in zip(before, after, strict=True)):
        return None
    changed = [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    runs = [[i for _, i in run] for _, run in groupby(enumerate(changed), key=lambda pair: pair[1] - pair[0])]
    return tuple((run[0], run[-1] + 1) for run in runs)


def with_blanks(message: Message, spans: Iterable[tuple[int, int]]) -> Message:
    """The message with those words blanked, as many characters as before."""
    content = message.content
    for start, end in spans:
        if start > end:
            continue
        kept = "".join(char if char == "\n" else MASK for char in content[start:end])
        content = content[:start] + kept + content[end:]
    return replace(message, content=content, meta={k: v for k, v in message.meta.items() if k != "parts"})


def held(view: ReadView, key: str, places: Mapping[str, Sequence[ErasedRow]]) -> Held:
    """
    What of a ledger, by place, the user of *view* still holds here.

    A place of which nothing is there counts for nothing: it was made after this copy, or is gone from it.
    """
    user, found = view.scope.about(None), Held()
    rows = places.get(place_of(key, user), ())
    found.whole = any(row.kind == USER for row in rows)
    if found.whole:
        return found
    found.facts = [row.fact for row in rows if row.kind == FACT and view.fact(row.fact) is not None]
    there = view.conversations()
    subjects = sorted({row.subject for row in there} | {row.fact.subject for row in view.facts_ever()} | {SELF})
    for subject in subjects:
        if any(row.kind == SUBJECT for row in places.get(place_of(key, user.about(subject)), ())):
            found.subjects.append(subject)
    for one in there:
        place = user.about(one.subject).within(one.conversation)
        noted = places.get(place_of(key, place), ())
        if one.subject in found.subjects or not noted:
            continue
        if any(row.kind == CONVERSATION for row in noted):
            found.conversations.append(place)
            continue
        still = [row for row in noted if _stands(view.at(one.subject, one.conversation), row)]
        if still:
            found.messages[place] = still
    return found


def _stands(view: ReadView, row: ErasedRow) -> bool:
    """Whether a message still says what was erased of it."""
    said = view.messages(start_seq=row.seq, end_seq=row.seq)
    if not said:
        return False
    return row.kind == MESSAGE or with_blanks(said[0], row.spans).content != said[0].content


def by_place(rows: Iterable[ErasedRow]) -> dict[str, list[ErasedRow]]:
    """The rows of each place."""
    found: dict[str, list[ErasedRow]] = {}
    for row in rows:
        found.setdefault(row.place, []).append(row)
    return found


def spans_by_message(rows: Iterable[ErasedRow]) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """``(number, offsets)`` of the messages of which words were blanked."""
    found: dict[int, list[tuple[int, int]]] = {}
    for row in rows:
        if row.kind == WORDS:
            found.setdefault(row.seq, []).extend(row.spans)
    yield from sorted(found.items())
