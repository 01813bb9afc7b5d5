"""
The users pages: the list, one user's facts and privacy choices, and the timeline of a fact.

An operator mends by the same calls that the user has at ``/me``, and sees of each belief how it came about.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ...errors import Changed
from ...memory import Memory
from ...reports import ErasureReceipt, UserOrder
from ...scope import SELF
from ...text import dataclass
from ...types import BY_HAND_CONVERSATION, Fact, FactChange
from ...user import FactAddress, User
from ..routing import OPERATOR, RouteTable, UserName
from ..schemas import Caller, CallerDep, UserDep
from .home import remember_order, sorted_users, wanted_order
from .layout import (
    Form,
    FormDep,
    events_address,
    here,
    link,
    list_file,
    parse_user_key,
    query_number,
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
    SeveralFacts,
    SubjectFacts,
    access_log,
    decide_waiting,
    fact_conflict,
    facts_page,
    forget_preview,
    forget_several,
    group_facts,
    matching_facts,
    review_several,
    stories_of,
    undo_correction,
    waiting_questions,
)
from .texts import category_words, editable_value, load_texts, mark, translate, value_as_held

table = RouteTable()
LIST = "/dashboard/users"
ONE = LIST + "/{user:name}"
FACT = ONE + "/fact"
ROWS = 50
MAX_COUNTED = 20  # conversations of a user on the list
MAX_WORDS = 200
FACTS_READ = 500  # at a time, for a file
MAX_USER_NAMES = 200  # that a form suggests
MOST_LIVES = 100  # rows of the life-line
WORD = "erase"
Key = tuple[str, str, str]

NOTICES = {
    "corrected": mark("Corrected. The next context uses it."),
    "never-true": mark("Marked as never true. The value it replaced is active again."),
    "nothing": mark("Nothing changed."),
    "paused": mark("Memory is paused for this user."),
    "resumed": mark("Memory is on again."),
    "opted-in": mark("Memory is on."),
    "never": mark("Nothing new about this will be remembered."),
    "allowed": mark("This may be remembered again."),
    "accepted": mark("Accepted. The next context uses it."),
    "dismissed": mark("Dismissed. It is not remembered."),
    "waiting": mark("It waits for a decision again."),
    "gone": mark("Nothing changed: it is not there any more."),
    "refused": mark("Not stored: memory is off or paused, or the user asked never to remember this."),
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
    query, memory, sort = request.query_params, caller.memory, wanted_order(request)
    words, org = query.get("q", "").strip()[:MAX_WORDS], query.get("org")
    after, skip = parse_user_key(query.get("after")), query_number(request, "skip") or 0
    if kind := wanted_file(request):
        rows = (asdict(_row(memory, key)) for key in _all_users(memory, sort, words, org))
        return list_file(kind, "users", ("org", "user", "bot", "last_at", "state"), rows)
    found: list[Key] | None
    if sort == "name":
        found = memory.admin.users(limit=ROWS + 1, after=after, matching=words, org=org)
    else:
        found = sorted_users(request, memory, sort, ROWS + 1, skip, words, org)
    users, more = (found or [])[:ROWS], len(found or ()) > ROWS
    next_page = {"after": json.dumps(users[-1])} if more and sort == "name" else {"skip": str(skip + ROWS)}
    answer = render(
        "users.html",
        request,
        title=translate("Users"),
        rows=[_row(memory, key) for key in users],
        words=words,
        org=org,
        most=MAX_COUNTED,
        sort=sort,
        counting=found is None,
        after=here(request, **next_page) if more else None,
        first=here(request, after=None, skip=None) if after is not None or skip else None,
    )
    return remember_order(request, answer)


def _all_users(memory: Memory, sort: UserOrder, words: str, org: str | None) -> Iterator[Key]:
    """Yield the keys of matching users, in order, as they are read."""
    if sort != "name":
        yield from memory.admin.users(sort=sort, limit=2**31, matching=words, org=org)
        return
    after = None
    while page := memory.admin.users(limit=ROWS, after=after, matching=words, org=org):
        yield from page
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
        if form["do"] == "review":
            return _render_user(request, caller, owner, user, several=review_several(owner, form))
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
    done = "" if conflict or not (undo or decided) else translate(NOTICES.get(done, ""))
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
    several: SeveralFacts | None = None,
) -> Response:
    grant, said = caller.grant, load_texts("me")
    events = events_address(
        request, user, grant.org, grant.bot, grant.subject
    )  # before anything is read, so that no event is missed
    ever, active, known = owner.history(), owner.facts(), owner.subjects()
    words = request.query_params.get("q", "").strip()[:MAX_WORDS]
    past, shown = matching_facts(ever, words), matching_facts(active, words)
    groups = group_facts(shown, past, said.topics(), known)
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
        **facts_page(groups, request),
        **life_line(groups, datetime.now(UTC)),
        several=several,
        words=words,
        stories=stories_of(owner, () if grant.subject else known),
        archived=[fact for fact in past if fact.ended_because == ARCHIVED],
        rejected=owner.rejected(limit=20),
        **waiting_questions(owner, active),
        accesses=access_log(owner),
        share=caller.memory.config.read_log_share,
        conversations=named_conversations(owner),
        homes={state.conversation: state.subject for state in owner.overview()},
        by_hand=BY_HAND_CONVERSATION,
        receipt=receipt,
        **_done(request, conflict),
        word=WORD,
        self_subject=SELF,
        shown=editable_value,
        plain=_plain,
        fact_address=lambda fact: _fact_address(user, fact, scope_query(grant.org, grant.bot, grant.subject)),
    )


def named_conversations(owner: User) -> list[str]:
    """Return the ids of the user's conversations, without that of the facts by hand."""
    return [name for name in owner.conversations() if name != BY_HAND_CONVERSATION]


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
    words = category_words(name)
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
    "forget-several": forget_several,
    "opt-out": lambda owner, form: owner.opt_out(erase="erase" in form),
    "erase": lambda owner, _form: owner.erase(),
}


