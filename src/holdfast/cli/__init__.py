"""
The ``holdfast`` command: parse, call the front door, print.

Data goes to stdout, progress and errors to stderr.  Exit codes: 0 ok, 1 failed, 2 wrong usage,
3 something that it needs is not there, 130 interrupted, 141 the reader of a pipe went away.

This module and what it imports load neither the engine nor rich, so that ``--help`` is instant;
a command's own module is imported when that command is called.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import typer

from ..errors import BadInput, HoldfastError
from .app import command
from .plain import CommandError, print_error
from .secretfiles import read_into

# typer carries its own copy of click in some versions and uses the package in others; either way
# this is the class of all that its parser raises.
_Refused: type[Exception] = typer.BadParameter.__mro__[2]

FAILED, USAGE, INTERRUPTED, PIPE_CLOSED = 1, 2, 130, 141


def main(args: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    given = list(sys.argv[1:] if args is None else args)
    as_json = "--json" in given
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        read_into(os.environ)
        code = command().main(args=given, prog_name="holdfast", standalone_mode=False)
        sys.stdout.flush()
        if code == INTERRUPTED:  # typer has caught it, and says nothing
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except BrokenPipeError:
        _let_go_of_stdout()
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
    except _Refused as error:
        print_error(_usage_error(error), as_json)
        return USAGE


def _usage_error(error: Exception) -> CommandError:
    """typer's own words for a wrong option or argument, with where to look."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "holdfast"
    message = str(getattr(error, "format_message", lambda: str(error))()).strip().rstrip(".")
    message = message[:1].lower() + message[1:] if message else "a command is missing"
    return CommandError("usage", message, hint=f"`{path} --help` shows the options and an example", exit_code=USAGE)


def _let_go_of_stdout() -> None:
    """The reader closed the pipe: say nothing more, and let the interpreter's last flush go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
