"""``holdfast import`` and ``holdfast export``: conversations from files, and everything about a user in one file."""

from __future__ import annotations

import codecs
import json
import os
import re
import secrets
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

from ...errors import BadInput, Conflict, HoldfastError
from ...importers.append import Appender, ImportOutcome, RefusedLine
from ...importers.foreign import LABELS, Mapped, detect, survey_file
from ...importers.jsonl import BadLine, Survey, blocks, survey
from ...reports import DigestReport
from ..lookup import suggest_users
from ..models import ModelOptions
from ..operator_commands.jobs import digest_all, raise_if_failed
from ..options import StoreOptions, SubjectOptions, UserOptions
from ..output import QUIET, STRONG, ProgressBar, Screen, print_json
from ..render import count_held, digest_line, print_changes
from ..terminal import INTERRUPTED, CommandError, count, count_all, safe, seconds, size, to_json, usage_error

if TYPE_CHECKING:
    from ...memory import Memory
    from ...user import User

BAD_LINES_SHOWN = 10
PEEK_BYTES = 4096
EXPORT_FORMAT = "holdfast-user"

_EXPORT_MARK = re.compile(rb'"format"\s*:\s*"' + EXPORT_FORMAT.encode() + b'"')
_STEP_BYTES, _OVERLAP_BYTES = 1_000_000, 100


Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE…",
        help="JSONL files, exports of ChatGPT or Claude, or files of `holdfast export`; - reads standard input.",
    ),
]
DefaultConversation = Annotated[
    str | None,
    typer.Option(
        "--conversation", "-c", metavar="NAME", help="For lines that name none (default: the name of the file)."
    ),
]


@dataclass(frozen=True, slots=True)
class ImportFile:
    """One file to import: its name for users, its open bytes, the default conversation, and a survey of its lines."""

    name: str
    stream: BinaryIO
    conversation: str
    survey: Survey


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
    digest: Annotated[bool, typer.Option(help="Learn from the messages right away.")] = True,
    end: Annotated[
        bool, typer.Option(help="The conversations are over: summarize their last messages as well.")
    ] = True,
) -> int:
    """
    Import conversations: JSONL, oldest message first, or the exports of ChatGPT and Claude as JSON or ZIP.

    \b
    A line of JSONL is {"role": "user", "content": "…"} and may hold
      "name"          the name of the speaker
      "at"            the time, ISO 8601; without it, the time of the line before
      "conversation"  the name of the conversation
    and anything else to keep with the message.

    Every line is checked before anything is stored. After Ctrl-C, run the same command again: it
    continues where it stopped, and nothing is stored twice. A file that has grown adds what is new.

    A file of `holdfast export` is recognized by its content and imported as a whole, for the user
    named in it unless --user names another; nothing may be stored about that user yet.

    \b
    Examples:
      holdfast import chat.jsonl
      holdfast import 2025/*.jsonl --user ana --skip-bad
      holdfast import today.jsonl --no-end --llm openai:gpt-5-mini
      jq -c '.messages[]' export.json | holdfast import - -c export
      holdfast import ana.json
      holdfast import chatgpt-export.zip --user ana
    """
    show = not options.as_json
    with ExitStack() as stack:
        opened = [(name, _open(stack, name)) for name in files]
        if (exported := _find_export(opened)) is not None:
            return _import_export(exported, _target(context, options, exported), digest=digest)
        sources = [_survey(stack, name, stream, conversation) for name, stream in opened]
        skipped = _check_lines(sources, skip_bad, options.as_json)
        memory = stack.enter_context(options.create(stack.enter_context(model.open(options))))
        result = _store_and_learn(memory, sources, options, skip_bad, end=end, digest=digest, show=show)
    if result.outcome.skipped:
        raise _memory_off(result.outcome.skipped, options)
    if options.as_json:
        print_json(_import_as_json(sources, result, skipped, digest))
    else:
        user = UserOptions(store=options.store, user=options.user, org=options.org, bot=options.bot)
        after = f"facts{user.repeated}" if digest else f"digest{StoreOptions(store=options.store).repeated}"
        _show_result(sources, result, skipped, digest, after)
    return raise_if_failed(result.report)