def _change(owner: User, form: Form) -> tuple[str, FactChange | None]:
    """Return the code of the notice, and the change of a fact, if there was one."""
    if form["do"] not in CHANGING:
        raise HTTPException(422, translate("Unknown action"))
    call, said = CHANGING[form["do"]]
    result = call(owner, form)
    if call is _correct and result is None:
        return "nothing", None
    change = result if isinstance(result, FactChange) else None
    return ("refused", None) if change is not None and change.op == "rejected" else (said, change)


def _erase(owner: User, form: Form) -> ErasureReceipt:
    if form["do"] == "erase" and form["word"].strip().casefold() != WORD:
        raise HTTPException(422, translate("Nothing was erased: type {word} to confirm", word=WORD))
    return ERASING[form["do"]](owner, form)


@dataclass(frozen=True, slots=True)
class TimelineBar:
    """One value on the timeline: its start and width, of 1,000, and its lane."""

    fact: Fact
    lane: int
    start: int
    width: int


def timeline_bars(facts: Sequence[Fact], now: datetime, begin: datetime | None = None) -> tuple[list[TimelineBar], int]:
    """Return ``(bars, number of lanes)`` since *begin*, or since the first; values valid at the same time get different lanes."""
    if not facts:
        return [], 0
    begin = begin or min(fact.valid_from for fact in facts)
    free: list[datetime] = []
    placed = []
    for fact in sorted(facts, key=lambda fact: (fact.valid_from, fact.recorded_at)):
        end = max(fact.valid_to or now, fact.valid_from)
        lane = next((lane for lane, until in enumerate(free) if until <= fact.valid_from), len(free))
        free[lane : lane + 1] = [end]
        start = _place_in(fact.valid_from, begin, now)
        width = _place_in(end, begin, now) - start
        placed.append(TimelineBar(fact, lane, min(start, 992), max(8, width)))
    return placed, len(free)


def _place_in(at: datetime, begin: datetime, now: datetime) -> int:
    """Return where a time lies between *begin* and *now*, of 1,000."""
    whole = max((now - begin).total_seconds(), 1.0)
    return round(min(max(1000 * (at - begin).total_seconds() / whole, 0), 1000))


@dataclass(frozen=True, slots=True)
class LifeRow:
    """The values that one fact had: bars of when each held, and the places of their evidence, of 1,000."""

    title: str
    active: str
    bars: list[TimelineBar]
    dots: list[int]


def life_line(subjects: Sequence[SubjectFacts], now: datetime) -> dict[str, Any]:
    """Return a row for each fact with the values before it, in the order of the page, and when the first one began."""
    topics = [topic for subject in subjects for topic in subject.topics]
    values = [(one.fact.id, [one.fact, *one.earlier]) for topic in topics for one in topic.beliefs]
    values += [("", [fact]) for topic in topics for fact in topic.past]
    del values[MOST_LIVES:]
    begin = min((fact.valid_from for _, facts in values for fact in facts), default=now)
    rows = []
    for active, facts in values:
        dots = {_place_in(said.at, begin, now) for fact in facts for said in fact.evidence if said.at}
        rows.append(LifeRow(facts[0].text, active, timeline_bars(facts, now, begin)[0], sorted(dots)))
    return {"life": rows, "life_from": begin}


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
