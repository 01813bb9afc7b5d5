"""
The users pages: the list, one user's facts and privacy choices, and the timeline of a fact.

An operator mends by the same calls that the user has at ``/me``, and sees of each belief how it came about.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ...clock import from_ms
from ...errors import Changed
from ...memory import Memory
from ...reports import ErasureReceipt, Event
from ...scope import SELF
from ...text import dataclass
from ...types import BY_HAND_CONVERSATION, Fact, FactChange
from ...user import FactAddress, User
from ..routing import OPERATOR, RouteTable, UserName
from ..schemas import Caller, CallerDep, UserDep
from .layout import (
    Form,
    FormDep,
    events_address,
    here,
    link,
    list_file,
    parse_user_key,
    render,
    scope_query,
    see_other,
    seen_version,
    wanted_file,
)
from .me import (
    ARCHIVED,
    DECISIONS,
    MAX_PICKED,
    FactConflict,
    decide_waiting,
    fact_conflict,
    facts_page,
    forget_preview,
    group_facts,
    matching_facts,
    stories_of,
    undo_correction,
    waiting_questions,
)
from .me_texts import editable_value, load_texts, value_as_held

table = RouteTable()
LIST = "/dashboard/users"
ONE = LIST + "/{user:name}"
FACT = ONE + "/fact"
ROWS = 50
MAX_COUNTED = 20  # conversations of a user on the list
MAX_WORDS = 200
FACTS_READ = 500  # at a time, for a file
MAX_USER_NAMES = 200  # that a form suggests
SHOWN_EVENTS = 50
WORD = "erase"
Key = tuple[str, str, str]

NOTICES = {
    "corrected": "Corrected. The next context uses it.",
    "never-true": "Marked as never true. The value it replaced is active again.",
    "nothing": "Nothing changed.",
    "paused": "Memory is paused for this user.",
    "resumed": "Memory is on again.",
    "opted-in": "Memory is on.",
    "never": "Nothing new about this will be remembered.",
    "allowed": "This may be remembered again.",
    "accepted": "Accepted. The next context uses it.",
    "dismissed": "Dismissed. It is not remembered.",
    "waiting": "It waits for a decision again.",
    "gone": "Nothing changed: it is not there any more.",
    "refused": "Not stored: memory is off or paused, or the user asked never to remember this.",
}


@dataclass(frozen=True, slots=True)
class UserListRow:
    """A user on the list; ``conversations`` are counted up to one more than `MAX_COUNTED`."""

    org: str
    user: str
    bot: str
    last_at: datetime | None
    conversations: int
    state: str


@table.page("GET", LIST, OPERATOR)
def users_page(request: Request, caller: CallerDep) -> Response:
    """Show the users, by org and name."""
    query = request.query_params
    words, org = query.get("q", "").strip()[:MAX_WORDS], query.get("org")
    matching = _matching_users(caller.memory, words, org, parse_user_key(query.get("after")))
    if kind := wanted_file(request):
        rows = (asdict(_row(caller.memory, key)) for key in matching)
        return list_file(kind, "users", ("org", "user", "bot", "last_at", "state"), rows)
    found = list(islice(matching, ROWS + 1))
    return render(
        "users.html",
        request,
        title="Users",
        rows=[_row(caller.memory, key) for key in found[:ROWS]],
        words=words,
        org=org,
        most=MAX_COUNTED,
        after=here(request, after=json.dumps(found[ROWS - 1])) if len(found) > ROWS else None,
        first=here(request, after=None) if "after" in query else None,
    )


def _matching_users(memory: Memory, words: str, org: str | None, after: Key | None) -> Iterator[Key]:
    """Yield the keys of matching users, in order, as they are read."""
    if org is not None:
        after = max(after or ("", "", ""), (org, "", ""))
    while page := memory.admin.users(limit=ROWS + 1, after=after, matching=words):
        for key in page:
            if org is not None and key[0] != org:
                return
            yield key
        after = page[-1]


def _row(memory: Memory, key: Key) -> UserListRow:
    org, user, bot = key
    owner = memory.user(user, org=org, bot=bot)
    newest = [one.last_at for one in owner.overview(limit=2) if one.conversation != BY_HAND_CONVERSATION]
    talks = [name for name in owner.conversations(limit=MAX_COUNTED + 2) if name != BY_HAND_CONVERSATION]
    return UserListRow(org, user, bot, newest[0] if newest else None, len(talks), owner.status().state)


@table.page("GET", ONE, OPERATOR)
def user_page(request: Request, caller: CallerDep, owner: UserDep, user: UserName) -> Response:
    """Show the facts and privacy choices of one user; with ``?preview=`` what forgetting one fact would take along."""
    if "preview" in request.query_params:
        return forget_preview(owner, request.query_params["preview"])
    if kind := wanted_file(request):
        heads = ("text", "category", "key", "value", "subject", "valid_from", "confidence", "source", "id")
        return list_file(kind, "facts", heads, (asdict(fact) for fact in _all_facts(owner)))
    return _render_user(request, caller, owner, user)


def _all_facts(owner: User) -> Iterator[Fact]:
    after: FactAddress | None = None
    while page := owner.facts(limit=FACTS_READ, after=after):
        yield from page
        last = page[-1]
        after = last.subject, last.category, last.key, last.value, last.id


@table.page("POST", ONE, OPERATOR)
def user_change(request: Request, caller: CallerDep, owner: UserDep, user: UserName, form: FormDep) -> Response:
    """Correct, forget, pause or erase; an erasure answers with its receipt."""
    try:
        if form["do"] in ERASING:
            return _render_user(request, caller, owner, user, receipt=_erase(owner, form))
        return _changed(request, owner, form)
    except Changed:
        return _render_user(request, caller, owner, user, conflict=fact_conflict(owner, form))


@table.page("GET", FACT, OPERATOR)
def fact_page(request: Request, caller: CallerDep, owner: UserDep, user: UserName) -> Response:
    """Show the timeline of one fact."""
    if "preview" in request.query_params:
        return forget_preview(owner, request.query_params["preview"])
    return _render_fact(request, caller, owner, user)


@table.page("POST", FACT, OPERATOR)
def fact_change(request: Request, caller: CallerDep, owner: UserDep, user: UserName, form: FormDep) -> Response:
    """Restore, retract or forget a value."""
    try:
        if form["do"] in ERASING:
            return _render_fact(request, caller, owner, user, receipt=_erase(owner, form))
        return _changed(request, owner, form)
    except Changed:
        return _render_fact(request, caller, owner, user, conflict=fact_conflict(owner, form))


def _changed(request: Request, owner: User, form: Form) -> Response:
    """Apply a form; where it can be undone, the page that follows has Undo beside the notice."""
    if form["do"] in DECISIONS:
        result = decide_waiting(owner, form)
        return see_other(here(request, done=result["done"], asked=result["asked"], undo=None, made=None))
    said, change = _change(owner, form)
    if form["do"] not in UNDONE or change is None:
        return see_other(here(request, done=None, undo=None, made=None, asked=None), said=said)
    made = change.fact.id if change.fact is not None else None
    return see_other(here(request, done=said, undo=form["fact"], made=made))


def _done(request: Request, conflict: FactConflict | None) -> dict[str, Any]:
    """Return the values of the `said` section: a conflict, or what was done last and how it is undone."""
    done, undo = request.query_params.get("done", ""), request.query_params.get("undo", "")
    asked = [one for one in request.query_params.get("asked", "").split(",") if one][:MAX_PICKED]
    decided = done in ("waiting", "gone", "refused") or asked
    done = "" if conflict or not (undo or decided) else NOTICES.get(done, "")
    made = request.query_params.get("made", "")
    status = 409 if conflict else 200
    return {"conflict": conflict, "done": done, "undo": undo, "made": made, "decided": asked, "status": status}


def _render_user(
    request: Request,
    caller: Caller,
    owner: User,
    user: str,
    receipt: ErasureReceipt | None = None,
    conflict: FactConflict | None = None,
) -> Response:
    grant, said = caller.grant, load_texts("me")
    events = events_address(
        request, user, grant.org, grant.bot, grant.subject
    )  # before anything is read, so that no event is missed
    ever, active, known = owner.history(), owner.facts(), owner.subjects()
    words = request.query_params.get("q", "").strip()[:MAX_WORDS]
    past, shown = matching_facts(ever, words), matching_facts(active, words)
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
        choices=owner.status(),
        live=len(active),
        listed=len(shown),
        **facts_page(group_facts(shown, past, said.topics(), known), request),
        words=words,
        stories=stories_of(owner, () if grant.subject else known),
        archived=[fact for fact in past if fact.ended_because == ARCHIVED],
        rejected=owner.rejected(limit=20),
        **waiting_questions(owner, active),
        happened=_recent_events(owner),
        conversations=named_conversations(owner),
        homes={state.conversation: state.subject for state in owner.overview()},
        by_hand=BY_HAND_CONVERSATION,
        receipt=receipt,
        **_done(request, conflict),
        word=WORD,
        from_ms=from_ms,
        self_subject=SELF,
        shown=editable_value,
        plain=_plain,
        fact_address=lambda fact: _fact_address(user, fact, scope_query(grant.org, grant.bot, grant.subject)),
    )


def named_conversations(owner: User) -> list[str]:
    """Return the ids of the user's conversations, without that of the facts by hand."""
    return [name for name in owner.conversations() if name != BY_HAND_CONVERSATION]


