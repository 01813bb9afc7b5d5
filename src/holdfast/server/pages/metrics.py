"""``/dashboard/metrics``: how well memory serves, each figure with its definition and what it was counted from."""

from __future__ import annotations

from datetime import date
from typing import Any

from fastapi import Request
from starlette.responses import Response

from ...errors import BadInput
from ...reports import AskedAgain, Measure, Metrics
from ..routing import OPERATOR, RouteTable
from ..schemas import CallerDep
from .shell import link, render, scope_query
from .whom import lasting, scope_of, share, user_of

table = RouteTable()
PATH = "/dashboard/metrics"
MOST_USERS = 200
ASKED_SHOWN = 50
TITLES = {
    "recall_hit_rate": "Recall hit rate",
    "repeated_question_rate": "Repeated questions",
    "correction_rate": "Corrections",
    "conversation_length": "Conversation length",
    "token_saving": "Token saving",
    "cached_share": "Cached by the provider",
    "prefix_stability": "Prefix stability",
    "freshness": "Freshness",
    "job_failures": "Failed jobs",
    "call_failures": "Failed calls of models",
    "cost_per_1000_turns": "Cost of 1,000 turns",
}
COUNTED = {
    "recall_hit_rate": ("replies that use it", "replies with recall"),
    "repeated_question_rate": ("had been answered", "questions of the assistant"),
    "correction_rate": ("corrected", "facts learned"),
    "conversation_length": ("user messages", "conversations"),
    "token_saving": ("tokens sent", "tokens of the whole history"),
    "cached_share": ("tokens cached", "input tokens"),
    "prefix_stability": ("replies", "runs of one prefix"),
    "freshness": ("", ""),
    "job_failures": ("put aside", "unfinished"),
    "call_failures": ("failed", "calls"),
    "cost_per_1000_turns": ("US dollars", "user messages"),
}


@table.page("GET", PATH, OPERATOR)
def metrics_page(request: Request, asked: CallerDep) -> Response:
    """The measures of everybody in an org, or of one user."""
    query, error = request.query_params, ""
    found = Metrics(())
    try:
        since, until = day(query.get("since", "")), day(query.get("until", ""))
        user = user_of(asked)
        if user is not None:
            found = user.metrics(since=since, until=until)
        else:
            only = {name: query[name] for name in ("org", "bot") if query.get(name)}
            most = 100_000 if query.get("all") else MOST_USERS
            found = asked.memory.admin.metrics(since=since, until=until, most_users=most, **only)
    except BadInput as wrong:
        error = wrong.message
    return render(
        "metrics.html",
        request,
        title="Metrics",
        status=422 if error else 200,
        error=error,
        found=found,
        rows=[row(one) for one in found.measures],
        again=[again(one, asked) for one in found.asked_again[:ASKED_SHOWN]],
        since=query.get("since", ""),
        until=query.get("until", ""),
        whom=scope_of(asked, request),
    )


def day(text: str) -> date | None:
    """
    A day as the form gives it.

    Raises:
        BadInput: it is none.
    """
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise BadInput(f"{text[:40]!r} is not a day", hint="write 2026-03-14") from None


def row(one: Measure) -> dict[str, Any]:
    """One measure as the page shows it."""
    part, whole = COUNTED[one.name]
    counted = f"{one.numerator:,.10g} {part} / {one.denominator:,.10g} {whole}" if part and one.denominator else ""
    if one.name == "freshness" and one.n:
        counted = f"the oldest of {one.n:,} messages that no summary covers"
    bar = one.value if one.unit == "share" and one.value is not None and 0 <= one.value <= 1 else None
    return {"one": one, "title": TITLES[one.name], "value": shown(one), "counted": counted, "bar": bar}


def shown(one: Measure) -> str:
    """The value in words; nothing when it was not measured."""
    if one.value is None:
        return ""
    if one.unit == "share":
        return share(one.value)
    if one.unit == "seconds":
        return lasting(one.value)
    return f"${one.value:,.2f}" if one.unit == "US dollars" else f"{one.value:,g} {one.unit}"


def again(one: AskedAgain, asked: CallerDep) -> dict[str, Any]:
    """A question that had been answered, where it was asked and where it had been answered."""
    said = one.fact.evidence[0] if one.fact.evidence else None
    user = asked.grant.user
    return {
        "one": one,
        "said": said,
        "asked_at": _place(asked, user, one.conversation, one.seq, one.subject),
        "said_at": _place(asked, user, said.conversation, said.seq, said.home) if said else "",
    }


def _place(asked: CallerDep, user: str | None, conversation: str, seq: int, subject: str) -> str:
    if not user:
        return ""
    whose = scope_query(asked.grant.org, asked.grant.bot, None if subject in ("", "self") else subject)
    path = "/dashboard/conversations/{user}/{conversation}"
    return link(path, user=user, conversation=conversation, at=seq, **whose) + f"#m{seq}"
