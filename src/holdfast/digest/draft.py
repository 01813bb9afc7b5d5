"""What every summariser hands back, and the form of the lines in its text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

SOURCE = "rules 1"
_ENDINGS = (".", "!", "?", "…", "。", "！", "？", "؟", ":", ";")
_CLOSING = "\"'”’»」』)]"
_WIDE_START = 0x3000


@dataclass(frozen=True, slots=True)
class SummaryDraft:
    """A summary before it has a place: what it says, and ``source``, who made it."""

    text: str
    themes: tuple[str, ...]
    concerns: tuple[str, ...]
    actions: tuple[str, ...]
    exchanges: int
    source: str


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence under the name of who said it, on the day (ISO, ``""`` when unknown) it was said."""

    date: str
    speaker: str
    text: str


def ended(text: str) -> str:
    """*text* with a full stop where it has no ending of its own."""
    if not text or text.rstrip(_CLOSING).endswith(_ENDINGS):
        return text
    return text + ("。" if ord(text[-1]) >= _WIDE_START and not "\uac00" <= text[-1] <= "\ud7af" else ".")


def lines_of(statements: Iterable[Statement], day: str = "") -> list[str]:
    """
    A line for each run of statements by one speaker on one day.

    The date stands where it changes; *day* is the one that was told last.
    """
    lines: list[str] = []
    last = Statement("", "", "")
    for statement in statements:
        if lines and (statement.date, statement.speaker) == (last.date, last.speaker):
            lines[-1] += " " + ended(statement.text)
        else:
            stamp = f"[{statement.date}] " if statement.date and statement.date != day else ""
            who = f"{statement.speaker}: " if statement.speaker else ""
            lines.append(stamp + who + ended(statement.text))
        last, day = statement, statement.date or day
    return lines
