"""``holdfast search``."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ..types import Hit
from .options import BOT, ORG, STORE, USER, Bot, Json, Org, Store, Subject, User, commands, reading, who_is_there
from .plain import one_line
from .screen import GOOD, NAME, QUIET, Screen, print_json
from .values import plain
from .words import day

app = commands()

_STYLES = {"fact": GOOD, "message": "", "summary": NAME}


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="A question, or a few words.")],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Results at most.")] = 10,
    kind: Annotated[
        list[str] | None, typer.Option("--kind", metavar="KIND", help="fact, message or summary; may be given again.")
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show what each score is made of.")] = False,
    conversation: Annotated[
        str | None,
        typer.Option("--conversation", "-c", metavar="NAME", help="Messages and summaries of this one only."),
    ] = None,
    store: Store = STORE,
    user: User = USER,
    org: Org = ORG,
    bot: Bot = BOT,
    subject: Subject = None,
    as_json: Json = False,
) -> int:
    """
    Find facts, messages and summaries, best first.

    \b
    Examples:
      holdfast search "where did we eat in Kyoto?"
      holdfast search budget --kind fact --explain
    """
    with reading(store) as memory:
        owner = memory.user(user, org=org, bot=bot, subject=subject)
        kinds = {"kinds": tuple(kind)} if kind else {}
        hits = owner.search(query, limit=limit, conversation=conversation, explain=explain, **kinds)  # type: ignore[arg-type]
        if as_json:
            print_json(plain(hits))
            return 0
        if not hits:
            known = bool(owner.conversations())
            why = "other words may find more" if known else who_is_there(memory, org, bot, user)
            print(f"nothing found; {why}", file=sys.stderr)
    screen = Screen()
    for rank, hit in enumerate(hits, 1):
        _show(screen, rank, hit)
    return 0


def _show(screen: Screen, rank: int, hit: Hit) -> None:
    where = {
        "fact": "",
        "message": f"message {hit.seq} of {hit.conversation}",
        "summary": f"summary to message {hit.seq} of {hit.conversation}",
    }[hit.kind]
    note = " · ".join(part for part in (where, day(hit.at)) if part)
    screen.line((f"{rank:>2}  ", QUIET), (hit.kind.ljust(7), _STYLES[hit.kind]), (f"  {hit.score:.3f}  {note}", QUIET))
    speaker = f"{hit.speaker}: " if hit.kind == "message" and hit.speaker else ""
    text = one_line(hit.text)
    screen.paragraph(speaker + (text if len(text) <= 300 else text[:299] + "…"), indent=4)
    if hit.replaced_by:
        screen.paragraph(f"later replaced by: {one_line(hit.replaced_by)}", indent=4)
    if hit.parts:
        parts = "  ".join(
            f"{name} {number:.3f}" for name, number in sorted(hit.parts.items(), key=lambda item: -item[1])
        )
        screen.paragraph(f"= {parts}", indent=4, style=QUIET)
