"""A strategy over messages alone, without a memory behind them.  Pure."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from ..errors import BadInput
from ..incoming import MessageLike, checked_messages
from ..text.tokens import count_tokens
from ..types import Message, RollingSummary
from .budget import Count, Meter
from .material import Material
from .rolled import level_0
from .strategies import Layout, Strategy
from .turns import Turn

NO_TIME = datetime.fromtimestamp(0, UTC)


def choose(
    strategy: Strategy,
    messages: Sequence[Message],
    *,
    budget_tokens: int | None = None,
    summary: RollingSummary | None = None,
    count: Count | None = None,
) -> list[Message]:
    """
    Those of *messages* that *strategy* shows, after *summary* as one more message.

    What is shown whole is the message that was given.

    Raises:
        BadInput: the budget is below 1.
    """
    if budget_tokens is not None and budget_tokens < 1:
        raise BadInput(f"budget_tokens is {budget_tokens}; it must be at least 1")
    kept = summary if summary is not None and 0 < summary.through <= len(messages) else None
    material = Material(
        conversation="",
        messages=[replace(message, seq=seq) for seq, message in enumerate(messages, 1)],
        total_messages=len(messages),
        summaries=[replace(level_0(kept.text, 1, kept.through, kept.source), level=1)] if kept else (),
        messages_from=1,
    )
    room = sys.maxsize if budget_tokens is None else budget_tokens
    layout = strategy.lay_out(material, room, len(messages), Meter(count or count_tokens))
    told = [_summary(layout, strategy.memory_role, kept)] if kept and any(part.items for part in layout.stable) else []
    opening = [_shown(messages[seq - 1], sent) for turn in layout.opening for seq, sent in _pairs(turn)]
    return [*opening, *told, *(_shown(messages[seq - 1], sent) for turn in layout.turns for seq, sent in _pairs(turn))]


def checked(messages: Sequence[MessageLike]) -> list[Message]:
    """
    *messages* as values; a `Message` stays what it is.

    Raises:
        BadInput: one is neither a `Message` nor a mapping in OpenAI's shape.
    """
    found: list[Message] = []
    for given in messages:
        if isinstance(given, Message):
            found.append(given)
            continue
        message, dated = checked_messages(given, now=NO_TIME, max_chars=sys.maxsize)[0]
        found.append(message if dated else replace(message, at=None))
    return found


def _pairs(turn: Turn) -> Iterator[tuple[int, Mapping[str, Any]]]:
    return zip(turn.seqs, turn.messages, strict=True)


def _summary(layout: Layout, role: str, summary: RollingSummary) -> Message:
    text = "\n".join(line for part in layout.stable if part.items for line in part.lines)
    return Message(role, text, meta={"summary": {"through": summary.through, "source": summary.source}})


def _shown(message: Message, sent: Mapping[str, Any]) -> Message:
    """*message* itself when it is sent whole, else what is sent of it."""
    calls, content = sent.get("tool_calls"), sent.get("content") or ""
    had = message.meta.get("tool_calls")
    if (message.role, message.content) == (sent["role"], content) and (not had or calls):
        return message
    meta = {key: value for key, value in message.meta.items() if key not in ("tool_calls", "tool_call_id", "parts")}
    if calls:
        meta["tool_calls"] = calls
    if sent["role"] == "tool":
        meta["tool_call_id"] = sent["tool_call_id"]
    return replace(message, role=sent["role"], content=content, meta=meta, tokens=0)
