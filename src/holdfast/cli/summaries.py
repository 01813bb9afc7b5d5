"""``holdfast summaries``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ..types import Summary
from . import chats
from .options import BOT, ORG, STORE, USER, Bot, Json, Org, Store, Subject, User, commands, reading
from .screen import NAME, QUIET, Screen, print_json
from .values import plain
from .words import count, days

if TYPE_CHECKING:
    from ..conversation import Conversation

app = commands()


@app.command()
def summaries(
    level: Annotated[
        int | None, typer.Option("--level", min=1, help="Only this level: 1 covers messages, 2 covers level 1, …")
    ] = None,
    conversation: Annotated[
        str | None, typer.Option("--conversation", "-c", metavar="NAME", help="Only this conversation.")
    ] = None,
    store: Store = STORE,
    user: User = USER,
    org: Org = ORG,
    bot: Bot = BOT,
    subject: Subject = None,
    as_json: Json = False,
) -> int:
    """
    Show the summaries of the user's conversations: the highest levels first, what they cover below.

    \b
    Examples:
      holdfast summaries
      holdfast summaries --conversation japan --level 2
    """
    with reading(store) as memory:
        if conversation is not None:
            found = [chats.one(memory, conversation, user=user, org=org, bot=bot, subject=subject)]
        else:
            known = chats.names(memory, user=user, org=org, bot=bot, subject=subject)
            found = [memory.conversation(name, user=user, org=org, bot=bot, subject=subject) for name in known]
        if as_json:
            print_json([plain(summary) for chat in found for summary in chat.summaries(level)])
            return 0
        screen = Screen()
        for chat in found:
            show_summaries(screen, chat, level)
    return 0


def show_summaries(screen: Screen, chat: Conversation, level: int | None = None) -> None:
    """The tree of one conversation's summaries, and what is not summarised yet."""
    found = chat.summaries(level)
    covered = max((summary.end_seq for summary in found), default=0)
    open_messages = sum(1 for _ in chats.messages(chat, covered + 1))
    screen.heading(chat.id, _counts(found, covered))
    below: dict[str, list[Summary]] = {}
    for summary in found:
        below.setdefault(summary.parent or "", []).append(summary)
    shown = {summary.id for summary in found}
    roots = [summary for summary in found if summary.parent not in shown]
    for root in roots:
        _branch(screen, chat, root, below, 2)
    if level is None and open_messages:
        first = covered + 1
        screen.line(
            (
                f"  {count(open_messages, 'message')} from {first} on: not summarised yet, shown to the model as they are",
                QUIET,
            )
        )


def show_summary(screen: Screen, chat: Conversation, summary: Summary, indent: int) -> None:
    """One summary: its range, its text, and what was picked out of it."""
    pad = " " * indent
    size = f"messages {summary.start_seq}–{summary.end_seq}, {count(summary.exchanges, 'exchange')}"
    stale = ", stale" if summary.stale else ""
    note = f"   {size}, {_when(chat, summary)}, by {summary.source}{stale}"
    screen.line(pad, (f"L{summary.level} #{summary.block + 1}", NAME), (note, QUIET))
    screen.paragraph(summary.text, indent=indent + 2)
    for title, items in (("themes", summary.themes), ("concerns", summary.concerns), ("actions", summary.actions)):
        if items:
            screen.paragraph(f"{title}: {'; '.join(items)}", indent=indent + 2, style=QUIET)


def _branch(screen: Screen, chat: Conversation, summary: Summary, below: dict[str, list[Summary]], indent: int) -> None:
    show_summary(screen, chat, summary, indent)
    for child in below.get(summary.id, []):
        _branch(screen, chat, child, below, indent + 2)


def _when(chat: Conversation, summary: Summary) -> str:
    first = chat.load(start_seq=summary.start_seq, limit=1)
    last = chat.load(start_seq=summary.end_seq, limit=1)
    return days(first[0].at if first else None, last[0].at if last else None)


def _counts(found: list[Summary], covered: int) -> str:
    if not found:
        return "no summaries yet"
    levels = sorted({summary.level for summary in found})
    parts = [f"{sum(s.level == n for s in found)} of level {n}" for n in levels]
    return f"{', '.join(parts)}; messages 1–{covered} are covered"
