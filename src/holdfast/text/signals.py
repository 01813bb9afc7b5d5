"""
Three things that ranking wants to know of a text, found once when it is stored: one bit each.

The expressions are English.  In other languages the two about time and numbers seldom fire, which
costs a small bonus and hides nothing.
"""

from __future__ import annotations

import re

IS_QUESTION = 1
NAMES_TIME = 2
HAS_NUMBER = 4

_QUESTION_TAIL_CHARS = 60
_QUESTION_MARKS = re.compile("[?\uff1f\u061f\u037e]")
_TIME = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow"
    r"|(?:last|next|this|past) (?:night|week|weekend|month|year|summer|winter|spring|fall|mon|tue|wed|thu|fri|sat|sun)\w*"
    r"|(?:few|couple|two|three|four|five|six|\d+)(?: of)? (?:days|weeks|months|years)(?: ago)?"
    r"|ago|since|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|january|february|march|april|june|july|august|september|october|november|december|\d{4})\b"
)
_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|once|twice|few|couple|dozen|hundred|thousand)\b"
)


def signals(text: str) -> int:
    """
    The bits of *text*: ``IS_QUESTION`` (a question mark among its last 60 characters),
    ``NAMES_TIME`` (a date, a weekday, "last week", "two days ago") and ``HAS_NUMBER``.
    """
    lowered = text.lower()
    bits = IS_QUESTION if _QUESTION_MARKS.search(text[-_QUESTION_TAIL_CHARS:]) else 0
    if _TIME.search(lowered):
        bits |= NAMES_TIME
    if _NUMBER.search(lowered):
        bits |= HAS_NUMBER
    return bits
