"""``holdfast store distribute``: spread a PostgreSQL database over a Citus cluster."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import Json, commands
from .progress import Progress
from .screen import BAD, GOOD, QUIET, STRONG, Screen, print_json
from .values import plain
from .words import count

if TYPE_CHECKING:
    from ..store.outcomes import Distribution

app = commands()


@app.command()
def distribute(
    url: Annotated[str, typer.Argument(metavar="URL", help="postgresql://… of the tables' owner, on the coordinator.")],
    shards: Annotated[int, typer.Option("--shards", metavar="N", help="Into how many parts tables are cut.")] = 32,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check, and print what would be done.")] = False,
    as_json: Json = False,
) -> int:
    """
    Spread a PostgreSQL database over a Citus cluster: every user's rows together on one node.

    Everything is checked first; with something in the way nothing is moved, and the exit code is 1. Stop servers and
    workers before. A table moves as a whole or not at all; after an interruption run it again. After an upgrade of
    Holdfast run `store init`, then this.

    \b
    Examples:
      holdfast store distribute postgresql://admin@db.example.org/memory --dry-run
      holdfast store distribute postgresql://admin@db.example.org/memory --shards 128 --json
    """
    with Progress("Spread", unit="rows", show=not as_json and not dry_run) as progress:

        def on_table(table: str, done: int, total: int) -> None:
            progress.title, progress.done, progress.total = table, done, total

        spread: Any = import_module("holdfast.store").distribute
        report: Distribution = spread(url, shards=shards, dry_run=dry_run, progress=on_table)
    if as_json:
        print_json(plain(report))
    else:
        _show(report, dry_run=dry_run)
    return 1 if report.obstacles else 0


def _show(report: Distribution, *, dry_run: bool) -> None:
    screen = Screen()
    screen.line(f"Citus {report.citus}, {count(report.nodes, 'node')} with rows")
    for obstacle in report.obstacles:
        screen.line(("in the way", BAD), f": {obstacle.what}")
        screen.line((f"  {obstacle.fix}", QUIET))
    if report.obstacles:
        screen.line(("nothing was moved", QUIET))
    elif dry_run:
        for table in report.tables:
            state = "there already" if table.there else table.sql
            screen.line((table.table, STRONG), f"   {count(table.rows, 'row')}   ", (state, QUIET))
    else:
        rows = sum(table.rows for table in report.tables)
        screen.line(("done", GOOD), f": {count(len(report.tables), 'table')}, {count(rows, 'row')}")
        screen.line(("start servers and workers again", QUIET))
