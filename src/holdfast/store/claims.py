"""
Which job is taken next, so that no user's import and no slow kind of work keeps the others waiting.

What waits is in *lanes*: a kind of work of an org.  Which lanes have due work is one walk through an index, a step a lane
however many jobs wait in it; it is remembered for a moment where there are many.  Jobs are taken from one lane at a time,
several in one statement, past those that another worker is about to take.  On a cluster, where a lane is on all nodes, one
job is taken at a time, as `Claims.one_of` does.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from ..reports import UserKey
from ..scope import Scope
from ..text import dataclass
from ..types import Job
from . import rows
from .changes import RUNNING, ChangeLog
from .port import Backend, Driver, Row
from .values import EventLimits

T = TypeVar("T")

LOOK_AHEAD = 32  # due jobs read of a lane's old end, and as many of its new one
LANES = 1_000  # read in one look
_FEW_LANES = 32  # are looked at before each claim
_KEPT_S = 0.2
_EXPIRED_S = 1.0  # how often expired leases are looked for while there is other work
_REMEMBERED = 10_000
_NONE: Mapping[str, int] = {}

Lane = tuple[str, str]
Change = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Lease:
    """The terms of a claim: the worker, the time it claims at, and for how long the jobs are its own."""

    now_ms: int
    worker: str
    lasts_ms: int

    @property
    def columns(self) -> dict[str, Any]:
        """Return the columns of a job that is taken."""
        return {"lease_until": self.now_ms + self.lasts_ms, "worker": self.worker}


class FairOrder:
    """
    Order due jobs and lanes by who was served least recently.

    Every second claim takes what is overdue longest, so none waits for ever.  The others go round robin: the org that was
    served least recently, its kind of work that was, and of the oldest and the newest due jobs of that those of the user
    who was.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tick = 0
        self._served: OrderedDict[tuple[str, ...], int] = OrderedDict()

    def next_is_round_robin(self) -> bool:
        """Whether the next claim goes round robin; every second one does."""
        with self._lock:
            self._tick += 1
            return self._tick % 2 == 0

    def sorted(self, due: Iterable[Row]) -> list[Row]:
        """Sort due jobs (org, user, … , due at, created at) by whose turn it is."""
        with self._lock:
            last = dict(self._served)
        return sorted(due, key=lambda row: (last.get((row[0],), 0), last.get((row[0], row[1]), 0), row[-2], row[-1]))

    def lanes(self, due: dict[Lane, int], rank: dict[str, int], *, round_robin: bool) -> list[Lane]:
        """Sort lanes, given with when their first job was due, by whose turn it is; of equals the kind named first."""
        if not round_robin:
            return sorted(due, key=lambda lane: (due[lane], rank.get(lane[1], 0)))
        with self._lock:
            last = self._served
            key = {lane: (last.get((lane[0],), 0), last.get((*lane, ""), 0), rank.get(lane[1], 0)) for lane in due}
        return sorted(due, key=lambda lane: (*key[lane], due[lane]))

    def users(self, org: str, due: Iterable[Row]) -> list[Row]:
        """Sort due jobs (user, bot, id, due at) of an org: one of each user first, those served least recently in front."""
        number: dict[Any, int] = {}
        turn = {}
        oldest = sorted(due, key=lambda row: (row[3], row[2]))
        with self._lock:
            last = {row[0]: self._served.get((org, row[0]), 0) for row in oldest}
        for row in oldest:
            turn[row] = number[row[0]] = number.get(row[0], -1) + 1
        return sorted(turn, key=lambda row: (turn[row], last[row[0]], row[3], row[2]))

    def note_served(self, jobs: Sequence[Job]) -> None:
        """Note that these jobs were claimed."""
        with self._lock:
            for key in {key for job in jobs for key in ((job.org,), (job.org, job.user), (job.org, job.kind, ""))}:
                self._served[key] = self._tick
                self._served.move_to_end(key)
            while len(self._served) > _REMEMBERED:
                self._served.popitem(last=False)


