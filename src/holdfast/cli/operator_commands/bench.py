"""``holdfast bench``: run a benchmark with progress, print its tables, write its report."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from ...bench.answers import AnsweredQuestion, AnswerRun, build_answer_report, format_answer_table, load_prompts
from ...bench.beliefs import RATES, BeliefScores, HonestModel, run_story
from ...bench.datasets import Benchmark, find_wrong_keys, load_benchmark
from ...bench.published import (
    SIZES,
    ConsolidationScores,
    HoldfastSearch,
    build_precision_report,
    fill,
    format_consolidation,
    load_consolidation,
    load_precision,
    rank_by_words,
    run_cases,
    run_sessions,
    score,
)
from ...bench.retrieval import (
    OURS,
    PEERS,
    Peer,
    RankedQuestion,
    RetrievalRun,
    RunState,
    build_report,
    describe_run,
    format_silence,
    format_table,
    limit_questions,
    repeatable,
)
from ...bench.stories import HALVES, Half, StoryTurn, write_story
from ...config import Config
from ...embed import default_embedder
from ...embed.protocol import Embedder
from ...errors import BadInput
from ...llm import model_of
from ...llm.protocol import Closable, LanguageModel
from ...memory import Memory
from ...reports import RecallCase
from ...text import dataclass
from ..options import StoreOptions
from ..output import BAD, GOOD, QUIET, STRONG, Piece, ProgressBar, Screen, print_json
from ..terminal import INTERRUPTED, CommandError, count, to_json, usage_error, write_report

SUITE_DEPTH = 500  # hits among which what a case wants is looked for


@dataclass(frozen=True)
class BenchOptions(StoreOptions):
    """The options of ``holdfast bench``."""

    benchmark: Annotated[
        str,
        typer.Argument(help="tiny, locomo, realtalk, beam, longmemeval, beliefs, precision, consolidation or suite."),
    ] = "tiny"
    files: Annotated[list[Path] | None, typer.Argument(help="More files, as after --data.")] = None
    data: Annotated[
        list[Path] | None,
        typer.Option("--data", metavar="FILE", help="The public file of the benchmark, as distributed; or a folder."),
    ] = None
    size: Annotated[
        list[str] | None,
        typer.Option("--size", metavar="TOKENS", help="consolidation: 6k, 32k, 64k or 262k; may be repeated [all]."),
    ] = None
    peer: Annotated[
        list[str] | None,
        typer.Option("--peer", metavar="NAME", help="Compare with bm25, cosine or rrf; may be repeated."),
    ] = None
    no_embedder: Annotated[bool, typer.Option("--no-embedder", help="Search without embeddings.")] = False
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="At most this many questions, at even distances.")
    ] = None
    turns: Annotated[int, typer.Option("--turns", min=1, help="beliefs: the number of exchanges in a story.")] = 400
    seed: Annotated[int, typer.Option("--seed", help="The seed of the story and of the confidence intervals.")] = 1
    half: Annotated[str, typer.Option("--half", metavar="HALF", help="beliefs: development, held-back or both.")] = (
        "both"
    )
    state: Annotated[
        Path | None,
        typer.Option("--state", metavar="FOLDER", help="Where a stopped run continues [holdfast-bench/NAME]."),
    ] = None
    fresh: Annotated[bool, typer.Option("--fresh", help="Start again instead of continuing.")] = False
    report: Annotated[Path | None, typer.Option("--report", metavar="FILE", help="Write the whole report as JSON.")] = (
        None
    )
    against: Annotated[
        Path | None,
        typer.Option("--against", metavar="FILE", help="suite: an earlier --report; only what got worse fails."),
    ] = None
    runs: Annotated[
        Path | None,
        typer.Option("--runs", metavar="FILE", help="Write what was found for each question, one JSON line each."),
    ] = None
    llm: Annotated[
        str | None,
        typer.Option("--llm", metavar="MODEL", help="A model that answers the questions: openai:…, anthropic:…, …"),
    ] = None
    judge: Annotated[
        str | None,
        typer.Option("--judge", metavar="MODEL", help="Another model that judges the answers [that of --llm]."),
    ] = None
    judge_prompt: Annotated[
        Path | None,
        typer.Option("--judge-prompt", metavar="FILE", help="Instructions for the judge, in place of ours."),
    ] = None
    digest_llm: Annotated[
        str | None,
        typer.Option("--digest-llm", metavar="MODEL", help="A model that the memory itself learns with [rules]."),
    ] = None
    budget: Annotated[
        int, typer.Option("--budget", min=100, help="With --llm: the most tokens of memory in a prompt.")
    ] = 4000
    parallel: Annotated[
        int, typer.Option("--parallel", min=1, max=64, help="With --llm: questions to ask at a time.")
    ] = 4
    known_wrong: Annotated[
        Path | None,
        typer.Option("--known-wrong", metavar="FILE", help="A JSON list of more questions whose answer key is wrong."),
    ] = None
    honest: Annotated[bool, typer.Option("--honest", help="beliefs: a scripted model without mistakes reads, too.")] = (
        False
    )
    no_aliases: Annotated[
        bool, typer.Option("--no-aliases", help="precision: remember the sentences without their other names.")
    ] = False
    show_prompts: Annotated[
        bool, typer.Option("--prompts", help="Only print the instructions for models that answer and judge.")
    ] = False

    @property
    def data_files(self) -> tuple[Path, ...]:
        """All files that were named."""
        return (*(self.data or ()), *(self.files or ()))

    @property
    def peers(self) -> tuple[str, ...]:
        """The peers that were named, each once."""
        return tuple(dict.fromkeys(self.peer or ()))

    @property
    def state_folder(self) -> Path:
        """The folder of the run's state."""
        return self.state or Path("holdfast-bench") / self.benchmark


