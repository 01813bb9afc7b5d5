"""``holdfast say``."""

from __future__ import annotations

from typing import Annotated

import typer

from ..reports import DigestReport
from . import models
from .changes import change_row
from .models import BaseUrl, Llm
from .options import (
    BOT,
    CONVERSATION,
    ORG,
    STORE,
    USER,
    Bot,
    Json,
    Org,
    Store,
    Subject,
    User,
    commands,
    same_options,
    writing,
)
from .plain import CommandError
from .screen import QUIET, Screen, print_json
from .values import plain
from .work import digest_all, raise_if_failed

app = commands()


@app.command()
def say(
    text: Annotated[str, typer.Argument(help="What the user says.")],
    reply: Annotated[
        str | None, typer.Option("--reply", metavar="TEXT", help="The assistant's answer, stored with it.")
    ] = None,
    conversation: Annotated[
        str, typer.Option("--conversation", "-c", metavar="NAME", help="In which conversation.")
    ] = CONVERSATION,
    digest: Annotated[bool, typer.Option(help="Do the background work that this causes, too.")] = True,
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
    Say something as the user, and see what it changes in what is believed.

    It is on disk when the command returns. The store is made on first use.

    \b
    Examples:
      holdfast say "I'm vegetarian, and I live in Lisbon."
      holdfast say "I eat fish now." --reply "Noted!"
      holdfast say "She eats at seven." --subject luna
    """
    if not text.strip():
        raise CommandError(
            "usage", "there is nothing in what is said", hint='write holdfast say "I live in Lisbon."', exit_code=2
        )
    with models.model(llm, base_url) as model, writing(store, model) as memory:
        chat = memory.conversation(conversation, user=user, org=org, bot=bot, subject=subject)
        receipt = chat.record(text, reply)
        if not as_json:
            screen = Screen()
            rows = [change_row(change) for change in receipt.changes]
            screen.columns(rows)
            if receipt.skipped:
                screen.line((f"not kept: memory is {receipt.skipped}", QUIET))
            elif not rows:
                screen.line(
                    ("nothing to learn from that", QUIET),
                    (f"; kept as message {receipt.seqs[0]} of {conversation}", QUIET),
                )
            elif any(change.op == "replaced" for change in receipt.changes):
                fact = next(change.fact for change in receipt.changes if change.op == "replaced" and change.fact)
                options = same_options(store, user, org=org, bot=bot)
                screen.line((f"its past: holdfast history {fact.category}{options}", QUIET))
        report = digest_all(memory, show=not as_json) if digest else DigestReport()
        if as_json:
            print_json({"conversation": conversation, **plain(receipt), "digest": plain(report)})
    return raise_if_failed(report)
