"""``/v1/users/{user}``: facts, history, search, consent, prompts, export, erasure."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Any, Literal

from fastapi import Path, Query, Request, Response

from ..clock import to_ms
from ..reports import ErasureReceipt, Explained, Metrics, PromptPreview, Usage
from ..types import Consent, Fact, FactChange, FactKind, Hit, PromptVersion, Rejected, Section
from ..user import Prompts, User, version_in_use
from .gate import count_messages, quota_exceeded
from .routing import APP, USER, WHOLE_USER, Door, Table
from .schemas import (
    SCOPE_PARAMS,
    ConsentChoice,
    ConsentResult,
    CorrectedValue,
    Cursor,
    ExplainRequest,
    IdempotencyKey,
    IfMatch,
    Limit,
    NewFact,
    Page,
    PromptPreviewRequest,
    PromptText,
    PromptVersionNumber,
    SearchRequest,
    TopicName,
    UserDep,
    paginate,
    prompt_versions_of,
    versions_of,
)

table = Table()
ONE = "/v1/users/{user:name}"
MOST_REJECTED = 100_000
FactId = Annotated[str, Path(max_length=200, description="The fact's id.")]
By = Annotated[
    list[Literal["day", "layer", "model", "none"]],
    Query(description="What is not named is summed up; `none` for all of it."),
]


@table.add("GET", ONE + "/facts", USER, door=User.facts, response_model=Page[Fact], dependencies=SCOPE_PARAMS)
def facts_list(
    whose: UserDep,
    category: Annotated[str | None, Query(max_length=200)] = None,
    kind: FactKind | None = None,
    as_of: datetime | None = None,
    known_at: datetime | None = None,
    archived: bool = False,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Page[Fact]:
    """What is believed, by subject, category, key and value; or what held at a time, as known at a time."""
    found = whose.facts(category, kind=kind, as_of=as_of, known_at=known_at, archived=archived)
    return paginate(found, _strength if archived else _address, cursor, limit)


@table.add(
    "POST",
    ONE + "/facts",
    WHOLE_USER,
    door=User.remember,
    response_model=FactChange,
    status_code=201,
    dependencies=SCOPE_PARAMS,
)
def facts_remember(whose: UserDep, body: NewFact, idempotency_key: IdempotencyKey = None) -> FactChange:
    """Add a fact by hand, or replace the one at its address, as if it was said now."""
    return whose.remember(**body.model_dump(), idempotency_key=idempotency_key)


@table.add("GET", ONE + "/facts/{fact_id}", USER, door=User.fact, response_model=Fact, dependencies=SCOPE_PARAMS)
def facts_get(whose: UserDep, fact_id: FactId, response: Response) -> Fact:
    """One fact, live or past, with the words it rests on."""
    fact = whose.fact(fact_id)
    response.headers["ETag"] = f'"{fact.version}"'
    return fact


@table.add(
    "PATCH",
    ONE + "/facts/{fact_id}",
    WHOLE_USER,
    door=User.correct,
    response_model=FactChange,
    dependencies=SCOPE_PARAMS,
)
def facts_correct(whose: UserDep, fact_id: FactId, body: CorrectedValue, if_match: IfMatch = None) -> FactChange:
    """The fact was wrong from the start: the value held instead, and history says so."""
    return whose.correct(fact_id, value=body.value, if_version=versions_of(if_match))


@table.add(
    "POST",
    ONE + "/facts/{fact_id}/never-true",
    WHOLE_USER,
    door=User.never_true,
    repeatable=True,
    response_model=FactChange,
    dependencies=SCOPE_PARAMS,
)
def facts_never_true(whose: UserDep, fact_id: FactId, if_match: IfMatch = None) -> FactChange:
    """The fact never held; what it had replaced holds again."""
    return whose.never_true(fact_id, if_version=versions_of(if_match))


@table.add(
    "POST",
    ONE + "/facts/{fact_id}/restore",
    WHOLE_USER,
    door=User.restore,
    repeatable=True,
    response_model=FactChange,
    dependencies=SCOPE_PARAMS,
)
def facts_restore(whose: UserDep, fact_id: FactId, if_match: IfMatch = None) -> FactChange:
    """Believe a past fact again."""
    return whose.restore(fact_id, if_version=versions_of(if_match))


@table.add(
    "DELETE",
    ONE + "/facts/{fact_id}",
    WHOLE_USER,
    door=User.forget,
    response_model=ErasureReceipt,
    dependencies=SCOPE_PARAMS,
)
def facts_forget(whose: UserDep, fact_id: FactId, if_match: IfMatch = None) -> ErasureReceipt:
    """Erase one fact with the words it rests on."""
    return whose.forget(fact_id, if_version=versions_of(if_match))


@table.add(
    "DELETE",
    ONE + "/facts",
    WHOLE_USER,
    door=User.clear,
    repeatable=True,
    response_model=ErasureReceipt,
    dependencies=SCOPE_PARAMS,
)
def facts_clear(whose: UserDep) -> ErasureReceipt:
    """Erase every fact, live and past, with the words they rest on."""
    return whose.clear()


@table.add("GET", ONE + "/history", USER, door=User.history, response_model=Page[Fact], dependencies=SCOPE_PARAMS)
def history_list(
    whose: UserDep,
    category: Annotated[str | None, Query(min_length=1, max_length=200)] = None,
    key: Annotated[str | None, Query(max_length=200)] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Page[Fact]:
    """Every value that a category, or one of its keys, had, or all of them, oldest first."""
    return paginate(whose.history(category, key), _time, cursor, limit)


@table.add("GET", ONE + "/rejected", USER, door=User.rejected, response_model=Page[Rejected], dependencies=SCOPE_PARAMS)
def rejected_list(whose: UserDep, cursor: Cursor = None, limit: Limit = 100) -> Page[Rejected]:
    """What was read but not believed, newest first, each with its reason."""
    return paginate(whose.rejected(limit=MOST_REJECTED), _refusal, cursor, limit)


@table.add("GET", ONE + "/profile", USER, door=User.profile, response_model=Section, dependencies=SCOPE_PARAMS)
def profile_get(whose: UserDep, budget_tokens: Annotated[int, Query(ge=1, le=1_000_000)] = 500) -> Section:
    """What is known about the user, as a block for a system prompt; empty while memory is paused."""
    return whose.profile(budget_tokens=budget_tokens)


@table.add(
    "POST",
    ONE + "/search",
    USER,
    door=User.search,
    repeatable=True,
    response_model=list[Hit],
    dependencies=SCOPE_PARAMS,
)
def memory_search(whose: UserDep, body: SearchRequest) -> list[Hit]:
    """Facts, messages and summaries, best first."""
    return whose.search(**body.model_dump())


@table.add("GET", ONE + "/usage", APP, door=User.usage, response_model=Page[Usage], dependencies=SCOPE_PARAMS)
def usage_of_user(
    whose: UserDep,
    by: By = ["layer", "model"],  # noqa: B006
    since: date | None = None,
    until: date | None = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Page[Usage]:
    """What models were used for on the user's behalf, and what it cost."""
    found = whose.usage(by=[part for part in by if part != "none"], since=since, until=until)
    return paginate(found, used_for, cursor, limit)


