"""
One summary of a whole conversation without a model, kept short however long it gets.  Pure.

Messages are summarised in blocks of about ten, three summaries of a level make one of the next,
and the few that are left over are told as one text.  So a summary goes on from where it stood, and
the first messages weigh as much as the last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ..types import Message, RollingSummary, Summary
from .draft import SOURCE, SummaryDraft
from .summarize import summarize_chunk, summarize_level

BLOCK_MESSAGES = 10
ROLL_UP = 3
EPOCH = datetime.fromtimestamp(0, UTC)
_KEPT = ("level", "start_seq", "end_seq", "exchanges", "text", "themes", "concerns", "actions")


def roll(summaries: Sequence[Summary], messages: Sequence[Message]) -> tuple[str, str]:
    """``(text, source)``: *summaries*, oldest first, and the *messages* after them as one text."""
    told = list(summaries)
    told += [_summary(1, block[0].seq, block[-1].seq, summarize_chunk(block)) for block in blocks(messages)]
    return (told[0].text if len(told) == 1 else summarize_level(told).text if told else ""), SOURCE


def extend(before: RollingSummary, messages: Sequence[Message], through: int) -> RollingSummary:
    """
    The summary of the first *through* of *messages*, from the one of fewer of them.

    ``parts`` hold what is told of whole blocks; the messages after them are read again.
    """
    parts = [_loaded(part) for part in before.parts] if before.source == SOURCE else []
    closed = parts[-1].end_seq if parts else 0
    rest: list[Summary] = []
    for block in blocks(messages[closed:through]):
        draft = summarize_chunk(block)
        rest.append(_summary(1, closed + 1, closed + len(block), draft))
        closed += len(block)
        if len(block) >= BLOCK_MESSAGES:
            parts = _rolled_up([*parts, rest.pop()])
    told = [*parts, *rest]
    text = told[0].text if len(told) == 1 else summarize_level(told).text if told else ""
    return RollingSummary(text, through, SOURCE, tuple(_dumped(part) for part in parts))


def blocks(messages: Sequence[Message]) -> list[Sequence[Message]]:
    """*messages* in blocks of ten or a few more, each up to the next user message; the last may be shorter."""
    starts = [0]
    for index, message in enumerate(messages):
        if message.role == "user" and index - starts[-1] >= BLOCK_MESSAGES:
            starts.append(index)
    ends = [*starts[1:], len(messages)]
    return [messages[start:end] for start, end in zip(starts, ends, strict=True) if end > start]


def _rolled_up(parts: list[Summary]) -> list[Summary]:
    """*parts* with every three of one level at the end made into one of the next."""
    while len(parts) >= ROLL_UP and len({part.level for part in parts[-ROLL_UP:]}) == 1:
        last = parts[-ROLL_UP:]
        higher = _summary(last[0].level + 1, last[0].start_seq, last[-1].end_seq, summarize_level(last))
        parts = [*parts[:-ROLL_UP], higher]
    return parts


def _summary(level: int, start: int, end: int, draft: SummaryDraft) -> Summary:
    return Summary(
        id=f"{level} {start}-{end}",
        level=level,
        start_seq=start,
        end_seq=end,
        exchanges=draft.exchanges,
        text=draft.text,
        themes=draft.themes,
        concerns=draft.concerns,
        actions=draft.actions,
        block=0,
        version=1,
        children=(),
        created_at=EPOCH,
        source=draft.source,
    )


def _dumped(part: Summary) -> dict[str, Any]:
    return {name: list(value) if isinstance(value := getattr(part, name), tuple) else value for name in _KEPT}


def _loaded(data: Mapping[str, Any]) -> Summary:
    themes, concerns, actions = (tuple(data[name]) for name in ("themes", "concerns", "actions"))
    draft = SummaryDraft(data["text"], themes, concerns, actions, data["exchanges"], SOURCE)
    return _summary(data["level"], data["start_seq"], data["end_seq"], draft)
