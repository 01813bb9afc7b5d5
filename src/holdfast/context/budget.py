"""Spending a number of tokens over parts of a context.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from ..text.tokens import MESSAGE_OVERHEAD_TOKENS, count_tokens
from ..types import Message

T = TypeVar("T")
Count = Callable[[str], int]

MAX_CHARS_A_TOKEN = 16  # more than any tokenizer packs into one on average; bounds the search for a cut
MISSES = 4


class TokenMeter:
    """
    What things cost, in the caller's count of tokens.

    A rendered line costs its own tokens and one for its end, so that lines can be added up without
    counting the whole text again.  Remembers what it counted for as long as one context takes.
    """

    __slots__ = ("_known", "_stored", "count")

    def __init__(self, count: Count) -> None:
        self.count = count
        self._stored = count is count_tokens  # then the store has counted every message already
        self._known: dict[str, int] = {}

    def line(self, text: str) -> int:
        """Tokens of one line with its end."""
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = self.count(text) + 1
        return known

    def lines(self, lines: Iterable[str]) -> int:
        """Tokens of several lines."""
        return sum(self.line(text) for text in lines)

    def content(self, text: str) -> int:
        """Tokens of one message that holds nothing but *text*."""
        return self.count(text) + MESSAGE_OVERHEAD_TOKENS

    def message(self, message: Message) -> int:
        """Tokens of a stored message's content, as counted when it was stored where that is the same count."""
        return message.tokens if self._stored and message.tokens else self.content(message.content)


def choose_affordable(
    items: Iterable[T], cost: Callable[[T], int], room: int, *, least: int = 1
) -> tuple[list[T], int]:
    """
    Those of *items* that fit into *room*, most wanted first, and what they cost.

    One that is too big is passed over.  Stops when less than *least* is left, or when too many in a
    row were too big, so that nothing is counted for a room that is as good as full.
    """
    chosen: list[T] = []
    spent = misses = 0
    for item in items:
        if room - spent < least or misses >= MISSES:
            break
        price = cost(item)
        if spent + price > room:
            misses += 1
            continue
        misses = 0
        spent += price
        chosen.append(item)
    return chosen, spent


def shorten_middle(text: str, room: int, count: Count) -> str | None:
    """
    The beginning and the end of *text* with a visible mark between them, within *room* tokens.

    Two thirds are kept from the beginning, one third from the end, where questions tend to stand.
    ``None`` when not even the mark and a character fit.
    """
    low, high = 0, min(len(text) - 1, room * MAX_CHARS_A_TOKEN)
    while low < high:
        middle = (low + high + 1) // 2
        if count(_with_mark(text, middle)) <= room:
            low = middle
        else:
            high = middle - 1
    while low > 0 and count(_with_mark(text, low)) > room:  # a count that is not monotone
        low //= 2
    return _with_mark(text, low) if low > 0 else None


def _with_mark(text: str, kept: int) -> str:
    tail = kept // 3
    head = kept - tail
    return (
        f"{text[:head]} […{len(text) - kept} characters left out…] {text[len(text) - tail :] if tail else ''}".rstrip()
    )
