"""
A chat request as it came, and where something can be put into it.  Pure.

The body is never written anew: messages of ours are spliced into the client's own bytes, so that fields, numbers and
spaces that we know nothing of arrive as they were sent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from json.decoder import JSONDecoder
from typing import Any

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = JSONDecoder()

Inserted = tuple[int, Mapping[str, Any]]
"""Before which of the client's messages (their number: after the last), and what."""


class Unreadable(ValueError):
    """The body is no chat request that we understand; the upstream may."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """
    The body of one request.

    ``opening`` is the place behind the brace that opens it, ``starts`` are the places of its messages, ``closing`` is
    that of the bracket behind the last of them.
    """

    text: str
    fields: Mapping[str, Any]
    messages: Sequence[Mapping[str, Any]]
    opening: int
    starts: Sequence[int]
    closing: int

    def with_messages(self, inserted: Sequence[Inserted]) -> str:
        """The body with further messages, those for one place in their order; every other byte as it was."""
        parts, at = [], 0
        for index, message in sorted(inserted, key=lambda one: one[0]):
            written = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
            last = index >= len(self.starts)
            place = self.closing if last else self.starts[index]
            parts += [self.text[at:place], f",{written}" if last else f"{written},"]
            at = place
        return "".join([*parts, self.text[at:]])


def with_field(text: str, opening: int, name: str, value: str) -> str:
    """The JSON object *text*, which has fields, with one more in front; *opening* is the place behind its brace."""
    return f"{text[:opening]}{json.dumps(name)}:{json.dumps(value)},{text[opening:]}"


def read(body: bytes) -> ChatRequest:
    """
    Find the messages of a request.

    Raises:
        Unreadable: it is not JSON, or has no list of messages, each an object.
    """
    try:
        text = body.decode()
        return _scanned(text)
    except (ValueError, IndexError, RecursionError):
        raise Unreadable("the body is not a chat request") from None


def _scanned(text: str) -> ChatRequest:
    opening = _token(text, 0, "{")
    fields: dict[str, Any] = {}
    starts: list[int] = []
    closing, at = 0, opening
    while True:
        name, at = _DECODER.raw_decode(text, _token(text, at, '"') - 1)
        at = _token(text, at, ":")
        if name == "messages":
            fields[name], starts, closing, at = _list(text, at)
        else:
            fields[name], at = _DECODER.raw_decode(text, _after_space(text, at))
        at = _after_space(text, at)
        if text[at] != ",":
            break
        at += 1
    if text[at] != "}" or _after_space(text, at + 1) != len(text):
        raise Unreadable("the body is not one object")
    messages = fields.get("messages")
    if not messages or not all(isinstance(message, dict) for message in messages):
        raise Unreadable("the body has no messages")
    return ChatRequest(text, fields, messages, opening, starts, closing)


def _list(text: str, at: int) -> tuple[list[Any], list[int], int, int]:
    """``(items, where each begins, where the closing bracket stands, the place behind it)``."""
    items: list[Any] = []
    starts: list[int] = []
    at = _after_space(text, _token(text, at, "["))
    if text[at] == "]":
        return [], [], at, at + 1
    while True:
        at = _after_space(text, at)
        starts.append(at)
        item, at = _DECODER.raw_decode(text, at)
        items.append(item)
        at = _after_space(text, at)
        if text[at] == "]":
            return items, starts, at, at + 1
        at = _token(text, at, ",")


def _token(text: str, at: int, wanted: str) -> int:
    """The place behind the sign *wanted*, which must be next."""
    at = _after_space(text, at)
    if text[at] != wanted:
        raise Unreadable(f"{wanted} was expected")
    return at + 1


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()
