"""``holdfast facts`` and ``holdfast history``."""

from __future__ import annotations

import difflib
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ..types import Fact, Rejected
from .frames import Quotes, fact_lines, frame, replaced_line
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
    moment,
    reading,
    same_options,
    who_is_there,
)
from .plain import CommandError
from .screen import BAD, CHANGED, GOOD, NAME, QUIET, STRONG, Piece, Screen, print_json
from .values import plain
from .words import address, count, day, held, label, value

if TYPE_CHECKING:
    from ..memory import Memory

app = commands()

PAST_SHOWN = 5


@app.command()
def facts(
    category: Annotated[str | None, typer.Argument(help="Only this category: dietary, home, …")] = None,
    as_of: Annotated[
        str | None,
        typer.Option("--as-of", metavar="TIME", help="What held then: 2026-03-14 (its end) or 2026-03-14T19:02."),
    ] = None,
    quotes: Annotated[bool, typer.Option(help="Show the words that each fact rests on.")] = True,
    ids: Annotated[bool, typer.Option("--ids", help="Show the id of each fact.")] = False,
    rejected: Annotated[bool, typer.Option("--rejected", help="What was read but not believed, and why.")] = False,
    archived: Annotated[bool, typer.Option("--archived", help="What was put away because there was too much.")] = False,
    store: Store = STORE,
    user: User = USER,
    org: Org = ORG,
    bot: Bot = BOT,
    subject: Subject = None,
    as_json: Json = False,
) -> int:
    """
    List what is believed about the user, each fact with the quote that it rests on.

    \b
    Examples:
      holdfast facts
      holdfast facts dietary
      holdfast facts --as-of 2026-03-14 --no-quotes
      holdfast facts --rejected
    """
    at = moment(as_of, "--as-of") if as_of else None
    with reading(store) as memory:
        owner = memory.user(user, org=org, bot=bot, subject=subject)
        found = owner.facts(category, as_of=at, archived=archived) if not rejected else []
        refused = owner.rejected(limit=1000) if rejected else []
        if as_json:
            print_json(plain(refused if rejected else found))
            return 0
        screen = Screen()
        if archived and not found:
            screen.line("nothing was put away")
        elif not found and not rejected:
            _say_none(memory, org=org, bot=bot, user=user, category=category, subject=subject)
        seen = Quotes(memory, user=user, org=org, bot=bot)
        if rejected:
            _show_rejected(screen, refused, seen)
            return 0
        for fact in found:
            past = earlier(fact, owner.history(fact.category)) if quotes and fact.category else []
            show_fact(screen, fact, past, seen if quotes else None, with_id=ids)
        if found:
            screen.line()
            screen.line((_footer(found, store, user, org, bot), QUIET))
    return 0


@app.command()
def history(
    category: Annotated[str, typer.Argument(help="A category, as `holdfast facts` names it: dietary, home, …")],
    key: Annotated[str | None, typer.Argument(help="One key of it: lives_in, …")] = None,
    ids: Annotated[bool, typer.Option("--ids", help="Show the id of each value.")] = False,
    store: Store = STORE,
    user: User = USER,
    org: Org = ORG,
    bot: Bot = BOT,
    subject: Subject = None,
    as_json: Json = False,
) -> int:
    """
    Show every value that a fact had, oldest first, and when each held.

    \b
    Examples:
      holdfast history dietary
      holdfast history home lives_in
    """
    with reading(store) as memory:
        owner = memory.user(user, org=org, bot=bot, subject=subject)
        found = owner.history(category, key)
        if not found and not as_json:
            known = sorted({fact.category for fact in owner.facts() if fact.category})
            if not known:
                _say_none(memory, org=org, bot=bot, user=user, category=None, subject=subject)
                return 0
            raise CommandError(
                "no-history",
                f"nothing was ever believed under {f'{category} {key}' if key else category!r}",
                hint=_nearest(category, known),
            )
    if as_json:
        print_json(plain(found))
        return 0
    _timeline(Screen(), found, with_ids=ids)
    return 0


