"""
A chat request: its bytes, its messages, and the options it sets for the memory.  Pure.

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
from urllib.parse import quote

from ..gate import Grant, named_by_header

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = JSONDecoder()

Inserted = tuple[int, Mapping[str, Any]]
"""Before which of the client's messages (their number: after the last), and what."""


class Unreadable(ValueError):
    """The body is no chat request that we can read; the upstream may."""


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
        """Return the body with *inserted* messages; every other byte stays as it was."""
        parts, at = [], 0
        for index, message in sorted(inserted, key=lambda one: one[0]):
            written = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
            last = index >= len(self.starts)
            place = self.closing if last else self.starts[index]
            parts += [self.text[at:place], f",{written}" if last else f"{written},"]
            at = place
        return "".join([*parts, self.text[at:]])


def with_field(text: str, opening: int, name: str, value: str) -> str:
    """Return the JSON object *text* with one more field in front; *opening* is the place behind its brace."""
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
    """Return ``(items, where each begins, the place of the closing bracket, the place behind it)``."""
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
    """Return the place behind the sign *wanted*, which must be next."""
    at = _after_space(text, at)
    if text[at] != wanted:
        raise Unreadable(f"{wanted} was expected")
    return at + 1


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


_OFF = frozenset(("off", "no", "false", "0", "none"))


@dataclass(frozen=True, slots=True)
class MemoryOptions:
    """The user and the conversation that a request names, ``None`` where it does not, and whether to store and recall."""

    user: str | None
    conversation: str | None
    store: bool = True
    recall: bool = True


def memory_options(fields: Mapping[str, Any], headers: Mapping[str, str], grant: Grant) -> MemoryOptions:
    """Read the options from the *headers* and *fields* of a request, within what the key allows."""
    metadata = fields.get("metadata")
    inner = metadata if isinstance(metadata, Mapping) else {}
    body = (fields.get("safety_identifier"), fields.get("user"), inner.get("user_id"))
    conversation = fields.get("conversation")
    if isinstance(conversation, Mapping):
        conversation = conversation.get("id")
    places = (
        named_by_header(headers, "conversation"),
        inner.get("conversation_id"),
        conversation,
        fields.get("previous_response_id"),
    )
    neither = _is_off(headers.get("x-memory", headers.get("x-holdfast-memory")))
    return MemoryOptions(
        user=grant.user or _first_name(body),
        conversation=_first_name(places),
        store=not neither and not _is_off(named_by_header(headers, "store")),
        recall=not neither and not _is_off(named_by_header(headers, "recall")),
    )


def header_name(name: str) -> str:
    """Encode *name* for a header."""
    return quote(name, safe=" !#$&'()*+,/:;=?@[]^`{|}~")


def _first_name(values: tuple[Any, ...]) -> str | None:
    return next((value for value in values if isinstance(value, str) and value), None)


def _is_off(value: str | None) -> bool:
    return value is not None and value.strip().lower() in _OFF
