"""
The ledger: what erasures took away, as digests, numbers and offsets without a name or a word.

With it an older copy of the store can be cleaned of what was erased since.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import groupby
from typing import Any

from ..clock import new_id
from ..errors import BadInput
from ..ingest.append import ABANDONED
from ..ingest.redact import MASK
from ..scope import SELF, Scope, checked_name
from ..store import ConsentRow, ErasureRow, ReadView, WriteView
from ..text import dataclass
from ..types import Message

FORMAT, ERASED = "holdfast ledger 1", "erased"
USER, SUBJECT, CONVERSATION, MESSAGE, WORDS, FACT = "user", "subject", "conversation", "message", "words", "fact"
WITHHELD = "withheld"  # one entry a user: something was erased, said during a pause, or not to be stored
_CHOICES = ("paused", "opted-out")
KINDS = (USER, SUBJECT, CONVERSATION, MESSAGE, WORDS, FACT, WITHHELD)


@dataclass(frozen=True, slots=True)
class ErasedItem:
    """One thing that an erasure takes away; see `holdfast.store.ErasureRow`."""

    scope: Scope
    kind: str
    seq: int = 0
    fact: str = ""
    spans: tuple[tuple[int, int], ...] = ()


@dataclass(slots=True)
class ErasedButPresent:
    """Items in one user's memory of an older copy that were erased since."""

    whole: bool = False
    subjects: list[str] = field(default_factory=list)
    conversations: list[Scope] = field(default_factory=list)
    messages: dict[Scope, list[ErasureRow]] = field(default_factory=dict)
    facts: list[str] = field(default_factory=list)

    def counts(self) -> dict[str, int]:
        """Return the number of items of each kind."""
        found = {
            USER: int(self.whole),
            SUBJECT: len(self.subjects),
            CONVERSATION: len(self.conversations),
            MESSAGE: sum(len({row.seq for row in rows}) for rows in self.messages.values()),
            FACT: len(self.facts),
        }
        return {kind: number for kind, number in found.items() if number}


def place_digest(key: str, scope: Scope) -> str:
    """Return the digest of a user, of one of their subjects, or of a conversation."""
    names = [scope.org, scope.bot, scope.user, scope.subject, scope.conversation]
    return hmac.new(bytes.fromhex(key), json.dumps(names).encode(), hashlib.sha256).hexdigest()


def record_erased(view: WriteView, gone: Iterable[ErasedItem], now_ms: int) -> None:
    """Write into the ledger what the transaction erases."""
    found = list(gone)
    if found:
        key = view.ledger_key()
        view.add_erasures(
            [
                ErasureRow(
                    new_id("gone", now_ms), place_digest(key, one.scope), one.kind, now_ms, one.seq, one.fact, one.spans
                )
                for one in found
            ]
        )
        note_withheld(view, now_ms)


def note_withheld(view: WriteView, now_ms: int) -> None:
    """
    Note, once, that the view's user has said something that this memory shall not hold.

    From then on an older history that a chat program shows is no longer taken in by itself, as those words may be in it.
    """
    place = place_digest(view.ledger_key(), _whole(view.scope))
    view.add_erasures([ErasureRow(f"{WITHHELD}-{place}", place, WITHHELD, now_ms, 0, "", ())])


def is_withheld(view: ReadView) -> bool:
    """Whether the view's user has said something that this memory shall not hold; see `note_withheld`."""
    key = view.known_ledger_key()
    return bool(key) and view.is_in_ledger(f"{WITHHELD}-{place_digest(key, _whole(view.scope))}")


def _whole(scope: Scope) -> Scope:
    """Return the scope of all that is held of a user."""
    return Scope(scope.org, scope.bot, scope.user, subject=None)


def erased_message(scope: Scope, seq: int, before: str, after: str | None) -> ErasedItem:
    """Return the ledger item of one message: some words of it were blanked, or all of it was erased."""
    spans = None if after is None else blanked_spans(before, after)
    return ErasedItem(scope, MESSAGE, seq) if spans is None else ErasedItem(scope, WORDS, seq, spans=spans)


