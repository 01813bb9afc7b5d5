"""``holdfast chat``: talk with a model that remembers."""

from __future__ import annotations

from typing import Annotated

import typer

from . import models
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
    without_password,
    writing,
)
from .progress import Progress
from .screen import QUIET, STRONG, Screen
from .talk import Talk, leave, lines
from .words import count

app = commands()

System = Annotated[str | None, typer.Option("--system", metavar="TEXT", help="What the assistant is to be.")]
Reader = Annotated[
    str | None,
    typer.Option(
        "--reader", metavar="MODEL", help="Another model for facts and summaries, or rules (default: the same)."
    ),
]


@app.command()
def chat(
    llm: Llm = None,
    base_url: BaseUrl = None,
    reader: Reader = None,
    system: System = None,
    budget: Annotated[
        int | None, typer.Option("--budget", "-b", min=1, metavar="TOKENS", help="Tokens of memory a reply may use.")
    ] = None,
    incognito: Annotated[
        bool, typer.Option("--incognito", help="Keep nothing of the chat, and use nothing held.")
    ] = False,
    conversation: Annotated[
        str, typer.Option("--conversation", "-c", metavar="NAME", help="Which conversation to begin or to go on with.")
    ] = CONVERSATION,
    store: Store = STORE,
    user: User = USER,
    org: Org = ORG,
    bot: Bot = BOT,
    subject: Subject = None,
    as_json: Json = False,
) -> int:
    """
    Talk with a model that remembers, and see what each turn changes in memory.

    Every line is a turn; it is on disk before the model is asked. The model is given the context
    that `holdfast context` shows. /facts, /context, /search WORDS look into memory on the way,
    /again asks again, /help lists the rest; Ctrl-C stops a reply, Ctrl-D ends. Without --llm
    nobody answers, but everything is remembered all the same.

    With --json every line is a turn, and every turn one line of JSON.

    \b
    Examples:
      holdfast chat
      holdfast chat --llm ollama:llama3.2
      holdfast chat --llm openai:gpt-5-mini --user ana --system "You are a cook."
      holdfast chat --llm openai:any --base-url http://127.0.0.1:8000/v1 --reader rules
      holdfast chat --llm bot.py:reply --incognito
    """
    options = same_options(store, user, org=org, bot=bot, subject=subject)
    # Another address is the address of --llm: a reader of its own is found where its provider is.
    with models.model(llm, base_url) as model, models.model(reader or models.RULES, None) as other:
        reads = other if reader else model
        with writing(store, reads, background=True) as memory:
            owner = memory.user(user, org=org, bot=bot, subject=subject)
            chat = memory.conversation(conversation, user=user, org=org, bot=bot, subject=subject, incognito=incognito)
            screen = Screen()
            talk = Talk(memory, chat, owner, model, system, budget, screen, user, as_json=as_json)
            if not as_json:
                _hello(talk, store, reads.name if reads else "built-in rules")
            for line in lines(f"{user}> ", as_json):
                if not talk.turn(line):
                    break
            return leave(talk, options)


def _hello(talk: Talk, store: str, reader: str) -> None:
    known = len(talk.owner.facts())
    with Progress("Opening"):
        said = talk.chat.load(last=1)
    begun = f"goes on after message {said[-1].seq}" if said else "is new"
    talk.screen.line(
        (f"{talk.chat.id}", STRONG), f" {begun}; {count(known, 'fact')} known", (f"   {without_password(store)}", QUIET)
    )
    answers = talk.model.name if talk.model else "nobody answers (--llm MODEL)"
    talk.screen.line((f"replies: {answers}   facts and summaries: {reader}", QUIET))
    talk.screen.line(("/help lists what else can be typed; Ctrl-D ends", QUIET))
