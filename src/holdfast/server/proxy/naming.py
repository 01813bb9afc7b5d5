"""
Whom a request is about, which conversation it belongs to, and what it asks of the memory.  Pure.

    the user            X-Memory-User, safety_identifier, user, metadata.user_id; a key for one user names that user
    the conversation    X-Memory-Conversation, metadata.conversation_id, conversation, previous_response_id
    no recall, no trace X-Memory-Recall: off, X-Memory-Store: off; X-Memory: off for both

Every header may also be written X-Holdfast-….  In headers, names are percent-encoded where they are not plain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from ..gate import Grant, named_by_header

_OFF = frozenset(("off", "no", "false", "0", "none"))


@dataclass(frozen=True, slots=True)
class Wanted:
    """``user``: ``None`` when nobody is named.  ``conversation``: ``None`` when it is to be found by what was said."""

    user: str | None
    conversation: str | None
    store: bool = True
    recall: bool = True


def wanted(fields: Mapping[str, Any], headers: Mapping[str, str], grant: Grant) -> Wanted:
    """What the *headers* and *fields* of a request ask, within what the key allows."""
    metadata = fields.get("metadata")
    inner = metadata if isinstance(metadata, Mapping) else {}
    body = (fields.get("safety_identifier"), fields.get("user"), inner.get("user_id"))
    conversation = fields.get("conversation")
    if isinstance(conversation, Mapping):
        conversation = conversation.get("id")
    places = (
        named_by_header(headers, "conversation"),
        inner.get("conversation_id"),
        conversation,
        fields.get("previous_response_id"),
    )
    neither = _is_off(headers.get("x-memory", headers.get("x-holdfast-memory")))
    return Wanted(
        user=grant.user or _first_name(body),
        conversation=_first_name(places),
        store=not neither and not _is_off(named_by_header(headers, "store")),
        recall=not neither and not _is_off(named_by_header(headers, "recall")),
    )


def header_name(name: str) -> str:
    """*name* as it stands in a header."""
    return quote(name, safe=" !#$&'()*+,/:;=?@[]^`{|}~")


def _first_name(values: tuple[Any, ...]) -> str | None:
    return next((value for value in values if isinstance(value, str) and value), None)


def _is_off(value: str | None) -> bool:
    return value is not None and value.strip().lower() in _OFF