def blanked_spans(before: str, after: str) -> tuple[tuple[int, int], ...] | None:
    """Return the offsets that were blanked in a text; ``None`` when more than that has changed."""
    if len(before) != len(after) or any(a != b and b != MASK for a, b in zip(before, after, strict=True)):
        return None
    changed = [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    runs = [[i for _, i in run] for _, run in groupby(enumerate(changed), key=lambda pair: pair[1] - pair[0])]
    return tuple((run[0], run[-1] + 1) for run in runs)


def blank_spans(message: Message, spans: Iterable[tuple[int, int]]) -> Message:
    """Return the message with those words blanked, as many characters as before."""
    content = message.content
    for start, end in spans:
        if start > end:
            continue
        kept = "".join(char if char == "\n" else MASK for char in content[start:end])
        content = content[:start] + kept + content[end:]
    return without_parts(message, content)


def without_parts(message: Message, content: str) -> Message:
    """Return a message with other words, without the parts that held the old ones."""
    return replace(message, content=content, meta={k: v for k, v in message.meta.items() if k != "parts"})


def restored(message: Message) -> Message:
    """Return a message that was left behind as it was; any other one as it is."""
    kept = message.meta.get(ABANDONED)
    if message.role != ABANDONED or not isinstance(kept, dict):
        return message
    return replace(
        message, **{name: kept[name] for name in ("role", "name", "content", "tokens", "meta") if name in kept}
    )


def find_erased(view: ReadView, key: str, places: Mapping[str, Sequence[ErasureRow]]) -> ErasedButPresent:
    """
    Find what of a ledger, by place, the user of *view* still holds here.

    A place that is not here is passed over: it was made after this copy, or is gone from it.
    """
    user, found = view.scope.about(None), ErasedButPresent()
    rows = places.get(place_digest(key, user), ())
    found.whole = any(row.kind == USER for row in rows)
    if found.whole:
        return found
    found.facts = [row.fact for row in rows if row.kind == FACT and view.fact(row.fact) is not None]
    there = sorted({(row.subject, row.conversation) for row in view.conversations()} | set(view.item_homes()))
    subjects = sorted({subject for subject, _ in there} | {row.fact.subject for row in view.all_facts()} | {SELF})
    for subject in subjects:
        if any(row.kind == SUBJECT for row in places.get(place_digest(key, user.about(subject)), ())):
            found.subjects.append(subject)
    for subject, conversation in there:
        place = user.about(subject).within(conversation)
        noted = places.get(place_digest(key, place), ())
        if subject in found.subjects or not noted:
            continue
        if any(row.kind == CONVERSATION for row in noted):
            found.conversations.append(place)
            continue
        still = [row for row in noted if _still_says(view.at(subject, conversation), row)]
        if still:
            found.messages[place] = still
    return found


def _still_says(view: ReadView, row: ErasureRow) -> bool:
    """Whether a message still says what was erased from it, or did when it was left behind."""
    said = [one.message for one in view.message_rows(start_seq=row.seq, end_seq=row.seq)]
    if not said or said[0].role == ERASED:
        return False
    if row.kind == MESSAGE or said[0].role == ABANDONED:
        return True
    return blank_spans(said[0], row.spans).content != said[0].content


def rows_by_place(rows: Iterable[ErasureRow]) -> dict[str, list[ErasureRow]]:
    """Group *rows* by place."""
    found: dict[str, list[ErasureRow]] = {}
    for row in rows:
        found.setdefault(row.place, []).append(row)
    return found


def spans_by_message(rows: Iterable[ErasureRow]) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Yield ``(number, offsets)`` of the messages in which words were blanked."""
    found: dict[int, list[tuple[int, int]]] = {}
    for row in rows:
        if row.kind == WORDS:
            found.setdefault(row.seq, []).extend(row.spans)
    yield from sorted(found.items())


def parse_ledger(data: Mapping[str, Any]) -> tuple[str, list[ErasureRow], list[tuple[Scope, ConsentRow]]]:
    """
    Read what `holdfast.Erasures.export` returned: the key, what was erased, and the choices of users.

    Raises:
        BadInput: it is no ledger, or a damaged one.
    """
    hint = "pass what memory.admin.erasures.export() returned"
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        raise BadInput("this is not a ledger of erasures", hint=hint)
    try:
        key = data["key"]
        if key:
            bytes.fromhex(key)
        rows = [_erased_row(one) for one in data["erased"]]
        choices = [_consent_choice(one) for one in data["choices"]]
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(f"the ledger of erasures is damaged: {error}", hint=hint) from None
    if rows and not key:
        raise BadInput("the ledger of erasures is damaged: it has entries and no key", hint=hint)
    return key, rows, choices


def _erased_row(one: Mapping[str, Any]) -> ErasureRow:
    row = ErasureRow(**{**one, "spans": tuple((int(start), int(end)) for start, end in one["spans"])})
    texts, numbers = (row.id, row.place, row.kind, row.fact), (row.at, row.seq)
    if row.kind not in KINDS or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"an entry of the kind {row.kind!r}")
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise ValueError(f"the numbers of {row.id!r}")
    return row


def _consent_choice(one: Mapping[str, Any]) -> tuple[Scope, ConsentRow]:
    org, user, bot = (checked_name(name, one[name]) for name in ("org", "user", "bot"))
    if one["state"] not in _CHOICES or type(one["since"]) is not int:
        raise ValueError(f"a choice {one['state']!r}")
    return Scope(org, bot, user, subject=None), ConsentRow(str(one["subject"]), one["state"], one["since"])
