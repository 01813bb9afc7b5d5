"""
What goes beside the messages that a client sends itself.  Pure.

The layered context, of the conversation as it was before the first message that the client shows: what the client
shows is in no summary beside it, is not recalled, and costs nothing of the budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ...context.assemble import LAYERED
from ...context.budget import Meter
from ...context.material import Material
from ...context.strategies import Layout
from ...types import Summary


@dataclass(frozen=True, slots=True)
class Beside:
    """A `holdfast.strategies.Strategy`; the client shows everything from message *shown_from* on."""

    shown_from: int

    @property
    def name(self) -> str:
        """See `Strategy.name`."""
        return "beside"

    @property
    def memory_role(self) -> Literal["user", "system", "developer"]:
        """See `Strategy.memory_role`."""
        return LAYERED.memory_role

    @property
    def recalls(self) -> bool:
        """See `Strategy.recalls`."""
        return True

    def first_wanted(self, summaries: Sequence[Summary], total: int, recent_messages: int, budget_tokens: int) -> int:
        """See `Strategy.first_wanted`."""
        before = [summary for summary in summaries if summary.end_seq < self.shown_from]
        return LAYERED.first_wanted(before, min(total, self.shown_from - 1), recent_messages, budget_tokens)

    def lay_out(self, material: Material, room: int, recent_messages: int, meter: Meter) -> Layout:
        """See `Strategy.lay_out`."""
        shown_from, here = self.shown_from, material.conversation
        earlier = replace(
            material,
            messages=[message for message in material.messages if message.seq < shown_from],
            summaries=[summary for summary in material.summaries if summary.end_seq < shown_from],
            hits=[
                hit
                for hit in material.hits
                if not (hit.kind == "message" and hit.conversation == here and hit.seq >= shown_from)
            ],
            total_messages=min(material.total_messages, shown_from - 1),
            messages_from=min(material.messages_from, shown_from),
            query=None,
            opening=[message for message in material.opening if message.seq < shown_from],
        )
        return LAYERED.lay_out(earlier, room, recent_messages, meter)
