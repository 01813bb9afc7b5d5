"""
The model that a command uses: --llm or HOLDFAST_LLM, and ``holdfast model``, which tries it.

A model is named ``provider:name``, or it is a function in a file, ``FILE.py:FUNCTION``, from messages to text.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..config import Config
from ..errors import ConfigError
from ..llm import Request, from_function
from ..llm import model as model_at_provider
from ..llm.guard import PROVIDERS
from ..text import dataclass
from .options import SettingsOptions
from .output import GOOD, NAME, QUIET, STRONG, Screen, print_json
from .terminal import MISSING, USAGE, CommandError, one_line, seconds, to_json

if TYPE_CHECKING:
    from ..llm.protocol import Answer, LanguageModel

RULES = "rules"
KEY = "HOLDFAST_API_KEY"  # the key for --base-url; providers have their own variables
ANSWER_CHARS = 60

BaseUrl = Annotated[
    str | None,
    typer.Option(
        "--base-url",
        envvar="HOLDFAST_BASE_URL",
        metavar="URL",
        help="With openai:NAME: another server with the same protocol.",
    ),
]


@dataclass(frozen=True)
class ModelOptions:
    """The options of a command that may use a model."""

    llm: Annotated[
        str | None,
        typer.Option(
            "--llm",
            envvar="HOLDFAST_LLM",
            metavar="MODEL",
            help="The model that extracts facts and writes summaries: openai:NAME, anthropic:NAME, google:NAME, "
            "ollama:NAME, FILE.py:FUNCTION, or rules for none.",
        ),
    ] = None
    base_url: BaseUrl = None

    @contextmanager
    def open(self, options: SettingsOptions | None = None) -> Iterator[LanguageModel | None]:
        """Load the model, ``None`` for the built-in rules, and close its connections afterwards."""
        model = load_model(self.llm, self.base_url, options.load().config if options else Config())
        try:
            yield model
        finally:
            close: Callable[[], None] | None = getattr(model, "close", None)
            if close is not None:
                close()


def load_model(llm: str | None, base_url: str | None, config: Config) -> LanguageModel | None:
    """
    Load the model of that name; ``None`` means the built-in rules.

    Raises:
        CommandError: the function cannot be loaded, or the provider is unknown or lacks its package or its key.
    """
    if not llm or llm == RULES:
        return None
    path, _, function = llm.rpartition(":")
    if path.endswith(".py"):
        return from_function(_load_function(Path(path), function))
    try:
        key = os.environ.get(KEY) if base_url else None
        return model_at_provider(llm, base_url=base_url, api_key=key, cache_retention=config.prompt_cache_retention)
    except ConfigError as error:
        raise _config_error(llm, error) from error


def _config_error(llm: str, error: ConfigError) -> CommandError:
    """Say what is wrong with the name, the key or the installation, and what to type."""
    provider, colon, name = llm.partition(":")
    if "pip install" in error.hint:
        clone = "; in a clone: pip install -e '.[llm]'"
        return CommandError("not-installed", error.message, hint=error.hint + clone, exit_code=MISSING)
    if not colon or not name or provider not in PROVIDERS:
        names = ", ".join(f"{one}:NAME" for one in PROVIDERS)
        return CommandError(error.code, error.message, hint=f"write --llm {names} or FILE.py:FUNCTION", exit_code=USAGE)
    keys = " or ".join(PROVIDERS[provider].keys)
    hint = f"set {keys} to your key" if "key" in error.message else error.hint
    return CommandError(error.code, error.message, hint=hint, exit_code=MISSING if "key" in error.message else USAGE)


def _load_function(path: Path, name: str) -> Callable[..., Any]:
    """Run the file at *path* and return its function *name*."""
    if not path.is_file():
        raise CommandError("no-file", f"there is no file {path}", hint="--llm FILE.py:FUNCTION names a file of yours")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None  # it ends with .py
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(loaded)
    except SyntaxError as error:
        raise CommandError("bad-model", f"{path}:{error.lineno} is not Python: {error.msg}") from None
    except ImportError as error:
        raise CommandError("bad-model", f"{path} needs {error.name}, which cannot be imported") from None
    function = getattr(loaded, name, None)
    if not callable(function):
        raise CommandError(
            "bad-model",
            f"{path} has no function {name!r}",
            hint="write def NAME(messages): …, which returns the reply as text",
        )
    found: Callable[..., Any] = function
    return found


def model(
    options: SettingsOptions,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL",
            envvar="HOLDFAST_LLM",
            show_envvar=True,
            help="openai:NAME, anthropic:NAME, google:NAME, ollama:NAME or FILE.py:FUNCTION.",
        ),
    ] = None,
    ask: Annotated[bool, typer.Option(help="Ask it one question, to see that it answers.")] = True,
    base_url: BaseUrl = None,
) -> int:
    """
    Show which model would be used, its address and where its key is from, and ask it one question.

    Holdfast needs no model: without one, built-in rules extract facts and pick sentences for
    summaries. With one, users' messages are sent to that model. --llm MODEL chooses it for one
    command, HOLDFAST_LLM for all of them. Keys are read from the usual variables, such as
    OPENAI_API_KEY; HOLDFAST_API_KEY holds the one for --base-url.

    \b
    Examples:
      holdfast model
      holdfast model ollama:llama3.2
      holdfast model openai:gpt-5-mini --no-ask
      holdfast model openai:any --base-url http://127.0.0.1:8000/v1
    """
    screen = Screen()
    with ModelOptions(name, base_url).open(options) as loaded:
        if loaded is None:
            if options.as_json:
                print_json({"model": None})
                return 0
            screen.line("no model: ", ("the built-in rules", STRONG), " extract facts and pick sentences for summaries")
            screen.line(("to try one: holdfast model ollama:llama3.2", QUIET))
            return 0
        described = _describe(loaded, base_url)
        began = time.monotonic()
        answer = _ask(loaded) if ask else None
        spent_s = time.monotonic() - began
    if options.as_json:
        print_json({**described, "answer": to_json(answer), "seconds": round(spent_s, 3) if answer else None})
        return 0
    screen.columns([[(key, NAME), value] for key, value in described.items() if value])
    if answer is not None:
        used = f"{seconds(spent_s)}, {answer.input_tokens + answer.output_tokens:,} tokens"
        screen.columns([[("answers", GOOD), (one_line(answer.text)[:ANSWER_CHARS], STRONG), (used, QUIET)]])
    screen.line()
    screen.line(("to use it for every command from now on:", QUIET))
    absolute = str(Path(name or "").resolve()) if loaded.name.startswith("function:") else name or ""
    screen.line(f"  export HOLDFAST_LLM={shlex.quote(absolute)}")
    if base_url:
        screen.line(f"  export HOLDFAST_BASE_URL={shlex.quote(base_url)}")
    return 0


def _describe(loaded: LanguageModel, base_url: str | None) -> dict[str, str | None]:
    """Return the name, the address and where the key is from; never the key."""
    address: Any = getattr(loaded, "address", None)
    if address is None:
        return {"model": loaded.name, "address": "a function of yours", "key": None}
    names = (KEY,) if base_url else PROVIDERS[address.provider].keys
    key = next((f"from {name}" for name in names if os.environ.get(name)), "none")
    return {"model": loaded.name, "address": address.base_url or f"{address.provider}'s own", "key": key}


def _ask(loaded: LanguageModel) -> Answer:
    question = "Are you there?"
    return loaded.ask(
        Request(layer="chat", system="Answer with the word OK.", text=question, prompt="", max_output_tokens=64)
    )
