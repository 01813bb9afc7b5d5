"""``/v1/users/{user}``: facts, history, search, consent, prompts, export, erasure."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Any, Literal

from fastapi import Path, Query, Request, Response
from pydantic import Field

from ..clock import from_ms, to_ms
from ..errors import HoldfastError
from ..importers.portable import memories_of
from ..jobs.model_client import version_in_use
from ..privacy.corrections import fact_input
from ..reports import ErasureReceipt, Explained, Metrics, PromptPreview, SubjectMerge, Usage
from ..types import Consent, Fact, FactChange, FactKind, Hit, PromptVersion, Rejected, Section, Story, Subject
from ..user import Prompts, User
from .gate import count_messages, quota_exceeded
from .routing import APP, USER, WHOLE_USER, Door, RouteTable
from .schemas import (
    ConsentChoice,
    ConsentResult,
    CorrectedValue,
    Cursor,
    ExplainRequest,
    IdempotencyKey,
    IfMatch,
    Limit,
    NewFact,
    NewFacts,
    Page,
    PromptPreviewRequest,
    PromptText,
    PromptUserDep,
    PromptVersionNumber,
    Review,
    SearchRequest,
    SubjectMergeBody,
    SubjectNamesBody,
    TopicName,
    UserDep,
    encode_cursor,
    page_of,
    paginate,
    parse_position,
    prompt_versions_of,
    versions_of,
)

table = RouteTable()
ONE = "/v1/users/{user:name}"
FactId = Annotated[str, Path(max_length=200, description="The fact's id.")]
SubjectId = Annotated[str, Path(max_length=200, description="The subject's id.")]
Conversations = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=512)]] | None,
    Query(max_length=100, description="Only what one of these conversations states."),
]
By = Annotated[
    list[Literal["day", "layer", "model", "none"]],
    Query(description="What is not named is summed up; `none` for all of it."),
]


@table.add("GET", ONE + "/facts", USER, door=User.facts)
def facts_list(
    user: UserDep,
    category: Annotated[str | None, Query(max_length=200)] = None,
    kind: FactKind | None = None,
    as_of: datetime | None = None,
    known_at: datetime | None = None,
    archived: bool = False,
    conversation: Conversations = None,
    start_seq: Annotated[int | None, Query(ge=1, le=2**53)] = None,
    end_seq: Annotated[int | None, Query(ge=1, le=2**53)] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Page[Fact]:
    """List the facts by subject, category, key and value; or what held at a time, or is stated in conversations."""
    which: dict[str, Any] = {"conversation": conversation, "start_seq": start_seq, "end_seq": end_seq, "kind": kind}
    if archived or as_of is not None or known_at is not None:
        found = user.facts(category, as_of=as_of, known_at=known_at, archived=archived, **which)
        return paginate(found, _strength if archived else _address, cursor, limit)
    after = parse_position(cursor, str, str, str, str, str)
    return page_of(user.facts(category, limit=limit + 1, after=after, **which), limit, _address)


@table.add("POST", ONE + "/facts", WHOLE_USER, door=User.remember, status_code=201)
def facts_remember(
    user: UserDep, body: NewFact | NewFacts, idempotency_key: IdempotencyKey = None
) -> FactChange | list[FactChange]:
    """
    Add a fact by hand, or replace the one at its address, as if it was said now; or several in their order.

    Of several, none is stored when one is malformed.  One that fails later, such as for messages that do not exist, is named by its
    number, and those before it are stored: send the list again, mended, under the same `Idempotency-Key`.
    """
    if isinstance(body, NewFact):
        return user.remember(**body.model_dump(), idempotency_key=idempotency_key)
    given = [one.model_dump() for one in body]
    for one in given:  # a mistake in the last one is found before the first is stored
        fact_input(**one)
    keys = [idempotency_key and f"{idempotency_key}:{number}" for number in range(len(given))]
    changes = list[FactChange]()
    for number, (one, key) in enumerate(zip(given, keys, strict=True), 1):
        try:
            changes.append(user.remember(**one, idempotency_key=key))
        except HoldfastError as error:
            error.message = f"fact {number} of {len(given)}: {error.message}"
            raise
    return changes


@table.add("GET", ONE + "/facts/{fact_id}", USER, door=User.fact)
def facts_get(user: UserDep, fact_id: FactId, response: Response) -> Fact:
    """Return one fact, live or past, with its evidence."""
    fact = user.fact(fact_id)
    response.headers["ETag"] = f'"{fact.version}"'
    return fact


@table.add("PATCH", ONE + "/facts/{fact_id}", WHOLE_USER, door=User.correct)
def facts_correct(user: UserDep, fact_id: FactId, body: CorrectedValue, if_match: IfMatch = None) -> FactChange:
    """Correct a fact that was wrong from the start: the value held instead, and history shows it; or its importance."""
    return user.correct(fact_id, value=body.value, importance=body.importance, if_version=versions_of(if_match))


@table.add("POST", ONE + "/facts/{fact_id}/never-true", WHOLE_USER, door=User.never_true, repeatable=True)
def facts_never_true(user: UserDep, fact_id: FactId, if_match: IfMatch = None) -> FactChange:
    """Retract a fact that never held; what it had replaced holds again."""
    return user.never_true(fact_id, if_version=versions_of(if_match))


@table.add("POST", ONE + "/facts/{fact_id}/restore", WHOLE_USER, door=User.restore, repeatable=True)
def facts_restore(user: UserDep, fact_id: FactId, if_match: IfMatch = None) -> FactChange:
    """Believe a past fact again."""
    return user.restore(fact_id, if_version=versions_of(if_match))


@table.add("DELETE", ONE + "/facts/{fact_id}", WHOLE_USER, door=User.forget)
def facts_forget(user: UserDep, fact_id: FactId, if_match: IfMatch = None, dry_run: bool = False) -> ErasureReceipt:
    """Erase one fact with the words it rests on."""
    return user.forget(fact_id, if_version=versions_of(if_match), dry_run=dry_run)


@table.add("DELETE", ONE + "/facts", WHOLE_USER, door=User.clear, repeatable=True)
def facts_clear(user: UserDep) -> ErasureReceipt:
    """Erase every fact, live and past, with the words they rest on."""
    return user.clear()


@table.add("GET", ONE + "/history", USER, door=User.history)
def history_list(
    user: UserDep,
    category: Annotated[str | None, Query(min_length=1, max_length=200)] = None,
    key: Annotated[str | None, Query(max_length=200)] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Page[Fact]:
    """List every value that a category, or one of its keys, had, or all of them, oldest first."""
    after = parse_position(cursor, int, int, str)
    position = None if after is None else (from_ms(after[0]), from_ms(after[1]), after[2])
    return page_of(user.history(category, key, limit=limit + 1, after=position), limit, _time)


@table.add("GET", ONE + "/rejected", USER, door=User.rejected)
def rejected_list(user: UserDep, waiting: bool = False, cursor: Cursor = None, limit: Limit = 100) -> Page[Rejected]:
    """List rejected facts, newest first, each with its reason; with `waiting` what the user is asked about instead."""
    after = parse_position(cursor, int, str, str, int, str)
    rejected, last = user.rejected_page(limit=limit, after=after, waiting=waiting)
    return Page(data=rejected, next_cursor=None if last is None else encode_cursor(last))


@table.add("POST", ONE + "/rejected/review", WHOLE_USER, door=User.review)
def rejected_review(user: UserDep, body: Review) -> list[FactChange]:
    """Accept or dismiss what waits for the user, or let it wait again."""
    return user.review(**body.model_dump())


@table.add("GET", ONE + "/story", USER, door=User.story)
def story_get(user: UserDep, subject: Annotated[str | None, Query(max_length=200)] = None) -> Story:
    """Return the dated summary across all conversations about a subject; without lines before there is one."""
    del subject  # the user is about it already, as far as the key allows
    return user.story()


@table.add("GET", ONE + "/profile", USER, door=User.profile)
def profile_get(user: UserDep, budget_tokens: Annotated[int, Query(ge=1, le=1_000_000)] = 500) -> Section:
    """Return what is known about the user as a block for a system prompt; empty while memory is paused."""
    return user.profile(budget_tokens=budget_tokens)


@table.add("POST", ONE + "/search", USER, door=User.search, repeatable=True)
def memory_search(user: UserDep, body: SearchRequest) -> list[Hit]:
    """Search facts, messages and summaries, best first."""
    return user.search(**body.model_dump())


@table.add("GET", ONE + "/subjects", USER, door=User.subjects)
def subjects_list(user: UserDep, cursor: Cursor = None, limit: Limit = 100) -> Page[Subject]:
    """List the subjects that the user speaks of, by name, with their names and how much is held about each."""
    return paginate(user.subjects(), lambda one: (one.name.casefold(), one.id), cursor, limit)


@table.add("PUT", ONE + "/subjects/{id:name}", WHOLE_USER, door=User.subject)
def subjects_declare(user: UserDep, id: SubjectId, body: SubjectNamesBody) -> Subject:
    """Declare a subject, or give it another name or more aliases."""
    return user.subject(id, **body.model_dump())


@table.add("POST", ONE + "/subjects/{id:name}/merge", WHOLE_USER, door=User.merge_subjects)
def subjects_merge(user: UserDep, id: SubjectId, body: SubjectMergeBody) -> SubjectMerge:
    """Make a subject part of another one, with its facts, conversations and names."""
    return user.merge_subjects(id, body.into, dry_run=body.dry_run)


@table.add("GET", ONE + "/usage", APP, door=User.usage)
def usage_of_user(
    user: UserDep,
    by: By = ["layer", "model"],  # noqa: B006
    since: date | None = None,
    until: date | None = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Page[Usage]:
    """List what models were used for on the user's behalf, and what it cost."""
    found = user.usage(by=[part for part in by if part != "none"], since=since, until=until)
    return paginate(found, used_for, cursor, limit)


