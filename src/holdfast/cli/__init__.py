"""
The ``holdfast`` command: parse, call the front door, print.

Data goes to stdout, progress and errors to stderr.  Exit codes: 0 done, 1 failed, 2 wrong usage, 3 something that the
command needs is missing, 130 interrupted, 141 the reader of a pipe went away.

This module imports neither the engine nor rich, so that ``--help`` is instant; `app` imports a command's module when that
command is run.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import MutableMapping, Sequence
from typing import Any

import typer

from ..errors import BadInput, HoldfastError
from ..text import expression
from .app import command
from .terminal import FAILED, INTERRUPTED, PIPE_CLOSED, USAGE, CommandError, print_error

# Some versions of typer contain a copy of click, others import it; this is the base of the parser's errors in both.
_ParserError: type[Exception] = typer.BadParameter.__mro__[2]

# ``HOLDFAST_STORE_FILE=/run/secrets/store`` sets HOLDFAST_STORE to what the file holds, as containers pass secrets.
# The master key has HOLDFAST_MASTER_KEY_FILE, which is read elsewhere with more checks.
SECRET_NAMES = (
    "HOLDFAST_STORE",
    "HOLDFAST_ADMIN_STORE",
    "HOLDFAST_ROLE_PASSWORD",
    "HOLDFAST_UPSTREAM_API_KEY",
    "HOLDFAST_API_KEY",
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GOOGLE_API_KEY",
    "GEMINI_API_KEY",
)
_MAX_SECRET_CHARS = 65_536
# What the parser says in the words of its own library, and what we say instead.
_FIRST_OPTION = expression(
    r"no such option: (--?(?:store|user|org|bot|subject|json|conversation|s|u|c|o|b))\b", re.IGNORECASE
)
_EXTRA = expression(r"got unexpected extra argument(?:s|\(s\))? \((.+)\)$", re.DOTALL)
_BOUNDS = expression(
    r"invalid value for '([^']+)'(?: / '[^']+')*(?: \(env var: '\w+'\))?: Input should be "
    r"(greater than or equal to|less than or equal to|a valid \w+)(?:, unable to parse .*)?( [-\d.]+)?$"
)
_PLAIN = {
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
    "a valid integer": "a whole number",
    "a valid number": "a number",
}


def main(args: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code: 0 for a hook, whose agent would take an error for a veto."""
    given = list(sys.argv[1:] if args is None else args)
    code = _run(given)
    return 0 if given[:2] == ["hook", "run"] else code


def _run(given: list[str]) -> int:
    as_json = "--json" in given
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        read_secret_files(os.environ)
        code = command().main(args=given, prog_name="holdfast", standalone_mode=False)
        sys.stdout.flush()
        if code == INTERRUPTED:  # typer caught the interrupt and printed nothing
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except BrokenPipeError:
        # Print nothing more, and let the interpreter's last flush go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except (KeyboardInterrupt, typer.Abort):
        print_error(CommandError("interrupted", "stopped before the end", exit_code=INTERRUPTED), as_json)
        return INTERRUPTED
    except CommandError as error:
        print_error(error, as_json)
        return error.exit_code
    except HoldfastError as error:
        print_error(error, as_json)
        return USAGE if isinstance(error, BadInput) else FAILED
    except _ParserError as error:
        print_error(_usage_error(error), as_json)
        return USAGE


def _usage_error(error: Exception) -> CommandError:
    """Keep typer's message for a wrong option or argument, and say where to look."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "holdfast"
    hint = f"`{path} --help` shows the options and an example"
    message = str(getattr(error, "format_message", lambda: str(error))()).strip().rstrip(".")
    message = message[:1].lower() + message[1:] if message else "a command is missing"
    if path == "holdfast" and (option := _FIRST_OPTION.match(message)):
        hint = f"write options behind the command: holdfast facts {option[1]} …; {hint}"
    if extra := _EXTRA.match(message):
        message = f"`{path}` has no use for {extra[1]}"
        hint = f"put quotes around a text of several words; {hint}"
    elif bounds := _BOUNDS.match(message):
        message = f"{bounds[1]} must be {_PLAIN.get(bounds[2], bounds[2])}{bounds[3] or ''}"
    if (option := getattr(error, "param", None)) is not None and context is not None:
        message += _place(context, option)
    return CommandError("usage", message, hint=hint, exit_code=USAGE)


def _place(context: Any, option: Any) -> str:
    """Return where the value of *option* is from, when the command line does not hold it: a settings file or a variable."""
    source = getattr(context.get_parameter_source(option.name), "name", "")
    if source == "DEFAULT_MAP":
        return f" (in {context.params['config']})"
    return f" (in {option.envvar})" if source == "ENVIRONMENT" else ""


def read_secret_files(environ: MutableMapping[str, str]) -> None:
    """
    Set each of `SECRET_NAMES` whose name with ``_FILE`` at its end names a file; surrounding white space is removed.

    Raises:
        CommandError: a variable is given twice, or its file cannot be read.
    """
    for name in SECRET_NAMES:
        path = environ.get(f"{name}_FILE", "")
        if not path:
            continue
        if environ.get(name):
            raise _secret_error(f"{name} and {name}_FILE are both set", "unset one of them")
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read(_MAX_SECRET_CHARS).strip()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is not text"
            hint = "is it mounted, and may this user read it?"
            raise _secret_error(f"{name}_FILE: {path}: {reason}", hint) from None
        if not text:
            raise _secret_error(f"{name}_FILE: {path} is empty", "write the secret to it")
        environ[name] = text
        del environ[f"{name}_FILE"]


def _secret_error(message: str, hint: str) -> CommandError:
    return CommandError("secret-file", message, hint=hint, exit_code=USAGE)
