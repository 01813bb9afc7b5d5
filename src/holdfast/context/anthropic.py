"""OpenAI-shaped messages → the request of Anthropic's Messages API.  Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_NOT_ID = re.compile(r"[^a-zA-Z0-9_-]")
_EMPTY = "(empty)"
_OPENING = "(earlier messages are not shown)"

Block = dict[str, Any]


def anthropic_request(messages: Sequence[Mapping[str, Any]], stable: int) -> dict[str, Any]:
    """
    ``{"system": [blocks], "messages": [...]}``; ``system`` only when there is any.

    System messages among the first *stable* become system blocks; a later one was part of the
    conversation and is shown in it.  The last block that comes from the first *stable* messages
    carries ``cache_control``.
    """
    system: list[Block] = []
    turns: list[dict[str, Any]] = []
    breakpoint: Block | None = None
    for index, message in enumerate(messages):
        if index < stable and message["role"] in ("system", "developer"):
            system.append({"type": "text", "text": _text(message.get("content"))})
            breakpoint = system[-1]
            continue
        role = "assistant" if message["role"] == "assistant" else "user"
        blocks = _blocks(message)
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"].extend(blocks)
        else:
            turns.append({"role": role, "content": blocks})
        if index < stable:
            breakpoint = blocks[-1]
    if breakpoint is not None:
        breakpoint["cache_control"] = {"type": "ephemeral"}
    if turns and turns[0]["role"] == "assistant":
        turns.insert(0, {"role": "user", "content": [{"type": "text", "text": _OPENING}]})
    if turns and turns[-1]["role"] == "assistant" and turns[-1]["content"][-1]["type"] == "text":
        last = turns[-1]["content"][-1]  # the API refuses an ending in white space
        last["text"] = last["text"].rstrip() or _EMPTY
    return {"system": system, "messages": turns} if system else {"messages": turns}


def _blocks(message: Mapping[str, Any]) -> list[Block]:
    content = message.get("content")
    if message["role"] == "tool":
        return [{"type": "tool_result", "tool_use_id": _id(message["tool_call_id"]), "content": _text(content)}]
    calls = [_tool_use(call) for call in message.get("tool_calls", ())]
    if calls and not (content or "").strip():
        return calls
    text = _text(content)
    if message["role"] == "user" and message.get("name"):
        text = f"{message['name']}: {text}"  # the API has no field for it
    return [{"type": "text", "text": text}, *calls]


def _tool_use(call: Mapping[str, Any]) -> Block:
    function = call["function"]
    return {
        "type": "tool_use",
        "id": _id(call["id"]),
        "name": _id(function["name"])[:128],
        "input": _input(function["arguments"]),
    }


def _input(arguments: str) -> dict[str, Any]:
    try:
        loaded = json.loads(arguments or "{}")
    except ValueError:
        return {"arguments": arguments}
    return loaded if isinstance(loaded, dict) else {"arguments": loaded}


def _text(content: str | None) -> str:
    return content if content and content.strip() else _EMPTY


def _id(text: str) -> str:
    return _NOT_ID.sub("_", text) or "_"
