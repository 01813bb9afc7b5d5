"""
The five classic strategies: what stays of a conversation when it is only messages.  Pure.

                   what it keeps                     tokens           lost                  extra calls
    Buffer         everything                        grow for ever    nothing               none
    Window         the last exchanges                fixed            older messages        none
    TokenBuffer    what fits into so many tokens     fixed            older messages        none
    Summary        a summary and the last exchanges  near constant    details               one an exchange
    SummaryBuffer  a summary, then recent messages   bounded          details of old ones   one an overflow

None goes above the budget of a context: a buffer that does not fit loses its oldest messages, and
the context says so.  System messages that open a conversation stay, before everything else.  A tool
call stays with its results; a result whose call is gone is not shown first.

They want no facts and recall nothing.  Where a memory has summaries, these stand in for what the
last two leave out, and only messages that no summary tells yet are summarised on the spot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from ..errors import ConfigError
from ..incoming import MessageLike
from ..text.tokens import MESSAGE_OVERHEAD_TOKENS
from ..types import Message, RollingSummary, Summary
from .budget import Count, Meter
from .material import Material
from .plain import checked, choose
from .rolled import covered_end, rolled
from .strategies import Layout, Strategy
from .talk import Talk, lay_out
from .unshown import NO_SUMMARY
from .window import verbatim_from

FOLD_TO = 0.5  # of the threshold: a fold makes room for as much again, so few are needed
NOT_LOADED = "older than what the budget could hold, or a tool result without its call"


@dataclass(frozen=True, slots=True)
class Classic:
    """What the five have in common."""

    memory_role: Literal["user", "system", "developer"] = field(default="user", kw_only=True, repr=False)

    @property
    def recalls(self) -> bool:
        """See `Strategy.recalls`."""
        return False

    def first_wanted(self, summaries: Sequence[Summary], total: int, recent_messages: int, budget_tokens: int) -> int:
        """See `Strategy.first_wanted`: all that could fit if every message were empty."""
        return max(1, total - budget_tokens // MESSAGE_OVERHEAD_TOKENS + 1)


@dataclass(frozen=True, slots=True)
class Unsummarized(Classic):
    """The three that need messages and nothing else."""

    def apply(
        self: Strategy,
        messages: Sequence[MessageLike],
        *,
        budget_tokens: int | None = None,
        summary: RollingSummary | None = None,
        count: Count | None = None,
    ) -> list[Message]:
        """
        Those of *messages* that a model should see; nothing is stored.

        Args:
            messages: the whole conversation, oldest first.
            budget_tokens: never exceeded; no bound when not given.
            summary: of no use to this strategy.
            count: how tokens are counted; by an estimate when not given.

        Raises:
            BadInput: the budget is below 1, or a message cannot be used.
        """
        return choose(self, checked(messages), budget_tokens=budget_tokens, count=count)


@dataclass(frozen=True, slots=True)
class Buffer(Unsummarized):
    """Every message."""

    @property
    def name(self) -> str:
        """See `Strategy.name`."""
        return "buffer"

    def lay_out(self, material: Material, room: int, recent_messages: int, meter: Meter) -> Layout:
        """See `Strategy.lay_out`."""
        return lay_out(Talk(material, meter), 0, room, NOT_LOADED)


@dataclass(frozen=True, slots=True)
class Window(Unsummarized):
    """The last *exchanges* exchanges, and the question that is being asked."""

    exchanges: int = 5

    def __post_init__(self) -> None:
        _at_least_1("exchanges", self.exchanges)

    @property
    def name(self) -> str:
        """See `Strategy.name`."""
        return f"window/{self.exchanges}"

    def lay_out(self, material: Material, room: int, recent_messages: int, meter: Meter) -> Layout:
        """See `Strategy.lay_out`."""
        talk = Talk(material, meter)
        return lay_out(talk, talk.exchanges(self.exchanges), room, f"older than the last {self.exchanges} exchanges")


@dataclass(frozen=True, slots=True)
class TokenBuffer(Unsummarized):
    """As many of the last messages as fit into *tokens*, system messages that open the talk among them."""

    tokens: int = 2000

    def __post_init__(self) -> None:
        _at_least_1("tokens", self.tokens)

    @property
    def name(self) -> str:
        """See `Strategy.name`."""
        return f"token_buffer/{self.tokens}"

    def lay_out(self, material: Material, room: int, recent_messages: int, meter: Meter) -> Layout:
        """See `Strategy.lay_out`."""
        talk, room = Talk(material, meter), min(room, self.tokens)
        start = talk.fitting(room - talk.opening_tokens)
        return lay_out(talk, start, room, f"older than the last {self.tokens} tokens")


@dataclass(frozen=True, slots=True)
class Summarized(Classic):
    """A summary of everything but the last *exchanges* exchanges, and these verbatim."""

    exchanges: int = 2

    def __post_init__(self) -> None:
        _at_least_1("exchanges", self.exchanges)

    @property
    def name(self) -> str:
        """See `Strategy.name`."""
        return f"summary/{self.exchanges}"

    def first_wanted(self, summaries: Sequence[Summary], total: int, recent_messages: int, budget_tokens: int) -> int:
        """See `Strategy.first_wanted`: from the start of a chunk, so that summaries tell all before it."""
        return verbatim_from(summaries, total, recent_messages, budget_tokens=budget_tokens)

    def lay_out(self, material: Material, room: int, recent_messages: int, meter: Meter) -> Layout:
        """See `Strategy.lay_out`."""
        talk = Talk(material, meter)
        start = talk.exchanges(self.exchanges) if material.roll else talk.index_of(covered_end(material.summaries) + 1)
        return lay_out(talk, start, room, NO_SUMMARY, rolled(material, talk.seq_at(start)))

    def summary_through(self, messages: Sequence[Message], through: int, room: int, meter: Meter) -> int:
        """How many of all *messages* a rolling summary should tell, when it tells the first *through*."""
        talk = Talk(Material("", messages, len(messages)), meter)
        return max(through, talk.seq_at(talk.exchanges(self.exchanges)) - 1)


@dataclass(frozen=True, slots=True)
class SummaryBuffered(Classic):
    """
    The recent messages verbatim while they stay within *tokens*; what overflows goes into a summary.

    In a memory the verbatim part starts where a stored summary ends.
    """

    tokens: int = 2000

    def __post_init__(self) -> None:
        _at_least_1("tokens", self.tokens)

    @property
    def name(self) -> str:
        """See `Strategy.name`."""
        return f"summary_buffer/{self.tokens}"

    def first_wanted(self, summaries: Sequence[Summary], total: int, recent_messages: int, budget_tokens: int) -> int:
        """See `Strategy.first_wanted`: all that could fit, from the start of a chunk."""
        first = max(1, total - min(self.tokens, budget_tokens) // MESSAGE_OVERHEAD_TOKENS + 1)
        return max(
            (s.start_seq for s in summaries if s.level == 1 and s.start_seq <= first <= s.end_seq), default=first
        )

    def lay_out(self, material: Material, room: int, recent_messages: int, meter: Meter) -> Layout:
        """See `Strategy.lay_out`."""
        talk = Talk(material, meter)
        start = self._start(talk, room)
        return lay_out(talk, start, room, NO_SUMMARY, rolled(material, talk.seq_at(start)))

    def _start(self, talk: Talk, room: int) -> int:
        material = talk.material
        covered = covered_end(material.summaries)
        if material.roll is None:
            return talk.index_of(covered + 1)
        if material.first_given == 1 and talk.tokens_from(0) + talk.opening_tokens <= min(self.tokens, room):
            return 0
        limit = min(self.tokens, (room - talk.opening_tokens) // 2)  # the other half is the summary's
        starts = sorted({s.start_seq for s in material.summaries if s.level == 1} | {covered + 1})
        for seq in starts:
            index = talk.index_of(seq)
            if material.first_given <= seq and index <= talk.asked and talk.tokens_from(index) <= limit:
                return index
        return talk.fitting(limit)

    def summary_through(self, messages: Sequence[Message], through: int, room: int, meter: Meter) -> int:
        """See `Summarized.summary_through`; it stays as it is until the threshold, or half of *room*, is passed."""
        talk, threshold = Talk(Material("", messages, len(messages)), meter), min(self.tokens, room // 2)
        if talk.tokens_from(talk.index_of(through + 1)) <= threshold:
            return through
        return max(through, talk.seq_at(talk.fitting(int(threshold * FOLD_TO))) - 1)


def _at_least_1(what: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(f"{what} must be a whole number of at least 1, not {value!r}")
