"""
One database of memory: a user's memory behind a `Scope`, and the tables of the service across users.

``read`` and ``write`` take a `Scope` first and hand the caller's function a view of that one user: a `ReadView` of one
consistent snapshot, or a `WriteView` inside one transaction that is on disk when ``write`` returns.  A view cannot name
another user.  The other calls look across users, for workers and operators, and return ids and figures, never text.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, TypeVar

from ..clock import Clock, to_ms, utc_now
from ..reports import Backlog, Event, Finding, News, Operation, Report, UserKey, UserOrder
from ..scope import Scope, actor
from ..types import BY_HAND_CONVERSATION, Job
from . import rows
from .changes import ChangeLog
from .claims import Claims, Lease
from .port import Backend, Driver, Row
from .queries import schema_version
from .readview import EVERYTHING, ReadView
from .values import ConsentRow, ErasureRow, EventLimits, KeyRow, ProviderKeyRow, RateRow, Scrubbed, UsageRow
from .writeview import WriteView

T = TypeVar("T")

LATE_MS = 5 * 60_000
_EVENT_LIMITS = EventLimits()
WAITING = "waiting:"
"""What the reason of a job begins with while its model may not be asked."""

_OPERATION_EVENTS = {"ready": "job.queued", "running": "job.progress", "done": "job.done", "failed": "job.failed",
                 "cancelled": "job.cancelled", "interrupted": "job.failed"}  # fmt: skip


class _LimitPassed(Exception):
    """Ends the transaction, so that nothing of it is counted."""


class Store:
    """
    A database that holds memory, over any `Backend`.  Safe to call from any thread.

    ``clock`` dates what happens, ``event_limits`` say how many events are kept.  ``on_changes`` is called after each
    transaction of this process with how many changes it made, by (what, of which kind).
    """

    def __init__(self, backend: Backend, *, clock: Clock = utc_now, event_limits: EventLimits = _EVENT_LIMITS) -> None:
        self.backend = backend
        self.clock = clock
        self.event_limits = event_limits
        self.on_changes: Callable[[Counter[tuple[str, str]]], None] | None = None
        self._claims = Claims(backend, self._change, event_limits)

    # One user's memory

    def read(self, scope: Scope, work: Callable[[ReadView], T]) -> T:
        """Run *work* over one snapshot of the scope's user."""
        return self.backend.read(lambda driver: work(ReadView(driver, scope)), scope)

    def write(self, scope: Scope, work: Callable[[WriteView], T]) -> T:
        """
        Run *work* in one transaction; it is durable when this returns.

        *work* may run on another thread, together with others in one commit, and again from the start after a conflict:
        it must touch nothing but the view.  If it raises, what it wrote is undone and the error reaches the caller.
        """
        return self._change(
            lambda driver, changes: work(WriteView(driver, scope, changes)), lambda _: scope.user_key, scope
        )

    def _change(
        self,
        work: Callable[[Driver, ChangeLog], T],
        user_of: Callable[[T], UserKey | None],
        scope: Scope | None = None,
    ) -> T:
        """Run *work* in one transaction and store its changes as events of the user that *user_of* its answer names."""
        who, now_ms = actor(), to_ms(self.clock())
        done: list[ChangeLog] = []

        def work_and_events(driver: Driver) -> T:
            changes = ChangeLog(who, now_ms)
            answer = work(driver, changes)
            user = user_of(answer)
            if user is not None:
                changes.flush(driver, user, self.event_limits)
            done[:] = [changes]
            return answer

        answer = self.backend.write(work_and_events, scope)
        if self.on_changes is not None and done[0].counted:
            self.on_changes(done[0].counted)
        return answer

    def _rows(self, query: str, **args: Any) -> list[Row]:
        """Run one query across users."""
        return self.backend.read(lambda driver: driver.run(query, args))

    # Jobs of all users

    def claim(
        self,
        *,
        now_ms: int,
        worker: str,
        lease_ms: int,
        kinds: Sequence[str] = (),
        user: Scope | None = None,
        ahead_ms: int = 0,
    ) -> Job | None:
        """
        Take one due job: ready and ``run_at <= now``, or running with an expired lease.

        The returned job carries its new fence; *attempt* has risen by one.  *user* limits the
        search to one user's jobs (and to one conversation's, when the scope names it); of those,
        ready ones that fall due within *ahead_ms* count as well, while leases end when they end.
        Of *kinds*, the first are taken first where all else is equal, and of one user always.
        """
        lease = Lease(now_ms, worker, lease_ms)
        if user is not None:
            found = self._claims.of_user(lease, user, kinds, ahead_ms)
        else:
            found = self._claims.some(lease, kinds, 1)
        return found[0] if found else None

    def claim_some(
        self,
        *,
        now_ms: int,
        worker: str,
        lease_ms: int,
        limit: int,
        limits: Mapping[str, int] | None = None,
        kinds: Sequence[str] = (),
        last: Sequence[str] = (),
    ) -> list[Job]:
        """
        Claim up to *limit* due jobs of one org and kind, as `claim` would claim them singly, at the price of one.

        Of a kind that *limits* names it is that many.
        One of the kinds *last* is taken once its user has no due work of a kind named before it.
        """
        return self._claims.some(Lease(now_ms, worker, lease_ms), kinds, limit, limits or {}, last)

    def fail(self, job: Job, *, reason: str, run_at_ms: int, dead: bool) -> bool:
        """Put a claimed job back for *run_at_ms*, or aside as dead; ``False`` when the fence was lost."""
        failed = dead or (bool(reason) and not reason.startswith(WAITING))
        changed = replace(job, state="dead" if dead else "ready", run_at_ms=run_at_ms, reason=reason)
        return self._put_back(changed, "job.failed" if failed else "job.queued")

    def give_back(self, job: Job) -> bool:
        """Make a claimed job that did no work ready as it was before the claim; ``False`` when the fence was lost."""
        return self._put_back(replace(job, state="ready", attempt=job.attempt - 1), "job.queued")

    def _put_back(self, job: Job, event: str) -> bool:
        args = {
            "org": job.org,
            "user_id": job.user,
            "bot": job.bot,
            "id": job.id,
            "fence": job.fence,
            "state": job.state,
            "attempt": job.attempt,
            "run_at": job.run_at_ms,
            "reason": job.reason,
        }

        def put_back(driver: Driver, changes: ChangeLog) -> bool:
            done = bool(driver.run("put_back_job", args))
            if done:
                changes.note(event, (job.subject, job.conversation), job.id)
            return done

        return self._change(put_back, lambda _: (job.org, job.user, job.bot))

    def jobs(self, *, state: str | None = None, limit: int | None = None, after: str = "") -> list[Job]:
        """
        Return jobs of all users, oldest first.

        Args:
            state: ``ready``, ``waiting``, ``running``, ``dead`` or ``cancelled``.  A job waits while its model may not
                be asked; a ready one does not.
            limit: at most so many; ``None`` for all.
            after: continue behind the job of this id, the last one of the page before.
        """
        args = {"state": state, "limit": EVERYTHING if limit is None else max(0, limit), "after": after}
        return [rows.job(row) for row in self._rows("jobs", now_ms=to_ms(self.clock()), **args)]

    def job(self, job_id: str) -> Job | None:
        """Return the job of that id while it is not finished."""
        found = self._rows("job_by_id", id=job_id)
        return rows.job(found[0]) if found else None

    def backlog(self, now_ms: int) -> tuple[Backlog, ...]:
        """Count the jobs that are not finished, by kind and state."""
        found = self._rows("backlog", now_ms=now_ms, late_ms=now_ms - LATE_MS)
        return tuple(
            Backlog(kind, state, int(jobs), int(due), int(overdue), None if since is None else now_ms - int(since))
            for kind, state, jobs, due, overdue, since in found
        )

    def retry(self, job_id: str, now_ms: int) -> bool:
        """Make a dead or cancelled job ready, its attempts reset; ``False`` when there is none."""
        return self._update_job("restart_job", "job.queued", job_id, {"run_at": now_ms})

    def cancel(self, job_id: str) -> bool:
        """Stop a job from running (again); ``False`` when there is none that waits."""
        return self._update_job("cancel_job", "job.cancelled", job_id, {})

    def run_now(self, job_id: str, now_ms: int) -> bool:
        """Make a job that is ready due at once; ``False`` when there is none."""
        return self._update_job("release_job", "job.queued", job_id, {"run_at": now_ms})

    def _update_job(self, query: str, event: str, job_id: str, args: Mapping[str, Any]) -> bool:
        def update(driver: Driver, changes: ChangeLog) -> UserKey | None:
            for org, user, bot in driver.run("job_owner", {"id": job_id}):
                if driver.run(query, {"org": org, "user_id": user, "bot": bot, "id": job_id, **args}):
                    changes.note(event, ("", ""), job_id)
                    return org, user, bot
            return None

        return self._change(update, lambda user_key: user_key) is not None

    def release_waiting(self, now_ms: int, *, limit: int = 10_000) -> int:
        """Make up to *limit* waiting jobs due at once; return how many."""
        look = {"now_ms": now_ms, "limit": limit}
        if not self._rows("waiting_jobs", **look):
            return 0

        def release(driver: Driver) -> int:
            found = driver.run("waiting_jobs", look)
            for org, user, bot, job_id in found:
                key = {"org": org, "user_id": user, "bot": bot, "id": job_id}
                driver.run("release_job", key | {"run_at": now_ms})
            return len(found)

        return self.backend.write(release)

    def next_due_ms(self) -> int | None:
        """Return when the earliest job is due or the earliest lease ends; ``None`` when there is no job."""

        (times,) = self._rows("next_due")
        return min((at for at in times if at is not None), default=None)

    # Long-running operations of callers

    def add_operation(self, operation: Operation, *, ended_before_ms: int) -> Operation:
        """
        Insert an operation, or return the one with the same ``once``, unless that was interrupted.

        Operations of its org that ended before *ended_before_ms* are deleted.
        """

        def add(driver: Driver, changes: ChangeLog) -> Operation:
            if operation.once:
                found = [
                    _operation(row)
                    for row in driver.run("operation_by_key", _user_columns(operation) | {"once": operation.once})
                ]
                if found and found[0].state != "interrupted":
                    return found[0]
            driver.run("remove_old_operations", {"org": operation.org, "before": ended_before_ms})
            driver.run("add_operation", _operation_columns(operation))
            _note_operation(changes, operation)
            return operation

        return self._change(add, _operation_user)

    def save_operation(self, operation: Operation) -> bool | None:
        """Store the state of an operation; return whether it was asked to stop, ``None`` when its row is gone."""

        def save(driver: Driver, changes: ChangeLog) -> bool | None:
            found = driver.run("save_operation", _operation_columns(operation))
            if not found:
                return None
            _note_operation(changes, operation)
            return bool(found[0][0])

        return self._change(save, lambda _: _operation_user(operation))

    def operation(self, operation_id: str) -> Operation | None:
        """Return the operation of that id."""
        found = self._rows("operation", id=operation_id)
        return _operation(found[0]) if found else None

    def operations(self, *, limit: int, of: UserKey | None = None) -> list[Operation]:
        """Return the newest operations first, of one user or of all."""
        name = "operations_newest" if of is None else "operations_of"
        key = {} if of is None else dict(zip(("org", "user_id", "bot"), of, strict=True))
        return [_operation(row) for row in self._rows(name, limit=max(0, limit), **key)]

    def stop_operation(self, operation_id: str) -> bool:
        """Ask an operation to end before its next part; ``False`` when it is over or there is none."""
        operation = self.operation(operation_id)
        if operation is None:
            return False
        args = _user_columns(operation) | {"id": operation_id}
        return self._change(lambda driver, _: bool(driver.run("stop_operation", args)), lambda _: None)

    # Users, events, costs

    def users(
        self,
        *,
        limit: int = 1000,
        after: UserKey | None = None,
        matching: str = "",
        sort: UserOrder = "name",
        skip: int = 0,
        org: str | None = None,
    ) -> list[UserKey]:
        """Return ``(org, user, bot)`` of users with a memory; see `Admin.users`."""
        args: dict[str, Any] = {"limit": max(0, limit)}
        words = {"lowered": matching.lower(), "exact": matching}
        if sort != "name":
            args |= {"sort": sort, "skip": skip, "org": org, "by_hand": BY_HAND_CONVERSATION}
            return [(row[0], row[1], row[2]) for row in self._rows("users_sorted", **args, **words)]
        if org is not None:
            after = max(after or ("", "", ""), (org, "", ""))
        if after is not None or matching:
            args |= dict(zip(("org", "user_id", "bot"), after or ("", "", ""), strict=True))
        if matching:
            args |= words
        found = self._rows("users_matching" if matching else "users" if after is None else "users_after", **args)
        return [(row[0], row[1], row[2]) for row in found if org in (None, row[0])]

    def containing(
        self, words: Sequence[str], after: UserKey, last: UserKey, *, limit: int
    ) -> tuple[list[tuple[UserKey, str]], list[tuple[UserKey, str, str]], UserKey | None]:
        """
        Return the facts whose texts, and the conversations whose names hold the words, of the users from behind *after* to *last*.

        By owner; of a fact its owner and id, of a conversation its owner, subject and name.  Where there are more, up to whom
        these are all; of one user with too many the first.
        """
        names = ("org", "user_id", "bot", "last_org", "last_user", "last_bot")
        span = dict(zip(names, (*after, *last), strict=True)) | {"limit": limit + 1}
        texts = {"each": rows.compact_json([[word.lower(), word] for word in words])}
        name = " ".join(words)

        def look(driver: Driver) -> tuple[list[Row], list[Row]]:
            talks = driver.run("conversations_containing", span | {"lowered": name.lower(), "exact": name})
            return driver.run("facts_containing", span | texts), talks

        facts, talks = self.backend.read(look)
        ends = [
            end
            for end in (_last_whole([(row[0], row[1], row[2]) for row in found], limit) for found in (facts, talks))
            if end
        ]
        end = min(ends, default=last)
        return (
            [((org, user, bot), fact) for org, user, bot, fact in facts if (org, user, bot) <= end][:limit],
            [((org, user, bot), sub, talk) for org, user, bot, sub, talk in talks if (org, user, bot) <= end][:limit],
            end if ends else None,
        )

    def users_with_faded(self, bounds: Mapping[str, int], *, limit: int = 1000) -> list[UserKey]:
        """
        Return users who hold a sentence or an event that has faded, and have no upkeep job: ``(org, user, bot)``.

        *bounds* are those of `holdfast.reconcile.archive.fading_bounds`.
        """
        found = self._rows("users_with_faded", **bounds, limit=max(0, limit))
        return [(row[0], row[1], row[2]) for row in found]

    def users_to_embed(self, embedder: str, *, limit: int = 100) -> list[UserKey]:
        """Return ``(org, user, bot)`` of users last embedded by another embedder, without an ``embed`` job of any state."""
        found = self._rows("users_to_embed", embedder=embedder, limit=max(0, limit))
        return [(row[0], row[1], row[2]) for row in found]

    def consents(self) -> list[tuple[Scope, ConsentRow]]:
        """Return the choices of all users about memory, by user."""
        found = self._rows("all_consent")
        return [(Scope(org=row[0], user=row[1], bot=row[2]), ConsentRow(*row[3:])) for row in found]

    def changes(self) -> int:
        """
        Return another number whenever any process has committed since the last call.

        It may change without cause; the caller then looks in vain.
        """
        return self.backend.changes()

    def news(self, heads: Mapping[UserKey, int], *, limit: int) -> dict[UserKey, News]:
        """Return the events after the given number for each user whose newest event is another one."""

        def look(driver: Driver) -> dict[UserKey, News]:
            newest = {(org, user, bot): number for org, user, bot, number in driver.many("newest_event", list(heads))}
            return {
                (org, user, bot): ReadView(driver, Scope(org, bot, user)).news(after, limit=limit)
                for (org, user, bot), after in heads.items()
                if newest.get((org, user, bot), 0) != after
            }

        return self.backend.read(look)

    def events_of_org(self, org: str, before: int | None, *, limit: int) -> Sequence[Event]:
        """Return the events of an org as a whole, newest first: its keys, and that a user was erased."""
        return self.read(Scope(org, "", ""), lambda view: list(view.events_before(before, limit=limit)))

    def activity(
        self,
        since_ms: int,
        until_ms: int,
        *,
        org: str | None = None,
        user: str | None = None,
        bot: str | None = None,
    ) -> list[tuple[str, str, int, str, int, int]]:
        """Count events by org, bot, day since 1970 and kind: ``(org, bot, day, kind, how many, of how many users)``."""
        args = {"since_ms": since_ms, "until_ms": until_ms, "by_hand": BY_HAND_CONVERSATION}
        found = self._rows("activity", **args, org=org, user_id=user, bot=bot)
        return [(row[0], row[1], int(row[2]), row[3], int(row[4]), int(row[5])) for row in found]

    def newest_events(self, kind: str | None, since_ms: int, *, limit: int) -> list[Event]:
        """Return the newest events of all users, of one kind or of all but those of jobs."""
        args = {"kind": kind, "since_ms": since_ms, "by_hand": BY_HAND_CONVERSATION, "limit": max(0, limit)}
        return [Event(*row) for row in self._rows("newest_events", **args)]

    def usage(
        self,
        by: Collection[str],
        *,
        since: str = "",
        until: str = "9999",
        org: str | None = None,
        user: str | None = None,
        bot: str | None = None,
    ) -> list[tuple[UserKey, UsageRow]]:
        """
        Return ``((org, user, bot), counters)``, summed over what *by* does not name; that is ``""`` then.

        *by* names any of org, user, bot, day, layer, model.
        """
        flags = {f"by_{name}": int(name in by) for name in ("org", "user", "bot", "day", "layer", "model")}
        found = self._rows("usage_across", since=since, until=until, org=org, user_id=user, bot=bot, **flags)
        return [((row[0], row[1], row[2]), UsageRow(*row[3:6], *map(int, row[6:]))) for row in found]

    def rate(self, pace_id: str) -> RateRow:
        """Return how often a provider's key is used; version 0 when it is unused."""
        found = self._rows("rate", id=pace_id)
        return RateRow(*found[0]) if found else RateRow(pace_id)

    def save_rate(self, row: RateRow, *, idle_before: int) -> bool:
        """
        Replace the row whose version is one less; ``False`` when it has changed since.

        The first row of a key removes those that were not used after *idle_before* (microseconds).
        """

        def save(driver: Driver) -> bool:
            if row.version > 1:
                return bool(driver.run("move_rate", {**asdict(row), "was": row.version - 1}))
            driver.run("remove_idle_rates", {"before": idle_before})
            return bool(driver.run("add_rate", asdict(row)))

        return self.backend.write(save)

    def call_times(self, call: str, since_hour: int) -> list[tuple[int, int, int]]:
        """Return how many calls took how long since an hour: ``(hour, step of time, calls)``; see `CallTimes`."""
        return [(int(row[0]), int(row[1]), int(row[2])) for row in self._rows("call_times", call=call, hour=since_hour)]

    def add_call_times(self, taken: Mapping[tuple[str, int, int], int], *, before_hour: int) -> None:
        """Add calls by (call, hour, step of time), and remove those of these calls before an hour."""

        def add(driver: Driver) -> None:
            for call in sorted({call for call, _, _ in taken}):
                driver.run("remove_call_times", {"call": call, "before": before_hour})
            for (call, hour, step), calls in sorted(
                taken.items()
            ):  # in one order, so that no two processes wait for each other
                driver.run("add_call_time", {"call": call, "hour": hour, "step": step, "calls": calls})

        self.backend.write(add)

    # Keys of callers and of providers

    def key(self, key_id: str) -> KeyRow | None:
        """Return the key of that id, whatever its state."""
        found = self._rows("key", id=key_id)
        return KeyRow(*found[0]) if found else None

    def keys(self, org: str | None = None) -> list[KeyRow]:
        """Return all keys of an org, or of all, oldest first."""
        return [KeyRow(*row) for row in self._rows("keys", org=org)]

    def add_key(self, row: KeyRow, *, expired_before_ms: int) -> None:
        """Insert a key, and delete those of its org that expired before *expired_before_ms*."""

        def add(driver: Driver, changes: ChangeLog) -> None:
            driver.run("remove_expired_keys", {"org": row.org, "before": expired_before_ms})
            driver.run("add_key", _with_user_id(asdict(row)))
            changes.note("key.made", ("", ""), row.id)

        self._change(add, lambda _: (row.org, "", ""))

    def revoke_key(self, org: str, key_id: str, now_ms: int) -> bool:
        """End a key, and those made from it; ``False`` when the org has no active one of that id."""
        args = {"org": org, "id": key_id, "revoked": now_ms}
        return self._change_org(org, "revoke_key", args, "key.revoked", key_id)

    def _change_org(self, org: str, query: str, args: Mapping[str, Any], event: str, ref: str) -> bool:
        """Run a query that changes something of an org as a whole; return whether it did, and store an event then."""

        def change(driver: Driver, changes: ChangeLog) -> bool:
            done = bool(driver.run(query, args))
            if done:
                changes.note(event, ("", ""), ref)
            return done

        return self._change(change, lambda _: (org, "", ""))

    def spend(
        self, org: str, limits: Mapping[tuple[str, str], int | None], messages: int, *, before: str
    ) -> tuple[str, str] | None:
        """
        Count stored messages against the limits of an org and its keys: all of them or none.

        Args:
            org: the org that stores them.
            limits: the most for each (key id, period); an empty id means all keys together, ``None`` no limit.
            messages: how many; a negative number gives back.
            before: counts of periods before this one are deleted.

        Returns:
            The first (key id, period) whose limit they would pass: then nothing is counted.
        """
        passed: list[tuple[str, str]] = []

        def count(driver: Driver) -> None:
            for key_id, period in sorted(limits):  # all callers in this order: no two wait for each other
                row = {"org": org, "key_id": key_id, "period": period, "messages": messages}
                ((now,),) = driver.run("spend", row)
                most = limits[key_id, period]
                if most is not None and messages > 0 and now > most:
                    passed[:] = [(key_id, period)]
                    raise _LimitPassed
                if now == messages:  # the first of its period
                    driver.run("remove_old_allowances", {"org": org, "before": before})

        try:
            self.backend.write(count)
        except _LimitPassed:
            return passed[0]
        return None

    def spent(self, org: str) -> list[tuple[str, str, int]]:
        """Return (key id, period, messages) of an org, by period."""
        return [(key_id, period, int(messages)) for key_id, period, messages in self._rows("allowances", org=org)]

    def provider_keys(self, org: str, user: str) -> list[ProviderKeyRow]:
        """Return the keys of one user, or with ``""`` of the org itself; the one set last comes first."""
        return [ProviderKeyRow(*row) for row in self._rows("provider_keys", org=org, user_id=user)]

    def any_provider_key(self) -> bool:
        """Whether any user or org brought a key."""
        return bool(self._rows("any_provider_key"))

    def keys_to_reseal(self, master: str, *, limit: int = 100) -> list[ProviderKeyRow]:
        """Return keys that another master key sealed, by key of the row."""
        return [ProviderKeyRow(*row) for row in self._rows("keys_to_reseal", master=master, limit=max(0, limit))]

    def save_provider_key(self, row: ProviderKeyRow) -> None:
        """Insert a key, or replace it, in place of others that its owner has for the same provider."""
        columns = _with_user_id(asdict(row))
        others = {name: columns[name] for name in ("org", "user_id", "provider", "id")}

        def save(driver: Driver, changes: ChangeLog) -> None:
            driver.run("remove_other_provider_keys", others)
            driver.run("save_provider_key", columns)
            changes.note("vault.set", ("", ""), row.id)

        self._change(save, lambda _: (row.org, "", ""))

    def remove_provider_key(self, org: str, user: str, key_id: str) -> bool:
        """Delete a key; ``False`` when there is none of that id."""
        args = {"org": org, "user_id": user, "id": key_id}
        return self._change_org(org, "remove_provider_key", args, "vault.removed", key_id)

    def reseal_provider_key(self, row: ProviderKeyRow, was: str) -> bool:
        """Replace the seal *was* by the new one; ``False`` when it is another by now."""
        key = {"org": row.org, "user_id": row.user, "id": row.id, "was": was}
        seal = {"master": row.master, "sealed": row.sealed, "print": row.print}
        return bool(self.backend.write(lambda driver: driver.run("reseal_provider_key", key | seal)))

    # The ledger of erasures

    def ledger(self) -> tuple[str, list[ErasureRow]]:
        """Return the key (``""``: nothing was ever erased) and all erasures, oldest first."""

        def look(driver: Driver) -> tuple[str, list[ErasureRow]]:
            found = driver.run("ledger_key", {})
            return found[0][0] if found else "", [rows.erased(row) for row in driver.run("erasures", {})]

        return self.backend.read(look)

    def merge_ledger(self, key: str, erased: Sequence[ErasureRow]) -> None:
        """Add the ledger of another copy of this store, and its key when there is none here."""

        def merge(driver: Driver) -> None:
            driver.run("add_ledger_key", {"key": key})
            for row in erased:
                driver.run("add_erasure", rows.erased_columns(row))

        self.backend.write(merge)

    # The database as a whole

    def check(self) -> list[Finding]:
        """Return every broken invariant; an empty list means that the store is sound."""
        return self.backend.damage() or self.backend.read(broken_rules)

    def examine(self) -> Report:
        """Examine the database, then every rule that the rows must keep."""
        health = self.backend.health()
        findings = (*health.findings, *self.check())
        dead = [count for count in self.backlog(to_ms(self.clock())) if count.state == "dead"]
        notices = list(health.notices)
        if dead:
            kinds = ", ".join(f"{count.jobs} {count.kind}" for count in dead)
            notices.append(Finding("dead-jobs", kinds, "`holdfast jobs --state dead` says why; retry or cancel them"))
        return Report(
            ok=not findings,
            findings=findings,
            checked=(*health.checked, "dead-jobs", *RULES),
            notices=tuple(notices),
            database={**health.about, "schema": schema_version()},
        )

    def stats(self) -> dict[str, int]:
        """Return the rows per table, and ``bytes`` on disk."""
        return {row[0]: row[1] for row in self._rows("rows_per_table")} | {"bytes": self.size_bytes()}

    def size_bytes(self) -> int:
        """Return the size on disk."""
        return self.backend.size_bytes()

    def scrub(self, traces: Sequence[bytes]) -> Scrubbed:
        """Overwrite what deleted rows left on the disk, and search the bytes for *traces*."""
        return self.backend.scrub(traces)

    def backup(self, path: str) -> None:
        """Copy the whole store to a new file at *path* while it is in use."""
        self.backend.backup(path)

    def close(self) -> None:
        """Finish what was accepted and let go of the database; calls after it raise ``StoreClosed``."""
        self.backend.close()


