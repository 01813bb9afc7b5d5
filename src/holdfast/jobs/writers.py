"""Who makes derived rows: the built-in rules, or a model; rebuilding asks either in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..digest.summarize import SUMMARY_SOURCE, SummaryDraft, summarize_chunk, summarize_level
from ..reconcile.decide import Claim
from ..reconcile.learn import WORDS_ALONE, MatchHints
from ..scope import Scope
from ..store import EpisodesRow
from ..types import Candidate, Message, Summary
from .facts import ReadFacts

BATCH_MESSAGES = 200


@dataclass(frozen=True, slots=True)
class Effort:
    """What calls of a model took, or would take at most; ``cost`` is ``None`` where no price is known."""

    calls: int = 0
    tokens: int = 0
    cost: float | None = 0.0

    def __add__(self, other: Effort) -> Effort:
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        return Effort(self.calls + other.calls, self.tokens + other.tokens, cost)


@dataclass(frozen=True, slots=True)
class Heard:
    """
    What a reading of one range came to, as of one moment.

    ``noted`` says, of episodes, that the range was asked for them.
    """

    epoch: int
    source: str
    claims: Sequence[Claim] = ()
    refused: Sequence[tuple[Candidate, str]] = ()
    means: MatchHints = WORDS_ALONE
    noted: EpisodesRow | None = None


class Writer(Protocol):
    """
    Makes summaries and reads facts and episodes, each for one range; called with no transaction open.

    Messages come with their secrets masked.  Every call may raise a ``ModelError``.
    """

    @property
    def batch_messages(self) -> int:
        """How many messages are read for facts at a time, at most."""

    @property
    def name(self) -> str:
        """The name of the model, or that of the rules."""

    @property
    def by_model(self) -> bool:
        """Whether it is a model."""

    def makes(self, layer: str) -> bool:
        """Whether rows of this layer are made at all."""

    def chunk(self, scope: Scope, messages: Sequence[Message]) -> SummaryDraft:
        """The level-1 summary of a chunk."""

    def level(self, scope: Scope, children: Sequence[Summary]) -> SummaryDraft:
        """The summary of summaries of one level."""

    def facts(self, scope: Scope, span: tuple[int, int]) -> Heard:
        """What the messages of a range state, read as if nobody had read them."""

    def episodes(self, scope: Scope, span: tuple[int, int]) -> Heard:
        """What happened in a chunk, read as if nobody had read it."""

    def effort(self, layer: str, scope: Scope, texts: Sequence[str]) -> Effort:
        """What making a range of a layer from these texts would take, at most."""

    def spent(self) -> Effort:
        """What the calls of this thread since the last time it asked took."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The built-in rules as a `Writer`: they cost nothing, and make no episodes."""

    reader: ReadFacts
    name: str = SUMMARY_SOURCE
    by_model: bool = False

    @property
    def batch_messages(self) -> int:
        """See the protocol."""
        return BATCH_MESSAGES

    def makes(self, layer: str) -> bool:
        """See the protocol."""
        return layer != "episodes"

    def chunk(self, scope: Scope, messages: Sequence[Message]) -> SummaryDraft:
        """See the protocol."""
        return summarize_chunk(messages)

    def level(self, scope: Scope, children: Sequence[Summary]) -> SummaryDraft:
        """See the protocol."""
        return summarize_level(children)

    def facts(self, scope: Scope, span: tuple[int, int]) -> Heard:
        """See the protocol."""
        seen = self.reader.store.read(scope, lambda view: self.reader.reading_again(view, *span))
        claims, refused = self.reader.claims(scope, seen)
        means = self.reader.means([c.candidate.text for c in claims if c.candidate.kind == "statement"])
        return Heard(seen.epoch, SUMMARY_SOURCE, claims, refused, means)

    def episodes(self, scope: Scope, span: tuple[int, int]) -> Heard:
        """See the protocol."""
        epoch = self.reader.store.read(scope, lambda view: view.user().epoch)
        return Heard(epoch, SUMMARY_SOURCE)

    def effort(self, layer: str, scope: Scope, texts: Sequence[str]) -> Effort:
        """See the protocol."""
        return Effort()

    def spent(self) -> Effort:
        """See the protocol."""
        return Effort()
