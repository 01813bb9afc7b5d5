"""
Branches of a conversation: what a user left behind by editing, or by asking for another answer.

A message that was left behind keeps its row, with the role ``abandoned``; its words are in the meta.  It is no evidence
and no document, so contexts, searches, summaries and facts know nothing of it.  Where a branch comes back, its messages
are read again as edited ones are.  When something of the conversation is edited or erased, what was left behind there is
erased with it, as it may hold the same words; and so is, in every conversation, what holds a word of a forgotten fact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ..errors import NotFound
from ..ingest.append import ABANDONED, FOLLOWS
from ..scope import Scope
from ..store import MessageRow, ReadView, WriteView
from ..types import Message
from .erasure import Eraser, ErasureChanges
from .ledger import ERASED, restored


def beginning_of_branch(eraser: Eraser, scope: Scope, after: int) -> Callable[[WriteView], int]:
    """
    Return what makes message *after* the last one of the conversation, in a transaction, and returns its number.

    Everything that is not on the way to it is left behind; a message of another branch comes back with what it followed.
    It raises `NotFound` when there is no such message.
    """
    statements = not eraser.read_mode(scope)

    def begin(view: WriteView) -> int:
        eraser.change_within(view, partial(_leave, after=after))
        for seq in _missing(view, after):
            eraser.change_within(view, partial(_bring_back, seq=seq), reread=seq, statements=statements)
        return after

    return begin


def load_branches(view: ReadView, start_seq: int = 1, last: int | None = None) -> list[Message]:
    """Return messages of a conversation with their words, ``meta["abandoned"]`` in those that were left behind."""
    row = view.conversation()
    rows = view.message_rows(start_seq=max(start_seq, row.next_seq - last) if row and last is not None else start_seq)
    found = [row.message for row in rows if row.message.role != ERASED]
    return [
        replace(one := restored(message), meta={**one.meta, ABANDONED: True}) if message.role == ABANDONED else message
        for message in found
    ]


def _leave(view: ReadView, after: int) -> ErasureChanges:
    """Name the changes that leave behind what is not on the way to message *after*."""
    row = view.conversation()
    rows = view.message_rows() if row is not None else []
    on_the_way = _way_to(rows, after)
    behind = {
        one.message.seq: _left_behind(one.message)
        for one in rows
        if one.message.role not in (ERASED, ABANDONED) and one.message.seq not in on_the_way
    }
    return ErasureChanges({(row.subject, row.conversation): behind} if row is not None and behind else {}, branch=True)


def _missing(view: ReadView, after: int) -> list[int]:
    """Return the messages on the way to *after* that were left behind, the first one first."""
    rows = view.message_rows()
    on_the_way = _way_to(rows, after)
    return [one.message.seq for one in rows if one.message.role == ABANDONED and one.message.seq in on_the_way]


def _bring_back(view: ReadView, seq: int) -> ErasureChanges:
    row, found = view.conversation(), view.message_rows(start_seq=seq, end_seq=seq)
    if row is None or not found or found[0].message.role != ABANDONED:
        return ErasureChanges({})
    return ErasureChanges({(row.subject, row.conversation): {seq: restored(found[0].message)}}, branch=True)


def _way_to(rows: Sequence[MessageRow], after: int) -> set[int]:
    """
    Return the numbers of the messages that lead to message *after*, its own included.

    Raises:
        NotFound: there is no such message.
    """
    there = {row.message.seq: row.message for row in rows if row.message.role != ERASED}
    if after and after not in there:
        raise NotFound(f"there is no message {after} in this conversation", hint="load(abandoned=True) lists them")
    way, at = set[int](), after
    while at in there and there[at].role == ABANDONED:
        way.add(at)
        follows = restored(there[at]).meta.get(FOLLOWS)
        at = (
            follows
            if isinstance(follows, int) and 0 <= follows < at
            else max((seq for seq in there if seq < at), default=0)
        )
    return way | {seq for seq, message in there.items() if seq <= at and message.role != ABANDONED}


def _left_behind(message: Message) -> Message:
    kept: dict[str, Any] = {"role": message.role, "name": message.name, "content": message.content}
    kept |= {"tokens": message.tokens, "meta": dict(message.meta)}
    return replace(message, role=ABANDONED, name=None, content="", tokens=0, meta={ABANDONED: kept})