@table.add("POST", ONE + "/explain", APP, door=User.explain, repeatable=True)
def memory_explain(user: UserDep, body: ExplainRequest) -> Explained:
    """Explain what a question finds, with the parts of each score, and what a context would recall."""
    return user.explain(body.query, at=body.at, limit=body.limit)


@table.add("GET", ONE + "/metrics", APP, door=User.metrics)
def metrics_of_user(user: UserDep, since: date | None = None, until: date | None = None) -> Metrics:
    """Measure how well memory serves this user, from what is stored."""
    return user.metrics(since=since, until=until)


@table.add("GET", ONE + "/export", WHOLE_USER, door=User.export)
def export_get(
    user: UserDep, format: Literal["holdfast", "memories"] = "holdfast"
) -> dict[str, Any] | list[dict[str, Any]]:
    """Export everything that is held about the user, as data that import takes back; or the facts alone as memories."""
    return memories_of(user.export()) if format == "memories" else user.export()


@table.add("POST", ONE + "/import", APP, door=User.import_, status_code=204, response_model=None)
def import_into(request: Request, user: UserDep, body: dict[str, Any]) -> Response | None:
    """Import an export into this user's memory, which must be empty."""
    with request.app.state.quotas.counting(request.state.key, count_messages(body)) as wait_s:
        if wait_s:
            return quota_exceeded(wait_s)
        user.import_(body)
    return None


