"""
Measures of how well memory serves, counted from stored rows.

Each has a definition, and a value only with the numbers that it was counted from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from datetime import UTC, date, datetime
from itertools import groupby, takewhile
from statistics import median

from ..clock import to_ms
from ..errors import BadInput
from ..reports import AskedAgain, Measure, Metrics, Usage
from ..scope import SELF, Scope
from ..store import ContextStatsRow, ConversationRow, FactRow, ReadView, Store
from ..text import dataclass
from ..text.sentences import split_sentences
from ..text.terms import query_terms, terms
from ..types import BY_HAND_CONVERSATION, BY_HAND_SOURCE, Fact, Job, Message
from .usage import day_text

FAR_MS = 2**62

DEFINITIONS = {
    "recall_hit_rate": (
        "Replies that share telling words with something recalled for them, of the replies for which something was "
        "recalled. Two words that the question does not hold, or all that the recalled item has beyond it."
    ),
    "repeated_question_rate": (
        "Questions of the assistant whose answer had been said before and still held, of all its questions; lower is "
        "better. By words: all telling words of the question stand in the fact, or one does and the user's next words "
        "say the fact again."
    ),
    "correction_rate": (
        "Facts that somebody corrected or declared never true, of the facts learned in the same time; lower is "
        "better. What was forgotten leaves no trace to count."
    ),
    "conversation_length": "Median number of user messages of a conversation that had any.",
    "satisfaction": (
        "Mean of the ratings of replies: a thumb up is 1, a thumb down 0, a score what it is. By the time of the reply."
    ),
    "token_saving": (
        "1 less the tokens of the contexts, the caller's own system text left out, over the tokens of the whole "
        "conversation before each reply. Below 0 where conversations are shorter than what is remembered."
    ),
    "cached_share": "Input tokens that providers report as cached, of all input tokens that they report.",
    "prefix_stability": "Median number of consecutive replies of a conversation whose stable part stayed the same.",
    "freshness": "Seconds since the oldest message that no summary covers was stored; an open chunk counts too.",
    "job_failures": "Jobs that were put aside after their last attempt, of the jobs that are not finished now.",
    "call_failures": "Calls of a model that failed, of all calls of a model.",
    "cost_per_1000_turns": "US dollars that models cost, at the prices of the time, for each 1,000 user messages.",
}
HEURISTIC = frozenset(("recall_hit_rate", "repeated_question_rate"))
UNITS = {
    "conversation_length": "messages",
    "prefix_stability": "replies",
    "freshness": "seconds",
    "cost_per_1000_turns": "US dollars",
}


def days_between(since: date | None, until: date | None, now_ms: int) -> Days:
    """
    The days *since* to *until*, both included, in UTC.

    Raises:
        BadInput: not days, or they lie the wrong way round.
    """
    first, last = day_text(since), day_text(until)
    start = 0 if first is None else _midnight(first)
    end = FAR_MS if last is None else _midnight(last) + 86_400_000
    if end <= start:
        raise BadInput(f"until {last} lies before since {first}")
    return Days(start if first else -FAR_MS, end, now_ms)


def compute_metrics(
    store: Store,
    scopes: Iterable[Scope],
    days: Days,
    used: Sequence[Usage],
    jobs: Sequence[Job],
    *,
    left_out: int = 0,
    note: Callable[[Scope], None],
) -> Metrics:
    """
    Compute the measures over *scopes*, one user after the other; *used* and *jobs* are those of the same users.

    *note* is called for each user of whom a question is listed, as its words are.
    """
    counted = Tally()
    for scope in scopes:
        found = store.read(scope, lambda view: tally(view, days))
        if found.asked_again and len(counted.asked_again) < MOST_LISTED:
            note(scope)
        counted.add(found)
    return Metrics(
        measures=tuple(_measures(counted, days, used, jobs)),
        asked_again=tuple(counted.asked_again),
        users=counted.users,
        left_out=left_out,
    )


def _measures(counted: Tally, days: Days, used: Sequence[Usage], jobs: Sequence[Job]) -> Iterable[Measure]:
    turns = sum(counted.turns)
    calls, failed = sum(one.calls for one in used), sum(one.failed for one in used)
    tokens, cached = sum(one.input_tokens for one in used), sum(one.cached_tokens for one in used)
    dead = sum(job.state == "dead" for job in jobs)
    yield _share("recall_hit_rate", counted.taken_up, counted.with_recall)
    yield _share("repeated_question_rate", counted.repeated, counted.questions)
    yield _share("correction_rate", counted.corrected, counted.learned)
    yield _median("conversation_length", counted.turns)
    yield _share("satisfaction", sum(counted.ratings), len(counted.ratings))
    yield _saving(counted)
    yield _share("cached_share", cached, tokens, n=calls - failed)
    yield _median("prefix_stability", counted.runs)
    yield _freshness(counted, days)
    yield _share("job_failures", dead, len(jobs))
    yield _share("call_failures", failed, calls)
    yield _cost(used, turns)


def _measure(name: str, value: float | None, numerator: float, denominator: float, n: int, why: str = "") -> Measure:
    return Measure(
        name=name,
        value=value,
        unit=UNITS.get(name, "share"),
        numerator=numerator,
        denominator=denominator,
        n=n,
        definition=DEFINITIONS[name],
        heuristic=name in HEURISTIC,
        not_measured=why if value is None else "",
    )


def _share(name: str, part: float, whole: int, *, n: int | None = None) -> Measure:
    value = part / whole if whole else None
    return _measure(name, value, part, whole, whole if n is None else n, "no data recorded yet")


def _median(name: str, values: Sequence[int]) -> Measure:
    value = float(median(values)) if values else None
    return _measure(name, value, sum(values), len(values), len(values), "no data recorded yet")


def _saving(counted: Tally) -> Measure:
    value = 1 - counted.sent / counted.whole if counted.whole else None
    why = "no reply was stored by the process that made its context"
    return _measure("token_saving", value, counted.sent, counted.whole, counted.contexts, why)


def _freshness(counted: Tally, days: Days) -> Measure:
    age = None if counted.oldest_ms is None else max(0, days.now_ms - counted.oldest_ms) / 1000
    return _measure("freshness", age, age or 0, 1, counted.unsummarized, "every message is summarized")


def _cost(used: Sequence[Usage], turns: int) -> Measure:
    unpriced = sum(one.unpriced for one in used)
    spent = sum(one.cost or 0 for one in used)
    value, why = (spent / turns * 1000, "") if used and turns and not unpriced else (None, "no model was asked")
    if unpriced:
        why = f"the price of {unpriced:,} answers is not known"
    elif used and not turns:
        why = "no user message falls into this time"
    return _measure("cost_per_1000_turns", value, spent, turns, turns, why)


def _midnight(day: str) -> int:
    return to_ms(datetime.fromisoformat(day).replace(tzinfo=UTC))


MOST_LISTED = 200


@dataclass(frozen=True, slots=True)
class Days:
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
    ratings: list[float] = field(default_factory=list)
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
    unsummarized: int = 0
    oldest_ms: int | None = None

    def add(self, other: Tally) -> None:
        """Count what *other* counted, too."""
        self.users += other.users
        self.turns += other.turns
        self.ratings += other.ratings
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
        self.unsummarized += other.unsummarized
        self.oldest_ms = min((at for at in (self.oldest_ms, other.oldest_ms) if at is not None), default=None)


def tally(view: ReadView, days: Days) -> Tally:
    """Count the rows of the view's user; text is read, and only repeated questions are kept."""
    counted = Tally(users=1)
    facts = view.all_facts()
    _count_facts(counted, facts, days)
    known = known_of(facts)
    for row in view.conversations():
        if row.conversation == BY_HAND_CONVERSATION:
            continue
        here = view.at(row.subject, row.conversation)
        messages = here.messages()
        said = sum(m.role == "user" and days.holds(_ms(m)) for m in messages)
        if said:
            counted.turns.append(said)
        counted.ratings += (value for m in messages if days.holds(_ms(m)) and (value := rating_of(m)) is not None)
        _count_questions(counted, messages, known, row, days, here.scope)
        _count_contexts(counted, here.context_stats(), messages, days)
        _count_unsummarized(counted, here, row)
    return counted


