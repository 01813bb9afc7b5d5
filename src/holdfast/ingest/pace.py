"""
When a model shall read what nobody has read yet.  Pure.

Every few user messages, as long as one of them may state something; small talk waits three times as
long, and so saves calls.  A statement that the rules cannot read is read at once, unless that has been
done ahead of time before.  What was read sooner than due, also because a long silence began, is waited for
later, so that the number of calls stays what the setting says, give or take one.
"""

from __future__ import annotations

from dataclasses import replace

from ..store.values import ConversationRow

PATIENCE = 3  # so many times the setting is small talk waited for


def reading_due(row: ConversationRow, every: int) -> bool:
    """Whether the unread messages of a conversation are due, *every* so many user messages or ahead of time."""
    if row.unread_turns >= PATIENCE * every:
        return True
    if row.stated_seq <= row.read_seq:
        return False
    return row.unread_turns >= every + max(0, row.ahead_turns) // 2 or row.ahead_turns <= 0


def after_reading(row: ConversationRow, read_seq: int, turns: int, every: int) -> ConversationRow:
    """The conversation when *turns* user messages up to *read_seq* have been read."""
    ahead = max(-2 * every, min(2 * every, row.ahead_turns + every - turns))
    return replace(row, read_seq=read_seq, unread_turns=max(0, row.unread_turns - turns), ahead_turns=ahead)
