"""``holdfast model``."""

from __future__ import annotations

import os
import shlex
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import models
from .models import BaseUrl
from .options import Json, commands
from .plain import one_line
from .screen import GOOD, NAME, QUIET, STRONG, Screen, print_json
from .values import plain
from .words import seconds

if TYPE_CHECKING:
    from ..llm.protocol import Answer, LanguageModel

app = commands()

WORDS_SHOWN = 60


@app.command()
def model(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL",
            envvar="HOLDFAST_LLM",
            show_envvar=True,
            help="openai:NAME, anthropic:NAME, google:NAME, ollama:NAME or FILE.py:FUNCTION.",
        ),
    ] = None,
    ask: Annotated[bool, typer.Option(help="Ask it once, to see that it answers.")] = True,
    base_url: BaseUrl = None,
    as_json: Json = False,
) -> int:
    """
    Show which model would read and summarise, where it is and with which key, and ask it once.

    Holdfast needs no model: without one, built-in rules read facts and pick summaries. With one,
    users's words go to where that model is. --llm MODEL chooses it for one command,
    HOLDFAST_LLM for all of them. Keys stand in the variables that providers name, such as
    OPENAI_API_KEY; HOLDFAST_API_KEY holds the one for --base-url.

    \b
    Examples:
      holdfast model
      holdfast model ollama:llama3.2
      holdfast model openai:gpt-5-mini --no-ask
      holdfast model openai:any --base-url http://127.0.0.1:8000/v1
    """
    if not name or name == models.RULES:
        _none(as_json)
        return 0
    with models.model(name, base_url) as made:
        assert made is not None
        told = _about(made, base_url)
        began = time.monotonic()
        answer = _asked(made) if ask else None
        spent_s = time.monotonic() - began
    if as_json:
        print_json({**told, "answer": plain(answer), "seconds": round(spent_s, 3) if answer else None})
        return 0
    screen = Screen()
    screen.columns([[(key, NAME), value] for key, value in told.items() if value])
    if answer is not None:
        used = f"{seconds(spent_s)}, {answer.input_tokens + answer.output_tokens:,} tokens"
        screen.columns([[("answers", GOOD), (one_line(answer.text)[:WORDS_SHOWN], STRONG), (used, QUIET)]])
    screen.line()
    screen.line(("use it for every command from now on:", QUIET))
    anywhere = str(Path(name).resolve()) if made.name.startswith("function:") else name
    screen.line(f"  export HOLDFAST_LLM={shlex.quote(anywhere)}")
    if base_url:
        screen.line(f"  export HOLDFAST_BASE_URL={shlex.quote(base_url)}")
    return 0


def _none(as_json: bool) -> None:
    if as_json:
        print_json({"model": None})
        return
    screen = Screen()
    screen.line("no model: ", ("the built-in rules", STRONG), " read facts and pick the sentences of summaries")
    screen.line(("name one to see whether it answers: holdfast model ollama:llama3.2", QUIET))


def _about(made: LanguageModel, base_url: str | None) -> dict[str, str | None]:
    """What can be said of a model without asking it; never the key itself."""
    address: Any = getattr(made, "address", None)
    if address is None:
        return {"model": made.name, "address": "a function of yours", "key": None}
    provider: Any = import_module("holdfast.llm.addresses").PROVIDERS[address.provider]
    names = (models.KEY,) if base_url else provider.keys
    key = next((f"from {name}" for name in names if os.environ.get(name)), "none")
    return {"model": made.name, "address": address.base_url or f"{address.provider}'s own", "key": key}


def _asked(made: LanguageModel) -> Answer:
    request: Any = import_module("holdfast.llm").Request
    return made.ask(
        request(layer="chat", system="Answer with the word OK.", text="Are you there?", prompt="", max_output_tokens=64)
    )
