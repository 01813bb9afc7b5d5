"""``holdfast import``."""

from __future__ import annotations

import codecs
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from ..importers.append import Appender, Outcome, RefusedLine
from ..importers.jsonl import BadLine, Survey, blocks, survey
from ..reports import DigestReport
from . import exports, foreign, models
from .changes import digest_words, print_changes
from .models import BaseUrl, Llm
from .options import BOT, ORG, STORE, USER, Bot, Json, Org, Store, Subject, User, commands, same_options, writing
from .plain import CommandError, safe
from .progress import Progress
from .screen import QUIET, STRONG, Screen, print_json
from .values import plain
from .words import count, seconds
from .work import digest_all, raise_if_failed

if TYPE_CHECKING:
    from ..memory import Memory

app = commands()

BAD_LINES_SHOWN = 10
PEEK_BYTES = 4096

Into = Annotated[
    str | None,
    typer.Option(
        "--conversation", "-c", metavar="NAME", help="For lines that name no conversation (default: the file's name)."
    ),
]
Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE…",
        help="JSONL files, exports of ChatGPT or Claude, or what `holdfast export` wrote; - for standard input.",
    ),
]
Digest = Annotated[bool, typer.Option(help="Learn from the messages right away.")]
End = Annotated[bool, typer.Option(help="The conversations are over: sum up and read their last messages as well.")]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Leave out lines that cannot be used, and count them.")]


@dataclass(frozen=True, slots=True)
class Source:
    """One file to import: its name for users, its open bytes, what the first reading found."""

    name: str
    stream: BinaryIO
    conversation: str
    seen: Survey


@app.command("import")
def import_(
    context: typer.Context,
    files: Files,
    conversation: Into = None,
    skip_bad: SkipBad = False,
    digest: Digest = True,
    end: End = True,
    llm: Llm = None,
    base_url: BaseUrl = None,
    store: Store = STORE,
    user: User = USER,
    org: Org = ORG,
    bot: Bot = BOT,
    subject: Subject = None,
    as_json: Json = False,
) -> int:
    """
    Import conversations: JSONL, oldest message first, or the exports of ChatGPT and Claude as JSON or ZIP.

    \b
    A line of JSONL is {"role": "user", "content": "…"} and may hold
      "name"          who speaks
      "at"            when, ISO 8601; a line without takes the time of the line before it
      "conversation"  in which conversation
    and whatever else should be kept with the message.

    Every line is checked before anything is stored. Stop it with Ctrl-C and run it again: it goes
    on where it stopped, and nothing is stored twice. A file that has grown adds what is new.

    What `holdfast export` wrote is known by its content and taken back whole, under the name in it
    unless --user names another; nothing may be held about that user yet.

    \b
    Examples:
      holdfast import chat.jsonl
      holdfast import 2025/*.jsonl --user ana --skip-bad
      holdfast import today.jsonl --no-end --llm openai:gpt-5-mini
      jq -c '.messages[]' export.json | holdfast import - -c export
      holdfast import ana.json
      holdfast import chatgpt-export.zip --user ana
    """
    who = {"user": user, "org": org, "bot": bot, "subject": subject}
    with ExitStack() as stack:
        opened = [(name, _open(stack, name)) for name in files]
        if (kept := _export_among(opened)) is not None:
            return exports.take_back(kept, store, who, exports.typed(context), digest=digest, as_json=as_json)
        sources = [_source(stack, name, stream, conversation) for name, stream in opened]
        skipped = _judge(sources, skip_bad, as_json)
        model = stack.enter_context(models.model(llm, base_url))
        memory = stack.enter_context(writing(store, model))
        done = _take_in(memory, sources, who, skip_bad, end=end, digest=digest, show=not as_json)
    options = same_options(store, user, org=org, bot=bot)
    if done.outcome.skipped:
        raise _refused(done.outcome.skipped, user, options)
    after = f"facts{options}" if digest else f"digest{same_options(store, USER)}"
    if as_json:
        print_json(_as_data(sources, done.outcome, skipped, done.report if digest else None))
    else:
        _say(sources, done, skipped, digest, after)
    return raise_if_failed(done.report)


