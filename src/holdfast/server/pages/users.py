"""
``/dashboard/users``: who there is, what is believed about one of them and since when, and what they chose.

An operator mends by the same calls that the user has at ``/me``, and sees of each belief how it came about.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ...clock import from_ms
from ...errors import BadInput
from ...memory import Memory
from ...reports import ErasureReceipt, Event
from ...scope import SELF
from ...types import Fact, FactChange
from ...user import User
from ..routing import OPERATOR, RouteTable
from ..schemas import Caller, CallerDep, UserDep, UserName
from .beliefs import ARCHIVED, by_subject, spans
from .me import shown
from .shell import Filled, Form, events_of, here, link, render, scope_query, see_other
from .wording import wording

table = RouteTable()
LIST = "/dashboard/users"
ONE = LIST + "/{user:name}"
BELIEF = ONE + "/belief"
ROWS = 50
MOST_LOOKED_AT = 20_000
SHOWN_EVENTS = 50
WORD = "erase"
Key = tuple[str, str, str]

NOTICES = {
    "corrected": "Corrected. The next context knows it.",
    "never-true": "It counts as never true; what it had replaced holds again.",
    "nothing": "Nothing had to be changed.",
    "paused": "Memory is paused for this user.",
    "resumed": "Memory goes on.",
    "opted-in": "Memory is on.",
    "never": "Nothing new about this will be remembered.",
    "allowed": "This can be remembered again.",
    "refused": "This was not stored: memory is off or paused, or the user asked never to remember it.",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One user in the list."""

    org: str
    user: str
    bot: str
    facts: int
    conversations: int
    state: str


@table.page("GET", LIST, OPERATOR)
def users_page(request: Request, asked: CallerDep) -> Response:
    """Everybody with a memory, by tenant and name."""
    query = request.query_params
    words, org = query.get("q", "").strip(), query.get("org")
    found = list(islice(_everybody(asked.memory, words, org, _cursor(query.get("after"))), ROWS + 1))
    return render(
        "users.html",
        request,
        title="Users",
        rows=[_row(asked.memory, key) for key in found[:ROWS]],
        words=words,
        org=org,
        after=here(request, after=json.dumps(found[ROWS - 1])) if len(found) > ROWS else None,
        first=here(request, after=None) if "after" in query else None,
    )


def _everybody(memory: Memory, words: str, org: str | None, after: Key | None) -> Iterator[Key]:
    """Who fits, by key; a search looks at so many that a page is never waited for long."""
    wanted = words.casefold()
    for key in islice(_walk(memory, after), MOST_LOOKED_AT):
        if org in (None, key[0]) and wanted in " ".join(key).casefold():
            yield key


def _walk(memory: Memory, after: Key | None) -> Iterator[Key]:
    while page := memory.admin.users(limit=500, after=after):
        yield from page
        after = page[-1]


def _cursor(given: str | None) -> Key | None:
    if given is None:
        return None
    try:
        org, user, bot = json.loads(given)
    except ValueError:
        raise BadInput("this page of the list does not exist", hint="begin at the first") from None
    return (str(org), str(user), str(bot))


def _row(memory: Memory, key: Key) -> Row:
    org, user, bot = key
    owner = memory.user(user, org=org, bot=bot)
    return Row(org, user, bot, len(owner.facts()), len(owner.conversations()), owner.status().state)


@table.page("GET", ONE, OPERATOR)
def user_page(request: Request, asked: CallerDep, whose: UserDep, user: UserName) -> Response:
    """What is believed about one user, and what they chose."""
    return _user(request, asked, whose, user)


@table.page("POST", ONE, OPERATOR)
def user_change(request: Request, asked: CallerDep, whose: UserDep, user: UserName, form: Filled) -> Response:
    """Mend, forget, pause, erase; an erasure is answered with its receipt."""
    if form["do"] in ERASING:
        return _user(request, asked, whose, user, receipt=_erased(whose, form))
    return see_other(here(request), said=_changed(whose, form))


@table.page("GET", BELIEF, OPERATOR)
def belief_page(request: Request, asked: CallerDep, whose: UserDep, user: UserName) -> Response:
    """How one belief has changed, on a line of time and as a table."""
    return _belief(request, asked, whose, user)


@table.page("POST", BELIEF, OPERATOR)
def belief_change(request: Request, asked: CallerDep, whose: UserDep, user: UserName, form: Filled) -> Response:
    """Put a value back, take one back, or forget one."""
    if form["do"] in ERASING:
        return _belief(request, asked, whose, user, receipt=_erased(whose, form))
    return see_other(here(request), said=_changed(whose, form))


