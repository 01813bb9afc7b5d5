"""``/v1/users/{user}/consent``, ``/never`` and ``/prompts``: what a user, or somebody for them, decides."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Response

from ..figures import PromptPreview
from ..reports import ErasureReceipt
from ..types import Consent, PromptVersion
from ..user import User
from .caller import NAMED, Cursor, Limit, Whose
from .matching import IfMatch, prompt_matches
from .routing import APP, USER, Table
from .shapes import Choice, Chosen, Page, PromptChoice, PromptText, PromptTrial, Topic, etag, page

table = Table()
ONE = "/v1/users/{user:name}"
PromptName = Annotated[str, Path(description="`chunk_summary`, `meta_summary` or `fact_extraction`.")]


@table.add("GET", ONE + "/consent", USER, response_model=Consent, dependencies=NAMED)
def consent_get(whose: Whose) -> Consent:
    """What the user chose, and since when."""
    return whose.status()


@table.add("PUT", ONE + "/consent", USER, response_model=Chosen, dependencies=NAMED)
def consent_choose(whose: Whose, body: Choice) -> Chosen:
    """Pause, resume, opt out (and erase, unless told otherwise) or opt in."""
    receipt = None
    if body.only_if in (None, whose.status().state):
        receipt = _choose(whose, body)
    now = whose.status()
    return Chosen(state=now.state, since=now.since, never=now.never, receipt=receipt)


def _choose(whose: User, body: Choice) -> ErasureReceipt | None:
    if body.state == "opted-out":
        return whose.opt_out(erase=body.erase)
    if body.state == "paused":
        whose.pause()
    else:
        whose.opt_in()
    return None


@table.add("POST", ONE + "/never", USER, response_model=Consent, dependencies=NAMED)
def topics_never(whose: Whose, body: Topic) -> Consent:
    """Learn no more facts of a topic; saying so twice is saying it once."""
    whose.never_remember(body.topic)
    return whose.status()


@table.add("DELETE", ONE + "/never", USER, response_model=Consent, dependencies=NAMED)
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
def prompts_set(
    whose: Whose, name: PromptName, body: PromptText, response: Response, if_match: IfMatch = None
) -> PromptVersion:
    """Use other words from now on."""
    with prompt_matches(name, if_match, etag):
        version = whose.prompts.set(name, body.text)
        response.headers["ETag"] = etag(whose.prompts.get(name))
        return version


@table.add("DELETE", ONE + "/prompts/{name}", APP, response_model=PromptVersion, dependencies=NAMED)
def prompts_reset(whose: Whose, name: PromptName, response: Response, if_match: IfMatch = None) -> PromptVersion:
    """Use the words that come with the library again."""
    with prompt_matches(name, if_match, etag):
        version = whose.prompts.reset(name)
        response.headers["ETag"] = etag(whose.prompts.get(name))
        return version


@table.add("GET", ONE + "/prompts/{name}/versions", APP, response_model=Page[PromptVersion], dependencies=NAMED)
def prompts_versions(whose: Whose, name: PromptName, cursor: Cursor = None, limit: Limit = 100) -> Page[PromptVersion]:
    """What was set and reset, oldest first."""
    return page(whose.prompts.versions(name), lambda version: version.version, cursor, limit)


@table.add(
    "POST", ONE + "/prompts/{name}/drafts", APP, response_model=PromptVersion, status_code=201, dependencies=NAMED
)
def prompts_draft(whose: Whose, name: PromptName, body: PromptText) -> PromptVersion:
    """Save words that are not used yet, to be tried and activated later."""
    return whose.prompts.draft(name, body.text)


@table.add("POST", ONE + "/prompts/{name}/activate", APP, response_model=PromptVersion, dependencies=NAMED)
def prompts_activate(whose: Whose, name: PromptName, body: PromptChoice) -> PromptVersion:
    """Use the words of a draft, or of an older version, from now on."""
    return whose.prompts.activate(name, body.version)


@table.add("POST", ONE + "/prompts/{name}/preview", APP, response_model=PromptPreview, dependencies=NAMED)
def prompts_preview(whose: Whose, name: PromptName, body: PromptTrial) -> PromptPreview:
    """Try words on saved chunks beside what stands there; with `dry_run`, say what that would take."""
    return whose.prompts.preview(name, body.text, limit=body.limit, dry_run=body.dry_run)
