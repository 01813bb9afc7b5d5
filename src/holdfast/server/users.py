"""``/v1/users/{user}``: facts, history, search, consent, prompts, export, erasure."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import date, datetime
from typing import Annotated, Any, Literal

from fastapi import Path, Query, Request, Response

from ..clock import to_ms
from ..figures import Explained, Metrics
from ..reports import ErasureReceipt, Usage
from ..types import Fact, FactChange, FactKind, Hit, Rejected, Section
from .caller import NAMED, Cursor, Limit, Once, Whose
from .matching import IfMatch, fact_matches
from .quotas import messages_in, refused
from .routing import APP, USER, WHOLE_USER, Table
from .shapes import ExplainFor, Page, SearchFor, Told, Value, etag, page

table = Table()
ONE = "/v1/users/{user:name}"
MOST_REJECTED = 100_000
FactId = Annotated[str, Path(max_length=200, description="The fact's id.")]
By = Annotated[
    list[Literal["day", "layer", "model", "none"]],
    Query(description="What is not named is summed up; `none` for all of it."),
]


@table.add("GET", ONE + "/facts", USER, response_model=Page[Fact], dependencies=NAMED)
def facts_list(
    whose: Whose,
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
    return page(found, _strength if archived else _address, cursor, limit)


@table.add("POST", ONE + "/facts", WHOLE_USER, response_model=FactChange, status_code=201, dependencies=NAMED)
def facts_remember(whose: Whose, body: Told, idempotency_key: Once = None) -> FactChange:
    """Add a fact by hand, or replace the one at its address, as if it was said now."""
    return whose.remember(**body.model_dump(), idempotency_key=idempotency_key)


@table.add("GET", ONE + "/facts/{fact_id}", USER, response_model=Fact, dependencies=NAMED)
def facts_get(whose: Whose, fact_id: FactId, response: Response) -> Fact:
    """One fact, live or past, with the words it rests on."""
    fact = whose.fact(fact_id)
    response.headers["ETag"] = fact_tag(fact)
    return fact


@table.add("PATCH", ONE + "/facts/{fact_id}", WHOLE_USER, response_model=FactChange, dependencies=NAMED)
def facts_correct(whose: Whose, fact_id: FactId, body: Value, if_match: IfMatch = None) -> FactChange:
    """The fact was wrong from the start: the value held instead, and history says so."""
    with _unchanged(fact_id, if_match):
        return whose.correct(fact_id, value=body.value)


@table.add("POST", ONE + "/facts/{fact_id}/never-true", WHOLE_USER, response_model=FactChange, dependencies=NAMED)
def facts_never_true(whose: Whose, fact_id: FactId, if_match: IfMatch = None) -> FactChange:
    """The fact never held; what it had replaced holds again."""
    with _unchanged(fact_id, if_match):
        return whose.never_true(fact_id)


@table.add("POST", ONE + "/facts/{fact_id}/restore", WHOLE_USER, response_model=FactChange, dependencies=NAMED)
def facts_restore(whose: Whose, fact_id: FactId, if_match: IfMatch = None) -> FactChange:
    """Believe a past fact again."""
    with _unchanged(fact_id, if_match):
        return whose.restore(fact_id)


@table.add("DELETE", ONE + "/facts/{fact_id}", WHOLE_USER, response_model=ErasureReceipt, dependencies=NAMED)
def facts_forget(whose: Whose, fact_id: FactId, if_match: IfMatch = None) -> ErasureReceipt:
    """Erase one fact with the words it rests on."""
    with _unchanged(fact_id, if_match):
        return whose.forget(fact_id)


@table.add("DELETE", ONE + "/facts", WHOLE_USER, response_model=ErasureReceipt, dependencies=NAMED)
def facts_clear(whose: Whose) -> ErasureReceipt:
    """Erase every fact, live and past, with the words they rest on."""
    return whose.clear()


@table.add("GET", ONE + "/history", USER, response_model=Page[Fact], dependencies=NAMED)
def history_list(
    whose: Whose,
    category: Annotated[str | None, Query(min_length=1, max_length=200)] = None,
    key: Annotated[str | None, Query(max_length=200)] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Page[Fact]:
    """Every value that a category, or one of its keys, had, or all of them, oldest first."""
    return page(whose.history(category, key), _time, cursor, limit)


@table.add("GET", ONE + "/rejected", USER, response_model=Page[Rejected], dependencies=NAMED)
def rejected_list(whose: Whose, cursor: Cursor = None, limit: Limit = 100) -> Page[Rejected]:
    """What was read but not believed, newest first, each with its reason."""
    return page(whose.rejected(limit=MOST_REJECTED), _refusal, cursor, limit)


@table.add("GET", ONE + "/profile", USER, response_model=Section, dependencies=NAMED)
def profile_get(whose: Whose, budget_tokens: Annotated[int, Query(ge=1, le=1_000_000)] = 500) -> Section:
    """What is known about the user, as a block for a system prompt; empty while memory is paused."""
    return whose.profile(budget_tokens=budget_tokens)


@table.add("POST", ONE + "/search", USER, response_model=list[Hit], dependencies=NAMED)
def memory_search(whose: Whose, body: SearchFor) -> list[Hit]:
    """Facts, messages and summaries, best first."""
    return whose.search(**body.model_dump())


@table.add("GET", ONE + "/usage", APP, response_model=Page[Usage], dependencies=NAMED)
def usage_of_user(
    whose: Whose,
    by: By = ["layer", "model"],  # noqa: B006
    since: date | None = None,
    until: date | None = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Page[Usage]:
    """What models were used for on the user's behalf, and what it cost."""
    found = whose.usage(by=[part for part in by if part != "none"], since=since, until=until)
    return page(found, used_for, cursor, limit)


