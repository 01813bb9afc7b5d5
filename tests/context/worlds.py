"""Conversations, summaries, facts and hits to assemble contexts from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from holdfast.text.terms import MESSAGE_OVERHEAD_TOKENS, count_tokens
from holdfast.types import Fact, Hit, Message, Summary

DAY = datetime(2025, 3, 1, 9, tzinfo=UTC)
CHAT = "c1"


def message(seq: int, content: str | None = None, role: str = "", **more) -> Message:
    role = role or ("user" if seq % 2 else "assistant")
    content = f"{role} says thing number {seq}" if content is None else content
    tokens = count_tokens(content) + MESSAGE_OVERHEAD_TOKENS
    return Message(role, content, seq=seq, conversation=CHAT, tokens=tokens, at=DAY + timedelta(minutes=seq), **more)


def talk(last: int, first: int = 1) -> list[Message]:
    return [message(seq) for seq in range(first, last + 1)]


def summary(start: int, end: int, level: int = 1, text: str | None = None, children: Sequence[str] = ()) -> Summary:
    return Summary(
        id=f"s{level}_{start}_{end}",
        level=level,
        start_seq=start,
        end_seq=end,
        exchanges=(end - start + 1) // 2,
        text=f"they talked about things {start} to {end}" if text is None else text,
        themes=(),
        concerns=(),
        actions=(),
        block=0,
        version=1,
        children=tuple(children),
        created_at=DAY,
        source="rules 1",
        conversation=CHAT,
    )


def tree(covered: int, chunk: int = 10, rollup: int = 3) -> list[Summary]:
    """All live summaries of a conversation whose first *covered* messages are in whole chunks."""
    found = [summary(start, start + chunk - 1) for start in range(1, covered - chunk + 2, chunk)]
    level, below = 1, list(found)
    while len(below) >= rollup:
        level += 1
        groups = [below[i : i + rollup] for i in range(0, len(below) - rollup + 1, rollup)]
        below = [summary(g[0].start_seq, g[-1].end_seq, level, children=[s.id for s in g]) for g in groups]
        found += below
    return found


def fact(key: str, value: str = "yes", *, category: str = "likes", text: str | None = None, **more) -> Fact:
    given = {
        "id": f"f_{category}_{key}_{value}",
        "kind": "attribute",
        "subject": "self",
        "category": category,
        "key": key,
        "value": value,
        "text": f"The user likes {key} ({value})" if text is None else text,
        "confidence": 0.9,
        "cardinality": "single",
        "lifetime": "state",
        "valid_from": DAY,
        "valid_to": None,
        "recorded_at": DAY,
        "superseded_by": None,
        "evidence": (),
        "strength": 1.0,
        "last_used_at": None,
        "uses": 0,
        "source": "rules 1",
    }
    return Fact(**{**given, **more})


def hit(
    seq: int, text: str = "recalled words", *, kind="message", conversation: str = CHAT, id: str = "", **more
) -> Hit:
    return Hit(kind, id, text, 1.0, DAY, conversation, seq, speaker=more.pop("speaker", "user"), **more)
