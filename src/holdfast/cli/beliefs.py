"""``holdfast bench beliefs``: stories told to a memory, and what it then believes, as tables and as a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from ..bench.beliefs import RATES, BeliefScores, HonestModel, run_story
from ..bench.stories import HALVES, BeliefStory, Half, StoryTurn, write_story
from ..memory import Memory
from .plain import CommandError
from .progress import Progress
from .screen import QUIET, Screen, print_json
from .values import plain, write_report


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads the messages: the rules, beside them a model of that name, or one that makes no mistakes."""

    llm: str | None = None
    honest: bool = False

    @property
    def name(self) -> str:
        """As the report says it."""
        return self.llm or ("a scripted model without mistakes" if self.honest else "rules")

    def model(self, story: BeliefStory) -> Any:
        """What ``Memory(llm=…)`` is given."""
        return HonestModel(story) if self.honest else self.llm


def beliefs(*, turns: int, seed: int, half: str, reader: Reader, report: Path | None, as_json: bool) -> int:
    """Run the belief benchmark."""
    if half not in (*HALVES, "both"):
        raise CommandError(
            "usage", f"there is no half {half!r}", hint="use development, held-back or both", exit_code=2
        )
    halves = HALVES if half == "both" else (cast(Half, half),)
    if reader.llm and reader.honest:
        raise CommandError("usage", "--honest is a model already", hint="leave out --digest-llm", exit_code=2)
    found = [_believed(turns, seed, one, reader, show=not as_json) for one in halves]
    data = {"benchmark": "beliefs", "reader": reader.name, "stories": [_plain(one) for one in found]}
    write_report(report, data)
    if as_json:
        print_json(data)
    else:
        _show_beliefs(Screen(), found, reader.name)
    return 0


def _believed(turns: int, seed: int, half: Half, reader: Reader, *, show: bool) -> BeliefScores:
    story = write_story(exchanges=turns, seed=seed, half=half)
    now = [story.turns[0].at]

    def set_clock(turn: StoryTurn) -> None:
        now[0] = turn.at

    def clock() -> datetime:
        return now[0]

    with (
        Memory(embedder=None, clock=clock, llm=reader.model(story)) as memory,
        Progress(f"beliefs, {half}", total=len(story.turns), show=show) as bar,
    ):

        def step(done: int, total: int) -> None:
            bar.done = done

        return run_story(story, memory, progress=step, set_clock=set_clock)


def _plain(found: BeliefScores) -> dict[str, Any]:
    rates = {name: {"end": found.rate(name, end=True), "along": found.rate(name, end=False)} for name in RATES}
    return {
        "half": found.half,
        "seed": found.seed,
        "exchanges": found.exchanges,
        "looks": len(found.looks),
        "rates": rates,
        "end": plain(found.end),
        "never_read": dict(found.missed),
    }


_SAYS = {
    "stale": "no longer true, and still believed",
    "contradicting": "addresses of one value that hold several",
    "merged": "true, once known, destroyed or given to somebody else",
    "lost": "true, and not known",
    "junk": "believed, and nobody said it",
}


def _show_beliefs(screen: Screen, found: Sequence[BeliefScores], reader: str) -> None:
    for one in found:
        note = f"{one.exchanges:,} exchanges, seed {one.seed}, {len(one.looks)} looks, read by {reader}"
        screen.heading(f"beliefs, {one.half} half", note)
        rows: list[Sequence[Any]] = [("", ("at the end", QUIET), ("along the way", QUIET), "")]
        for name in RATES:
            of = {"stale": one.end.over, "junk": one.end.live}.get(name, one.end.held)
            end = f"{one.count(name, end=True)} of {of}, {one.rate(name, end=True):.1%}"
            rows.append((name, end, f"{one.rate(name, end=False):.1%}", (_SAYS[name], QUIET)))
        screen.columns(rows)
