"""The choices of a user: ``holdfast status``, ``pause``, ``resume``, ``opt-out``, ``opt-in``, ``never-remember``, ``allow``, ``export``."""

from __future__ import annotations

import json
import os
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...importers.portable import WRITERS, FormatLoss
from ..lookup import suggest_users
from ..options import SubjectOptions, UserOptions, Yes
from ..output import CHANGED, GOOD, QUIET, STRONG, Piece, Screen, confirm, print_json
from ..render import count_held, print_receipt
from ..terminal import CommandError, count, count_all, minute, size, to_json, usage_error

if TYPE_CHECKING:
    from ...user import User

Topic = Annotated[
    str, typer.Argument(help="A category (health, home, …), or words that must all occur in what was said.")
]

_STATES = {
    "active": ("active", GOOD, "messages are stored and used"),
    "paused": ("paused", CHANGED, "stored data is kept but not used; nothing new is stored"),
    "opted-out": ("opted out", CHANGED, "nothing is stored, nothing is used"),
}
_UNDO = {"paused": "resume", "opted-out": "opt-in"}


def status(options: SubjectOptions) -> int:
    """
    Show whether the user's memory is in use, which topics are never remembered, and how much is stored.

    \b
    Examples:
      holdfast status
      holdfast status --user ana --json
    """
    with options.open() as memory:
        owner = options.owner(memory)
        _show_state(owner, options, amounts=True)
        if not options.as_json and not owner.conversations():
            print(f"nothing is stored about {options.user!r}; {suggest_users(memory, options)}", file=sys.stderr)
    return 0


def pause(options: SubjectOptions) -> int:
    """
    Keep what is stored, but use none of it and store nothing new, until `holdfast resume`.

    \b
    Examples:
      holdfast pause
      holdfast pause --user ana
    """
    with options.create() as memory:
        owner = options.owner(memory)
        owner.pause()
        _show_state(owner, options)
    return 0


def resume(options: SubjectOptions) -> int:
    """
    End a pause. It does not end an opt-out; `holdfast opt-in` does.

    \b
    Examples:
      holdfast resume
      holdfast resume --user ana
    """
    with options.open() as memory:
        owner = options.owner(memory)
        owner.resume()
        _show_state(owner, options)
    return 0


def opt_out(
    options: SubjectOptions,
    keep: Annotated[bool, typer.Option("--keep", help="Keep what is stored, unused, instead of erasing it.")] = False,
    yes: Yes = False,
) -> int:
    """
    Stop remembering, and erase what is stored.

    \b
    Examples:
      holdfast opt-out --user ana
      holdfast opt-out --keep
      holdfast opt-out --user ana --yes --json
    """
    with options.create() as memory:
        owner = options.owner(memory)
        stored = "" if keep else count_all(count_held(owner, options.subject))
        if stored:
            question = f"{options.user} opts out: {stored} will be erased. Continue?"
            confirm(question, yes=yes, as_json=options.as_json)
        receipt = owner.opt_out(erase=not keep)
        if options.as_json:
            print_json({"user": options.user, **to_json(owner.status()), "receipt": to_json(receipt)})
            return 0
        if stored:
            print_receipt(Screen(), receipt)
        _show_state(owner, options)
    return 0


def opt_in(options: SubjectOptions) -> int:
    """
    Start remembering again, after an opt-out or a pause.

    \b
    Examples:
      holdfast opt-in
      holdfast opt-in --user ana
    """
    with options.open() as memory:
        owner = options.owner(memory)
        owner.opt_in()
        _show_state(owner, options)
    return 0


def never_remember(options: SubjectOptions, topic: Topic) -> int:
    """
    Learn no more facts about a topic.

    Existing facts stay until they are forgotten; messages are stored as before.

    \b
    Examples:
      holdfast never-remember health
      holdfast never-remember "my ex husband"
    """
    with options.create() as memory:
        owner = options.owner(memory)
        owner.never_remember(topic)
        _show_state(owner, options)
    return 0


def allow(options: SubjectOptions, topic: Topic) -> int:
    """
    Learn facts about a topic again; undoes `holdfast never-remember`.

    \b
    Examples:
      holdfast allow health
    """
    with options.open() as memory:
        owner = options.owner(memory)
        owner.allow(topic)
        _show_state(owner, options)
    return 0


