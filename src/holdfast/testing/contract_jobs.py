"""What every store must promise about background work."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import astuple, replace
from operator import methodcaller

import pytest

from ..scope import Scope
from ..store.protocol import Store, WriteView
from ..types import Job
from .rows import ANA

LEASE_MS = 1_000


def order(store: Store, scope: Scope = ANA, kind: str = "digest", *, wanted: int = 1, at: int = 100) -> None:
    """Want work that is due at *at*."""
    store.write(scope, lambda view: view.want(kind, "", wanted=wanted, run_at_ms=at, now_ms=10))


def take(store: Store, now_ms: int = 100, **limits: object) -> Job | None:
    return store.claim(now_ms=now_ms, worker="w1", lease_ms=LEASE_MS, **limits)  # type: ignore[arg-type]


def taken(store: Store, now_ms: int = 100) -> Job:
    job = take(store, now_ms)
    assert job is not None
    return job


class JobsContract:
    """Ordering work, claiming it, fences, retries."""

    def test_work_is_claimed_when_it_is_due(self, store: Store) -> None:
        order(store, at=100)

        assert take(store, 99) is None
        assert store.next_due_ms() == 100
        job = taken(store, 100)
        assert (job.kind, job.state, job.attempt, job.fence, job.worker) == ("digest", "running", 1, 1, "w1")
        assert (job.org, job.user, job.bot, job.subject, job.conversation) == ("acme", "ana", "support", "self", "chat")
        assert job.lease_until_ms == 100 + LEASE_MS
        assert take(store, 101) is None

    def test_the_longest_overdue_comes_first(self, store: Store) -> None:
        for name, at in (("b", 30), ("a", 20), ("c", 10)):
            order(store, ANA.within(name), at=at)

        assert [taken(store).conversation for _ in range(3)] == ["c", "a", "b"]

    def test_finished_work_leaves_no_row(self, store: Store) -> None:
        order(store)
        job = taken(store)

        assert store.write(ANA, lambda view: (view.holds(job), view.finish(job, 200))) == (True, True)
        assert store.jobs() == []
        assert store.next_due_ms() is None

    def test_work_and_its_cause_are_stored_together(self, store: Store) -> None:
        def work(view: WriteView) -> None:
            view.want("digest", "", wanted=1, run_at_ms=0, now_ms=0)
            raise RuntimeError("the cause failed")

        with pytest.raises(RuntimeError, match="the cause failed"):
            store.write(ANA, work)

        assert store.jobs() == []

    def test_wanting_again_moves_the_one_row(self, store: Store) -> None:
        order(store, wanted=5, at=100)
        order(store, wanted=3, at=70)

        (job,) = store.jobs()
        assert (job.wanted, job.run_at_ms) == (5, 70)

    def test_wanting_more_does_not_hurry_a_retry(self, store: Store) -> None:
        order(store)
        store.fail(taken(store), reason="model timed out", run_at_ms=5_000, dead=False)
        order(store, wanted=9, at=100)

        (job,) = store.jobs()
        assert (job.wanted, job.run_at_ms, job.attempt, job.reason) == (9, 5_000, 1, "model timed out")

    def test_more_wanted_during_the_run_makes_it_ready_again(self, store: Store) -> None:
        order(store, wanted=5)
        job = taken(store)
        order(store, wanted=8)
        (running,) = store.jobs()

        assert (running.state, running.fence, running.lease_until_ms) == ("running", 1, 100 + LEASE_MS)
        assert store.write(ANA, lambda view: view.finish(job, 300))
        (again,) = store.jobs()
        assert (again.state, again.wanted, again.attempt, again.run_at_ms) == ("ready", 8, 0, 300)
        assert taken(store, 300).fence == 2

    def test_an_expired_lease_is_taken_over_and_fences_the_first_worker_off(self, store: Store) -> None:
        order(store)
        first = taken(store, 100)
        assert take(store, 100 + LEASE_MS - 1) is None
        assert store.next_due_ms() == 100 + LEASE_MS

        second = taken(store, 100 + LEASE_MS)

        assert (second.id, second.fence, second.attempt) == (first.id, 2, 2)
        assert store.write(ANA, lambda view: view.holds(first)) is False
        assert store.write(ANA, lambda view: view.renew(first, 9_999)) is False
        assert store.write(ANA, lambda view: view.finish(first, 200)) is False
        assert store.fail(first, reason="late", run_at_ms=0, dead=True) is False
        assert store.write(ANA, lambda view: view.holds(second)) is True

    def test_work_begun_before_it_is_due_shortens_no_lease(self, store: Store) -> None:
        order(store, at=500)

        assert take(store, 100, user=ANA) is None
        first = take(store, 100, user=ANA, ahead_ms=400)
        assert first is not None
        assert first.lease_until_ms == 100 + LEASE_MS
        assert take(store, 100 + LEASE_MS - 1, user=ANA, ahead_ms=400) is None
        second = take(store, 100 + LEASE_MS, user=ANA, ahead_ms=400)
        assert second is not None
        assert second.fence == 2

    def test_a_renewed_lease_is_not_taken_over(self, store: Store) -> None:
        order(store)
        job = taken(store, 100)

        assert store.write(ANA, lambda view: view.renew(job, 50_000))
        assert take(store, 49_999) is None
        assert taken(store, 50_000).fence == 2

    def test_a_job_can_be_held_by_its_own_user_only(self, store: Store) -> None:
        order(store)
        job = taken(store)

        assert store.write(replace(ANA, user="bo"), lambda view: view.holds(job)) is False
        assert store.write(replace(ANA, user="bo"), lambda view: view.finish(job, 200)) is False

    def test_failed_work_comes_back_at_its_time_with_its_reason(self, store: Store) -> None:
        order(store)
        assert store.fail(taken(store), reason="model timed out", run_at_ms=500, dead=False)

        assert take(store, 499) is None
        again = taken(store, 500)
        assert (again.attempt, again.fence, again.reason) == (2, 2, "model timed out")

    def test_dead_work_waits_for_a_user(self, store: Store) -> None:
        order(store)
        job = taken(store)
        assert store.fail(job, reason="always fails", run_at_ms=0, dead=True)

        assert take(store, 10**9) is None
        assert [j.reason for j in store.jobs(state="dead")] == ["always fails"]
        order(store, wanted=7)
        assert [(j.state, j.wanted) for j in store.jobs()] == [("dead", 7)]
        assert store.retry(job.id, 900)
        again = taken(store, 900)
        assert (again.attempt, again.reason, again.wanted) == (1, "", 7)
        assert store.retry(job.id, 900) is False

    def test_cancelled_work_does_not_run_until_retried(self, store: Store) -> None:
        order(store)
        (job,) = store.jobs()

        assert store.cancel(job.id)
        assert store.cancel(job.id) is False
        assert take(store, 10**9) is None
        assert store.retry(job.id, 50)
        assert taken(store, 50).id == job.id

    def test_unknown_ids_change_nothing(self, store: Store) -> None:
        assert store.retry("job_%", 0) is False
        assert store.cancel("") is False

    def test_a_claim_can_be_limited_to_kinds(self, store: Store) -> None:
        order(store, kind="embed", at=10)
        order(store, kind="digest", at=20)

        assert take(store, kinds=["rollup"]) is None
        job = take(store, kinds=["rollup", "digest"])
        assert job is not None
        assert job.kind == "digest"

    def test_a_claim_can_be_limited_to_a_user_or_a_conversation(self, store: Store) -> None:
        bo, other = replace(ANA, user="bo"), ANA.within("other")
        for scope in (ANA, other, bo):
            order(store, scope)
        order(store, replace(ANA, subject=None, conversation=None), "prune")

        assert take(store, user=replace(ANA, bot="x")) is None
        job = take(store, user=other)
        assert job is not None
        assert job.conversation == "other"
        assert take(store, user=other) is None
        whole = replace(ANA, conversation=None)
        assert sorted(j.kind for j in (take(store, user=whole), take(store, user=whole)) if j) == [
            "digest",
            "prune",
        ]
        assert take(store, user=whole) is None
        assert taken(store).user == "bo"

    def test_jobs_are_listed_by_state_oldest_first(self, store: Store) -> None:
        for number, name in enumerate("cab"):
            ordered = methodcaller("want", "digest", "", wanted=1, run_at_ms=100 - number, now_ms=10 + number)
            store.write(ANA.within(name), ordered)
        taken(store)

        assert [j.conversation for j in store.jobs()] == ["c", "a", "b"]
        assert [j.conversation for j in store.jobs(state="ready")] == ["c", "a"]
        assert len(store.jobs(limit=1)) == 1

    def test_an_import_of_one_org_does_not_keep_the_others_waiting(self, store: Store) -> None:
        """Two hundred jobs of one org, fifty of one of its users; then one of another."""
        for number in range(200):
            user = "importer" if number < 50 else f"u{number}"
            order(store, replace(ANA, org="big", user=user).within(f"c{number}"), at=10)
        order(store, replace(ANA, org="small"), at=30)

        claimed = [taken(store) for _ in range(12)]

        assert "small" in [job.org for job in claimed[:4]]
        assert len({job.user for job in claimed}) >= 6

    def test_what_waits_longest_is_never_passed_over_for_ever(self, store: Store) -> None:
        order(store, replace(ANA, org="old", user="patient"), at=1)
        order(store, replace(ANA, org="old", user="patient").within("c2"), at=2)
        for number in range(100):
            order(store, replace(ANA, org=f"o{number}"), at=50)

        claimed = [taken(store) for _ in range(4)]

        assert [job.user for job in claimed].count("patient") == 2

    def test_the_backlog_is_counted_by_kind_and_state(self, store: Store) -> None:
        """At 600,000 ms: what is due, since when, what runs, what may not run yet, and what nobody will run."""
        for number, at in enumerate((100, 250_000, 400_000, 700_000)):
            order(store, ANA.within(f"c{number}"), at=at)
        for number, reason in enumerate(("waiting: budget", "failed")):
            order(store, ANA.within(f"w{number}"), "embed", at=10)
            store.fail(taken(store, 10), reason=reason, run_at_ms=900_000, dead=bool(number))
        running = taken(store, 599_000)

        assert running.run_at_ms == 100
        assert [astuple(one) for one in store.backlog(600_000)] == [
            ("digest", "ready", 3, 2, 1, 350_000),
            ("digest", "running", 1, 1, 0, 0),
            ("embed", "dead", 1, 0, 0, None),
            ("embed", "waiting", 1, 0, 0, None),
        ]
        assert [one.due for one in store.backlog(599_999) if one.state == "running"] == [0]

    def test_eight_threads_never_claim_the_same_job_twice(self, store: Store) -> None:
        for number in range(40):
            order(store, replace(ANA, user=f"u{number % 7}").within(f"c{number}"))
        claimed: list[str] = []
        start = threading.Barrier(8)

        def work(name: str) -> None:
            start.wait()
            while (job := store.claim(now_ms=100, worker=name, lease_ms=LEASE_MS)) is not None:
                claimed.append(job.id)

        threads = [threading.Thread(target=work, args=(f"w{n}",)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert len(claimed) == 40
        assert set(Counter(claimed).values()) == {1}
