"""What was learned, told line by line."""

from __future__ import annotations

from collections.abc import Iterable

from ..reports import DigestReport
from ..types import FactChange
from .frames import change_words
from .screen import BAD, CHANGED, NAME, QUIET, STRONG, Piece, Screen
from .words import count, label, value


def change_row(change: FactChange) -> list[Piece]:
    """``dietary   vegetarian → pescatarian   replaced``."""
    fact = change.fact
    if fact is None:
        return ["", (change.reason, QUIET), ("not believed", BAD)]
    what = value(fact)
    words = change_words(change.op)
    if change.op in ("replaced", "retracted") and change.previous is not None and change.previous.id != fact.id:
        what = f"{value(change.previous)} → {what}"
    if change.op == "confirmed":
        words = (f"{words[0]}, said {count(fact.confirmations + 1, 'time')}", words[1])
    return [(label(fact), NAME), (what, STRONG), words]


def print_changes(screen: Screen, changes: Iterable[FactChange], *, most: int = 20) -> int:
    """The changes that say something new, at most *most* lines; returns how many there were."""
    told = [change for change in changes if change.op in ("new", "joined", "replaced", "retracted")]
    # What replaced something is why users look; it comes first, and the rest in the order it was said.
    told.sort(key=lambda change: change.op not in ("replaced", "retracted"))
    screen.columns([change_row(change) for change in told[:most]], indent=2)
    if len(told) > most:
        screen.line((f"  … and {len(told) - most} more", QUIET))
    return len(told)


def digest_words(report: DigestReport) -> list[Piece]:
    """``27 facts learned (6 replaced an older value), 34 summaries, 12 candidates not believed``."""
    learned = sum(change.op in ("new", "joined", "replaced") for change in report.changes)
    replaced = sum(change.op == "replaced" for change in report.changes)
    words = count(learned, "fact") + " learned" if learned else "no new facts"
    if replaced:
        words += f", {replaced:,} of them replaced an older value"
    if report.summaries:
        words += f"; {count(report.summaries, 'summary', 'summaries')} written"
    # Vectors are counted by nobody: a run that had only those to make says so.
    none = "made ready for search; nothing new was learned" if report.jobs else "nothing was learned"
    pieces: list[Piece] = [words if learned or report.summaries else none]
    if report.rejected:
        pieces.append((f"; {report.rejected:,} read but not believed", QUIET))
    if report.failed:
        pieces.append((f"; {count(report.failed, 'job')} failed", CHANGED))
    if report.waiting:
        pieces.append((f"; {count(report.waiting, 'job')} may not ask the model now (holdfast jobs)", CHANGED))
    return pieces