def earlier(fact: Fact, ever: list[Fact]) -> list[Fact]:
    """What *fact* replaced, what that had replaced, and so on, the latest first."""
    found = [old for old in ever if old.superseded_by == fact.id]
    for newer in found:  # grows while it is walked
        found += [old for old in ever if old.superseded_by == newer.id and old not in found]
    return sorted(found, key=lambda old: old.valid_from, reverse=True)


def show_fact(screen: Screen, fact: Fact, past: list[Fact], seen: Quotes | None, *, with_id: bool = False) -> None:
    """One fact; with *seen*, the latest words that it rests on, and what it replaced."""
    if seen is not None:
        screen.line()
    fact_lines(screen, fact, _note(fact, past))
    if with_id:
        screen.line((f"    {fact.id}", QUIET))
    if seen is None:
        return
    if fact.evidence:
        said = fact.evidence[-1]
        frame(screen, said, seen.message(said))
    for old in past[:PAST_SHOWN]:
        replaced_line(screen, fact, old)
    if len(past) > PAST_SHOWN:
        screen.line((f"    and {count(len(past) - PAST_SHOWN, 'value')} before", QUIET))


def _note(fact: Fact, past: list[Fact]) -> Piece:
    if not fact.live:
        return (held(fact), QUIET)
    if any(old.ended_because == "replaced" for old in past):
        return (f"replaced on {day(fact.valid_from)}", CHANGED)
    if fact.confirmations:
        return (f"since {day(fact.valid_from)}, said {fact.confirmations + 1} times", QUIET)
    return (f"since {day(fact.valid_from)}", QUIET)


def _timeline(screen: Screen, found: list[Fact], *, with_ids: bool) -> None:
    titles: dict[tuple[str, str], list[Fact]] = {}
    for fact in found:
        titles.setdefault((fact.subject, address(fact)), []).append(fact)
    for facts in titles.values():
        screen.line()
        screen.line((label(facts[-1]), NAME), (f"   {address(facts[-1])}", QUIET))
        rows: list[list[Piece]] = []
        for fact in facts:
            said = fact.evidence[-1] if fact.evidence else None
            quote = f'message {said.seq} of {said.conversation}: "{said.quote}"' if said else ""
            mark = ("●", GOOD) if fact.live else ("○", QUIET)
            why = f"{fact.ended_because.replace('_', ' ')}; " if fact.ended_because not in ("", "replaced") else ""
            rows.append(
                [
                    mark,
                    *([(fact.id, QUIET)] if with_ids else []),
                    held(fact),
                    (value(fact), STRONG if fact.live else CHANGED),
                    (why + quote, QUIET),
                ]
            )
        screen.columns(rows, indent=2)


def _show_rejected(screen: Screen, found: list[Rejected], seen: Quotes) -> None:
    if not found:
        screen.line("nothing was read that is not believed")
    for item in found:
        claim = item.candidate
        what = " ".join(part for part in (claim.category, claim.key) if part) or claim.kind
        screen.line()
        screen.line((what, NAME), ": ", claim.value or claim.text, (f"   not believed: {item.reason}", BAD))
        said, message = seen.claimed(item)
        frame(screen, said, message)


def _footer(found: list[Fact], store: str, user: str, org: str, bot: str) -> str:
    options = same_options(store, user, org=org, bot=bot)
    lines = f"{count(len(found), 'fact')} about {user}."
    shown = next((fact for fact in found if fact.category), None)
    return f"{lines}   its past: holdfast history {address(shown)}{options}" if shown else lines


def _say_none(memory: Memory, *, org: str, bot: str, user: str, category: str | None, subject: str | None) -> None:
    owner = memory.user(user, org=org, bot=bot, subject=subject)
    known = sorted({fact.category for fact in owner.facts() if fact.category})
    if category and known:
        print(f"nothing is believed under {category!r}; {_nearest(category, known)}", file=sys.stderr)
    elif owner.conversations():
        print(f"nothing is believed about {user!r} yet; `holdfast digest` reads what is waiting", file=sys.stderr)
    else:
        print(f"nothing is held about {user!r}; {who_is_there(memory, org, bot, user)}", file=sys.stderr)


def _nearest(category: str, known: list[str]) -> str:
    near = difflib.get_close_matches(category, known, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"there is {', '.join(known)}" if known else ""