def _with_user_id(columns: dict[str, Any]) -> dict[str, Any]:
    columns["user_id"] = columns.pop("user")
    return columns


def _user_columns(operation: Operation) -> dict[str, Any]:
    return {"org": operation.org, "user_id": operation.user, "bot": operation.bot}


def _operation_user(operation: Operation) -> UserKey | None:
    """Return the user whose event it is; an operation for all users has no event."""
    return (operation.org, operation.user, operation.bot) if operation.user else None


def _note_operation(changes: ChangeLog, operation: Operation) -> None:
    if operation.user:
        changes.note(_OPERATION_EVENTS[operation.state], (operation.subject, operation.conversation), operation.id)


def _operation_columns(operation: Operation) -> dict[str, Any]:
    columns = asdict(operation) | {"stop": int(operation.stop)}
    columns["report"] = "" if operation.report is None else rows.compact_json(operation.report)
    names = {
        "user": "user_id",
        "created_ms": "created_at",
        "seen_ms": "seen_at",
        "ended_ms": "ended_at",
        "asked": "request",
    }
    return {names.get(name, name): value for name, value in columns.items()}


def _operation(row: Row) -> Operation:
    report = json.loads(row[12]) if row[12] else None
    values: tuple[Any, ...] = (*row[:12], report, *row[13:15], bool(row[15]), *row[16:])
    return Operation(*values)


