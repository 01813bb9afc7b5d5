"""The measures with their definitions: a value is given only with what it was counted from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from statistics import median

from ..clock import to_ms
from ..errors import BadInput
from ..figures import Measure, Metrics
from ..jobs.usage import day_text
from ..pipeline import Pipeline
from ..reports import Usage
from ..scope import Scope
from ..types import Job
from .counting import Tally, Window, tally

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


def window_of(since: date | None, until: date | None, now_ms: int) -> Window:
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
    return Window(start if first else -FAR_MS, end, now_ms)


def metrics(pipeline: Pipeline, scopes: Iterable[Scope], window: Window, used: Sequence[Usage], jobs: Sequence[Job],
            *, left_out: int = 0) -> Metrics:  # fmt: skip
    """Count over *scopes*, one user after the other; *used* and *jobs* are those of the same users."""
    counted = Tally()
    for scope in scopes:
        counted.add(pipeline.store.read(scope, lambda view: tally(view, window)))
    return Metrics(
        measures=tuple(_measures(counted, window, used, jobs)),
        asked_again=tuple(counted.asked_again),
        users=counted.users,
        left_out=left_out,
    )


def _measures(counted: Tally, window: Window, used: Sequence[Usage], jobs: Sequence[Job]) -> Iterable[Measure]:
    turns = sum(counted.turns)
    calls, failed = sum(one.calls for one in used), sum(one.failed for one in used)
    tokens, cached = sum(one.input_tokens for one in used), sum(one.cached_tokens for one in used)
    dead = sum(job.state == "dead" for job in jobs)
    yield _share("recall_hit_rate", counted.taken_up, counted.with_recall)
    yield _share("repeated_question_rate", counted.repeated, counted.questions)
    yield _share("correction_rate", counted.corrected, counted.learned)
    yield _median("conversation_length", counted.turns)
    yield _saving(counted)
    yield _share("cached_share", cached, tokens, n=calls - failed)
    yield _median("prefix_stability", counted.runs)
    yield _freshness(counted, window)
    yield _share("job_failures", dead, len(jobs))
    yield _share("call_failures", failed, calls)
    yield _cost(used, turns)


def _made(name: str, value: float | None, numerator: float, denominator: float, n: int, why: str = "") -> Measure:
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


def _share(name: str, part: int, whole: int, *, n: int | None = None) -> Measure:
    value = part / whole if whole else None
    return _made(name, value, part, whole, whole if n is None else n, "nothing to count was recorded")


def _median(name: str, values: Sequence[int]) -> Measure:
    value = float(median(values)) if values else None
    return _made(name, value, sum(values), len(values), len(values), "nothing to count was recorded")


def _saving(counted: Tally) -> Measure:
    value = 1 - counted.sent / counted.whole if counted.whole else None
    why = "no reply was stored by the process that made its context"
    return _made("token_saving", value, counted.sent, counted.whole, counted.contexts, why)


def _freshness(counted: Tally, window: Window) -> Measure:
    age = None if counted.oldest_ms is None else max(0, window.now_ms - counted.oldest_ms) / 1000
    return _made("freshness", age, age or 0, 1, counted.unsummarised, "every message is summarised")


def _cost(used: Sequence[Usage], turns: int) -> Measure:
    unpriced = sum(one.unpriced for one in used)
    spent = sum(one.cost or 0 for one in used)
    value, why = (spent / turns * 1000, "") if used and turns and not unpriced else (None, "no model was asked")
    if unpriced:
        why = f"the price of {unpriced:,} answers is not known"
    elif used and not turns:
        why = "no user message falls into this time"
    return _made("cost_per_1000_turns", value, spent, turns, turns, why)


def _midnight(day: str) -> int:
    return to_ms(datetime.fromisoformat(day).replace(tzinfo=UTC))