@table.add("DELETE", ONE, WHOLE_USER, door=User.erase, repeatable=True)
def user_erase(user: UserDep) -> ErasureReceipt:
    """Erase everything that is held; a pause, an opt-out, and categories that are never remembered stay in force."""
    return user.erase()


def used_for(usage: Usage) -> tuple[str, ...]:
    """Return the sort key of usage."""
    return (usage.org, usage.user, usage.bot, usage.day, usage.layer, usage.model)


def _address(fact: Fact) -> tuple[str, str, str, str, str]:
    return (fact.subject, fact.category, fact.key, fact.value, fact.id)


def _strength(fact: Fact) -> tuple[float, str]:
    return (-fact.strength, fact.id)


def _time(fact: Fact) -> tuple[int, int, str]:
    return (to_ms(fact.valid_from), to_ms(fact.recorded_at), fact.id)


PromptName = Annotated[
    str, Path(description="`chunk_summary`, `meta_summary`, `fact_extraction`, `episodes`, `character` or `story`.")
]


@table.add("GET", ONE + "/consent", USER, door=User.status)
def consent_get(user: UserDep) -> Consent:
    """Return the user's choice, and since when it holds."""
    return user.status()


CONSENT_DOORS = (
    Door(User.pause, {"state": "paused"}),
    Door(User.resume, {"state": "active", "only_if": "paused"}),
    Door(User.opt_out, {"state": "opted-out"}, answer="receipt"),
    Door(User.opt_in, {"state": "active"}),
)


