"""Asking before something that cannot be taken back."""

from __future__ import annotations

import sys

from .plain import CommandError, one_line, safe


def agreed(question: str, *, yes: bool, as_json: bool) -> None:
    """
    Ask *question* on stderr and go on when the answer is y; ``--yes`` has answered already.

    Raises:
        CommandError: the answer is anything else, or there is nobody to answer.
    """
    if yes:
        return
    answer = _ask(f"{question} [y/N] ", as_json)
    if answer.lower() not in ("y", "yes"):
        raise _not_done("answer y, or add --yes")


def typed(question: str, word: str, *, yes: bool, as_json: bool) -> None:
    """
    Go on when *word* is typed as it is; ``--yes`` has typed it already.

    Raises:
        CommandError: something else was typed, or there is nobody to type.
    """
    if yes:
        return
    if _ask(f"{question} ", as_json) != one_line(word):
        raise _not_done(f"type {word} as it is, or add --yes")


def _ask(question: str, as_json: bool) -> str:
    if as_json or sys.stdin is None or sys.stdin.closed:
        raise CommandError(
            "not-confirmed", "nothing was done: this cannot be taken back", hint="add --yes", exit_code=2
        )
    print(safe(question), end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    if not (answer.endswith("\n") and sys.stdin.isatty()):
        print(file=sys.stderr)
    if not answer:
        raise _not_done("nobody answered; add --yes")
    return one_line(answer)


def _not_done(hint: str) -> CommandError:
    return CommandError("not-confirmed", "nothing was done", hint=hint)