@table.add("POST", ONE + "/explain", APP, response_model=Explained, dependencies=NAMED)
def memory_explain(whose: Whose, body: ExplainFor) -> Explained:
    """What a question finds, with the parts of each score, and what of it a context would recall."""
    return whose.explain(body.query, at=body.at, limit=body.limit)


@table.add("GET", ONE + "/metrics", APP, response_model=Metrics, dependencies=NAMED)
def metrics_of_user(whose: Whose, since: date | None = None, until: date | None = None) -> Metrics:
    """How well memory serves this user, counted from what is stored."""
    return whose.metrics(since=since, until=until)


@table.add("GET", ONE + "/export", WHOLE_USER, response_model=dict[str, Any], dependencies=NAMED)
def export_get(whose: Whose) -> dict[str, Any]:
    """Everything that is held about the user, as data that import takes back."""
    return whose.export()


@table.add("POST", ONE + "/import", APP, status_code=204, response_model=None, dependencies=NAMED)
def import_into(request: Request, whose: Whose, body: dict[str, Any]) -> Response | None:
    """Take an export back into this user's memory, which must be empty."""
    with request.app.state.quotas.counting(request.state.key, messages_in(body)) as wait_s:
        if wait_s:
            return refused(wait_s)
        whose.import_(body)
    return None


@table.add("DELETE", ONE, WHOLE_USER, response_model=ErasureReceipt, dependencies=NAMED)
def user_erase(whose: Whose) -> ErasureReceipt:
    """Erase everything that is held; only a pause or an opt-out stays, so that it goes on to hold."""
    return whose.erase()


def fact_tag(fact: Fact) -> str:
    """The entity tag of a fact: it changes with whatever users see of it, not with how often it is used."""
    ended = None if fact.valid_to is None else fact.valid_to.isoformat()
    quotes = [(e.conversation, e.seq, e.start) for e in fact.evidence]
    return etag([fact.id, fact.value, fact.text, ended, fact.ended_because, fact.superseded_by, quotes])


def used_for(usage: Usage) -> tuple[str, ...]:
    """By what usage is listed."""
    return (usage.org, usage.user, usage.bot, usage.day, usage.layer, usage.model)


def _address(fact: Fact) -> tuple[str, str, str, str, str]:
    return (fact.subject, fact.category, fact.key, fact.value, fact.id)


def _strength(fact: Fact) -> tuple[float, str]:
    return (-fact.strength, fact.id)


def _time(fact: Fact) -> tuple[int, int, str]:
    return (to_ms(fact.valid_from), to_ms(fact.recorded_at), fact.id)


def _refusal(refused: Rejected) -> tuple[int, str, int, int, str, str, str]:
    claim = refused.candidate
    at_ms = 0 if refused.at is None else to_ms(refused.at)
    return (-at_ms, refused.conversation, claim.seq, claim.start, claim.category, claim.key, claim.value)


def _unchanged(fact_id: str, if_match: str | None) -> AbstractContextManager[None]:
    return fact_matches(fact_id, if_match, fact_tag)