@table.add("PUT", ONE + "/consent", USER, door=CONSENT_DOORS)
def consent_choose(user: UserDep, body: ConsentChoice) -> ConsentResult:
    """Pause, resume, opt out (which erases unless `erase` is false) or opt in."""
    receipt = None
    if body.only_if in (None, user.status().state):
        receipt = _choose(user, body)
    now = user.status()
    return ConsentResult(state=now.state, since=now.since, never=now.never, receipt=receipt)


def _choose(user: User, body: ConsentChoice) -> ErasureReceipt | None:
    if body.state == "opted-out":
        return user.opt_out(erase=body.erase)
    if body.state == "paused":
        user.pause()
    else:
        user.opt_in()
    return None


@table.add("POST", ONE + "/never", USER, door=User.never_remember, repeatable=True)
def topics_never(user: UserDep, body: TopicName) -> Consent:
    """Learn no more facts of a topic."""
    user.never_remember(body.topic)
    return user.status()


@table.add("DELETE", ONE + "/never", USER, door=User.allow, repeatable=True)
def topics_allow(user: UserDep, topic: Annotated[str, Query(min_length=1, max_length=10_000)]) -> Consent:
    """Learn facts of a topic again."""
    user.allow(topic)
    return user.status()


@table.add("GET", ONE + "/prompts/{name}", WHOLE_USER, door=Prompts.get)
def prompts_get(user: PromptUserDep, name: PromptName, response: Response) -> str:
    """Return the prompt in use."""
    response.headers["ETag"] = f'"{version_in_use(user.prompts.versions(name))}"'  # first: never newer than the text
    return user.prompts.get(name)


@table.add("PUT", ONE + "/prompts/{name}", WHOLE_USER, door=Prompts.set)
def prompts_set(
    user: PromptUserDep, name: PromptName, body: PromptText, response: Response, if_match: IfMatch = None
) -> PromptVersion:
    """Use another text from now on."""
    version = user.prompts.set(name, body.text, if_version=prompt_versions_of(if_match))
    response.headers["ETag"] = f'"{version.version}"'
    return version


@table.add("DELETE", ONE + "/prompts/{name}", WHOLE_USER, door=Prompts.reset, repeatable=True)
def prompts_reset(user: PromptUserDep, name: PromptName, response: Response, if_match: IfMatch = None) -> PromptVersion:
    """Use the library's own text again."""
    version = user.prompts.reset(name, if_version=prompt_versions_of(if_match))
    response.headers["ETag"] = '"0"'
    return version


@table.add("GET", ONE + "/prompts/{name}/versions", WHOLE_USER, door=Prompts.versions)
def prompts_versions(
    user: PromptUserDep, name: PromptName, cursor: Cursor = None, limit: Limit = 100
) -> Page[PromptVersion]:
    """List the versions of a prompt, oldest first."""
    return paginate(user.prompts.versions(name), lambda version: version.version, cursor, limit)


@table.add("POST", ONE + "/prompts/{name}/drafts", WHOLE_USER, door=Prompts.draft, status_code=201)
def prompts_draft(user: PromptUserDep, name: PromptName, body: PromptText) -> PromptVersion:
    """Save a text that is not used yet, to be tried and activated later."""
    return user.prompts.draft(name, body.text)


@table.add("POST", ONE + "/prompts/{name}/activate", WHOLE_USER, door=Prompts.activate)
def prompts_activate(user: PromptUserDep, name: PromptName, body: PromptVersionNumber) -> PromptVersion:
    """Use the text of a draft, or of an older version, from now on."""
    return user.prompts.activate(name, body.version, percent=body.percent)


@table.add("POST", ONE + "/prompts/{name}/preview", WHOLE_USER, door=Door(Prompts.preview, wait_s=60.0))
def prompts_preview(user: PromptUserDep, name: PromptName, body: PromptPreviewRequest) -> PromptPreview:
    """Try a text on saved chunks beside the current summaries; with `dry_run`, estimate it."""
    return user.prompts.preview(name, body.text, limit=body.limit, dry_run=body.dry_run)
