"""
What a model said, whatever it came in: text, a message, a response object, or a stream of chunks.  Pure.

Understood are the shapes of OpenAI (chat and responses), Anthropic, Google and LangChain, as
objects or as plain mappings.  What is not understood is ``None``, never an empty text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from ..types import Message

ReplyText = Callable[[Any], str | None]
"""A reply, or one chunk of it, as text; ``None`` where it holds none."""


def reply_message(reply: object) -> Message | None:
    """The assistant's message in a whole *reply*."""
    if isinstance(reply, str):
        return Message("assistant", reply)
    if isinstance(reply, Message):
        return reply
    choice = _first(_get(reply, "choices"))
    said = _get(choice, "message") if choice is not None else reply
    if isinstance(said, str):
        return Message("assistant", said)
    text = _text(said)
    calls = _calls(said)
    if text is None and not calls:
        return None
    return Message("assistant", text or "", meta={"tool_calls": calls} if calls else {})


def reported_usage(reply: object) -> tuple[str, int] | None:
    """``(model, tokens of the prompt)`` as the provider counted them, where *reply* or a chunk of it says so."""
    usage = _get(reply, "usage")
    for name in ("prompt_tokens", "input_tokens"):
        tokens = _get(usage, name)
        if isinstance(tokens, int) and tokens > 0:
            model = _get(reply, "model")
            return (model if isinstance(model, str) else "", tokens)
    return None


class Spoken:
    """
    The chunks of a stream, put together as they come.

    ``heard`` counts the chunks; `message` is ``None`` while none of them said anything.
    """

    def __init__(self, reply_text: ReplyText | None = None) -> None:
        self._reply_text = reply_text or _chunk_text
        self._texts: list[str] = []
        self._calls: dict[int, dict[str, Any]] = {}
        self.heard = 0
        self.usage: tuple[str, int] | None = None

    def add(self, chunk: object) -> None:
        """Take one more chunk."""
        self.heard += 1
        text = self._reply_text(chunk)
        if text is not None:
            self._texts.append(text)
        self.usage = reported_usage(chunk) or self.usage
        for part in _get(_get(_first(_get(chunk, "choices")), "delta"), "tool_calls") or ():
            self._add_call(part)

    def message(self) -> Message | None:
        """All that was said so far."""
        if not self._texts and not self._calls:
            return None
        calls = [self._calls[index] for index in sorted(self._calls)]
        return Message("assistant", "".join(self._texts), meta={"tool_calls": calls} if calls else {})

    def _add_call(self, part: object) -> None:
        """OpenAI sends a tool call in pieces: its id and name first, its arguments bit by bit."""
        index, function = _get(part, "index"), _get(part, "function")
        empty = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
        call = self._calls.setdefault(index if isinstance(index, int) else len(self._calls), empty)
        call["id"] = _get(part, "id") or call["id"]
        call["function"]["name"] += _get(function, "name") or ""
        call["function"]["arguments"] += _get(function, "arguments") or ""


def _chunk_text(chunk: object) -> str | None:
    if isinstance(chunk, str):
        return chunk
    choice = _first(_get(chunk, "choices"))
    if choice is not None:
        return _joined(_get(_get(choice, "delta"), "content"))
    delta = _get(chunk, "delta")
    if isinstance(delta, str):
        return delta if str(_get(chunk, "type")).endswith("output_text.delta") else None
    if delta is not None:
        return _joined(_get(delta, "text"))
    content = _joined(_get(chunk, "content"))
    if content is not None or _get(chunk, "type") is not None:
        return content
    return _joined(_get(chunk, "text"))


def _text(said: object) -> str | None:
    for name in ("content", "output_text", "text"):
        text = _joined(_get(said, name))
        if text is not None:
            return text
    return None


def _joined(content: object) -> str | None:
    """Text, or the text of the parts that hold some."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list | tuple):
        return None
    texts = [part if isinstance(part, str) else _get(part, "text") for part in content]
    found = [text for text in texts if isinstance(text, str)]
    return "".join(found) if found else None


def _calls(said: object) -> list[dict[str, Any]]:
    """Tool calls in OpenAI's shape, from OpenAI's, LangChain's or Anthropic's."""
    given = _get(said, "tool_calls")
    blocks = _get(said, "content")
    found = list(given) if isinstance(given, list | tuple) else []
    if not found and isinstance(blocks, list | tuple):
        found = [block for block in blocks if _get(block, "type") == "tool_use"]
    return [call for call in map(_call, found) if call["id"] and call["function"]["name"]]


def _call(given: object) -> dict[str, Any]:
    function = _get(given, "function")
    name = _get(function if function is not None else given, "name")
    arguments: Any = next(
        (a for a in (_get(function, "arguments"), _get(given, "args"), _get(given, "input")) if a is not None), {}
    )
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, default=str)
    return {"id": _get(given, "id") or "", "type": "function", "function": {"name": name or "", "arguments": text}}


def _get(value: object, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _first(values: object) -> Any:
    return values[0] if isinstance(values, list | tuple) and values else None
