"""
Regular expressions over long texts, step by step.

One call of a regular expression holds the interpreter until it returns: over a message of megabytes that is seconds in
which no other request of the process is answered.  Between two steps other threads run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

STEP_CHARS = 32_768
OVERLAP_CHARS = 2_048
_EDGE_CHARS = 64  # what an expression looks at behind a match


def find_in_steps(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield what ``pattern.finditer(text)`` does; what it needs to see of a match may be `OVERLAP_CHARS` long."""
    start, step = 0, STEP_CHARS
    while True:
        end = min(len(text), start + step)
        whole = end == len(text)
        again = end - OVERLAP_CHARS
        for found in pattern.finditer(text, start, end):
            if not whole and found.end() > end - _EDGE_CHARS:
                again = min(again, found.start())
                break
            yield found
            again = max(again, found.end())
        if whole:
            return
        start, step = (again, STEP_CHARS) if again > start else (start, 2 * step)  # a match longer than a step


def search_in_steps(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """Return what ``pattern.search(text)`` does, see `find_in_steps`."""
    return next(find_in_steps(pattern, text), None)
