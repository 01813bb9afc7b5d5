"""``holdfast bench``: the options; what it does stands in `benchmarks`, which loads the engine."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from .options import Json, commands

app = commands()


Benchmark = Annotated[str, typer.Argument(help="tiny, locomo, realtalk, beam, longmemeval or beliefs.")]
Files = Annotated[list[Path] | None, typer.Argument(help="Further files, as after --data.")]
Data = Annotated[
    list[Path] | None,
    typer.Option("--data", metavar="FILE", help="Its public file, as it is distributed; or a folder."),
]
Peer = Annotated[
    list[str] | None, typer.Option("--peer", metavar="NAME", help="bm25, cosine or rrf beside it; may be given again.")
]
NoEmbedder = Annotated[bool, typer.Option("--no-embedder", help="Search by words alone.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="At most so many questions, at even distances.")]
Turns = Annotated[int, typer.Option("--turns", min=1, help="beliefs: exchanges of the story.")]
Seed = Annotated[int, typer.Option("--seed", help="Of the story, and of the resampling for intervals.")]
Half = Annotated[str, typer.Option("--half", metavar="HALF", help="beliefs: development, held-back or both.")]
State = Annotated[
    Path | None, typer.Option("--state", metavar="FOLDER", help="Where a stopped run goes on [holdfast-bench/NAME].")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Begin again instead of going on.")]
Report = Annotated[Path | None, typer.Option("--report", metavar="FILE", help="Write the whole report as JSON.")]
Runs = Annotated[
    Path | None,
    typer.Option("--runs", metavar="FILE", help="Write what was found for each question, a JSON line each."),
]
Llm = Annotated[
    str | None,
    typer.Option("--llm", metavar="MODEL", help="A model that answers too: openai:…, anthropic:…, ollama:…."),
]
Judge = Annotated[
    str | None, typer.Option("--judge", metavar="MODEL", help="Another model that judges the answers [that of --llm].")
]
JudgePrompt = Annotated[
    Path | None, typer.Option("--judge-prompt", metavar="FILE", help="Instructions for the judge, in place of ours.")
]
DigestLlm = Annotated[
    str | None,
    typer.Option("--digest-llm", metavar="MODEL", help="A model that the memory itself learns with [rules]."),
]
Budget = Annotated[int, typer.Option("--budget", min=100, help="With --llm: tokens of memory that it is shown.")]
Parallel = Annotated[int, typer.Option("--parallel", min=1, max=64, help="With --llm: questions asked at a time.")]
KnownWrong = Annotated[
    Path | None,
    typer.Option(
        "--known-wrong", metavar="FILE", help="A further list of questions whose answer key is wrong, as JSON."
    ),
]
Honest = Annotated[bool, typer.Option("--honest", help="beliefs: a scripted model without mistakes reads too.")]
Prompts = Annotated[bool, typer.Option("--prompts", help="Only show what models are told to answer and to judge.")]


@app.command()
def bench(
    benchmark: Benchmark = "tiny",
    files: Files = None,
    data: Data = None,
    peer: Peer = None,
    no_embedder: NoEmbedder = False,
    limit: Limit = None,
    turns: Turns = 400,
    seed: Seed = 1,
    half: Half = "both",
    state: State = None,
    fresh: Fresh = False,
    report: Report = None,
    runs: Runs = None,
    llm: Llm = None,
    judge: Judge = None,
    judge_prompt: JudgePrompt = None,
    digest_llm: DigestLlm = None,
    budget: Budget = 4000,
    parallel: Parallel = 4,
    known_wrong: KnownWrong = None,
    honest: Honest = False,
    show_prompts: Prompts = False,
    as_json: Json = False,
) -> int:
    """
    Measure how well memory finds what was said, and whether it believes what is true.

    Without files it runs a tiny benchmark that comes with Holdfast. Stop it with Ctrl-C at any
    time: the same command goes on where it was. With a model it also answers the questions: from memory, from the whole
    conversation, and from nothing.

    \b
    Examples:
      holdfast bench
      holdfast bench locomo --data locomo10.json --peer bm25 --peer cosine --peer rrf
      holdfast bench beam --data chats/100K --no-embedder --limit 50
      holdfast bench locomo --data locomo10.json --llm openai:gpt-5-mini --known-wrong errors.json
      holdfast bench beliefs --turns 400 --seed 1
      holdfast bench --json
    """
    given = dict(locals())
    if benchmark == "beliefs":
        beliefs: Any = import_module(".beliefs", __package__)
        reader = beliefs.Reader(digest_llm, honest)
        code: int = beliefs.beliefs(turns=turns, seed=seed, half=half, reader=reader, report=report, as_json=as_json)
        return code
    work: Any = import_module(".benchmarks", __package__)
    asked: int = work.show_prompts() if show_prompts else work.questions(work.wanted(given))
    return asked
