"""What a context is made from, and what is remembered of its stable part."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..types import Fact, Hit, Message, Summary

Roll = Callable[[Sequence[Summary], Sequence[Message]], tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Material:
    """
    Everything that may go into one context of one conversation.

    ``messages`` are those that may be shown verbatim: all from ``messages_from`` (see
    `verbatim_from`) to the last, in order.  ``total_messages`` is the number of the last message.
    ``summaries``: the live ones of the conversation, of every level.  ``facts``: live and visible
    here.  ``hits``: recalled for this question, best first; at most ``recall_limit`` of those that
    are not shown anyway are taken.  ``query`` is the user's next message.
    ``notes`` says of a message (conversation, seq) what replaced it.

    ``opening``: system messages before ``messages`` that open the conversation.  ``roll`` makes one
    text of summaries and of the messages after them, and says who wrote it; without it, what no
    summary tells is not summarised on the spot.
    """

    conversation: str
    messages: Sequence[Message]
    total_messages: int
    summaries: Sequence[Summary] = ()
    facts: Sequence[Fact] = ()
    hits: Sequence[Hit] = ()
    query: str | None = None
    notes: Mapping[tuple[str, int], str] = field(default_factory=dict)
    messages_from: int = 0
    recall_limit: int | None = None
    opening: Sequence[Message] = ()
    roll: Roll | None = None

    @property
    def first_given(self) -> int:
        """The number from which messages were loaded; one that is missing after it does not exist."""
        if self.messages_from:
            return self.messages_from
        return self.messages[0].seq if self.messages else self.total_messages + 1


@dataclass(frozen=True, slots=True)
class Prefix:
    """
    The stable part of one context: its digest, and ids and digests of its items, without any text.

    ``manifest`` is JSON-able; `dumps` and `loads` are what a store keeps of it.
    """

    sha256: str
    manifest: Mapping[str, Any]

    def dumps(self) -> str:
        """The manifest as JSON text."""
        return json.dumps(self.manifest, separators=(",", ":"), sort_keys=True)

    @classmethod
    def loads(cls, sha256: str, manifest: str) -> Prefix:
        """The inverse of `dumps`."""
        return cls(sha256, json.loads(manifest))


def digest(text: str) -> str:
    """A short fingerprint that shows whether something changed."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
