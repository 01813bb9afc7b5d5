"""What requests hold and what lists answer; everything else is a value of the front door as it is."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from ..errors import BadInput
from ..figures import Spent
from ..reports import BackfillReport, ConsolidationReport, ErasureReceipt, RebuildReport
from ..types import Budget, ConsentState, Role

T = TypeVar("T")

Name = Annotated[str, Field(min_length=1, max_length=200)]
Words = Annotated[str, Field(min_length=1, max_length=10_000)]


def _like(example: dict[str, Any]) -> ConfigDict:
    """A body that is shown with an example."""
    return ConfigDict(extra="forbid", json_schema_extra={"examples": [example]})


class Body(BaseModel):
    """A request's body: a field that does not exist is refused, so that a typing error is not passed over."""

    model_config = ConfigDict(extra="forbid")


class NewMessage(BaseModel):
    """One message in OpenAI's shape; further fields are kept as its ``meta``."""

    model_config = ConfigDict(extra="allow")
    role: Literal["user", "assistant", "system", "tool", "human", "ai", "bot", "model", "developer", "function"]
    content: Any = None
    name: str | None = None
    at: datetime | None = None


class Messages(Body):
    """One message or several, stored together."""

    model_config = _like({"messages": [{"role": "user", "content": "I live in Porto."}]})
    messages: Annotated[list[NewMessage], Field(min_length=1, max_length=10_000)]


class Wording(Body):
    """Other words for a message."""

    content: Annotated[str, Field(max_length=4_000_000)]


class StrategyFor(Body):
    """What a context holds, as in `holdfast.strategies`: a name, and how much of it."""

    name: Literal["layered", "buffer", "window", "token_buffer", "summary", "summary_buffer"]
    exchanges: Annotated[int, Field(ge=1, le=10_000)] | None = None
    tokens: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    memory_role: Literal["user", "system", "developer"] = "user"


class ContextFor(Body):
    """What a context is wanted for."""

    model_config = _like({"query": "Where should we meet?", "budget_tokens": 2000})
    query: str | None = None
    budget_tokens: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    system: str | None = None
    strategy: StrategyFor | None = None
    note: bool = True


class RecallFor(Body):
    """What is looked for among the last messages of a conversation."""

    model_config = _like({"query": "Which castle was it?"})
    query: Words
    last: Annotated[int, Field(ge=1, le=1_000_000)] = 50
    limit: Annotated[int, Field(ge=1, le=1_000)] = 5


class Used(Body):
    """What a model of the caller's own used for a reply."""

    model_config = _like({"model": "openai:gpt-5-mini", "input_tokens": 900, "output_tokens": 120})
    model: Name
    input_tokens: Annotated[int, Field(ge=0, le=2**40)]
    output_tokens: Annotated[int, Field(ge=0, le=2**40)]
    cached_tokens: Annotated[int, Field(ge=0, le=2**40)] = 0
    cost: Annotated[float, Field(ge=0, le=1e9)] | None = None


class RebuildFor(Body):
    """Which layer of which range is made again; with `dry_run` only what that would take is told."""

    model_config = _like({"layer": "summaries", "start_seq": 1, "end_seq": 20, "dry_run": True})
    layer: Literal["facts", "episodes", "summaries", "meta", "vectors"]
    start_seq: Annotated[int, Field(ge=1, le=2**53)] | None = None
    end_seq: Annotated[int, Field(ge=1, le=2**53)] | None = None
    dry_run: bool = False


class BackfillFor(Body):
    """Which layers of old conversations are brought up to date; at most `limit` ranges, so far apart."""

    model_config = _like({"layers": ["summaries", "facts"], "limit": 100, "dry_run": True})
    layers: list[Literal["facts", "episodes", "summaries", "meta"]] = ["summaries", "episodes", "facts", "meta"]
    limit: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    delay_ms: Annotated[int, Field(ge=0, le=60_000)] | None = None
    dry_run: bool = False


class ConsolidateFor(Body):
    """Whether sentences are merged, or it is only told which would be without a model."""

    dry_run: bool = False


class PruneFor(Body):
    """Whether sentences and events that have long faded are put away as well."""

    faded: bool = False


class SearchFor(Body):
    """What is looked for."""

    model_config = _like({"query": "Where do I live?", "limit": 5})
    query: Words
    limit: Annotated[int, Field(ge=1, le=1_000)] = 10
    kinds: list[Literal["fact", "message", "summary"]] = ["fact", "message", "summary"]
    min_score: float | None = None
    conversation: Name | None = None
    explain: bool = False


class Told(Body):
    """A fact by hand: a sentence, or category, key and value."""

    model_config = _like({"text": "I live in Porto."})
    text: Words | None = None
    category: Name | None = None
    key: Name | None = None
    value: Words | None = None
    confidence: Annotated[float, Field(ge=0, le=1)] = 1.0


