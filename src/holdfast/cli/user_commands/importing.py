"""``holdfast import``: conversations and memories from files."""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from ...errors import BadInput, Conflict, HoldfastError
from ...importers.append import Appender, ImportOutcome, RefusedLine, store_memories
from ...importers.foreign import LABELS, Mapped, NotOneDocument, SurveyedFile, detect, split_by_user, survey_file
from ...importers.items import ImportedMemory, LeftOut
from ...importers.jsonl import BadLine, Survey, blocks, problem_of, survey
from ...reports import DigestReport
from ...text import dataclass
from ..models import ModelOptions
from ..operator_commands.jobs import digest_all, raise_if_failed
from ..options import StoreOptions, SubjectOptions, UserOptions
from ..output import QUIET, STRONG, Piece, ProgressBar, Screen, print_json
from ..render import count_held, digest_line, print_changes
from ..terminal import INTERRUPTED, CommandError, count, count_all, safe, seconds, to_json, usage_error

if TYPE_CHECKING:
    from ...memory import Memory
    from ...user import User

BAD_LINES_SHOWN, LEFT_OUT_SHOWN = 10, 10
PEEK_BYTES = 4096
EXPORT_FORMAT = "holdfast-user"
_LINES_SAY = ("this JSON holds", "the file is neither", "the file is UTF-16", "the file is empty")
_EXPORT_MARK = re.compile(rb'"format"\s*:\s*"' + EXPORT_FORMAT.encode() + b'"')
_STEP_BYTES, _OVERLAP_BYTES = 1_000_000, 100

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE…",
        help="Files, archives or folders as another program wrote them, JSONL, or files of `holdfast export`; "
        "- reads standard input.",
    ),
]
Me = Annotated[
    list[str] | None,
    typer.Option(
        "--me", metavar="NAME", help="In a chat between people: the speaker who is the user; may be repeated."
    ),
]
FromUser = Annotated[
    str | None, typer.Option("--from-user", metavar="ID", help="Only what is of this user of the other program.")
]
AllUsers = Annotated[
    bool, typer.Option("--all-users", help="Import what is of each user of the other program under its own name.")
]
TimeZoneName = Annotated[
    str, typer.Option("--timezone", metavar="ZONE", help="Where times that name no zone are from.")
]
ReportFile = Annotated[
    str | None, typer.Option("--report", metavar="FILE", help="Write what is left out, and why, a line each.")
]
ConversationsEnd = Annotated[
    bool, typer.Option(help="The conversations are over: summarize their last messages as well.")
]
Dates = Annotated[
    str | None, typer.Option("--dates", metavar="ORDER", help="day-first or month-first, where 03/05 can be both.")
]
DefaultConversation = Annotated[
    str | None,
    typer.Option(
        "--conversation", "-c", metavar="NAME", help="For lines that name none (default: the name of the file)."
    ),
]


