"""``/dashboard/conversations``: who talked, and one conversation with everything that was made of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ...errors import NotFound
from ...memory import Memory
from ...reports import ConversationState, ErasureReceipt
from ...types import Job
from ..jobs import TasksDep
from ..routing import OPERATOR, RouteTable
from ..schemas import CallerDep, ConversationDep, ConversationName, UserDep, UserName
from . import inspector, regenerate
from .coverage import strip
from .shell import Filled, Form, events_of, here, link, number, render, scope_query, see_other
from .transcript import badges, changed, firsts, lines

table = RouteTable()
LIST = "/dashboard/conversations"
OF_USER = LIST + "/{user:name}"
ONE = OF_USER + "/{conversation:name}"

USERS_A_PAGE = 20
EACH = 5  # conversations of one user on the list of all
CONVERSATIONS_A_PAGE = 50
MESSAGES_A_PAGE = 100
MOST_ORGS = 50
_AFTER_EVERY_NAME = "\U0010ffff" * 3

NOTICES = {
    "edited": "The message says something else now. What was learned from the old words is gone.",
    "undone": "Undone: this is not believed any more, and what it had replaced holds again.",
    "believed-again": "This is believed again.",
    "stopped": "It stops after the range that it is in. What was made stays made.",
    "put-back": "The older version stands again.",
    "ended": "The conversation was closed: its rest is being summarised.",
    "retried": "It is tried again.",
}


@table.page("GET", LIST, OPERATOR)
def conversations_page(request: Request, asked: CallerDep) -> Response:
    """Everybody's conversations, by user."""
    memory, query = asked.memory, request.query_params
    org, begins = asked.grant.org, query.get("name", "")
    after = (org, query["after"], query.get("after_bot", "")) if "after" in query else (org, begins, "")
    found = memory.admin.users(limit=USERS_A_PAGE + 1, after=after)
    users = [one for one in found if one[0] == org and one[1].startswith(begins)]
    more = len(users) > USERS_A_PAGE
    users = users[:USERS_A_PAGE]
    jobs = memory.jobs()
    groups = []
    for at, user, bot in users:
        owner = memory.user(user, org=at, bot=bot)
        states = owner.overview()
        shown = [_told(state, user, at, bot, jobs) for state in states[:EACH]]
        rest = link(OF_USER.replace(":name", ""), user=user, **scope_query(at, bot))
        groups.append({"user": user, "bot": bot, "rows": shown, "all": len(states), "address": rest})
    last = users[-1] if users else None
    return render(
        "conversations.html",
        request,
        title="Conversations",
        events=None,
        groups=groups,
        org=org,
        orgs=list(_orgs(memory)),
        begins=begins,
        after=here(request, after=last[1], after_bot=last[2]) if more and last else None,
        first=here(request, after=None, after_bot=None) if "after" in query else None,
    )


@table.page("GET", OF_USER, OPERATOR)
def conversations_of_user_page(request: Request, asked: CallerDep, whose: UserDep, user: UserName) -> Response:
    """All conversations of one user, the newest first."""
    grant, wanted = asked.grant, request.query_params.get("name", "")
    first = max(0, number(request, "first") or 0)
    states = [state for state in whose.overview() if wanted.lower() in state.conversation.lower()]
    shown, jobs = states[first : first + CONVERSATIONS_A_PAGE], asked.memory.jobs()
    last = first + CONVERSATIONS_A_PAGE
    return render(
        "conversations-of-user.html",
        request,
        title=user,
        user=user,
        grant=grant,
        wanted=wanted,
        consent=whose.status(),
        rows=[_told(state, user, grant.org, grant.bot, jobs) for state in shown],
        all=len(states),
        before=here(request, first=max(0, first - CONVERSATIONS_A_PAGE)) if first else None,
        after=here(request, first=last) if last < len(states) else None,
        back=link(LIST, **scope_query(grant.org)),
    )


