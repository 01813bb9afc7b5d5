"""
Questions of the assistant whose answer was believed already.  Pure; by words alone, so a guess that is listed.

Two signs are taken: every telling word of the question stands in a fact that held when it was asked; or one of them
does, and the user's next words said that very fact again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from ..clock import to_ms
from ..scope import SELF
from ..store.protocol import FactRow
from ..text.sentences import split
from ..text.terms import query_terms, terms
from ..types import Fact, Message

MARKS = ("?", "\uff1f", "\u061f")
_CLOSING = "\"'\u201d\u2019)\u300d *_"
# Words that ask for an answer and say nothing of what it is about.
_ASKING = frozenset(terms("tell know please say mention remind let ask curious wonder question answer", "en"))


@dataclass(frozen=True, slots=True)
class Asked:
    """One question of an assistant: its words, the message, and the numbers of the user's messages that follow."""

    text: str
    message: Message
    answered_in: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """A fact with what the search for it needs: its words, and until when it held."""

    row: FactRow
    words: frozenset[str]
    until_ms: int | None

    def held(self, asked: Asked, at_ms: int) -> bool:
        """Whether it had been said before the question was asked, and still held then."""
        if self.until_ms is not None and self.until_ms <= at_ms:
            return False
        # what is imported was said before it was read, so the words count and not when they were learned
        return any(
            e.seq < asked.message.seq if e.conversation == asked.message.conversation else _before(e.at, at_ms)
            for e in self.row.fact.evidence
        )


def questions(messages: Sequence[Message]) -> Iterator[Asked]:
    """The questions that assistants asked, in order, each at most once a message."""
    for place, message in enumerate(messages):
        if message.role != "assistant":
            continue
        following = messages[place + 1 :]
        end = next((at for at, one in enumerate(following) if one.role == "assistant"), len(following))
        answered = tuple(one.seq for one in following[:end] if one.role == "user")
        for span in split(message.content):
            text = span.of(message.content).strip()
            if text.rstrip(_CLOSING).endswith(MARKS):
                yield Asked(text, message, answered)


def known_of(rows: Iterable[FactRow]) -> list[Known]:
    """What the questions are held against: what was learned, from when until when."""
    return [_known(row) for row in rows]


def _known(row: FactRow) -> Known:
    fact = row.fact
    named = " ".join((fact.category, fact.key, fact.value if fact.value != "true" else "")).replace("_", " ")
    ended = None if fact.valid_to is None else to_ms(fact.valid_to)
    ends = [at for at in (ended, row.expires_at) if at is not None]
    return Known(row, frozenset(terms(f"{named} {fact.text}")), min(ends, default=None))


def _before(at: datetime | None, at_ms: int) -> bool:
    return at is not None and to_ms(at) < at_ms


def answer_known(asked: Asked, known: Sequence[Known], subject: str) -> Fact | None:
    """The fact that answered a question before it was asked, in a conversation about *subject*; ``None``: it was new."""
    if asked.message.at is None:
        return None
    telling = [group for group in query_terms(asked.text) if not _ASKING & set(group)]
    if not telling:
        return None
    at_ms, best = to_ms(asked.message.at), None
    for one in known:
        if one.row.fact.subject not in (SELF, subject) or not one.held(asked, at_ms):
            continue
        shared = sum(not one.words.isdisjoint(group) for group in telling)
        if shared == len(telling) or (shared and _said_again(one.row.fact, asked)):
            if best is None or shared > best[0]:
                best = (shared, one.row.fact)
    return best[1] if best else None


def _said_again(fact: Fact, asked: Asked) -> bool:
    place = asked.message.conversation
    return any(e.conversation == place and e.seq in asked.answered_in for e in fact.evidence)
