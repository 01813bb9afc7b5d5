"""``holdfast export``: everything about a user in one file, whole or in a format of other programs."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Annotated, Any

import typer

from ...importers.portable import WRITERS, FormatLoss
from ..lookup import suggest_users
from ..options import UserOptions
from ..output import QUIET, STRONG, Piece, Screen, print_json
from ..render import count_held
from ..terminal import CommandError, count, count_all, size, to_json, usage_error


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