def bench(options: BenchOptions) -> int:
    """
    Measure how well memory finds what was said, and whether its facts are right.

    Without files it runs a tiny benchmark that comes with Holdfast. You can stop at any time with
    Ctrl-C: the same command continues where it stopped. With a model it also answers the questions:
    from memory, from the whole conversation, and from nothing.

    \b
    Examples:
      holdfast bench
      holdfast bench locomo --data locomo10.json --peer bm25 --peer cosine --peer rrf
      holdfast bench beam --data chats/100K --no-embedder --limit 50
      holdfast bench locomo --data locomo10.json --llm openai:gpt-5-mini --known-wrong errors.json
      holdfast bench beliefs --turns 400 --seed 1
      holdfast bench precision precisionMemBench/
      holdfast bench consolidation Conflict_Resolution.json --size 6k
      holdfast bench suite cases.jsonl --store chat.db --report before.json
      holdfast bench suite cases.jsonl --store chat.db --setting recall_limit=30 --against before.json
      holdfast bench --json
    """
    if options.benchmark == "suite":
        return _run_suite(options)
    if options.benchmark == "beliefs":
        return _run_beliefs(options)
    if options.benchmark == "precision":
        return _run_precision(options)
    if options.benchmark == "consolidation":
        return _run_consolidation(options)
    if not options.show_prompts:
        return _run_questions(options)
    screen = Screen()
    for kind, texts in load_prompts().items():
        for name, text in texts.items():
            screen.heading(f"{kind}: {name}")
            screen.paragraph(text)
    return 0


# Cases of the recall lab


def _run_suite(options: BenchOptions) -> int:
    """Ask every case of the files; return 1 where one is not recalled, or, beside an earlier report, where one got worse."""
    cases = _load_cases(options.data_files)
    before = _load_report(options.against)
    rows: list[dict[str, Any]] = []
    with options.open() as memory:
        for case in cases:
            owner = memory.user(case.user, org=case.org, bot=case.bot)
            place = case.find(owner.explain(case.question, limit=SUITE_DEPTH))
            rank, recalled = (place.rank, place.kept) if place else (None, False)
            rows.append({"case": case.line, "rank": rank, "recalled": recalled, "before": before.get(case.line)})
    report = {"cases": len(rows), "recalled": sum(bool(row["recalled"]) for row in rows), "rows": rows}
    if options.report:
        write_report(options.report, report)
    worse = [row for row in rows if row["before"] and row["before"]["recalled"] and not row["recalled"]]
    failed = worse if options.against else [row for row in rows if not row["recalled"]]
    if options.as_json:
        print_json(report | {"worse": len(worse)})
    else:
        _show_suite(Screen(), cases, rows, worse=len(worse) if options.against else None)
    return 1 if failed else 0


def _load_cases(files: Sequence[Path]) -> list[RecallCase]:
    if not files:
        raise usage_error("a suite needs a file of cases", "holdfast bench suite cases.jsonl --store chat.db")
    cases = []
    for path in files:
        for number, line in enumerate((_read_text(path) or "").splitlines(), 1):
            if line.strip():
                try:
                    cases.append(RecallCase.parse(line))
                except BadInput as error:
                    raise usage_error(f"{path}:{number}: {error.message}", error.hint) from error
    return cases