# Reading the files


def _open(stack: ExitStack, name: str) -> BinaryIO:
    if name == "-":
        # Standard input cannot be read twice; it is kept in memory, or on disk when it is large.
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


def _survey(stack: ExitStack, name: str, stream: BinaryIO, conversation: str | None) -> ImportFile:
    """Read a file once, without storing anything: which conversations and how many messages, which lines are bad."""
    into = conversation or ("stdin" if name == "-" else Path(name).stem)
    shown = "standard input" if name == "-" else name
    if name != "-" and (converted := _convert_foreign(stack, name, into)) is not None:
        stream = converted
    head = stream.read(PEEK_BYTES)
    if b"\0" in head and not head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise CommandError(
            "no-file", f"{shown} is not text: it holds zero bytes", hint="name a JSONL file, saved as UTF-8"
        )
    stream.seek(0)
    found = survey(stream, into)
    if not found.messages and not found.bad:
        raise CommandError(
            "empty-file", f"{shown} holds no messages", hint='a line is {"role": "user", "content": "…"}'
        )
    return ImportFile(shown, stream, into, found)


def _convert_foreign(stack: ExitStack, name: str, conversation: str) -> BinaryIO | None:
    """
    Convert an export of another program (ChatGPT, Claude, a list of messages; JSON or ZIP) to one message a line.

    Returns ``None`` for every other file.  The lines are kept until *stack* is closed.

    Raises:
        CommandError: it is such an export, and cannot be read.
    """
    path = Path(name)
    with path.open("rb") as stream:
        first = stream.read(1_000).removeprefix(b"\xef\xbb\xbf").lstrip()[:2]
    if first[:1] not in (b"[", b"{") and first != b"PK":
        return None
    label = ""
    try:
        kind = detect(path)
        if kind in ("lines", "user"):
            return None
        label = LABELS[kind]
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-import-")))
        survey_file(path, conversation, Mapped(), folder / "lines.jsonl")
    except HoldfastError as error:
        if not label and first != b"PK":
            return None  # the reader of lines says which line is wrong
        raise CommandError("no-file", f"{name}: {error.message}", hint=error.hint) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        # A file of another program may have any shape; its content is not repeated.
        words = f"{name} does not have the shape of a {label or 'JSON file'} ({type(error).__name__})"
        raise CommandError("no-file", words, hint="choose the file as the other program made it") from error
    return stack.enter_context((folder / "lines.jsonl").open("rb"))


def _check_lines(sources: list[ImportFile], skip_bad: bool, as_json: bool) -> int:
    """
    Count the bad lines, which are left out with *skip_bad*.

    Raises:
        CommandError: there are bad lines, and they are not to be skipped.
    """
    bad = sum(len(source.survey.bad) for source in sources)
    listed = not as_json and (skip_bad or bad > 1)  # a single line is in the error itself
    for source in sources if listed else ():
        for line in source.survey.bad[:BAD_LINES_SHOWN]:
            print(f"{safe(source.name)}:{line.number}: {safe(line.problem)}", file=sys.stderr)
            print(f"  help: {safe(line.fix)}", file=sys.stderr)
        if len(source.survey.bad) > BAD_LINES_SHOWN:
            more = len(source.survey.bad) - BAD_LINES_SHOWN
            print(f"{safe(source.name)}: … and {more:,} more", file=sys.stderr)
    if bad and not skip_bad:
        first = next(source for source in sources if source.survey.bad)
        raise _bad_lines(first.name, first.survey.bad, bad, stored=0, listed=listed)
    return bad


