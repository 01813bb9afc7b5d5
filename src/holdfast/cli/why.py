"""``holdfast why``: everything that one fact rests on."""

from __future__ import annotations

import shlex

from . import which
from .facts import earlier
from .frames import Quotes, fact_lines, frame, replaced_line
from .options import BOT, ORG, STORE, USER, Bot, Json, Org, Store, Subject, User, commands, reading, same_options
from .remember import Which
from .screen import NAME, QUIET, Piece, Screen, print_json
from .values import plain
from .words import address, count, minute

app = commands()


@app.command()
def why(
    fact: Which,
    store: Store = STORE,
    user: User = USER,
    org: Org = ORG,
    bot: Bot = BOT,
    subject: Subject = None,
    as_json: Json = False,
) -> int:
    """
    Show why something is believed: every quote, who read it, what it replaced, how to mend it.

    \b
    Examples:
      holdfast why dietary
      holdfast why "home lives_in" --user ana
      holdfast why shellfish --json
    """
    with reading(store) as memory:
        owner = memory.user(user, org=org, bot=bot, subject=subject)
        found = which.fact(owner, fact)
        past = earlier(found, owner.history(found.category)) if found.category else []
        if as_json:
            print_json({"fact": plain(found), "replaced": plain(past)})
            return 0
        screen, seen = Screen(), Quotes(memory, user=user, org=org, bot=bot)
        fact_lines(screen, found)
        for said in found.evidence:
            frame(screen, said, seen.message(said))
        for old in past:
            replaced_line(screen, found, old)
        screen.line()
        used = f"{count(found.uses, 'time')}, last {minute(found.last_used_at)}" if found.last_used_at else "not yet"
        screen.columns(
            [
                [("read by", NAME), found.source],
                [("learned", NAME), minute(found.recorded_at)],
                [("confidence", NAME), f"{found.confidence:.2f}"],
                [("lifetime", NAME), found.lifetime],
                [("used", NAME), used],
                [("id", NAME), found.id],
            ],
            indent=2,
        )
        screen.line()
        options = same_options(store, user, org=org, bot=bot, subject=subject)
        called = shlex.quote(address(found) if which.matching(owner.facts(), address(found)) == [found] else found.id)
        changed: list[list[Piece]] = [
            [f"  holdfast correct {called} VALUE{options}", ("something else held all along", QUIET)]
        ]
        screen.line(("if that is wrong:", QUIET))
        screen.columns(
            [
                *(changed if found.kind == "attribute" else []),
                [f"  holdfast never-true {called}{options}", ("it never held", QUIET)],
                [f"  holdfast forget {called}{options}", ("erase it, and the words it rests on", QUIET)],
            ]
        )
    return 0
