"""``/v1/users/{user}``: facts, history, search, consent, prompts, export, erasure."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import Header, Path, Query, Response
from starlette.exceptions import HTTPException

from ..person import Person
from ..reports import ErasureReceipt, Usage
from ..types import Consent, Fact, FactChange, FactKind, Hit, PromptVersion, Rejected
from .caller import NAMED, Cursor, Limit, Whose
from .routing import APP, PERSON, USER, Table
from .shapes import Choice, Page, PromptText, SearchFor, Told, Topic, Value, etag, page

table = Table()
ONE = "/v1/users/{user:name}"
FactId = Annotated[str, Path(max_length=200, description="The fact's id.")]
PromptName = Annotated[str, Path(description="chunk_summary, meta_summary or fact_extraction.")]
IfMatch = Annotated[str | None, Header(description="Only if it still is what this `ETag` names.")]


@table.add("GET", ONE + "/facts", PERSON, response_model=Page[Fact], dependencies=NAMED)
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
    return page(found, _address, cursor, limit)


@table.add("POST", ONE + "/facts", USER, response_model=FactChange, status_code=201, dependencies=NAMED)
def facts_remember(whose: Whose, body: Told) -> FactChange:
    """Add a fact by hand, or replace the one at its address, as if it was said now."""
    return whose.remember(**body.model_dump())


@table.add("GET", ONE + "/facts/{fact_id}", PERSON, response_model=Fact, dependencies=NAMED)
def facts_get(whose: Whose, fact_id: FactId, response: Response) -> Fact:
    """One fact, live or past, with the words it rests on."""
    fact = whose.fact(fact_id)
    response.headers["ETag"] = fact_tag(fact)
    return fact


@table.add("PATCH", ONE + "/facts/{fact_id}", USER, response_model=FactChange, dependencies=NAMED)
def facts_correct(whose: Whose, fact_id: FactId, body: Value, if_match: IfMatch = None) -> FactChange:
    """The fact was wrong from the start: the value held instead, and history says so."""
    _unchanged(whose, fact_id, if_match)
    return whose.correct(fact_id, value=body.value)


@table.add("POST", ONE + "/facts/{fact_id}/never-true", USER, response_model=FactChange, dependencies=NAMED)
def facts_never_true(whose: Whose, fact_id: FactId, if_match: IfMatch = None) -> FactChange:
    """The fact never held; what it had replaced holds again."""
    _unchanged(whose, fact_id, if_match)
    return whose.never_true(fact_id)


@table.add("POST", ONE + "/facts/{fact_id}/restore", USER, response_model=FactChange, dependencies=NAMED)
def facts_restore(whose: Whose, fact_id: FactId, if_match: IfMatch = None) -> FactChange:
    """Believe a past fact again."""
    _unchanged(whose, fact_id, if_match)
    return whose.restore(fact_id)


@table.add("DELETE", ONE + "/facts/{fact_id}", USER, response_model=ErasureReceipt, dependencies=NAMED)
def facts_forget(whose: Whose, fact_id: FactId, if_match: IfMatch = None) -> ErasureReceipt:
    """Erase one fact with the words it rests on."""
    _unchanged(whose, fact_id, if_match)
    return whose.forget(fact_id)


@table.add("DELETE", ONE + "/facts", USER, response_model=ErasureReceipt, dependencies=NAMED)
def facts_clear(whose: Whose) -> ErasureReceipt:
    """Erase every fact, live and past, with the words they rest on."""
    return whose.clear()


@table.add("GET", ONE + "/history", PERSON, response_model=list[Fact], dependencies=NAMED)
def history_list(
    whose: Whose,
    category: Annotated[str, Query(min_length=1, max_length=200)],
    key: Annotated[str | None, Query(max_length=200)] = None,
) -> list[Fact]:
    """Every value that a category, or one of its keys, had, oldest first."""
    return whose.history(category, key)


@table.add("GET", ONE + "/rejected", PERSON, response_model=list[Rejected], dependencies=NAMED)
def rejected_list(whose: Whose, limit: Limit = 100) -> list[Rejected]:
    """What was read but not believed, newest first, each with its reason."""
    return whose.rejected(limit=limit)


@table.add("POST", ONE + "/search", PERSON, response_model=list[Hit], dependencies=NAMED)
def memory_search(whose: Whose, body: SearchFor) -> list[Hit]:
    """Facts, messages and summaries, best first."""
    return whose.search(**body.model_dump())


@table.add("GET", ONE + "/consent", PERSON, response_model=Consent, dependencies=NAMED)
def consent_get(whose: Whose) -> Consent:
    """What the user chose, and since when."""
    return whose.status()


@table.add("PUT", ONE + "/consent", PERSON, response_model=Consent, dependencies=NAMED)
def consent_choose(whose: Whose, body: Choice) -> Consent:
    """Pause, resume, opt out (and erase, unless told otherwise) or opt in."""
    if body.state == "paused":
        whose.pause()
    elif body.state == "opted-out":
        whose.opt_out(erase=body.erase)
    else:
        whose.opt_in()
    return whose.status()


@table.add("POST", ONE + "/never", PERSON, response_model=Consent, dependencies=NAMED)
def topics_never(whose: Whose, body: Topic) -> Consent:
    """Learn no more facts of a topic."""
    whose.never_remember(body.topic)
    return whose.status()


@table.add("DELETE", ONE + "/never", PERSON, response_model=Consent, dependencies=NAMED)
def topics_allow(whose: Whose, topic: Annotated[str, Query(min_length=1, max_length=10_000)]) -> Consent:
    """Learn facts of a topic again."""
    whose.allow(topic)
    return whose.status()


@table.add("GET", ONE + "/prompts/{name}", APP, response_model=str, dependencies=NAMED)
def prompts_get(whose: Whose, name: PromptName, response: Response) -> str:
    """The words in use for what a model shall do."""
    text = whose.prompts.get(name)
    response.headers["ETag"] = etag(text)
    return text


@table.add("PUT", ONE + "/prompts/{name}", APP, response_model=PromptVersion, dependencies=NAMED)
def prompts_set(whose: Whose, name: PromptName, body: PromptText, if_match: IfMatch = None) -> PromptVersion:
    """Use other words from now on."""
    _same(if_match, etag(whose.prompts.get(name)))
    return whose.prompts.set(name, body.text)


@table.add("DELETE", ONE + "/prompts/{name}", APP, response_model=PromptVersion, dependencies=NAMED)
def prompts_reset(whose: Whose, name: PromptName) -> PromptVersion:
    """Use the words that come with the library again."""
    return whose.prompts.reset(name)


@table.add("GET", ONE + "/prompts/{name}/versions", APP, response_model=list[PromptVersion], dependencies=NAMED)
def prompts_versions(whose: Whose, name: PromptName) -> list[PromptVersion]:
    """What was set and reset, oldest first."""
    return whose.prompts.versions(name)


@table.add("GET", ONE + "/usage", APP, response_model=list[Usage], dependencies=NAMED)
def usage_of_user(whose: Whose) -> list[Usage]:
    """What models were used for on the user's behalf, and what it cost, by purpose and model."""
    return whose.usage()


