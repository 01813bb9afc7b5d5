"""
Output with rich: lines and columns on stdout, progress on stderr, questions before something irreversible.

A line is made of pieces: text, or text with a style.  Every piece passes through `safe`, and none is read as markup.
Progress is a bar on a terminal, otherwise a line every five seconds; short work and ``--json`` show none.
"""

from __future__ import annotations

import sys
import textwrap
import threading
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from .terminal import USAGE, CommandError, json_text, one_line, safe, seconds, wants_color

if TYPE_CHECKING:
    from rich.progress import Progress

Piece = str | tuple[str, str]

GOOD, CHANGED, BAD, QUIET, STRONG, NAME = "green", "yellow", "red", "bright_black", "bold", "cyan"
PIPE_WIDTH = 100
PROGRESS_INTERVAL_S, PROGRESS_DELAY_S = 5.0, 0.4


class _PipeConsole(Console):
    """A console that leaves a closed pipe to ``main``."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Screen:
    """Standard output: colored on a terminal, plain everywhere else."""

    def __init__(self) -> None:
        color = wants_color(sys.stdout)
        self._console = _PipeConsole(
            file=sys.stdout, force_terminal=color, no_color=not color, markup=False, highlight=False, emoji=False
        )
        self.width = max(40, min(self._console.width, 120)) if sys.stdout.isatty() else PIPE_WIDTH

    def line(self, *pieces: Piece) -> None:
        """Print one line; the terminal wraps it when it is too long."""
        text = Text()
        for piece in pieces:
            words, style = (piece, "") if isinstance(piece, str) else piece
            text.append(safe(words).replace("\n", " "), style)
        text.rstrip()
        self._console.print(text, soft_wrap=True)

    def heading(self, title: str, note: str = "") -> None:
        """Print an empty line, then a title with a note beside it."""
        self.line()
        self.line((title, STRONG), ("   " + note if note else "", QUIET))

    def paragraph(self, text: str, *, indent: int = 0, style: str = "") -> None:
        """Print text of any length, wrapped at the width of the screen; its own line breaks are kept."""
        pad = " " * indent
        for part in safe(text).split("\n"):
            for row in textwrap.wrap(part, self.width - indent, break_long_words=False, break_on_hyphens=False) or [""]:
                self.line(pad, (row, style))

    def columns(self, rows: Sequence[Sequence[Piece]], *, indent: int = 0, gap: int = 2) -> None:
        """Print rows with aligned cells; the last cell of a row may have any length."""
        if not rows:
            return
        number = max(len(row) for row in rows)
        widths = [max((_piece_cells(row[i]) for row in rows if i < len(row) - 1), default=0) for i in range(number)]
        for row in rows:
            pieces: list[Piece] = [" " * indent]
            for i, piece in enumerate(row):
                pieces.append(piece)
                if i < len(row) - 1:
                    pieces.append(" " * (widths[i] - _piece_cells(piece) + gap))
            self.line(*pieces)

    def raw(self, text: str) -> None:
        """Print text with its own line breaks, made safe."""
        sys.stdout.write(safe(text).rstrip("\n") + "\n")


def print_json(value: Any) -> None:
    """Print the one document that ``--json`` promises."""
    sys.stdout.write(json_text(value) + "\n")


def print_json_line(value: Any) -> None:
    """Print one of several documents on one line, at once."""
    sys.stdout.write(json_text(value, indent=None) + "\n")
    sys.stdout.flush()


def cells(text: str) -> int:
    """Return how many columns *text* takes on a terminal; wide letters take two."""
    return cell_len(safe(text))


def _piece_cells(piece: Piece) -> int:
    return cells(piece if isinstance(piece, str) else piece[0])


class ProgressBar:
    """
    A context manager that shows the progress of one piece of work.

    ``watch`` is called now and then, on another thread, for a note to show beside the numbers.
    """

    def __init__(
        self, title: str, *, total: int = 0, unit: str = "", show: bool = True, watch: Callable[[], str] | None = None
    ) -> None:
        self.title, self.total, self.unit, self.done, self.note = title, total, unit, 0, ""
        self._show, self._watch = show, watch
        self._bar: Progress | None = None
        self._finished = threading.Event()
        self._started = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="holdfast-progress", daemon=True)

    def update(self, done: int, total: int) -> None:
        """Set how much is done, of how much; a callback for the library."""
        self.done, self.total = done, total

    def __enter__(self) -> ProgressBar:
        if self._show:
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._finished.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        if self._finished.wait(PROGRESS_DELAY_S):
            return
        terminal = sys.stderr.isatty()
        if terminal:
            self._bar = _rich_bar()
            task = self._bar.add_task(self.title, total=self.total or None, note="")
            self._bar.start()
        else:
            self._finished.wait(PROGRESS_INTERVAL_S - PROGRESS_DELAY_S)
        while not self._finished.is_set():
            if self._watch is not None:
                self.note = self._watch()
            if self._bar is not None:
                self._bar.update(task, completed=self.done, total=self.total or None, note=safe(self._state()))
            else:
                print(f"{self.title}: {safe(self._state())}", file=sys.stderr, flush=True)
            self._finished.wait(0.2 if terminal else PROGRESS_INTERVAL_S)
        if self._bar is not None:
            self._bar.stop()

    def _state(self) -> str:
        spent = time.monotonic() - self._started
        parts = []
        if self.total:
            parts.append(f"{self.done:,} of {self.total:,} {self.unit}, {self.done * 100 // self.total} %")
            if self.done:
                parts.append(f"{self.done / spent:,.0f}/s")
        parts += [self.note] if self.note else []
        if not sys.stderr.isatty():
            parts.append(seconds(spent))
        return ", ".join(parts)


def _rich_bar() -> Progress:
    rich: Any = import_module("rich.progress")  # slow to import, and only long work needs it
    color = wants_color(sys.stderr)
    console = Console(file=sys.stderr, no_color=not color, markup=False, highlight=False, emoji=False)
    columns = (
        rich.TextColumn("{task.description}", markup=False),
        rich.BarColumn(bar_width=16),
        rich.TextColumn("{task.fields[note]}", markup=False),
        rich.TimeElapsedColumn(),
    )
    bar: Progress = rich.Progress(*columns, console=console, transient=True)
    return bar


def confirm(question: str, *, yes: bool, as_json: bool) -> None:
    """
    Ask *question* on stderr and return when the answer is y; with ``--yes``, do not ask.

    Raises:
        CommandError: the answer is anything else, or there is no terminal to answer at.
    """
    if not yes and _ask(f"{question} [y/N] ", as_json).lower() not in ("y", "yes"):
        raise _not_confirmed("answer y, or add --yes")


def confirm_by_typing(question: str, word: str, *, yes: bool, as_json: bool) -> None:
    """
    Ask to type *word* and return when it was typed; with ``--yes``, do not ask.

    Raises:
        CommandError: something else was typed, or there is no terminal to type at.
    """
    if not yes and _ask(f"{question} ", as_json) != one_line(word):
        raise _not_confirmed(f"type exactly {word}, or add --yes")


def _ask(question: str, as_json: bool) -> str:
    if as_json or sys.stdin is None or sys.stdin.closed:
        raise CommandError(
            "not-confirmed", "nothing was changed: this cannot be undone", hint="add --yes", exit_code=USAGE
        )
    print(safe(question), end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    if not (answer.endswith("\n") and sys.stdin.isatty()):
        print(file=sys.stderr)
    if not answer:
        raise _not_confirmed("there was no answer; add --yes")
    return one_line(answer)


def _not_confirmed(hint: str) -> CommandError:
    return CommandError("not-confirmed", "nothing was changed", hint=hint)