@table.add(
    "POST",
    ONE + "/explain",
    APP,
    door=User.explain,
    repeatable=True,
    response_model=Explained,
    dependencies=SCOPE_PARAMS,
)
def memory_explain(whose: UserDep, body: ExplainRequest) -> Explained:
    """What a question finds, with the parts of each score, and what of it a context would recall."""
    return whose.explain(body.query, at=body.at, limit=body.limit)


@table.add("GET", ONE + "/metrics", APP, door=User.metrics, response_model=Metrics, dependencies=SCOPE_PARAMS)
def metrics_of_user(whose: UserDep, since: date | None = None, until: date | None = None) -> Metrics:
    """How well memory serves this user, counted from what is stored."""
    return whose.metrics(since=since, until=until)


@table.add(
    "GET", ONE + "/export", WHOLE_USER, door=User.export, response_model=dict[str, Any], dependencies=SCOPE_PARAMS
)
def export_get(whose: UserDep) -> dict[str, Any]:
    """Everything that is held about the user, as data that import takes back."""
    return whose.export()


@table.add(
    "POST", ONE + "/import", APP, door=User.import_, status_code=204, response_model=None, dependencies=SCOPE_PARAMS
)
def import_into(request: Request, whose: UserDep, body: dict[str, Any]) -> Response | None:
    """Take an export back into this user's memory, which must be empty."""
    with request.app.state.quotas.counting(request.state.key, count_messages(body)) as wait_s:
        if wait_s:
            return quota_exceeded(wait_s)
        whose.import_(body)
    return None


