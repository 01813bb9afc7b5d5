"""``holdfast rebuild``, ``backfill``, ``consolidate`` and ``prune``: improve what was learned before."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from ...types import Fact, Summary
from ..lookup import find_conversation
from ..models import ModelOptions
from ..options import DEFAULT, BotOption, ConversationOption, DryRun, OnlyUser, OrgOption, StoreOptions, SubjectOptions
from ..output import CHANGED, GOOD, NAME, QUIET, STRONG, Piece, ProgressBar, Screen, print_json
from ..render import show_summary
from ..terminal import (
    INTERRUPTED,
    CommandError,
    cost,
    count,
    fact_label,
    fact_value,
    minute,
    safe,
    to_json,
    usage_error,
)

if TYPE_CHECKING:
    from ...conversation import Conversation
    from ...reports import BackfillReport, RebuildReport

REBUILD_LAYERS = ("summaries", "episodes", "meta", "facts", "vectors", "chunk")
BACKFILL_LAYERS = ("summaries", "episodes", "facts", "meta")
SHOWN, ARCHIVED_SHOWN = 10, 20


def rebuild(
    options: SubjectOptions,
    model: ModelOptions,
    layer: Annotated[
        str | None,
        typer.Argument(metavar="LAYER", help="summaries, episodes, meta (summaries of summaries), facts or vectors."),
    ] = None,
    first: Annotated[
        int | None, typer.Option("--from", min=1, metavar="NUMBER", help="The first message of the range.")
    ] = None,
    last: Annotated[
        int | None, typer.Option("--to", min=1, metavar="NUMBER", help="The last message of the range.")
    ] = None,
    dry_run: DryRun = False,
    undo: Annotated[
        str | None, typer.Option("--undo", metavar="ID", help="Revert this rebuild; `last` reverts the newest.")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the rebuilds so far.")] = False,
    conversation: ConversationOption = None,
) -> int:
    """
    Rebuild one layer of a conversation: with a model, a better one, or other prompts.

    Only that layer and only that range are rebuilt. The previous version is kept; --undo reverts to it.

    \b
    Examples:
      holdfast rebuild summaries --from 11 --to 30 --dry-run
      holdfast rebuild summaries --llm openai:gpt-5-mini
      holdfast rebuild facts -c web-42 --user ana
      holdfast rebuild --list
      holdfast rebuild --undo last
    """
    _check_rebuild(layer, first, last, undo, list_)
    with model.open(options) as llm, options.open(llm) as memory:
        chat = find_conversation(memory, options, conversation)
        repeated = f" -c {chat.id}{options.repeated}"
        if list_:
            _list_rebuilds(chat, options.as_json, repeated)
            return 0
        if undo is not None:
            report = chat.restore(_newest_rebuild(chat) if undo == "last" else undo)
        else:
            with ProgressBar("Rebuilding", unit="ranges", show=not options.as_json) as bar, _interruptible():
                report = chat.rebuild(layer or "", start_seq=first, end_seq=last, dry_run=dry_run, progress=bar.update)
        if options.as_json:
            print_json(to_json(report))
        else:
            _show_rebuild(Screen(), chat, report, repeated, undone=undo is not None)
    _print_reasons(report.errors, len(report.errors))
    return 0


@contextmanager
def _interruptible() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise CommandError(
            "interrupted",
            "stopped; every range is either unchanged or complete",
            hint="the same command continues; `holdfast rebuild --list` shows what was rebuilt",
            exit_code=INTERRUPTED,
        ) from None


def _check_rebuild(layer: str | None, first: int | None, last: int | None, undo: str | None, list_: bool) -> None:
    problem, hint = "", f"use {', '.join(REBUILD_LAYERS)}"
    if [layer is not None, undo is not None, list_].count(True) != 1:
        problem, hint = "name a LAYER, or --undo ID, or --list", f"layers are {', '.join(REBUILD_LAYERS)}"
    elif layer is not None and layer not in REBUILD_LAYERS:
        problem = f"there is no layer {layer!r}"
    elif first is not None and last is not None and last < first:
        problem, hint = f"--to {last} is before --from {first}", "name the first message with --from"
    if problem:
        raise usage_error(problem, hint)


def _newest_rebuild(chat: Conversation) -> str:
    rebuilds = chat.rebuilds()
    if not rebuilds:
        raise CommandError("no-rebuild", f"{chat.id} was never rebuilt", hint="there is nothing to revert")
    return rebuilds[-1].id


def _list_rebuilds(chat: Conversation, as_json: bool, repeated: str) -> None:
    rebuilds = chat.rebuilds()
    if as_json:
        print_json(to_json(rebuilds))
        return
    screen = Screen()
    if not rebuilds:
        screen.line(f"{chat.id} was not rebuilt yet")
        return
    rows: list[list[Piece]] = [
        [
            (one.id, STRONG),
            (one.layer, NAME),
            f"messages {one.start_seq}–{one.end_seq}",
            minute(one.at),
            (f"by {one.source}; {one.replaced} replaced, {one.added} new", QUIET),
        ]
        for one in rebuilds
    ]
    screen.columns(rows)
    screen.line((f"revert one: holdfast rebuild --undo ID{repeated}", QUIET))


def _show_rebuild(screen: Screen, chat: Conversation, report: RebuildReport, repeated: str, *, undone: bool) -> None:
    if not report.ranges:
        screen.line(f"{report.layer}: there is nothing to rebuild")
        return
    where = (f"{report.layer} of messages {report.start_seq}–{report.end_seq}", NAME)
    costs = cost(report.calls, report.tokens, report.cost)
    if report.dry_run:
        screen.line(where, f": {count(report.ranges, 'range')} would be rebuilt; nothing was changed")
        screen.line((f"  at most {costs}", QUIET))
        return
    done = "reverted to the previous version" if undone else f"{count(report.ranges, 'range')} rebuilt"
    screen.line(where, ": ", (done, GOOD), (f"   {costs}", QUIET))
    summaries = [one for one in report.after if isinstance(one, Summary)]
    for summary in summaries[:SHOWN]:
        show_summary(screen, chat, summary, 2)
    if len(summaries) > SHOWN:
        screen.line((f"  … and {len(summaries) - SHOWN} more: holdfast summaries{repeated}", QUIET))
    if report.layer in ("facts", "episodes"):
        _show_rebuilt_facts(screen, report)
    if report.id:
        screen.line((f"undo: holdfast rebuild --undo {report.id}{repeated}", QUIET))


def _show_rebuilt_facts(screen: Screen, report: RebuildReport) -> None:
    before: list[Fact] = [one for one in report.before if not isinstance(one, Summary)]
    after: list[Fact] = [one for one in report.after if not isinstance(one, Summary)]
    unchanged = {one.id for one in before} & {one.id for one in after}
    rows: list[list[Piece]] = [
        [(fact_label(one), NAME), (fact_value(one), STRONG), state]
        for facts, state in ((after, ("new", GOOD)), (before, ("not found again", CHANGED)))
        for one in facts
        if one.id not in unchanged
    ]
    screen.columns(rows[: 2 * SHOWN], indent=2)
    if len(rows) > 2 * SHOWN:
        screen.line((f"  … and {len(rows) - 2 * SHOWN} more", QUIET))
    screen.line((f"  {count(len(unchanged), 'fact')} unchanged", QUIET))


def _print_reasons(reasons: tuple[str, ...], failed: int) -> None:
    """
    Print why ranges failed.

    Raises:
        CommandError: some ranges failed.
    """
    for reason in reasons[:SHOWN]:
        print(safe(reason), file=sys.stderr)
    if failed:
        raise CommandError(
            "not-rebuilt",
            f"{count(failed, 'range')} could not be rebuilt",
            hint="the reasons are above; the same command tries again",
        )


def backfill(
    options: StoreOptions,
    model: ModelOptions,
    layers: Annotated[
        str,
        typer.Option("--layers", metavar="LAYERS", help="Any of summaries, episodes, facts, meta; comma-separated."),
    ] = ",".join(BACKFILL_LAYERS),
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="NUMBER", help="Build at most this many ranges.")
    ] = None,
    delay: Annotated[
        int | None, typer.Option("--delay", min=0, metavar="MS", help="The pause between two model calls [500].")
    ] = None,
    dry_run: DryRun = False,
    user: OnlyUser = None,
    org: OrgOption = DEFAULT,
    bot: BotOption = DEFAULT,
) -> int:
    """
    Go through old conversations and build what is missing, or what only the built-in rules built.

    Ranges that a model has built are skipped, so you can stop at any time with Ctrl-C: the same
    command continues where it stopped.

    \b
    Examples:
      holdfast backfill --llm openai:gpt-5-mini --dry-run
      holdfast backfill --llm openai:gpt-5-mini --limit 100
      holdfast backfill --user ana --layers facts
    """
    wanted = [layer.strip() for layer in layers.split(",") if layer.strip()]
    if unknown := [layer for layer in wanted if layer not in BACKFILL_LAYERS]:
        hint = f"use {', '.join(BACKFILL_LAYERS)}"
        raise usage_error(f"there is no layer {unknown[0]!r}", hint)
    with (
        model.open(options) as llm,
        options.open(llm) as memory,
        ProgressBar("Backfilling", show=not options.as_json) as bar,
    ):

        def show(so_far: BackfillReport) -> None:
            bar.note = f"{so_far.created:,} built, {so_far.skipped:,} skipped, {so_far.errors:,} failed"

        with _interruptible():
            report = memory.backfill(
                user, org=org, bot=bot, layers=wanted, limit=limit, delay_ms=delay, dry_run=dry_run, progress=show
            )
    if options.as_json:
        print_json(to_json(report))
    else:
        _show_backfill(Screen(), report)
    _print_reasons(report.reasons, report.errors)
    return 0


def _show_backfill(screen: Screen, report: BackfillReport) -> None:
    built = "would be built" if report.dry_run else "built"
    screen.line(
        f"{count(report.processed, 'range')} checked: ",
        (f"{report.created:,} {built}", STRONG),
        f", {report.skipped:,} skipped, {report.errors:,} failed",
    )
    costs = cost(report.calls, report.tokens, report.cost)
    screen.line((f"  {'at most ' if report.dry_run else ''}{costs}", QUIET))
    if report.left:
        screen.line((f"  {count(report.left, 'range')} left for the next run", QUIET))


def consolidate(options: SubjectOptions, model: ModelOptions, dry_run: DryRun = False) -> int:
    """
    Merge sentences that say the same into one fact; their quotes are kept.

    The background does this, too, after every 20 new sentences. Numbers, negations and names must
    agree, so sentences with another meaning are never merged. With a model, sentences about the
    same thing are merged as well.

    \b
    Examples:
      holdfast consolidate --dry-run
      holdfast consolidate --user ana
      holdfast consolidate --llm openai:gpt-5-mini
    """
    with model.open(options) as llm, options.open(llm) as memory:
        report = options.owner(memory).consolidate(dry_run=dry_run)
    if options.as_json:
        print_json(to_json(report))
        return 0
    screen = Screen()
    for one in report.merged:
        screen.line((fact_value(one.fact), STRONG), ("   would be one fact" if dry_run else "   one fact now", GOOD))
        for source in one.sources:
            screen.line("  merged: ", fact_value(source), (f"   {source.id}", QUIET))
    if not report.merged:
        screen.line("nothing to merge: no two sentences say the same")
    elif not dry_run:
        screen.line((f"undo one: holdfast restore ID{options.repeated}", QUIET))
    for reason in report.refused:
        print(f"rejected: {safe(reason)}", file=sys.stderr)
    return 0


def prune(
    options: SubjectOptions,
    faded: Annotated[
        bool, typer.Option("--faded", help="Archive facts, too, that were not said or used for a long time.")
    ] = False,
) -> int:
    """
    Archive the weakest facts of a user who has more than 500.

    The background does this, too. Archived facts are not lost: `holdfast facts --archived` lists them,
    and `holdfast restore` or saying one again makes it active.

    \b
    Examples:
      holdfast prune
      holdfast prune --faded --user ana
    """
    with options.open() as memory:
        report = options.owner(memory).prune(faded=faded)
    if options.as_json:
        print_json(to_json(report))
        return 0
    screen = Screen()
    archived = report.archived[:ARCHIVED_SHOWN]
    screen.columns([[(fact_label(one), NAME), fact_value(one), (one.id, QUIET)] for one in archived], indent=2)
    screen.line(f"{count(len(report.archived), 'fact')} archived, {report.active:,} active")
    if report.archived:
        screen.line((f"restore one: holdfast restore ID{options.repeated}", QUIET))
    return 0
