"""``holdfast usage`` and ``holdfast metrics``: what models cost, and how well memory works."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ..options import DEFAULT, PeriodOptions
from ..output import BAD, CHANGED, NAME, QUIET, STRONG, Piece, Screen, print_json
from ..terminal import count, seconds, to_json, usage_error

if TYPE_CHECKING:
    from ...reports import AskedAgain, Measure, Usage

GROUPS = ("org", "user", "bot", "day", "layer", "model")
LISTED = 10


def usage(
    options: PeriodOptions,
    by: Annotated[
        str, typer.Option("--by", metavar="GROUPS", help="Any of org, user, bot, day, layer, model; comma-separated.")
    ] = "layer,model",
) -> int:
    """
    Show how often models were called, how many tokens that took, and what it cost.

    Cached tokens are those that the provider had cached; most providers charge less for them. The
    built-in rules cost nothing and are not listed.

    \b
    Examples:
      holdfast usage
      holdfast usage --by day,model --since 2026-03-01
      holdfast usage --by user
      holdfast usage --user ana --json
    """
    groups = [group.strip() for group in by.split(",") if group.strip()]
    if unknown := [group for group in groups if group not in GROUPS]:
        hint = f"use {', '.join(GROUPS)}"
        raise usage_error(f"--by does not know {unknown[0]!r}", hint)
    since, until = options.days()
    with options.open() as memory:
        found, totals = (
            memory.usage(by=one, since=since, until=until, org=options.org, user=options.user, bot=options.bot)
            for one in (groups, ())
        )
        waiting = memory.jobs("waiting")
    if options.as_json:
        print_json([{**to_json(one), "tokens": one.tokens} for one in found])
        return 0
    screen = Screen()
    if waiting:
        verb = "is" if len(waiting) == 1 else "are"
        reason = waiting[0].reason.partition(": ")[2]
        screen.line((f"{count(len(waiting), 'job')} {verb} waiting", CHANGED), (f"; {reason}", QUIET))
    if not found:
        screen.line("no model was called", (" (holdfast model shows which one would be)", QUIET))
        return 0
    head: list[Piece] = [(group, QUIET) for group in groups]
    rows = [[*head, *((f"{name:>10}", QUIET) for name in ("calls", "tokens in", "cached", "tokens out", "cost"))]]
    rows += [[*_names(one, groups), *_amounts(one)] for one in found]
    if len(found) > 1:
        label: list[Piece] = [("all", STRONG), *[""] * (len(groups) - 1)] if groups else []
        rows += [[*label, *_amounts(one)] for one in totals]
    screen.columns(rows)
    failed = sum(one.failed for one in totals)
    if failed:
        screen.line((f"{count(failed, 'call')} failed", BAD), (", included above; holdfast jobs shows why", QUIET))
    return 0


def _names(one: Usage, groups: list[str]) -> list[Piece]:
    return [(str(getattr(one, group)).replace("_", " "), NAME) for group in groups]


def _amounts(one: Usage) -> list[Piece]:
    numbers = (one.calls, one.input_tokens, one.cached_tokens, one.output_tokens)
    cost: Piece = ("unknown".rjust(10), QUIET)
    if one.cost is not None:
        cost = (f"${one.cost:,.4f}" if one.cost < 1 else f"${one.cost:,.2f}").rjust(10)
    return [*(f"{number:>10,}" for number in numbers), cost]


def metrics(options: PeriodOptions) -> int:
    """
    Show how well memory works, each figure with the number of cases it was counted from.

    Questions that were asked again are listed, each with the fact that would have answered it.
    What was not recorded is not measured; figures that compare words only say so.

    \b
    Examples:
      holdfast metrics
      holdfast metrics --since 2026-03-01 --user ana
      holdfast metrics --json
    """
    since, until = options.days()
    with options.open() as memory:
        if options.user is None:
            found = memory.admin.metrics(org=options.org, bot=options.bot, since=since, until=until)
        else:
            owner = memory.user(options.user, org=options.org or DEFAULT, bot=options.bot or DEFAULT)
            found = owner.metrics(since=since, until=until)
    if options.as_json:
        print_json(to_json(found))
        return 0
    screen = Screen()
    screen.columns([_measure_row(one) for one in found.measures])
    left_out = f"; {count(found.left_out, 'more user')} not counted" if found.left_out else ""
    screen.line((f"counted over {count(found.users, 'user')}{left_out}", QUIET))
    if found.asked_again:
        screen.line()
        screen.line(("asked again although it was known", STRONG))
    for one in found.asked_again[:LISTED]:
        _show_asked_again(screen, one)
    if len(found.asked_again) > LISTED:
        screen.line((f"and {len(found.asked_again) - LISTED} more: --json lists them", QUIET))
    return 0


def _measure_row(one: Measure) -> list[Piece]:
    name = (one.name.replace("_", " "), NAME)
    if one.value is None:
        return [name, ("not measured", CHANGED), "", (one.not_measured, QUIET)]
    estimate = "estimated by comparing words" if one.heuristic else ""
    return [name, (_format_measure(one, one.value), STRONG), (f"n = {one.n:,}", QUIET), (estimate, QUIET)]


def _format_measure(one: Measure, value: float) -> str:
    if one.unit == "share":
        return f"{value:.1%}"
    if one.unit == "seconds":
        return seconds(value)
    return f"${value:,.2f}" if one.unit == "US dollars" else f"{value:g} {one.unit}"


def _show_asked_again(screen: Screen, one: AskedAgain) -> None:
    screen.line(f"  {one.question}", (f"   {one.conversation}, message {one.seq}", QUIET))
    source = one.fact.evidence[0] if one.fact.evidence else None
    where = f"   said in {source.conversation}, message {source.seq}" if source else ""
    screen.line(("    known: ", QUIET), one.fact.text, (where, QUIET))
