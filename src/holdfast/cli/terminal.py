"""
Text for a terminal, without rich: errors, JSON, safe text, and numbers, times and facts in words.

Text that users wrote may hold escape sequences, marks that turn its direction, or forged lines.  Everything that the
command prints passes through `safe` or `json_text`, so that it cannot steer a terminal.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from ..errors import HoldfastError
from ..text import expression

if TYPE_CHECKING:
    from ..types import Fact

FAILED, USAGE, MISSING, INTERRUPTED, PIPE_CLOSED = 1, 2, 3, 130, 141

# Controls except tab and line feed, line and paragraph separators, direction marks, tag characters, lone surrogates.
# Joiners stay: emoji and several scripts need them.
_UNSAFE = expression(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u206f\ufeff\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
_UNSAFE_IN_JSON = expression(_UNSAFE.pattern.replace("\x00-\x08\x0b-\x1f", ""))
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

# The hints of the library, in terms of commands.
COMMAND_HINTS = {
    "use memory.admin.prompts(…)": "add --for org or --for bot",
    "erase() first, or choose another user": "run `holdfast erase` first, or choose another --user",
    "facts() and history() list them": "`holdfast facts --ids` and `holdfast history --ids` list them",
    "forget(seq) works; or resume() first": "`holdfast forget --message NUMBER` works; or run `holdfast resume` first, "
    "after an opt-out `holdfast opt-in`",
    "jobs() lists them": "`holdfast jobs` lists them",
    "list() lists them": "`holdfast keys` or `holdfast provider-keys` lists them",
    "conversations() lists them": "`holdfast list --user NAME` lists them",
    "load() lists the messages with their numbers": "`holdfast messages` shows them with their numbers",
    "load() shows who said what": "`holdfast messages` shows who said what",
    "load(abandoned=True) lists them": "`holdfast messages` shows those that are not left behind",
    "rejected(waiting=True) lists them": "`holdfast facts --waiting` lists them",
    "load() lists them": "`holdfast messages` shows them with their numbers",
    "opt_in() first": "run `holdfast opt-in` first",
    "pass what export() returned": "name a file that `holdfast export` wrote",
    "rebuilds() lists them": "`holdfast rebuild --list` lists them",
    "resume() first": "run `holdfast resume` first, after an opt-out `holdfast opt-in`",
    "retry(id) revives a dead or cancelled one": "`holdfast jobs --retry ID` retries a dead or cancelled one",
    "reset(name) takes ours again": "--reset restores the built-in prompt",
    "subjects() lists them": "`holdfast subjects` lists them",
    "use memory.user(…).prompts.preview(…)": "leave out --for, and name --user",
    "versions(name) lists them": "`holdfast prompts NAME --versions` lists them",
}


class CommandError(HoldfastError):
    """A failed command: ``code``, message and hint are printed, ``exit_code`` is returned."""

    def __init__(self, code: str, message: str, *, hint: str = "", exit_code: int = FAILED) -> None:
        super().__init__(message, hint=hint)
        self.code = code
        self.exit_code = exit_code


def usage_error(message: str, hint: str) -> CommandError:
    """Return the error of a wrong option or argument."""
    return CommandError("usage", message, hint=hint, exit_code=USAGE)


def safe(text: str) -> str:
    """Return *text* with everything that could steer a terminal written as a visible escape."""
    return _UNSAFE.sub(_visible, text) if _UNSAFE.search(text) else text


def one_line(text: str) -> str:
    """Return `safe` text on one line: runs of white space become one blank."""
    return " ".join(safe(text).split())


def to_json(value: Any) -> Any:
    """Convert dataclasses to objects, tuples to lists and times to ISO 8601 text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: to_json(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return value


def json_text(value: Any, indent: int | None = 2) -> str:
    """Format one JSON document that is safe on a terminal; only ASCII where the terminal has no more."""
    encoding = (getattr(sys.stdout, "encoding", "") or "").lower().replace("-", "")
    text = json.dumps(value, ensure_ascii=not encoding.startswith("utf"), indent=indent)
    return _UNSAFE_IN_JSON.sub(_escaped, text)


def write_report(path: Path | None, report: Any) -> None:
    """Write a report as a JSON file; without a path, do nothing."""
    if path is not None:
        path.write_text(json.dumps(report, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def print_error(error: HoldfastError, as_json: bool) -> None:
    """Print ``error[code]: message`` and ``help: …`` on stderr, or the same as one JSON document."""
    hint = COMMAND_HINTS.get(error.hint, error.hint)
    if as_json:
        body = {"error": {"code": error.code, "message": error.message, "hint": hint}}
        print(json_text(body), file=sys.stderr)
        return
    red, bold, off = ("\x1b[1;31m", "\x1b[1m", "\x1b[0m") if wants_color(sys.stderr) else ("", "", "")
    print(f"{red}error[{error.code}]{off}{bold}: {safe(error.message)}{off}", file=sys.stderr)
    if hint:
        print(f"  help: {safe(hint)}", file=sys.stderr)


def wants_color(stream: TextIO) -> bool:
    """Return whether to color: a terminal, unless NO_COLOR or TERM=dumb says no; FORCE_COLOR says yes."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def count(number: int, noun: str, plural: str = "") -> str:
    """Format ``1 fact``, ``1,204 facts``, ``2 stories``."""
    regular = f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2] not in "aeiou" else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural or regular}"


def count_all(numbers: Mapping[str, int]) -> str:
    """Format plural names and their numbers, zeros left out: ``2 conversations, 1 summary``."""
    singular = {"summaries": "summary"}
    return ", ".join(count(number, singular.get(name, name[:-1]), name) for name, number in numbers.items() if number)


def seconds(duration_s: float) -> str:
    """Format ``0.4 s``, ``12 s``, ``1 m 40 s``."""
    if duration_s < 10:
        return f"{duration_s:.1f} s"
    minutes, rest = divmod(round(duration_s), 60)
    return f"{minutes} m {rest:02d} s" if minutes else f"{rest} s"


def size(count_bytes: int) -> str:
    """Format ``812 B``, ``24 kB``, ``1.3 MB``."""
    if count_bytes < 1000:
        return f"{count_bytes} B"
    for unit, factor in (("kB", 1e3), ("MB", 1e6), ("GB", 1e9)):
        if count_bytes < factor * 1000 or unit == "GB":
            number = count_bytes / factor
            break
    return f"{number:.1f} {unit}" if number < 10 else f"{number:,.0f} {unit}"


def cost(calls: int, tokens: int, dollars: float | None) -> str:
    """Format ``3 model calls, 4,100 tokens, $0.0021``."""
    if not calls:
        return "no model calls"
    price = "price unknown" if dollars is None else f"${dollars:,.4f}"
    return f"{count(calls, 'model call')}, {count(tokens, 'token')}, {price}"


def day(at: datetime | None) -> str:
    """Format ``14 Mar 2026`` (UTC)."""
    if at is None:
        return "?"
    at = at.astimezone(UTC)
    return f"{at.day} {_MONTHS[at.month - 1]} {at.year}"


def minute(at: datetime | None) -> str:
    """Format ``14 Mar 2026, 19:02 UTC``."""
    return "?" if at is None else f"{day(at)}, {at.astimezone(UTC):%H:%M} UTC"


def days(first: datetime | None, last: datetime | None) -> str:
    """Format ``14 Mar 2026``, or ``14 Mar – 2 Apr 2026`` for a longer time."""
    if first is None or last is None or day(first) == day(last):
        return day(first or last)
    start = day(first)
    return f"{start[:-5] if first.year == last.year else start} – {day(last)}"


def dated(fact: Fact) -> str:
    """Format ``since 2020``, ``since Mar 2026``, ``as of 14 Mar 2026, until 20 Mar 2026``, or ``on 14 Mar 2026``."""
    said, when = fact.dated
    year, _, rest = when.partition("-")
    until = f", until {day(fact.last_day)}" if fact.last_day else ""
    return (
        f"{said} {day(fact.valid_from) if '-' in rest else f'{_MONTHS[int(rest) - 1]} {year}' if rest else year}{until}"
    )


def valid_time(fact: Fact) -> str:
    """Format ``14 Mar 2026 → now``, with the time of day where both ends are on the same day."""
    if fact.valid_to is None:
        return f"{day(fact.valid_from)} → now"
    if day(fact.valid_from) == day(fact.valid_to):
        return f"{minute(fact.valid_from)[:-4]} → {fact.valid_to.astimezone(UTC):%H:%M} UTC"
    return f"{day(fact.valid_from)} → {day(fact.valid_to)}"


def fact_address(fact: Fact) -> str:
    """Format the address of a fact as ``holdfast history`` takes it: ``home lives_in``."""
    if fact.kind != "attribute":
        return fact.kind
    return f"{fact.category} {fact.key}" if fact.key and fact.cardinality != "exclusive" else fact.category


def fact_value(fact: Fact) -> str:
    """Format the value, the key of a yes-or-no value, or the whole sentence."""
    if fact.kind != "attribute":
        return one_line(fact.text)
    if fact.value == "true":
        return one_line(fact.key.replace("_", " "))
    if fact.value == "false":
        return "not " + one_line(fact.key.replace("_", " "))
    return one_line(fact.value)


def fact_label(fact: Fact) -> str:
    """Format what the value is of: ``dietary``, ``home, lives in``, or ``luna: allergy`` for another subject."""
    words = fact.category.replace("_", " ")
    if (
        fact.kind == "attribute"
        and fact.key
        and fact.cardinality != "exclusive"
        and fact.value not in ("true", "false")
    ):
        words += ", " + fact.key.replace("_", " ")
    if fact.kind != "attribute":
        words = fact.kind
    return one_line(words if fact.subject == "self" else f"{fact.subject}: {words}")


def _visible(found: re.Match[str]) -> str:
    point = ord(found.group())
    if point < 0x100:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def _escaped(found: re.Match[str]) -> str:
    return json.dumps(found.group())[1:-1]