@table.add(
    "DELETE",
    ONE,
    WHOLE_USER,
    door=User.erase,
    repeatable=True,
    response_model=ErasureReceipt,
    dependencies=SCOPE_PARAMS,
)
def user_erase(whose: UserDep) -> ErasureReceipt:
    """Erase everything that is held; only a pause or an opt-out stays, so that it goes on to hold."""
    return whose.erase()


def used_for(usage: Usage) -> tuple[str, ...]:
    """By what usage is listed."""
    return (usage.org, usage.user, usage.bot, usage.day, usage.layer, usage.model)


def _address(fact: Fact) -> tuple[str, str, str, str, str]:
    return (fact.subject, fact.category, fact.key, fact.value, fact.id)


def _strength(fact: Fact) -> tuple[float, str]:
    return (-fact.strength, fact.id)


def _time(fact: Fact) -> tuple[int, int, str]:
    return (to_ms(fact.valid_from), to_ms(fact.recorded_at), fact.id)


def _refusal(rejected: Rejected) -> tuple[int, str, int, int, str, str, str]:
    claim = rejected.candidate
    at_ms = 0 if rejected.at is None else to_ms(rejected.at)
    return (-at_ms, rejected.conversation, claim.seq, claim.start, claim.category, claim.key, claim.value)


PromptName = Annotated[str, Path(description="`chunk_summary`, `meta_summary` or `fact_extraction`.")]


@table.add("GET", ONE + "/consent", USER, door=User.status, response_model=Consent, dependencies=SCOPE_PARAMS)
def consent_get(whose: UserDep) -> Consent:
    """What the user chose, and since when."""
    return whose.status()


CONSENT_DOORS = (
    Door(User.pause, {"state": "paused"}),
    Door(User.resume, {"state": "active", "only_if": "paused"}),
    Door(User.opt_out, {"state": "opted-out"}, answer="receipt"),
    Door(User.opt_in, {"state": "active"}),
)


@table.add("PUT", ONE + "/consent", USER, door=CONSENT_DOORS, response_model=ConsentResult, dependencies=SCOPE_PARAMS)
def consent_choose(whose: UserDep, body: ConsentChoice) -> ConsentResult:
    """Pause, resume, opt out (and erase, unless told otherwise) or opt in."""
    receipt = None
    if body.only_if in (None, whose.status().state):
        receipt = _choose(whose, body)
    now = whose.status()
    return ConsentResult(state=now.state, since=now.since, never=now.never, receipt=receipt)


def _choose(whose: User, body: ConsentChoice) -> ErasureReceipt | None:
    if body.state == "opted-out":
        return whose.opt_out(erase=body.erase)
    if body.state == "paused":
        whose.pause()
    else:
        whose.opt_in()
    return None


@table.add(
    "POST",
    ONE + "/never",
    USER,
    door=User.never_remember,
    repeatable=True,
    response_model=Consent,
    dependencies=SCOPE_PARAMS,
)
def topics_never(whose: UserDep, body: TopicName) -> Consent:
    """Learn no more facts of a topic; saying so twice is saying it once."""
    whose.never_remember(body.topic)
    return whose.status()