_SUMMARIES = "rebuild the summaries of this conversation"
_INDEX = "rebuild the vectors and the index of this user"
_FACTS = "rebuild the facts of this user, or restore a backup"
_LOST = "restore a backup: messages or counters were lost or changed from outside"

HINTS = {
    "coverage_points_home": _SUMMARIES,
    "coverage_whole": _SUMMARIES,
    "level1_contiguous": _SUMMARIES,
    "chunk_start": _SUMMARIES,
    "summary_range": _SUMMARIES,
    "parent": _SUMMARIES,
    "children": _SUMMARIES,
    "summary_edges": _SUMMARIES,
    "edge_of_summary": _SUMMARIES,
    "edge_of_story": "clear the subject's story by digest()",
    "edge_of_fact": _FACTS,
    "edge_to_summary": _SUMMARIES,
    "edge_to_messages": _LOST,
    "live_address": _FACTS,
    "fact_evidence": _FACTS,
    "fact_end": _FACTS,
    "superseded_by": _FACTS,
    "merged": _FACTS,
    "evidence_fact": _FACTS,
    "quote": _FACTS,
    "message_doc": _INDEX,
    "fact_doc": _INDEX,
    "summary_doc": _INDEX,
    "doc_of_message": _INDEX,
    "doc_of_fact": _INDEX,
    "doc_of_summary": _INDEX,
    "doc_kind": _INDEX,
    "doc_terms": _INDEX,
    "segment": _INDEX,
    "vector_doc": _INDEX,
    "doc_vector": _INDEX,
    "next_doc": _LOST,
    "next_seq": _LOST,
    "message_home": _LOST,
    "conversation_home": _LOST,
    "marks": _LOST,
    "episode_range": "rebuild the episodes of this conversation",
    "idempotency": _LOST,
    "rebuild": _LOST,
    "read_range": _LOST,
    "context_stats": _LOST,
    "item": "erase this user, or restore a backup",
    "older_version": _SUMMARIES,
    "erased_message": "forget the message again",
    "edge_of_end": _FACTS,
    "consent": "pause the user again",
    "usage": "erase this user's usage, or restore a backup",
    "prompt": "reset this user's prompts",
    "provider_key": "set this key of a provider again",
    "event_numbers": _LOST,
    "event_home": "clear the conversation again",
    "subject": "begin a conversation about it",
    "job_state": "cancel the job and order its work again",
}
"""Each rule, in the order in which they are looked at, and what to do when it is broken."""

RULES = tuple(rule.replace("_", "-") for rule in HINTS)


def broken_rules(driver: Driver) -> list[Finding]:
    """
    Return every broken invariant in one snapshot of the whole store; ``where`` is a JSON list of keys, never text.

    The queries are in ``sql/shared/doctor.sql``; each is named ``check_`` and the rule.
    """
    return [
        Finding(rule.replace("_", "-"), rows.compact_json(list(row)), hint)
        for rule, hint in HINTS.items()
        for row in driver.run(f"check_{rule}", {})
    ]


def _last_whole(owners: Sequence[UserKey], limit: int) -> UserKey | None:
    """Return up to whom *limit* rows show all, where there are more; of one with too many rows only the first are shown."""
    if len(owners) <= limit:
        return None
    return next((owner for owner in reversed(owners) if owner != owners[-1]), owners[-1])