def _load_report(path: Path | None) -> dict[str, dict[str, Any]]:
    """Return the rows of an earlier report by their cases."""
    try:
        return {row["case"]: row for row in json.loads(_read_text(path) or '{"rows": []}')["rows"]}
    except (ValueError, TypeError, KeyError):
        raise usage_error(f"{path} is no report of a suite", "write one with --report") from None


def _show_suite(screen: Screen, cases: Sequence[RecallCase], rows: Sequence[dict[str, Any]], worse: int | None) -> None:
    lines: list[list[Piece]] = []
    for case, row in zip(cases, rows, strict=True):
        rank = f"rank {row['rank']}" if row["rank"] else f"behind {SUITE_DEPTH}"
        said = ("recalled", GOOD) if row["recalled"] else ("not recalled", BAD)
        was = row["before"] and f"was rank {row['before']['rank']}" if row["before"] and row["before"]["rank"] else ""
        lines.append([said, rank, case.user, case.question, (case.wanted, QUIET), (was, QUIET)])
    screen.columns(lines)
    found = sum(bool(row["recalled"]) for row in rows)
    screen.line((f"{found} of {count(len(rows), 'case')} recalled", STRONG))
    if worse is not None:
        screen.line((f"{count(worse, 'case')} recalled before and not now", BAD if worse else GOOD))


# Questions about conversations


def _run_questions(options: BenchOptions) -> int:
    _check(options)
    benchmark = limit_questions(load_benchmark(options.benchmark, options.data_files), options.limit)
    wrong = find_wrong_keys(benchmark, options.known_wrong)
    embedder = None if options.no_embedder else default_embedder()
    folder = options.state_folder
    about = describe_run(benchmark, embedder, options.digest_llm or "")
    changed = not options.llm and repeatable(folder, about)  # what a model was paid for is kept until --fresh
    if changed and not options.fresh:
        print("the code has changed since the last run: starting again", file=sys.stderr)
    if changed or (options.fresh and (folder / "about.json").exists()):
        shutil.rmtree(folder)
    state = RunState(folder, about)
    with ExitStack() as models:
        try:
            asked, answers = _ask(options, benchmark, state, embedder, models)
        except KeyboardInterrupt:
            raise CommandError(
                "interrupted",
                f"stopped; what was done is kept in {folder}",
                hint="the same command does the rest",
                exit_code=INTERRUPTED,
            ) from None
    report = build_report(benchmark, asked, wrong, seed=options.seed) | {"embedder": embedder.id if embedder else None}
    if answers is not None:
        who, answered = answers
        report["answers"] = who | build_answer_report(benchmark, answered, wrong, seed=options.seed)
    write_report(options.report, report)
    if options.runs:
        rows = [{"question_id": one.question.id, "ranked_ids": one.ranked[OURS], "score": one.score} for one in asked]
        lines = (json.dumps(row, ensure_ascii=False) for row in rows)
        options.runs.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    if options.as_json:
        print_json(report)
    else:
        _show_questions(Screen(), report)
    return 0


def _check(options: BenchOptions) -> None:
    problem, hint = "", f"use {', '.join(PEERS)}"
    if options.judge and not options.llm:
        problem, hint = "--judge needs answers to judge", "name a model with --llm"
    elif unknown := [peer for peer in options.peers if peer not in PEERS]:
        problem = f"there is no peer {unknown[0]!r}"
    elif options.no_embedder and (embedding := [peer for peer in options.peers if peer != "bm25"]):
        problem, hint = f"--peer {embedding[0]} needs an embedder", "leave out --no-embedder"
    if problem:
        raise usage_error(problem, hint)


def _ask(
    options: BenchOptions, benchmark: Benchmark, state: RunState, embedder: Embedder | None, models: ExitStack
) -> tuple[list[RankedQuestion], tuple[dict[str, Any], list[AnsweredQuestion]] | None]:
    """Search for every question, and answer it when there is a model."""
    with ProgressBar(benchmark.name, show=not options.as_json) as bar:

        def show(doing: str, done: int, total: int) -> None:
            bar.note, bar.done, bar.total = doing, done, total

        peers = cast(Sequence[Peer], options.peers)
        llm = _model(options.digest_llm, models)
        with RetrievalRun(benchmark, state, embedder=embedder, peers=peers, progress=show, llm=llm) as run:
            run.fill()
            asked = list(run.ask())
            model = _model(options.llm, models)
            if model is None:
                return asked, None
            answering = AnswerRun(
                run,
                state,
                model,
                judge=_model(options.judge, models),
                own_judge=_read_text(options.judge_prompt),
                budget_tokens=options.budget,
                parallel=options.parallel,
                progress=show,
            )
            return asked, (answering.about(), list(answering.answers()))


