"""The prompts pages: edit a user's prompts, try them on saved chunks, save, activate and roll back."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ...errors import BadInput, ConfigError, Conflict, HoldfastError, NotFound
from ...jobs.model_client import MAX_PROMPT_CHARS
from ...reports import PromptPreview
from ...types import PromptVersion
from ...user import Prompts
from ..routing import OPERATOR, RouteTable
from ..schemas import CallerDep
from .layout import Form, FormDep, here, link, render, scope_query, see_other
from .users import scope_fields
from .workbench.transcript import word_diff

table = RouteTable()
PATH = "/dashboard/prompts"
ONE = PATH + "/{name}"
ABOUT = {
    "fact_extraction": ("Facts", "Which facts to extract from messages, and how to word them"),
    "chunk_summary": ("Chunk summaries", "How to summarize a chunk of messages"),
    "meta_summary": ("Summaries of summaries", "How to summarize several summaries"),
    "episodes": ("Episodes", "Which events to note, and how to word them"),
    "character": ("The character", "Which facts to note about the character that the assistant plays"),
    "story": ("Stories", "How to tell one story across all conversations about a subject"),
}
SAMPLES = 3
OWNERS = {
    "user": "A custom prompt replaces the default; the format of the answer stays the same",
    "bot": "For users of this bot who have none of their own",
    "org": "For users who have none of their own, where their bot has none either",
}
NOTICES = {
    "drafted": "Saved as a draft. It is not in use yet.",
    "used": "In use from the next model call on. Existing summaries and facts stay unchanged.",
    "reset": "The default prompt is in use again.",
}


@table.page("GET", PATH, OPERATOR)
def prompts_page(request: Request, caller: CallerDep) -> Response:
    """Show the prompts of one user, of the bot and of the org."""
    groups = []
    for whose in (*(("",) if caller.grant.user else ()), "bot", "org"):
        prompts, whom = _prompts_of(caller, whose)
        query = {"user": caller.grant.user} if not whose else {"for": whose}
        scope = scope_query(caller.grant.org, caller.grant.bot)
        rows = []
        for name, (title, about) in ABOUT.items():
            versions = prompts.versions(name)
            address = link(ONE, name=name, **query, **scope)
            row = {
                "title": title,
                "about": about,
                "address": address,
                "used": active_version(versions),
                "all": versions,
            }
            rows.append(row)
        groups.append({"id": whose or "user", "whom": whom, "rows": rows, "note": OWNERS[whose or "user"]})
    return render("prompts.html", request, title="Prompts", whom=scope_fields(caller, request), groups=groups)


@table.page("GET", ONE, OPERATOR)
def prompt_page(request: Request, caller: CallerDep, name: str) -> Response:
    """Show one prompt with its versions."""
    return _editor(request, caller, name)


@table.page("POST", ONE, OPERATOR)
def prompt_change(request: Request, caller: CallerDep, name: str, form: FormDep) -> Response:
    """Try, save, activate or reset a prompt."""
    prompts, do = _chosen(request, caller, name)[0], form["do"]
    clean = here(request, diff=None)
    if do in ("estimate", "try"):
        return _try_prompt(request, caller, name, form["text"], dry_run=do == "estimate")
    try:
        if do in ("draft", "use"):
            call = prompts.draft if do == "draft" else prompts.set
            call(name, form["text"])
            return see_other(clean, said="drafted" if do == "draft" else "used")
        if do == "activate":
            prompts.activate(name, _form_version(form))
            return see_other(clean, said="used")
        if do == "reset":
            prompts.reset(name)
            return see_other(clean, said="reset")
    except BadInput as wrong:
        return _editor(request, caller, name, text=form["text"], error=wrong)
    raise HTTPException(422, f"Unknown action {do}")


def _try_prompt(request: Request, caller: CallerDep, name: str, text: str, *, dry_run: bool) -> Response:
    """
    Show the editor with the results for saved chunks.

    It is shown once and stored nowhere, so an erasure need not look for it.
    """
    try:
        found = _chosen(request, caller, name)[0].preview(name, text, limit=SAMPLES, dry_run=dry_run)
    except (BadInput, ConfigError, Conflict) as error:
        return _editor(request, caller, name, text=text, error=error)
    return _editor(request, caller, name, text=text, preview=found)


def _editor(
    request: Request,
    caller: CallerDep,
    name: str,
    *,
    text: str | None = None,
    preview: PromptPreview | None = None,
    error: HoldfastError | None = None,
) -> Response:
    prompts, whom = _chosen(request, caller, name)
    versions, words = prompts.versions(name), prompts.get(name)
    used = active_version(versions)
    title, about = ABOUT[name]
    compared = request.query_params.get("diff", "")
    other = next((one for one in versions if str(one.version) == compared), None)
    return render(
        "prompt.html",
        request,
        title=f"{title} for {whom}",
        shared="for" in request.query_params,
        status=422 if isinstance(error, BadInput) else 200,
        notices=NOTICES,
        about=about,
        prompt=name,
        name=name,
        words=words,
        text=words if text is None else text,
        most=MAX_PROMPT_CHARS,
        versions=list(reversed(versions)),
        used=used,
        next_version=max((one.version for one in versions), default=0) + 1,
        preview=preview,
        samples=[] if preview is None else [sample_row(one) for one in preview.samples],
        error=error,
        other=other,
        diff=[] if other is None else word_diff(other.text, words),
        tried_on=SAMPLES,
        back=link(PATH, user=caller.grant.user, **scope_query(caller.grant.org, caller.grant.bot)),
        whom=scope_fields(caller, request),
    )


def _chosen(request: Request, caller: CallerDep, name: str) -> tuple[Prompts, str]:
    """Return the prompts that the address is about, and whose they are in words."""
    if name not in ABOUT:
        raise NotFound(f"there is no prompt {name!r}", hint=f"use {', '.join(ABOUT)}")
    return _prompts_of(caller, request.query_params.get("for", ""))


def _prompts_of(caller: CallerDep, whose: str) -> tuple[Prompts, str]:
    """Return the prompts of the user, of all users of the bot or of the org, and whose they are in words."""
    grant = caller.grant
    only = grant.key.bot if grant.key else None
    if whose == "org" and only is None:
        return caller.memory.admin.prompts(org=grant.org), f"organization {grant.org}"
    if whose in ("bot", "org"):
        return caller.memory.admin.prompts(org=grant.org, bot=only or grant.bot), f"bot {only or grant.bot}"
    return caller.user().prompts, str(grant.user)


def _form_version(form: Form) -> int:
    if not form["version"].isascii() or not form["version"].isdigit() or len(form["version"]) > 9:
        raise BadInput("the version must be a number")
    return int(form["version"])


def active_version(versions: list[PromptVersion]) -> PromptVersion | None:
    """Return the version in use; ``None`` for the default prompt."""
    return next((one for one in reversed(versions) if not one.draft), None)


def sample_row(one: Any) -> dict[str, Any]:
    return {"one": one, "diff": word_diff(one.old, one.new) if one.new and not one.error else []}
