"""
A quote shown in its message, as compilers show an error in its line.

      --> message 287 of planner · 14 Mar 2026, 19:02 UTC
        |
    287 | I eat fish now, still no meat though
        | ^^^^^^^^^^^^^^
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..scope import SELF
from ..types import Evidence, Fact, Message, Rejected
from .plain import safe
from .screen import CHANGED, GOOD, NAME, QUIET, STRONG, Piece, Screen, cells
from .words import held, label, minute, value

if TYPE_CHECKING:
    from ..memory import Memory


class Quotes:
    """Finds the messages that facts rest on; made for one user of one memory."""

    def __init__(self, memory: Memory, *, user: str, org: str, bot: str) -> None:
        self._memory, self._user, self._org, self._bot = memory, user, org, bot
        self._seen: dict[tuple[str, str, int], Message | None] = {}

    def message(self, said: Evidence) -> Message | None:
        """The message of *said*; ``None`` when it is no longer there."""
        key = (said.home, said.conversation, said.seq)
        if key not in self._seen:
            chat = self._memory.conversation(
                said.conversation, user=self._user, org=self._org, bot=self._bot, subject=said.home
            )
            found = chat.load(start_seq=said.seq, limit=1)
            self._seen[key] = found[0] if found and found[0].seq == said.seq else None
        return self._seen[key]

    def claimed(self, item: Rejected) -> tuple[Evidence, Message | None]:
        """Where a refused candidate was read; its message only when the quote does stand there."""
        claim = item.candidate
        end = claim.start + len(claim.quote)
        for home in dict.fromkeys((SELF, claim.subject)):
            said = Evidence(item.conversation, claim.seq, "user", claim.quote, claim.start, end, home=home)
            message = self.message(said)
            if message is not None and message.content[claim.start : end] == claim.quote:
                return replace(said, at=message.at), message
        return said, None


def fact_lines(screen: Screen, fact: Fact, note: Piece = "") -> None:
    """One fact on one line: what of, the value, a note at the right."""
    head: list[Piece] = [(label(fact), NAME), ": ", (value(fact), STRONG)]
    used = sum(cells(p if isinstance(p, str) else p[0]) for p in head)
    words = note if isinstance(note, str) else note[0]
    if words:
        head += [" " * max(2, screen.width - used - cells(words)), note]
    screen.line(*head)


def frame(screen: Screen, said: Evidence, message: Message | None) -> None:
    """The quote of *said* underlined in its message."""
    number = str(said.seq)
    margin = " " * len(number)
    when = f" · {minute(said.at)}" if said.at else ""
    screen.line((f"{margin}--> message {number} of {said.conversation}{when}", QUIET))
    if message is None:
        screen.line((f"{margin} |  ", QUIET), f'"{_flat(said.quote)}"')
        return
    before, quote, after = _window(message.content, said.start, said.end, screen.width - len(number) - 6)
    screen.line((f"{margin} |", QUIET))
    screen.line((f"{number} |", QUIET), "  ", before, (quote, STRONG), after)
    screen.line((f"{margin} |", QUIET), "  ", " " * cells(before), ("^" * max(1, cells(quote)), GOOD))


def replaced_line(screen: Screen, fact: Fact, old: Fact) -> None:
    """
    What *fact* replaced: ``= was: vegetarian   12 Jan → 14 Mar 2026   (message 31: "I'm vegetarian")``.

    Of what was merged into it: ``= of: The kids dread the cellar.   (message 2: …)``.
    """
    margin = " " * len(str(fact.evidence[-1].seq if fact.evidence else ""))
    said = old.evidence[-1] if old.evidence else None
    quote = f'   (message {said.seq}: "{_short(said.quote)}")' if said else ""
    if old.ended_because == "merged":
        screen.line((f"{margin} = of: ", QUIET), value(old), (quote, QUIET))
        return
    screen.line((f"{margin} = was: ", QUIET), (value(old), CHANGED), f"   {held(old)}", (quote, QUIET))


def change_words(change_op: str) -> tuple[str, str]:
    """How a change is told, and in which colour."""
    return {
        "new": ("new", GOOD),
        "joined": ("new, beside the others", GOOD),
        "confirmed": ("already known", QUIET),
        "replaced": ("replaced", CHANGED),
        "retracted": ("taken back", CHANGED),
    }.get(change_op, (change_op, QUIET))


def _flat(text: str) -> str:
    return safe(text.replace("\n", " ").replace("\t", " "))


def _short(text: str, most: int = 60) -> str:
    flat = _flat(text)
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def _window(content: str, start: int, end: int, width: int) -> tuple[str, str, str]:
    """What stands before, in and after the quote, cut so that all of it fits on one line of *width* columns."""
    quote = _fit(_flat(content[start : min(end, start + width)]), width, cut=end - start > width)
    if end - start > width or cells(quote) >= width - 2:
        return "", quote, ""
    room = width - cells(quote)
    after = _flat(content[end : end + width])
    # The words after a quote get what they need, up to two thirds of the room; the words before it the rest.
    before = _flat(content[max(0, start - width) : start])
    left = max(room // 3, room - cells(after))
    before = _fit(before[::-1], left, cut=start > width)[::-1]
    return before, quote, _fit(after, room - cells(before), cut=len(content) - end > width)


def _fit(text: str, width: int, *, cut: bool) -> str:
    """The beginning of *text* in at most *width* columns; an ellipsis says that something was cut off."""
    if not cut and cells(text) <= width:
        return text
    while text and cells(text) > width - 1:
        text = text[:-1]
    return text + "…"
