"""
The text, the tool calls and the usage of replies, whole or in chunks.

It knows the shapes of OpenAI (chat and responses), Anthropic, Google and LangChain, as objects or mappings.  A shape that is
not known gives ``None``, never an empty text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ...text import dataclass
from ...types import Message, ReplyUsage

ReplyText = Callable[[Any], str | None]
"""Returns the text of a reply, or of one chunk of it; ``None`` where it holds none."""

OUTPUT_TOKENS = ("completion_tokens", "output_tokens", "candidates_token_count", "candidatesTokenCount")


def reply_message(reply: object) -> Message | None:
    """Return the assistant's message in a whole *reply*."""
    if isinstance(reply, str):
        return Message("assistant", reply)
    if isinstance(reply, Message):
        return reply
    choice = _first(get_part(reply, "choices"))
    message = get_part(choice, "message") if choice is not None else reply
    if isinstance(message, str):
        return Message("assistant", message)
    text = _message_text(message)
    calls = _tool_calls(message)
    if text is None and not calls:
        return None
    return Message("assistant", text or "", meta={"tool_calls": calls} if calls else {})


def reported_usage(reply: object) -> ReplyUsage | None:
    """Return the tokens as the provider counted them, where *reply* or a chunk reports them."""
    reply, usage = _usage_part(reply)
    whole = _tokens(usage, "prompt_tokens", "prompt_token_count", "promptTokenCount")  # with what a cache held
    asked = whole or _tokens(usage, "input_tokens")
    if not asked:
        return None
    parts = ("prompt_tokens_details", "input_tokens_details", "input_token_details")  # OpenAI's two, LangChain's
    details = next((found for part in parts if (found := get_part(usage, part))), None)
    hit = ("cached_content_token_count", "cachedContentTokenCount", "prompt_cache_hit_tokens")  # Google's, DeepSeek's
    within = _tokens(details, "cached_tokens", "cache_read") or _tokens(usage, *hit)
    read, written = _tokens(usage, "cache_read_input_tokens"), _tokens(usage, "cache_creation_input_tokens")
    cached = min(asked, within or read) if whole else min(asked, within) or read
    asked += 0 if whole else read + written  # Anthropic counts them beside its input, gateways within the prompt
    names = (get_part(reply, part) for part in ("model", "model_version", "modelVersion"))
    model, said = next((name for name in names if name), ""), _tokens(usage, *OUTPUT_TOKENS)
    return ReplyUsage(model if isinstance(model, str) else "", asked, said, cached)


def _usage_part(reply: object) -> tuple[object, Any]:
    """Return what reports the usage, and the usage: the reply, or the message or the response that an event holds."""
    for part in (reply, get_part(reply, "message"), get_part(reply, "response")):
        usage = get_part(part, "usage") or get_part(part, "usage_metadata") or get_part(part, "usageMetadata")
        if usage:
            return part, usage
    return reply, None


def _tokens(usage: object, *names: str) -> int:
    found = (get_part(usage, name) for name in names)
    return next((count for count in found if isinstance(count, int) and not isinstance(count, bool) and count > 0), 0)


class StreamedReply:
    """A reply put together from the chunks of a stream."""

    def __init__(self, reply_text: ReplyText | None = None) -> None:
        self._reply_text = reply_text or _chunk_text
        self._texts: list[str] = []
        self._calls: dict[int, dict[str, Any]] = {}
        self.chunk_count = 0
        self.usage: ReplyUsage | None = None

    def add(self, chunk: object) -> None:
        """Add the next chunk."""
        self.chunk_count += 1
        text = self._reply_text(chunk)
        if text is not None:
            self._texts.append(text)
        self._add_usage(chunk)
        for piece in _call_pieces(chunk):
            self._add_call(piece)

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._texts)

    def message(self) -> Message | None:
        """Return the message so far; ``None`` while no chunk held text or a tool call."""
        calls = [self._calls[index] for index in sorted(self._calls)]
        calls = [call for call in calls if call["id"] and call["function"]["name"]]
        if not self._texts and not calls:
            return None
        for call in calls:
            call["function"]["arguments"] = call["function"]["arguments"] or "{}"  # Anthropic sends none for none
        return Message("assistant", self.text, meta={"tool_calls": calls} if calls else {})

    def _add_usage(self, chunk: object) -> None:
        """Add what a chunk reports; Anthropic counts the input at the start of a stream, and the output at its end."""
        found, said = reported_usage(chunk), _tokens(_usage_part(chunk)[1], *OUTPUT_TOKENS)
        if found is not None:
            self.usage = replace(found, model=found.model or (self.usage.model if self.usage else ""))
        elif said and self.usage is not None:
            self.usage = replace(self.usage, output_tokens=said)

    def _add_call(self, piece: CallPiece) -> None:
        empty = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
        call = self._calls.setdefault(piece.index if isinstance(piece.index, int) else len(self._calls), empty)
        call["id"] = piece.id or call["id"]
        call["function"]["name"] += piece.name or ""
        call["function"]["arguments"] += piece.arguments or ""


