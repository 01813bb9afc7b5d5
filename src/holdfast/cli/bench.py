"""``holdfast bench``: the options; what it does stands in `benchmarks`, which loads the engine."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from .options import Json, commands

app = commands()


@app.command()
def bench(
    benchmark: Annotated[str, typer.Argument(help="tiny, locomo, realtalk, beam, longmemeval or beliefs.")] = "tiny",
    files: Annotated[list[Path] | None, typer.Argument(help="Further files, as after --data.")] = None,
    data: Annotated[
        list[Path] | None,
        typer.Option("--data", metavar="FILE", help="Its public file, as it is distributed; or a folder."),
    ] = None,
    peer: Annotated[
        list[str] | None,
        typer.Option("--peer", metavar="NAME", help="bm25, cosine or rrf beside it; may be given again."),
    ] = None,
    no_embedder: Annotated[bool, typer.Option("--no-embedder", help="Search by words alone.")] = False,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="At most so many questions, at even distances.")
    ] = None,
    turns: Annotated[int, typer.Option("--turns", min=1, help="beliefs: exchanges of the story.")] = 400,
    seed: Annotated[int, typer.Option("--seed", help="Of the story, and of the resampling for intervals.")] = 1,
    half: Annotated[
        str, typer.Option("--half", metavar="HALF", help="beliefs: development, held-back or both.")
    ] = "both",
    state: Annotated[
        Path | None,
        typer.Option("--state", metavar="FOLDER", help="Where a stopped run goes on [holdfast-bench/NAME]."),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Begin again instead of going on.")] = False,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE", help="Write the whole report as JSON.")
    ] = None,
    runs: Annotated[
        Path | None,
        typer.Option("--runs", metavar="FILE", help="Write what was found for each question, a JSON line each."),
    ] = None,
    as_json: Json = False,
) -> int:
    """
    Measure how well memory finds what was said, and whether it believes what is true.

    Without files it runs a tiny benchmark that comes with Holdfast. Stop it with Ctrl-C at any
    time: the same command goes on where it was.

    \b
    Examples:
      holdfast bench
      holdfast bench locomo --data locomo10.json --peer bm25 --peer cosine --peer rrf
      holdfast bench beam --data chats/100K --no-embedder --limit 50
      holdfast bench beliefs --turns 400 --seed 1
      holdfast bench --json
    """
    work: Any = import_module(".benchmarks", __package__)
    if benchmark == "beliefs":
        code: int = work.beliefs(turns=turns, seed=seed, half=half, report=report, as_json=as_json)
        return code
    asked: int = work.questions(
        work.Wanted(
            benchmark=benchmark,
            data=(*(data or ()), *(files or ())),
            peers=tuple(dict.fromkeys(peer or ())),
            embedder=not no_embedder,
            limit=limit,
            seed=seed,
            state=state or Path("holdfast-bench") / benchmark,
            fresh=fresh,
            report=report,
            runs=runs,
            as_json=as_json,
        )
    )
    return asked
