"""Bodies, parameters and answers of the routes; other answers are values of the front door."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from fastapi import Depends, Header, Path, Query, Request
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, SecretStr, model_validator
from starlette.exceptions import HTTPException

from ..context.assemble import Strategy
from ..context.classic import make_strategy
from ..conversation import Conversation
from ..errors import BadInput
from ..memory import Memory
from ..reports import BackfillReport, ConsolidationReport, ErasureReceipt, MessageCount, RebuildReport
from ..text import dataclass
from ..text.validate import MAX_TEXT_CHARS, replace_unstorable
from ..types import HIT_KINDS, Budget, ConsentState, HitKind, ReviewChoice, Role
from ..user import User
from .gate import Grant
from .routing import UserName

T = TypeVar("T")
_TIMES = range(-62_135_596_800_000, 253_402_300_800_000)  # milliseconds of the years 1 to 9999

Name = Annotated[str, Field(min_length=1, max_length=200)]
Text = Annotated[str, Field(min_length=1, max_length=MAX_TEXT_CHARS)]


def _with_example(example: dict[str, Any]) -> ConfigDict:
    """Return the settings of a body that is documented with *example*."""
    return ConfigDict(extra="forbid", json_schema_extra={"examples": [example]})


class Body(BaseModel):
    """The base of request bodies; unknown fields are refused, so that a typing error is noticed."""

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

    model_config = _with_example({"messages": [{"role": "user", "content": "I live in Porto."}]})
    messages: Annotated[list[NewMessage], Field(min_length=1, max_length=10_000)]
    after: Annotated[
        int | None, Field(ge=0, le=2**53, description="The message that they follow, 0 for none: a branch begins.")
    ] = None


class NewContent(Body):
    """New content for a message."""

    content: Annotated[str, Field(max_length=4_000_000)]


class ReplyRequest(Body):
    """Hold the words of a user, to which the memory's own model replies."""

    text: Annotated[str, Field(max_length=4_000_000)]
    system: Annotated[str | None, Field(max_length=1_000_000, description="Instructions for the assistant.")] = None


class NewRating(Body):
    """A user's rating of a reply."""

    score: Annotated[float, Field(ge=0, le=1, description="1: a thumb up, 0: a thumb down.")]
    seq: Annotated[int | None, Field(ge=1, le=2**53, description="The reply; the latest one when not given.")] = None


StrategyName = Annotated[str, Field(max_length=200, examples=["facts/2", "layered,side_by_side=on"])]


class StrategyBody(Body):
    """A strategy of `holdfast.strategies`, by name and size; a text such as `facts/2` says the same."""

    name: Literal["layered", "buffer", "window", "token_buffer", "facts", "summary", "summary_buffer"]
    exchanges: Annotated[int, Field(ge=1, le=10_000)] | None = None
    tokens: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    memory_role: Literal["user", "system", "developer"] = "user"
    side_by_side: bool = False
    character: bool = True


class HookRequest(Body):
    """An event of a coding agent, as the agent wrote it, and the project that it works in."""

    model_config = _with_example(
        {"event": {"hook_event_name": "SessionStart", "session_id": "s1"}, "project": "shop-1f"}
    )
    event: dict[str, Any]
    project: Annotated[str, Field(max_length=200)] = ""
    project_name: Annotated[str, Field(max_length=200)] = ""
    budget_tokens: Annotated[int, Field(strict=True, ge=1, le=10_000_000)] | None = None


class HookAnswer(BaseModel):
    """The words that the agent shall be told, in its own form; none for most events."""

    answer: dict[str, Any] | None


class ContextRequest(Body):
    """The question and the budget of a context."""

    model_config = _with_example({"query": "Where should we meet?", "budget_tokens": 2000})
    query: str | None = None
    budget_tokens: Annotated[int, Field(strict=True, ge=1, le=10_000_000)] | None = None
    system: str | None = None
    strategy: StrategyBody | StrategyName | None = None
    note: bool = True
    general: bool = False

    @property
    def chosen(self) -> Strategy | str | None:
        """The strategy that it names."""
        if not isinstance(self.strategy, StrategyBody):
            return self.strategy
        return make_strategy(self.strategy.name, self.strategy.model_dump(exclude={"name"}, exclude_unset=True))


