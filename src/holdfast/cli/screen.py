"""
Lines on stdout: coloured on a terminal, plain everywhere else, never steered by what they show.

A line is made of pieces: text, or text with a style.  Every piece passes through `safe`, and no
piece is read as markup.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from .plain import json_text, safe, wants_colour

Piece = str | tuple[str, str]

GOOD, CHANGED, BAD, QUIET, STRONG, NAME = "green", "yellow", "red", "bright_black", "bold", "cyan"
PLAIN_WIDTH = 100


class _QuietConsole(Console):
    """A console that leaves a closed pipe to ``main``."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Screen:
    """Where a command's data goes."""

    def __init__(self) -> None:
        colour = wants_colour(sys.stdout)
        self._console = _QuietConsole(
            file=sys.stdout, force_terminal=colour, no_color=not colour, markup=False, highlight=False, emoji=False
        )
        self.width = max(40, min(self._console.width, 120)) if sys.stdout.isatty() else PLAIN_WIDTH

    def line(self, *pieces: Piece) -> None:
        """One line; what is too long for the terminal is wrapped by the terminal."""
        text = Text()
        for piece in pieces:
            words, style = (piece, "") if isinstance(piece, str) else piece
            text.append(safe(words).replace("\n", " "), style)
        text.rstrip()
        self._console.print(text, soft_wrap=True)

    def heading(self, title: str, note: str = "") -> None:
        """A title with a note beside it, after an empty line."""
        self.line()
        self.line((title, STRONG), ("   " + note if note else "", QUIET))

    def paragraph(self, text: str, *, indent: int = 0, style: str = "") -> None:
        """Text of any length, wrapped at the width of the screen; line breaks of its own are kept."""
        pad = " " * indent
        for part in safe(text).split("\n"):
            for row in textwrap.wrap(part, self.width - indent, break_long_words=False, break_on_hyphens=False) or [""]:
                self.line(pad, (row, style))

    def columns(self, rows: Sequence[Sequence[Piece]], *, indent: int = 0, gap: int = 2) -> None:
        """Rows whose cells stand under each other; the last cell of a row may have any length."""
        if not rows:
            return
        count = max(len(row) for row in rows)
        widths = [max((_cells(row[i]) for row in rows if i < len(row) - 1), default=0) for i in range(count)]
        for row in rows:
            pieces: list[Piece] = [" " * indent]
            for i, piece in enumerate(row):
                pieces.append(piece)
                if i < len(row) - 1:
                    pieces.append(" " * (widths[i] - _cells(piece) + gap))
            self.line(*pieces)

    def raw(self, text: str) -> None:
        """Text as it is, made safe, with its own line breaks."""
        sys.stdout.write(safe(text).rstrip("\n") + "\n")


def print_json(value: Any) -> None:
    """The one document that ``--json`` promises."""
    sys.stdout.write(json_text(value) + "\n")


def print_json_line(value: Any) -> None:
    """One of several documents, on one line, at once."""
    sys.stdout.write(json_text(value, indent=None) + "\n")
    sys.stdout.flush()


def cells(text: str) -> int:
    """How many columns *text* takes on a terminal: wide letters take two."""
    return cell_len(safe(text))


def _cells(piece: Piece) -> int:
    return cells(piece if isinstance(piece, str) else piece[0])
