"""Erase in an older copy of a store what was erased since that copy was made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ..scope import Scope
from ..store.ledger import ErasedRow
from ..store.protocol import ReadView
from ..store.values import ConsentRow
from ..types import Message
from .choices import Choices
from .erasing import Changes, Eraser
from .forgetting import clear_conversation, erase_user, facts_with_words
from .ledger import MESSAGE, Held, by_place, held, spans_by_message, with_blanks

_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Replay:
    """The ledger of another copy, applied to one store."""

    eraser: Eraser
    choices: Choices

    def users(
        self, key: str, rows: Sequence[ErasedRow], progress: Callable[[int], None] | None = None
    ) -> Iterator[tuple[Scope, Held]]:
        """Who is held here, and what of theirs the ledger says is gone; users with nothing of it are left out."""
        places = by_place(rows)
        if not places:
            return
        for number, user in enumerate(self._everybody(), 1):
            found = self.eraser.store.read(user, partial(held, key=key, places=places))
            if progress is not None:
                progress(number)
            if found.counts():
                yield user, found

    def erase(self, user: Scope, found: Held) -> None:
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
            chosen = facts_with_words(lambda view: [r for r in view.facts_ever() if r.fact.id in ids])
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


def _messages_gone(place: Scope, rows: Sequence[ErasedRow]) -> Callable[[ReadView], Changes]:
    seqs = sorted({row.seq for row in rows if row.kind == MESSAGE})

    def find(view: ReadView) -> Changes:
        here: dict[int, Message | None] = {seq: None for seq in seqs if view.messages(start_seq=seq, end_seq=seq)}
        return _changes(place, here, whole=True)

    return find


def _words_gone(place: Scope, rows: Sequence[ErasedRow]) -> Callable[[ReadView], Changes]:
    def find(view: ReadView) -> Changes:
        here: dict[int, Message | None] = {}
        for seq, spans in spans_by_message(rows):
            for message in view.messages(start_seq=seq, end_seq=seq):
                blank = with_blanks(message, spans)
                if blank.content != message.content:
                    here[seq] = blank
        return _changes(place, here, whole=False)

    return find


def _changes(place: Scope, here: Mapping[int, Message | None], *, whole: bool) -> Changes:
    named = (place.subject or "", place.conversation or "")
    return Changes({named: here} if here else {}, whole=whole)