class RecallRequest(Body):
    """A search among the last messages of a conversation."""

    model_config = _with_example({"query": "Which castle was it?"})
    query: Text
    last: Annotated[int, Field(ge=1, le=1_000_000)] = 50
    limit: Annotated[int, Field(ge=1, le=1_000)] = 5


class ModelUse(Body):
    """The tokens that your own model used for a reply."""

    model_config = _with_example({"model": "openai:gpt-5-mini", "input_tokens": 900, "output_tokens": 120})
    model: Name
    input_tokens: Annotated[int, Field(ge=0, le=2**40)]
    output_tokens: Annotated[int, Field(ge=0, le=2**40)]
    cached_tokens: Annotated[int, Field(ge=0, le=2**40)] = 0
    cost: Annotated[float, Field(ge=0, le=1e9)] | None = None
    seq: Annotated[int, Field(ge=1, le=2**53)] | None = None


class RebuildRequest(Body):
    """The layer and the range to rebuild; `dry_run` only estimates."""

    model_config = _with_example({"layer": "summaries", "start_seq": 1, "end_seq": 20, "dry_run": True})
    layer: Literal["facts", "episodes", "summaries", "meta", "vectors", "chunk"]
    start_seq: Annotated[int, Field(ge=1, le=2**53)] | None = None
    end_seq: Annotated[int, Field(ge=1, le=2**53)] | None = None
    dry_run: bool = False


class BackfillRequest(Body):
    """The layers of old conversations to bring up to date: at most `limit` ranges, `delay_ms` apart."""

    model_config = _with_example({"layers": ["summaries", "facts"], "limit": 100, "dry_run": True})
    layers: list[Literal["facts", "episodes", "summaries", "meta"]] = ["summaries", "episodes", "facts", "meta"]
    limit: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    delay_ms: Annotated[int, Field(ge=0, le=60_000)] | None = None
    dry_run: bool = False


class ConsolidateRequest(Body):
    """A request to merge sentences; `dry_run` only lists what would be merged without a model."""

    dry_run: bool = False


class PruneRequest(Body):
    """A request to archive weak facts; with `faded`, sentences and events that have long faded as well."""

    faded: bool = False


class SearchRequest(Body):
    """A search in facts, messages and summaries."""

    model_config = _with_example({"query": "Where do I live?", "limit": 5})
    query: Text
    limit: Annotated[int, Field(ge=1, le=1_000)] = 10
    kinds: HitKind | list[HitKind] = list(HIT_KINDS)
    min_relevance: Annotated[float, Field(ge=0, le=1)] = 0.0
    conversation: Name | list[Name] | None = None
    explain: bool = False
    general: bool = False


class NewFact(Body):
    """A fact by hand: a sentence (``content`` is another name of it), or category, key and value; with a range, it rests on these messages."""

    model_config = _with_example({"text": "I live in Porto."})
    text: Annotated[Text | None, Field(validation_alias=AliasChoices("text", "content"))] = None
    category: Name | None = None
    key: Name | None = None
    value: Text | None = None
    aliases: list[Name] = []
    confidence: Annotated[float, Field(ge=0, le=1)] = 1.0
    importance: Annotated[float, Field(ge=0, le=1)] | None = None
    conversation: Name | None = None
    start_seq: Annotated[int, Field(ge=1, le=2**53)] | None = None
    end_seq: Annotated[int, Field(ge=1, le=2**53)] | None = None
    at: datetime | None = None


class MemorySource(Body):
    """The origin of an exported memory; its time is when it was said, unless ``at`` says otherwise."""

    model_config = ConfigDict(extra="ignore")
    extractedAt: datetime | None = None


class NewMemory(NewFact):
    """A memory of a list, in the shape in which memories are exported; what only the exporting side uses is passed over."""

    model_config = _with_example({"content": "Runs PostgreSQL 15", "category": "technical", "confidence": 0.9})
    id: Annotated[Any, Field(exclude=True)] = None
    userId: Annotated[Any, Field(exclude=True)] = None
    organizationId: Annotated[Any, Field(exclude=True)] = None
    source: Annotated[MemorySource | None, Field(exclude=True)] = None
    embedding: Annotated[Any, Field(exclude=True)] = None
    lastAccessedAt: Annotated[Any, Field(exclude=True)] = None
    accessCount: Annotated[Any, Field(exclude=True)] = None

    @model_validator(mode="after")
    def _dated(self) -> Self:
        if self.at is None and self.source is not None:
            self.at = self.source.extractedAt
        return self