class Value(Body):
    """What held instead."""

    model_config = _like({"value": "Lisbon"})
    value: Words


class Choice(Body):
    """What the user chooses; `erase` goes with `opted-out`, `only_if` makes nothing of it in another state."""

    model_config = _like({"state": "paused"})
    state: ConsentState
    erase: bool = True
    only_if: ConsentState | None = None


class Topic(Body):
    """A category, or words that all occur in what is said."""

    model_config = _like({"topic": "health"})
    topic: Words


class PromptText(Body):
    """A prompt in own words."""

    model_config = _like({"text": "Summarise in one sentence, in the third user."})
    text: Annotated[str, Field(min_length=1, max_length=4_000)]


class PromptChoice(Body):
    """Which version's words are used."""

    version: Annotated[int, Field(ge=1, le=2**53)]


class PromptTrial(Body):
    """Words to be tried; the library's own when left out."""

    text: Annotated[str, Field(min_length=1, max_length=4_000)] | None = None
    limit: Annotated[int, Field(ge=1, le=10)] = 3
    dry_run: bool = False


class ExplainFor(Body):
    """What is asked, and as if when."""

    query: Words
    at: datetime | None = None
    limit: Annotated[int, Field(ge=1, le=100)] = 20


class KeyFor(Body):
    """Whom a key is for."""

    model_config = _like({"role": "app", "name": "web chat"})
    role: Role
    user: Name | None = None
    bot: Name | None = None
    subject: Name | None = None
    name: Annotated[str, Field(max_length=200)] = ""
    expires_at: datetime | None = None


class TokenFor(Body):
    """A short-lived key for a user to see and mend what is held about them."""

    model_config = _like({"user": "ana", "minutes": 60})
    user: Name
    subject: Name | None = None
    minutes: Annotated[int, Field(ge=1, le=1_440)] = 60


class ProviderKeyFor(Body):
    """A model of one's own: without `key` the one that is there stays, for the same address only."""

    model_config = _like({"provider": "anthropic", "model": "claude-haiku-4-5", "key": "sk-ant-123"})
    provider: Literal["openai", "anthropic", "google", "ollama"]
    model: Name
    key: Annotated[SecretStr, Field(max_length=4_096)] | None = None
    base_url: Annotated[str, Field(max_length=2_000)] | None = None


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


class Chosen(BaseModel):
    """What holds now; `receipt` says what an opt-out erased."""

    state: ConsentState
    since: datetime | None
    never: tuple[str, ...]
    receipt: ErasureReceipt | None = None


class Budgets(BaseModel):
    """The daily budgets of models, in the whole memory, for an org and for a user; null where there is none."""

    all: Budget | None
    org: Budget | None
    user: Budget | None
    tokens_today: int
    cost_today: float | None


class Allowances(BaseModel):
    """The most messages a day and a month, for each key and for the org; null where there is no limit, nothing is counted."""

    day: int | None
    month: int | None
    org_day: int | None
    org_month: int | None
    spent: list[Spent]


class Somebody(BaseModel):
    """One user that has a memory with one assistant."""

    org: str
    user: str
    bot: str


class Work(BaseModel):
    """
    Work in the background: of the store, or ordered by a request.

    `done` of `total` ranges; `total` is 0 when nobody knows.  `report` is there when an ordered one is `done`, `code` and
    `reason` when it `failed`, or was `interrupted` by the end of its server: the same request does the rest.
    """

    id: str
    kind: str
    state: Literal["ready", "waiting", "running", "done", "failed", "dead", "cancelled", "interrupted"]
    org: str | None = None
    user: str | None = None
    bot: str | None = None
    subject: str | None = None
    conversation: str | None = None
    done: int = 0
    total: int = 0
    code: str = ""
    reason: str = ""
    created_at: datetime
    ended_at: datetime | None = None
    report: RebuildReport | BackfillReport | ConsolidationReport | None = None


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
        after = opened(cursor)
        try:
            ordered = [item for item in ordered if key(item) > after]
        except TypeError:
            raise BadInput("this cursor belongs to another list") from None
    shown = ordered[:limit]
    more = len(ordered) > limit
    return Page(data=shown, next_cursor=closed(key(shown[-1])) if more else None)


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


def closed(key: Any) -> str:
    """A cursor behind *key*."""
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode().rstrip("=")


def opened(cursor: str) -> Any:
    """
    The key that a cursor names.

    Raises:
        BadInput: it is none of ours.
    """
    try:
        found = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, RecursionError):
        raise BadInput("this cursor is none of ours", hint="send back next_cursor as it came") from None
    return tuple(found) if isinstance(found, list) else found


def etag(value: Any) -> str:
    """A strong entity tag of what JSON can hold."""
    text = json.dumps(value, sort_keys=True, default=str)
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'
