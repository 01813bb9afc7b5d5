"""``holdfast remember``, ``correct``, ``never-true`` and ``restore``: facts written and mended by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ..types import FactChange
from . import which
from .changes import change_row
from .options import (
    BOT,
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
    reading,
    same_options,
    writing,
)
from .plain import CommandError
from .screen import GOOD, NAME, QUIET, STRONG, Screen, print_json
from .values import plain
from .words import label, value

if TYPE_CHECKING:
    from ..user import User as Owner

app = commands()

Which = Annotated[str, typer.Argument(metavar="FACT", help=which.FACT_HELP)]


@app.command()
def remember(
    text: Annotated[str | None, typer.Argument(help="A sentence, as the user would say it.")] = None,
    category: Annotated[
        str | None, typer.Option("--category", metavar="NAME", help="Instead of a sentence: the category,")
    ] = None,
    key: Annotated[str | None, typer.Option("--key", metavar="NAME", help="its key,")] = None,
    value: Annotated[str | None, typer.Option("--value", metavar="TEXT", help="and what holds there.")] = None,
    store: Store = STORE,
    user: User = USER,
    org: Org = ORG,
    bot: Bot = BOT,
    subject: Subject = None,
    as_json: Json = False,
) -> int:
    """
    Add a fact by hand, or replace the one at its address, as if it was said now.

    A sentence is read like a message; when nothing can be read in it, it is kept as it is.

    \b
    Examples:
      holdfast remember "I'm allergic to peanuts."
      holdfast remember --category home --key lives_in --value Braga
    """
    if text is None and (category is None or key is None or value is None):
        raise CommandError(
            "usage",
            "remember needs a sentence, or --category, --key and --value",
            hint='write holdfast remember "I eat fish."',
            exit_code=2,
        )
    with writing(store) as memory:
        owner = memory.user(user, org=org, bot=bot, subject=subject)
        change = owner.remember(text, category=category, key=key, value=value)
        _tell(change, owner, as_json, same_options(store, user, org=org, bot=bot, subject=subject))
    return 0


@app.command()
def correct(
    fact: Which,
    to: Annotated[str, typer.Argument(metavar="VALUE", help="What holds instead.")],
    store: Store = STORE,
    user: User = USER,
    org: Org = ORG,
    bot: Bot = BOT,
    subject: Subject = None,
    as_json: Json = False,
) -> int:
    """
    Put right what was wrong from the start; history says that the new value held all along.

    When something has changed instead, say it in the chat, or use `holdfast remember`.

    \b
    Examples:
      holdfast correct home Porto
      holdfast correct "home lives_in" Porto
    """
    with reading(store) as memory:
        owner = memory.user(user, org=org, bot=bot, subject=subject)
        change = owner.correct(which.fact(owner, fact).id, value=to)
        options = same_options(store, user, org=org, bot=bot, subject=subject)
        _tell(change, owner, as_json, options)
        if not as_json and change.previous is not None:
            Screen().line((f"undo: holdfast restore {change.previous.id}{options}", QUIET))
    return 0


@app.command("never-true")
def never_true(
    fact: Which,
    store: Store = STORE,
    user: User = USER,
    org: Org = ORG,
    bot: Bot = BOT,
    subject: Subject = None,
    as_json: Json = False,
) -> int:
    """
    Stop believing what never held; what it had replaced holds again.

    It is not learned again from the same words. `holdfast forget` erases the words as well.

    \b
    Examples:
      holdfast never-true shellfish
      holdfast never-true "home lives_in"
    """
    with reading(store) as memory:
        owner = memory.user(user, org=org, bot=bot, subject=subject)
        change = owner.never_true(which.fact(owner, fact).id)
        options = same_options(store, user, org=org, bot=bot, subject=subject)
        _tell(change, owner, as_json, options)
        if not as_json and change.fact is not None:
            Screen().line((f"undo: holdfast restore {change.fact.id}{options}", QUIET))
    return 0


@app.command()
def restore(
    fact: Annotated[
        str, typer.Argument(metavar="FACT", help="The id of a past fact (holdfast history --ids), or an address.")
    ],
    store: Store = STORE,
    user: User = USER,
    org: Org = ORG,
    bot: Bot = BOT,
    subject: Subject = None,
    as_json: Json = False,
) -> int:
    """
    Believe a past fact again: after a correction that was wrong, or a never-true that was not.

    Of an address, the value that ended last comes back. What was forgotten is gone for good.

    \b
    Examples:
      holdfast restore home
      holdfast restore fact_0123456789abcdefghjk
    """
    with reading(store) as memory:
        owner = memory.user(user, org=org, bot=bot, subject=subject)
        change = owner.restore(which.past(owner, fact))
        _tell(change, owner, as_json, same_options(store, user, org=org, bot=bot, subject=subject))
    return 0


def _tell(change: FactChange, user: Owner, as_json: bool, options: str) -> None:
    """
    What changed, and what holds at its address where that is something else.

    Raises:
        CommandError: nothing changed; the message says why.
    """
    if change.op == "rejected":
        state = user.status().state
        hint = {"paused": f"`holdfast resume{options}` first", "opted-out": f"`holdfast opt-in{options}` first"}
        raise CommandError("refused", change.reason, hint=hint.get(state, "nothing was changed"))
    if as_json:
        print_json(plain(change))
        return
    screen = Screen()
    screen.columns([change_row(change)])
    if change.op == "retracted" and change.fact is not None:
        gone = change.fact
        for one in user.facts(gone.category):
            if one.subject == gone.subject and one.key == gone.key:
                screen.line((f"{label(one)}  ", NAME), (value(one), STRONG), ("  holds again", GOOD))