NewFacts = Annotated[list[NewMemory], Field(min_length=1, max_length=1_000)]


class CorrectedValue(Body):
    """The value that held instead, the importance of the fact, or both."""

    model_config = _with_example({"value": "Lisbon"})
    value: Text | None = None
    importance: Annotated[float, Field(ge=0, le=1)] | None = None


class SubjectNamesBody(Body):
    """The name to show of a subject, aliases to add, and aliases to take away."""

    model_config = _with_example({"name": "Luna", "aliases": ["my dog"]})
    name: Name | None = None
    aliases: list[Name] = []
    without: list[Name] = []


class SubjectMergeBody(Body):
    """The subject that stays, and whether to change nothing."""

    model_config = _with_example({"into": "pet-42", "dry_run": True})
    into: Name
    dry_run: bool = False


class Review(Body):
    """A decision about candidates that wait for the user; `value` is what is right instead, of one that is accepted."""

    model_config = _with_example({"ids": ["0f343b0931126a20f133d67c"], "choice": "accept"})
    ids: Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(min_length=1, max_length=100)]
    choice: ReviewChoice
    value: Annotated[str, Field(min_length=1)] | None = None


class ConsentChoice(Body):
    """The user's choice; `erase` goes with `opted-out`, `only_if` names the state in which it applies."""

    model_config = _with_example({"state": "paused"})
    state: ConsentState
    erase: bool = True
    only_if: ConsentState | None = None


class TopicName(Body):
    """A category, or words that all occur in what is said."""

    model_config = _with_example({"topic": "health"})
    topic: Text


class PromptText(Body):
    """The text of a prompt."""

    model_config = _with_example({"text": "Summarize in one sentence, in the third person."})
    text: Annotated[str, Field(min_length=1, max_length=4_000)]


class PromptVersionNumber(Body):
    """The number of a prompt's version."""

    version: Annotated[int, Field(ge=1, le=2**53)]
    percent: Annotated[int, Field(ge=1, le=100)] = 100


class PromptPreviewRequest(Body):
    """The text to try; the library's own when left out."""

    text: Annotated[str, Field(min_length=1, max_length=4_000)] | None = None
    limit: Annotated[int, Field(ge=1, le=10)] = 3
    dry_run: bool = False


class ExplainRequest(Body):
    """A question, and the time as of which to answer it."""

    query: Text
    at: datetime | None = None
    limit: Annotated[int, Field(ge=1, le=100)] = 20


class KeyRequest(Body):
    """The role and the limits of a new key."""

    model_config = _with_example({"role": "app", "name": "web chat"})
    role: Role
    user: Name | None = None
    bot: Name | None = None
    subject: Name | None = None
    name: Annotated[str, Field(max_length=200)] = ""
    expires_at: datetime | None = None


class TokenRequest(Body):
    """A request for a short-lived key, with which a user sees and corrects what is held about them."""

    model_config = _with_example({"user": "ana", "minutes": 60})
    user: Name
    subject: Name | None = None
    minutes: Annotated[int, Field(ge=1, le=1_440)] = 60


class ProviderKeyRequest(Body):
    """A model of your own; without `key` the one that is set stays, for the same address only."""

    model_config = _with_example({"provider": "anthropic", "model": "claude-haiku-4-5", "key": "sk-ant-123"})
    provider: Literal["openai", "anthropic", "google", "ollama"]
    model: Name
    key: Annotated[SecretStr, Field(max_length=4_096)] | None = None
    base_url: Annotated[str, Field(max_length=2_000)] | None = None


class Page(BaseModel, Generic[T]):
    """One page of a list; ``next_cursor`` is null on the last."""

    data: list[T]
    next_cursor: str | None = None


class Problem(BaseModel):
    """An error, and what to do about it (RFC 9457)."""

    type: str
    title: str
    status: int
    code: str
    detail: str = ""
    hint: str = ""