def _count_facts(counted: Tally, rows: Iterable[FactRow], days: Days) -> None:
    for row in rows:
        if row.fact.source == BY_HAND_SOURCE:
            continue
        counted.learned += days.holds(to_ms(row.fact.recorded_at))
        counted.corrected += row.fact.ended_because == "never_true" and days.holds(row.ended_at)


def _count_questions(
    counted: Tally,
    messages: Sequence[Message],
    known: Sequence[KnownFact],
    row: ConversationRow,
    days: Days,
    owner: Scope,
) -> None:
    for asked in questions(messages):
        if not days.holds(_ms(asked.message)):
            continue
        counted.questions += 1
        fact = answer_known(asked, known, row.subject)
        if fact is None:
            continue
        counted.repeated += 1
        if len(counted.asked_again) < MOST_LISTED:
            place = (row.subject, row.conversation, asked.message.seq)
            whose = (owner.org, owner.user, owner.bot)
            counted.asked_again.append(AskedAgain(*place, asked.text, asked.message.at, fact, *whose))


def _count_contexts(counted: Tally, shown: Sequence[ContextStatsRow], messages: Sequence[Message], days: Days) -> None:
    rows = [row for row in shown if days.holds(row.at)]
    sizes, spoken = dict(_tokens_before(messages)), {message.seq: message for message in messages}
    for row in rows:
        counted.with_recall += row.recalled > 0
        counted.taken_up += row.used > 0
        if row.seq in spoken:
            counted.contexts += 1
            counted.sent += row.tokens
            counted.whole += sizes[row.seq]
    for _, run in groupby(rows, key=lambda row: (row.strategy, row.prefix)):
        counted.runs.append(len(list(run)))


