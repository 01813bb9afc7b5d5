"""``holdfast rebuild``: one layer of a conversation made again."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ..types import Summary
from . import chats, models
from .models import BaseUrl, Llm
from .options import BOT, ORG, STORE, USER, Bot, Dry, Json, Org, Store, Subject, User, commands, reading, same_options
from .plain import CommandError, safe
from .progress import Progress
from .screen import CHANGED, GOOD, NAME, QUIET, STRONG, Piece, Screen, print_json
from .summaries import show_summary
from .values import plain
from .words import count, label, minute, value

if TYPE_CHECKING:
    from ..conversation import Conversation
    from ..reports import RebuildReport
    from ..types import Fact

app = commands()

LAYERS = ("summaries", "episodes", "meta", "facts", "vectors")
SHOWN = 10
LAST = "last"

Layer = Annotated[
    str | None,
    typer.Argument(metavar="LAYER", help="summaries, episodes, meta (summaries of summaries), facts or vectors."),
]
First = Annotated[int | None, typer.Option("--from", min=1, metavar="NUMBER", help="The first message of the range.")]
Last = Annotated[int | None, typer.Option("--to", min=1, metavar="NUMBER", help="The last message of the range.")]
Undo = Annotated[
    str | None, typer.Option("--undo", metavar="ID", help="Put back what stood before a rebuild, or before the last.")
]


@app.command()
def rebuild(
    layer: Layer = None,
    first: First = None,
    last: Last = None,
    dry_run: Dry = False,
    undo: Undo = None,
    list_: Annotated[bool, typer.Option("--list", help="What was made again so far.")] = False,
    conversation: Annotated[
        str | None, typer.Option("--conversation", "-c", metavar="NAME", help="May be left out when there is one.")
    ] = None,
    llm: Llm = None,
    base_url: BaseUrl = None,
    store: Store = STORE,
    user: User = USER,
    org: Org = ORG,
    bot: Bot = BOT,
    subject: Subject = None,
    as_json: Json = False,
) -> int:
    """
    Make one layer of a conversation again: with a model, a better one, or other prompts.

    Only what holds the range is made again, and only that layer. The old version is kept, and
    --undo puts it back; --undo last takes the newest.

    \b
    Examples:
      holdfast rebuild summaries --from 11 --to 30 --dry-run
      holdfast rebuild summaries --llm openai:gpt-5-mini
      holdfast rebuild facts -c web-42 --user ana
      holdfast rebuild --list
      holdfast rebuild --undo last
    """
    _check(layer, first, last, undo, list_)
    with models.model(llm, base_url) as model, reading(store, model) as memory:
        chat = chats.one(memory, conversation, user=user, org=org, bot=bot, subject=subject)
        options = f" -c {chat.id}" + same_options(store, user, org=org, bot=bot, subject=subject)
        if list_:
            _list(chat, as_json, options)
            return 0
        if undo is not None:
            report = chat.restore(_newest(chat) if undo == LAST else undo)
        else:
            with Progress("Making again", unit="ranges", show=not as_json) as bar:

                def show(done: int, total: int) -> None:
                    bar.done, bar.total = done, total

                try:
                    report = chat.rebuild(layer or "", start_seq=first, end_seq=last, dry_run=dry_run, progress=show)
                except KeyboardInterrupt:
                    raise _stopped() from None
        if as_json:
            print_json(plain(report))
        else:
            _tell(Screen(), chat, report, options, undone=undo is not None)
    return _result(report)


def _check(layer: str | None, first: int | None, last: int | None, undo: str | None, list_: bool) -> None:
    if [layer is not None, undo is not None, list_].count(True) != 1:
        raise CommandError(
            "usage", "name a LAYER, or --undo ID, or --list", hint=f"layers are {', '.join(LAYERS)}", exit_code=2
        )
    if layer is not None and layer not in LAYERS:
        raise CommandError("usage", f"there is no layer {layer!r}", hint=f"use {', '.join(LAYERS)}", exit_code=2)
    if first is not None and last is not None and last < first:
        raise CommandError(
            "usage", f"--to {last} lies before --from {first}", hint="name the first message first", exit_code=2
        )


def _stopped() -> CommandError:
    return CommandError(
        "interrupted",
        "stopped; every range is as it was, or made again whole",
        hint="`holdfast rebuild --list` shows what was made",
        exit_code=130,
    )


def _newest(chat: Conversation) -> str:
    made = chat.rebuilds()
    if not made:
        raise CommandError("no-rebuild", f"nothing of {chat.id} was made again", hint="there is nothing to put back")
    return made[-1].id


def _list(chat: Conversation, as_json: bool, options: str) -> None:
    made = chat.rebuilds()
    if as_json:
        print_json(plain(made))
        return
    screen = Screen()
    if not made:
        screen.line(f"nothing of {chat.id} was made again yet")
        return
    screen.columns(
        [
            [
                (one.id, STRONG),
                (one.layer, NAME),
                f"messages {one.start_seq}–{one.end_seq}",
                minute(one.at),
                (f"by {one.source}; {one.put_aside} put aside, {one.brought} brought", QUIET),
            ]
            for one in made
        ]
    )
    screen.line((f"put one back: holdfast rebuild --undo ID{options}", QUIET))


def _tell(screen: Screen, chat: Conversation, report: RebuildReport, options: str, *, undone: bool) -> None:
    if not report.ranges:
        screen.line(f"{report.layer}: nothing there to make again")
        return
    where = f"{report.layer} of messages {report.start_seq}–{report.end_seq}"
    if report.dry_run:
        screen.line((where, NAME), f": {count(report.ranges, 'range')} would be made again, nothing was changed")
        screen.line((f"  at most {cost_words(report.calls, report.tokens, report.cost)}", QUIET))
        return
    done = "put back" if undone else f"{count(report.ranges, 'range')} made again"
    screen.line(
        (where, NAME), ": ", (done, GOOD), (f"   {cost_words(report.calls, report.tokens, report.cost)}", QUIET)
    )
    told = [one for one in report.after if isinstance(one, Summary)]
    for summary in told[:SHOWN]:
        show_summary(screen, chat, summary, 2)
    if len(told) > SHOWN:
        screen.line((f"  … and {len(told) - SHOWN} more: holdfast summaries{options}", QUIET))
    if report.layer in ("facts", "episodes"):
        _facts(screen, [one for one in report.before if not isinstance(one, Summary)], report)
    if report.id:
        screen.line((f"undo: holdfast rebuild --undo {report.id}{options}", QUIET))


def _facts(screen: Screen, before: list[Fact], report: RebuildReport) -> None:
    after = [one for one in report.after if not isinstance(one, Summary)]
    stayed = {one.id for one in before} & {one.id for one in after}
    rows: list[list[Piece]] = [
        [(label(one), NAME), (value(one), STRONG), words]
        for facts, words in ((after, ("new", GOOD)), (before, ("not found again", CHANGED)))
        for one in facts
        if one.id not in stayed
    ]
    screen.columns(rows[: 2 * SHOWN], indent=2)
    if len(rows) > 2 * SHOWN:
        screen.line((f"  … and {len(rows) - 2 * SHOWN} more", QUIET))
    screen.line((f"  {count(len(stayed), 'fact')} as before", QUIET))


def cost_words(calls: int, tokens: int, cost: float | None) -> str:
    """``3 calls of the model, 4,100 tokens, $0.0021``."""
    if not calls:
        return "no call of a model"
    money = "price not known" if cost is None else f"${cost:,.4f}"
    return f"{count(calls, 'call')} of the model, {count(tokens, 'token')}, {money}"


def _result(report: RebuildReport) -> int:
    for error in report.errors[:SHOWN]:
        print(safe(error), file=sys.stderr)
    if report.errors:
        raise CommandError(
            "not-rebuilt",
            f"{count(len(report.errors), 'range')} stayed as before",
            hint="the reasons stand above; the same command tries again",
        )
    return 0