def _model(name: str | None, models: ExitStack) -> LanguageModel | None:
    """Return the model of that name; it is closed with *models*."""
    if name is None:
        return None
    found = model_of(name, Config())
    if isinstance(found, Closable):
        models.callback(found.close)
    return found


def _read_text(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        words = f"{path} cannot be read: {error.strerror}"
        raise usage_error(words, "name a text file") from error


def _show_questions(screen: Screen, report: dict[str, Any]) -> None:
    sizes = ", ".join(f"{report[name]:,} {name}" for name in ("conversations", "messages", "questions"))
    screen.line((report["benchmark"], STRONG), (f"   {sizes}, embedder {report['embedder'] or 'none'}", QUIET))
    for level in ("turn", "session"):
        screen.line()
        for line in format_table(report, level):
            screen.line(line)
    screen.line()
    if "answers" in report:
        _show_answers(screen, report["answers"])
    wrong: dict[str, str] = report["known_wrong"]
    if wrong:
        screen.line(f"{count(len(wrong), 'question')} with a wrong answer key; counted above unless it says otherwise:")
    for id, reason in wrong.items():
        screen.line((f"  {id:16} {reason}", QUIET))
    if report["no_evidence"]:
        screen.line((f"{count(report['no_evidence'], 'question')} without evidence, in no table", QUIET))
    if report["abstention_auroc"] is not None:
        auroc = f"AUROC {report['abstention_auroc']:.3f} (.5 is chance)"
        screen.line(f"abstention: the best relevance predicts which questions cannot be answered, {auroc}")
    if report["silence"]:
        screen.line()
        screen.line("silence: contexts at each least relevance; each question asked of another user's memory, too")
        for line in format_silence(report["silence"]):
            screen.line(line)
    if report["search_ms"]:
        median, p95 = report["search_ms"]["median"], report["search_ms"]["p95"]
        screen.line((f"search: median {median:.1f} ms, p95 {p95:.1f} ms", QUIET))


def _show_answers(screen: Screen, answers: dict[str, Any]) -> None:
    note = f"   by {answers['model']}, judged by {answers['judge']}; --prompts shows the rules"
    screen.line(("answers", STRONG), (note, QUIET))
    for line in format_answer_table(answers):
        screen.line(line)
    failed = sum(map(len, answers["failed"].values()))
    if failed:
        words = f"{count(failed, 'answer')} failed, counted as wrong; the same command asks again"
        screen.line((words, BAD))
    if answers["cut_lines"]:
        screen.line((f"full context: up to {answers['cut_lines']:,} of the oldest lines did not fit", QUIET))
    screen.line()


# Beliefs: a long story, and the facts that memory has afterwards

_RATES = {
    "stale": "no longer true, but still active",
    "contradicting": "addresses of one value that hold several",
    "merged": "true, once known, then lost in a merge or given to another subject",
    "lost": "true, but not known",
    "junk": "active, but never said",
}


def _run_beliefs(options: BenchOptions) -> int:
    if options.half not in (*HALVES, "both"):
        hint = "use development, held-back or both"
        raise usage_error(f"there is no half {options.half!r}", hint)
    if options.digest_llm and options.honest:
        raise usage_error("--honest is a model already", "leave out --digest-llm")
    reader = options.digest_llm or ("a scripted model without mistakes" if options.honest else "rules")
    halves = HALVES if options.half == "both" else (cast(Half, options.half),)
    found = [_believe(options, half) for half in halves]
    data = {"benchmark": "beliefs", "reader": reader, "stories": [_beliefs_as_json(one) for one in found]}
    write_report(options.report, data)
    if options.as_json:
        print_json(data)
    else:
        for one in found:
            _show_beliefs(Screen(), one, reader)
    return 0


def _believe(options: BenchOptions, half: Half) -> BeliefScores:
    story = write_story(exchanges=options.turns, seed=options.seed, half=half)
    now = [story.turns[0].at]

    def set_clock(turn: StoryTurn) -> None:
        now[0] = turn.at

    def clock() -> datetime:
        return now[0]

    llm = HonestModel(story) if options.honest else options.digest_llm
    bar = ProgressBar(f"beliefs, {half}", total=len(story.turns), show=not options.as_json)
    with Memory(embedder=None, clock=clock, llm=llm) as memory, bar:
        return run_story(story, memory, progress=bar.update, set_clock=set_clock)


def _beliefs_as_json(found: BeliefScores) -> dict[str, Any]:
    rates = {name: {"end": found.rate(name, end=True), "along": found.rate(name, end=False)} for name in RATES}
    return {
        "half": found.half,
        "seed": found.seed,
        "exchanges": found.exchanges,
        "looks": len(found.looks),
        "rates": rates,
        "end": to_json(found.end),
        "never_read": dict(found.missed),
    }


def _show_beliefs(screen: Screen, one: BeliefScores, reader: str) -> None:
    note = f"{one.exchanges:,} exchanges, seed {one.seed}, {len(one.looks)} looks, read by {reader}"
    screen.heading(f"beliefs, {one.half} half", note)
    rows: list[Sequence[Any]] = [("", ("at the end", QUIET), ("along the way", QUIET), "")]
    for name in RATES:
        of = {"stale": one.end.over, "junk": one.end.live}.get(name, one.end.held)
        end = f"{one.count(name, end=True)} of {of}, {one.rate(name, end=True):.1%}"
        rows.append((name, end, f"{one.rate(name, end=False):.1%}", (_RATES[name], QUIET)))
    screen.columns(rows)


# Consolidation: the latest of two statements stands first


def _run_consolidation(options: BenchOptions) -> int:
    if unknown := [size for size in options.size or () if size not in SIZES]:
        raise usage_error(f"there is no size {unknown[0]!r}", f"use {', '.join(SIZES)}")
    sets = load_consolidation(options.data_files, options.size or SIZES)
    embedder = None if options.no_embedder else default_embedder()
    rows: list[tuple[str, str, ConsolidationScores]] = []
    with ProgressBar("consolidation", total=len(sets), show=not options.as_json) as bar:
        for done, data in enumerate(sets, 1):
            bar.note = data.size
            with Memory(embedder=embedder) as memory:
                rows.append((data.size, OURS, score(data, fill(memory, data), options.limit)))
            rows.append((data.size, "bm25", score(data, rank_by_words(data), options.limit)))
            bar.done = done
    report = {
        "benchmark": "consolidation",
        "embedder": embedder.id if embedder else None,
        "rows": [{"size": size, "system": who} | to_json(found) for size, who, found in rows],
    }
    write_report(options.report, report)
    if options.as_json:
        print_json(report)
        return 0
    screen = Screen()
    screen.line(("consolidation", STRONG), (f"   single hop, embedder {report['embedder'] or 'none'}", QUIET))
    for line in format_consolidation(rows):
        screen.line(line)
    return 0


# Precision: the right belief, and only that one


def _run_precision(options: BenchOptions) -> int:
    files = load_precision(options.data_files)
    embedder = None if options.no_embedder else default_embedder()
    with ProgressBar("precision", total=2, show=not options.as_json) as bar:
        with Memory(embedder=embedder) as memory:
            cases = run_cases(files, HoldfastSearch(memory, aliases=not options.no_aliases))
        bar.done = 1
        with Memory(embedder=embedder) as memory:
            turns = run_sessions(files, HoldfastSearch(memory, aliases=not options.no_aliases))
    report = build_precision_report(files, cases, turns)
    write_report(options.report, report)
    if options.as_json:
        print_json(report)
    else:
        _show_precision(Screen(), report)
    return 0


def _show_precision(screen: Screen, report: dict[str, Any]) -> None:
    screen.line(("precision", STRONG), (f"   {report['cases']} cases, {report['turns']} turns of sessions", QUIET))
    heads = (f"active of {report['active_cases']}", f"total of {report['cases']}", "precision", "recall")
    rows: list[Sequence[Any]] = [("", *((head, QUIET) for head in (*heads, f"session of {report['turns']}")))]
    for name, found in sorted(report["systems"].items(), key=lambda one: -(one[1].get("active") or 0)):
        values = [found.get(key) for key in ("active", "total", "precision", "recall", "session")]
        shown = ["-" if one is None else f"{one:.2f}" if isinstance(one, float) else str(one) for one in values]
        rows.append(((name, STRONG) if name == OURS else name, *shown))
    screen.columns(rows)
    if report["failed"]:
        screen.line()
        screen.line(f"{count(len(report['failed']), 'case')} failed:")
    for one in report["failed"]:
        screen.line(f"  {one['case']}", (f"   {_in_short(one['query'])}", QUIET))
        screen.line((f"    {'; '.join(one['failures'])}", QUIET))


def _in_short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"
