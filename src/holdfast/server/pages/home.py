"""The home page: health, what needs attention, counts a day, and the newest changes; and the demo for an empty store."""

from __future__ import annotations

import json
import threading
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import asdict
from datetime import UTC, date, datetime, timedelta
from importlib import resources
from typing import Any

from fastapi import Request
from starlette.responses import Response

from ...clock import from_ms
from ...errors import Conflict
from ...memory import Memory
from ...reports import USER_ORDERS, Activity, Backlog, Event, Measure, Usage, UserKey, UserOrder
from ...scope import BACKGROUND, acting
from ...text import dataclass
from ...types import BY_HAND_CONVERSATION, Price
from ..jobs import Tasks, TasksDep
from ..routing import OPERATOR, RouteTable
from ..schemas import CallerDep
from .layout import link, list_file, render, scope_query, see_other, wanted_file
from .texts import mark, plural, plural_of, translate

table = RouteTable()
PATH = "/dashboard"
CHANGES = PATH + "/changes"
DEMO = PATH + "/demo"
DAYS = 30
WEEK = 7
FRESH_S = 20.0  # for so long counts are shown before they are counted again
PATIENCE_S = 0.08  # that a page waits for its counts, all of them together; then it shows that it counts
MAX_KEPT = 64
MAX_COUNTING = 2  # counts that are made at once
NEWEST, LISTED = 12, 200
SAVING_S, SAVING_USERS = 900.0, 200  # how long the measured saving stays, and over how many users
GROUPED = 200  # newest events that the rows of the home page are made of

# The figures of a week: title, the kinds of events, and how a page says what they are.
FIGURES = (
    (mark("Messages"), ("message.added",), mark("stored")),
    (mark("Facts learned"), ("fact.added",), mark("new")),
    (mark("Facts replaced"), ("fact.replaced",), mark("by a newer value")),
    (mark("Facts corrected"), ("fact.corrected",), mark("by hand")),
    (mark("Facts forgotten"), ("fact.forgotten",), mark("erased")),
    (mark("Summaries"), ("summary.made",), mark("made")),
    (mark("Failed jobs"), ("job.failed",), mark("attempts")),
)
FACT_SERIES = {
    mark("Learned"): "fact.added",
    mark("Replaced"): "fact.replaced",
    mark("Corrected"): "fact.corrected",
    mark("Forgotten"): "fact.forgotten",
}
KIND_WORDS = {  # of one change, and of several
    "message.added": mark("message stored | {count} messages stored"),
    "message.edited": mark("message edited | {count} messages edited"),
    "message.rated": mark("reply rated | {count} replies rated"),
    "message.deleted": mark("message forgotten | {count} messages forgotten"),
    "fact.added": mark("fact learned | {count} facts learned"),
    "fact.confirmed": mark("fact said again | {count} facts said again"),
    "fact.changed": mark("fact changed | {count} facts changed"),
    "fact.replaced": mark("fact replaced | {count} facts replaced"),
    "fact.corrected": mark("fact corrected | {count} facts corrected"),
    "fact.ended": mark("fact ended | {count} facts ended"),
    "fact.forgotten": mark("fact forgotten | {count} facts forgotten"),
    "summary.made": mark("summary made | {count} summaries made"),
    "summary.stale": mark("summary out of date | {count} summaries out of date"),
    "summary.removed": mark("summary removed | {count} summaries removed"),
    "episode.added": mark("episode added | {count} episodes added"),
    "episode.removed": mark("episode removed | {count} episodes removed"),
    "consent.changed": mark("privacy choice changed | {count} privacy choices changed"),
    "prompt.changed": mark("prompt changed | {count} prompts changed"),
    "subject.changed": mark("subject changed | {count} subjects changed"),
    "job.failed": mark("job failed | {count} jobs failed"),
    "job.done": mark("job done | {count} jobs done"),
    "erased": mark("erased | erased, {count} times"),
}


