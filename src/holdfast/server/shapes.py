"""What requests hold and what lists answer; everything else is a value of the front door as it is."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from ..errors import BadInput
from ..types import ConsentState, Role

T = TypeVar("T")

Name = Annotated[str, Field(min_length=1, max_length=200)]
Words = Annotated[str, Field(min_length=1, max_length=10_000)]


class Body(BaseModel):
    """A request's body: a field that does not exist is refused, so that a typing error is not passed over."""

    model_config = ConfigDict(extra="forbid")


class NewMessage(BaseModel):
    """One message in OpenAI's shape; further fields are kept as its ``meta``."""

    model_config = ConfigDict(extra="allow")
    role: Literal["user", "assistant", "system", "tool"]
    content: Any = None
    name: str | None = None
    at: datetime | None = None


class Messages(Body):
    """One message or several, stored together."""

    messages: Annotated[list[NewMessage], Field(min_length=1, max_length=10_000)]


class Wording(Body):
    """Other words for a message."""

    content: Annotated[str, Field(max_length=4_000_000)]


class ContextFor(Body):
    """What a context is wanted for."""

    query: str | None = None
    budget_tokens: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    system: str | None = None


class SearchFor(Body):
    """What is looked for."""

    query: Words
    limit: Annotated[int, Field(ge=1, le=1_000)] = 10
    kinds: list[Literal["fact", "message", "summary"]] = ["fact", "message", "summary"]
    min_score: float | None = None
    conversation: Name | None = None
    explain: bool = False


class Told(Body):
    """A fact by hand: a sentence, or category, key and value."""

    text: Words | None = None
    category: Name | None = None
    key: Name | None = None
    value: Words | None = None
    confidence: Annotated[float, Field(ge=0, le=1)] = 1.0


class Value(Body):
    """What held instead."""

    value: Words


class Choice(Body):
    """What the person chooses; ``erase`` goes with ``opted-out``."""

    state: ConsentState
    erase: bool = True


class Topic(Body):
    """A category, or words that all occur in what is said."""

    topic: Words


class PromptText(Body):
    """A prompt in own words."""

    text: Annotated[str, Field(min_length=1, max_length=4_000)]


class KeyFor(Body):
    """Whom a key is for."""

    role: Role
    user: Name | None = None
    bot: Name | None = None
    subject: Name | None = None
    name: Annotated[str, Field(max_length=200)] = ""
    expires_at: datetime | None = None


class TokenFor(Body):
    """A short-lived key for a person to see and mend what is held about them."""

    user: Name
    subject: Name | None = None
    minutes: Annotated[int, Field(ge=1, le=1_440)] = 60


class Page(BaseModel, Generic[T]):
    """One page of a list; ``next_cursor`` is null on the last."""

    data: list[T]
    next_cursor: str | None = None


class Problem(BaseModel):
    """What went wrong, and what to do (RFC 9457)."""

    type: str
    title: str
    status: int
    code: str
    detail: str = ""
    hint: str = ""


class Health(BaseModel):
    """How the server is."""

    status: Literal["ok", "degraded"]
    version: str
    dead_jobs: int = 0
    overdue_jobs: int = 0


def page(items: Sequence[T], key: Callable[[T], Any], cursor: str | None, limit: int) -> Page[T]:
    """
    The *limit* items after *cursor*, by *key*; what comes and goes between two pages shifts nothing.

    Raises:
        BadInput: the cursor is none of ours.
    """
    ordered = sorted(items, key=key)
    if cursor is not None:
        after = _opened(cursor)
        try:
            ordered = [item for item in ordered if key(item) > after]
        except TypeError:
            raise BadInput("this cursor belongs to another list") from None
    shown = ordered[:limit]
    more = len(ordered) > limit
    return Page(data=shown, next_cursor=_closed(key(shown[-1])) if more else None)


def first_of(cursor: str | None) -> int:
    """
    The number of the first message of a page.

    Raises:
        BadInput: the cursor is none of ours.
    """
    if cursor is None:
        return 1
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > 15:
        raise BadInput("this cursor is none of ours", hint="send back next_cursor as it came")
    return int(cursor)


def _closed(key: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode().rstrip("=")


def _opened(cursor: str) -> Any:
    try:
        found = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except ValueError:
        raise BadInput("this cursor is none of ours", hint="send back next_cursor as it came") from None
    return tuple(found) if isinstance(found, list) else found


def etag(value: Any) -> str:
    """A strong entity tag of what JSON can hold."""
    text = json.dumps(value, sort_keys=True, default=str)
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'
