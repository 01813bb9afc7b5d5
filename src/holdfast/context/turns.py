"""
Stored messages → the messages that are sent, tool calls together with their results.  Pure.

Providers refuse a call without its results and a result without its call.  A `Turn` is what must
be shown or left out as a whole: one message, or a call with all its results.  What the stored
conversation itself left unpaired is shown as words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..text.render import render_line
from ..text.tokens import MESSAGE_OVERHEAD_TOKENS
from ..types import Message
from .budget import TokenMeter, shorten_middle

_NOT_NAME = re.compile(r"[\s<|\\/>\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\U000e0000-\U000e0fff]+")
MAX_NAME_CHARS = 64
QUERY_SEQ = 0


@dataclass(frozen=True, slots=True)
class Turn:
    """
    Messages in OpenAI's shape that belong together, with the numbers of the stored ones.

    ``seqs`` is ``(0,)`` for the question that is not stored yet.  ``cut_seq`` is the message of
    which only a part is shown, -1 when all are whole.
    """

    seqs: tuple[int, ...]
    messages: tuple[Mapping[str, Any], ...]
    tokens: int
    role: str
    cut_seq: int = -1


def build_turns(messages: Sequence[Message], query: str | None, meter: TokenMeter) -> list[Turn]:
    """*messages* in order as turns, and *query* as the last one unless the user's last message is it."""
    asked = None if not query or _is_asked(messages, query) else query
    found: list[Turn] = []
    index = 0
    while index < len(messages):
        message = messages[index]
        calls = _calls(message)
        results = _results(messages, index, calls)
        after = index + 1 + len(results)
        answered = {m.meta.get("tool_call_id") for m in results}
        open_end = after == len(messages) and asked is None  # the results are still to come
        kept = calls if open_end else [call for call in calls if call["id"] in answered]
        found.append(_build_turn(message, kept, [c for c in calls if c not in kept], results, meter))
        index = after
    if asked is not None:
        sent = {"role": "user", "content": asked}
        found.append(Turn((QUERY_SEQ,), (sent,), meter.content(asked), "user"))
    return found


def shorten_turn(turn: Turn, room: int, meter: TokenMeter) -> Turn | None:
    """*turn* with its longest content cut so that it fits into *room*; ``None`` when that cannot be done."""
    longest = max(range(len(turn.messages)), key=lambda i: len(turn.messages[i]["content"] or ""))
    content = turn.messages[longest]["content"] or ""
    others = turn.tokens - meter.count(content)
    kept = shorten_middle(content, room - others, meter.count) if content and room > others else None
    if kept is None:
        return None
    messages = [dict(message) for message in turn.messages]
    messages[longest]["content"] = kept
    return replace(turn, messages=tuple(messages), tokens=others + meter.count(kept), cut_seq=turn.seqs[longest])


def last_exchanges(turns: Sequence[Turn], exchanges: int) -> tuple[int, int]:
    """
    Where the last *exchanges* exchanges begin, and where the last user message stands.

    Without any user message the last turn counts as one.
    """
    asked = [index for index, turn in enumerate(turns) if turn.role == "user"]
    if not asked:
        return max(0, len(turns) - 1), max(0, len(turns) - 1)
    return asked[-exchanges] if len(asked) >= exchanges else 0, asked[-1]


def _is_asked(messages: Sequence[Message], query: str) -> bool:
    """Whether *query* is the user's last message and nobody has answered it in words."""
    for message in reversed(messages):
        if message.role == "user":
            return message.content == query
        if message.role == "assistant" and not message.meta.get("tool_calls"):
            return False
    return False


def _calls(message: Message) -> list[dict[str, Any]]:
    if message.role != "assistant":
        return []
    given = message.meta.get("tool_calls")
    found: list[dict[str, Any]] = []
    for call in given if isinstance(given, list | tuple) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            continue
        if not isinstance(call.get("id"), str) or any(call["id"] == other["id"] for other in found):
            continue
        arguments = function.get("arguments")
        text = arguments if isinstance(arguments, str) else json.dumps(arguments if arguments is not None else {})
        found.append({"id": call["id"], "type": "function", "function": {"name": function["name"], "arguments": text}})
    return found


