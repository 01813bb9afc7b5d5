"""``holdfast edit``: other words in place of a message."""

from __future__ import annotations

from typing import Annotated

import typer

from . import chats
from .changes import change_row
from .options import BOT, ORG, STORE, USER, Bot, Json, Org, Store, Subject, User, commands, reading
from .receipts import print_receipt
from .screen import Screen, print_json
from .values import plain

app = commands()


@app.command()
def edit(
    message: Annotated[int, typer.Argument(min=1, metavar="NUMBER", help="The message, by its number.")],
    text: Annotated[str, typer.Argument(help="What it says now.")],
    conversation: Annotated[
        str | None, typer.Option("--conversation", "-c", metavar="NAME", help="May be left out when there is one.")
    ] = None,
    store: Store = STORE,
    user: User = USER,
    org: Org = ORG,
    bot: Bot = BOT,
    subject: Subject = None,
    as_json: Json = False,
) -> int:
    """
    Put other words in place of a message; what was learned from the old ones goes.

    The new words are read at once, and summaries over the message are told anew. The old words
    are erased: nothing holds them any more. `holdfast messages` shows the numbers.

    \b
    Examples:
      holdfast edit 3 "I'm allergic to peanuts, not to shellfish."
      holdfast edit 12 "My budget is $5000." -c web-42 --user ana
    """
    with reading(store) as memory:
        chat = chats.one(memory, conversation, user=user, org=org, bot=bot, subject=subject)
        receipt = chat.edit(message, text)
        if as_json:
            print_json(plain(receipt))
            return 0
        screen = Screen()
        screen.columns([change_row(change) for change in receipt.changes])
        print_receipt(screen, receipt)
    return 0
