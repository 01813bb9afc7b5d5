"""
``/me``: what is remembered about a user, for that user.

They see everything with the words it rests on, put it right, forget it, say what is never to be remembered, pause, take it
all with them, or have it all erased.  Every sentence of the page stands in ``texts/me.en.toml``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ...clock import from_ms
from ...reports import ErasureReceipt
from ...scope import SELF
from ...types import BY_HAND_CONVERSATION, Fact, FactChange, Role
from ...user import User
from ..routing import RouteTable
from ..schemas import Caller, CallerDep
from .beliefs import ARCHIVED, by_subject
from .shell import Filled, Form, events_of, here, render, see_other
from .wording import wording

table = RouteTable()
OWNER: frozenset[Role] = frozenset(("user",))


@table.page("GET", "/me", OWNER)
def me_page(request: Request, asked: CallerDep) -> Response:
    """Everything that is held about who is signed in."""
    return _page(request, asked)


@table.page("POST", "/me", OWNER)
def me_change(request: Request, asked: CallerDep, form: Filled) -> Response:
    """Put right, forget, pause, and what else the page offers; an erasure is answered with its receipt."""
    do, user = form["do"], asked.user()
    if do in ERASING:
        said = wording("me")
        word = said("data.forget_all_word")
        if do == "forget-all" and form["word"].strip().casefold() != word.casefold():
            raise HTTPException(422, said("done.word", word=word))
        return _page(request, asked, receipt=ERASING[do](user, form))
    if do not in CHANGING:
        raise HTTPException(422, "There is nothing of that name to do")
    return see_other(here(request, **CHANGING[do](asked, form)))


@table.page("GET", "/me/download", OWNER)
def me_download(request: Request, asked: CallerDep) -> Response:
    """Everything as a file: ``?as=json`` for machines, else a page to read."""
    user, now = asked.user(), datetime.now(UTC)
    data = user.export()
    name = f"memory-{now:%Y-%m-%d}"
    if request.query_params.get("as") == "json":
        body = json.dumps(data, ensure_ascii=False, indent=1).encode("utf-8", "backslashreplace")
        return _file(Response(body, media_type="application/json"), f"{name}.json")
    said = wording("me")
    topics = by_subject(user.facts(), user.history(), said.topics())
    talks = [talk for talk in data["conversations"] if talk["messages"]]
    page = render(
        "me-download.html",
        request,
        title=said("download.title", name=data["user"]),
        t=said,
        subjects=topics,
        talks=talks,
        choices=user.status(),
        now=now,
        from_ms=from_ms,
    )
    return _file(page, f"{name}.html")


def _file(answer: Response, name: str) -> Response:
    answer.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


def _page(request: Request, asked: Caller, receipt: ErasureReceipt | None = None) -> Response:
    user, said, grant = asked.user(), wording("me"), asked.grant
    events = events_of(request, grant.user or "", grant.org, grant.bot, grant.subject)
    ever = user.history()
    query = request.query_params
    return render(
        "me.html",
        request,
        title=said("title"),
        events=events,
        t=said,
        choices=user.status(),
        subjects=by_subject(user.facts(), ever, said.topics()),
        archived=[fact for fact in ever if fact.ended_because == ARCHIVED],
        done="" if receipt else said.find(f"done.{query.get('done', '')}", ""),
        why=said.find(f"refused.{query.get('why', '')}", ""),
        undo=query.get("undo"),
        receipt=receipt,
        by_hand=BY_HAND_CONVERSATION,
        owner=SELF,
        own_words=_own_words,
        shown=shown,
    )


def _own_words(fact: Fact) -> bool:
    """Whether the user has told or confirmed it here."""
    return any(said.conversation == BY_HAND_CONVERSATION for said in fact.evidence)


# What a posted form asks for; each answers with what the address of the page then says.

Done = dict[str, str | None]


def _done(done: str, *, undo: str | None = None, why: str | None = None) -> Done:
    return {"done": done, "undo": undo, "why": why}


def _told(change: FactChange, done: str, *, undo: str | None = None) -> Done:
    if change.op == "rejected":
        return _done("refused", why=change.reason.partition(":")[0])
    return _done(done, undo=undo)


def _right(asked: Caller, form: Form) -> Done:
    fact = asked.user().fact(form["fact"])
    if fact.kind != "attribute":
        return _done("right")
    grant = asked.grant
    about = asked.memory.user(str(grant.user), org=grant.org, bot=grant.bot, subject=fact.subject)
    return _told(about.remember(category=fact.category, key=fact.key, value=fact.value), "right")


def _change(asked: Caller, form: Form) -> Done:
    value, fact = form["value"].strip(), asked.user().fact(form["fact"])
    if not value or value == shown(fact):
        return _done("nothing")
    return _told(asked.user().correct(fact.id, value=value), "changed", undo=fact.id)


def _restore(asked: Caller, form: Form) -> Done:
    return _told(asked.user().restore(form["fact"]), "restored")


def _never(asked: Caller, form: Form) -> Done:
    asked.user().never_remember(form["topic"].strip())
    return _done("never")


def _allow(asked: Caller, form: Form) -> Done:
    asked.user().allow(form["topic"])
    return _done("allowed")


def _pause(asked: Caller, _form: Form) -> Done:
    asked.user().pause()
    return _done("paused")


def _resume(asked: Caller, _form: Form) -> Done:
    asked.user().resume()
    return _done("resumed")


def _opt_in(asked: Caller, _form: Form) -> Done:
    asked.user().opt_in()
    return _done("on")


CHANGING: dict[str, Callable[[Caller, Form], Done]] = {
    "right": _right,
    "change": _change,
    "restore": _restore,
    "never": _never,
    "allow": _allow,
    "pause": _pause,
    "resume": _resume,
    "opt-in": _opt_in,
}
ERASING: dict[str, Callable[[User, Form], ErasureReceipt]] = {
    "forget": lambda user, form: user.forget(form["fact"]),
    "forget-all": lambda user, _form: user.erase(),
    "opt-out": lambda user, _form: user.opt_out(),
}


def shown(fact: Fact) -> str:
    """What users would write over to change a fact: its value, or its sentence where it has none."""
    if fact.kind != "attribute":
        return fact.text
    return fact.key.replace("_", " ") if fact.value == "true" else fact.value
