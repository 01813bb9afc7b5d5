"""What ``holdfast bench`` does: run a benchmark with progress, write its report, print its tables."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, cast

from ..bench.answers import AnsweredQuestion, AnswerRun, build_answer_report, format_answer_table
from ..bench.datasets import find_wrong_keys, load_benchmark
from ..bench.judges import load_prompts
from ..bench.questions import Benchmark
from ..bench.retrieval import (
    OURS,
    PEERS,
    Peer,
    RankedQuestion,
    RetrievalRun,
    RunState,
    build_report,
    describe_run,
    format_table,
    limit_questions,
)
from ..config import Config
from ..embed import default_embedder
from ..embed.protocol import Embedder
from ..llm import model_of
from ..llm.protocol import Closable, LanguageModel
from .plain import CommandError
from .progress import Progress
from .screen import BAD, QUIET, STRONG, Screen, print_json
from .values import write_report


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
    llm: str | None
    judge: str | None
    judge_prompt: Path | None
    digest_llm: str | None
    budget: int
    parallel: int
    known_wrong: Path | None


def wanted(given: Mapping[str, Any]) -> Wanted:
    """From the options of the command, by name."""
    kept = {item.name: given[item.name] for item in fields(Wanted) if item.name in given}
    return Wanted(
        **kept
        | {
            "data": (*(given["data"] or ()), *(given["files"] or ())),
            "peers": tuple(dict.fromkeys(given["peer"] or ())),
            "embedder": not given["no_embedder"],
            "state": given["state"] or Path("holdfast-bench") / given["benchmark"],
        }
    )


def questions(wanted: Wanted) -> int:
    """Run one of the question benchmarks."""
    _check(wanted)
    benchmark = limit_questions(load_benchmark(wanted.benchmark, wanted.data), wanted.limit)
    wrong = find_wrong_keys(benchmark, wanted.known_wrong)
    embedder = default_embedder() if wanted.embedder else None
    if wanted.fresh and (wanted.state / "about.json").exists():
        shutil.rmtree(wanted.state)
    state = RunState(wanted.state, describe_run(benchmark, embedder, wanted.digest_llm or ""))
    with ExitStack() as models:
        try:
            asked, answers = _run(wanted, benchmark, state, embedder, models)
        except KeyboardInterrupt:
            raise CommandError(
                "interrupted",
                f"stopped; what was done is kept in {wanted.state}",
                hint="the same command goes on with the rest",
                exit_code=130,
            ) from None
    report = build_report(benchmark, asked, wrong, seed=wanted.seed) | {"embedder": embedder.id if embedder else None}
    if answers is not None:
        who, answered = answers
        report["answers"] = who | build_answer_report(benchmark, answered, wrong, seed=wanted.seed)
    write_report(wanted.report, report)
    if wanted.runs:
        lines = (json.dumps(_run_line(one), ensure_ascii=False) for one in asked)
        wanted.runs.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    if wanted.as_json:
        print_json(report)
    else:
        _show_questions(Screen(), report)
    return 0


def _run(
    wanted: Wanted, benchmark: Benchmark, state: RunState, embedder: Embedder | None, models: ExitStack
) -> tuple[list[RankedQuestion], tuple[dict[str, Any], list[AnsweredQuestion]] | None]:
    """Search for every question, and with a model answer it, showing how far it is."""
    with Progress(benchmark.name, show=not wanted.as_json) as bar:

        def show(doing: str, done: int, total: int) -> None:
            bar.note, bar.done, bar.total = doing, done, total

        peers = cast(Sequence[Peer], wanted.peers)
        llm = _model(wanted.digest_llm, models)
        with RetrievalRun(benchmark, state, embedder=embedder, peers=peers, progress=show, llm=llm) as run:
            run.fill()
            asked = list(run.ask())
            model = _model(wanted.llm, models)
            if model is None:
                return asked, None
            answering = AnswerRun(
                run,
                state,
                model,
                judge=_model(wanted.judge, models),
                own_judge=_text(wanted.judge_prompt),
                budget_tokens=wanted.budget,
                parallel=wanted.parallel,
                progress=show,
            )
            return asked, (answering.about(), list(answering.answers()))


def _model(name: str | None, models: ExitStack) -> LanguageModel | None:
    """The model of that name, closed when the run is over."""
    if name is None:
        return None
    found = model_of(name, Config())
    if isinstance(found, Closable):
        models.callback(found.close)
    return found


def _text(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise CommandError("usage", f"{path} cannot be read: {error.strerror}", exit_code=2) from error


def show_prompts() -> int:
    """Print every instruction that models are given by the benchmarks."""
    screen = Screen()
    for kind, table in load_prompts().items():
        for name, said in table.items():
            screen.heading(f"{kind}: {name}")
            screen.paragraph(said)
    return 0


def _check(wanted: Wanted) -> None:
    if wanted.judge and not wanted.llm:
        raise CommandError("usage", "--judge needs answers to judge", hint="name a model with --llm", exit_code=2)
    for peer in wanted.peers:
        if peer not in PEERS:
            raise CommandError("usage", f"there is no peer {peer!r}", hint=f"use {', '.join(PEERS)}", exit_code=2)
        if peer != "bm25" and not wanted.embedder:
            raise CommandError("usage", f"--peer {peer} needs an embedder", hint="leave out --no-embedder", exit_code=2)


def _run_line(one: RankedQuestion) -> dict[str, Any]:
    return {"question_id": one.question.id, "ranked_ids": one.ranked[OURS], "score": one.score}


def _show_questions(screen: Screen, report: dict[str, Any]) -> None:
    about_it = (
        f"{report['conversations']:,} conversations, {report['messages']:,} messages, {report['questions']:,} questions"
    )
    screen.line((report["benchmark"], STRONG), (f"   {about_it}, embedder {report['embedder'] or 'none'}", QUIET))
    for level in ("turn", "session"):
        screen.line()
        for line in format_table(report, level):
            screen.line(line)
    screen.line()
    if "answers" in report:
        _show_answers(screen, report["answers"])
    _show_wrong(screen, report["known_wrong"])
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


def _show_answers(screen: Screen, answers: dict[str, Any]) -> None:
    screen.line(
        ("answers", STRONG),
        (f"   by {answers['model']}, judged by {answers['judge']}; --prompts shows the rules", QUIET),
    )
    for line in format_answer_table(answers):
        screen.line(line)
    failed = sum(map(len, answers["failed"].values()))
    if failed:
        screen.line((f"{failed} answers failed and count as wrong; the same command asks for them again", BAD))
    if answers["cut_lines"]:
        screen.line((f"full context: up to {answers['cut_lines']:,} of the oldest lines did not fit", QUIET))
    screen.line()


def _show_wrong(screen: Screen, wrong: dict[str, str]) -> None:
    if wrong:
        screen.line(
            f"{len(wrong)} questions have a key that is known to be wrong; they count above, unless it says so:"
        )
    for id, why in wrong.items():
        screen.line((f"  {id:16} {why}", QUIET))
