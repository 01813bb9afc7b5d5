"""A model's answer about groups of sentences that it may join.  Pure."""

from __future__ import annotations

import re

from ..llm.protocol import Answer, BadAnswer
from .answers import refused, said, unfenced

_LINE = re.compile(r"^[\s>*#\"'-]{0,6}(\d{1,4})[\"']?\s*[:.)|\u2013-]\s*(.*)$")
_MERGED = re.compile(r"^[*_\s\"]*MERGED[*_\s]*[:\uff1a]\s*", re.IGNORECASE)
_APART = re.compile(r"^\W*APART\b", re.IGNORECASE)


def read_joined(answer: Answer, groups: int) -> dict[int, str]:
    """
    The text for each group that the model joined, by its number from 1; what cannot be read is left out.

    A last line that was cut off does not count.

    Raises:
        BadAnswer: nothing can be read.
    """
    told = said(answer)
    lines = [line.strip() for line in unfenced(told.text).splitlines() if line.strip()]
    found: dict[int, str] = {}
    read = 0
    for line in lines[:-1] if told.cut else lines:
        numbered = _LINE.match(line)
        number, text = (int(numbered[1]), numbered[2].strip()) if numbered else (1, line)
        if not (1 <= number <= groups) or (numbered is None and (groups > 1 or not _says_what(text))):
            continue
        read += 1
        if not _APART.match(text):
            found.setdefault(number, _MERGED.sub("", text).strip().strip('"'))
    if not read or (lines and refused(lines[0])):
        raise BadAnswer("the model said nothing about the sentences", finish=answer.finish)
    return {number: text for number, text in found.items() if text}


def _says_what(text: str) -> bool:
    return bool(_MERGED.match(text) or _APART.match(text))