@dataclass(slots=True)
class Kept:
    """A count and when it was made; ``value`` is ``None`` until the first one is there."""

    value: Any = None
    at: float = float("-inf")
    making: Future[None] | None = None


Wanted = tuple[object, Callable[[], object], float]
"""The key of a count, how it is made, and for how many seconds it stays fresh at least."""


class Counts:
    """Counts that read many rows: made in the background, and kept for the pages until they are made again."""

    def __init__(self, fresh_s: float = FRESH_S, patience_s: float = PATIENCE_S, most: int = MAX_KEPT) -> None:
        self.fresh_s, self.patience_s, self.most = fresh_s, patience_s, most
        self._lock = threading.Lock()
        self._kept: dict[object, Kept] = {}
        self._pool = ThreadPoolExecutor(MAX_COUNTING, thread_name_prefix="counts-of-pages")

    def get(self, key: object, count: Callable[[], object], *, fresh_s: float = 0.0) -> Any:
        """
        Return the newest count of *key*; ``None`` while the first is being made.  One that is dear stays fresh for *fresh_s*.

        Raises:
            Exception: what counting raised, where there is no earlier count.
        """
        return self.get_all((key, count, fresh_s))[0]

    def get_all(self, *wanted: Wanted) -> list[Any]:
        """
        Return the newest counts of several keys as `get` does; they are made at once, and waited for together.

        Raises:
            Exception: as `get`.
        """
        found = [self._begin(*each) for each in wanted]
        first = [one.making for one, old in found if old and one.value is None and one.making]
        again = [one.making for one, old in found if old and one.making]
        wait(first or again, self.patience_s if first else self.patience_s / 8)
        for one, _ in found:
            if one.making is not None and one.value is None and one.making.done() and not one.making.cancelled():
                one.making.result()
        return [one.value for one, _ in found]

    def _begin(self, key: object, count: Callable[[], object], fresh_s: float) -> tuple[Kept, bool]:
        """Return what is kept, and whether it is too old; then it is made again."""
        with self._lock:
            while len(self._kept) > self.most:
                self._kept.pop(next(iter(self._kept)))
            one = self._kept.setdefault(key, Kept())
            old = time.monotonic() - one.at > max(self.fresh_s, fresh_s)
            if old and (one.making is None or one.making.done()):
                one.making = self._pool.submit(copy_context().run, self._count, one, count)  # it is who asks that reads
            return one, old

    def close(self) -> None:
        """Wait for the counts that are being made; begin no other."""
        self._pool.shutdown(cancel_futures=True)

    def _count(self, one: Kept, count: Callable[[], object]) -> None:
        try:
            one.value = count()
        finally:
            one.at = time.monotonic()


def counts_of(request: Request) -> Counts:
    found: Counts = request.app.state.counts
    return found


ORDER_COOKIE = "holdfast_order"


def wanted_order(request: Request) -> UserOrder:
    """Return how lists of users are sorted: as the address says, or else as it was chosen last."""
    asked = request.query_params.get("sort") or request.cookies.get(ORDER_COOKIE, "")
    return next((order for order in USER_ORDERS if order == asked), "name")


def remember_order(request: Request, answer: Response) -> Response:
    """Keep the order that the address chose in this browser, for the next time."""
    if "sort" in request.query_params:
        answer.set_cookie(ORDER_COOKIE, wanted_order(request), max_age=365 * 86_400, path=PATH, samesite="lax")
    return answer


def sorted_users(
    request: Request, memory: Memory, sort: UserOrder, limit: int, skip: int, matching: str = "", org: str | None = None
) -> list[UserKey] | None:
    """Return a page of the users in another order than by name, counted in the background; ``None`` while that is made."""
    key = ("users", sort, limit, skip, matching, org)
    found: list[UserKey] | None = counts_of(request).get(
        key, lambda: memory.admin.users(sort=sort, limit=limit, skip=skip, matching=matching, org=org)
    )
    return found


