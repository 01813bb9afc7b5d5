"""Which of the last turns are shown verbatim when not all fit.  Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .budget import Meter
from .turns import Turn, last_exchanges, shortened


@dataclass(frozen=True, slots=True)
class Verbatim:
    """The turns that are shown, in order, what they cost, and those for which no room was left."""

    turns: tuple[Turn, ...]
    tokens: int
    dropped: tuple[Turn, ...]


def choose_turns(
    turns: Sequence[Turn], *, exchanges: int, recent_messages: int, room: int, reserve: int, meter: Meter
) -> Verbatim:
    """
    Spend *room* on *turns*: the last user message, what follows it, and then backwards without a hole.

    A turn of the last *exchanges* exchanges that does not fit is cut with a visible mark.  Messages
    older than the last *recent_messages* leave *reserve* tokens for what is recalled.
    """
    if not turns:
        return Verbatim((), 0, ())
    first, asked = last_exchanges(turns, exchanges)
    shown: dict[int, Turn] = {}
    spent = messages = 0
    for index in (asked, *range(len(turns) - 1, asked, -1), *range(asked - 1, -1, -1)):
        free = room - spent
        if index < first and messages >= recent_messages:
            free -= reserve
        turn: Turn | None = turns[index]
        if turns[index].tokens > free:
            turn = shortened(turns[index], free, meter) if index >= first else None
        if turn is None:
            if index < asked:
                break
            continue
        shown[index] = turn
        spent += turn.tokens
        messages += len(turn.messages)
    chosen = tuple(shown[index] for index in sorted(shown))
    return Verbatim(chosen, spent, tuple(turn for index, turn in enumerate(turns) if index not in shown))
