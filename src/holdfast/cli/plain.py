"""
What the command prints without rich: errors, and the rule that makes stored text safe to show.

Text that users wrote may hold escape sequences, line-turning marks or forged lines.  Everything
that the command prints passes through `safe` (or `json_text`), so a terminal sees letters only.
"""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Any, TextIO

from ..errors import HoldfastError

# Controls except tab and line feed, line and paragraph separators, what turns the direction of
# text, tag characters, lone surrogates.  Joiners stay: emoji and several scripts need them.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u206f\ufeff\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
_UNSAFE_IN_JSON = re.compile(_UNSAFE.pattern.replace("\x00-\x08\x0b-\x1f", ""))


# What the library tells its callers to do next, as one does it here.
IN_COMMANDS = {
    "erase() first, or choose another user": "`holdfast erase` first, or choose another --user",
    "facts() and history() list them": "`holdfast facts --ids` and `holdfast history --ids` list them",
    "forget(seq) works; or resume() first": "`holdfast forget --message NUMBER` works; or `holdfast resume` first, "
    "after an opt-out `holdfast opt-in`",
    "keys() lists them": "`holdfast keys` lists them",
    "jobs() lists them": "`holdfast jobs` lists them",
    "list() shows them": "`holdfast provider-keys` lists them",
    "load() lists them": "`holdfast messages` shows them with their numbers",
    "opt_in() first": "`holdfast opt-in` first",
    "pass what export() returned": "name a file that `holdfast export` wrote",
    "rebuilds() lists them": "`holdfast rebuild --list` lists them",
    "resume() first": "`holdfast resume` first, after an opt-out `holdfast opt-in`",
    "reset(name) takes ours again": "--reset takes ours again",
    "versions(name) lists them": "`holdfast prompts NAME --versions` lists them",
}


class CommandError(HoldfastError):
    """The command could not do it; ``code``, message and hint are shown, ``exit_code`` is returned."""

    def __init__(self, code: str, message: str, *, hint: str = "", exit_code: int = 1) -> None:
        super().__init__(message, hint=hint)
        self.code = code
        self.exit_code = exit_code


def safe(text: str) -> str:
    """*text* with everything that could steer a terminal written as a visible escape."""
    return _UNSAFE.sub(_visible, text) if _UNSAFE.search(text) else text


def one_line(text: str) -> str:
    """`safe` text on one line: runs of white space become one blank."""
    return " ".join(safe(text).split())


def json_text(value: Any, indent: int | None = 2) -> str:
    """One JSON document that a terminal can be shown; only ASCII where the terminal has no more."""
    encoding = (getattr(sys.stdout, "encoding", "") or "").lower().replace("-", "")
    text = json.dumps(value, ensure_ascii=not encoding.startswith("utf"), indent=indent)
    return _UNSAFE_IN_JSON.sub(_escaped, text)


def print_error(error: HoldfastError, as_json: bool) -> None:
    """``error[code]: message`` and ``help: …`` on stderr, or the same as one JSON document."""
    hint = IN_COMMANDS.get(error.hint, error.hint)
    if as_json:
        body = {"error": {"code": error.code, "message": error.message, "hint": hint}}
        print(json_text(body), file=sys.stderr)
        return
    red, bold, off = ("\x1b[1;31m", "\x1b[1m", "\x1b[0m") if wants_colour(sys.stderr) else ("", "", "")
    print(f"{red}error[{error.code}]{off}{bold}: {safe(error.message)}{off}", file=sys.stderr)
    if hint:
        print(f"  help: {safe(hint)}", file=sys.stderr)


def wants_colour(stream: TextIO) -> bool:
    """Whether to colour: a terminal, unless NO_COLOR or TERM=dumb says no; FORCE_COLOR says yes."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def _visible(found: re.Match[str]) -> str:
    point = ord(found.group())
    if point < 0x100:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def _escaped(found: re.Match[str]) -> str:
    return json.dumps(found.group())[1:-1]