@dataclass(frozen=True, slots=True)
class CallPiece:
    """A piece of a tool call: most send its id and name first, its arguments bit by bit."""

    index: Any
    id: Any = None
    name: Any = None
    arguments: Any = None


def _call_pieces(chunk: object) -> Iterator[CallPiece]:
    """Yield the pieces of tool calls in a chunk of OpenAI, LangChain, Anthropic, or OpenAI's responses."""
    for part in get_part(get_part(_first(get_part(chunk, "choices")), "delta"), "tool_calls") or ():
        function = get_part(part, "function")
        index, arguments = get_part(part, "index"), get_part(function, "arguments")
        yield CallPiece(index, get_part(part, "id"), get_part(function, "name"), arguments)
    for part in get_part(chunk, "tool_call_chunks") or ():
        yield CallPiece(*(get_part(part, name) for name in ("index", "id", "name", "args")))
    kind, block = get_part(chunk, "type"), get_part(chunk, "content_block")
    delta, item = get_part(chunk, "delta"), get_part(chunk, "item")
    if kind == "content_block_start" and get_part(block, "type") == "tool_use":
        yield CallPiece(get_part(chunk, "index"), get_part(block, "id"), get_part(block, "name"))
    elif kind == "content_block_delta" and get_part(delta, "type") == "input_json_delta":
        yield CallPiece(get_part(chunk, "index"), arguments=get_part(delta, "partial_json"))
    elif kind == "response.output_item.done" and get_part(item, "type") == "function_call":
        index, arguments = get_part(chunk, "output_index"), get_part(item, "arguments")
        yield CallPiece(index, get_part(item, "call_id"), get_part(item, "name"), arguments)


def _chunk_text(chunk: object) -> str | None:
    if isinstance(chunk, str):
        return chunk
    choice = _first(get_part(chunk, "choices"))
    if choice is not None:
        return _join_parts(get_part(get_part(choice, "delta"), "content"))
    delta = get_part(chunk, "delta")
    if isinstance(delta, str):
        return delta if str(get_part(chunk, "type")).endswith("output_text.delta") else None
    if delta is not None:
        return _join_parts(get_part(delta, "text"))
    content = _join_parts(get_part(chunk, "content"))
    if content is not None or get_part(chunk, "type") is not None:
        return content
    return _join_parts(get_part(chunk, "text"))


def _message_text(message: object) -> str | None:
    for name in ("content", "output_text", "text"):
        text = _join_parts(get_part(message, name))
        if text is not None:
            return text
    output = get_part(message, "output")
    items = output if isinstance(output, list | tuple) else ()
    said = [_join_parts(get_part(item, "content")) for item in items if get_part(item, "type") == "message"]
    found = [text for text in said if text is not None]
    return "".join(found) if found else None


def _join_parts(content: object) -> str | None:
    """Return text as it is, or the joined text of those parts that hold some."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list | tuple):
        return None
    texts = [part if isinstance(part, str) else get_part(part, "text") for part in content]
    found = [text for text in texts if isinstance(text, str)]
    return "".join(found) if found else None


def _tool_calls(message: object) -> list[dict[str, Any]]:
    """Return tool calls in OpenAI's shape, from OpenAI's (chat and responses), LangChain's or Anthropic's."""
    given = get_part(message, "tool_calls")
    blocks = get_part(message, "content")
    found = list(given) if isinstance(given, list | tuple) else []
    if not found and isinstance(blocks, list | tuple):
        found = [block for block in blocks if get_part(block, "type") == "tool_use"]
    output = get_part(message, "output")
    if not found and isinstance(output, list | tuple):
        found = [item for item in output if get_part(item, "type") == "function_call"]
    return [call for call in map(_tool_call, found) if call["id"] and call["function"]["name"]]


def _tool_call(given: object) -> dict[str, Any]:
    function = get_part(given, "function")
    name = get_part(function if function is not None else given, "name")
    arguments: Any = next(
        (
            a
            for a in (
                get_part(function if function is not None else given, "arguments"),
                get_part(given, "args"),
                get_part(given, "input"),
            )
            if a is not None
        ),
        {},
    )
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, default=str)
    call_id = get_part(given, "call_id") or get_part(given, "id") or ""
    return {"id": call_id, "type": "function", "function": {"name": name or "", "arguments": text}}


def get_part(value: object, name: str) -> Any:
    """Return an item of a mapping, or an attribute; ``None`` when there is none."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _first(values: object) -> Any:
    return values[0] if isinstance(values, list | tuple) and values else None
