"""
What every SQL store shares: the two doors to memory, the job calls, the looks of an operator.

A store for one database adds how a transaction is run, how the whole is measured and copied, and
how it is closed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, TypeVar

from ..clock import Clock, to_ms, utc_now
from ..reports import Event, Finding, News, UserKey
from ..scope import Scope, actor
from ..types import Job
from . import doctor, rows
from .conditions import conditioned
from .eraseview import SqlEraseView
from .events import Kept
from .fair import Turns, due, newest
from .health import Examined
from .ledger import ErasedRow
from .protocol import ConsentRow, KeyRow, ReadView, Scrubbed, WriteView
from .readview import Driver, SqlReadView
from .sqlorders import SqlOrders
from .sqlspend import SqlSpend
from .sqlwork import SqlWork
from .told import Told
from .values import UsageRow
from .vault import SealedRow

T = TypeVar("T")


class SqlStore(Examined, SqlOrders, SqlSpend, SqlWork, ABC):
    """
    A `holdfast.store.protocol.Store` in terms of named queries.

    ``clock`` dates what happened, ``kept`` says how much of it stays on record, ``counting`` hears after each
    transaction what it changed, by kind.  ``spread``: users stand on several nodes of a cluster.
    """

    clock: Clock = staticmethod(utc_now)
    kept: Kept = Kept()
    spread = False
    _sized_by = "file_bytes"
    counting: Callable[[Counter[tuple[str, str]]], None] | None = None

    def __init__(self) -> None:
        self._turns = Turns()

    @abstractmethod
    def _reading(self, work: Callable[[Driver], T]) -> T:
        """Run *work* over one snapshot."""

    @abstractmethod
    def _writing(self, work: Callable[[Driver], T]) -> T:
        """Run *work* in one transaction; durable when this returns."""

    @abstractmethod
    def stats(self) -> Mapping[str, int]:
        """See the protocol."""

    @abstractmethod
    def scrub(self, traces: Sequence[bytes]) -> Scrubbed:
        """See the protocol."""

    @abstractmethod
    def backup(self, path: str) -> None:
        """See the protocol."""

    @abstractmethod
    def close(self) -> None:
        """See the protocol."""

    def _damage(self, driver: Driver) -> list[Finding]:
        """What the database itself has to say about its health."""
        return []

    def read(self, scope: Scope, work: Callable[[ReadView], T]) -> T:
        """See the protocol."""
        return self._reading(lambda driver: work(SqlReadView(driver, scope)))

    def write(self, scope: Scope, work: Callable[[WriteView], T]) -> T:
        """See the protocol."""
        ready = conditioned(work)
        return self._telling(lambda driver, told: ready(SqlEraseView(driver, scope, told)), lambda _: scope.user_key)

    def _telling(
        self,
        work: Callable[[Driver, Told], T],
        whose: Callable[[T], UserKey | None],
        run: Callable[[Callable[[Driver], T]], T] | None = None,
    ) -> T:
        """Run *work* in one transaction, together with the rows that tell what it did, to the user it names."""
        who, now_ms = actor(), to_ms(self.clock())
        done: list[Told] = []

        def both(driver: Driver) -> T:
            told = Told(who, now_ms)
            answer = work(driver, told)
            user = whose(answer)
            if user is not None:
                told.flush(driver, user, self.kept)
            done[:] = [told]
            return answer

        answer = (run or self._writing)(both)
        if self.counting is not None and done[0].counted:
            self.counting(done[0].counted)
        return answer

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
        """See the protocol."""
        found = self._reading(lambda driver: due(driver, now_ms, kinds, user, ahead_ms))
        if not found:
            return None  # nothing is due: no transaction, no disk
        goes_round = user is None and len(found) > 1 and self._turns.goes_round()

        def look(driver: Driver) -> list[rows.Row]:
            there = due(driver, now_ms, kinds, user, ahead_ms)
            if goes_round:
                there = self._turns.in_turn({row[:4]: row for row in (*there, *newest(driver, now_ms, kinds))}.values())
            return there

        def take(driver: Driver, told: Told, some: Sequence[rows.Row] | None) -> Job | None:
            for org, user_id, bot, job_id, state, fence, attempt, *_ in look(driver) if some is None else some:
                was = {"org": org, "user_id": user_id, "bot": bot, "id": job_id, "was_state": state, "was_fence": fence}
                lease = {"lease_until": now_ms + lease_ms, "worker": worker}
                taken = driver.run("take_job", {**was, **lease, "fence": fence + 1, "attempt": attempt + 1})
                if taken:
                    job = rows.job(taken[0])
                    told.note("job.running", (job.subject, job.conversation), job.id)
                    if state == "running":
                        told.count("takeover", job.kind)
                    return job
            return None

        tries: list[Sequence[rows.Row] | None] = [None]
        if self.spread:  # a transaction for each candidate, as two of them may stand on two nodes
            tries = [[row] for row in (self._reading(look) if goes_round else found)]
        for some in tries:
            job = self._telling(partial(take, some=some), lambda job: (job.org, job.user, job.bot) if job else None)
            if job is not None:
                break
        if job is not None and user is None:
            self._turns.served(job.org, job.user)
        return job

    def fail(self, job: Job, *, reason: str, run_at_ms: int, dead: bool) -> bool:
        """See the protocol."""
        args = _key_of(job) | {
            "fence": job.fence,
            "state": "dead" if dead else "ready",
            "attempt": job.attempt,
            "run_at": run_at_ms,
            "reason": reason,
        }
        failed = dead or (bool(reason) and not reason.startswith("waiting:"))

        def put_back(driver: Driver, told: Told) -> bool:
            done = bool(driver.run("put_back_job", args))
            if done:
                told.note("job.failed" if failed else "job.queued", (job.subject, job.conversation), job.id)
            return done

        return self._telling(put_back, lambda _: (job.org, job.user, job.bot))

    def jobs(self, *, state: str | None = None, limit: int = 1000) -> list[Job]:
        """See the protocol."""
        args = {"state": state, "limit": max(0, limit)}
        return [rows.job(row) for row in self._reading(lambda driver: driver.run("jobs", args))]

    def retry(self, job_id: str, now_ms: int) -> bool:
        """See the protocol."""
        return self._steer("restart_job", "job.queued", job_id, {"run_at": now_ms})

    def cancel(self, job_id: str) -> bool:
        """See the protocol."""
        return self._steer("cancel_job", "job.cancelled", job_id, {})

    def hurry(self, job_id: str, now_ms: int) -> bool:
        """See the protocol."""
        return self._steer("release_job", "job.queued", job_id, {"run_at": now_ms})

    def _steer(self, query: str, kind: str, job_id: str, args: Mapping[str, Any]) -> bool:
        def steer(driver: Driver, told: Told) -> UserKey | None:
            for org, user, bot in driver.run("job_owner", {"id": job_id}):
                if driver.run(query, {"org": org, "user_id": user, "bot": bot, "id": job_id, **args}):
                    told.note(kind, ("", ""), job_id)
                    return org, user, bot
            return None

        return self._telling(steer, lambda user_key: user_key) is not None

    def next_due_ms(self) -> int | None:
        """See the protocol."""

        def look(driver: Driver) -> int | None:
            times = [driver.run(name, {})[0][0] for name in ("first_run_at", "first_lease_end")]
            return min((at for at in times if at is not None), default=None)

        return self._reading(look)

    def users_embedded_otherwise(self, embedder: str, *, limit: int = 100) -> list[tuple[str, str, str]]:
        """See the protocol."""
        args = {"embedder": embedder, "limit": max(0, limit)}
        found = self._reading(lambda driver: driver.run("users_embedded_otherwise", args))
        return [(row[0], row[1], row[2]) for row in found]

    def users(self, *, limit: int = 1000, after: tuple[str, str, str] | None = None) -> list[tuple[str, str, str]]:
        """See the protocol."""
        args: dict[str, Any] = {"limit": max(0, limit)}
        if after is not None:
            args |= {"org": after[0], "user_id": after[1], "bot": after[2]}
        name = "users" if after is None else "users_after"
        return [(row[0], row[1], row[2]) for row in self._reading(lambda driver: driver.run(name, args))]

    def usage(
        self,
        by: Collection[str],
        *,
        since: str = "",
        until: str = "9999",
        org: str | None = None,
        user: str | None = None,
        bot: str | None = None,
    ) -> list[tuple[tuple[str, str, str], UsageRow]]:
        """See the protocol."""
        flags = {f"by_{name}": int(name in by) for name in ("org", "user", "bot", "day", "layer", "model")}
        args = flags | {"since": since, "until": until, "org": org, "user_id": user, "bot": bot}
        found = self._reading(lambda driver: driver.run("usage_across", args))
        return [((row[0], row[1], row[2]), UsageRow(*row[3:6], *map(int, row[6:]))) for row in found]

    def release(self, now_ms: int, *, limit: int = 10_000) -> int:
        """See the protocol."""
        look = {"now_ms": now_ms, "limit": limit}
        if not self._reading(lambda driver: driver.run("waiting_jobs", look)):
            return 0

        def work(driver: Driver) -> int:
            found = driver.run("waiting_jobs", look)
            for org, user, bot, job_id in found:
                key = {"org": org, "user_id": user, "bot": bot, "id": job_id}
                driver.run("release_job", key | {"run_at": now_ms})
            return len(found)

        return self._writing(work)

    def key(self, key_id: str) -> KeyRow | None:
        """See the protocol."""
        found = self._reading(lambda driver: driver.run("key", {"id": key_id}))
        return KeyRow(*found[0]) if found else None

    def keys(self, org: str | None = None) -> list[KeyRow]:
        """See the protocol."""
        return [KeyRow(*row) for row in self._reading(lambda driver: driver.run("keys", {"org": org}))]

    def add_key(self, row: KeyRow, *, spent_before_ms: int) -> None:
        """See the protocol."""
        columns = asdict(row)
        columns["user_id"] = columns.pop("user")

        def work(driver: Driver, told: Told) -> None:
            driver.run("remove_spent_keys", {"org": row.org, "before": spent_before_ms})
            driver.run("add_key", columns)
            told.note("key.made", ("", ""), row.id)

        self._telling(work, lambda _: (row.org, "", ""))

    def revoke_key(self, org: str, key_id: str, now_ms: int) -> bool:
        """See the protocol."""
        args = {"org": org, "id": key_id, "revoked": now_ms}
        return self._of_org(org, "revoke_key", args, "key.revoked", key_id)

    def _of_org(self, org: str, query: str, args: Mapping[str, Any], kind: str, ref: str) -> bool:
        """Run a query that changes something of an org as a whole; whether it did, which is told then."""

        def work(driver: Driver, told: Told) -> bool:
            done = bool(driver.run(query, args))
            if done:
                told.note(kind, ("", ""), ref)
            return done

        return self._telling(work, lambda _: (org, "", ""))

    def size_bytes(self) -> int:
        """See the protocol."""
        return int(self._reading(lambda driver: driver.run(self._sized_by, {}))[0][1])

    def changes(self) -> int:
        """See the protocol."""
        self._looked += 1  # a database that does not say whether something changed is looked at each time
        return self._looked

    _looked = 0

    def news(self, heads: Mapping[UserKey, int], *, limit: int) -> dict[UserKey, News]:
        """See the protocol."""

        def look(driver: Driver) -> dict[UserKey, News]:
            there = {(org, user, bot): newest for org, user, bot, newest in driver.many("newest_event", list(heads))}
            found = {}
            for user_key, after in heads.items():
                if there.get(user_key, 0) != after:
                    org, user, bot = user_key
                    found[user_key] = SqlReadView(driver, Scope(org, bot, user)).news(after, limit=limit)
            return found

        return self._reading(look)

    def events_of_org(self, org: str, before: int | None, *, limit: int) -> list[Event]:
        """See the protocol."""
        return self.read(Scope(org, "", ""), lambda view: list(view.events_before(before, limit=limit)))

    def ledger(self) -> tuple[str, list[ErasedRow]]:
        """See the protocol."""

        def look(driver: Driver) -> tuple[str, list[ErasedRow]]:
            found = driver.run("ledger_key", {})
            return found[0][0] if found else "", [rows.erased(row) for row in driver.run("erased", {})]

        return self._reading(look)

    def take_ledger(self, key: str, rows_: Sequence[ErasedRow]) -> None:
        """See the protocol."""

        def work(driver: Driver) -> None:
            driver.run("add_ledger_key", {"key": key})
            for row in rows_:
                driver.run("add_erased", rows.erased_columns(row))

        self._writing(work)

    def choices(self) -> list[tuple[Scope, ConsentRow]]:
        """See the protocol."""
        found = self._reading(lambda driver: driver.run("all_consent", {}))
        return [(Scope(org=row[0], user=row[1], bot=row[2]), ConsentRow(*row[3:])) for row in found]

    def provider_keys(self, org: str, user: str) -> list[SealedRow]:
        """See the protocol."""
        found = self._reading(lambda driver: driver.run("provider_keys", {"org": org, "user_id": user}))
        return [SealedRow(*row) for row in found]

    def any_provider_key(self) -> bool:
        """See the protocol."""
        return bool(self._reading(lambda driver: driver.run("any_provider_key", {})))

    def sealed_otherwise(self, master: str, *, limit: int = 100) -> list[SealedRow]:
        """See the protocol."""
        args = {"master": master, "limit": max(0, limit)}
        return [SealedRow(*row) for row in self._reading(lambda driver: driver.run("sealed_otherwise", args))]

    def save_provider_key(self, row: SealedRow) -> None:
        """See the protocol."""
        columns = asdict(row)
        columns["user_id"] = columns.pop("user")
        others = {name: columns[name] for name in ("org", "user_id", "provider", "id")}

        def work(driver: Driver, told: Told) -> None:
            driver.run("remove_other_provider_keys", others)
            driver.run("save_provider_key", columns)
            told.note("vault.set", ("", ""), row.id)

        self._telling(work, lambda _: (row.org, "", ""))

    def remove_provider_key(self, org: str, user: str, key_id: str) -> bool:
        """See the protocol."""
        args = {"org": org, "user_id": user, "id": key_id}
        return self._of_org(org, "remove_provider_key", args, "vault.removed", key_id)

    def reseal_provider_key(self, row: SealedRow, was: str) -> bool:
        """See the protocol."""
        key = {"org": row.org, "user_id": row.user, "id": row.id, "was": was}
        seal = {"master": row.master, "sealed": row.sealed, "print": row.print}
        return bool(self._writing(lambda driver: driver.run("reseal_provider_key", key | seal)))

    def check(self) -> list[Finding]:
        """See the protocol."""
        return self._reading(lambda driver: self._damage(driver) or doctor.examine(driver))


def _key_of(job: Job) -> dict[str, Any]:
    return {"org": job.org, "user_id": job.user, "bot": job.bot, "id": job.id}
