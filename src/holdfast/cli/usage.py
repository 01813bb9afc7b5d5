"""``holdfast usage``."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Annotated

import typer

from .options import STORE, Json, Store, commands, reading
from .plain import CommandError
from .screen import BAD, CHANGED, NAME, QUIET, STRONG, Piece, Screen, print_json
from .values import plain
from .words import count

if TYPE_CHECKING:
    from ..reports import Usage

app = commands()

PARTS = ("org", "user", "bot", "day", "layer", "model")


@app.command()
def usage(
    by: Annotated[
        str, typer.Option("--by", metavar="PARTS", help="Any of org, user, bot, day, layer, model; commas between.")
    ] = "layer,model",
    since: Annotated[str | None, typer.Option("--since", metavar="DAY", help="From this day (UTC) on.")] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="DAY", help="Up to this day, itself included.")
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", "-u", metavar="NAME", help="Only on behalf of this user (default: all).")
    ] = None,
    org: Annotated[str | None, typer.Option("--org", metavar="NAME", help="Only of this tenant.")] = None,
    bot: Annotated[str | None, typer.Option("--bot", metavar="NAME", help="Only of this assistant.")] = None,
    store: Store = STORE,
    as_json: Json = False,
) -> int:
    """
    Show what models were used for, how many tokens that took, and what it cost.

    Cached tokens are those that the provider still knew, which most charge less for. The built-in
    rules cost nothing and are not listed.

    \b
    Examples:
      holdfast usage
      holdfast usage --by day,model --since 2026-03-01
      holdfast usage --by user
      holdfast usage --user ana --json
    """
    parts = [part.strip() for part in by.split(",") if part.strip()]
    if wrong := [part for part in parts if part not in PARTS]:
        raise CommandError(
            "usage", f"--by {wrong[0]!r} is none of the parts", hint=f"use {', '.join(PARTS)}", exit_code=2
        )
    first, last = day(since, "--since"), day(until, "--until")
    with reading(store) as memory:
        found = memory.usage(by=parts, since=first, until=last, org=org, user=user, bot=bot)
        whole = memory.usage(by=(), since=first, until=last, org=org, user=user, bot=bot)
        waits = memory.jobs("waiting")
    if as_json:
        print_json([{**plain(one), "tokens": one.tokens} for one in found])
        return 0
    screen = Screen()
    if waits:
        screen.line((f"{count(len(waits), 'job')} wait", CHANGED), (f"; {waits[0].reason.partition(': ')[2]}", QUIET))
    if not found:
        screen.line("no model was asked", (" (holdfast model shows which one would be)", QUIET))
        return 0
    head: list[Piece] = [(part, QUIET) for part in parts]
    rows = [[*head, *((f"{name:>10}", QUIET) for name in ("calls", "tokens in", "cached", "tokens out", "cost"))]]
    rows += [_row(one, parts) for one in found]
    if len(found) > 1:
        rows += [_row(one, [], [("all", STRONG), *[""] * (len(parts) - 1)] if parts else []) for one in whole]
    screen.columns(rows)
    failed = sum(one.failed for one in whole)
    if failed:
        screen.line((f"{count(failed, 'call')} failed", BAD), (", and are among them; holdfast jobs shows why", QUIET))
    return 0


def _row(one: Usage, parts: list[str], first: list[Piece] | None = None) -> list[Piece]:
    named: list[Piece] = [(str(getattr(one, part)).replace("_", " "), NAME) for part in parts]
    numbers = (one.calls, one.input_tokens, one.cached_tokens, one.output_tokens)
    return [*(first if first is not None else named), *(f"{number:>10,}" for number in numbers), _cost(one)]


def _cost(one: Usage) -> Piece:
    if one.cost is None:
        return ("not known".rjust(10), QUIET)
    return (f"${one.cost:,.4f}" if one.cost < 1 else f"${one.cost:,.2f}").rjust(10)


def day(text: str | None, option: str) -> date | None:
    """
    A day as typed.

    Raises:
        CommandError: it is none.
    """
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        raise CommandError(
            "usage", f"{option} {text!r} is not a day", hint=f"write {option} 2026-03-14", exit_code=2
        ) from None