@table.add(
    "DELETE", ONE + "/never", USER, door=User.allow, repeatable=True, response_model=Consent, dependencies=SCOPE_PARAMS
)
def topics_allow(whose: UserDep, topic: Annotated[str, Query(min_length=1, max_length=10_000)]) -> Consent:
    """Learn facts of a topic again."""
    whose.allow(topic)
    return whose.status()


@table.add("GET", ONE + "/prompts/{name}", APP, door=Prompts.get, response_model=str, dependencies=SCOPE_PARAMS)
def prompts_get(whose: UserDep, name: PromptName, response: Response) -> str:
    """The words in use for what a model shall do."""
    response.headers["ETag"] = f'"{version_in_use(whose.prompts.versions(name))}"'  # first: never newer than the text
    return whose.prompts.get(name)


@table.add(
    "PUT", ONE + "/prompts/{name}", APP, door=Prompts.set, response_model=PromptVersion, dependencies=SCOPE_PARAMS
)
def prompts_set(
    whose: UserDep, name: PromptName, body: PromptText, response: Response, if_match: IfMatch = None
) -> PromptVersion:
    """Use other words from now on."""
    version = whose.prompts.set(name, body.text, if_version=prompt_versions_of(if_match))
    response.headers["ETag"] = f'"{version.version}"'
    return version


@table.add(
    "DELETE",
    ONE + "/prompts/{name}",
    APP,
    door=Prompts.reset,
    repeatable=True,
    response_model=PromptVersion,
    dependencies=SCOPE_PARAMS,
)
def prompts_reset(whose: UserDep, name: PromptName, response: Response, if_match: IfMatch = None) -> PromptVersion:
    """Use the words that come with the library again."""
    version = whose.prompts.reset(name, if_version=prompt_versions_of(if_match))
    response.headers["ETag"] = '"0"'
    return version


@table.add(
    "GET",
    ONE + "/prompts/{name}/versions",
    APP,
    door=Prompts.versions,
    response_model=Page[PromptVersion],
    dependencies=SCOPE_PARAMS,
)
def prompts_versions(
    whose: UserDep, name: PromptName, cursor: Cursor = None, limit: Limit = 100
) -> Page[PromptVersion]:
    """What was set and reset, oldest first."""
    return paginate(whose.prompts.versions(name), lambda version: version.version, cursor, limit)


@table.add(
    "POST",
    ONE + "/prompts/{name}/drafts",
    APP,
    door=Prompts.draft,
    response_model=PromptVersion,
    status_code=201,
    dependencies=SCOPE_PARAMS,
)
def prompts_draft(whose: UserDep, name: PromptName, body: PromptText) -> PromptVersion:
    """Save words that are not used yet, to be tried and activated later."""
    return whose.prompts.draft(name, body.text)


@table.add(
    "POST",
    ONE + "/prompts/{name}/activate",
    APP,
    door=Prompts.activate,
    response_model=PromptVersion,
    dependencies=SCOPE_PARAMS,
)
def prompts_activate(whose: UserDep, name: PromptName, body: PromptVersionNumber) -> PromptVersion:
    """Use the words of a draft, or of an older version, from now on."""
    return whose.prompts.activate(name, body.version)


@table.add(
    "POST",
    ONE + "/prompts/{name}/preview",
    APP,
    door=Door(Prompts.preview, wait_s=60.0),
    response_model=PromptPreview,
    dependencies=SCOPE_PARAMS,
)
def prompts_preview(whose: UserDep, name: PromptName, body: PromptPreviewRequest) -> PromptPreview:
    """Try words on saved chunks beside what stands there; with `dry_run`, say what that would take."""
    return whose.prompts.preview(name, body.text, limit=body.limit, dry_run=body.dry_run)