@table.page("GET", PATH, OPERATOR)
def home_page(request: Request, caller: CallerDep, tasks: TasksDep) -> Response:
    """Show health, the figures of the week, plots of the last month, and the newest changes."""
    memory, today = caller.memory, datetime.now(UTC).date()
    users = memory.admin.users(limit=1)
    counts = counts_of(request)
    found, saving = (
        counts.get_all(
            ("home", lambda: _count(memory, today), 0.0), ("saving", lambda: _saving(memory, today), SAVING_S)
        )
        if users
        else (None, None)
    )
    return render(
        "home.html",
        request,
        title=translate("Home"),
        events="",
        any_users=bool(users),
        waits=bool(users) and found is None,
        attention=needs_attention(memory.admin.backlog(), tasks),
        counted=found,
        figures=week_figures(found.activity, today) if found else [],
        spent=week_spend(found.usage, today) if found else None,
        saving=saving,
        money=week_money(found.usage, memory.config.prices, today, saving) if found else None,
        plots=[messages_plot(found.activity, today, DAYS), facts_plot(found.activity, today, DAYS)] if found else [],
        newest=grouped_changes(found.newest)[:NEWEST] if found else [],
        days=DAYS,
    )


@dataclass(frozen=True, slots=True)
class HomeCounts:
    """The counts of the home page across all users."""

    at: datetime
    activity: list[Activity]
    usage: list[Usage]
    newest: list[Event]


def _count(memory: Memory, today: date) -> HomeCounts:
    since = today - timedelta(days=DAYS - 1)
    activity = memory.admin.activity(since=since)
    return HomeCounts(
        datetime.now(UTC),
        activity,
        memory.usage(by=("day", "layer", "model"), since=since),
        memory.admin.newest_events(limit=GROUPED),
    )


def _saving(memory: Memory, today: date) -> Measure:
    """Measure how many tokens the contexts of the week saved; it reads every message of some users."""
    since = today - timedelta(days=WEEK - 1)
    with acting(BACKGROUND):  # the page has the sums alone
        return memory.admin.metrics(since=since, most_users=SAVING_USERS).measure("token_saving")


@dataclass(frozen=True, slots=True)
class Attention:
    """Something that an operator should look at, and where."""

    kind: str
    text: str
    advice: str
    address: str


def needs_attention(backlog: Sequence[Backlog], tasks: Tasks) -> list[Attention]:
    """Return the jobs and tasks that failed, are late or are held up; empty where there are none."""

    found = []
    dead = sum(one.jobs for one in backlog if one.state == "dead")
    if dead:
        text = plural("{count} job failed permanently", "{count} jobs failed permanently", dead)
        advice = plural(
            "What it would have produced is missing until it is retried.",
            "What they would have produced is missing until they are retried.",
            dead,
        )
        found.append(Attention("bad", text, advice, "/dashboard/jobs?state=dead"))
    waiting = sum(one.jobs for one in backlog if one.state == "waiting")
    if waiting:
        text = plural("{count} job held up", "{count} jobs held up", waiting)
        advice = translate("Their model may not be asked now. The page says why.")
        found.append(Attention("warn", text, advice, "/dashboard/jobs?state=waiting"))
    late = sum(one.overdue for one in backlog)
    if late:
        text = plural("{count} job overdue", "{count} jobs overdue", late)
        advice = translate("Is a server or a worker with background threads running?")
        found.append(Attention("warn", text, advice, "/dashboard/jobs?state=overdue"))
    stopped = [task for task in tasks.newest(20) if task.state in ("failed", "interrupted")]
    if stopped:
        text = translate("{count} of the latest tasks did not finish", count=len(stopped))
        advice = translate("An import, a rebuild or a backfill.")
        found.append(Attention("warn", text, advice, "/dashboard/jobs#tasks"))
    return found


