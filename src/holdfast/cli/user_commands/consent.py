"""The choices of a user: ``holdfast status``, ``pause``, ``resume``, ``opt-out``, ``opt-in``, ``never-remember``, ``allow``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ..lookup import suggest_users
from ..options import SubjectOptions, Yes
from ..output import CHANGED, GOOD, QUIET, STRONG, Screen, confirm, print_json
from ..render import count_held, print_receipt
from ..terminal import count, count_all, minute, to_json

if TYPE_CHECKING:
    from ...user import User

Topic = Annotated[
    str, typer.Argument(help="A category (health, home, …), or words that must all occur in what was said.")
]

_STATES = {
    "active": ("active", GOOD, "messages are stored and used"),
    "paused": ("paused", CHANGED, "stored data is kept but not used; nothing new is stored"),
    "opted-out": ("opted out", CHANGED, "nothing is stored, nothing is used"),
}
_UNDO = {"paused": "resume", "opted-out": "opt-in"}


def status(options: SubjectOptions) -> int:
    """
    Show whether the user's memory is in use, which topics are never remembered, and how much is stored.

    \b
    Examples:
      holdfast status
      holdfast status --user ana --json
    """
    with options.open() as memory:
        owner = options.owner(memory)
        _show_state(owner, options, amounts=True)
        if not options.as_json and not owner.conversations():
            print(f"nothing is stored about {options.user!r}; {suggest_users(memory, options)}", file=sys.stderr)
    return 0


def pause(options: SubjectOptions) -> int:
    """
    Keep what is stored, but use none of it and store nothing new, until `holdfast resume`.

    \b
    Examples:
      holdfast pause
      holdfast pause --user ana
    """
    with options.create() as memory:
        owner = options.owner(memory)
        owner.pause()
        _show_state(owner, options)
    return 0


def resume(options: SubjectOptions) -> int:
    """
    End a pause. It does not end an opt-out; `holdfast opt-in` does.

    \b
    Examples:
      holdfast resume
      holdfast resume --user ana
    """
    with options.open() as memory:
        owner = options.owner(memory)
        owner.resume()
        _show_state(owner, options)
    return 0


def opt_out(
    options: SubjectOptions,
    keep: Annotated[bool, typer.Option("--keep", help="Keep what is stored, unused, instead of erasing it.")] = False,
    yes: Yes = False,
) -> int:
    """
    Stop remembering, and erase what is stored.

    \b
    Examples:
      holdfast opt-out --user ana
      holdfast opt-out --keep
      holdfast opt-out --user ana --yes --json
    """
    with options.create() as memory:
        owner = options.owner(memory)
        stored = "" if keep else count_all(count_held(owner, options.subject))
        if stored:
            question = f"{options.user} opts out: {stored} will be erased. Continue?"
            confirm(question, yes=yes, as_json=options.as_json)
        receipt = owner.opt_out(erase=not keep)
        if options.as_json:
            print_json({"user": options.user, **to_json(owner.status()), "receipt": to_json(receipt)})
            return 0
        if stored:
            print_receipt(Screen(), receipt)
        _show_state(owner, options)
    return 0


def opt_in(options: SubjectOptions) -> int:
    """
    Start remembering again, after an opt-out or a pause.

    \b
    Examples:
      holdfast opt-in
      holdfast opt-in --user ana
    """
    with options.open() as memory:
        owner = options.owner(memory)
        owner.opt_in()
        _show_state(owner, options)
    return 0


def never_remember(options: SubjectOptions, topic: Topic) -> int:
    """
    Learn no more facts about a topic.

    Existing facts stay until they are forgotten; messages are stored as before.

    \b
    Examples:
      holdfast never-remember health
      holdfast never-remember "my ex husband"
    """
    with options.create() as memory:
        owner = options.owner(memory)
        owner.never_remember(topic)
        _show_state(owner, options)
    return 0


def allow(options: SubjectOptions, topic: Topic) -> int:
    """
    Learn facts about a topic again; undoes `holdfast never-remember`.

    \b
    Examples:
      holdfast allow health
    """
    with options.open() as memory:
        owner = options.owner(memory)
        owner.allow(topic)
        _show_state(owner, options)
    return 0


def _show_state(owner: User, options: SubjectOptions, *, amounts: bool = False) -> None:
    """Print the user's choices, and with *amounts* how much is stored."""
    chosen = owner.status()
    numbers = {"conversations": len(owner.conversations()), "facts": len(owner.facts())} if amounts else {}
    if options.as_json:
        print_json({"user": options.user, **to_json(chosen), **numbers})
        return
    screen = Screen()
    name, style, meaning = _STATES[chosen.state]
    since = f" since {minute(chosen.since)}" if chosen.since and chosen.state != "active" else ""
    screen.line(f"memory of {options.user}: ", (name, style), (f"{since}   {meaning}", QUIET))
    if chosen.never:
        screen.line("never remembered: ", (", ".join(chosen.never), STRONG))
    if amounts:
        screen.line(f"stored: {count(numbers['conversations'], 'conversation')}, {count(numbers['facts'], 'fact')}")
    if undo := _UNDO.get(chosen.state):
        screen.line((f"undo: holdfast {undo}{options.repeated}", QUIET))