@table.add("GET", ONE + "/export", USER, response_model=dict[str, Any], dependencies=NAMED)
def export_get(whose: Whose) -> dict[str, Any]:
    """Everything that is held about the user, as data that import takes back."""
    return whose.export()


@table.add("DELETE", ONE, USER, response_model=ErasureReceipt, dependencies=NAMED)
def user_erase(whose: Whose) -> ErasureReceipt:
    """Erase everything that is held; only a pause or an opt-out stays, so that it goes on to hold."""
    return whose.erase()


def fact_tag(fact: Fact) -> str:
    """The entity tag of a fact: it changes with whatever people see of it, not with how often it is used."""
    ended = None if fact.valid_to is None else fact.valid_to.isoformat()
    quotes = [(e.conversation, e.seq, e.start) for e in fact.evidence]
    return etag([fact.id, fact.value, fact.text, ended, fact.ended_because, fact.superseded_by, quotes])


def _address(fact: Fact) -> tuple[str, str, str, str, str]:
    return (fact.subject, fact.category, fact.key, fact.value, fact.id)


def _unchanged(whose: Person, fact_id: str, if_match: str | None) -> None:
    if if_match is not None:
        _same(if_match, fact_tag(whose.fact(fact_id)))


def _same(if_match: str | None, tag: str) -> None:
    if if_match is not None and if_match not in (tag, "*"):
        raise HTTPException(412, "It has changed meanwhile; read it again")