def _recent_events(owner: User) -> list[Event]:
    """Return the latest events, newest first, without those of jobs."""
    found = owner.audit(limit=10 * SHOWN_EVENTS)
    return [event for event in found if not event.kind.startswith("job.")][:SHOWN_EVENTS]


def _fact_address(user: str, fact: Fact, scope: dict[str, str]) -> str:
    """Return the address of a fact's timeline."""
    key = None if fact.cardinality == "exclusive" else fact.key
    return link(LIST + "/{user}/fact", user=user, about=fact.subject, category=fact.category, key=key, **scope)


def _render_fact(
    request: Request,
    caller: Caller,
    owner: User,
    user: str,
    receipt: ErasureReceipt | None = None,
    conflict: FactConflict | None = None,
) -> Response:
    grant, query = caller.grant, request.query_params
    events = events_address(request, user, grant.org, grant.bot, grant.subject)
    category, key, about = query.get("category", ""), query.get("key"), query.get("about", SELF)
    facts = [fact for fact in owner.history(category, key) if fact.subject == about]
    placed, lanes = timeline_bars(facts, datetime.now(UTC))
    return render(
        "fact.html",
        request,
        title=": ".join(_plain(name) for name in (category, key) if name),
        events=events,
        notices=NOTICES,
        user=user,
        org=grant.org,
        bot=grant.bot,
        scope=scope_query(grant.org, grant.bot, grant.subject),
        about={one.id: one.name for one in owner.subjects()}.get(about, about),
        self_subject=SELF,
        by_hand=BY_HAND_CONVERSATION,
        facts=facts,
        spans=placed,
        lanes=lanes,
        receipt=receipt,
        **_done(request, conflict),
        t=load_texts("me"),
        shown=editable_value,
    )


