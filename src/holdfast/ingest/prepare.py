"""Callers' messages, checked and cleaned before anything is stored.  Pure."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ..clock import to_ms
from ..incoming import MessageLike, checked_messages
from ..text.signals import signals
from ..text.terms import dated_terms
from ..types import Message


@dataclass(frozen=True, slots=True)
class Prepared:
    """A message ready to be stored, with its index terms; ``dated``: the caller gave the time."""

    message: Message
    terms: Counter[str]
    signals: int
    dated: bool


def prepare(
    given: MessageLike | Sequence[MessageLike], *, now: datetime, max_chars: int, language: str | None = None
) -> list[Prepared]:
    """
    Check and clean one message or a list of them.

    What a message may be: see `checked_messages`.

    Raises:
        BadInput: says which message (from 0) and what is wrong with it.
        TooLarge: its content is longer than *max_chars*.
    """
    return [
        Prepared(message, dated_terms(message.content, message.at or now, language), signals(message.content), dated)
        for message, dated in checked_messages(given, now=now, max_chars=max_chars)
    ]


def body_digest(prepared: Sequence[Prepared]) -> str:
    """SHA-256 over what the caller sent; a time that the clock gave is not part of it."""
    body = [
        [p.message.role, p.message.content, p.message.name, _ms(p.message) if p.dated else None, dict(p.message.meta)]
        for p in prepared
    ]
    return hashlib.sha256(json.dumps(body, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def _ms(message: Message) -> int | None:
    return to_ms(message.at) if message.at else None
