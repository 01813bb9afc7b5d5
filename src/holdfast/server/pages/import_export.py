"""The import and export page; every file is checked before anything is stored."""

from __future__ import annotations

import shutil
import tempfile
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import field
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any, BinaryIO

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ...clock import new_id
from ...errors import BadInput, Conflict, HoldfastError, NotFound
from ...importers.append import Appender, ImportOutcome, RefusedLine, store_memories
from ...importers.foreign import LABELS, OTHER, Mapped, SurveyedFile, survey_file, user_in
from ...importers.jsonl import blocks
from ...memory import Memory
from ...text import dataclass
from ..jobs import OnProgress, Owner, ReportData, Task, Tasks
from ..routing import OPERATOR, RouteTable
from ..schemas import CallerDep
from .layout import Form, FormDep, format_bytes, here, link, render, scope_query, see_other
from .me import me_download
from .texts import figures, mark, translate
from .users import scope_fields

table = RouteTable()
PATH = "/dashboard/import"
ONE = PATH + "/{import_id}"
EXPORT = "/dashboard/export"
BAD_SHOWN = 10
NAMES_SHOWN = 50
MAX_KEPT = 20
MAX_AGE_S = 24 * 3600
MAX_NAME_CHARS = 100
MAX_STEM_CHARS = 50  # of at most four bytes each
ENDINGS = (".omi.jsonl", ".jsonl", ".json", ".markdown", ".md", ".txt", ".pkl", ".zip", ".db", ".sqlite", ".sqlite3")
LEARNING_S = 2.0
KINDS = {
    "tool": mark("Tool output"),
    "system": mark("System messages"),
    "hidden": mark("Messages hidden in the other program"),
}
NOTICES = {
    "started": mark("The import is running. You can leave this page."),
    "stopped": mark("Stopping after the current block. Stored messages stay, and you can resume from there."),
    "discarded": mark("The file is deleted from this server. Stored messages stay."),
    "looked": mark("Checked again. Nothing is stored yet."),
}


def imports_of(request: Request) -> Imports:
    found: Imports = request.app.state.imports
    return found


@table.page("GET", PATH, OPERATOR)
def import_export_page(request: Request, caller: CallerDep) -> Response:
    """Show the form for a file, the uploads, and the export of a user."""
    return _render_start(request, caller)


