"""``/dashboard/takeaway``: files in, users out; each import is looked at before anything is stored."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ...errors import HoldfastError, NotFound
from ...importers.foreign import LABELS, OTHER, Mapped
from ..caller import Asked
from ..imports import Import, Imports, Target
from ..routing import OPERATOR, Table
from .me import me_download
from .shell import Filled, Form, here, link, render, scope_query, see_other
from .whom import scope_of, size

table = Table()
PATH = "/dashboard/takeaway"
ONE = PATH + "/{import_id}"
EXPORT = "/dashboard/export"
BAD_SHOWN = 10
NAMES_SHOWN = 50
KINDS = {"tool": "Output of tools", "system": "System messages", "hidden": "What the other program had hidden"}
NOTICES = {
    "started": "The import runs. You may leave this page.",
    "stopped": "It stops after the block that it is in. What is stored stays, and it can go on from there.",
    "discarded": "The file is deleted here. What was stored stays.",
    "looked": "Looked at again; nothing is stored yet.",
}


def imports_of(request: Request) -> Imports:
    """The uploads of this server."""
    found: Imports = request.app.state.imports
    return found


@table.page("GET", PATH, OPERATOR)
def takeaway_page(request: Request, asked: Asked) -> Response:
    """Where a file is chosen, what is being taken in, and whose memory is taken along."""
    return _start(request, asked)


@table.page("POST", PATH, OPERATOR, upload=True)
async def takeaway_upload(request: Request, asked: Asked) -> Response:
    """Keep a file and look at it; nothing is stored yet."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "multipart/form-data":
        raise HTTPException(415, "Send a form with a file")
    async with request.form(max_files=1, max_fields=5) as form:
        file = form.get("file")
        if not isinstance(file, UploadFile) or not file.filename:
            return await run_in_threadpool(_start, request, asked, "Choose a file first.")
        grant = asked.grant
        one = await run_in_threadpool(imports_of(request).take, file.file, file.filename, grant.org, grant.bot)
    return see_other(link(ONE, import_id=one.id, **scope_query(grant.org, grant.bot)))


@table.page("GET", ONE, OPERATOR)
def import_page(request: Request, asked: Asked, import_id: str) -> Response:
    """One import: what the file holds, how it is to be read, how far it is."""
    return _import(request, asked, imports_of(request).get(import_id, asked.grant.org))


@table.page("POST", ONE, OPERATOR)
def import_change(request: Request, asked: Asked, import_id: str, form: Filled) -> Response:
    """Look again, start, stop, go on, discard."""
    imports, do = imports_of(request), form["do"]
    one = imports.get(import_id, asked.grant.org)
    if do == "discard":
        imports.discard(one)
        return see_other(link(PATH, **scope_query(asked.grant.org, asked.grant.bot)), said="discarded")
    if do == "stop":
        imports.stop(one)
        return see_other(here(request), said="stopped")
    try:
        if do in ("look", "start") and one.state not in ("ready", "running"):
            imports.look(one, _target(one, form))
        if do == "look":
            return see_other(here(request), said="looked")
        if do in ("start", "resume"):
            imports.start(one, asked.memory)
            return see_other(here(request), said="started")
    except HoldfastError as error:
        return _import(request, asked, one, error)
    raise HTTPException(422, f"There is nothing called {do}")


@table.page("GET", EXPORT, OPERATOR)
def export_download(request: Request, asked: Asked) -> Response:
    """Everything about one user as a file: ``?as=json``, which is taken back unchanged, else a page to read."""
    user = asked.user()
    if not user.conversations() and not user.history():
        raise NotFound(f"nothing is held about {asked.grant.user!r} here", hint="look under Users who is")
    answer: Response = me_download(request, asked)
    return answer


def _target(one: Import, form: Form) -> Target:
    names = {}
    for number, name in enumerate(_names(one)):
        role = form.get(f"role-{number}", "")
        if role in ("user", "assistant", "skip"):
            names[name] = role
    skip = frozenset(kind for kind in OTHER if f"skip-{kind}" in form)
    return Target(
        user=form.get("user", "").strip(),
        org=one.target.org,
        bot=form.get("bot", "").strip() or one.target.bot,
        subject=form.get("subject", "").strip() or None,
        conversation=form.get("conversation", "").strip()[:200],
        mapped=Mapped(names, skip),
        skip_bad="skip-bad" in form,
    )


def _names(one: Import) -> list[str]:
    """Who speaks in the file, the most talkative first; in the same order each time."""
    known = dict.fromkeys(one.target.mapped.names)
    if one.found is not None:
        counts: dict[str, int] = {}
        for (name, _role), number in one.found.names.items():
            counts[name] = counts.get(name, 0) + number
        known = dict.fromkeys(sorted(counts, key=lambda name: (-counts[name], name)))
    return list(known)[:NAMES_SHOWN]


def _start(request: Request, asked: Asked, error: str = "") -> Response:
    whose = scope_query(asked.grant.org, asked.grant.bot)
    settings = request.app.state.settings
    rows = [
        {"one": one, "address": link(ONE, import_id=one.id, **whose), "size": size(one.bytes)}
        for one in imports_of(request).of(asked.grant.org)
    ]
    return render(
        "takeaway.html",
        request,
        title="Import and export",
        status=422 if error else 200,
        notices=NOTICES,
        error=error,
        rows=rows,
        most=size(settings.max_upload_bytes),
        formats=[label for name, label in LABELS.items() if name != "lines"],
        whom=scope_of(asked, request),
    )


def _import(request: Request, asked: Asked, one: Import, error: HoldfastError | None = None) -> Response:
    found, names = one.found, []
    if found is not None:
        for number, name in enumerate(_names(one)):
            said = {role: count for (who, role), count in found.names.items() if who == name}
            names.append({"number": number, "name": name, "said": said, "role": one.target.mapped.names.get(name, "")})
    return render(
        "import.html",
        request,
        title=one.name,
        status=422 if error is not None else 200,
        notices=NOTICES,
        one=one,
        found=found,
        error=error,
        label=LABELS[found.format] if found else "",
        size=size(one.bytes),
        names=names,
        kinds=[(kind, KINDS[kind], found.kinds.get(kind, 0)) for kind in OTHER] if found else [],
        bad=found.survey.bad[:BAD_SHOWN] if found else [],
        bad_all=len(found.survey.bad) if found else 0,
        talks=_talks(one),
        step=2 if one.task is None else 3,
        going=one.state in ("ready", "running"),
        outcome=one.outcome,
        share=one.task.done / one.task.total if one.task and one.task.total else None,
        back=link(PATH, **scope_query(asked.grant.org, asked.grant.bot)),
        users=_users(one),
        whom=scope_of(asked, request),
        stem=PurePath(one.name).stem,
    )


def _talks(one: Import) -> list[tuple[str, int]]:
    return list(one.found.survey.conversations.items())[:20] if one.found else []


def _users(one: Import) -> list[dict[str, Any]]:
    """Whom the import has brought: where to look at them."""
    user = one.target.user or (one.found.user if one.found else "")
    if not user or one.task is None or not (one.outcome.done or one.state == "done"):
        return []
    whose = scope_query(one.target.org, one.target.bot)
    return [{"user": user, "address": link("/dashboard/conversations/{user}", user=user, **whose)}]
