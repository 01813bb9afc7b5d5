"""``holdfast list`` and ``holdfast messages``: who is in a store, and what was said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import chats
from .options import BOT, ORG, STORE, USER, Bot, Json, Org, Store, Subject, User, commands, reading
from .screen import NAME, QUIET, STRONG, Piece, Screen, print_json
from .values import plain
from .words import count, day

if TYPE_CHECKING:
    from ..memory import Memory
    from ..types import Message

app = commands()

PAGE = 200


@app.command("list")
def list_(
    user: Annotated[
        str | None, typer.Option("--user", "-u", metavar="NAME", help="The conversations of this user.")
    ] = None,
    store: Store = STORE,
    org: Org = ORG,
    bot: Bot = BOT,
    as_json: Json = False,
) -> int:
    """
    List who is in the store; with --user, that user's conversations.

    \b
    Examples:
      holdfast list
      holdfast list --user ana
      holdfast list --json
    """
    with reading(store) as memory:
        rows = _users(memory) if user is None else _conversations(memory, user, org, bot)
    if as_json:
        print_json(rows)
        return 0
    screen = Screen()
    if not rows:
        screen.line("nobody is in this store" if user is None else f"{user} has no conversation here")
    screen.columns([_row(row) for row in rows])
    return 0


@app.command()
def messages(
    conversation: Annotated[
        str | None, typer.Option("--conversation", "-c", metavar="NAME", help="May be left out when there is one.")
    ] = None,
    first: Annotated[int, typer.Option("--from", min=1, metavar="NUMBER", help="Begin with this message.")] = 1,
    last: Annotated[
        int | None, typer.Option("--last", min=1, metavar="COUNT", help="Only the last so many messages.")
    ] = None,
    store: Store = STORE,
    user: User = USER,
    org: Org = ORG,
    bot: Bot = BOT,
    subject: Subject = None,
    as_json: Json = False,
) -> int:
    """
    Show a conversation as it was said, with the numbers that other commands take.

    \b
    Examples:
      holdfast messages
      holdfast messages -c web-42 --user ana --last 20
      holdfast messages --from 300 --json
    """
    with reading(store) as memory:
        chat = chats.one(memory, conversation, user=user, org=org, bot=bot, subject=subject)
        if last is not None:
            newest = chat.load(last=1)
            first = max(first, newest[-1].seq - last + 1 if newest else 1)
        if as_json:
            print_json(plain(list(chats.messages(chat, first))))
            return 0
        screen, shown = Screen(), ""
        for message in chats.messages(chat, first):
            shown = _show(screen, message, shown)
    return 0


def _show(screen: Screen, message: Message, shown: str) -> str:
    """One message; the day above it when that is another than *shown*. Returns the day."""
    today = day(message.at)
    if today != shown:
        screen.line((today, QUIET))
    speaker = message.name or message.role
    screen.line((f"{message.seq:>5}", QUIET), "  ", (speaker, NAME))
    screen.paragraph(message.content or "(empty)", indent=7)
    return today


def _users(memory: Memory) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    after: tuple[str, str, str] | None = None
    while page := memory.admin.users(limit=PAGE, after=after):
        for org, user, bot in page:
            owner = memory.user(user, org=org, bot=bot)
            held = {"conversations": len(owner.conversations()), "facts": len(owner.facts())}
            found.append({"user": user, "org": org, "bot": bot, **held, "state": owner.status().state})
        after = page[-1]
    return found


def _conversations(memory: Memory, user: str, org: str, bot: str) -> list[dict[str, Any]]:
    data: dict[str, Any] = memory.user(user, org=org, bot=bot).export()
    return [
        {
            "conversation": chat["conversation"],
            "subject": chat["subject"],
            "messages": len(chat["messages"]),
            "summaries": len(chat["summaries"]),
        }
        for chat in data["conversations"]
    ]


def _row(row: dict[str, Any]) -> list[Piece]:
    if "user" in row:
        where = "".join(f"{name} {row[name]}   " for name in ("org", "bot") if row[name] != "default")
        state = "" if row["state"] == "active" else row["state"].replace("-", " ")
        amounts = (count(row["conversations"], "conversation"), count(row["facts"], "fact"))
        return [(row["user"], STRONG), *amounts, (f"{where}{state}", QUIET)]
    about = "" if row["subject"] == "self" else f"about {row['subject']}"
    summaries = count(row["summaries"], "summary", "summaries")
    return [(row["conversation"], STRONG), count(row["messages"], "message"), summaries, (about, QUIET)]
