"""
Which model a command uses: ``--llm``, or ``HOLDFAST_LLM``.

A model is named ``provider:name``, or it is a function of one's own: ``FILE.py:FUNCTION`` takes messages
and returns text.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ConfigError
from .plain import CommandError

if TYPE_CHECKING:
    from ..llm.protocol import LanguageModel

RULES = "rules"
KEY = "HOLDFAST_API_KEY"  # for an address of one's own; providers have variables of their own

Llm = Annotated[
    str | None,
    typer.Option(
        "--llm",
        envvar="HOLDFAST_LLM",
        metavar="MODEL",
        help="The model that reads and summarises: openai:NAME, anthropic:NAME, google:NAME, ollama:NAME, "
        "FILE.py:FUNCTION, or rules for none.",
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        "--base-url",
        envvar="HOLDFAST_BASE_URL",
        metavar="URL",
        help="With openai:NAME: another server that speaks its protocol.",
    ),
]

RequestsAMinute = Annotated[
    int | None,
    typer.Option(
        "--model-requests",
        min=1,
        envvar="HOLDFAST_MODEL_REQUESTS_PER_MINUTE",
        metavar="N",
        help="Ask with one key at most so often a minute, all processes of the store together.",
    ),
]
TokensAMinute = Annotated[
    int | None,
    typer.Option(
        "--model-tokens",
        min=1,
        envvar="HOLDFAST_MODEL_TOKENS_PER_MINUTE",
        metavar="N",
        help="Use at most so many tokens of one key a minute, all processes of the store together.",
    ),
]


def named(llm: str | None, base_url: str | None) -> LanguageModel | None:
    """
    The model of that name, or ``None`` where the built-in rules do the work.

    Raises:
        CommandError: a function that cannot be loaded, a provider that is not known, or lacks its package or its key.
    """
    if not llm or llm == RULES:
        return None
    where, _, function = llm.rpartition(":")
    if where.endswith(".py"):
        from_function: Any = _engine("llm").from_function
        made: LanguageModel = from_function(_function(Path(where), function))
        return made
    try:
        made = _engine("llm").model(llm, base_url=base_url, api_key=os.environ.get(KEY) if base_url else None)
    except ConfigError as error:
        raise _refused(llm, error) from error
    return made


def _refused(llm: str, error: ConfigError) -> CommandError:
    """What is wrong with the name, the key or the installation, with what to type."""
    provider, colon, name = llm.partition(":")
    known = _engine("llm.address").PROVIDERS
    if "pip install" in error.hint:
        clone = "; in a clone: pip install -e '.[llm]'"
        return CommandError("not-installed", error.message, hint=error.hint + clone, exit_code=3)
    if not colon or not name or provider not in known:
        names = ", ".join(f"{one}:NAME" for one in known)
        return CommandError(error.code, error.message, hint=f"write --llm {names} or FILE.py:FUNCTION", exit_code=2)
    keys = " or ".join(known[provider].keys)
    hint = f"set {keys} to your key" if "key" in error.message else error.hint
    return CommandError(error.code, error.message, hint=hint, exit_code=3 if "key" in error.message else 2)


@contextmanager
def model(llm: str | None, base_url: str | None) -> Iterator[LanguageModel | None]:
    """As `named`; its connections are closed afterwards."""
    made = named(llm, base_url)
    try:
        yield made
    finally:
        close: Callable[[], None] | None = getattr(made, "close", None)
        if close is not None:
            close()


def _engine(module: str) -> Any:
    """A module of the package, imported when a model is named and not for ``--help``."""
    return importlib.import_module(f"holdfast.{module}")


def _function(path: Path, name: str) -> Callable[..., Any]:
    """The function *name* of the file at *path*; what the file does when it is loaded, it does now."""
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
    called: Callable[..., Any] = function
    return called
