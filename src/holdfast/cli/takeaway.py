"""``holdfast export``: everything about a user, to take along."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Annotated, Any

import typer

from .options import BOT, ORG, STORE, USER, Bot, Json, Org, Store, User, commands, reading, same_options, who_is_there
from .plain import CommandError
from .receipts import held
from .screen import QUIET, STRONG, Screen, print_json
from .words import size

app = commands()


@app.command()
def export(
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="Where to write it; standard output when not given.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
    store: Store = STORE,
    user: User = USER,
    org: Org = ORG,
    bot: Bot = BOT,
    as_json: Json = False,
) -> int:
    """
    Write down everything that is held about the user, of all subjects, as one JSON document.

    `holdfast import` takes it back, into another store or under another name. Only you can read
    the file.

    \b
    Examples:
      holdfast export ana.json --user ana
      holdfast export --user ana | jq '.facts[].fact.text'
    """
    with reading(store) as memory:
        owner = memory.user(user, org=org, bot=bot)
        there = held(owner, None)
        if not there:
            raise CommandError(
                "no-user", f"nothing is held about {user!r} here", hint=who_is_there(memory, org, bot, user)
            )
        data = owner.export()
    if file is None:
        print_json(data)
        return 0
    path = Path(file)
    written = _write(path, data, force)
    if as_json:
        print_json({"file": str(path.resolve()), "bytes": written, "user": user})
        return 0
    screen = Screen()
    screen.line((f"{file}", STRONG), f": {there}", (f"   {size(written)}", QUIET))
    screen.line((f"take it back: holdfast import {file}{same_options(store, USER)}", QUIET))
    return 0


def _write(path: Path, data: dict[str, Any], force: bool) -> int:
    """Write *data* whole or not at all, for the owner's eyes only; returns its bytes."""
    if path.exists() and not force:
        raise CommandError("file-exists", f"{path} is there already", hint="name another file, or add --force")
    text = json.dumps(data, ensure_ascii=False, indent=1).encode("utf-8", "backslashreplace") + b"\n"
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.write(text)
        os.replace(beside, path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise CommandError(
            "no-file", f"{path} cannot be written: {error.strerror}", hint="name a file in a folder of yours"
        ) from None
    return len(text)
