"""
The shapes in which programs send chats: OpenAI's chat completions and responses, Anthropic's messages.  Pure.

Each says where the messages of a request are, how one of them would be stored, and how one of ours looks among them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...context.result import anthropic_request
from ...integrations.calls.replies import reply_message
from ...text import dataclass
from ...text.validate import joined_text, replace_unstorable
from ...types import Message

_ROLES = {"user": "user", "assistant": "assistant", "tool": "tool"}
INSTRUCTIONS = ("system", "developer")

REFERS = "refers"  # in the meta of a message of which a request shows nothing but the ids of its items

Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Shape:
    """
    One shape of requests.

    ``path`` is behind the base address of the model's server, ``listed`` the field that holds the messages,
    ``instructed`` one that holds instructions beside them.  ``protocol`` decides which server is asked, and how errors
    look.
    """

    name: str
    path: str
    listed: str
    role: Callable[[Item], str]
    said: Callable[[Sequence[Item]], list[Message]]
    items: Callable[[Item], Sequence[Item]]
    instructed: str = ""
    protocol: str = "openai"

    def texts(self, fields: Mapping[str, Any], messages: Sequence[Item]) -> list[tuple[str, str]]:
        """Return the roles and texts of a request, its instructions first."""
        given = _text(fields.get(self.instructed)) if self.instructed else ""
        first = [("system", given)] if given else []
        return first + [(self.role(message), _text(message.get("content"))) for message in messages]


def said(raw: Item) -> Message | None:
    """
    Return one of the client's messages as it would be stored; ``None`` for instructions and what cannot be stored.

    Pictures, sound and files are left out; their kinds stand in the meta.
    """
    role = raw.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        return None
    content = raw.get("content")
    meta: dict[str, Any] = {}
    if isinstance(content, list):
        content, meta = _joined(content)
    calls, answers, name = raw.get("tool_calls"), raw.get("tool_call_id"), raw.get("name")
    if isinstance(calls, list) and calls:
        meta["tool_calls"] = calls
    if role == "tool":
        if not isinstance(answers, str) or not answers:
            return None
        meta["tool_call_id"] = answers
    text = replace_unstorable(content) if isinstance(content, str) else ""
    if role == "assistant" and not text and not meta:
        return None
    return Message(role, text, name if isinstance(name, str) and 0 < len(name) <= 200 else None, meta=meta)


def _joined(content: Sequence[Any]) -> tuple[str, dict[str, Any]]:
    """Return the text of the parts, and a meta that names the kinds of the others."""
    parts = [part for part in content if isinstance(part, Mapping)]
    text = joined_text(part["text"] for part in parts if isinstance(part.get("text"), str))
    kinds = sorted({str(part.get("type")) for part in parts if not isinstance(part.get("text"), str)})
    return text, {"left_out": kinds} if kinds else {}


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts: Sequence[Any] = content if isinstance(content, list) else ()
    return "\n".join(part["text"] for part in parts if isinstance(part, Mapping) and isinstance(part.get("text"), str))


def _role(raw: Item) -> str:
    return str(raw.get("role"))


def _chat_messages(items: Sequence[Item]) -> list[Message]:
    return [message for message in map(said, items) if message is not None]


def _response_role(raw: Item) -> str:
    return {"function_call": "assistant", "function_call_output": "tool"}.get(str(raw.get("type")), _role(raw))


def _response_messages(items: Sequence[Item]) -> list[Message]:
    """Return what the items of a response's input say; the calls of one answer are part of it, and so are references."""
    found: list[Message] = []
    for raw in items:
        one = _response_message(raw)
        if one is None:
            continue
        if one.meta.get(REFERS) and found and found[-1].meta.get(REFERS):
            found[-1] = replace(found[-1], meta={REFERS: [*found[-1].meta[REFERS], *one.meta[REFERS]]})
        elif one.meta.get("tool_calls") and found and found[-1].role == "assistant":
            calls = [*found[-1].meta.get("tool_calls", ()), *one.meta["tool_calls"]]
            found[-1] = replace(found[-1], meta={**found[-1].meta, "tool_calls": calls})
        else:
            found.append(one)
    return found