def week_figures(activity: Sequence[Activity], today: date) -> list[dict[str, Any]]:
    """Return each figure of the last seven days beside the seven before, and the page that lists what it counts."""
    rows = []
    for title, kinds, note in FIGURES:
        now, before = (
            sum(one.count for one in activity if one.kind in kinds and _in_week(one.day, today, weeks))
            for weeks in (0, 1)
        )
        rows.append(
            {"title": title, "now": now, "before": before, "note": note, "address": link(CHANGES, kind=kinds[0])}
        )
    return rows


def _in_week(day: date, today: date, weeks: int) -> bool:
    return weeks * WEEK <= (today - day).days < (weeks + 1) * WEEK


def week_spend(usage: Sequence[Usage], today: date) -> dict[str, Any]:
    """Return the calls, tokens and cost of models in the last seven days."""
    week = [one for one in usage if _in_week(date.fromisoformat(str(one.day)), today, 0)]
    tokens = sum(one.input_tokens + one.output_tokens for one in week)
    cost = None if any(one.unpriced for one in week) else sum(one.cost or 0 for one in week)
    cached, asked = sum(one.cached_tokens for one in week), sum(one.input_tokens for one in week)
    calls, failed = sum(one.calls for one in week), sum(one.failed for one in week)
    return {
        "tokens": tokens,
        "cost": cost,
        "calls": calls,
        "failed": failed,
        "cached": cached / asked if asked else None,
    }


