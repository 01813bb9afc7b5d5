"""The home page: health, what needs attention, counts a day, and the newest changes; and the demo for an empty store."""

from __future__ import annotations

import json
import re
import threading
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import asdict
from datetime import UTC, date, datetime, timedelta
from importlib import resources
from typing import Any

from fastapi import Request
from starlette.responses import Response

from ...clock import from_ms
from ...errors import Conflict
from ...memory import Memory
from ...reports import Activity, Backlog, Event, Usage
from ...text import dataclass
from ...types import BY_HAND_CONVERSATION
from ..jobs import Tasks, TasksDep
from ..routing import OPERATOR, RouteTable
from ..schemas import CallerDep
from .layout import link, list_file, render, scope_query, see_other, wanted_file

table = RouteTable()
PATH = "/dashboard"
CHANGES = PATH + "/changes"
DEMO = PATH + "/demo"
DAYS = 30
WEEK = 7
FRESH_S = 20.0  # for so long counts are shown before they are counted again
PATIENCE_S = 0.08  # that a page waits for counts; then it shows that it counts
MAX_KEPT = 64
MAX_COUNTING = 2  # counts that are made at once
NEWEST, LISTED = 12, 200
GROUPED = 200  # newest events that the rows of the home page are made of

# The figures of a week: title, the kinds of events, and how a page says what they are.
FIGURES = (
    ("Messages", ("message.added",), "stored"),
    ("Facts learned", ("fact.added",), "new"),
    ("Facts replaced", ("fact.replaced",), "by a newer value"),
    ("Facts corrected", ("fact.corrected",), "by hand"),
    ("Facts forgotten", ("fact.forgotten",), "erased"),
    ("Summaries", ("summary.made",), "made"),
    ("Failed jobs", ("job.failed",), "attempts"),
)
KIND_WORDS = {
    "message.added": "message stored",
    "message.edited": "message edited",
    "message.rated": "reply rated",
    "message.deleted": "message forgotten",
    "fact.added": "fact learned",
    "fact.confirmed": "fact said again",
    "fact.changed": "fact changed",
    "fact.replaced": "fact replaced",
    "fact.corrected": "fact corrected",
    "fact.ended": "fact ended",
    "fact.forgotten": "fact forgotten",
    "summary.made": "summary made",
    "summary.stale": "summary out of date",
    "summary.removed": "summary removed",
    "episode.added": "episode added",
    "episode.removed": "episode removed",
    "consent.changed": "privacy choice changed",
    "prompt.changed": "prompt changed",
    "subject.changed": "subject changed",
    "job.failed": "job failed",
    "job.done": "job done",
    "erased": "erased",
}


@dataclass(slots=True)
class Kept:
    """A count and when it was made; ``value`` is ``None`` until the first one is there."""

    value: Any = None
    at: float = float("-inf")
    making: Future[None] | None = None


class Counts:
    """Counts that read many rows: made in the background, and kept for the pages until they are made again."""

    def __init__(self, fresh_s: float = FRESH_S, patience_s: float = PATIENCE_S) -> None:
        self.fresh_s, self.patience_s = fresh_s, patience_s
        self._lock = threading.Lock()
        self._kept: dict[object, Kept] = {}
        self._pool = ThreadPoolExecutor(MAX_COUNTING, thread_name_prefix="counts-of-pages")

    def get(self, key: object, count: Callable[[], object]) -> Any:
        """
        Return the newest count of *key*; ``None`` while the first is being made.

        Raises:
            Exception: what counting raised, where there is no earlier count.
        """
        with self._lock:
            while len(self._kept) > MAX_KEPT:
                self._kept.pop(next(iter(self._kept)))
            one = self._kept.setdefault(key, Kept())
            old = time.monotonic() - one.at > self.fresh_s
            if old and (one.making is None or one.making.done()):
                one.making = self._pool.submit(self._count, one, count)
            making = one.making
        if making is not None and old:
            wait([making], self.patience_s)
        if making is not None and one.value is None and making.done() and not making.cancelled():
            making.result()
        return one.value

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


