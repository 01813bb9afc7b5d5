"""The metrics page: each figure with its definition and source."""

from __future__ import annotations

from datetime import date
from typing import Any

from fastapi import Request
from starlette.responses import Response

from ...errors import BadInput
from ...reports import AskedAgain, Measure, Metrics
from ..routing import OPERATOR, RouteTable
from ..schemas import CallerDep
from .layout import format_duration, format_percent, link, render, scope_query
from .users import scope_fields, user_in_query

table = RouteTable()
PATH = "/dashboard/metrics"
MAX_USERS = 200
MAX_REPEATED = 50
TITLES = {
    "recall_hit_rate": "Recall hit rate",
    "repeated_question_rate": "Repeated questions",
    "correction_rate": "Corrections",
    "satisfaction": "Satisfaction",
    "conversation_length": "Conversation length",
    "token_saving": "Token saving",
    "cached_share": "Cached by the provider",
    "prefix_stability": "Prefix stability",
    "freshness": "Freshness",
    "job_failures": "Failed jobs",
    "call_failures": "Failed model calls",
    "cost_per_1000_turns": "Cost per 1,000 turns",
}
COUNTED = {
    "recall_hit_rate": ("replies that use a recalled item", "replies with recall"),
    "repeated_question_rate": ("already answered", "questions by the bot"),
    "correction_rate": ("corrected", "facts learned"),
    "satisfaction": ("sum of ratings", "rated replies"),
    "conversation_length": ("user messages", "conversations"),
    "token_saving": ("tokens sent", "tokens in the whole history"),
    "cached_share": ("cached tokens", "input tokens"),
    "prefix_stability": ("replies", "runs with the same prefix"),
    "freshness": ("", ""),
    "job_failures": ("failed", "unfinished"),
    "call_failures": ("failed", "calls"),
    "cost_per_1000_turns": ("US dollars", "user messages"),
}


@table.page("GET", PATH, OPERATOR)
def metrics_page(request: Request, caller: CallerDep) -> Response:
    """Show the metrics of an org or of one user."""
    query, error = request.query_params, ""
    found = Metrics(())
    try:
        since, until = parse_day(query.get("since", "")), parse_day(query.get("until", ""))
        user = user_in_query(caller)
        if user is not None:
            found = user.metrics(since=since, until=until)
        else:
            only = {name: query[name] for name in ("org", "bot") if query.get(name)}
            most = 100_000 if query.get("all") else MAX_USERS
            found = caller.memory.admin.metrics(since=since, until=until, most_users=most, **only)
    except BadInput as wrong:
        error = wrong.message
    return render(
        "metrics.html",
        request,
        title="Metrics",
        status=422 if error else 200,
        error=error,
        found=found,
        rows=[measure_row(one) for one in found.measures],
        again=[repeated_question_row(one, caller) for one in found.asked_again[:MAX_REPEATED]],
        since=query.get("since", ""),
        until=query.get("until", ""),
        whom=scope_fields(caller, request),
    )


def parse_day(text: str) -> date | None:
    """
    Parse a date of the form.

    Raises:
        BadInput: it is none.
    """
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise BadInput(f"{text[:40]!r} is not a date", hint="write it like 2026-03-14") from None


def measure_row(one: Measure) -> dict[str, Any]:
    part, whole = COUNTED[one.name]
    counted = f"{part}: {one.numerator:,.10g} · {whole}: {one.denominator:,.10g}" if part and one.denominator else ""
    if one.name == "freshness" and one.n:
        counted = f"the oldest of {one.n:,} message{'s' if one.n != 1 else ''} without a summary"
    bar = one.value if one.unit == "share" and one.value is not None and 0 <= one.value <= 1 else None
    return {"one": one, "title": TITLES[one.name], "value": format_value(one), "counted": counted, "bar": bar}


def format_value(one: Measure) -> str:
    """Format the value; empty if it was not measured."""
    if one.value is None:
        return ""
    if one.unit == "share":
        return format_percent(one.value)
    if one.unit == "seconds":
        return format_duration(one.value)
    return f"${one.value:,.2f}" if one.unit == "US dollars" else f"{one.value:,g} {one.unit}"


def repeated_question_row(one: AskedAgain, caller: CallerDep) -> dict[str, Any]:
    """Return a repeated question with links to it and to its earlier answer."""
    said = one.fact.evidence[0] if one.fact.evidence else None
    user = caller.grant.user
    return {
        "one": one,
        "said": said,
        "asked_at": _message_link(caller, user, one.conversation, one.seq, one.subject),
        "said_at": _message_link(caller, user, said.conversation, said.seq, said.home) if said else "",
    }


def _message_link(caller: CallerDep, user: str | None, conversation: str, seq: int, subject: str) -> str:
    if not user:
        return ""
    scope = scope_query(caller.grant.org, caller.grant.bot, None if subject in ("", "self") else subject)
    path = "/dashboard/conversations/{user}/{conversation}"
    return link(path, user=user, conversation=conversation, at=seq, **scope) + f"#m{seq}"
