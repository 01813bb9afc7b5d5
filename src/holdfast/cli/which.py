"""Which fact is meant: by its id, its address, or what it says."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..types import Fact
from .plain import CommandError, one_line
from .words import address, label, value

if TYPE_CHECKING:
    from ..user import User

FACT_HELP = "Its address (home, or 'home lives_in'), its value, or its id (holdfast facts --ids)."
SHOWN = 6
_LEAST_ID_CHARS = 8


def fact(user: User, given: str) -> Fact:
    """
    The one live fact that *given* means.

    Raises:
        CommandError: none is meant, or several could be.
    """
    return _only(user.facts(), given, "nothing is believed that is called", "`holdfast facts --ids` lists them")


def past(user: User, given: str) -> str:
    """
    The id of the fact that *given* means and that is not believed any more; the latest of its address.

    Raises:
        CommandError: there is none.
    """
    if given.startswith("fact_"):
        return given
    category, _, key = given.replace("/", " ").partition(" ")
    ended = [old for old in user.history(category, key.strip() or None) if not old.live]
    if not ended:
        raise CommandError(
            "no-fact",
            f"nothing that is past has the address {given!r}",
            hint="`holdfast history CATEGORY` shows what held before; it takes --ids",
        )
    return max(ended, key=lambda old: (old.valid_to or old.valid_from, old.recorded_at)).id


def matching(facts: list[Fact], given: str) -> list[Fact]:
    """Those that *given* means, in the strictest sense in which it means any."""
    words = " ".join(given.replace("/", " ").casefold().split())
    senses: tuple[Callable[[Fact], bool], ...] = (
        lambda one: one.id == given,
        lambda one: words in (f"{one.category} {one.key}", address(one).casefold()),
        lambda one: words == one.category,
        lambda one: one_line(given).casefold() in (value(one).casefold(), one_line(one.text).casefold()),
        lambda one: words == one.key.replace("_", " ") or words == one.key,
        lambda one: len(given) >= _LEAST_ID_CHARS and one.id.startswith(given),
    )
    return next((found for sense in senses if (found := [one for one in facts if sense(one)])), [])


def _only(facts: list[Fact], given: str, none: str, hint: str) -> Fact:
    found = matching(facts, given)
    if len(found) == 1:
        return found[0]
    if not found:
        names = [name for one in facts for name in (one.category, value(one)) if name]
        near = difflib.get_close_matches(given, names, n=1)
        raise CommandError("no-fact", f"{none} {given!r}", hint=f"did you mean {near[0]!r}?" if near else hint)
    listed = "; ".join(f"{one.id} ({label(one)}: {value(one)})" for one in found[:SHOWN])
    more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    raise CommandError(
        "which-fact", f"{given!r} means {len(found)} facts", hint=f"name one by its id: {listed}{more}", exit_code=2
    )