def _response_message(raw: Item) -> Message | None:
    kind, call_id = raw.get("type", "message"), raw.get("call_id")
    if kind == "item_reference" and isinstance(raw.get("id"), str):
        return Message("assistant", "", meta={REFERS: [raw["id"]]})
    if kind == "function_call":
        return reply_message({"output": [raw]})
    if kind == "function_call_output" and isinstance(call_id, str):
        return said({"role": "tool", "tool_call_id": call_id, "content": raw.get("output")})
    if kind == "message" and raw.get("role") == "assistant" and isinstance(raw.get("content"), list):
        return response_reply({"output": [{**raw, "type": "message"}]})
    return said(raw) if kind == "message" else None


def _response_items(message: Item) -> list[Item]:
    """Return one of our messages as items of a response's input."""
    content = message.get("content") or ""
    if message["role"] == "tool":
        return [{"type": "function_call_output", "call_id": message["tool_call_id"], "output": content}]
    calls = [
        {"type": "function_call", "call_id": call["id"], **{k: call["function"][k] for k in ("name", "arguments")}}
        for call in message.get("tool_calls", ())
    ]
    return [*([{"role": message["role"], "content": content}] if content or not calls else []), *calls]


def response_reply(given: Item) -> Message | None:
    """Return the reply in a whole response of OpenAI's."""
    output = given.get("output")
    items = [item for item in output if isinstance(item, Mapping)] if isinstance(output, list) else []
    texts = []
    for item in items:
        content = item.get("content") if item.get("type") == "message" else None
        for part in content if isinstance(content, list) else ():
            text = part.get("text", part.get("refusal")) if isinstance(part, Mapping) else None
            if isinstance(text, str):
                texts.append(text)
    called = reply_message({"output": items})
    calls = called.meta if called is not None else {}
    return Message("assistant", "".join(texts), meta=calls) if texts or calls else None


def _block_role(raw: Item) -> str:
    return "tool" if _role(raw) == "user" and _results(raw) else _role(raw)


def _results(raw: Item) -> list[Item]:
    content = raw.get("content")
    blocks = content if isinstance(content, list) else ()
    return [block for block in blocks if isinstance(block, Mapping) and block.get("type") == "tool_result"]


def _block_messages(items: Sequence[Item]) -> list[Message]:
    """Return what Anthropic's messages say: the results of tools are messages of their own."""
    found: list[Message] = []
    for raw in items:
        content = raw.get("content")
        if raw.get("role") == "assistant":
            one = reply_message({"content": content}) if isinstance(content, str | list) else None
            if one is not None and (one.content or one.meta):
                found.append(replace(one, content=replace_unstorable(one.content)))
            continue
        results = _results(raw)
        for result in results:
            given = {"role": "tool", "tool_call_id": result.get("tool_use_id"), "content": result.get("content")}
            found += _chat_messages([given])
        rest = [block for block in content if block not in results] if isinstance(content, list) else content
        if rest or not results:
            found += _chat_messages([{"role": raw.get("role"), "content": rest}])
    return found


def _block_items(message: Item) -> list[Item]:
    """Return one of our messages as Anthropic takes it."""
    return list(anthropic_request([message], 0)["messages"][-1:])


CHAT = Shape("chat", "/chat/completions", "messages", _role, _chat_messages, lambda message: [message])
RESPONSES = Shape(
    "responses", "/responses", "input", _response_role, _response_messages, _response_items, instructed="instructions"
)
MESSAGES = Shape(
    "messages",
    "/messages",
    "messages",
    _block_role,
    _block_messages,
    _block_items,
    instructed="system",
    protocol="anthropic",
)