@table.page("GET", PATH, OPERATOR)
def home_page(request: Request, caller: CallerDep, tasks: TasksDep) -> Response:
    """Show health, the figures of the week, plots of the last month, and the newest changes."""
    memory, today = caller.memory, datetime.now(UTC).date()
    users = memory.admin.users(limit=1)
    found = counts_of(request).get("home", lambda: _count(memory, today)) if users else None
    return render(
        "home.html",
        request,
        title="Home",
        events="",
        any_users=bool(users),
        attention=needs_attention(memory.admin.backlog(), tasks),
        counted=found,
        figures=week_figures(found.activity, today) if found else [],
        spent=week_spend(found.usage, today) if found else None,
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
        datetime.now(UTC), activity, memory.usage(by=("day",), since=since), memory.admin.newest_events(limit=GROUPED)
    )


@dataclass(frozen=True, slots=True)
class Attention:
    """Something that an operator should look at, and where."""

    kind: str
    text: str
    advice: str
    address: str


def needs_attention(backlog: Sequence[Backlog], tasks: Tasks) -> list[Attention]:
    """Return the jobs and tasks that failed, are late or are held up; empty where there are none."""

    def jobs(number: int, text: str) -> str:
        return f"{number:,} {'job' if number == 1 else 'jobs'} {text}"

    found = []
    dead = sum(one.jobs for one in backlog if one.state == "dead")
    if dead:
        they = ("it", "it is") if dead == 1 else ("they", "they are")
        advice = f"What {they[0]} would have produced is missing until {they[1]} retried."
        found.append(Attention("bad", jobs(dead, "failed permanently"), advice, "/dashboard/jobs?state=dead"))
    waiting = sum(one.jobs for one in backlog if one.state == "waiting")
    if waiting:
        advice = "Their model may not be asked now. The page says why."
        found.append(Attention("warn", jobs(waiting, "held up"), advice, "/dashboard/jobs?state=waiting"))
    late = sum(one.overdue for one in backlog)
    if late:
        advice = "Is a server or a worker with background threads running?"
        found.append(Attention("warn", jobs(late, "overdue"), advice, "/dashboard/jobs?state=overdue"))
    stopped = [task for task in tasks.newest(20) if task.state in ("failed", "interrupted")]
    if stopped:
        text = f"{len(stopped)} of the latest tasks did not finish"
        found.append(Attention("warn", text, "An import, a rebuild or a backfill.", "/dashboard/jobs#tasks"))
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


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot over days, which is a table as well: a title, the names of its series, and a row a day."""

    id: str
    title: str
    series: tuple[str, ...]
    rows: tuple[tuple[date, tuple[float | None, ...]], ...]
    unit: str = ""
    bars: bool = False

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
    return plot_of_days("messages", "Messages and users a day", said, today, days)


def facts_plot(activity: Sequence[Activity], today: date, days: int) -> Plot:
    """Return the plot of what happened to facts a day."""
    kinds = {title.partition(" ")[2].capitalize(): kinds for title, kinds, _ in FIGURES if title.startswith("Facts")}
    series = {title: sum_of(activity, *names) for title, names in kinds.items()}
    return plot_of_days("facts", "Facts a day", series, today, days)


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
        "words": KIND_WORDS.get(event.kind, event.kind.replace(".", " ")),
        "user": link("/dashboard/users/{user}", **place),
        "conversation": talk,
        "talk": "entered by hand" if event.conversation == BY_HAND_CONVERSATION else event.conversation,
    }


def grouped_changes(events: Sequence[Event]) -> list[dict[str, Any]]:
    """Return a row for the equal changes of a conversation, at the time of its newest one: ``7 summaries made``."""
    groups: dict[tuple[str, ...], list[Event]] = {}
    for event in events:
        named = (event.kind, event.org, event.user, event.bot, event.subject, event.conversation)
        groups.setdefault(named, []).append(event)
    return [{**change_row(same[0]), "words": _change_words(same)} for same in groups.values()]


def _change_words(same: Sequence[Event]) -> str:
    words = KIND_WORDS.get(same[0].kind, same[0].kind.replace(".", " "))
    number = sum(_messages_of(event) for event in same)
    if number == 1:
        return words
    many = re.sub(r"^(privacy choice|\w+?)(y?)\b", lambda at: at[1] + ("ies" if at[2] else "s"), words)
    return f"{number:,} {many}" if " " in words else f"{words}, {number:,} times"


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
        title="Changes",
        events="",
        kind=known or "",
        kinds=KIND_WORDS,
        counting=count is None,
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
