"""Search in the messages of one conversation: which ones contain a text, and where."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ....conversation import Conversation
from ....types import Message

HITS_A_PAGE = 50
READ = 1_000  # messages at a time
MAX_READ = 50_000  # of a longer conversation the rest is searched on the next page
AROUND = 70  # characters beside a hit


@dataclass(frozen=True, slots=True)
class MessageHit:
    """A message that contains the text: the words before it, the text as it is written there, and the words after."""

    seq: int
    speaker: str
    before: str
    found: str
    after: str


@dataclass(frozen=True, slots=True)
class MessageHits:
    """The hits of one page; ``after`` is the message behind which the next page begins, if there is one."""

    words: str
    hits: tuple[MessageHit, ...]
    after: int | None


def search_messages(chat: Conversation, words: str, messages: int, after: int = 0) -> MessageHits:
    """
    Return the messages that contain *words*, capitals or not, in order.

    Args:
        chat: the conversation.
        words: a text, not empty.
        messages: how many the conversation has.
        after: only messages behind this one.
    """
    pattern = re.compile(re.escape(words), re.IGNORECASE)
    hits: list[MessageHit] = []
    at, end = after + 1, min(messages, after + MAX_READ)
    while at <= end and (read := chat.load(start_seq=at, limit=READ)):
        for message in read:
            found = pattern.search(message.content) if message.seq <= end else None
            if found is None:
                continue
            if len(hits) == HITS_A_PAGE:
                return MessageHits(words, tuple(hits), hits[-1].seq)
            hits.append(_hit(message, found))
        at = read[-1].seq + 1
    return MessageHits(words, tuple(hits), end if end < messages else None)


def _hit(message: Message, found: re.Match[str]) -> MessageHit:
    begin, end = max(0, found.start() - AROUND), found.end() + AROUND
    before = ("…" if begin else "") + message.content[begin : found.start()]
    after = message.content[found.end() : end] + ("…" if end < len(message.content) else "")
    return MessageHit(message.seq, message.speaker, before, found[0], after)
