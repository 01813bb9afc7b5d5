"""
Where the words stand that a model quotes.

A model copies almost right: it straightens quotation marks, joins lines, lowers a letter, drops a
full stop.  So the words are looked for as they are, then with such marks folded away, and what is
returned is always a span of the message itself: the quote that is kept is what was said.  Pure.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from .modality import BLANK, masked

_MANY = 20
_SAME = {
    "‘": "'", "’": "'", "‚": "'", "‛": "'", "`": "'", "´": "'", "′": "'",
    "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "「": '"', "」": '"', "『": '"', "』": '"',
    "–": "-", "—": "-", "‐": "-", "‑": "-", "−": "-", "…": "...",
}  # fmt: skip
_INVISIBLE = frozenset("\u200b\u200c\u200d\u2060\ufeff\u00ad\ufe0e\ufe0f")
_EDGES = " \t\"'.,;:!?。，、！？…*_"


def locate(quote: str, content: str) -> tuple[int, int] | None:
    """
    ``(start, end)`` of *quote* in *content*, or ``None``: it is not there, or holds no word.

    Of several places the first is taken that is the writer's own talk, else the first.
    """
    quote = quote.strip()
    if not any(ch.isalnum() for ch in quote):
        return None
    return _own([(at, at + len(quote)) for at in _places(quote, content)], content) or _folded(quote, content)


def _folded(quote: str, content: str) -> tuple[int, int] | None:
    wanted = "".join(_plain(quote)[0]).strip(_EDGES)
    if not any(ch.isalnum() for ch in wanted):
        return None
    folded, at = _plain(content)
    text = "".join(folded)
    found = []
    for start in _places(wanted, text):
        end = start + len(wanted)
        if _within_word(text, start, end):
            continue
        found.append((at[start], at[end - 1] + 1))
    return _own(found, content)


def _places(needle: str, text: str) -> list[int]:
    places: list[int] = []
    at = text.find(needle)
    while at >= 0 and len(places) < _MANY:
        places.append(at)
        at = text.find(needle, at + 1)
    return places


def _own(spans: list[tuple[int, int]], content: str) -> tuple[int, int] | None:
    if len(spans) < 2:
        return spans[0] if spans else None
    own = _masked(content)
    return next((span for span in spans if BLANK not in own[span[0] : span[1]]), spans[0])


@lru_cache(maxsize=64)
def _masked(content: str) -> str:
    return masked(content)


def _within_word(text: str, start: int, end: int) -> bool:
    """Whether the span begins or ends inside a word of letters that are written apart."""

    def joined(left: str, right: str) -> bool:
        return left.isascii() and right.isascii() and left.isalnum() and right.isalnum()

    before = start > 0 and joined(text[start - 1], text[start])
    return before or (end < len(text) and joined(text[end - 1], text[end]))


def _plain(text: str) -> tuple[list[str], list[int]]:
    """The characters of *text* folded, each with the place in *text* that it comes from."""
    out: list[str] = []
    at: list[int] = []
    for place, char in enumerate(text):
        if char in _INVISIBLE:
            continue
        if char.isspace():
            if out and out[-1] != " ":
                out.append(" ")
                at.append(place)
            continue
        for piece in _SAME.get(char) or unicodedata.normalize("NFKC", char).casefold():
            out.append(" " if piece.isspace() else piece)
            at.append(place)
    return out, at