def _plain(name: str) -> str:
    """Return a category or key as a title."""
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:]


def _correct(owner: User, form: Form) -> FactChange | None:
    value, fact = form["value"].strip(), owner.fact(form["fact"])
    weight = _share(form.get("importance", ""))
    importance = None if weight is None or weight == round(fact.importance, 2) else weight
    other = None if not value or value == editable_value(fact) else value_as_held(fact, value)
    if other is None and importance is None:
        return None
    return owner.correct(fact.id, value=other, importance=importance, if_version=seen_version(form))


def _share(text: str) -> float | None:
    """Return a number from 0 to 1 that a form holds; ``None`` for anything else."""
    try:
        share = float(text)
    except ValueError:
        return None
    return share if 0 <= share <= 1 else None


# The actions of forms: the call, and the code of the notice.
CHANGING: dict[str, tuple[Callable[[User, Form], object], str]] = {
    "correct": (_correct, "corrected"),
    "never-true": (lambda owner, form: owner.never_true(form["fact"], if_version=seen_version(form)), "never-true"),
    "restore": (lambda owner, form: owner.restore(form["fact"], if_version=seen_version(form)), "restored"),
    "undo": (undo_correction, "restored"),
    "pause": (lambda owner, _form: owner.pause(), "paused"),
    "resume": (lambda owner, _form: owner.resume(), "resumed"),
    "opt-in": (lambda owner, _form: owner.opt_in(), "opted-in"),
    "never": (lambda owner, form: owner.never_remember(form["topic"].strip()), "never"),
    "allow": (lambda owner, form: owner.allow(form["topic"]), "allowed"),
}
UNDONE = ("correct", "never-true")  # that have Undo beside their notice
ERASING: dict[str, Callable[[User, Form], ErasureReceipt]] = {
    "forget": lambda owner, form: owner.forget(form["fact"], if_version=seen_version(form)),
    "opt-out": lambda owner, form: owner.opt_out(erase="erase" in form),
    "erase": lambda owner, _form: owner.erase(),
}