def week_money(
    usage: Sequence[Usage], prices: Mapping[str, Price], today: date, saving: Measure | None
) -> dict[str, float | None]:
    """
    Return the dollars of the last seven days that contexts and the providers' caches saved; ``None`` where no price is configured.

    What contexts saved counts by the mean input price of the models that replied, so it is an estimate.
    """
    week = [one for one in usage if one.model in prices and _in_week(date.fromisoformat(str(one.day)), today, 0)]
    replies = [one for one in week if one.layer == "chat"]
    read = sum(one.input_tokens for one in replies)
    each = sum(prices[one.model].of(one.input_tokens, 0, 0) for one in replies) / read if read else None
    kept_back = saving.denominator - saving.numerator if saving else 0
    cached = [
        prices[one.model].of(one.cached_tokens, 0, 0) - prices[one.model].of(one.cached_tokens, 0, one.cached_tokens)
        for one in week
    ]
    return {"contexts": None if each is None else kept_back * each, "cache": sum(cached) if week else None}


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot over time, which is a table as well: a title, the names of its series, and a row for each day or hour (``step``)."""

    id: str
    title: str
    series: tuple[str, ...]
    rows: tuple[tuple[date, tuple[float | None, ...]], ...]
    unit: str = ""
    step: str = "day"

    @property
    def total(self) -> float:
        """The sum of all values."""
        return sum(value or 0 for _, values in self.rows for value in values)


def plot_of_days(
    id: str, title: str, series: Mapping[str, Callable[[date], float | None]], today: date, days: int, **options: Any
) -> Plot:
    """Build a plot of the last *days* days; each series is a function of the day."""
    every = [today - timedelta(days=back) for back in reversed(range(days))]
    rows = tuple((day, tuple(value(day) for value in series.values())) for day in every)
    return Plot(id, title, tuple(series), rows, **options)


def sum_of(activity: Sequence[Activity], *kinds: str, users: bool = False) -> Callable[[date], float]:
    """Return a function of the day: how many events of these kinds, or of how many users."""
    sums: dict[date, float] = {}
    for one in activity:
        if one.kind in kinds:
            sums[one.day] = sums.get(one.day, 0) + (one.users if users else one.count)
    return lambda day: sums.get(day, 0)


def messages_plot(activity: Sequence[Activity], today: date, days: int) -> Plot:
    """Return the plot of messages and users a day."""
    said = {"Messages": sum_of(activity, "message.added"), "Users": sum_of(activity, "message.added", users=True)}
    return plot_of_days("messages", mark("Messages and users a day"), said, today, days)


def facts_plot(activity: Sequence[Activity], today: date, days: int) -> Plot:
    """Return the plot of what happened to facts a day."""
    series = {title: sum_of(activity, kind) for title, kind in FACT_SERIES.items()}
    return plot_of_days("facts", mark("Facts a day"), series, today, days)


def change_row(event: Event) -> dict[str, Any]:
    """Return a change with links to its user and its conversation."""
    about = event.subject if event.subject not in ("", "self") else None
    place = {"user": event.user, **scope_query(event.org, event.bot)}
    talk = ""
    if event.conversation:
        where = {**place, **scope_query(event.org, event.bot, about), "conversation": event.conversation}
        talk = link("/dashboard/conversations/{user}/{conversation}", **where)
    return {
        "event": event,
        "at": from_ms(event.at_ms),
        "words": kind_words(event.kind),
        "user": link("/dashboard/users/{user}", **place),
        "conversation": talk,
        "talk": translate("entered by hand") if event.conversation == BY_HAND_CONVERSATION else event.conversation,
    }


def grouped_changes(events: Sequence[Event]) -> list[dict[str, Any]]:
    """Return a row for the equal changes of a conversation, at the time of its newest one: ``7 summaries made``."""
    groups: dict[tuple[str, ...], list[Event]] = {}
    for event in events:
        named = (event.kind, event.org, event.user, event.bot, event.subject, event.conversation)
        groups.setdefault(named, []).append(event)
    return [{**change_row(same[0]), "words": _change_words(same)} for same in groups.values()]


def _change_words(same: Sequence[Event]) -> str:
    return kind_words(same[0].kind, sum(_messages_of(event) for event in same))


def kind_words(kind: str, number: int = 1) -> str:
    """Say what so many changes of a kind are: ``fact learned``, ``7 facts learned``."""
    plain = kind.replace(".", " ")
    return plural_of(KIND_WORDS.get(kind, f"{plain} | {{count}} × {plain}"), number)


def _messages_of(event: Event) -> int:
    """Count the changes of an event: of messages it may name a range, ``7-8``."""
    first, _, last = event.ref.partition("-")
    span = event.kind == "message.added" and first.isdecimal() and last.isdecimal()
    return int(last) - int(first) + 1 if span else 1


@table.page("GET", CHANGES, OPERATOR)
def changes_page(request: Request, caller: CallerDep) -> Response:
    """List the newest changes of all users, or those of one kind."""
    kind = request.query_params.get("kind", "")
    memory, known = caller.memory, kind if kind in KIND_WORDS else None
    if file := wanted_file(request):
        rows = (
            asdict(event) | {"at": from_ms(event.at_ms)} for event in memory.admin.newest_events(known, limit=10_000)
        )
        heads = ("at", "kind", "org", "user", "bot", "subject", "conversation", "ref", "actor")
        return list_file(file, "changes", heads, rows)
    count = counts_of(request).get(("changes", known), lambda: memory.admin.newest_events(known, limit=LISTED))
    return render(
        "changes.html",
        request,
        title=translate("Changes"),
        events="",
        kind=known or "",
        kinds={name: kind_words(name) for name in KIND_WORDS},
        counting=count is None,
        waits=count is None,
        rows=[change_row(event) for event in count or ()],
        most=LISTED,
    )


@table.page("POST", DEMO, OPERATOR)
def load_demo(request: Request, caller: CallerDep) -> Response:
    """Store the conversations of ``holdfast demo`` in a memory that holds nothing yet."""
    memory = caller.memory
    if memory.admin.users(limit=1):
        raise Conflict(
            "this memory is not empty", hint="the demo is loaded into an empty one, so that it mixes with nothing"
        )
    folder = resources.files("holdfast") / "cli" / "demo"
    for told in tomllib.loads((folder / "demo.toml").read_text(encoding="utf-8"))["conversation"]:
        chat = memory.conversation(told["id"], user=told["user"], subject=told.get("subject"))
        chat.append([json.loads(line) for line in (folder / told["file"]).read_text(encoding="utf-8").splitlines()])
        chat.end()
    return see_other("/dashboard/conversations", said="demo-loaded")
