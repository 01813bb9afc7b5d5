"""What is known about a user, as one block for a system prompt.  Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ..text.tokens import MESSAGE_OVERHEAD_TOKENS
from ..types import Fact, Section
from .budget import Count, Meter
from .strategies import facts_part


def profile(facts: Sequence[Fact], budget_tokens: int, count: Count) -> Section:
    """
    The facts that matter most within *budget_tokens*, sorted by address so that the text seldom changes.

    One JSON string a line, like every other section of a context: data that cannot break out.
    """
    part = facts_part(facts, budget_tokens + MESSAGE_OVERHEAD_TOKENS, Meter(count))
    return Section("facts", "\n".join(part.lines), part.tokens, True, tuple(item.line for item in part.items))