def _tokens_before(messages: Sequence[Message]) -> Iterator[tuple[int, int]]:
    """For each message how many tokens were said before it."""
    before = 0
    for message in messages:
        yield message.seq, before
        before += message.tokens


def _count_unsummarized(counted: Tally, here: ReadView, row: ConversationRow) -> None:
    waiting = row.next_seq - row.chunk_start
    if waiting <= 0:
        return
    first = here.message_rows(start_seq=row.chunk_start, end_seq=row.chunk_start)
    counted.unsummarized += waiting
    if first:
        counted.oldest_ms = min(at for at in (counted.oldest_ms, first[0].recorded_at) if at is not None)


def rating_of(message: Message) -> float | None:
    """Return the rating of a reply, from 0 to 1; ``None`` where it has none."""
    value = message.meta.get("rating") if message.role == "assistant" else None
    return float(value) if isinstance(value, int | float) and 0 <= value <= 1 else None


def _ms(message: Message) -> int | None:
    return None if message.at is None else to_ms(message.at)


MARKS = ("?", "\uff1f", "\u061f")
_CLOSING = "\"'\u201d\u2019)\u300d *_"
# Words that ask for an answer and say nothing of what it is about.
_ASKING = frozenset(terms("tell know please say mention remind let ask curious wonder question answer", "en"))


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """One question of an assistant: its words, the message, and the numbers of the user's messages that follow."""

    text: str
    message: Message
    answered_in: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class KnownFact:
    """A fact with what the search for it needs: its words, and until when it held."""

    row: FactRow
    words: frozenset[str]
    until_ms: int | None

    def held(self, asked: AskedQuestion, at_ms: int) -> bool:
        """Whether it had been said before the question was asked, and still held then."""
        if self.until_ms is not None and self.until_ms <= at_ms:
            return False
        # what is imported was said before it was read, so the words count and not when they were learned
        return any(
            e.seq < asked.message.seq if e.conversation == asked.message.conversation else _before(e.at, at_ms)
            for e in self.row.fact.evidence
        )


def questions(messages: Sequence[Message]) -> Iterator[AskedQuestion]:
    """The questions that assistants asked, in order."""
    for place, message in enumerate(messages):
        if message.role != "assistant" or not any(mark in message.content for mark in MARKS):
            continue
        rest = (messages[at] for at in range(place + 1, len(messages)))
        following = takewhile(lambda one: one.role != "assistant", rest)
        answered = tuple(one.seq for one in following if one.role == "user")
        for span in split_sentences(message.content):
            text = span.of(message.content).strip()
            if text.rstrip(_CLOSING).endswith(MARKS):
                yield AskedQuestion(text, message, answered)


def known_of(rows: Iterable[FactRow]) -> list[KnownFact]:
    """Return the facts that answer questions, each with the time in which it held."""
    return [_known(row) for row in rows]


def _known(row: FactRow) -> KnownFact:
    fact = row.fact
    named = " ".join((fact.category, fact.key, fact.value if fact.value != "true" else "")).replace("_", " ")
    ended = None if fact.valid_to is None else to_ms(fact.valid_to)
    ends = [at for at in (ended, row.expires_at) if at is not None]
    return KnownFact(row, frozenset(terms(f"{named} {fact.text}")), min(ends, default=None))


def _before(at: datetime | None, at_ms: int) -> bool:
    return at is not None and to_ms(at) < at_ms


def answer_known(asked: AskedQuestion, known: Sequence[KnownFact], subject: str) -> Fact | None:
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


def _said_again(fact: Fact, asked: AskedQuestion) -> bool:
    place = asked.message.conversation
    return any(e.conversation == place and e.seq in asked.answered_in for e in fact.evidence)