def _bad_lines(name: str, lines: list[BadLine], number: int, *, stored: int, listed: bool = False) -> CommandError:
    first = lines[0]
    where = f"{name}:{first.number}: {first.problem}"
    several = f"{count(number, 'line')} cannot be used" + ("" if listed else f", the first is {where}")
    kept = f"{count(stored, 'message')} before it stored" if stored else "nothing was stored"
    fix = "fix them, or add --skip-bad" if listed else f"{first.fix}; or add --skip-bad"
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
            for name in {name for source in sources for name in source.survey.conversations}:
                options.chat(memory, name).end()
        began = time.monotonic()
        report = digest_all(memory, show=show) if digest else DigestReport()
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
            source.stream.seek(0)
            appender = Appender(lambda name: options.chat(memory, name), skip_bad, outcome)
            try:
                appender.run(blocks(source.stream, source.conversation, source.survey), on_block)
            except RefusedLine as error:
                raise _bad_lines(source.name, [error.bad], 1, stored=outcome.done) from error
    return max(time.monotonic() - began, 1e-9)


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
    if left_out := skipped + len(outcome.refused):
        screen.line(f"{count(left_out, 'line')} left out")
    if report.changes or (digest and (report.jobs or report.failed or report.waiting)):
        screen.line(*digest_line(report), (f"   {seconds(result.learned_s)}", QUIET))
        print_changes(screen, report.changes, most=10)
    screen.line()
    screen.line(f"Next:  holdfast {after}")


def _import_as_json(sources: list[ImportFile], result: ImportResult, skipped: int, digest: bool) -> dict[str, Any]:
    outcome = result.outcome
    bad = [{"file": source.name, **to_json(line)} for source in sources for line in source.survey.bad]
    return {
        "stored": outcome.stored,
        "known": outcome.known,
        "skipped": skipped + len(outcome.refused),
        "bad_lines": bad + to_json(outcome.refused),
        "conversations": sorted({name for source in sources for name in source.survey.conversations}),
        "digest": to_json(result.report if digest else None),
    }


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


def _import_export(data: dict[str, Any], target: UserOptions, *, digest: bool) -> int:
    """
    Import an export.

    Raises:
        CommandError: it was damaged, or something is stored about that user already.
    """
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


# Exporting


def export(
    options: UserOptions,
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="The file to write (default: standard output).")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
) -> int:
    """
    Export everything that is stored about the user, with all subjects, as one JSON document.

    `holdfast import` imports it, into another store or for another user. Only you can read the file.

    \b
    Examples:
      holdfast export ana.json --user ana
      holdfast export --user ana | jq '.facts[].fact.text'
    """
    with options.open() as memory:
        owner = options.owner(memory)
        stored = count_all(count_held(owner, None))
        if not stored:
            raise CommandError(
                "no-user", f"nothing is stored about {options.user!r} here", hint=suggest_users(memory, options)
            )
        data = owner.export()
    if file is None:
        print_json(data)
        return 0
    path = Path(file)
    written = _write_export(path, data, force)
    if options.as_json:
        print_json({"file": str(path.resolve()), "bytes": written, "user": options.user})
        return 0
    screen = Screen()
    screen.line((f"{file}", STRONG), f": {stored}", (f"   {size(written)}", QUIET))
    screen.line((f"to import it: holdfast import {file}{StoreOptions(store=options.store).repeated}", QUIET))
    return 0


def _write_export(path: Path, data: dict[str, Any], force: bool) -> int:
    """Write *data* completely or not at all, readable only by the owner; return its bytes."""
    if path.exists() and not force:
        raise CommandError("file-exists", f"{path} exists already", hint="name another file, or add --force")
    text = json.dumps(data, ensure_ascii=False, indent=1).encode("utf-8", "backslashreplace") + b"\n"
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.write(text)
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise CommandError(
            "no-file", f"{path} cannot be written: {error.strerror}", hint="name a file in a folder of yours"
        ) from None
    return len(text)
