"""What ``holdfast bench`` does: run a benchmark with progress, write its report, print its tables."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from ..bench.asking import OURS, Asked, Asking, about, limited
from ..bench.beliefs import HALVES, Half, Turn, story
from ..bench.believing import RATES, Beliefs, believe
from ..bench.loading import load
from ..bench.peers import PEERS, Peer
from ..bench.report import scored, table
from ..bench.state import State
from ..embed import default_embedder
from ..memory import Memory
from .plain import CommandError
from .progress import Progress
from .screen import QUIET, STRONG, Screen, print_json
from .values import plain


@dataclass(frozen=True, slots=True)
class Wanted:
    """A question benchmark as it was asked for."""

    benchmark: str
    data: tuple[Path, ...]
    peers: tuple[str, ...]
    embedder: bool
    limit: int | None
    seed: int
    state: Path
    fresh: bool
    report: Path | None
    runs: Path | None
    as_json: bool


def questions(wanted: Wanted) -> int:
    """Run one of the question benchmarks."""
    _check_peers(wanted)
    benchmark = limited(load(wanted.benchmark, wanted.data), wanted.limit)
    embedder = default_embedder() if wanted.embedder else None
    if wanted.fresh and (wanted.state / "about.json").exists():
        shutil.rmtree(wanted.state)
    state = State(wanted.state, about(benchmark, embedder))
    asked: list[Asked] = []
    with Progress(benchmark.name, show=not wanted.as_json) as bar:

        def show(doing: str, done: int, total: int) -> None:
            bar.note, bar.done, bar.total = doing, done, total

        try:
            with Asking(
                benchmark, state, embedder=embedder, peers=cast(Sequence[Peer], wanted.peers), progress=show
            ) as run:
                run.fill()
                asked.extend(run.ask())
        except KeyboardInterrupt:
            raise CommandError(
                "interrupted",
                f"stopped; what was done is kept in {wanted.state}",
                hint="the same command goes on with the rest",
                exit_code=130,
            ) from None
    report = scored(benchmark, asked, seed=wanted.seed) | {"embedder": embedder.id if embedder else None}
    _write(wanted.report, report)
    if wanted.runs:
        lines = (json.dumps(_run_line(one), ensure_ascii=False) for one in asked)
        wanted.runs.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    if wanted.as_json:
        print_json(report)
    else:
        _show_questions(Screen(), report)
    return 0


def _check_peers(wanted: Wanted) -> None:
    for peer in wanted.peers:
        if peer not in PEERS:
            raise CommandError("usage", f"there is no peer {peer!r}", hint=f"use {', '.join(PEERS)}", exit_code=2)
        if peer != "bm25" and not wanted.embedder:
            raise CommandError("usage", f"--peer {peer} needs an embedder", hint="leave out --no-embedder", exit_code=2)


def _run_line(one: Asked) -> dict[str, Any]:
    return {"question_id": one.question.id, "ranked_ids": one.ranked[OURS], "score": one.score}


def _write(path: Path | None, report: Any) -> None:
    if path is not None:
        path.write_text(json.dumps(report, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _show_questions(screen: Screen, report: dict[str, Any]) -> None:
    about_it = (
        f"{report['conversations']:,} conversations, {report['messages']:,} messages, {report['questions']:,} questions"
    )
    screen.line((report["benchmark"], STRONG), (f"   {about_it}, embedder {report['embedder'] or 'none'}", QUIET))
    for level in ("turn", "session"):
        screen.line()
        for line in table(report, level):
            screen.line(line)
    screen.line()
    if report["no_evidence"]:
        screen.line((f"{report['no_evidence']} questions without evidence are in no table", QUIET))
    if report["abstention_auroc"] is not None:
        screen.line(
            f"abstention: the best score tells what cannot be answered, AUROC {report['abstention_auroc']:.3f} (.5: it does not)"
        )
    if report["search_ms"]:
        screen.line(
            (f"search: median {report['search_ms']['median']:.1f} ms, p95 {report['search_ms']['p95']:.1f} ms", QUIET)
        )


def beliefs(*, turns: int, seed: int, half: str, report: Path | None, as_json: bool) -> int:
    """Run the belief benchmark."""
    if half not in (*HALVES, "both"):
        raise CommandError(
            "usage", f"there is no half {half!r}", hint="use development, held-back or both", exit_code=2
        )
    halves = HALVES if half == "both" else (cast(Half, half),)
    found = [_believed(turns, seed, one, show=not as_json) for one in halves]
    data = {"benchmark": "beliefs", "reader": "rules", "stories": [_plain(one) for one in found]}
    _write(report, data)
    if as_json:
        print_json(data)
    else:
        _show_beliefs(Screen(), found)
    return 0


def _believed(turns: int, seed: int, half: Half, *, show: bool) -> Beliefs:
    told = story(exchanges=turns, seed=seed, half=half)
    now = [told.turns[0].at]

    def set_clock(turn: Turn) -> None:
        now[0] = turn.at

    def clock() -> datetime:
        return now[0]

    with (
        Memory(embedder=None, clock=clock) as memory,
        Progress(f"beliefs, {half}", total=len(told.turns), show=show) as bar,
    ):

        def step(done: int, total: int) -> None:
            bar.done = done

        return believe(told, memory, progress=step, set_clock=set_clock)


def _plain(found: Beliefs) -> dict[str, Any]:
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


def _show_beliefs(screen: Screen, found: Sequence[Beliefs]) -> None:
    for one in found:
        note = f"{one.exchanges:,} exchanges, seed {one.seed}, {len(one.looks)} looks, read by rules"
        screen.heading(f"beliefs, {one.half} half", note)
        rows: list[Sequence[Any]] = [("", ("at the end", QUIET), ("along the way", QUIET), "")]
        for name in RATES:
            of = {"stale": one.end.over, "junk": one.end.live}.get(name, one.end.held)
            end = f"{one.count(name, end=True)} of {of}, {one.rate(name, end=True):.1%}"
            rows.append((name, end, f"{one.rate(name, end=False):.1%}", (_SAYS[name], QUIET)))
        screen.columns(rows)
