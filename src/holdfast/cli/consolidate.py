"""``holdfast consolidate`` and ``holdfast prune``: many facts become few."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from . import models
from .models import BaseUrl, Llm
from .options import BOT, ORG, STORE, USER, Bot, Dry, Json, Org, Store, Subject, User, commands, reading, same_options
from .plain import safe
from .screen import GOOD, NAME, QUIET, STRONG, Screen, print_json
from .values import plain
from .words import count, label, value

app = commands()


@app.command()
def consolidate(
    dry_run: Dry = False,
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
    Merge sentences that say the same into one memory; their quotes are kept.

    The background does so too, after every 20 new sentences. Numbers, negations and names must
    agree, so nothing is merged that could mean something else. With a model, sentences about the
    same thing are joined as well.

    \b
    Examples:
      holdfast consolidate --dry-run
      holdfast consolidate --user ana
      holdfast consolidate --llm openai:gpt-5-mini
    """
    with models.model(llm, base_url) as model, reading(store, model) as memory:
        report = memory.user(user, org=org, bot=bot, subject=subject).consolidate(dry_run=dry_run)
        if as_json:
            print_json(plain(report))
            return 0
        screen = Screen()
        options = same_options(store, user, org=org, bot=bot, subject=subject)
        for one in report.merged:
            screen.line((value(one.fact), STRONG), ("   would be one memory" if dry_run else "   one memory now", GOOD))
            for source in one.sources:
                screen.line("  of: ", value(source), (f"   {source.id}", QUIET))
        if not report.merged:
            screen.line("nothing to merge: no two sentences say the same")
        elif not dry_run:
            screen.line((f"take one apart: holdfast restore ID{options}", QUIET))
        for reason in report.refused:
            print(f"not believed: {safe(reason)}", file=sys.stderr)
    return 0


@app.command()
def prune(
    faded: Annotated[
        bool, typer.Option("--faded", help="Put away as well what nobody said or used for a long time.")
    ] = False,
    store: Store = STORE,
    user: User = USER,
    org: Org = ORG,
    bot: Bot = BOT,
    subject: Subject = None,
    as_json: Json = False,
) -> int:
    """
    Put away the weakest facts of somebody who has more than 500.

    The background does so too. What is put away is not lost: `holdfast facts --archived` lists it,
    `holdfast restore` brings it back, and so does saying it again.

    \b
    Examples:
      holdfast prune
      holdfast prune --faded --user ana
    """
    with reading(store) as memory:
        report = memory.user(user, org=org, bot=bot, subject=subject).prune(faded=faded)
        if as_json:
            print_json(plain(report))
            return 0
        screen = Screen()
        screen.columns([[(label(one), NAME), value(one), (one.id, QUIET)] for one in report.archived[:20]], indent=2)
        screen.line(f"{count(len(report.archived), 'fact')} put away, {report.active:,} active")
        if report.archived:
            options = same_options(store, user, org=org, bot=bot, subject=subject)
            screen.line((f"bring one back: holdfast restore ID{options}", QUIET))
    return 0
