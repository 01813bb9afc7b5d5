"""What one user's rows come to, in counters that can be added up over users."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from ..clock import to_ms
from ..figures import AskedAgain
from ..privacy.byhand import BY_HAND, SOURCE
from ..store.protocol import ConversationRow, FactRow, ReadView
from ..store.values import ShownRow
from ..types import Message
from .questions import Known, answer_known, known_of, questions

MOST_LISTED = 200


@dataclass(frozen=True, slots=True)
class Window:
    """From when (included) until when (excluded) something counts, in milliseconds, and the time now."""

    start_ms: int
    end_ms: int
    now_ms: int

    def holds(self, at_ms: int | None) -> bool:
        """Whether a time lies in it."""
        return at_ms is not None and self.start_ms <= at_ms < self.end_ms


@dataclass(slots=True)
class Tally:
    """Counters; ``asked_again`` lists at most `MOST_LISTED` questions, ``repeated`` counts all of them."""

    users: int = 0
    turns: list[int] = field(default_factory=list)
    questions: int = 0
    repeated: int = 0
    asked_again: list[AskedAgain] = field(default_factory=list)
    learned: int = 0
    corrected: int = 0
    with_recall: int = 0
    taken_up: int = 0
    contexts: int = 0
    sent: int = 0
    whole: int = 0
    runs: list[int] = field(default_factory=list)
    unsummarised: int = 0
    oldest_ms: int | None = None

    def add(self, other: Tally) -> None:
        """Count what *other* counted, too."""
        self.users += other.users
        self.turns += other.turns
        self.questions += other.questions
        self.repeated += other.repeated
        self.asked_again = (self.asked_again + other.asked_again)[:MOST_LISTED]
        self.learned += other.learned
        self.corrected += other.corrected
        self.with_recall += other.with_recall
        self.taken_up += other.taken_up
        self.contexts += other.contexts
        self.sent += other.sent
        self.whole += other.whole
        self.runs += other.runs
        self.unsummarised += other.unsummarised
        self.oldest_ms = min((at for at in (self.oldest_ms, other.oldest_ms) if at is not None), default=None)


def tally(view: ReadView, window: Window) -> Tally:
    """What the rows of the view's user come to; text is read, and only questions that were repeated are kept."""
    counted = Tally(users=1)
    facts = view.facts_ever()
    _facts(counted, facts, window)
    known = known_of(facts)
    for row in view.conversations():
        if row.conversation == BY_HAND:
            continue
        here = view.at(row.subject, row.conversation)
        messages = here.messages()
        said = sum(m.role == "user" and window.holds(_ms(m)) for m in messages)
        if said:
            counted.turns.append(said)
        _questions(counted, messages, known, row, window)
        _contexts(counted, here.shown(), messages, window)
        _freshness(counted, here, row)
    return counted


def _facts(counted: Tally, rows: Iterable[FactRow], window: Window) -> None:
    for row in rows:
        if row.fact.source == SOURCE:
            continue
        counted.learned += window.holds(to_ms(row.fact.recorded_at))
        counted.corrected += row.fact.ended_because == "never_true" and window.holds(row.ended_at)


def _questions(
    counted: Tally, messages: Sequence[Message], known: Sequence[Known], row: ConversationRow, window: Window
) -> None:
    for asked in questions(messages):
        if not window.holds(_ms(asked.message)):
            continue
        counted.questions += 1
        fact = answer_known(asked, known, row.subject)
        if fact is None:
            continue
        counted.repeated += 1
        if len(counted.asked_again) < MOST_LISTED:
            place = (row.subject, row.conversation, asked.message.seq)
            counted.asked_again.append(AskedAgain(*place, asked.text, asked.message.at, fact))


def _contexts(counted: Tally, shown: Sequence[ShownRow], messages: Sequence[Message], window: Window) -> None:
    rows = [row for row in shown if window.holds(row.at)]
    sizes, spoken = dict(_history(messages)), {message.seq: message for message in messages}
    for row in rows:
        counted.with_recall += row.recalled > 0
        counted.taken_up += row.taken_up > 0
        if row.seq in spoken:
            counted.contexts += 1
            counted.sent += row.sent
            counted.whole += sizes[row.seq]
    for _, run in groupby(rows, key=lambda row: (row.strategy, row.prefix)):
        counted.runs.append(len(list(run)))


def _history(messages: Sequence[Message]) -> Iterator[tuple[int, int]]:
    """For each message how many tokens were said before it."""
    before = 0
    for message in messages:
        yield message.seq, before
        before += message.tokens


def _freshness(counted: Tally, here: ReadView, row: ConversationRow) -> None:
    waiting = row.next_seq - row.chunk_start
    if waiting <= 0:
        return
    first = here.stored(start_seq=row.chunk_start, end_seq=row.chunk_start)
    counted.unsummarised += waiting
    if first:
        counted.oldest_ms = min(at for at in (counted.oldest_ms, first[0].recorded_at) if at is not None)


def _ms(message: Message) -> int | None:
    return None if message.at is None else to_ms(message.at)