@table.page("GET", ONE, OPERATOR)
def conversation_page(
    request: Request,
    asked: CallerDep,
    which: ConversationDep,
    whose: UserDep,
    tasks: TasksDep,
    user: UserName,
    conversation: ConversationName,
) -> Response:
    """The transcript of one conversation, what covers it, what was learned, and what the model would see next."""
    state = which.state()
    if state is None:
        raise NotFound(f"{user!r} has no conversation {conversation!r} here", hint="it may be about another subject")
    grant, query = asked.grant, request.query_params
    events = events_of(request, user, grant.org, grant.bot, state.subject, conversation)
    live, ever, facts = which.summaries(), which.summaries(live=False), which.learned()
    chosen = next((summary for summary in ever if summary.id == query.get("chunk")), None)
    first = _first(number(request, "at"), chosen.start_seq if chosen else None, state.messages)
    last = min(state.messages, first + MESSAGES_A_PAGE - 1)
    jobs = [job for job in asked.memory.jobs() if _about(job, state, user, grant.org, grant.bot)]
    dead = [job for job in jobs if job.state in ("dead", "cancelled")]
    versions = _versions(ever, chosen)
    return render(
        "conversation.html",
        request,
        title=conversation,
        events=events,
        notices=NOTICES | _receipts(query.get("said", "")),
        user=user,
        grant=grant,
        state=state,
        consent=whose.status(),
        standing=_status(state, dead),
        dead=dead,
        waiting=[job for job in jobs if job.state == "waiting"],
        transcript=lines(which.load(start_seq=first, limit=last - first + 1), first, last, badges(facts, which.id)),
        first=first,
        last=last,
        older=here(request, at=max(1, first - MESSAGES_A_PAGE), chunk=None) if first > 1 else None,
        newer=here(request, at=last + 1, chunk=None) if last < state.messages else None,
        strip=strip(
            live, state.messages, firsts(facts, which.id), failed=_untold(dead), around=first + (last - first) // 2
        ),
        meta=sorted((s for s in live if s.level > 1), key=lambda s: (-s.level, s.start_seq)),
        chunks=[s for s in live if s.level == 1],
        facts=[fact for fact in facts if fact.live],
        chunk=chosen,
        is_live=chosen is not None and chosen.id in {summary.id for summary in live},
        versions=versions,
        diff=_diff(versions, chosen),
        children=[s for s in live if chosen is not None and s.id in chosen.children],
        rebuilds=list(reversed(which.rebuilds()))[:20],
        regenerate=regenerate.asked(request, which),
        progress=regenerate.current(asked, which, tasks),
        layers=regenerate.CHOICES,
        context=inspector.inspected(request, which),
        back=link(OF_USER.replace(":name", ""), user=user, **scope_query(grant.org, grant.bot)),
    )


@table.page("POST", ONE, OPERATOR)
def conversation_change(
    request: Request, asked: CallerDep, which: ConversationDep, whose: UserDep, tasks: TasksDep, form: Filled
) -> Response:
    """Edit or forget a message, undo what was learned, make a range again, put an older version back."""
    do = form["do"]
    if do == "edit":
        which.edit(_seq(form), form["content"])
        said = "edited"
    elif do == "forget":
        said = _receipt(which.forget(_seq(form)))
    elif do == "undo":
        whose.never_true(form["fact"])
        said = "undone"
    elif do == "believe":
        whose.restore(form["fact"])
        said = "believed-again"
    elif do == "rebuild":
        return regenerate.begin(request, asked, which, form, tasks)
    elif do == "stop":
        tasks.cancel(form["task"])
        said = "stopped"
    elif do == "restore":
        which.restore(form["rebuild"])
        said = "put-back"
    elif do == "end":
        which.end()
        said = "ended"
    elif do == "retry":
        asked.memory.retry(form["job"])
        said = "retried"
    else:
        raise HTTPException(422, "This page has no such form")
    return see_other(here(request), said=said)


