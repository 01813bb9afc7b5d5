"""
Which messages of a request are new, and which are stored already.  Pure.

Clients of OpenAI's protocol send the whole conversation every time.  New is what follows the last answer; what
comes before it was said in earlier requests, or was never meant for this memory, and is not stored a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from hashlib import sha256
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


class Continuation(IntEnum):
    """How a request goes on with a stored conversation, the surest first."""

    NEXT = 0  # all that it shows is all that is stored, to the end
    AGAIN = 1  # the last input, tried or answered again
    EDITED = 2  # another input in place of stored ones
    WINDOW = 3  # it shows the end of what is stored


def continuation(
    before: Sequence[Message],
    new: Sequence[Message],
    kept: Sequence[Message],
    same: Same,
    *,
    whole: bool = True,
    brought: str = "",
) -> Continuation | None:
    """
    Return how a request goes on with a conversation; ``None`` when it may be another one.

    Every earlier message that the request shows must be there, in order: its last exchange alone proves nothing, as two
    chats may open with the same words.  What only the store has are earlier versions of an input or an answer, or, with
    two of the user's messages shown, what a client no longer shows.

    Args:
        before: what the client shows of what was said, not empty.
        new: the new input.
        kept: the stored messages, up to the last one.
        same: whether two texts are the same.
        whole: *kept* begins with the first stored message.
        brought: `digest_of` what the client showed before the first stored message.
    """
    shown, theirs = _spoken(before), _spoken(kept)
    asked = sum(message.role == "user" for message in shown)
    for end in range(len(theirs), 0, -1):
        found = _aligned(shown, theirs[:end], same)
        if found is None:
            continue
        first, older = found
        again = _begins(theirs[end:], new, same)
        if digest_of(older) != brought and (older or first == 0):
            continue
        if first > 0 or not whole:  # the client leaves out the beginning
            return Continuation.WINDOW if asked > 1 and (again or end == len(theirs)) else None
        if end == len(theirs):
            return Continuation.NEXT
        return Continuation.AGAIN if again else Continuation.EDITED if asked > 1 else None
    return None


def digest_of(older: Sequence[Message]) -> str:
    """Return a digest of what was said before a conversation was stored; empty when the user said nothing there."""
    if not any(message.role == "user" for message in older):
        return ""
    lines = (f"{message.role}\0{message.content.strip()}\0" for message in _spoken(older))
    return sha256("".join(lines).encode()).hexdigest()[:12]


def _spoken(messages: Sequence[Message]) -> list[Message]:
    """Leave out tools and the calls to them, which clients often forget."""
    return [message for message in messages if message.role != "tool" and (message.content or message.role == "user")]


def _aligned(shown: Sequence[Message], kept: Sequence[Message], same: Same) -> tuple[int, Sequence[Message]] | None:
    """
    Return where in *kept* the shown messages begin, and those that are older; ``None`` when one of them is missing.

    The last of both must be the same.  Between two others the store may hold versions that were replaced.
    """
    at = len(kept) - 1
    for number in range(len(shown) - 1, -1, -1):
        if at < 0:
            return 0, shown[: number + 1]
        while number < len(shown) - 1 and at >= 0 and not _alike(shown[number], kept[at], same):
            at -= 1
        if at < 0 or not _alike(shown[number], kept[at], same):
            return None
        at -= 1
    return at + 1, ()


def _begins(kept: Sequence[Message], new: Sequence[Message], same: Same) -> bool:
    """Whether all inputs of the stored messages are the first of the new ones."""
    asked, theirs = ([message for message in some if message.role == "user"] for some in (new, kept))
    return 0 < len(theirs) <= len(asked) and _agree(asked[: len(theirs)], theirs, same)


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