def _results(messages: Sequence[Message], index: int, calls: Sequence[Mapping[str, Any]]) -> list[Message]:
    waiting = {call["id"] for call in calls}
    found: list[Message] = []
    while waiting and (index := index + 1) < len(messages):
        answers = messages[index].meta.get("tool_call_id")
        if messages[index].role != "tool" or not isinstance(answers, str) or answers not in waiting:
            break
        waiting.discard(answers)
        found.append(messages[index])
    return found


def _build_turn(
    message: Message, kept: list[dict[str, Any]], lost: list[dict[str, Any]], results: list[Message], meter: TokenMeter
) -> Turn:
    first, tokens = _render_message(message, kept, lost, meter)
    sent = [first]
    for result in results:
        call_id = result.meta["tool_call_id"]
        sent.append({"role": "tool", "tool_call_id": call_id, "content": result.content})
        tokens += meter.message(result) + meter.count(call_id)
    return Turn((message.seq, *(m.seq for m in results)), tuple(sent), tokens, message.role)


def _render_message(
    message: Message, kept: list[dict[str, Any]], lost: list[dict[str, Any]], meter: TokenMeter
) -> tuple[dict[str, Any], int]:
    if message.role == "tool":
        words = f"Result of a tool call that is not shown: {render_line(message.content)}"
        return {"role": "user", "content": words}, meter.content(words)
    content, tokens = message.content, meter.message(message)
    if lost:
        names = ", ".join(_provider_name(call["function"]["name"]) for call in lost)
        content = f"{content}\n(called {names}; no result)".lstrip("\n")
        tokens = meter.count(content) + MESSAGE_OVERHEAD_TOKENS
    sent: dict[str, Any] = {"role": message.role, "content": content}
    if message.name and _provider_name(message.name):
        sent["name"] = _provider_name(message.name)
        tokens += meter.count(sent["name"])
    if kept:
        sent["content"] = content or None
        sent["tool_calls"] = kept
        tokens += meter.count(json.dumps(kept, ensure_ascii=False))
    return sent, tokens


def _provider_name(name: str) -> str:
    """A name as providers accept it: no white space, no brackets, nothing invisible, 64 characters."""
    return _NOT_NAME.sub("_", name).strip("_")[:MAX_NAME_CHARS]


@dataclass(frozen=True, slots=True)
class Verbatim:
    """The turns that are shown, in order, what they cost, and those for which no room was left."""

    turns: tuple[Turn, ...]
    tokens: int
    dropped: tuple[Turn, ...]


def choose_turns(
    turns: Sequence[Turn], *, exchanges: int, recent_messages: int, room: int, reserve: int, meter: TokenMeter
) -> Verbatim:
    """
    Spend *room* on *turns*: the last user message, what follows it, and then backwards without a hole.

    A turn of the last *exchanges* exchanges that does not fit is cut with a visible mark.  Messages
    older than the last *recent_messages* leave *reserve* tokens for what is recalled.
    """
    if not turns:
        return Verbatim((), 0, ())
    first, asked = last_exchanges(turns, exchanges)
    shown: dict[int, Turn] = {}
    spent = messages = 0
    for index in (asked, *range(len(turns) - 1, asked, -1), *range(asked - 1, -1, -1)):
        free = room - spent
        if index < first and messages >= recent_messages:
            free -= reserve
        turn: Turn | None = turns[index]
        if turns[index].tokens > free:
            turn = shorten_turn(turns[index], free, meter) if index >= first else None
        if turn is None:
            if index < asked:
                break
            continue
        shown[index] = turn
        spent += turn.tokens
        messages += len(turn.messages)
    chosen = tuple(shown[index] for index in sorted(shown))
    return Verbatim(chosen, spent, tuple(turn for index, turn in enumerate(turns) if index not in shown))