def _show_state(owner: User, options: SubjectOptions, *, amounts: bool = False) -> None:
    """Print the user's choices, and with *amounts* how much is stored."""
    chosen = owner.status()
    numbers = {"conversations": len(owner.conversations()), "facts": len(owner.facts())} if amounts else {}
    if options.as_json:
        print_json({"user": options.user, **to_json(chosen), **numbers})
        return
    screen = Screen()
    name, style, meaning = _STATES[chosen.state]
    since = f" since {minute(chosen.since)}" if chosen.since and chosen.state != "active" else ""
    screen.line(f"memory of {options.user}: ", (name, style), (f"{since}   {meaning}", QUIET))
    if chosen.never:
        screen.line("never remembered: ", (", ".join(chosen.never), STRONG))
    if amounts:
        screen.line(f"stored: {count(numbers['conversations'], 'conversation')}, {count(numbers['facts'], 'fact')}")
    if undo := _UNDO.get(chosen.state):
        screen.line((f"undo: holdfast {undo}{options.repeated}", QUIET))


def export(
    options: UserOptions,
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="The file to write (default: standard output).")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    format: Annotated[
        str, typer.Option("--format", metavar="NAME", help="holdfast (whole), pam, omi, okf or memories.")
    ] = "holdfast",
) -> int:
    """
    Export everything that is stored about the user, with all subjects, as one JSON document.

    `holdfast import` imports it, into another store or for another user. Only you can read the file.

    \b
    Examples:
      holdfast export ana.json --user ana
      holdfast export --user ana | jq '.facts[].fact.text'
      holdfast export ana.zip --user ana --format pam

    The formats for other programs carry less: what each of them cannot carry is shown with its reason.
    """
    if format not in ("holdfast", *WRITERS):
        raise usage_error(f"--format {format} is not known", f"write --format holdfast, {', '.join(WRITERS)}")
    with options.open() as memory:
        owner = options.owner(memory)
        stored = count_all(count_held(owner, None))
        if not stored:
            raise CommandError(
                "no-user", f"nothing is stored about {options.user!r} here", hint=suggest_users(memory, options)
            )
        data = owner.export()
    if format != "holdfast":
        return _export_portable(data, format, file, force, options)
    if file is None:
        print_json(data)
        return 0
    path = Path(file)
    raw = json.dumps(data, ensure_ascii=False, indent=1).encode("utf-8", "backslashreplace") + b"\n"
    written = _write_export(path, raw, force)
    if options.as_json:
        print_json({"file": str(path.resolve()), "bytes": written, "user": options.user})
        return 0
    screen = Screen()
    screen.line((f"{file}", STRONG), f": {stored}", (f"   {size(written)}", QUIET))
    screen.line((f"to import it into another store: holdfast import {file} --store OTHER", QUIET))
    return 0


def _export_portable(data: dict[str, Any], format: str, file: str | None, force: bool, options: UserOptions) -> int:
    """Write the export in a portable format; show what that cannot carry."""
    label, write = WRITERS[format]
    if file is None:
        name = f"{options.user}.{'json' if format == 'memories' else format}"
        raise usage_error(f"--format {format} needs a file", f"write holdfast export {name} --format {format}")
    raw, losses = write(data)
    written = _write_export(Path(file), raw, force)
    if options.as_json:
        lost = [to_json(one) for one in losses]
        print_json({"file": str(Path(file).resolve()), "bytes": written, "user": options.user, "lost": lost})
        return 0
    screen = Screen()
    screen.line((file, STRONG), f": {label}, {count(len(data['facts']), 'fact')}", (f"   {size(written)}", QUIET))
    _show_losses(screen, losses)
    return 0


def _show_losses(screen: Screen, losses: list[FormatLoss]) -> None:
    if losses:
        screen.line("not carried by this format:")
        rows: list[list[Piece]] = [[f"{one.count:,}", one.what, (one.why, QUIET)] for one in losses]
        screen.columns(rows, indent=2)


def _write_export(path: Path, text: bytes, force: bool) -> int:
    """Write *text* completely or not at all, readable only by the owner; return its bytes."""
    if path.exists() and not force:
        raise CommandError("file-exists", f"{path} exists already", hint="name another file, or add --force")
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
