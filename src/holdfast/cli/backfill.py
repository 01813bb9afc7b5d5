"""``holdfast backfill``: old conversations brought up to what is made today."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from . import models
from .models import BaseUrl, Llm
from .options import BOT, ORG, STORE, Bot, Dry, Json, Org, Store, commands, reading
from .plain import CommandError, safe
from .progress import Progress
from .rebuild import cost_words
from .screen import QUIET, STRONG, Screen, print_json
from .values import plain
from .words import count

if TYPE_CHECKING:
    from ..reports import BackfillReport

app = commands()

LAYERS = ("summaries", "episodes", "facts", "meta")
ALL = ",".join(LAYERS)
REASONS_SHOWN = 10


Layers = Annotated[
    str, typer.Option("--layers", metavar="LAYERS", help="Any of summaries, episodes, facts, meta; commas between.")
]
Limit = Annotated[int | None, typer.Option("--limit", min=1, metavar="NUMBER", help="Make at most so many ranges.")]
Delay = Annotated[
    int | None, typer.Option("--delay", min=0, metavar="MS", help="Pause between two calls of the model [500].")
]


@app.command()
def backfill(
    layers: Layers = ALL,
    limit: Limit = None,
    delay: Delay = None,
    dry_run: Dry = False,
    llm: Llm = None,
    base_url: BaseUrl = None,
    user: Annotated[
        str | None, typer.Option("--user", "-u", metavar="NAME", help="Only this user's (default: everybody's).")
    ] = None,
    store: Store = STORE,
    org: Org = ORG,
    bot: Bot = BOT,
    as_json: Json = False,
) -> int:
    """
    Go through old conversations, and make what is missing or what only the rules made.

    What a model has made already is skipped, so stop it with Ctrl-C at any time: the same command
    goes on where it was.

    \b
    Examples:
      holdfast backfill --llm openai:gpt-5-mini --dry-run
      holdfast backfill --llm openai:gpt-5-mini --limit 100
      holdfast backfill --user ana --layers facts
    """
    wanted = [layer.strip() for layer in layers.split(",") if layer.strip()]
    if wrong := [layer for layer in wanted if layer not in LAYERS]:
        raise CommandError("usage", f"there is no layer {wrong[0]!r}", hint=f"use {', '.join(LAYERS)}", exit_code=2)
    with models.model(llm, base_url) as model, reading(store, model) as memory:
        with Progress("Filling in", show=not as_json) as bar:

            def show(so_far: BackfillReport) -> None:
                bar.note = f"{so_far.created:,} made, {so_far.skipped:,} there already, {so_far.errors:,} failed"

            try:
                report = memory.backfill(
                    user, org=org, bot=bot, layers=wanted, limit=limit, delay_ms=delay, dry_run=dry_run, progress=show
                )
            except KeyboardInterrupt:
                raise CommandError(
                    "interrupted", "stopped; what was made is kept", hint="the same command goes on", exit_code=130
                ) from None
    return _end(report, as_json)


def _end(report: BackfillReport, as_json: bool) -> int:
    """
    What was made; what was not, with the reasons.

    Raises:
        CommandError: some ranges failed.
    """
    if as_json:
        print_json(plain(report))
    else:
        _tell(Screen(), report)
    for reason in report.reasons[:REASONS_SHOWN]:
        print(safe(reason), file=sys.stderr)
    if report.errors:
        raise CommandError(
            "not-rebuilt",
            f"{count(report.errors, 'range')} could not be made",
            hint="the reasons stand above; the same command tries them again",
        )
    return 0


def _tell(screen: Screen, report: BackfillReport) -> None:
    made = "would be made" if report.dry_run else "made"
    screen.line(
        f"{count(report.processed, 'range')} looked at: ",
        (f"{report.created:,} {made}", STRONG),
        f", {report.skipped:,} there already, {report.errors:,} failed",
    )
    screen.line(
        (f"  {'at most ' if report.dry_run else ''}{cost_words(report.calls, report.tokens, report.cost)}", QUIET)
    )
    if report.left:
        screen.line((f"  {count(report.left, 'range')} left for the next run", QUIET))