@dataclass(frozen=True, slots=True)
class ImportFile:
    """A file to import, or one user's part of it; ``found`` is of another program's file, ``user`` none of the options'."""

    name: str
    open: Callable[[], Any]
    conversation: str
    survey: Survey
    found: SurveyedFile | None = None
    memories: tuple[ImportedMemory, ...] = ()
    user: str | None = None
    skipped: tuple[LeftOut, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """How files of other programs are read."""

    mapped: Mapped
    all_users: bool = False
    show: bool = False


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The outcome of an import, what was learned, and the seconds that storing and learning took."""

    outcome: ImportOutcome
    report: DigestReport
    stored_s: float
    learned_s: float


def import_(
    context: typer.Context,
    options: SubjectOptions,
    model: ModelOptions,
    files: Files,
    conversation: DefaultConversation = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave out unusable lines, and count them.")] = False,
    me: Me = None,
    from_user: FromUser = None,
    all_users: AllUsers = False,
    dates: Dates = None,
    timezone: TimeZoneName = "UTC",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be imported; store nothing.")] = False,
    report: ReportFile = None,
    digest: Annotated[bool, typer.Option(help="Learn from the messages right away.")] = True,
    end: ConversationsEnd = True,
) -> int:
    """
    Import conversations and memories: of JSONL, or as another program exported or stored them.

    \b
    Recognized by content: exports of ChatGPT, Claude, Open WebUI, LibreChat, Discord, Telegram,
    WhatsApp and Slack; what mem0, Zep, LiteLLM, LangGraph, LangChain and the OpenAI Agents SDK
    store; Markdown memory files; PAM, OMI, OKF; lists of memories (content, category, confidence).

    A line of JSONL is {"role": "user", "content": "…"} and may hold "name", "at" (ISO 8601; by default the
    time of the line before), "conversation", and anything else to keep with the message.

    Everything is checked before anything is stored. After Ctrl-C, run the same command again: it
    continues where it stopped, and nothing is stored twice. A file that has grown adds what is new.

    A file of `holdfast export` is imported as a whole, for the user named in it unless --user names
    another; nothing may be stored about that user yet.

    \b
    Examples:
      holdfast import chat.jsonl
      holdfast import 2025/*.jsonl --user ana --skip-bad
      holdfast import chatgpt-export.zip --user ana --dry-run
      holdfast import whatsapp.zip --user ana --me "Ana Silva"
      holdfast import history.db memories.json --all-users
      holdfast import ~/.claude/projects/my-app/memory --user ana
      jq -c '.messages[]' export.json | holdfast import - -c export
    """
    show = not options.as_json
    reading = ReadingOptions(_reading(me, from_user, dates, timezone), all_users, show)
    with ExitStack() as stack:
        opened = [(name, _open(stack, name)) for name in files]
        if (exported := _find_export(opened)) is not None:
            return _import_export(exported, _target(context, options, exported), digest=digest, dry_run=dry_run)
        sources = [one for name, stream in opened for one in _survey(stack, name, stream, conversation, reading)]
        skipped = _check_lines(sources, skip_bad, options.as_json)
        _report_left_out(stack, report, sources)
        if dry_run:
            _show_dry_run(sources, skipped, options)
            return 0
        memory = stack.enter_context(options.create(stack.enter_context(model.open(options))))
        result = _store_and_learn(memory, sources, options, skip_bad, end=end, digest=digest, show=show)
    return _finish(sources, result, skipped, digest, options)


def _finish(
    sources: list[ImportFile], result: ImportResult, skipped: int, digest: bool, options: SubjectOptions
) -> int:
    off = [_memory_off(why, replace(options, user=user)) for user, why in result.outcome.off.items()]
    if off and not (result.outcome.stored or result.outcome.known):
        raise off[0]
    if options.as_json:
        print_json(_import_as_json(sources, result, skipped, digest))
    else:
        user = UserOptions(store=options.store, user=options.user, org=options.org, bot=options.bot)
        after = f"facts{user.repeated}" if digest else f"digest{StoreOptions(store=options.store).repeated}"
        _show_result(sources, result, skipped, digest, after)
    if off:
        raise off[0]
    return raise_if_failed(result.report)


# Reading the files


def _reading(me: list[str] | None, from_user: str | None, dates: str | None, timezone: str) -> Mapped:
    if dates not in (None, "day-first", "month-first"):
        raise usage_error(f"--dates {dates} is no order of dates", "write --dates day-first or --dates month-first")
    try:
        zone = ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError):
        raise usage_error(f"--timezone {timezone} is no time zone", "write --timezone Europe/Lisbon") from None
    day_first = None if dates is None else dates == "day-first"
    return Mapped(dict.fromkeys(me or (), "user"), day_first=day_first, zone=zone, of=from_user)


def _open(stack: ExitStack, name: str) -> BinaryIO:
    if Path(name).is_dir():
        return io.BytesIO()
    if name == "-":  # it cannot be read twice: it is kept in memory, or on disk when it is large
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


def _survey(
    stack: ExitStack, name: str, stream: BinaryIO, conversation: str | None, reading: ReadingOptions
) -> list[ImportFile]:
    """Read a file once, without storing anything: which conversations and how many messages, which lines are bad."""
    into = conversation or ("stdin" if name == "-" else Path(name).stem)
    shown = "standard input" if name == "-" else name
    if name != "-" and (converted := _convert_foreign(stack, name, into, reading)) is not None:
        return converted
    if (problem := problem_of(stream.read(PEEK_BYTES))) is not None:
        raise CommandError("not-text", f"{shown}: {problem[0]}", hint=problem[1])
    stream.seek(0)
    found = survey(stream, into)
    if not found.messages and not found.bad:
        raise CommandError(
            "empty-file", f"{shown} holds no messages", hint='a line is {"role": "user", "content": "…"}'
        )
    return [ImportFile(shown, partial(nullcontext, stream), into, found)]


def _convert_foreign(
    stack: ExitStack, name: str, conversation: str, reading: ReadingOptions
) -> list[ImportFile] | None:
    """
    Convert a file of another program to one message a line, and memories.

    Returns ``None`` for every other file.  The lines are kept until *stack* is closed.

    Raises:
        CommandError: it is such a file, and cannot be read; or it is not known whose it is.
    """
    path = Path(name)
    try:
        kind = detect(path)
        if kind in ("lines", "user"):
            return None
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-import-")))
        with ProgressBar(f"Reading {safe(name)}", show=reading.show) as bar:
            read = partial(_note_read, bar)
            found = survey_file(path, conversation, reading.mapped, folder / "lines.jsonl", read)
    except NotOneDocument as error:
        raise CommandError("bad-line", f"{error.message}; nothing was stored", hint=error.hint) from error
    except HoldfastError as error:
        if path.is_file() and error.message.startswith(_LINES_SAY):
            return None  # the reader of lines says what is wrong
        raise CommandError(error.code, f"{name}: {error.message}", hint=error.hint) from error
    if found.unassigned:
        raise _no_speaker(name, found)
    return _parts_of(name, conversation, reading, found, folder)


def _note_read(bar: ProgressBar, number: int) -> None:
    bar.note = f"{number:,} messages"


def _parts_of(
    name: str, conversation: str, reading: ReadingOptions, found: SurveyedFile, folder: Path
) -> list[ImportFile]:
    """Return what is imported of a file: as one, or for each user of the other program."""
    lines, skipped = folder / "lines.jsonl", tuple(found.left_out)
    several = len(found.users) > 1 and reading.mapped.of is None
    if several and not reading.all_users:
        most = ", ".join(f"{user or 'nobody'} ({number:,})" for user, number in found.users.most_common(5))
        more = f", and {len(found.users) - 5:,} more" if len(found.users) > 5 else ""
        raise CommandError(
            "several-users",
            f"{name} holds what is of {len(found.users):,} users: {most}{more}",
            hint="--from-user ID imports one of them, --all-users each under its own name",
        )
    if reading.mapped.of is not None and reading.mapped.of not in found.users:
        few = ", ".join(repr(user) for user in [*found.users][:5]) + (" …" if len(found.users) > 5 else "") or "nobody"
        raise CommandError("no-user", f"{name} holds nothing of {reading.mapped.of!r}", hint=f"it names {few}")
    if not (reading.all_users and found.users):
        stream = partial(lines.open, "rb")
        return [ImportFile(name, stream, conversation, found.survey, found, tuple(found.memories), skipped=skipped)]
    parts = []
    for number, (user, (path, figures)) in enumerate(split_by_user(found, lines, folder, conversation).items()):
        figures.bad = found.survey.bad if number == 0 else []
        own = tuple(one for one in found.memories if one.of == user)
        stream = partial(path.open, "rb")  # there may be more users than files can be open
        left = skipped if number == 0 else ()
        parts.append(ImportFile(name, stream, conversation, figures, found, own, user or None, left))
    return parts


def _no_speaker(name: str, found: SurveyedFile) -> CommandError:
    counts: Counter[str] = Counter()
    for (speaker, _role), number in found.names.items():
        counts[speaker] += number
    most = ", ".join(f"{speaker} ({number:,})" for speaker, number in counts.most_common(5))
    first = next(iter(counts), "NAME")
    return CommandError(
        "no-speaker", f"{name} does not say which speaker is the user: {most}", hint=f'name them: --me "{first}"'
    )


def _check_lines(sources: list[ImportFile], skip_bad: bool, as_json: bool) -> int:
    """
    Count the bad lines, which are left out with *skip_bad*.

    Raises:
        CommandError: there are bad lines, and they are not to be skipped.
    """
    bad = sum(len(source.survey.bad) for source in sources)
    listed = not as_json and (skip_bad or bad > 1)  # a single line is in the error itself
    for source in sources if listed else ():
        _print_bad(source.name, source.survey.bad)
    if bad and not skip_bad:
        first = next(source for source in sources if source.survey.bad)
        raise _bad_lines(first.name, first.survey.bad, bad, stored=0, listed=listed)
    return bad


def _print_bad(name: str, lines: list[BadLine]) -> None:
    for line in lines[:BAD_LINES_SHOWN]:
        print(f"{_at(name, line)}: {safe(line.problem)}", file=sys.stderr)
        if line.fix:
            print(f"  help: {safe(line.fix)}", file=sys.stderr)
    if len(lines) > BAD_LINES_SHOWN:
        print(f"{safe(name)}: … and {len(lines) - BAD_LINES_SHOWN:,} more", file=sys.stderr)


def _located(source: ImportFile, line: BadLine) -> BadLine:
    """Return a line that the store refused with its place in the file that was given, instead of the converted lines."""
    found = source.found
    if found is None:
        return line
    places = [at for at, of in zip(found.places, found.owners, strict=True) if source.user in (None, of)]
    return found.bad_line(places[line.number - 1], line.problem, line.fix)


def _at(name: str, line: BadLine) -> str:
    return f"{safe(name)}:{line.number}" if line.number else safe(name)


def _bad_lines(name: str, lines: list[BadLine], number: int, *, stored: int, listed: bool = False) -> CommandError:
    first = lines[0]
    where = f"{_at(name, first)}: {first.problem}"
    several = f"{count(number, 'line')} cannot be used" + ("" if listed else f", the first is {where}")
    kept = f"{count(stored, 'message')} before it stored" if stored else "nothing was stored"
    fix = "fix them, or add --skip-bad" if listed else "; or ".join(filter(None, (first.fix, "add --skip-bad")))
    return CommandError(
        "bad-line", f"{where if number == 1 else several}; {kept}", hint=f"{fix} to leave such lines out"
    )


# Storing the messages


def _store_and_learn(
    memory: Memory,
    sources: list[ImportFile],
    options: SubjectOptions,
    skip_bad: bool,
    *,
    end: bool,
    digest: bool,
    show: bool,
) -> ImportResult:
    outcome = ImportOutcome()
    with _resumable(outcome, sources):
        stored_s = _store(memory, sources, outcome, options, skip_bad, show=show)
        if end and outcome.stored:
            for who, name in {(source.user, name) for source in sources for name in source.survey.conversations}:
                _for(options, who).chat(memory, name).end()
        began = time.monotonic()
        report = digest_all(memory, show=show) if digest else DigestReport()
        _store_memories(memory, sources, outcome, options, show=show)
    # Facts of short files are learned while they are stored; the digest has the rest.
    learned = DigestReport(changes=tuple(outcome.changes)) + report
    return ImportResult(outcome, learned, stored_s, time.monotonic() - began)


def _store(
    memory: Memory,
    sources: list[ImportFile],
    outcome: ImportOutcome,
    options: SubjectOptions,
    skip_bad: bool,
    *,
    show: bool,
) -> float:
    """Store the messages of every file; return the seconds it took."""
    began = time.monotonic()
    total = sum(source.survey.messages for source in sources)
    with ProgressBar("Importing", total=total, unit="messages", show=show) as bar:

        def on_block(so_far: ImportOutcome) -> None:
            bar.done = so_far.done

        for source in sources:
            whose, before = _for(options, source.user), len(outcome.refused)
            appender = Appender(lambda name, whose=whose: whose.chat(memory, name), skip_bad, outcome)  # type: ignore[misc]
            try:
                with source.open() as stream:
                    stream.seek(0)
                    appender.run(blocks(stream, source.conversation, source.survey), on_block)
            except RefusedLine as error:
                bad = _located(source, error.bad)
                raise _bad_lines(source.name, [bad], 1, stored=outcome.done) from error
            refused = [_located(source, line) for line in outcome.refused[before:]]
            source.survey.bad += refused
            if show:
                _print_bad(source.name, refused)
            if outcome.skipped:
                outcome.off[whose.user], outcome.skipped = outcome.skipped, ""
    return max(time.monotonic() - began, 1e-9)


def _for(options: SubjectOptions, user: str | None) -> SubjectOptions:
    """Return the options for another user."""
    return options if user is None else replace(options, user=user)


def _store_memories(
    memory: Memory, sources: list[ImportFile], outcome: ImportOutcome, options: SubjectOptions, *, show: bool
) -> None:
    """Store what the other programs remembered, after the messages: a sentence confirms what a message says."""
    total = sum(len(source.memories) for source in sources)
    if not total:
        return
    with ProgressBar("Remembering", total=total, unit="memories", show=show) as bar:

        def on_memory(so_far: ImportOutcome) -> None:
            bar.done = so_far.memories + so_far.known_memories + len(so_far.left_out)

        for source in sources:
            store_memories(_for(options, source.user).owner(memory), source.memories, outcome, on_memory)


@contextmanager
def _resumable(outcome: ImportOutcome, sources: list[ImportFile]) -> Iterator[None]:
    """Turn Ctrl-C into an error that says how much was stored and how to continue."""
    try:
        yield
    except KeyboardInterrupt:
        total = sum(source.survey.messages for source in sources)
        if outcome.done < total:
            state = f"{outcome.done:,} of {total:,} messages are stored"
        else:
            state = "all messages are stored; facts of some of them are still missing"
        raise CommandError(
            "interrupted",
            f"stopped: {state}",
            hint="run the same command again; it continues from here",
            exit_code=INTERRUPTED,
        ) from None


def _memory_off(skipped: str, options: SubjectOptions) -> CommandError:
    state, undo = ("paused memory", "resume") if skipped == "paused" else ("opted out", "opt-in")
    user = UserOptions(store=options.store, user=options.user, org=options.org, bot=options.bot)
    return CommandError(
        "refused",
        f"messages were not stored: {options.user} has {state}",
        hint=f"run `holdfast {undo}{user.repeated}` first",
    )


def _show_result(sources: list[ImportFile], result: ImportResult, skipped: int, digest: bool, after: str) -> None:
    screen, outcome, report = Screen(), result.outcome, result.report
    names = {name for source in sources for name in source.survey.conversations}
    rate = f", {outcome.stored / result.stored_s:,.0f} messages/s" if outcome.stored >= 1000 else ""
    if outcome.stored:
        screen.line(
            (f"{count(outcome.stored, 'message')} stored", STRONG),
            f" in {count(len(names), 'conversation')}",
            (f"   {seconds(result.stored_s)}{rate}", QUIET),
        )
    if outcome.known:
        known = f"{count(outcome.known, 'message')} {'was' if outcome.known == 1 else 'were'} already stored"
        screen.line(known if outcome.stored else f"nothing new: {known}")
    if outcome.memories:
        screen.line((f"{count_memories(outcome.memories)} stored as facts", STRONG))
    if outcome.sentences:
        screen.line(f"{count_memories(outcome.sentences)} kept as sentences, which no key finds or replaces")
    if outcome.known_memories:
        screen.line(f"{count_memories(outcome.known_memories)} known already")
    if left_out := skipped + len(outcome.refused):
        screen.line(f"{count(left_out, 'line')} left out")
    _show_left_out(screen, sources, outcome)
    _show_backwards(screen, sources)
    if report.changes or (digest and (report.jobs or report.failed or report.waiting)):
        screen.line(*digest_line(report), (f"   {seconds(result.learned_s)}", QUIET))
        print_changes(screen, report.changes, most=10)
    if not (outcome.done - len(outcome.refused) or outcome.memories or outcome.known_memories):
        screen.line("nothing was stored")
        return
    screen.line()
    screen.line(f"Next:  holdfast {after}")


def _import_as_json(sources: list[ImportFile], result: ImportResult, skipped: int, digest: bool) -> dict[str, Any]:
    outcome = result.outcome
    bad = [{"file": source.name, **to_json(line)} for source in sources for line in source.survey.bad]
    return {
        "stored": outcome.stored,
        "known": outcome.known,
        "skipped": skipped + len(outcome.refused),
        "bad_lines": bad,
        "conversations": sorted({name for source in sources for name in source.survey.conversations}),
        "memories": outcome.memories,
        "sentences": outcome.sentences,
        "known_memories": outcome.known_memories,
        "left_out": dict(_reasons(sources, outcome).most_common()),
        "digest": to_json(result.report if digest else None),
    }


# What is left out, and what a dry run shows


def _reasons(sources: list[ImportFile], outcome: ImportOutcome | None = None) -> Counter[str]:
    """Count what was left out by its reason."""
    reasons = Counter(one.why for source in sources for one in source.skipped)
    reasons.update(one.why for one in (outcome.left_out if outcome is not None else ()))
    return reasons


def _show_left_out(screen: Screen, sources: list[ImportFile], outcome: ImportOutcome | None = None) -> None:
    reasons = _reasons(sources, outcome)
    if not reasons:
        return
    screen.line(f"{reasons.total():,} left out:")
    first: dict[str, str] = {}
    for source in sources:
        for one in source.skipped:
            where = source.found.where(one.place) if source.found is not None else ""
            first.setdefault(one.why, f"first {source.name}{where}")
    rows: list[list[Piece]] = [
        [f"{number:,}", why, (first.get(why, ""), QUIET)] for why, number in reasons.most_common(LEFT_OUT_SHOWN)
    ]
    screen.columns(rows, indent=2)
    if len(reasons) > LEFT_OUT_SHOWN:
        screen.line(f"  … and {len(reasons) - LEFT_OUT_SHOWN:,} more reasons")
    screen.line(("--report FILE writes each of them with its place", QUIET))


def _show_backwards(screen: Screen, sources: list[ImportFile]) -> None:
    """Warn of files whose times go backwards: a chat is read from its beginning to its end."""
    for source in sources:
        if number := source.survey.backwards:
            where = source.found.backwards_from if source.found is not None else f":{source.survey.backwards_at}"
            older = "1 line is" if number == 1 else f"{number:,} lines are"
            screen.line(f"warning: {older} older than the line before, first {source.name}{where}")
            screen.line(
                ("  help: sort the file by time, oldest first, or the wrong value may count as the newer", QUIET)
            )


def _report_left_out(stack: ExitStack, path: str | None, sources: list[ImportFile]) -> None:
    """Write the report where one is wanted, and again at the end, with what only the store refuses."""
    if path is not None:
        _write_report(path, sources)
        stack.callback(_write_report, path, sources)


def _write_report(path: str, sources: list[ImportFile]) -> None:
    """Write what is left out or damaged, a JSON object a line."""
    try:
        with Path(path).open("w", encoding="utf-8") as out:
            for source in sources:
                for one in source.skipped:
                    where = source.found.where(one.place) if source.found is not None else ""
                    out.write(json.dumps({"where": f"{source.name}{where}", "why": one.why}, ensure_ascii=False) + "\n")
                for line in source.survey.bad:
                    bad = {"where": _at(source.name, line), "why": line.problem, "fix": line.fix}
                    out.write(json.dumps(bad, ensure_ascii=False) + "\n")
    except OSError as error:
        raise CommandError(
            "no-file", f"{path} cannot be written: {error.strerror}", hint="name a file in a folder of yours"
        ) from None


def _show_dry_run(sources: list[ImportFile], skipped: int, options: SubjectOptions) -> None:
    """Show what would be imported; nothing was stored."""
    rows: list[dict[str, Any]] = []
    for source in sources:
        found = source.found
        rows.append(
            {
                "file": source.name,
                "format": LABELS[found.format] if found is not None else LABELS["lines"],
                "user": source.user or options.user,
                "conversations": len(source.survey.conversations),
                "messages": source.survey.messages,
                "memories": len(source.memories),
                "without_time": source.survey.undated,
                "backwards": source.survey.backwards,
                "first_at": found.first_at if found is not None else "",
                "last_at": found.last_at if found is not None else "",
            }
        )
    if options.as_json:
        reasons = dict(_reasons(sources).most_common())
        print_json({"dry_run": True, "files": rows, "skipped": skipped, "left_out": reasons})
        return
    screen = Screen()
    for row in rows:
        screen.line((str(row["file"]), STRONG), f": {row['format']}, for {row['user']}")
        words = [count(row["messages"], "message"), f"in {count(row['conversations'], 'conversation')}"]
        words += [f"and {count_memories(row['memories'])}"] if row["memories"] else []
        screen.line("  " + " ".join(words))
        if row["first_at"]:
            screen.line((f"  {str(row['first_at'])[:10]} to {str(row['last_at'])[:10]}", QUIET))
    _show_backwards(screen, sources)
    if skipped:
        screen.line(f"{count(skipped, 'line')} left out")
    _show_left_out(screen, sources)
    screen.line(("nothing was stored: leave out --dry-run to import", QUIET))


def count_memories(number: int) -> str:
    """Return "1 memory" or "2 memories"."""
    return "1 memory" if number == 1 else f"{number:,} memories"


# Importing what export wrote


def _find_export(opened: list[tuple[str, BinaryIO]]) -> dict[str, Any] | None:
    """
    Return the export among the files.

    Raises:
        CommandError: it was named together with other files.
    """
    for name, stream in opened:
        if (exported := _read_export(stream)) is not None:
            if len(opened) > 1:
                words = f"{name} is the export of a user"
                raise usage_error(words, "import it alone, without other files")
            return exported
    return None


def _read_export(stream: BinaryIO) -> dict[str, Any] | None:
    """Return the export that *stream* holds, ``None`` for anything else; rewind the stream."""
    try:
        if not _has_export_mark(stream):
            return None
        stream.seek(0)
        data = json.loads(stream.read())
    except (ValueError, RecursionError):
        return None
    finally:
        stream.seek(0)
    return data if isinstance(data, dict) and data.get("format") == EXPORT_FORMAT else None


def _has_export_mark(stream: BinaryIO) -> bool:
    """Return whether the mark of an export is anywhere in it; a chat may quote it, too."""
    tail = b""
    while block := stream.read(_STEP_BYTES):
        if _EXPORT_MARK.search(tail + block):
            return True
        tail = block[-_OVERLAP_BYTES:]
    return False


def _target(context: typer.Context, options: SubjectOptions, data: dict[str, Any]) -> UserOptions:
    """Return the user that the export names, or the one of the options as far as they were given."""
    who = {}
    for name in ("user", "org", "bot"):
        source = context.get_parameter_source(name)
        given = source is not None and source.name != "DEFAULT"
        who[name] = getattr(options, name) if given else data.get(name, "")
    return UserOptions(store=options.store, as_json=options.as_json, **who)


def _import_export(data: dict[str, Any], target: UserOptions, *, digest: bool, dry_run: bool = False) -> int:
    """
    Import an export; a dry run shows whom it is of.

    Raises:
        CommandError: it was damaged, or something is stored about that user already.
    """
    if dry_run:
        sizes = {name: len(value) for name, value in data.items() if isinstance(value, list) and value}
        print_json({"dry_run": True, "format": LABELS["user"], "user": target.user, **sizes})
        return 0
    with target.create() as memory:
        owner = _import_user(memory, data, target)
        report = digest_all(memory, show=not target.as_json) if digest else None
        numbers = count_held(owner, None)
    if target.as_json:
        who = {"user": target.user, "org": target.org, "bot": target.bot}
        print_json({**who, **numbers, "digest": to_json(report)})
    else:
        screen = Screen()
        screen.line((count_all(numbers) or "only a choice", STRONG), f" of {target.user} imported")
        after = f"facts{target.repeated}" if digest else f"digest{StoreOptions(store=target.store).repeated}"
        screen.line(f"Next:  holdfast {after}")
    return raise_if_failed(report) if report else 0


def _import_user(memory: Memory, data: dict[str, Any], target: UserOptions) -> User:
    try:
        owner = target.owner(memory)
        owner.import_(data)
    except Conflict as error:
        raise CommandError(
            error.code,
            f"{target.user}: {error.message}",
            hint=f"run `holdfast erase{target.repeated}` first, or import it for another user: --user NAME",
        ) from error
    except BadInput as error:
        raise CommandError("bad-export", error.message, hint=error.hint or "export the user again") from error
    return owner