def _user(request: Request, asked: Caller, whose: User, user: str, receipt: ErasureReceipt | None = None) -> Response:
    grant, said = asked.grant, wording("me")
    events = events_of(request, user, grant.org, grant.bot, grant.subject)  # what happens from here on is told
    ever = whose.history()
    return render(
        "user.html",
        request,
        title=user,
        events=events,
        notices=NOTICES,
        user=user,
        org=grant.org,
        bot=grant.bot,
        scope=scope_query(grant.org, grant.bot, grant.subject),
        t=said,
        choices=whose.status(),
        live=sum(fact.live for fact in ever),
        subjects=by_subject(whose.facts(), ever, said.topics()),
        archived=[fact for fact in ever if fact.ended_because == ARCHIVED],
        rejected=whose.rejected(limit=20),
        happened=_happened(whose),
        conversations=whose.conversations(),
        receipt=receipt,
        word=WORD,
        from_ms=from_ms,
        owner=SELF,
        shown=shown,
        plain=_plain,
        belief_of=lambda fact: _belief_of(user, fact, scope_query(grant.org, grant.bot, grant.subject)),
    )


def _happened(whose: User) -> list[Event]:
    """The last that happened, the newest first; jobs come and go, and are told on their own page."""
    found = whose.audit(limit=10 * SHOWN_EVENTS)
    return [event for event in found if not event.kind.startswith("job.")][:SHOWN_EVENTS]


def _belief_of(user: str, fact: Fact, scope: dict[str, str]) -> str:
    """The address of a fact's line of time."""
    key = None if fact.cardinality == "exclusive" else fact.key
    return link(LIST + "/{user}/belief", user=user, about=fact.subject, category=fact.category, key=key, **scope)


def _belief(request: Request, asked: Caller, whose: User, user: str, receipt: ErasureReceipt | None = None) -> Response:
    grant, query = asked.grant, request.query_params
    events = events_of(request, user, grant.org, grant.bot, grant.subject)
    category, key, about = query.get("category", ""), query.get("key"), query.get("about", SELF)
    facts = [fact for fact in whose.history(category, key) if fact.subject == about]
    placed, lanes = spans(facts, datetime.now(UTC))
    return render(
        "belief.html",
        request,
        title=": ".join(_plain(name) for name in (category, key) if name),
        events=events,
        notices=NOTICES,
        user=user,
        org=grant.org,
        bot=grant.bot,
        scope=scope_query(grant.org, grant.bot, grant.subject),
        about=about,
        owner=SELF,
        facts=facts,
        spans=placed,
        lanes=lanes,
        receipt=receipt,
        t=wording("me"),
        shown=shown,
    )


def _plain(name: str) -> str:
    """A category or a key, for users to read."""
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:]


# What forms ask for.


def _told(change: FactChange, said: str) -> str:
    return "refused" if change.op == "rejected" else said


def _correct(whose: User, form: Form) -> str:
    value = form["value"].strip()
    if not value or value == shown(whose.fact(form["fact"])):
        return "nothing"
    return _told(whose.correct(form["fact"], value=value), "corrected")


def _never_true(whose: User, form: Form) -> str:
    return _told(whose.never_true(form["fact"]), "never-true")


def _restore(whose: User, form: Form) -> str:
    return _told(whose.restore(form["fact"]), "restored")


def _pause(whose: User, _form: Form) -> str:
    whose.pause()
    return "paused"


def _resume(whose: User, _form: Form) -> str:
    whose.resume()
    return "resumed"


def _opt_in(whose: User, _form: Form) -> str:
    whose.opt_in()
    return "opted-in"


def _never(whose: User, form: Form) -> str:
    whose.never_remember(form["topic"].strip())
    return "never"


def _allow(whose: User, form: Form) -> str:
    whose.allow(form["topic"])
    return "allowed"


CHANGING: dict[str, Callable[[User, Form], str]] = {
    "correct": _correct,
    "never-true": _never_true,
    "restore": _restore,
    "pause": _pause,
    "resume": _resume,
    "opt-in": _opt_in,
    "never": _never,
    "allow": _allow,
}
ERASING: dict[str, Callable[[User, Form], ErasureReceipt]] = {
    "forget": lambda whose, form: whose.forget(form["fact"]),
    "opt-out": lambda whose, form: whose.opt_out(erase="erase" in form),
    "erase": lambda whose, _form: whose.erase(),
}


def _changed(whose: User, form: Form) -> str:
    if form["do"] not in CHANGING:
        raise HTTPException(422, "There is nothing of that name to do")
    return CHANGING[form["do"]](whose, form)


def _erased(whose: User, form: Form) -> ErasureReceipt:
    if form["do"] == "erase" and form["word"].strip().casefold() != WORD:
        raise HTTPException(422, f"Nothing was erased: type the word {WORD} to go on")
    return ERASING[form["do"]](whose, form)