class DueLanes:
    """The lanes that had due work when they were last looked at, and when the first job of each was due."""

    def __init__(self) -> None:
        self._due: dict[Lane, int] = {}
        self._behind: Lane = ("", "")
        self._until = 0.0
        self._remembered = False

    def of(self, driver: Driver, now_ms: int) -> dict[Lane, int]:
        """Return the lanes with due work; few are looked at anew, of many what is known does for a moment."""
        began = time.monotonic()
        self._remembered = began < self._until
        if not self._remembered:
            found = driver.run("due_lanes", {"org": self._behind[0], "kind": self._behind[1], "limit": LANES})
            known = dict(self._due) if self._behind != ("", "") else {}
            self._due = known | {(row[0], row[1]): row[2] for row in found if row[2] <= now_ms}
            self._behind = (found[-1][0], found[-1][1]) if len(found) == LANES else ("", "")
            took = time.monotonic() - began
            self._until = began if len(found) <= _FEW_LANES else time.monotonic() + max(_KEPT_S, 10 * took)
        return dict(self._due)

    def note_taken(self, lane: Lane, first: int | None) -> None:
        """Note from when on the next job of a lane can be due; ``None`` when it has none left."""
        if first is None:
            self._due.pop(lane, None)
        elif lane in self._due:
            self._due[lane] = max(first, self._due[lane])

    def look_on(self) -> bool:
        """Look further next time; ``False`` when every lane was just looked at."""
        further = self._remembered or self._behind != ("", "")
        self._until = 0.0
        return further


class Claims:
    """Claims of one process on the jobs of a store; *change* runs a function in one transaction and publishes its changes."""

    def __init__(self, backend: Backend, change: Change, event_limits: EventLimits) -> None:
        self._backend = backend
        self._event_limits = event_limits
        self._change = change
        self._order = FairOrder()
        self._lanes = DueLanes()
        self._expired_at = 0.0

    def some(
        self,
        lease: Lease,
        kinds: Sequence[str],
        limit: int,
        limits: Mapping[str, int] = _NONE,
        last: Sequence[str] = (),
    ) -> list[Job]:
        """
        Claim up to *limit* due jobs of one lane, of one of the *kinds*, or a job whose worker was lost.

        Of a kind that *limits* names it is that many.
        One of the kinds *last* is taken once its user has no due work of a kind named before it.
        """
        if self._backend.spread:
            return self.one_of(lease, partial(_due_anywhere, now_ms=lease.now_ms, kinds=kinds), fair=kinds)
        expired = partial(_expired, now_ms=lease.now_ms, kinds=kinds)
        if time.monotonic() >= self._expired_at:
            self._expired_at = time.monotonic() + _EXPIRED_S
            if found := self.one_of(lease, expired):
                self._expired_at = 0.0  # a lost worker may have held more
                return found
        round_robin = self._order.next_is_round_robin()

        def limit_of(kind: str) -> int:
            return limits.get(kind, limit)

        take = partial(self._take, lease=lease, kinds=kinds, limit=limit_of, last=last, round_robin=round_robin)
        jobs: list[Job] = self._change(take, _of_nobody)
        while not jobs and self._lanes.look_on():
            jobs = self._change(take, _of_nobody)
        if jobs:
            self._order.note_served(jobs)
        return jobs or self.one_of(lease, expired)

    def _take(
        self,
        driver: Driver,
        changes: ChangeLog,
        *,
        lease: Lease,
        kinds: Sequence[str],
        limit: Callable[[str], int],
        last: Sequence[str],
        round_robin: bool,
    ) -> list[Job]:
        rank = {kind: place for place, kind in enumerate(kinds)}
        due = self._lanes.of(driver, lease.now_ms)
        if rank:
            due = {lane: first for lane, first in due.items() if lane[1] in rank}
        for lane in self._order.lanes(due, rank, round_robin=round_robin):
            before = kinds[: rank[lane[1]]] if lane[1] in last else ()
            found = self._take_from(driver, lane, lease, limit(lane[1]), before, by_user=round_robin)
            if found:
                changes.store_running(driver, found, self._event_limits)
                return found
            self._lanes.note_taken(lane, None)
        return []

    def _take_from(
        self, driver: Driver, lane: Lane, lease: Lease, limit: int, before: Sequence[str], *, by_user: bool
    ) -> list[Job]:
        where = {"org": lane[0], "kind": lane[1], "now_ms": lease.now_ms}
        taken = {"before": rows.compact_json(list(before)), "limit": limit} | lease.columns
        found: list[Row] = []
        if by_user:
            look = where | {"limit": LOOK_AHEAD}
            due = {row[:3]: row for name in ("oldest_due", "newest_due") for row in driver.run(name, look)}
            wanted = rows.compact_json([list(row[:3]) for row in self._order.users(lane[0], due.values())])
            if due:
                found = driver.run("take_these", where | taken | {"wanted": wanted})
        if not found:
            found = driver.run("take_due", where | taken)
            if found:
                self._lanes.note_taken(lane, max(rows.job(row).run_at_ms for row in found))
        return sorted(map(rows.job, found), key=lambda job: (job.run_at_ms, job.id))

    def one_of(
        self, lease: Lease, find: Callable[[Driver], list[Row]], *, fair: Sequence[str] | None = None
    ) -> list[Job]:
        """
        Take the first job that *find* finds and no other worker has taken meanwhile.

        With *fair*, the kinds to look at, every second one is found round robin among the oldest and the newest.
        """
        found = self._backend.read(find)
        if not found:
            return []  # nothing is due: no transaction, no disk
        round_robin = fair is not None and len(found) > 1 and self._order.next_is_round_robin()

        def candidates(driver: Driver) -> list[Row]:
            due = find(driver)
            if round_robin:
                newest = driver.run("due_newest", _look(lease.now_ms, fair or ()))
                due = self._order.sorted({row[:4]: row for row in (*due, *newest)}.values())
            return due

        attempts: list[Sequence[Row] | None] = [None]
        if self._backend.spread:  # a transaction for each candidate, as two of them may be on two nodes
            attempts = [[row] for row in (self._backend.read(candidates) if round_robin else found)]
        for some in attempts:
            take = partial(_take_first, lease=lease, find=candidates, some=some)
            job: Job | None = self._change(take, lambda job: (job.org, job.user, job.bot) if job else None)
            if job is not None:
                self._order.note_served([job])
                return [job]
        return []

    def of_user(self, lease: Lease, user: Scope, kinds: Sequence[str], ahead_ms: int) -> list[Job]:
        """Take one due job of a user, or of a conversation when the scope names it; see `Store.claim`."""
        key = {"org": user.org, "user_id": user.user, "bot": user.bot}
        place = {"subject": user.subject, "conversation": user.conversation}
        args = _look(lease.now_ms, kinds) | key | place | {"soon_ms": lease.now_ms + ahead_ms}
        return self.one_of(lease, lambda driver: driver.run("due_of_user", args))


