"""``holdfast metrics``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .options import STORE, Json, Store, commands, reading
from .screen import CHANGED, NAME, QUIET, STRONG, Piece, Screen, print_json
from .usage import day
from .values import plain
from .words import count, seconds

if TYPE_CHECKING:
    from ..reports import AskedAgain, Measure, Metrics

app = commands()

LISTED = 10


@app.command()
def metrics(
    since: Annotated[str | None, typer.Option("--since", metavar="DAY", help="From this day (UTC) on.")] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="DAY", help="Up to this day, itself included.")
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", "-u", metavar="NAME", help="Only of this user (default: everybody).")
    ] = None,
    org: Annotated[str | None, typer.Option("--org", metavar="NAME", help="Only of this tenant.")] = None,
    bot: Annotated[str | None, typer.Option("--bot", metavar="NAME", help="Only of this assistant.")] = None,
    store: Store = STORE,
    as_json: Json = False,
) -> int:
    """
    Show how well memory serves, each figure with what it was counted from.

    Repeated questions are listed, each with the fact that had answered it. Nothing is guessed: what
    was not recorded is not measured, and what goes by words alone says so.

    \b
    Examples:
      holdfast metrics
      holdfast metrics --since 2026-03-01 --user ana
      holdfast metrics --json
    """
    first, last = day(since, "--since"), day(until, "--until")
    with reading(store) as memory:
        if user is None:
            found = memory.admin.metrics(org=org, bot=bot, since=first, until=last)
        else:
            found = memory.user(user, org=org or "default", bot=bot or "default").metrics(since=first, until=last)
    if as_json:
        print_json(plain(found))
        return 0
    _show(Screen(), found)
    return 0


def _show(screen: Screen, found: Metrics) -> None:
    screen.columns([_row(one) for one in found.measures])
    left = f"; {count(found.left_out, 'more user', 'more users')} not counted" if found.left_out else ""
    screen.line((f"counted over {count(found.users, 'user', 'users')}{left}", QUIET))
    if found.asked_again:
        screen.line()
        screen.line(("asked although it was known", STRONG))
    for one in found.asked_again[:LISTED]:
        _again(screen, one)
    if len(found.asked_again) > LISTED:
        screen.line((f"and {len(found.asked_again) - LISTED} more: --json lists them", QUIET))


def _row(one: Measure) -> list[Piece]:
    name = (one.name.replace("_", " "), NAME)
    if one.value is None:
        return [name, ("not measured", CHANGED), "", (one.not_measured, QUIET)]
    guess = "a guess by words" if one.heuristic else ""
    return [name, (_value(one, one.value), STRONG), (f"n = {one.n:,}", QUIET), (guess, QUIET)]


def _value(one: Measure, value: float) -> str:
    if one.unit == "share":
        return f"{value:.1%}"
    if one.unit == "seconds":
        return seconds(value)
    return f"${value:,.2f}" if one.unit == "US dollars" else f"{value:g} {one.unit}"


def _again(screen: Screen, one: AskedAgain) -> None:
    screen.line(f"  {one.question}", (f"   {one.conversation}, message {one.seq}", QUIET))
    said = one.fact.evidence[0] if one.fact.evidence else None
    where = f"   said in {said.conversation}, message {said.seq}" if said else ""
    screen.line(("    known: ", QUIET), one.fact.text, (where, QUIET))
