"""The prompts pages: edit a user's prompts, try them on saved chunks, save, activate and roll back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from datetime import datetime
from typing import Any

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ...conversation import Conversation
from ...errors import BadInput, Changed, ConfigError, Conflict, HoldfastError, NotFound
from ...jobs.model_client import MAX_PROMPT_CHARS, version_in_use
from ...reports import PromptPreview, RebuildReport
from ...scope import BACKGROUND, acting
from ...text import dataclass
from ...types import BY_HAND_CONVERSATION, PromptVersion
from ...user import Prompts
from ..jobs import OnProgress, Owner, ReportData, TasksDep, report_data
from ..routing import OPERATOR, RouteTable
from ..schemas import CallerDep
from .layout import Form, FormDep, here, link, render, scope_query, see_other
from .texts import mark, translate
from .users import scope_fields
from .workbench.transcript import word_diff

table = RouteTable()
PATH = "/dashboard/prompts"
ONE = PATH + "/{name}"
ABOUT = {
    "fact_extraction": (mark("Facts"), mark("Which facts to extract from messages, and how to word them")),
    "chunk_summary": (mark("Chunk summaries"), mark("How to summarize a chunk of messages")),
    "meta_summary": (mark("Summaries of summaries"), mark("How to summarize several summaries")),
    "episodes": (mark("Episodes"), mark("Which events to note, and how to word them")),
    "character": (mark("The character"), mark("Which facts to note about the character that the assistant plays")),
    "story": (mark("Stories"), mark("How to tell one story across all conversations about a subject")),
}
SAMPLES = 3
LAYERS = {  # what a rebuild makes again with a prompt
    "fact_extraction": "facts",
    "chunk_summary": "summaries",
    "meta_summary": "meta",
    "episodes": "episodes",
}
MAX_AFFECTED = 200  # conversations that one rebuild takes
USERS_READ = 100
OWNERS = {
    "user": mark("A custom prompt replaces the default; the format of the answer stays the same"),
    "bot": mark("For users of this bot who have none of their own"),
    "org": mark("For users who have none of their own, where their bot has none either"),
}
NOTICES = {
    "drafted": mark("Saved as a draft. It is not in use yet."),
    "used": mark("In use from the next model call on. Existing summaries and facts stay unchanged."),
    "staged": mark(
        "In use for some users from the next model call on: always the same ones, also when you raise the share."
    ),
    "reset": mark("The default prompt is in use again."),
    "rebuilding": mark(
        "Rebuilding in the background. The page Jobs shows the progress, and each conversation has its Revert."
    ),
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
    return render(
        "prompts.html", request, title=translate("Prompts"), whom=scope_fields(caller, request), groups=groups
    )


@table.page("GET", ONE, OPERATOR)
def prompt_page(request: Request, caller: CallerDep, name: str) -> Response:
    """Show one prompt with its versions."""
    return _editor(request, caller, name)


@table.page("POST", ONE, OPERATOR)
def prompt_change(request: Request, caller: CallerDep, name: str, tasks: TasksDep, form: FormDep) -> Response:
    """Try, save, activate or reset a prompt, or rebuild what an earlier version made."""
    prompts, do = _chosen(request, caller, name)[0], form["do"]
    clean = here(request, diff=None)
    if do in ("estimate", "try"):
        return _try_prompt(request, caller, name, form, dry_run=do == "estimate")
    if do in ("affected", "rebuild") and name in LAYERS:
        return _rebuild_affected(request, caller, name, tasks, dry_run=do == "affected")
    try:
        if do == "draft":
            prompts.draft(name, form["text"])
            return see_other(clean, said="drafted")
        if do == "use":
            prompts.set(name, form["text"], if_version=_form_version(form, "seen") if "seen" in form else None)
            return see_other(clean, said="used")
        if do == "activate":
            percent = _form_version(form, "percent") if "percent" in form else 100
            prompts.activate(name, _form_version(form, "version"), percent=percent)
            return see_other(clean, said="used" if percent == 100 else "staged")
        if do == "reset":
            prompts.reset(name, if_version=_form_version(form, "seen") if "seen" in form else None)
            return see_other(clean, said="reset")
    except (BadInput, Changed) as wrong:
        return _editor(request, caller, name, text=form["text"], error=wrong)
    raise HTTPException(422, translate("Unknown action {name}", name=do))


@dataclass(slots=True)
class AffectedWork:
    """The conversations that a changed prompt affects, and the calls, tokens and dollars that a rebuild of them would cost."""

    chats: list[tuple[str, Conversation]] = field(default_factory=list)
    more: bool = False
    calls: int = 0
    tokens: int = 0
    cost: float | None = 0.0


def _affected(caller: CallerDep, prompts: Prompts, whose: str, name: str) -> AffectedWork:
    """Return the conversations with something that an earlier text of the prompt made, of users who get the one in use."""
    found, memory, grant = AffectedWork(), caller.memory, caller.grant
    used = [one for one in prompts.versions(name) if not one.draft or one.percent < 100]
    began = {
        one.text: one.since for last, one in zip([None, *used], used, strict=False) if not last or last.text != one.text
    }
    for user, bot in _users_of(caller, whose):
        owner = memory.user(user, org=grant.org, bot=bot)
        since = began.get(owner.prompts.get(name))
        if since is None or owner.status().state != "active":
            continue
        for state in owner.overview():
            chat = memory.conversation(state.conversation, user=user, org=grant.org, bot=bot, subject=state.subject)
            if state.conversation != BY_HAND_CONVERSATION and any(at < since for at in _made_at(chat, LAYERS[name])):
                if len(found.chats) == MAX_AFFECTED:
                    found.more = True
                    return found
                found.chats.append((user, chat))
    return found


def _made_at(chat: Conversation, layer: str) -> list[datetime]:
    """Return when each row that a rebuild of *layer* makes again was made."""
    with acting(BACKGROUND):  # no word of them is shown
        if layer in ("facts", "episodes"):
            return [one.recorded_at for one in chat.learned() if (one.kind == "episode") == (layer == "episodes")]
        return [one.created_at for one in chat.summaries() if (one.level > 1) == (layer == "meta")]


def _users_of(caller: CallerDep, whose: str) -> Iterator[tuple[str, str]]:
    """Yield the users, each with the bot, for whom the prompts of the address hold."""
    grant = caller.grant
    if whose not in ("bot", "org"):
        yield str(grant.user), grant.bot
        return
    after = (grant.org, "", "")
    while page := caller.memory.admin.users(limit=USERS_READ, after=after):
        for org, user, bot in page:
            if org != grant.org:
                return
            if whose == "org" or bot == grant.bot:
                yield user, bot
        after = page[-1]


def _rebuild_affected(request: Request, caller: CallerDep, name: str, tasks: TasksDep, *, dry_run: bool) -> Response:
    """Show what the rebuild of all affected conversations would cost, or begin it."""
    prompts, layer = _chosen(request, caller, name)[0], LAYERS[name]
    found = _affected(caller, prompts, request.query_params.get("for", ""), name)
    if dry_run:
        try:
            for _, chat in found.chats:
                one = chat.rebuild(layer, dry_run=True)
                found.calls, found.tokens = found.calls + one.calls, found.tokens + one.tokens
                found.cost = None if found.cost is None or one.cost is None else found.cost + one.cost
        except ConfigError as error:
            return _editor(request, caller, name, error=error)
        return _editor(request, caller, name, affected=found)

    def work(step: OnProgress) -> ReportData:
        reports = []
        for number, (_, chat) in enumerate(found.chats, 1):
            reports.append(chat.rebuild(layer))
            step(number, len(found.chats))
        cost = None if any(one.cost is None for one in reports) else sum(one.cost or 0 for one in reports)
        figures = {field: sum(getattr(one, field) for one in reports) for field in ("calls", "tokens", "ranges")}
        errors = tuple(error for one in reports for error in one.errors)
        return report_data(RebuildReport(layer, **figures, cost=cost, errors=errors))

    grant = caller.grant
    tasks.order("rebuild", Owner(grant.org, grant.user, grant.bot), work, role=caller.role)
    return see_other(here(request, diff=None), said="rebuilding")


def _try_prompt(request: Request, caller: CallerDep, name: str, form: Form, *, dry_run: bool) -> Response:
    """
    Show the editor with the results for saved chunks: those of the user, or for a shared prompt of the user that was named.

    It is shown once and stored nowhere, so an erasure need not look for it.
    """
    text, sample = form["text"], form.get("sample", "").strip()
    try:
        own = _chosen(request, caller, name)[0]
        if "for" in request.query_params and sample:
            own = caller.memory.user(sample, org=caller.grant.org, bot=caller.grant.bot).prompts
        found = own.preview(name, text, limit=SAMPLES, dry_run=dry_run)
    except (BadInput, ConfigError, Conflict) as error:
        return _editor(request, caller, name, text=text, error=error, sample=sample)
    return _editor(request, caller, name, text=text, preview=found, sample=sample)


def _editor(
    request: Request,
    caller: CallerDep,
    name: str,
    *,
    text: str | None = None,
    preview: PromptPreview | None = None,
    error: HoldfastError | None = None,
    sample: str = "",
    affected: AffectedWork | None = None,
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
        title=translate("{title} for {name}", title=translate(title), name=whom),
        shared="for" in request.query_params,
        status=422 if isinstance(error, BadInput) else 409 if isinstance(error, Changed) else 200,
        notices=NOTICES,
        about=translate(about),
        prompt=name,
        name=name,
        words=words,
        text=words if text is None else text,
        most=MAX_PROMPT_CHARS,
        versions=list(reversed(versions)),
        used=used,
        seen=version_in_use(versions),
        next_version=max((one.version for one in versions), default=0) + 1,
        preview=preview,
        samples=[] if preview is None else [sample_row(one) for one in preview.samples],
        error=error,
        mine=word_diff(words, text) if isinstance(error, Changed) and text else [],
        other=other,
        diff=[] if other is None else word_diff(other.text, words),
        tried_on=SAMPLES,
        sample=sample,
        affected=affected,
        rebuilds=name in LAYERS,
        most_affected=MAX_AFFECTED,
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
        return caller.memory.admin.prompts(org=grant.org), translate("organization {name}", name=grant.org)
    if whose in ("bot", "org"):
        return caller.memory.admin.prompts(org=grant.org, bot=only or grant.bot), translate(
            "bot {name}", name=only or grant.bot
        )
    return caller.user().prompts, str(grant.user)


def _form_version(form: Form, name: str) -> int:
    if not form[name].isascii() or not form[name].isdecimal() or len(form[name]) > 9:
        raise BadInput(
            translate("the percent must be a number")
            if name == "percent"
            else translate("the version must be a number")
        )
    return int(form[name])


def active_version(versions: list[PromptVersion]) -> PromptVersion | None:
    """Return the version in use; ``None`` for the default prompt."""
    return next((one for one in reversed(versions) if not one.draft), None)


def sample_row(one: Any) -> dict[str, Any]:
    return {"one": one, "diff": word_diff(one.old, one.new) if one.new and not one.error else []}
