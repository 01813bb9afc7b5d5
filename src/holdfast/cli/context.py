"""``holdfast context``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ..types import Section
from . import chats
from .options import BOT, ORG, STORE, USER, Bot, Json, Org, Store, Subject, User, commands, reading
from .plain import CommandError
from .screen import CHANGED, GOOD, NAME, QUIET, STRONG, Screen, print_json
from .words import count

if TYPE_CHECKING:
    from ..context.result import Context, LeftOut
    from ..conversation import Conversation

app = commands()

FORMATS = ("text", "messages", "json", "anthropic")


@app.command()
def context(
    query: Annotated[str | None, typer.Argument(help="What the user just said, when it is not stored yet.")] = None,
    budget: Annotated[
        int | None,
        typer.Option("--budget", "-b", min=1, metavar="TOKENS", help="Tokens that are never exceeded (default 4000)."),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format", "-o", metavar="FORMAT", help="The context itself: text, messages (OpenAI), anthropic or json."
        ),
    ] = None,
    conversation: Annotated[
        str | None,
        typer.Option(
            "--conversation",
            "-c",
            metavar="NAME",
            help="Which conversation goes on; may be left out when there is one.",
        ),
    ] = None,
    store: Store = STORE,
    user: User = USER,
    org: Org = ORG,
    bot: Bot = BOT,
    subject: Subject = None,
    as_json: Json = False,
) -> int:
    """
    Show exactly what a model would get for the next reply, and what each part of it costs.

    Tokens are estimated, rather too high than too low. What stands above the breakpoint stays
    byte for byte the same until a fact or a summary changes, so providers can cache it.

    \b
    Examples:
      holdfast context "What should I cook tonight?"
      holdfast context "What should I cook tonight?" --budget 1200
      holdfast context -o messages
    """
    if form not in (None, *FORMATS):
        raise CommandError("usage", f"there is no format {form!r}", hint=f"use -o {', '.join(FORMATS)}", exit_code=2)
    with reading(store) as memory:
        chat = chats.one(memory, conversation, user=user, org=org, bot=bot, subject=subject)
        made = chat.context(query, budget_tokens=budget)
        if as_json or form is not None:
            _print_as(made, form or "json")
            return 0
        show_context(Screen(), chat, made)
    return 0


def show_context(screen: Screen, chat: Conversation, made: Context) -> None:
    """What each section holds and costs, what is left out, and what the whole history would cost."""
    screen.line(
        ("Context for the next reply", STRONG), f" of {chat.id}   {made.tokens:,} of {made.budget_tokens:,} tokens"
    )
    for stable in (True, False):
        part = [section for section in made.sections if section.stable is stable and section.tokens]
        tokens = sum(section.tokens for section in part)
        if stable:
            state = "same as last time" if made.prefix_changed_because is None else made.prefix_changed_because
            style = GOOD if made.prefix_changed_because is None else CHANGED
            screen.line(
                " ",
                ("stable prefix", STRONG),
                f"   {tokens:,} tokens   sha256 {made.prefix_sha256[:12]}   ",
                (state, style),
            )
        else:
            screen.line(" ", ("changes with each reply", STRONG), f"   {tokens:,} tokens")
        screen.columns(
            [[(section.name, NAME), f"{section.tokens:>7,}", (_holds(made, section), QUIET)] for section in part],
            indent=3,
        )
    if made.left_out:
        screen.line(" ", ("left out", STRONG))
        screen.columns([[f"{item.count:,} {_noun(item)}", (item.reason, QUIET)] for item in made.left_out], indent=3)
    whole = sum(message.tokens for message in chats.messages(chat))
    saved = f"; this is {100 - made.tokens * 100 // whole} % less" if whole > made.tokens else ""
    screen.line(" ", (f"the whole conversation would be {whole:,} tokens{saved}", QUIET))


def _holds(made: Context, section: Section) -> str:
    """What a section is made of, by where its items come from."""
    sources = [source for source in made.sources if source.section == section.name]
    kinds: dict[str, int] = {}
    for source in sources:
        kinds[source.kind] = kinds.get(source.kind, 0) + 1
    parts = [
        count(number, kind, {"summary": "summaries", "query": "queries"}.get(kind, ""))
        for kind, number in kinds.items()
        if kind != "query"
    ]
    here = [source for source in sources if source.kind in ("message", "summary") and source.start_seq]
    if here and not section.name.startswith("recall"):
        parts.append(f"messages {min(s.start_seq for s in here)}–{max(s.end_seq for s in here)}")
    if "query" in kinds:
        parts.append("and what was just said" if parts else "what was just said")
    return ", ".join(parts)


def _noun(item: LeftOut) -> str:
    nouns = {
        "messages": "message",
        "part": "message in part",
        "query": "question",
        "facts": "fact",
        "recalled": "recalled item",
    }
    words = count(item.count, nouns[item.kind], "messages in part" if item.kind == "part" else "").split(" ", 1)[1]
    return f"{words} {item.start_seq}–{item.end_seq}" if item.kind == "messages" and item.start_seq else words


def _print_as(made: Context, form: str) -> None:
    if form == "text":
        Screen().raw(made.to_text())
    elif form == "messages":
        print_json(list(made.messages))
    elif form == "anthropic":
        print_json(made.to_anthropic())
    else:
        print_json(made.to_dict())