@table.page("POST", PATH, OPERATOR, upload=True)
async def upload_file(request: Request, caller: CallerDep) -> Response:
    """Keep and check a file; store nothing yet."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "multipart/form-data":
        raise HTTPException(415, translate("Send a form with a file"))
    async with request.form(max_files=1, max_fields=5) as form:
        file = form.get("file")
        if not isinstance(file, UploadFile) or not file.filename:
            return await run_in_threadpool(_render_start, request, caller, translate("Choose a file first."))
        grant = caller.grant
        one = await run_in_threadpool(imports_of(request).take, file.file, file.filename, grant.org, grant.bot)
    return see_other(link(ONE, import_id=one.id, **scope_query(grant.org, grant.bot)))


@table.page("GET", ONE, OPERATOR)
def import_page(request: Request, caller: CallerDep, import_id: str) -> Response:
    """Show one import: content, settings and progress."""
    return _render_import(request, caller, imports_of(request).get(import_id, caller.grant.org))


@table.page("POST", ONE, OPERATOR)
def import_change(request: Request, caller: CallerDep, import_id: str, form: FormDep) -> Response:
    """Check again, start, stop, resume or delete an import."""
    imports, do = imports_of(request), form["do"]
    one = imports.get(import_id, caller.grant.org)
    if do == "discard":
        imports.discard(one)
        return see_other(link(PATH, **scope_query(caller.grant.org, caller.grant.bot)), said="discarded")
    if do == "stop":
        imports.stop(one)
        return see_other(here(request), said="stopped")
    try:
        if do in ("look", "start") and one.state not in ("ready", "running"):
            imports.look(one, _form_target(one, form))
        if do == "look":
            return see_other(here(request), said="looked")
        if do in ("start", "resume"):
            imports.start(one, caller.memory)
            return see_other(here(request), said="started")
    except HoldfastError as error:
        return _render_import(request, caller, one, error)
    raise HTTPException(422, translate("Unknown action {name}", name=do))


@table.page("GET", EXPORT, OPERATOR)
def export_download(request: Request, caller: CallerDep) -> Response:
    """Return all data of one user: JSON that can be imported again, or a page to read."""
    user = caller.user()
    if not user.conversations() and not user.history():
        raise NotFound(
            translate("nothing is stored about {user} here", user=repr(caller.grant.user)),
            hint=translate("the page Users lists every user"),
        )
    answer: Response = me_download(request, caller)
    return answer


def _form_target(one: Import, form: Form) -> ImportTarget:
    names = {}
    for number, name in enumerate(_speakers(one)):
        role = form.get(f"role-{number}", "")
        if role in ("user", "assistant", "skip"):
            names[name] = role
    skip = frozenset(kind for kind in OTHER if f"skip-{kind}" in form)
    return ImportTarget(
        user=form.get("user", "").strip(),
        org=one.target.org,
        bot=form.get("bot", "").strip() or one.target.bot,
        subject=form.get("subject", "").strip() or None,
        conversation=form.get("conversation", "").strip()[:200],
        mapped=Mapped(names, skip),
        skip_bad="skip-bad" in form,
    )


def _speakers(one: Import) -> list[str]:
    """Return the speakers of the file, most messages first, in a stable order."""
    known = dict.fromkeys(one.target.mapped.names)
    if one.found is not None:
        counts: dict[str, int] = {}
        for (name, _role), number in one.found.names.items():
            counts[name] = counts.get(name, 0) + number
        known = dict.fromkeys(sorted(counts, key=lambda name: (-counts[name], name)))
    return list(known)[:NAMES_SHOWN]


def _render_start(request: Request, caller: CallerDep, error: str = "") -> Response:
    scope = scope_query(caller.grant.org, caller.grant.bot)
    settings = request.app.state.settings
    rows = [
        {"one": one, "address": link(ONE, import_id=one.id, **scope), "size": format_bytes(one.bytes)}
        for one in imports_of(request).of(caller.grant.org)
    ]
    return render(
        "import-export.html",
        request,
        title=translate("Import and export"),
        status=422 if error else 200,
        notices=NOTICES,
        error=error,
        rows=rows,
        most=figures(f"{settings.max_upload_bytes / 2**20:,.0f} MiB"),
        formats=[label for name, label in LABELS.items() if name != "lines"],
        whom=scope_fields(caller, request),
    )


def _render_import(request: Request, caller: CallerDep, one: Import, error: HoldfastError | None = None) -> Response:
    found, names = one.found, []
    if found is not None:
        for number, name in enumerate(_speakers(one)):
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
        size=format_bytes(one.bytes),
        names=names,
        kinds=[(kind, KINDS[kind], found.kinds.get(kind, 0)) for kind in OTHER] if found else [],
        bad=found.survey.bad[:BAD_SHOWN] if found else [],
        bad_all=len(found.survey.bad) if found else 0,
        talks=_conversation_counts(one),
        step=2 if one.task is None else 3,
        going=one.state in ("ready", "running"),
        outcome=one.outcome,
        share=one.task.done / one.task.total if one.task and one.task.total else None,
        back=link(PATH, **scope_query(caller.grant.org, caller.grant.bot)),
        users=_imported_users(one),
        whom=scope_fields(caller, request),
        stem=PurePath(one.name).stem,
    )


def _conversation_counts(one: Import) -> list[tuple[str, int]]:
    return list(one.found.survey.conversations.items())[:20] if one.found else []


def _imported_users(one: Import) -> list[dict[str, Any]]:
    """Return links to the users whose messages were imported."""
    user = one.target.user or (one.found.user if one.found else "")
    if not user or one.task is None or not (one.outcome.done or one.state == "done"):
        return []
    scope = scope_query(one.target.org, one.target.bot)
    return [{"user": user, "address": link("/dashboard/conversations/{user}", user=user, **scope)}]


@dataclass(frozen=True, slots=True)
class ImportTarget:
    """The user and the settings of an import."""

    user: str
    org: str = "default"
    bot: str = "default"
    subject: str | None = None
    conversation: str = ""
    mapped: Mapped = field(default_factory=Mapped)
    skip_bad: bool = False


@dataclass(slots=True)
class Import:
    """One uploaded file, with its check and its import."""

    id: str
    name: str
    bytes: int
    org: str
    folder: Path
    at: datetime
    target: ImportTarget
    found: SurveyedFile | None = None
    error: str = ""
    hint: str = ""
    task: Task | None = None
    outcome: ImportOutcome = field(default_factory=ImportOutcome)
    learning: bool = False
    facts: int = 0

    @property
    def state(self) -> str:
        """``refused``, ``checked``, or the state of its task: ``ready``, ``running``, ``done``, ``failed``, ``cancelled``."""
        if self.task is not None:
            return self.task.state
        return "refused" if self.error else "checked"

    @property
    def upload(self) -> Path:
        """The uploaded file, under its own name where that is safe: some formats are known by their ending."""
        return self.folder / "upload" / _file_name(self.name)

    @property
    def lines(self) -> Path:
        """The file of its messages, one per line."""
        return self.folder / "lines.jsonl"


class Imports:
    """The uploads of one server; safe to use from any thread."""

    def __init__(self, tasks: Tasks, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._tasks, self._now = tasks, now
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Import] = OrderedDict()
        self._root: Path | None = None

    def take(self, stream: BinaryIO, name: str, org: str, bot: str) -> Import:
        """
        Keep and check an upload; problems are in ``error``.

        Raises:
            Conflict: too many are kept already.
        """
        self._let_go()
        with self._lock:
            if len(self._kept) >= MAX_KEPT:
                raise Conflict(
                    translate("{count} files are kept already", count=MAX_KEPT), hint=translate("delete some of them")
                )
            if self._root is None:
                self._root = Path(tempfile.mkdtemp(prefix="holdfast-import-"))  # readable by this account only
                self._finalizer = weakref.finalize(self, shutil.rmtree, self._root, ignore_errors=True)
            now = self._now()
            key = new_id("import", int(now.timestamp() * 1000))
            folder = self._root / key
            folder.mkdir(mode=0o700)
        one = Import(key, _clean_name(name), 0, org, folder, now, ImportTarget("", org, bot, conversation=_stem(name)))
        one.upload.parent.mkdir(mode=0o700)
        with one.upload.open("wb") as out:
            shutil.copyfileobj(stream, out, 2**20)
        one.bytes = one.upload.stat().st_size
        self.look(one, one.target)
        with self._lock:
            self._kept[key] = one
        return one

    def look(self, one: Import, target: ImportTarget) -> None:
        """Check the file with the settings of *target*; store nothing."""
        one.target, one.error, one.hint = target, "", ""
        try:
            one.found = survey_file(one.upload, target.conversation or "imported", target.mapped, one.lines)
        except HoldfastError as error:
            one.found, one.error, one.hint = None, error.message, error.hint
        except (ValueError, KeyError, TypeError, AttributeError, OSError, RecursionError) as error:
            # files of other programs can have any structure; their text is not repeated
            one.found, one.error = (
                None,
                translate("the file has an unexpected structure ({name})", name=type(error).__name__),
            )

    def get(self, key: str, org: str) -> Import:
        """
        Return one upload of an org.

        Raises:
            NotFound: there is no such upload, or it was deleted.
        """
        with self._lock:
            one = self._kept.get(key)
        if one is None or one.org != org:
            raise NotFound(
                translate("there is no import {id}", id=repr(key)),
                hint=translate("files are kept for a day; upload it again"),
            )
        return one

    def of(self, org: str) -> list[Import]:
        """Return the uploads of an org, newest first."""
        with self._lock:
            return [one for one in reversed(self._kept.values()) if one.org == org]

    def start(self, one: Import, memory: Memory) -> None:
        """
        Import the file in the background.

        Raises:
            BadInput: the file or its settings do not allow it.
            Conflict: it is running already.
        """
        if one.state in ("ready", "running"):
            raise Conflict(translate("this import is running already"))
        if one.found is None:
            raise BadInput(translate("this file cannot be read"), hint=one.hint)
        target = one.target
        if one.found.format != "user" and not target.user:
            raise BadInput(
                translate("an import needs a user"), hint=translate("enter the user whose messages these are")
            )
        if one.found.unassigned:
            raise BadInput(
                translate("it is not known which speaker is the user"), hint=translate("choose a role for each speaker")
            )
        if len(one.found.users) > 1:
            raise BadInput(
                translate("the file holds what is of {count} users", count=len(one.found.users)),
                hint=translate("`holdfast import FILE --all-users` imports each under its own name"),
            )
        if one.found.survey.bad and not target.skip_bad:
            raise BadInput(translate("some lines cannot be used"), hint=translate("leave them out, or fix the file"))
        one.outcome, one.facts, one.learning = ImportOutcome(), 0, False
        owner = Owner(target.org, target.user or one.found.user, target.bot, target.subject)
        one.task = self._tasks.order("import", owner, lambda step: self._work(one, memory, step))

    def stop(self, one: Import) -> None:
        """Stop after the current block; stored messages stay."""
        if one.task is not None:
            self._tasks.cancel(one.task.id)

    def discard(self, one: Import) -> None:
        """Delete the file; stored messages stay."""
        self.stop(one)
        with self._lock:
            self._kept.pop(one.id, None)
        if one.task is None or one.task.over.wait(30):
            shutil.rmtree(one.folder, ignore_errors=True)

    def close(self) -> None:
        """Delete every file."""
        with self._lock:
            self._kept.clear()
            root, self._root = self._root, None
        if root is not None:
            self._finalizer()

    def _let_go(self) -> None:
        now = self._now()
        with self._lock:
            old = [one for one in self._kept.values() if (now - one.at).total_seconds() > MAX_AGE_S]
        for one in old:
            if one.state not in ("ready", "running"):
                self.discard(one)

    def _work(self, one: Import, memory: Memory, step: OnProgress) -> ReportData:
        found, target = one.found, one.target
        assert found is not None
        if found.format == "user":
            data = {**user_in(one.upload), "org": target.org}
            memory.import_(data | ({"user": target.user} if target.user else {}))
        else:
            self._append(one, memory, step)
        _learn(one, memory, step)
        if one.found is not None and one.found.memories:
            owner = memory.user(target.user, org=target.org, bot=target.bot, subject=target.subject)
            store_memories(owner, one.found.memories, one.outcome, lambda so_far: step(0, 0))
        return _report(one)

    def _append(self, one: Import, memory: Memory, step: OnProgress) -> None:
        found, target = one.found, one.target
        assert found is not None
        total = found.survey.messages
        scope: dict[str, Any] = {"user": target.user, "org": target.org, "bot": target.bot, "subject": target.subject}
        appender = Appender(lambda name: memory.conversation(name, **scope), target.skip_bad, one.outcome)
        step(0, total)
        with one.lines.open("rb") as stream:
            read = blocks(stream, target.conversation or "imported", found.survey)
            try:
                appender.run(read, lambda so_far: step(min(so_far.done, total - 1), total))
            except RefusedLine as error:
                where = f"line {error.bad.number}: {error.bad.problem}"
                raise BadInput(where, hint=f"{error.bad.fix}; or leave such lines out") from error
        if one.outcome.skipped:
            raise Conflict(f"nothing was stored: {target.user} is {one.outcome.skipped}", hint="resume memory first")
        for name in found.survey.conversations if one.outcome.stored else ():
            memory.conversation(name, **scope).end()


def _learn(one: Import, memory: Memory, step: OnProgress) -> None:
    """Run the jobs that the messages created; after a stop, the background does the rest."""
    one.learning = True
    while True:
        report = memory.digest(LEARNING_S)
        one.facts += report.facts
        step(0, 0)
        if not report.jobs:
            return


def _report(one: Import) -> dict[str, Any]:
    found = one.found.survey.conversations if one.found else {}
    return {"stored": one.outcome.stored, "known": one.outcome.known, "conversations": len(found)}


def _clean_name(name: str) -> str:
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    return "".join(letter for letter in last if letter.isprintable())[:MAX_NAME_CHARS] or "file"


def _file_name(name: str) -> str:
    """Return a name for a file on this machine: its plain letters, and an ending that is known here."""
    ending = next((one for one in ENDINGS if name.lower().endswith(one)), "")
    stem = "".join(letter if letter.isalnum() or letter in " -_" else "_" for letter in name[: len(name) - len(ending)])
    return (stem.strip()[:MAX_STEM_CHARS] or "upload") + ending


def _stem(name: str) -> str:
    return Path(_clean_name(name)).stem[:MAX_NAME_CHARS] or "imported"