@dataclass(frozen=True, slots=True)
class Done:
    """What an import did, and the seconds that storing and learning took."""

    outcome: Outcome
    report: DigestReport
    stored_s: float
    learned_s: float


def _take_in(
    memory: Memory, sources: list[Source], who: dict[str, Any], skip_bad: bool, *, end: bool, digest: bool, show: bool
) -> Done:
    """Store every source's messages, and learn from them."""
    outcome = Outcome()
    with _resumable(outcome, sources):
        stored_s = _append(memory, sources, outcome, who, skip_bad, show=show)
        for name in (
            {name for source in sources for name in source.seen.conversations} if end and outcome.stored else ()
        ):
            memory.conversation(name, **who).end()
        began = time.monotonic()
        report = digest_all(memory, show=show) if digest else DigestReport()
    # Short files are learned from as they are stored; the run that follows has the rest.
    learned = DigestReport(changes=tuple(outcome.changes)) + report
    return Done(outcome, learned, stored_s, time.monotonic() - began)


def _refused(skipped: str, user: str, options: str) -> CommandError:
    done, way_back = ("paused memory", "resume") if skipped == "paused" else ("opted out", "opt-in")
    return CommandError(
        "refused", f"messages were not stored: {user} has {done}", hint=f"`holdfast {way_back}{options}` first"
    )


def _say(sources: list[Source], done: Done, skipped: int, digest: bool, after: str) -> None:
    screen, report = Screen(), done.report
    _tell(screen, sources, done.outcome, skipped, done.stored_s)
    if report.changes or (digest and (report.jobs or report.failed or report.waiting)):
        screen.line(*digest_words(report), (f"   {seconds(done.learned_s)}", QUIET))
        print_changes(screen, report.changes, most=10)
    screen.line()
    screen.line(f"Next:  holdfast {after}")


def _tell(screen: Screen, sources: list[Source], outcome: Outcome, skipped: int, stored_s: float) -> None:
    names = {name for source in sources for name in source.seen.conversations}
    rate = f", {outcome.stored / stored_s:,.0f} messages/s" if outcome.stored >= 1000 else ""
    if outcome.stored:
        screen.line(
            (f"{count(outcome.stored, 'message')} stored", STRONG),
            f" in {count(len(names), 'conversation')}",
            (f"   {seconds(stored_s)}{rate}", QUIET),
        )
    if outcome.known:
        here = f"{count(outcome.known, 'message')} {'was' if outcome.known == 1 else 'were'} here already"
        screen.line(here if outcome.stored else f"nothing new: {here}")
    if left_out := skipped + len(outcome.refused):
        screen.line(f"{count(left_out, 'line')} left out")


def _append(
    memory: Memory, sources: list[Source], outcome: Outcome, who: dict[str, Any], skip_bad: bool, *, show: bool
) -> float:
    """Store every source's messages; returns the seconds it took."""
    began = time.monotonic()
    total = sum(source.seen.messages for source in sources)
    with Progress("Importing", total=total, unit="messages", show=show) as progress:

        def on_block(so_far: Outcome) -> None:
            progress.done = so_far.done

        for source in sources:
            source.stream.seek(0)
            appender = Appender(lambda name: memory.conversation(name, **who), skip_bad, outcome)
            try:
                appender.run(blocks(source.stream, source.conversation, source.seen), on_block)
            except RefusedLine as error:
                raise _bad_lines(source.name, [error.bad], 1, stored=outcome.done) from error
    return max(time.monotonic() - began, 1e-9)


@contextmanager
def _resumable(outcome: Outcome, sources: list[Source]) -> Iterator[None]:
    """Ctrl-C ends the import with how far it came and how it goes on."""
    try:
        yield
    except KeyboardInterrupt:
        total = sum(source.seen.messages for source in sources)
        if outcome.done < total:
            where = f"{outcome.done:,} of {total:,} messages are stored"
        else:
            where = "all messages are stored; some of them are not learned from yet"
        raise CommandError(
            "interrupted", f"stopped: {where}", hint="run the same command again; it goes on from here", exit_code=130
        ) from None


