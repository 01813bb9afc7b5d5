"""Validation, redaction and indexing of callers' messages, before anything is stored.  Pure."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from ..clock import to_ms
from ..text.terms import dated_terms, signals
from ..text.tokens import MESSAGE_OVERHEAD_TOKENS, count_tokens
from ..text.validate import MessageLike, checked_messages
from ..types import Detector, Message
from . import redact


@dataclass(frozen=True, slots=True)
class PreparedMessage:
    """
    A message ready to be stored, with its index terms; ``dated``: the caller gave the time.

    ``discarded`` counts by kind what was found in it that must not be remembered; none of it is
    among the terms.
    """

    message: Message
    terms: Counter[str]
    signals: int
    dated: bool
    discarded: Counter[str] = field(default_factory=Counter)


def prepare(
    given: MessageLike | Sequence[MessageLike],
    *,
    now: datetime,
    max_chars: int,
    language: str | None = None,
    detectors: Sequence[Detector] = (),
    redact_messages: bool = False,
) -> list[PreparedMessage]:
    """
    Validate and clean one message or a list of them.

    What a message may be: see `checked_messages`.  With *redact_messages* what must not be
    remembered is taken out of the message itself, otherwise only out of what is made from it;
    *detectors* find more of it.

    Raises:
        BadInput: says which message (from 0) and what is wrong with it.
        TooLarge: its content is longer than *max_chars*.
    """
    found = []
    for message, dated in checked_messages(given, now=now, max_chars=max_chars):
        counts = redact.count_secrets(message.content, detectors)
        kept = redact_message(message, detectors) if redact_messages else message
        found.append(replace(index_message(kept, now, language, detectors), dated=dated, discarded=counts))
    return found


def index_message(
    message: Message, now: datetime, language: str | None, detectors: Sequence[Detector]
) -> PreparedMessage:
    """Return a checked message with its index terms, none of them from a secret."""
    text = redact.mask_secrets(message.content, detectors)
    return PreparedMessage(message, dated_terms(text, message.at or now, language), signals(text), dated=True)


def redact_message(message: Message, detectors: Sequence[Detector]) -> Message:
    """Return the message without secrets in its content and its meta."""
    content = redact.redact_secrets(message.content, detectors)
    meta = redact.redact_value(dict(message.meta), detectors)
    if content == message.content and meta == message.meta:
        return message
    return replace(message, content=content, meta=meta, tokens=count_tokens(content) + MESSAGE_OVERHEAD_TOKENS)


def body_digest(prepared: Sequence[PreparedMessage]) -> str:
    """Hash the caller's input with SHA-256, without times that the clock gave."""
    body = [
        [p.message.role, p.message.content, p.message.name, _ms(p.message) if p.dated else None, dict(p.message.meta)]
        for p in prepared
    ]
    return hashlib.sha256(json.dumps(body, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def _ms(message: Message) -> int | None:
    return to_ms(message.at) if message.at else None
