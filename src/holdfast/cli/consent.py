"""``holdfast status``, ``pause``, ``resume``, ``opt-out``, ``opt-in``, ``never-remember`` and ``allow``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from .confirm import agreed
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
    same_options,
    who_is_there,
    writing,
)
from .options import reading as existing
from .receipts import held, print_receipt
from .screen import CHANGED, GOOD, QUIET, STRONG, Screen, print_json
from .values import plain
from .words import count, minute

if TYPE_CHECKING:
    from ..user import User as Owner

app = commands()

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Topic = Annotated[str, typer.Argument(help="A category (health, home, …), or words that all occur in what is said.")]

_STATES = {
    "active": ("active", GOOD, "what is said is kept and used"),
    "paused": ("paused", CHANGED, "what is held is kept and not used; nothing is written"),
    "opted-out": ("opted out", CHANGED, "nothing is written, nothing is used"),
}
_WAY_BACK = {"paused": "resume", "opted-out": "opt-in"}


@app.command()
def status(
    store: Store = STORE,
    user: User = USER,
    org: Org = ORG,
    bot: Bot = BOT,
    subject: Subject = None,
    as_json: Json = False,
) -> int:
    """
    Show whether the user's memory is in use, what is never remembered, and how much is held.

    \b
    Examples:
      holdfast status
      holdfast status --user ana --json
    """
    with existing(store) as memory:
        owner = memory.user(user, org=org, bot=bot, subject=subject)
        _show(owner, user, as_json, same_options(store, user, org=org, bot=bot, subject=subject), whole=True)
        if not as_json and not owner.conversations():
            print(f"nothing is held about {user!r}; {who_is_there(memory, org, bot, user)}", file=sys.stderr)
    return 0


@app.command()
def pause(
    store: Store = STORE,
    user: User = USER,
    org: Org = ORG,
    bot: Bot = BOT,
    subject: Subject = None,
    as_json: Json = False,
) -> int:
    """
    Keep what is held, use none of it, and write nothing, until `holdfast resume`.

    \b
    Examples:
      holdfast pause
      holdfast pause --user ana
    """
    with writing(store) as memory:
        owner = memory.user(user, org=org, bot=bot, subject=subject)
        owner.pause()
        _show(owner, user, as_json, same_options(store, user, org=org, bot=bot, subject=subject))
    return 0


@app.command()
def resume(
    store: Store = STORE,
    user: User = USER,
    org: Org = ORG,
    bot: Bot = BOT,
    subject: Subject = None,
    as_json: Json = False,
) -> int:
    """
    End a pause. Somebody who opted out stays out; that ends with `holdfast opt-in`.

    \b
    Examples:
      holdfast resume
      holdfast resume --user ana
    """
    with existing(store) as memory:
        owner = memory.user(user, org=org, bot=bot, subject=subject)
        owner.resume()
        _show(owner, user, as_json, same_options(store, user, org=org, bot=bot, subject=subject))
    return 0


@app.command("opt-out")
def opt_out(
    keep: Annotated[bool, typer.Option("--keep", help="Keep what is held, unused, instead of erasing it.")] = False,
    yes: Yes = False,
    store: Store = STORE,
    user: User = USER,
    org: Org = ORG,
    bot: Bot = BOT,
    subject: Subject = None,
    as_json: Json = False,
) -> int:
    """
    Remember nothing from now on, and erase what is held.

    \b
    Examples:
      holdfast opt-out --user ana
      holdfast opt-out --keep
      holdfast opt-out --user ana --yes --json
    """
    with writing(store) as memory:
        owner = memory.user(user, org=org, bot=bot, subject=subject)
        there = "" if keep else held(owner, subject)
        if there:
            agreed(f"{user} opts out: {there} will be erased. Go on?", yes=yes, as_json=as_json)
        receipt = owner.opt_out(erase=not keep)
        if as_json:
            print_json({"user": user, **plain(owner.status()), "receipt": plain(receipt)})
            return 0
        if there:
            print_receipt(Screen(), receipt)
        _show(owner, user, as_json, same_options(store, user, org=org, bot=bot, subject=subject))
    return 0


@app.command("opt-in")
def opt_in(
    store: Store = STORE,
    user: User = USER,
    org: Org = ORG,
    bot: Bot = BOT,
    subject: Subject = None,
    as_json: Json = False,
) -> int:
    """
    Remember again, after an opt-out or a pause.

    \b
    Examples:
      holdfast opt-in
      holdfast opt-in --user ana
    """
    with existing(store) as memory:
        owner = memory.user(user, org=org, bot=bot, subject=subject)
        owner.opt_in()
        _show(owner, user, as_json, same_options(store, user, org=org, bot=bot, subject=subject))
    return 0


@app.command("never-remember")
def never_remember(
    topic: Topic,
    store: Store = STORE,
    user: User = USER,
    org: Org = ORG,
    bot: Bot = BOT,
    subject: Subject = None,
    as_json: Json = False,
) -> int:
    """
    Learn no more facts of a topic.

    What is believed already stays until it is forgotten; messages are kept as they are.

    \b
    Examples:
      holdfast never-remember health
      holdfast never-remember "my ex husband"
    """
    with writing(store) as memory:
        owner = memory.user(user, org=org, bot=bot, subject=subject)
        owner.never_remember(topic)
        _show(owner, user, as_json, same_options(store, user, org=org, bot=bot, subject=subject))
    return 0


@app.command()
def allow(
    topic: Topic,
    store: Store = STORE,
    user: User = USER,
    org: Org = ORG,
    bot: Bot = BOT,
    subject: Subject = None,
    as_json: Json = False,
) -> int:
    """
    Take back `holdfast never-remember`.

    \b
    Examples:
      holdfast allow health
    """
    with existing(store) as memory:
        owner = memory.user(user, org=org, bot=bot, subject=subject)
        owner.allow(topic)
        _show(owner, user, as_json, same_options(store, user, org=org, bot=bot, subject=subject))
    return 0


def _show(owner: Owner, user: str, as_json: bool, options: str, *, whole: bool = False) -> None:
    """The state in words, or as data; with *whole*, how much is held as well."""
    chosen = owner.status()
    conversations, facts = (len(owner.conversations()), len(owner.facts())) if whole else (0, 0)
    if as_json:
        amounts = {"conversations": conversations, "facts": facts} if whole else {}
        print_json({"user": user, **plain(chosen), **amounts})
        return
    screen = Screen()
    name, style, meaning = _STATES[chosen.state]
    since = f" since {minute(chosen.since)}" if chosen.since and chosen.state != "active" else ""
    screen.line(f"memory of {user}: ", (name, style), (f"{since}   {meaning}", QUIET))
    if chosen.never:
        screen.line("never remembered: ", (", ".join(chosen.never), STRONG))
    if whole:
        screen.line(f"held: {count(conversations, 'conversation')}, {count(facts, 'fact')}")
    if way := _WAY_BACK.get(chosen.state):
        screen.line((f"take it back: holdfast {way}{options}", QUIET))
