"""Who makes derived rows: the built-in rules, or a model; rebuilding asks either in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..digest.draft import SOURCE, SummaryDraft
from ..digest.rollup import summarize_level
from ..digest.summarize import summarize_chunk
from ..reconcile.facts import Claim
from ..scope import Scope
from ..types import Candidate, Message, Summary
from .facts import ReadFacts, Reading

BATCH_MESSAGES = 200

Claims = tuple[list[Claim], list[tuple[Candidate, str]]]


@dataclass(frozen=True, slots=True)
class Effort:
    """What calls of a model took, or would take at most; ``cost`` is ``None`` where no price is known."""

    calls: int = 0
    tokens: int = 0
    cost: float | None = 0.0

    def __add__(self, other: Effort) -> Effort:
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        return Effort(self.calls + other.calls, self.tokens + other.tokens, cost)


class Writer(Protocol):
    """
    Makes summaries and reads facts and episodes, each for one range; called with no transaction open.

    Messages come with their secrets masked.  Every call may raise a ``ModelError``.
    """

    @property
    def batch_messages(self) -> int:
        """How many messages are read for facts at a time, at most."""

    def source(self, layer: str, scope: Scope) -> str:
        """What rows of a layer that it makes for a person now will say about who made them; "" when it makes none."""

    def chunk(self, scope: Scope, messages: Sequence[Message]) -> SummaryDraft:
        """The level-1 summary of a chunk."""

    def level(self, scope: Scope, children: Sequence[Summary]) -> SummaryDraft:
        """The summary of summaries of one level."""

    def facts(self, scope: Scope, seen: Reading) -> Claims:
        """What the messages state, and what is refused."""

    def episodes(self, scope: Scope, messages: Sequence[Message]) -> Claims:
        """What happened in a chunk, and what is refused."""

    def effort(self, layer: str, scope: Scope, texts: Sequence[str]) -> Effort:
        """What one call for these texts would take, at most."""

    def spent(self) -> Effort:
        """What the calls since the last time this was asked took."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The built-in rules as a `Writer`: they cost nothing, and make no episodes."""

    reader: ReadFacts

    @property
    def batch_messages(self) -> int:
        """See the protocol."""
        return BATCH_MESSAGES

    def source(self, layer: str, scope: Scope) -> str:
        """See the protocol."""
        return "" if layer == "episodes" else SOURCE

    def chunk(self, scope: Scope, messages: Sequence[Message]) -> SummaryDraft:
        """See the protocol."""
        return summarize_chunk(messages)

    def level(self, scope: Scope, children: Sequence[Summary]) -> SummaryDraft:
        """See the protocol."""
        return summarize_level(children)

    def facts(self, scope: Scope, seen: Reading) -> Claims:
        """See the protocol."""
        return self.reader.claims(scope, seen)

    def episodes(self, scope: Scope, messages: Sequence[Message]) -> Claims:
        """See the protocol."""
        return [], []

    def effort(self, layer: str, scope: Scope, texts: Sequence[str]) -> Effort:
        """See the protocol."""
        return Effort()

    def spent(self) -> Effort:
        """See the protocol."""
        return Effort()
