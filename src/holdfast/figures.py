"""
What calls answer when somebody looks at how memory works: measures, previews, explanations, what was ordered and stored.

All are frozen values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from .types import ConsentState, Fact, Hit

OperationState = Literal["ready", "running", "done", "failed", "cancelled", "interrupted"]


@dataclass(frozen=True, slots=True)
class PromptSample:
    """
    What a prompt makes of messages ``start_seq`` to ``end_seq``: ``new``, beside what stands there, ``old`` by ``source``.

    ``gained`` and ``lost`` are facts, for the prompt that reads them.  ``error`` says why there is no answer.
    """

    subject: str
    conversation: str
    start_seq: int
    end_seq: int
    old: str = ""
    source: str = ""
    new: str = ""
    gained: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    calls: int = 0
    tokens: int = 0
    cost: float | None = 0.0
    error: str = ""


@dataclass(frozen=True, slots=True)
class PromptPreview:
    """
    A prompt tried on saved chunks: nothing was written but what the calls cost.

    With ``dry_run`` nothing was asked, and ``calls``, ``tokens`` and ``cost`` are estimates that err upwards.  ``cost``
    is ``None`` where no price is known.
    """

    name: str
    digest: str
    model: str
    samples: tuple[PromptSample, ...]
    calls: int = 0
    tokens: int = 0
    cost: float | None = 0.0
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class AskedAgain:
    """A question of the assistant whose answer, ``fact``, was believed before it was asked."""

    subject: str
    conversation: str
    seq: int
    question: str
    at: datetime | None
    fact: Fact


@dataclass(frozen=True, slots=True)
class Measure:
    """
    One figure, with what it was counted from.

    ``value`` is ``None`` when nothing was recorded to count; ``not_measured`` says why.  ``n`` is how many cases it
    rests on; ``heuristic`` marks a figure that goes by words and errs.
    """

    name: str
    value: float | None
    unit: str
    numerator: float
    denominator: float
    n: int
    definition: str
    heuristic: bool = False
    not_measured: str = ""


@dataclass(frozen=True, slots=True)
class Metrics:
    """
    The measures of some users and days; ``left_out`` users were not counted, as there were too many.

    ``asked_again`` lists the repeated questions, at most 200 of them.
    """

    measures: tuple[Measure, ...]
    asked_again: tuple[AskedAgain, ...] = ()
    users: int = 0
    left_out: int = 0

    def measure(self, name: str) -> Measure:
        """
        The measure called *name*.

        Raises:
            KeyError: there is none.
        """
        for one in self.measures:
            if one.name == name:
                return one
        raise KeyError(name)


@dataclass(frozen=True, slots=True)
class StoreStats:
    """Where a store is (``place``, without a password), its ``bytes``, its ``schema`` version, its ``rows`` by kind."""

    place: str
    bytes: int
    schema: str
    rows: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Backlog:
    """
    Jobs of one ``kind`` in one ``state``, counted across users.

    Of ``jobs`` so many are ``due``: nobody works on them, and somebody could.  So many are ``overdue``: ready for more than
    five minutes.  The oldest has been due for ``oldest_due_ms``; ``None`` when none is.
    """

    kind: str
    state: str
    jobs: int
    due: int
    overdue: int
    oldest_due_ms: int | None


@dataclass(frozen=True, slots=True)
class Ranked:
    """
    One candidate of a search, with why it would be recalled or not.

    The parts of its score in four groups, which sum to it: ``words`` and ``meaning`` of the text itself, ``time``
    (days that are named, newest first), and ``around`` (neighbours, speaker, prior and the rest).
    """

    rank: int
    hit: Hit
    words: float
    meaning: float
    time: float
    around: float
    kept: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Explained:
    """
    How a question would be answered from memory, as `User.explain` found it.

    ``threshold`` is the score from which something is recalled, ``limit`` how many may be.  ``past`` are facts that held
    at ``at`` and do not any more: they are not in the index, so they are not ranked.  ``state`` is what the
    user chose; nothing is found unless it is ``active``.
    """

    query: str
    at: datetime
    threshold: float
    limit: int
    ranked: tuple[Ranked, ...]
    past: tuple[Fact, ...] = ()
    state: ConsentState = "active"


@dataclass(frozen=True, slots=True)
class Operation:
    """
    Long work that was ordered; names are ``""`` where it concerns all of a kind, ``user`` everybody.

    ``done`` of ``total`` parts, 0 while nobody knows.  ``report`` has figures and ids.  ``once`` and ``asked`` are digests
    of the caller's idempotency key and of what was asked for.  ``seen_ms``: when whoever works on it last said so.
    """

    org: str
    user: str
    bot: str
    subject: str
    conversation: str
    id: str
    kind: str
    state: OperationState
    done: int
    total: int
    code: str
    reason: str
    report: Mapping[str, Any] | None
    once: str
    asked: str
    stop: bool
    created_ms: int
    seen_ms: int
    ended_ms: int | None = None


@dataclass(frozen=True, slots=True)
class MessageCount:
    """How many ``messages`` the key of this id stored in a ``period`` (``2026-03-14``, ``2026-03``); ``""``: all keys."""

    key: str
    period: str
    messages: int
