"""
The items that a reader of another program's file yields: messages, memories, and what is left out, each with its place.

A place is the file's name, then keys and positions within it.  This module knows no store.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from ..errors import BadInput
from ..text import dataclass, expression

Place = tuple[str | int, ...]
SHAPE_ERRORS = (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError, OverflowError)
ROLES = {"human": "user", "ai": "assistant", "model": "assistant", "developer": "system", "function": "tool"}
OTHER_PERSON = "other"
"""The role of a speaker of whom the file does not say whether they are the user."""
NOBODY = "(unknown)"
"""The user of memories of which a file does not say whose they are: they are taken only by whoever asks for this user."""

MAX_TITLE_CHARS = 150
MAX_KEY_CHARS = 12
_LATEST_S = 4e9
_UUID = expression(r"[0-9a-f]{8}-[0-9a-f]{4}-", re.IGNORECASE)
_TOKEN = expression(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_ABOUT_THE_USER = expression(r"(?:the )?user (?=[a-z])", re.IGNORECASE)


@dataclass(slots=True)
class ImportedMessage:
    """One message as the fields of a line, of the other program's user *of*."""

    place: Place
    line: dict[str, Any]
    of: str = ""


@dataclass(frozen=True, slots=True)
class ImportedMemory:
    """One sentence that another program remembered, or an address with its value."""

    place: Place
    text: str
    id: str = ""
    at: datetime | None = None
    of: str = ""
    address: tuple[str, str, str] | None = None
    confidence: float = 1.0
    label: str = ""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Content that is not imported, with the reason."""

    place: Place
    why: str


@dataclass(frozen=True, slots=True)
class DamagedItem:
    """Content that cannot be read: the problem, and its fix."""

    place: Place
    problem: str
    fix: str = "mend it in the file, or leave such items out"


Item = ImportedMessage | ImportedMemory | LeftOut | DamagedItem


def read_each(
    place: Place, values: Iterable[Any], read: Callable[[Place, Any], Iterator[Item]], what: str = "message"
) -> Iterator[Item]:
    """Read every value; one that has another shape is damaged, and the others are read all the same."""
    for number, value in enumerate(values):
        yield from guarded((*place, number), value, read, what)


def guarded(
    place: Place, value: Any, read: Callable[[Place, Any], Iterator[Item]], what: str = "message"
) -> Iterator[Item]:
    """Read one value; it is damaged when it has another shape."""
    try:
        yield from read(place, value)
    except BadInput:
        raise  # about the whole file
    except UnicodeDecodeError:
        yield DamagedItem(place, f"it is not UTF-8, so it is no {what} that can be read", "save it as UTF-8")
    except SHAPE_ERRORS as error:
        yield DamagedItem(place, f"it does not have the shape of a {what} ({type(error).__name__})")


def memory_item(place: Place, text: Any, **more: Any) -> ImportedMemory | LeftOut:
    """Return a memory; one without words is left out.  "User likes tea" becomes "Likes tea", as facts are worded here."""
    if not isinstance(text, str):
        raise TypeError("the text of a memory")
    words = text.strip()
    if not words:
        return LeftOut(place, "a memory without text")
    shorter = _ABOUT_THE_USER.sub("", words, count=1) if _ABOUT_THE_USER.match(words) else words
    return ImportedMemory(place, shorter[:1].upper() + shorter[1:], **more)


def text_of(content: Any) -> str:
    """Return the text of a message's content: a string, or a list of parts of any of the usual shapes."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        content = [content]
    if content is None:
        return ""
    if not isinstance(content, list):
        raise TypeError("the content of a message")
    return "\n\n".join(text for part in content if (text := _part_text(part)).strip())


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping) or part.get("type") in ("thinking", "reasoning", "tool_use", "tool_result"):
        return ""
    text = part.get("text")
    text = text.get("value") if isinstance(text, Mapping) else text
    return text if isinstance(text, str) else ""


def role_of(role: Any) -> str:
    """Return the role in our words; another word stays as it is and is refused later."""
    return ROLES.get(str(role), str(role))


def iso_time(value: Any, zone: Any = UTC) -> str | None:
    """Return a time as ISO 8601: of seconds, milliseconds or nanoseconds since 1970, or of text; ``None`` for none."""
    if value is None or value == "" or isinstance(value, bool):
        return None
    if isinstance(value, str) and re.fullmatch(r"\d{9,19}(?:\.\d+)?", value):
        value = float(value)
    if isinstance(value, int | float):
        if not math.isfinite(value):
            raise ValueError("no time is infinite")
        while value > _LATEST_S:
            value /= 1000
        return datetime.fromtimestamp(value, UTC).isoformat() if value > 0 else None
    at = datetime.fromisoformat(str(value).strip().replace(" UTC", "+00:00"))
    return (at if at.tzinfo is not None else at.replace(tzinfo=zone)).isoformat()


def time_of(value: Any) -> datetime | None:
    """Return a time as `iso_time` reads it."""
    text = iso_time(value)
    return None if text is None else datetime.fromisoformat(text)


def title_of(name: object, key: object = "") -> str:
    """Return a conversation's name: printable, short, and unique by its key where titles are the same."""
    whole = "".join(letter for letter in str(name or "") if letter.isprintable()).strip() or "conversation"
    clean, short = whole[:MAX_TITLE_CHARS], str(key or "")
    if short == whole or not short:
        return clean if clean == whole else f"{clean} ({_digest(whole)})"
    return f"{clean} ({short[:8] if _UUID.match(short) else short if len(short) <= MAX_KEY_CHARS else _digest(short)})"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def show_place(place: Place, line: int | None = None) -> str:
    """Return a place as users read it: a file with its line where that is known."""
    name, *rest = place
    if line is not None:
        return f"{name}:{line}"
    if len(rest) == 2 and rest[0] == "line":
        return f"{name}:{rest[1]}"
    return f"{name}: " + " ".join(str(part) for part in rest) if rest else str(name)


def lines_in_json(raw: bytes, wanted: Iterable[Place]) -> dict[Place, int]:
    """Return the line of a JSON document on which each value at a place (without the file's name) begins."""
    places = set(wanted)
    deepest = max((len(place) for place in places), default=0)
    text = raw.decode("utf-8", "replace")
    breaks = [found.start() for found in re.finditer("\n", text)]
    found: dict[Place, int] = {}
    path: list[str | int] = []
    objects: list[bool] = []
    key_next = False
    for token in _TOKEN.finditer(text):
        word = token.group()
        if word in ("}", "]"):
            objects.pop()
            path.pop()
            key_next = False
        elif word == ",":
            if not objects:
                break
            if objects[-1]:
                key_next = True
            else:
                path[-1] = int(path[-1]) + 1
        elif word == ":":
            key_next = False
        elif key_next:
            if len(path) <= deepest:
                path[-1] = json.loads(word, strict=False)
        else:
            if len(path) <= deepest and (here := tuple(path)) in places and here not in found:
                found[here] = bisect_right(breaks, token.start()) + 1
                if len(found) == len(places):
                    break
            if word in ("{", "["):
                objects.append(word == "{")
                path.append("" if word == "{" else 0)
                key_next = word == "{"
    return found