class ConsentResult(BaseModel):
    """The state after a choice; `receipt` lists what an opt-out erased."""

    state: ConsentState
    since: datetime | None
    never: tuple[str, ...]
    receipt: ErasureReceipt | None = None


class BudgetStatus(BaseModel):
    """The daily budgets of models, for the whole memory, an org and a user; null where there is none."""

    all: Budget | None
    org: Budget | None
    user: Budget | None
    tokens_today: int
    cost_today: float | None


class QuotaStatus(BaseModel):
    """The most messages a day and a month, for each key and for the org; null where there is no limit, nothing is counted."""

    day: int | None
    month: int | None
    org_day: int | None
    org_month: int | None
    spent: list[MessageCount]


class ListedUser(BaseModel):
    """One user with a memory, in one org and with one assistant."""

    org: str
    user: str
    bot: str


class JobStatus(BaseModel):
    """
    Background work: a job of the store, or work that a request started.

    `done` of `total` ranges; `total` is 0 when it is unknown.  `report` is there when an ordered one is `done`, `code` and
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


class ServerHealth(BaseModel):
    """The health of the server."""

    status: Literal["ok", "degraded"]
    version: str
    dead_jobs: int = 0
    overdue_jobs: int = 0


def paginate(
    items: Sequence[T], key: Callable[[T], Any], cursor: str | None, limit: int, *, descending: bool = False
) -> Page[T]:
    """
    Return the *limit* items after *cursor*, by *key*; what comes and goes between two pages shifts nothing.

    Raises:
        BadInput: the cursor is none of ours.
    """
    ordered = sorted(items, key=key, reverse=descending)
    if cursor is not None:
        after = decode_cursor(cursor)
        try:
            ordered = [item for item in ordered if (key(item) < after if descending else key(item) > after)]
        except TypeError:
            raise BadInput("this cursor belongs to another list") from None
    shown = ordered[:limit]
    more = len(ordered) > limit
    return Page(data=shown, next_cursor=encode_cursor(key(shown[-1])) if more else None)


def page_of(found: Sequence[T], limit: int, position: Callable[[T], Any]) -> Page[T]:
    """Return a page of *found*, which has one item more than *limit* when others follow; a cursor is a *position*."""
    more = len(found) > limit
    return Page(data=list(found[:limit]), next_cursor=encode_cursor(position(found[limit - 1])) if more else None)


def parse_position(cursor: str | None, *kinds: type[int | str]) -> Any:
    """
    Return the position in a cursor of `page_of`, whose parts are of these *kinds*; ``None`` without a cursor.

    Raises:
        BadInput: it belongs to another list.
    """
    if cursor is None:
        return None
    found = decode_cursor(cursor)
    if not isinstance(found, tuple) or [type(each) for each in found] != list(kinds):
        raise BadInput("this cursor belongs to another list", hint="send back next_cursor as it came")
    if any(isinstance(each, int) and each not in _TIMES for each in found):
        raise BadInput("this cursor is none of ours", hint="send back next_cursor as it came")
    return tuple(replace_unstorable(each) if isinstance(each, str) else each for each in found)


def parse_seq_cursor(cursor: str | None) -> int:
    """
    Return the number of the first message of a page.

    Raises:
        BadInput: the cursor is none of ours.
    """
    if cursor is None:
        return 1
    if not cursor.isascii() or not cursor.isdecimal() or len(cursor) > 15:
        raise BadInput("this cursor is none of ours", hint="send back next_cursor as it came")
    return int(cursor)


def encode_cursor(key: Any) -> str:
    """Return a cursor for *key*."""
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode().rstrip("=")


def decode_cursor(cursor: str) -> Any:
    """
    Return the key of a cursor.

    Raises:
        BadInput: it is none of ours.
    """
    try:
        found = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, RecursionError):
        raise BadInput("this cursor is none of ours", hint="send back next_cursor as it came") from None
    return tuple(found) if isinstance(found, list) else found


def etag(value: Any) -> str:
    """Return a strong entity tag of a JSON value."""
    text = json.dumps(value, sort_keys=True, default=str)
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


ConversationName = Annotated[str, Path(description="The conversation's id.")]
Cursor = Annotated[str | None, Query(description="`next_cursor` of the page before.")]
Limit = Annotated[int, Query(ge=1, le=1_000, description="At most so many.")]
IdempotencyKey = Annotated[
    str | None,
    Header(alias="Idempotency-Key", min_length=1, max_length=200, description="The same key does it once."),
]
Incognito = Annotated[bool, Query(description="Nothing is stored, learned or taken from memory.")]
OwnFacts = Annotated[
    bool | None,
    Query(description="What is stated is a fact of this conversation alone; kept with its first message."),
]
NamedStrategy = Annotated[
    str | None,
    Query(
        max_length=200,
        description="How its contexts are built, such as `facts/2` or `layered,side_by_side=on`; messages that are "
        "appended with `facts` are not summarized.",
    ),
]


@dataclass(frozen=True, slots=True)
class Caller:
    """A request that passed the gate."""

    memory: Memory
    grant: Grant

    @property
    def role(self) -> Role | None:
        """The role of the key; ``None`` where keys are not asked for."""
        return self.grant.key.role if self.grant.key is not None else None

    def check_allowed(self, setting: str) -> None:
        """
        Check that a user's own key may do what `Config` allows users only where *setting* is on.

        Raises:
            HTTPException: 403: it may not.
        """
        if self.role == "user" and not getattr(self.memory.config, setting):
            raise HTTPException(403, f"Users may not do this here; the operator allows it by {setting} = true")

    def user(self) -> User:
        """Open the user that the path names and the key allows."""
        grant = self.grant
        if grant.user is None:
            raise BadInput("the path names no user")
        return self.memory.user(grant.user, org=grant.org, bot=grant.bot, subject=grant.subject)

    def conversation(
        self, name: str, *, incognito: bool = False, own_facts: bool | None = None, strategy: str | None = None
    ) -> Conversation:
        """Open a conversation of that user."""
        grant = self.grant
        if grant.user is None:
            raise BadInput("the path names no user")
        return self.memory.conversation(
            name,
            user=grant.user,
            org=grant.org,
            bot=grant.bot,
            subject=grant.subject,
            strategy=strategy,
            incognito=incognito,
            own_facts=own_facts,
        )


async def get_caller(request: Request) -> Caller:
    """Return the caller, whose grant the gate has put into the request."""
    return Caller(request.app.state.memory, request.state.grant)


CallerDep = Annotated[Caller, Depends(get_caller)]


async def _user(asked: CallerDep, user: UserName) -> User:
    return asked.user()


async def _conversation(
    asked: CallerDep,
    user: UserName,
    conversation: ConversationName,
    incognito: Incognito = False,
    own_facts: OwnFacts = None,
    strategy: NamedStrategy = None,
) -> Conversation:
    return asked.conversation(conversation, incognito=incognito, own_facts=own_facts, strategy=strategy)


async def _prompt_user(asked: CallerDep, user: UserName) -> User:
    asked.check_allowed("users_may_set_prompts")
    return asked.user()


async def _rebuilt(
    asked: CallerDep, user: UserName, conversation: ConversationName, incognito: Incognito = False
) -> Conversation:
    asked.check_allowed("users_may_rebuild")
    return asked.conversation(conversation, incognito=incognito)


UserDep = Annotated[User, Depends(_user)]
PromptUserDep = Annotated[User, Depends(_prompt_user)]
RebuiltDep = Annotated[Conversation, Depends(_rebuilt)]
ConversationDep = Annotated[Conversation, Depends(_conversation)]


IfMatch = Annotated[
    str | None,
    Header(max_length=1_000, description="Only if it still is what this `ETag` names; without it, whatever it is."),
]


def versions_of(if_match: str | None) -> list[str] | None:
    """Return the versions that an ``If-Match`` header names; ``None`` for any."""
    tags = [] if if_match is None else [part.strip() for part in if_match.split(",")]
    return None if if_match is None or "*" in tags else [tag.strip('"') for tag in tags]


def prompt_versions_of(if_match: str | None) -> list[int] | None:
    """Return the numbers of a prompt's versions that an ``If-Match`` header names; ``None`` for any."""
    found = versions_of(if_match)
    return None if found is None else [int(tag) for tag in found if tag.isascii() and tag.isdecimal()]
