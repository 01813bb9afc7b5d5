"""The metrics page: each figure with its definition and source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from fastapi import Request
from starlette.responses import Response

from ...errors import BadInput
from ...reports import Activity, AskedAgain, Measure, Metrics, Usage
from ..metrics import Latencies
from ..routing import OPERATOR, RouteTable
from ..schemas import Caller, CallerDep
from .home import DAYS, Plot, counts_of, facts_plot, messages_plot, plot_of_days, sum_of
from .layout import format_dollars, format_duration, format_percent, link, render, scope_query
from .texts import figures, mark, plural, plural_of, translate
from .users import scope_fields, user_in_query

table = RouteTable()
PATH = "/dashboard/metrics"
MAX_USERS = 200
FIRST_YEAR = 1970
MAX_DAYS = 366  # of a plot
LATENCY_HOURS = 48
MAX_MODELS = 5  # with a line of their own
UNITS = {"messages": mark("{count} message | {count} messages"), "replies": mark("{count} reply | {count} replies")}
MAX_REPEATED = 50
TITLES = {
    "recall_hit_rate": mark("Recall hit rate"),
    "repeated_question_rate": mark("Repeated questions"),
    "correction_rate": mark("Corrections"),
    "satisfaction": mark("Satisfaction"),
    "conversation_length": mark("Conversation length"),
    "token_saving": mark("Token saving"),
    "cached_share": mark("Cached by the provider"),
    "prefix_stability": mark("Prefix stability"),
    "freshness": mark("Freshness"),
    "job_failures": mark("Failed jobs"),
    "call_failures": mark("Failed model calls"),
    "cost_per_1000_turns": mark("Cost per 1,000 turns"),
}
COUNTED = {
    "recall_hit_rate": (mark("replies that use a recalled item"), mark("replies with recall")),
    "repeated_question_rate": (mark("already answered"), mark("questions by the bot")),
    "correction_rate": (mark("corrected"), mark("facts learned")),
    "satisfaction": (mark("sum of ratings"), mark("rated replies")),
    "conversation_length": (mark("user messages"), mark("conversations")),
    "token_saving": (mark("tokens sent"), mark("tokens in the whole history")),
    "cached_share": (mark("cached tokens"), mark("input tokens")),
    "prefix_stability": (mark("replies"), mark("runs with the same prefix")),
    "freshness": ("", ""),
    "job_failures": (mark("failed"), mark("unfinished")),
    "call_failures": (mark("failed"), mark("calls")),
    "cost_per_1000_turns": (mark("US dollars"), mark("user messages")),
}


@table.page("GET", PATH, OPERATOR)
def metrics_page(request: Request, caller: CallerDep) -> Response:
    """Show the metrics of an org or of one user."""
    query, error = request.query_params, ""
    found: Metrics | None = None
    plots: list[Plot] | None = []
    try:
        since, until = parse_day(query.get("since", "")), parse_day(query.get("until", ""))
        days_between(since, until)
        key, counts = key_of(caller, query), counts_of(request)
        plots, found = counts.get_all(
            (("plots", *key), lambda: count_plots(caller, query, since, until), 0.0),
            (("measures", *key), lambda: measure(caller, query, since, until), 0.0),
        )
        if plots is not None:
            plots = without_gaps([*plots, latency_plot(request.app.state.meters.latencies)])
    except BadInput as wrong:
        error = wrong.message
    return render(
        "metrics.html",
        request,
        title=translate("Metrics"),
        status=422 if error else 200,
        error=error,
        found=found,
        waits=not error and (plots is None or found is None),
        any_users=bool(caller.memory.admin.users(limit=1)),
        plots=plots,
        rows=[measure_row(one) for one in found.measures] if found else [],
        again=[repeated_question_row(one) for one in found.asked_again[:MAX_REPEATED]] if found else [],
        since=query.get("since", ""),
        until=query.get("until", ""),
        whom=scope_fields(caller, request),
    )


def key_of(caller: Caller, query: Mapping[str, str]) -> tuple[str | None, ...]:
    """Return what counts of a query depend on: whose memory was granted, and what was asked for."""
    grant = caller.grant
    asked = tuple(query.get(name, "") for name in ("user", "org", "bot", "since", "until", "all"))
    return (grant.org, grant.bot, grant.user, grant.subject, *asked)


def days_between(since: date | None, until: date | None) -> None:
    """
    Check the dates of the form.

    Raises:
        BadInput: they lie the wrong way round, before 1970, or in the future.
    """
    for day in (since, until):
        if day is not None and day.year < FIRST_YEAR:
            raise BadInput(translate("{day} lies before {year}", day=day, year=FIRST_YEAR))
    if since is not None and since > datetime.now(UTC).date():
        raise BadInput(translate("since {day} lies in the future", day=since))
    if since is not None and until is not None and until < since:
        raise BadInput(translate("until {until} lies before since {since}", until=until, since=since))


def measure(caller: Caller, query: Mapping[str, str], since: date | None, until: date | None) -> Metrics:
    """Compute the metrics of one user, or of an org; it reads every message."""
    user = user_in_query(caller)
    if user is not None:
        return user.metrics(since=since, until=until)
    only = {name: query[name] for name in ("org", "bot") if query.get(name)}
    most = 100_000 if query.get("all") else MAX_USERS
    return caller.memory.admin.metrics(since=since, until=until, most_users=most, **only)


def count_plots(caller: Caller, query: Mapping[str, str], since: date | None, until: date | None) -> list[Plot]:
    """Count the plots of one user, or of an org and bot: at most `MAX_DAYS` days, the last ones."""
    last = until or datetime.now(UTC).date()
    days = min(MAX_DAYS, (last - since).days + 1) if since else DAYS
    first = last - timedelta(days=days - 1)
    only = {name: query.get(name) or None for name in ("org", "bot", "user")}
    if only["user"]:
        only |= {"org": caller.grant.org, "bot": caller.grant.bot}
    activity = caller.memory.admin.activity(since=first, until=last, **only)
    usage = caller.memory.usage(by=("day", "model"), since=first, until=last, **only)
    done = {mark("Done"): sum_of(activity, "job.done"), mark("Failed attempts"): sum_of(activity, "job.failed")}
    plots = [
        messages_plot(activity, last, days),
        facts_plot(activity, last, days),
        plot_of_days("tokens", mark("Tokens of models a day"), _tokens(usage), last, days),
        plot_of_days("cost", mark("Cost of models a day, by model"), _costs(usage), last, days, unit="$"),
        plot_of_days(
            "cached",
            mark("Input tokens from the provider’s cache"),
            {mark("Cached"): _cached(usage)},
            last,
            days,
            unit="%",
        ),
        plot_of_days(
            "prefix",
            mark("Replies whose context began as the one before"),
            prefix_share(activity),
            last,
            days,
            unit="%",
        ),
        plot_of_days("jobs", mark("Jobs a day"), done, last, days),
    ]
    return plots


def without_gaps(plots: Sequence[Plot]) -> list[Plot]:
    """Return the plots with the empty ones last, so that no plot has an empty card beside it."""
    return sorted(plots, key=lambda plot: not plot.total)


def prefix_share(activity: Sequence[Activity]) -> dict[str, Callable[[date], float | None]]:
    """Return the share of replies a day whose stable part was the same as for the reply before; a provider can cache it."""
    same, other = sum_of(activity, "context.reused"), sum_of(activity, "context.changed")
    return {
        mark("Same stable prefix"): lambda day: (
            100 * same(day) / (same(day) + other(day)) if same(day) + other(day) else None
        )
    }


def latency_plot(kept: Latencies) -> Plot:
    """Return the plot of how long calls of servers took, of the last two days with any, an hour a row."""
    now = int(datetime.now(UTC).timestamp()) // 3600
    since, shares = now - LATENCY_HOURS + 1, (0.5, 0.95)
    found = {call: kept.percentiles(call, since, shares) for call in kept.CALLS}
    first = min((hour for hours in found.values() for hour in hours), default=now)
    rows = []
    for hour in range(first, now + 1):
        values = (value for call in kept.CALLS for value in found[call].get(hour, (None,) * len(shares)))
        at = datetime.fromtimestamp(3600 * hour, UTC)
        rows.append((at, tuple(None if seconds is None else 1000 * seconds for seconds in values)))
    names = tuple(
        translate(
            mark("{call}, median") if share == 0.5 else mark("{call}, {percent}th percentile"),
            call=translate(call.capitalize()),
            percent=f"{100 * share:.0f}",
        )
        for call in kept.CALLS
        for share in shares
    )
    title = mark("Latency of the servers an hour, all users")
    return Plot("latency", title, names, tuple(rows), unit="ms", step="hour")


def _by_day(usage: Sequence[Usage], value: Callable[[Usage], float]) -> Callable[[date], float]:
    sums: dict[str, float] = {}
    for one in usage:
        sums[one.day] = sums.get(one.day, 0) + value(one)
    return lambda day: sums.get(day.isoformat(), 0)


def _tokens(usage: Sequence[Usage]) -> dict[str, Callable[[date], float | None]]:
    fresh = _by_day(usage, lambda one: one.input_tokens - one.cached_tokens)
    cached, written = _by_day(usage, lambda one: one.cached_tokens), _by_day(usage, lambda one: one.output_tokens)
    return {mark("Input"): fresh, mark("Input, cached"): cached, mark("Output"): written}


def _costs(usage: Sequence[Usage]) -> dict[str, Callable[[date], float | None]]:
    models = sorted(
        {one.model for one in usage}, key=lambda name: -sum(one.cost or 0 for one in usage if one.model == name)
    )
    shown, rest = models[:MAX_MODELS], set(models[MAX_MODELS:])
    found: dict[str, Callable[[date], float | None]] = {
        name: _by_day([one for one in usage if one.model == name], lambda one: one.cost or 0) for name in shown
    }
    if rest:
        found[mark("Other models")] = _by_day([one for one in usage if one.model in rest], lambda one: one.cost or 0)
    return found or {mark("Cost"): lambda _day: 0}


def _cached(usage: Sequence[Usage]) -> Callable[[date], float | None]:
    whole, part = _by_day(usage, lambda one: one.input_tokens), _by_day(usage, lambda one: one.cached_tokens)
    return lambda day: 100 * part(day) / whole(day) if whole(day) else None


def parse_day(text: str) -> date | None:
    """
    Parse a date of the form.

    Raises:
        BadInput: it is none.
    """
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise BadInput(
            translate("{text} is not a date", text=repr(text[:40])), hint=translate("write it like 2026-03-14")
        ) from None


def measure_row(one: Measure) -> dict[str, Any]:
    part, whole = COUNTED[one.name]
    counted = ""
    if part and one.denominator:
        parts = ((part, one.numerator), (whole, one.denominator))
        counted = " · ".join(f"{translate(words)}: {figures(f'{number:,.10g}')}" for words, number in parts)
    if one.name == "freshness" and one.n:
        counted = plural(
            "the oldest of {count} message without a summary", "the oldest of {count} messages without a summary", one.n
        )
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
    if one.unit == "US dollars":
        return format_dollars(one.value)
    if one.unit in UNITS:
        return plural_of(UNITS[one.unit], one.value)
    return figures(f"{one.value:,g} {one.unit}")


def repeated_question_row(one: AskedAgain) -> dict[str, Any]:
    """Return a repeated question with links to it and to its earlier answer."""
    said = one.fact.evidence[0] if one.fact.evidence else None
    return {
        "one": one,
        "said": said,
        "asked_at": _message_link(one, one.conversation, one.seq, one.subject),
        "said_at": _message_link(one, said.conversation, said.seq, said.home) if said else "",
    }


def _message_link(one: AskedAgain, conversation: str, seq: int, subject: str) -> str:
    scope = scope_query(one.org, one.bot, None if subject in ("", "self") else subject)
    path = "/dashboard/conversations/{user}/{conversation}"
    return link(path, user=one.user, conversation=conversation, at=seq, **scope) + f"#m{seq}"