def _take_first(
    driver: Driver,
    changes: ChangeLog,
    *,
    lease: Lease,
    find: Callable[[Driver], list[Row]],
    some: Sequence[Row] | None,
) -> Job | None:
    for org, user_id, bot, job_id, state, fence, attempt, *_ in find(driver) if some is None else some:
        was = {"org": org, "user_id": user_id, "bot": bot, "id": job_id, "was_state": state, "was_fence": fence}
        taken = driver.run("take_job", {**was, **lease.columns, "fence": fence + 1, "attempt": attempt + 1})
        if taken:
            job = rows.job(taken[0])
            changes.note(RUNNING, (job.subject, job.conversation), job.id)
            if state == "running":
                changes.count("takeover", job.kind)
            return job
    return None


def _of_nobody(_: object) -> UserKey | None:
    return None


def _look(now_ms: int, kinds: Sequence[str]) -> dict[str, Any]:
    return {"now_ms": now_ms, "kinds": rows.compact_json(list(kinds)), "limit": LOOK_AHEAD}


def _expired(driver: Driver, *, now_ms: int, kinds: Sequence[str]) -> list[Row]:
    return driver.run("due_expired", _look(now_ms, kinds))


def _due_anywhere(driver: Driver, *, now_ms: int, kinds: Sequence[str]) -> list[Row]:
    """Return due jobs, the longest overdue first; expired leases count from the end of the lease."""
    found = driver.run("due_ready", _look(now_ms, kinds)) + _expired(driver, now_ms=now_ms, kinds=kinds)
    return sorted(found, key=lambda row: (row[-2], row[-1], row[3]))