def _seq(form: Form) -> int:
    if not form["seq"].isdecimal():
        raise HTTPException(422, "The number of the message is not a number")
    return int(form["seq"])


def _receipt(receipt: ErasureReceipt) -> str:
    """A receipt as a code: its level, and how many rows of each kind went or were told anew."""
    return ".".join(["forgotten", receipt.level, *(f"{kind}-{rows}" for kind, rows in receipt.rows.items())])


def _receipts(code: str) -> dict[str, str]:
    """The sentence for such a code; no other words of the address are shown."""
    found = re.fullmatch(r"forgotten\.(E[012])((?:\.[a-z_ ]{1,40}-\d{1,9})*)", code)
    if found is None:
        return {}
    parts = [part.rpartition("-") for part in found[2].split(".") if part]
    told = ", ".join(f"{kind.replace('_', ' ')} {rows}" for kind, _, rows in parts)
    sure = "; the bytes of the store were searched and hold no trace of it" if found[1] == "E2" else ""
    return {code: f"Forgotten, with everything that rested only on it ({told or 'nothing was left of it'}){sure}."}


def _orgs(memory: Memory) -> Iterator[str]:
    """The tenants there are, each found with one look."""
    after: tuple[str, str, str] | None = None
    for _ in range(MOST_ORGS):
        found = memory.admin.users(limit=1, after=after)
        if not found:
            return
        yield found[0][0]
        after = (found[0][0], _AFTER_EVERY_NAME, "")


def _about(job: Job, state: ConversationState, user: str, org: str, bot: str) -> bool:
    mine = (job.org, job.user, job.bot, job.subject) == (org, user, bot, state.subject)
    return mine and job.conversation == state.conversation


def _told(state: ConversationState, user: str, org: str, bot: str, jobs: list[Job]) -> dict[str, Any]:
    """A row of a list."""
    subject = None if state.subject == "self" else state.subject
    dead = [job for job in jobs if job.state in ("dead", "cancelled") and _about(job, state, user, org, bot)]
    named = {"user": user, "conversation": state.conversation, **scope_query(org, bot, subject)}
    return {
        "state": state,
        "subject": subject,
        "status": _status(state, dead),
        "address": link(ONE.replace(":name", ""), **named),
    }


def _status(state: ConversationState, dead: list[Job]) -> tuple[str, str, str]:
    """``(kind, icon, words)`` of a badge."""
    if dead:
        return "bad", "bad", "could not be summarised" if _untold(dead) else "work put aside"
    if not state.summarised:
        return "quiet", "wait", "no summary yet"
    if state.waiting > 2 * max(1, state.summarised):
        return "info", "wait", f"{state.waiting} waiting"
    return "ok", "ok", "up to date"


def _untold(dead: list[Job]) -> bool:
    """Whether it is summaries that could not be made."""
    return any(job.kind in ("chunk", "summary") for job in dead)


def _first(at: int | None, chunk: int | None, messages: int) -> int:
    """Where the page of the transcript begins: at a message that was asked for, else with the last page."""
    wanted = at if at is not None else chunk
    if wanted is None:
        return max(1, messages - MESSAGES_A_PAGE + 1)
    return max(1, min(wanted, messages))


def _versions(ever: list[Any], chosen: Any) -> list[Any]:
    """Every version of the range that is shown, the oldest first."""
    if chosen is None:
        return []
    same = [s for s in ever if (s.level, s.start_seq, s.end_seq) == (chosen.level, chosen.start_seq, chosen.end_seq)]
    return sorted(same, key=lambda summary: (summary.version, summary.id))


def _diff(versions: list[Any], chosen: Any) -> list[tuple[str, str]] | None:
    """The version that is shown against the one before it."""
    at = versions.index(chosen) if chosen in versions else 0
    return list(changed(versions[at - 1].text, chosen.text)) if at > 0 else None