def _change(owner: User, form: Form) -> tuple[str, FactChange | None]:
    """Return the code of the notice, and the change of a fact, if there was one."""
    if form["do"] not in CHANGING:
        raise HTTPException(422, "Unknown action")
    call, said = CHANGING[form["do"]]
    result = call(owner, form)
    if call is _correct and result is None:
        return "nothing", None
    change = result if isinstance(result, FactChange) else None
    return ("refused", None) if change is not None and change.op == "rejected" else (said, change)


def _erase(owner: User, form: Form) -> ErasureReceipt:
    if form["do"] == "erase" and form["word"].strip().casefold() != WORD:
        raise HTTPException(422, f"Nothing was erased: type {WORD} to confirm")
    return ERASING[form["do"]](owner, form)


@dataclass(frozen=True, slots=True)
class TimelineBar:
    """One value on the timeline: its start and width, of 1,000, and its lane."""

    fact: Fact
    lane: int
    start: int
    width: int


def timeline_bars(facts: Sequence[Fact], now: datetime) -> tuple[list[TimelineBar], int]:
    """Return ``(bars, number of lanes)``; values valid at the same time get different lanes."""
    if not facts:
        return [], 0
    begin = min(fact.valid_from for fact in facts)
    whole = max((now - begin).total_seconds(), 1.0)
    free: list[datetime] = []
    placed = []
    for fact in sorted(facts, key=lambda fact: (fact.valid_from, fact.recorded_at)):
        end = max(fact.valid_to or now, fact.valid_from)
        lane = next((lane for lane, until in enumerate(free) if until <= fact.valid_from), len(free))
        free[lane : lane + 1] = [end]
        start = round(1000 * (fact.valid_from - begin).total_seconds() / whole)
        width = round(1000 * (end - fact.valid_from).total_seconds() / whole)
        placed.append(TimelineBar(fact, lane, min(max(start, 0), 992), max(8, width)))
    return placed, len(free)


def user_in_query(caller: Caller) -> User | None:
    """Return the user that ``?user=`` names, if any."""
    return caller.user() if caller.grant.user else None


def scope_fields(caller: Caller, request: Request) -> dict[str, Any]:
    """Return the values of `user_fields` in ``macros.html``, the form that chooses a user, an org and a bot."""
    grant = caller.grant
    users = caller.memory.admin.users(limit=MAX_USER_NAMES, after=(grant.org, "", ""))
    return {
        "user": grant.user or "",
        "org": grant.org,
        "bot": grant.bot,
        "users": list(dict.fromkeys(user for org, user, _ in users if org == grant.org)),
        "query": dict(request.query_params),
    }
