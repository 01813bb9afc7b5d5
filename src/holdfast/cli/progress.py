"""
Progress on stderr: a bar on a terminal, otherwise a line every five seconds.

Work of less than a moment shows nothing, and ``--json`` shows nothing at all.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from .plain import safe, wants_colour
from .words import seconds

EVERY_S = 5.0
SHOWN_AFTER_S = 0.4


class Progress:
    """
    How far one piece of work is; a context manager.

    ``watch`` is asked now and then, on a thread of its own, for what to say beside the numbers.
    """

    def __init__(
        self, title: str, *, total: int = 0, unit: str = "", show: bool = True, watch: Callable[[], str] | None = None
    ) -> None:
        self.title, self.total, self.unit, self.done, self.note = title, total, unit, 0, ""
        self._show, self._watch = show, watch
        self._bar: Bar | None = None
        self._over = threading.Event()
        self._started = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="holdfast-progress", daemon=True)

    def __enter__(self) -> Progress:
        if self._show:
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        if self._over.wait(SHOWN_AFTER_S):
            return
        terminal = sys.stderr.isatty()
        if terminal:
            self._bar = self._new_bar()
            task = self._bar.add_task(self.title, total=self.total or None, note="")
            self._bar.start()
        else:
            self._over.wait(EVERY_S - SHOWN_AFTER_S)
        while not self._over.is_set():
            if self._watch is not None:
                self.note = self._watch()
            if self._bar is not None:
                self._bar.update(task, completed=self.done, total=self.total or None, note=safe(self._words()))
            else:
                print(f"{self.title}: {safe(self._words())}", file=sys.stderr, flush=True)
            self._over.wait(0.2 if terminal else EVERY_S)
        if self._bar is not None:
            self._bar.stop()

    def _new_bar(self) -> Bar:
        colour = wants_colour(sys.stderr)
        console = Console(file=sys.stderr, no_color=not colour, markup=False, highlight=False, emoji=False)
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=16),
            TextColumn("{task.fields[note]}", markup=False),
            TimeElapsedColumn(),
        )
        return Bar(*columns, console=console, transient=True)

    def _words(self) -> str:
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
