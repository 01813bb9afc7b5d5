"""
Which messages of a request are new, and which are stored already.  Pure.

Clients of OpenAI's protocol send the whole conversation every time.  New is what follows the last answer; what
comes before it was said in earlier requests, or was never meant for this memory, and is not stored a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...integrations.callable import INCOMPLETE
from ...text.validate import joined_text, replace_unstorable
from ...types import Message

_ROLES = {"user": "user", "assistant": "assistant", "tool": "tool"}
LOOKED_BACK = 8  # messages before the new ones that are compared

Same = Callable[[str, str], bool]
"""Whether a text that was sent is one that was stored."""


def said(raw: Mapping[str, Any]) -> Message | None:
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
        parts = [part for part in content if isinstance(part, Mapping)]
        content = joined_text(part["text"] for part in parts if isinstance(part.get("text"), str))
        kinds = sorted({str(part.get("type")) for part in parts if not isinstance(part.get("text"), str)})
        if kinds:
            meta["left_out"] = kinds
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


def split(messages: Sequence[Mapping[str, Any]]) -> tuple[list[Message], list[Message]]:
    """Return ``(what was said before, the new input)`` of a request; instructions are in neither."""
    known = [message for message in map(said, messages) if message is not None]
    last = max((index for index, message in enumerate(known) if message.role == "assistant"), default=-1)
    return known[: last + 1], known[last + 1 :]


def stored(before: Sequence[Message], new: Sequence[Message], tail: Sequence[Message], same: Same) -> Sequence[Message]:
    """
    Return the stored messages that the first of *new* are, where *tail* are the store's last ones.

    They are when they wait there for an answer: the request is tried again, or goes on from one that failed.  And they
    are, all of them, when they were answered and the client asks for another answer: what it shows *before* them fits
    the store before they were asked better than the store as it is now.
    """
    answers = [i for i, m in enumerate(tail) if m.role == "assistant" and not m.meta.get(INCOMPLETE)]
    waiting = [m for m in tail[answers[-1] + 1 if answers else 0 :] if m.role != "assistant"]
    for count in range(min(len(waiting), len(new)), 0, -1):
        if _agree(new[:count], waiting[-count:], same):
            return waiting[-count:]
    if not waiting and before and new and _agree(new, tail[-len(new) - 1 : -1], same):
        again = _fit(before, tail[: -len(new) - 1], same)
        if again > _fit(before, tail, same):
            return tail[-len(new) - 1 : -1]
    return ()


def goes_on(before: Sequence[Message], tail: Sequence[Message], same: Same) -> bool:
    """Whether a conversation that ends with *tail* is the one of which a client shows *before*."""
    wanted = [message for message in before if message.role != "tool"][-2:]
    for end in range(len(tail), 0, -1):
        here = [message for message in tail[:end] if message.role != "tool"][-len(wanted) :]
        if wanted and _agree(wanted, here, same):
            return True
    return False


def shown_from(before: Sequence[Message], tail: Sequence[Message], same: Same) -> int | None:
    """Return the number of the message in *tail* with which *before* begins; ``None`` when it is not there."""
    for start in range(len(tail)):
        length = min(2, len(before), len(tail) - start)
        if length and _agree(before[:length], tail[start : start + length], same):
            return tail[start].seq
    return None


def _fit(before: Sequence[Message], stored: Sequence[Message], same: Same) -> int:
    """Count how many of the last messages agree."""
    fits = 0
    for ours, theirs in zip(reversed(before), reversed(stored), strict=False):
        if not _alike(ours, theirs, same):
            break
        fits += 1
    return fits


def _agree(sent: Sequence[Message], stored: Sequence[Message], same: Same) -> bool:
    return len(sent) == len(stored) and all(_alike(a, b, same) for a, b in zip(sent, stored, strict=True))


def _alike(sent: Message, stored: Message, same: Same) -> bool:
    if sent.role != stored.role:
        return False
    if sent.role == "assistant" and (sent.meta.get("tool_calls") or stored.meta.get("tool_calls")):
        return _call_ids(sent) == _call_ids(stored)
    if sent.role == "tool":
        return sent.meta.get("tool_call_id") == stored.meta.get("tool_call_id")
    a, b = sent.content.strip(), stored.content.strip()
    if stored.meta.get(INCOMPLETE) and a and b:
        return a.startswith(b) or b.startswith(a)
    return same(a, b)


def _call_ids(message: Message) -> list[Any]:
    calls = message.meta.get("tool_calls")
    return [call.get("id") if isinstance(call, Mapping) else None for call in calls or ()]