def _open(stack: ExitStack, name: str) -> BinaryIO:
    if name == "-":
        # Standard input cannot be read twice; what comes is kept in memory, on disk when it is large.
        stream: Any = stack.enter_context(tempfile.SpooledTemporaryFile(max_size=50_000_000))
        shutil.copyfileobj(sys.stdin.buffer, stream)
        stream.seek(0)
        return stream  # type: ignore[no-any-return]
    try:
        return stack.enter_context(Path(name).open("rb"))
    except FileNotFoundError:
        raise CommandError(
            "no-file", f"there is no file {name}", hint="check the path; - reads standard input"
        ) from None
    except OSError as error:
        raise CommandError("no-file", f"{name} cannot be read: {error.strerror}", hint="name a JSONL file") from None


def _export_among(opened: list[tuple[str, BinaryIO]]) -> dict[str, Any] | None:
    for name, stream in opened:
        if (kept := exports.read(stream)) is not None:
            if len(opened) > 1:
                raise CommandError(
                    "usage",
                    f"{name} is the export of a user",
                    hint="import it by itself, not with others",
                    exit_code=2,
                )
            return kept
    return None


def _source(stack: ExitStack, name: str, stream: BinaryIO, conversation: str | None) -> Source:
    into = conversation or ("stdin" if name == "-" else Path(name).stem)
    shown = "standard input" if name == "-" else name
    if name != "-" and (read := foreign.as_lines(stack, name, into)) is not None:
        stream = read
    head = stream.read(PEEK_BYTES)
    if b"\0" in head and not head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise CommandError(
            "no-file", f"{shown} is not text: it holds zero bytes", hint="name a JSONL file, saved as UTF-8"
        )
    stream.seek(0)
    seen = survey(stream, into)
    if not seen.messages and not seen.bad:
        raise CommandError(
            "empty-file", f"{shown} holds no messages", hint='a line is {"role": "user", "content": "…"}'
        )
    return Source(shown, stream, into, seen)


def _judge(sources: list[Source], skip_bad: bool, as_json: bool) -> int:
    """Stop before anything is stored when lines are bad, unless they are to be skipped; returns how many are."""
    bad = sum(len(source.seen.bad) for source in sources)
    listed = not as_json and (skip_bad or bad > 1)  # a single line stands in the error itself
    for source in sources if listed else ():
        for line in source.seen.bad[:BAD_LINES_SHOWN]:
            print(f"{safe(source.name)}:{line.number}: {safe(line.problem)}", file=sys.stderr)
            print(f"  help: {safe(line.fix)}", file=sys.stderr)
        if len(source.seen.bad) > BAD_LINES_SHOWN:
            print(f"{safe(source.name)}: … and {len(source.seen.bad) - BAD_LINES_SHOWN:,} more", file=sys.stderr)
    if bad and not skip_bad:
        first = next(source for source in sources if source.seen.bad)
        raise _bad_lines(first.name, first.seen.bad, bad, stored=0, listed=listed)
    return bad


def _bad_lines(name: str, lines: list[BadLine], number: int, *, stored: int, listed: bool = False) -> CommandError:
    first = lines[0]
    where = f"{name}:{first.number}: {first.problem}"
    several = f"{count(number, 'line')} cannot be used" + ("" if listed else f", the first is {where}")
    kept = f"{stored:,} messages before it are stored" if stored else "nothing was stored"
    help_ = "mend them, or add --skip-bad" if listed else f"{first.fix}; or add --skip-bad"
    return CommandError(
        "bad-line", f"{where if number == 1 else several}; {kept}", hint=f"{help_} to leave such lines out"
    )


def _as_data(sources: list[Source], outcome: Outcome, skipped: int, report: DigestReport | None) -> dict[str, Any]:
    names = sorted({name for source in sources for name in source.seen.conversations})
    bad = [{"file": source.name, **plain(line)} for source in sources for line in source.seen.bad]
    return {
        "stored": outcome.stored,
        "known": outcome.known,
        "skipped": skipped + len(outcome.refused),
        "bad_lines": bad + plain(outcome.refused),
        "conversations": names,
        "digest": plain(report),
    }
