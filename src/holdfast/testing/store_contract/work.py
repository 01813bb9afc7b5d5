"""The store contract for jobs, events, model usage, prompts and sealed provider keys."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import astuple, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import methodcaller
from typing import Any

import pytest

from ...clock import from_ms
from ...errors import HoldfastError
from ...reports import Event, News
from ...scope import Scope, acting
from ...store import (
    ConsentRow,
    EventLimits,
    FactRow,
    KeyRow,
    PromptRow,
    ProviderKeyRow,
    RateRow,
    Store,
    UsageRow,
    UserRow,
    WriteView,
)
from ...types import Job
from ..rows import ANA, END_MS, end_fact, fill_conversation, learn, say, summarize

LEASE_MS = 1_000


def want_job(store: Store, scope: Scope = ANA, kind: str = "digest", *, wanted: int = 1, at: int = 100) -> None:
    """Queue a job that is due at *at*."""
    store.write(scope, lambda view: view.want(kind, "", wanted=wanted, run_at_ms=at, now_ms=10))


def claim(store: Store, now_ms: int = 100, **limits: object) -> Job | None:
    return store.claim(now_ms=now_ms, worker="w1", lease_ms=LEASE_MS, **limits)  # type: ignore[arg-type]


def claim_due(store: Store, now_ms: int = 100) -> Job:
    job = claim(store, now_ms)
    assert job is not None
    return job


class JobsContract:
    """Queueing jobs, claiming them, fences, retries."""

    def test_work_is_claimed_when_it_is_due(self, store: Store) -> None:
        want_job(store, at=100)

        assert claim(store, 99) is None
        assert store.next_due_ms() == 100
        job = claim_due(store, 100)
        assert (job.kind, job.state, job.attempt, job.fence, job.worker) == ("digest", "running", 1, 1, "w1")
        assert (job.org, job.user, job.bot, job.subject, job.conversation) == ("acme", "ana", "support", "self", "chat")
        assert job.lease_until_ms == 100 + LEASE_MS
        assert claim(store, 101) is None

    def test_the_longest_overdue_comes_first(self, store: Store) -> None:
        for name, at in (("b", 30), ("a", 20), ("c", 10)):
            want_job(store, ANA.within(name), at=at)

        assert [claim_due(store).conversation for _ in range(3)] == ["c", "a", "b"]

    def test_finished_work_leaves_no_row(self, store: Store) -> None:
        want_job(store)
        job = claim_due(store)

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
        want_job(store, wanted=5, at=100)
        want_job(store, wanted=3, at=70)

        (job,) = store.jobs()
        assert (job.wanted, job.run_at_ms) == (5, 70)

    def test_wanting_more_does_not_hurry_a_retry(self, store: Store) -> None:
        want_job(store)
        store.fail(claim_due(store), reason="model timed out", run_at_ms=5_000, dead=False)
        want_job(store, wanted=9, at=100)

        (job,) = store.jobs()
        assert (job.wanted, job.run_at_ms, job.attempt, job.reason) == (9, 5_000, 1, "model timed out")

    def test_more_wanted_during_the_run_makes_it_ready_again(self, store: Store) -> None:
        want_job(store, wanted=5)
        job = claim_due(store)
        want_job(store, wanted=8)
        (running,) = store.jobs()

        assert (running.state, running.fence, running.lease_until_ms) == ("running", 1, 100 + LEASE_MS)
        assert store.write(ANA, lambda view: view.finish(job, 300))
        (again,) = store.jobs()
        assert (again.state, again.wanted, again.attempt, again.run_at_ms) == ("ready", 8, 0, 300)
        assert claim_due(store, 300).fence == 2

    def test_an_expired_lease_is_taken_over_and_fences_the_first_worker_off(self, store: Store) -> None:
        want_job(store)
        first = claim_due(store, 100)
        assert claim(store, 100 + LEASE_MS - 1) is None
        assert store.next_due_ms() == 100 + LEASE_MS

        second = claim_due(store, 100 + LEASE_MS)

        assert (second.id, second.fence, second.attempt) == (first.id, 2, 2)
        assert store.write(ANA, lambda view: view.holds(first)) is False
        assert store.write(ANA, lambda view: view.renew(first, 9_999)) is False
        assert store.write(ANA, lambda view: view.finish(first, 200)) is False
        assert store.fail(first, reason="late", run_at_ms=0, dead=True) is False
        assert store.write(ANA, lambda view: view.holds(second)) is True

    def test_work_begun_before_it_is_due_shortens_no_lease(self, store: Store) -> None:
        want_job(store, at=500)

        assert claim(store, 100, user=ANA) is None
        first = claim(store, 100, user=ANA, ahead_ms=400)
        assert first is not None
        assert first.lease_until_ms == 100 + LEASE_MS
        assert claim(store, 100 + LEASE_MS - 1, user=ANA, ahead_ms=400) is None
        second = claim(store, 100 + LEASE_MS, user=ANA, ahead_ms=400)
        assert second is not None
        assert second.fence == 2

    def test_a_renewed_lease_is_not_taken_over(self, store: Store) -> None:
        want_job(store)
        job = claim_due(store, 100)

        assert store.write(ANA, lambda view: view.renew(job, 50_000))
        assert claim(store, 49_999) is None
        assert claim_due(store, 50_000).fence == 2

    def test_a_job_can_be_held_by_its_own_user_only(self, store: Store) -> None:
        want_job(store)
        job = claim_due(store)

        assert store.write(replace(ANA, user="bo"), lambda view: view.holds(job)) is False
        assert store.write(replace(ANA, user="bo"), lambda view: view.finish(job, 200)) is False

    def test_failed_work_comes_back_at_its_time_with_its_reason(self, store: Store) -> None:
        want_job(store)
        assert store.fail(claim_due(store), reason="model timed out", run_at_ms=500, dead=False)

        assert claim(store, 499) is None
        again = claim_due(store, 500)
        assert (again.attempt, again.fence, again.reason) == (2, 2, "model timed out")

    def test_dead_work_waits_for_a_user(self, store: Store) -> None:
        want_job(store)
        job = claim_due(store)
        assert store.fail(job, reason="always fails", run_at_ms=0, dead=True)

        assert claim(store, 10**9) is None
        assert [j.reason for j in store.jobs(state="dead")] == ["always fails"]
        want_job(store, wanted=7)
        assert [(j.state, j.wanted) for j in store.jobs()] == [("dead", 7)]
        assert store.retry(job.id, 900)
        again = claim_due(store, 900)
        assert (again.attempt, again.reason, again.wanted) == (1, "", 7)
        assert store.retry(job.id, 900) is False

    def test_cancelled_work_does_not_run_until_retried(self, store: Store) -> None:
        want_job(store)
        (job,) = store.jobs()

        assert store.cancel(job.id)
        assert store.cancel(job.id) is False
        assert claim(store, 10**9) is None
        assert store.retry(job.id, 50)
        assert claim_due(store, 50).id == job.id

    def test_unknown_ids_change_nothing(self, store: Store) -> None:
        assert store.retry("job_%", 0) is False
        assert store.cancel("") is False

    def test_a_claim_can_be_limited_to_kinds(self, store: Store) -> None:
        want_job(store, kind="embed", at=10)
        want_job(store, kind="digest", at=20)

        assert claim(store, kinds=["rollup"]) is None
        job = claim(store, kinds=["rollup", "digest"])
        assert job is not None
        assert job.kind == "digest"

    def test_a_claim_can_be_limited_to_a_user_or_a_conversation(self, store: Store) -> None:
        bo, other = replace(ANA, user="bo"), ANA.within("other")
        for scope in (ANA, other, bo):
            want_job(store, scope)
        want_job(store, replace(ANA, subject=None, conversation=None), "prune")

        assert claim(store, user=replace(ANA, bot="x")) is None
        job = claim(store, user=other)
        assert job is not None
        assert job.conversation == "other"
        assert claim(store, user=other) is None
        whole = replace(ANA, conversation=None)
        assert sorted(j.kind for j in (claim(store, user=whole), claim(store, user=whole)) if j) == [
            "digest",
            "prune",
        ]
        assert claim(store, user=whole) is None
        assert claim_due(store).user == "bo"

    def test_jobs_are_listed_by_state_oldest_first(self, store: Store) -> None:
        for number, name in enumerate("cab"):
            ordered = methodcaller("want", "digest", "", wanted=1, run_at_ms=100 - number, now_ms=10 + number)
            store.write(ANA.within(name), ordered)
        claim_due(store)

        assert [j.conversation for j in store.jobs()] == ["c", "a", "b"]
        assert [j.conversation for j in store.jobs(state="ready")] == ["c", "a"]
        assert len(store.jobs(limit=1)) == 1

    def test_jobs_page_by_id_and_are_complete(self, store: Store) -> None:
        """Beyond any page size that a caller may think of, nothing is left out."""

        def order_many(view: WriteView) -> None:
            for number in range(1_100):
                view.at("self", f"c{number}").want("digest", "", wanted=1, run_at_ms=5, now_ms=1_000 + number)

        store.write(ANA, order_many)
        pages, after = [], ""
        while page := store.jobs(limit=500, after=after):
            pages.append(len(page))
            after = page[-1].id

        assert (pages, len(store.jobs())) == ([500, 500, 100], 1_100)
        assert [job.conversation for job in store.jobs(limit=2, after=store.jobs(limit=1)[0].id)] == ["c1", "c2"]

    def test_a_waiting_job_is_listed_as_such_until_it_is_due(self, store: Store) -> None:
        want_job(store, ANA.within("c"))
        job = claim_due(store)
        store.fail(job, reason="waiting: the budget is spent", run_at_ms=2_000, dead=False)
        store.clock = lambda: from_ms(1_000)

        assert [one.id for one in store.jobs(state="waiting")] == [job.id]
        assert store.jobs(state="ready") == []
        store.clock = lambda: from_ms(2_000)
        assert store.jobs(state="waiting") == []
        assert [one.id for one in store.jobs(state="ready")] == [job.id]
        assert store.job(job.id) == store.jobs()[0]
        assert store.job("job_none") is None

    def test_an_import_of_one_org_does_not_keep_the_others_waiting(self, store: Store) -> None:
        """Two hundred jobs of one org, fifty of one of its users; then one of another."""
        for number in range(200):
            user = "importer" if number < 50 else f"u{number}"
            want_job(store, replace(ANA, org="big", user=user).within(f"c{number}"), at=10)
        want_job(store, replace(ANA, org="small"), at=30)

        claimed = [claim_due(store) for _ in range(12)]

        assert "small" in [job.org for job in claimed[:4]]
        assert len({job.user for job in claimed}) >= 6

    def test_what_waits_longest_is_never_passed_over_for_ever(self, store: Store) -> None:
        want_job(store, replace(ANA, org="old", user="patient"), at=1)
        want_job(store, replace(ANA, org="old", user="patient").within("c2"), at=2)
        for number in range(100):
            want_job(store, replace(ANA, org=f"o{number}"), at=50)

        claimed = [claim_due(store) for _ in range(4)]

        assert [job.user for job in claimed].count("patient") == 2

    def test_the_backlog_is_counted_by_kind_and_state(self, store: Store) -> None:
        """At 600,000 ms there are jobs due, running, waiting and dead."""
        for number, at in enumerate((100, 250_000, 400_000, 700_000)):
            want_job(store, ANA.within(f"c{number}"), at=at)
        for number, reason in enumerate(("waiting: budget", "failed")):
            want_job(store, ANA.within(f"w{number}"), "embed", at=10)
            store.fail(claim_due(store, 10), reason=reason, run_at_ms=900_000, dead=bool(number))
        running = claim_due(store, 599_000)

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
            want_job(store, replace(ANA, user=f"u{number % 7}").within(f"c{number}"))
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


ALL = replace(ANA, subject=None, conversation=None)
BO = replace(ANA, user="bo")
KEY = KeyRow("acme", "k1", "digest", "app", "", "", "", "web", 1)


def events_of(store: Store, scope: Scope = ANA, after: int = 0) -> tuple[Event, ...]:
    return store.read(scope, lambda view: view.news(after, limit=10_000)).events


def kinds_and_refs(store: Store, scope: Scope = ANA, after: int = 0) -> list[tuple[str, str]]:
    return [(event.kind, event.ref) for event in events_of(store, scope, after)]


def newest_id(store: Store, scope: Scope = ANA) -> int:
    return store.read(scope, lambda view: view.news(0, limit=0)).newest


def append_word(word: str) -> Callable[[WriteView], object]:
    return lambda view: say(view, word)


class EventsContract:
    """Events: complete, in order, without any message text."""

    def test_messages_are_told_by_their_numbers(self, store: Store) -> None:
        store.write(ANA, lambda view: say(view, "one"))
        store.write(ANA, lambda view: say(view, "two", "three"))

        first, second = events_of(store)
        assert (first.kind, first.ref, second.ref) == ("message.added", "1", "2-3")
        assert (first.subject, first.conversation, first.actor) == ("self", "chat", "local")
        assert (first.org, first.user, first.bot) == ANA.user_key
        assert second.id == first.id + 1

    def test_every_change_is_told_once_and_by_whom(self, store: Store) -> None:
        with acting("key1"):
            store.write(ANA, fill_conversation)
        found = events_of(store)

        assert {event.actor for event in found} == {"key1"}
        assert [event.id for event in found] == list(range(found[0].id, found[0].id + len(found)))
        assert len({(event.kind, event.subject, event.conversation, event.ref) for event in found}) == len(found)
        assert {event.kind for event in found} == {
            "message.added", "summary.made", "fact.added", "fact.ended", "job.queued", "episode.added",
            "consent.changed", "prompt.changed", "subject.changed",
        }  # fmt: skip

    def test_what_happens_to_a_fact_is_told_by_its_end(self, store: Store) -> None:
        ends = {"replaced": "fact.replaced", "never_true": "fact.corrected", "retracted": "fact.ended"}
        for because, kind in ends.items():
            row = store.write(ANA, partial(learn, value="Faro", key=because))
            before = newest_id(store)
            store.write(ANA, partial(end_fact, row=row, at_ms=END_MS, because=because))
            assert kinds_and_refs(store, after=before) == [(kind, row.fact.id)]
        before = newest_id(store)
        store.write(ANA, lambda view: view.remove_fact(row))
        assert kinds_and_refs(store, after=before) == [("fact.forgotten", row.fact.id)]

    def test_a_fact_that_begins_and_ends_in_one_write_is_told_of_twice(self, store: Store) -> None:
        """Check the order of both changes, as in an import; a fact that is forgotten there is reported once."""

        def learn_and_end(view: WriteView) -> FactRow:
            row = learn(view, value="Faro")
            end_fact(view, row=row, at_ms=END_MS, because="replaced")
            return row

        def learn_and_forget(view: WriteView) -> FactRow:
            row = learn_and_end(view)
            view.remove_fact(row)
            return row

        def told(after: int) -> list[tuple[str, str]]:
            return [(kind, ref) for kind, ref in kinds_and_refs(store, after=after) if kind.startswith("fact.")]

        row = store.write(ANA, learn_and_end)
        assert told(0) == [("fact.added", row.fact.id), ("fact.replaced", row.fact.id)]
        before = newest_id(store)
        gone = store.write(ANA, learn_and_forget)
        assert told(before) == [("fact.forgotten", gone.fact.id)]

    def test_a_fact_does_not_name_a_conversation_about_somebody_else(self, store: Store) -> None:
        row = store.write(ANA.about("rex"), lambda view: learn(view, "Faro"))
        (event,) = [event for event in events_of(store) if event.kind == "fact.added"]
        assert (event.subject, event.conversation, event.ref) == ("self", "", row.fact.id)

    def test_what_takes_away_is_told(self, store: Store) -> None:
        summary = store.write(ANA, lambda view: (say(view, "one", "two"), summarize(view, 1, 2))[1])
        before = newest_id(store)

        def take(view: WriteView) -> None:
            stored = view.message_rows()
            view.remove_docs("self", "message", [stored[0].doc])
            blank = replace(stored[0].message, role="erased", content="", name=None, meta={}, tokens=0)
            view.rewrite_message(replace(stored[0], message=blank, doc=0))
            view.rewrite_message(stored[1])
            (row,) = view.summary_rows()
            view.rewrite_summary(replace(row, summary=replace(row.summary, stale=True)))

        store.write(ANA, take)
        assert kinds_and_refs(store, after=before) == [
            ("message.deleted", "1"),
            ("message.edited", "2"),
            ("summary.stale", summary.id),
        ]

    def test_jobs_are_told_through_their_life(self, store: Store) -> None:
        store.write(ANA, lambda view: say(view, "one"))
        before = newest_id(store)
        store.write(ANA, lambda view: view.want("x", "", wanted=1, run_at_ms=0, now_ms=0))
        store.write(ANA, lambda view: view.want("x", "", wanted=2, run_at_ms=0, now_ms=0))
        for reason in ("timed out", "waiting: budget", ""):
            job = store.claim(now_ms=1, worker="w", lease_ms=10)
            assert job is not None
            assert store.fail(job, reason=reason, run_at_ms=0, dead=False)
        job = store.claim(now_ms=1, worker="w", lease_ms=10)
        assert job is not None
        store.write(ANA, lambda view: view.finish(job, 2))
        ran = [f"job.{word}" for word in "queued running failed running queued running queued running done".split()]

        assert kinds_and_refs(store, after=before) == [(kind, job.id) for kind in ran]

    def test_a_job_that_is_stopped_and_taken_up_again_is_told(self, store: Store) -> None:
        store.write(ANA, lambda view: view.want("x", "", wanted=1, run_at_ms=0, now_ms=0))
        (job,) = store.jobs()
        assert store.cancel(job.id)
        assert store.retry(job.id, 5)
        assert not store.cancel("nobody")
        assert [kind for kind, _ in kinds_and_refs(store)] == ["job.queued", "job.cancelled", "job.queued"]

    def test_choices_and_prompts_are_told_without_their_words(self, store: Store) -> None:
        store.write(ALL, lambda view: view.save_consent(ConsentRow("", "paused", 1)))
        store.write(ALL, lambda view: view.set_blocked_topic("", "a secret", blocked=True, now_ms=1))
        store.write(ANA, lambda view: say(view, "one"))
        store.write(ALL, lambda view: view.add_prompt(PromptRow("chunk_summary", 1, "another secret", 1)))

        found = kinds_and_refs(store)
        assert found[:2] == [("consent.changed", "paused"), ("consent.changed", "")]
        assert found[3] == ("prompt.changed", "chunk_summary")

    def test_what_is_undone_is_not_told(self, store: Store) -> None:
        def fails(view: WriteView) -> None:
            say(view, "one")
            raise HoldfastError("no")

        with pytest.raises(HoldfastError):
            store.write(ANA, fails)
        assert events_of(store) == ()

    def test_reading_and_using_tell_nothing(self, store: Store) -> None:
        store.write(ANA, lambda view: say(view, "one"))
        before = newest_id(store)
        store.read(ANA, lambda view: view.messages())
        store.write(ANA, lambda view: view.save_uses(view.uses([])))
        store.write(ANA, lambda view: view.save_prefix("layered", "sha", "{}"))
        assert newest_id(store) == before

    def test_reading_goes_on_after_any_number(self, store: Store) -> None:
        for word in ("one", "two", "three"):
            store.write(ANA, append_word(word))
        found = events_of(store)

        for at, event in enumerate(found):
            assert events_of(store, after=event.id) == found[at + 1 :]
        assert store.read(ANA, lambda view: view.news(0, limit=2)) == News(found[-1].id, found[:2])
        assert store.read(ANA, lambda view: view.events_before(None, limit=2)) == [found[2], found[1]]
        assert store.read(ANA, lambda view: view.events_before(found[1].id, limit=9)) == [found[0]]

    def test_a_number_that_is_not_kept_is_lost(self, store: Store) -> None:
        store.write(ANA, lambda view: say(view, "one"))
        first = newest_id(store)
        assert store.read(ANA, lambda view: view.news(first - 1, limit=9)).events
        for lost in (first - 2, first + 1, 5):
            assert store.read(ANA, methodcaller("news", lost, limit=9)) == News(first, lost=True)
        assert store.read(BO, lambda view: view.news(5, limit=9)) == News(0, lost=True)
        assert store.read(BO, lambda view: view.news(0, limit=9)) == News(0)

    def test_news_of_many_are_of_those_who_have_any(self, store: Store) -> None:
        for scope in (ANA, BO):
            store.write(scope, lambda view: say(view, "one"))
        heads = {
            ANA.user_key: newest_id(store),
            BO.user_key: 0,
            ("acme", "cy", "support"): 0,
            ("acme", "di", "support"): 7,
        }

        assert store.news(heads, limit=9) == {
            BO.user_key: News(newest_id(store, BO), events_of(store, BO)),
            ("acme", "di", "support"): News(0, lost=True),
        }

    def test_a_change_is_noticed(self, store: Store) -> None:
        store.changes()
        for scope in (ANA, BO):
            before = store.changes()
            store.write(scope, lambda view: say(view, "one"))
            assert store.changes() != before

    def test_old_rows_go_and_the_rest_has_no_gap(self, store: Any) -> None:
        now = datetime(2026, 1, 1, tzinfo=UTC)
        store.clock, store.event_limits = (lambda: now), EventLimits(rows=300, days=10)
        store.write(ANA, lambda view: say(view, "one"))
        first = newest_id(store)
        for _ in range(600):
            store.write(ALL, lambda view: view.set_blocked_topic("", "x", blocked=True, now_ms=1))
        kept = events_of(store)
        assert 300 <= len(kept) <= 300 + 256
        assert store.read(ANA, lambda view: view.news(first, limit=9)).lost
        now += timedelta(days=11)
        for _ in range(256):
            store.write(ALL, lambda view: view.set_blocked_topic("", "x", blocked=True, now_ms=1))
        assert len(events_of(store)) <= 256

    def test_a_removed_conversation_is_not_named_any_more(self, store: Store) -> None:
        other = ANA.within("other")
        for scope in (ANA, other):
            store.write(scope, lambda view: say(view, "one"))
        before = newest_id(store)

        def clear(view: WriteView) -> None:
            say(view, "two")
            view.remove_docs("self", "message", [row.doc for row in view.message_rows()])
            view.remove_conversation()

        store.write(ANA, clear)
        assert kinds_and_refs(store, after=before) == [("erased", "conversation")]
        assert [(event.conversation, event.ref) for event in events_of(store)] == [
            ("", ""), ("other", "1"), ("", "conversation"),
        ]  # fmt: skip

    def test_a_removed_subject_is_not_named_any_more(self, store: Store) -> None:
        rex = replace(ANA, subject="rex", conversation=None)
        store.write(rex, lambda view: view.set_blocked_topic("rex", "vet", blocked=True, now_ms=1))
        store.write(ANA, lambda view: say(view, "one"))
        store.write(rex, lambda view: view.forget_subject())
        assert [(event.kind, event.subject) for event in events_of(store)] == [
            ("consent.changed", ""), ("message.added", "self"), ("erased", ""),
        ]  # fmt: skip

    def test_a_removed_subject_is_not_named_by_changes_of_the_same_write(self, store: Store) -> None:
        rex = replace(ANA, subject="rex", conversation="vet")

        def write_and_forget(view: WriteView) -> None:
            say(view, "one")
            view.forget_subject()

        store.write(rex, write_and_forget)
        assert {(event.subject, event.conversation) for event in events_of(store)} == {("", "")}

    def test_of_a_removed_user_the_org_knows_only_that_there_was_one(self, store: Store) -> None:
        for scope in (ANA, BO):
            store.write(scope, lambda view: say(view, "one"))
        before, bos = newest_id(store), events_of(store, BO)

        def remove(view: WriteView) -> None:
            say(view.at("self", "x"), "two")
            view.remove_user()

        with acting("key1"):
            store.write(ALL, remove)

        assert store.read(ANA, lambda view: view.news(before, limit=9)) == News(0, lost=True)
        assert events_of(store, BO) == bos
        (event,) = store.events_of_org("acme", None, limit=9)
        assert (event.kind, event.actor, event.user, event.ref) == ("erased", "key1", "", "user")
        assert store.events_of_org("other", None, limit=9) == []
        assert store.users() == [BO.user_key]
        store.write(ANA, lambda view: say(view, "back again"))
        assert newest_id(store) > before
        assert store.read(ANA, lambda view: view.news(before, limit=9)).lost

    def test_keys_are_told_to_their_org(self, store: Store) -> None:
        with acting("boss"):
            store.add_key(KEY, expired_before_ms=0)
            assert store.revoke_key("acme", "k1", 5)
            assert not store.revoke_key("acme", "k1", 6)
        found = store.events_of_org("acme", None, limit=9)

        assert [(event.kind, event.ref, event.actor) for event in found] == [
            ("key.revoked", "k1", "boss"), ("key.made", "k1", "boss"),
        ]  # fmt: skip
        assert store.events_of_org("acme", found[0].id, limit=9) == found[1:]

    def test_a_record_holds_no_text(self, store: Store) -> None:
        store.write(ANA, lambda view: say(view, "a Quorvaneqqa was here"))
        store.write(ANA, lambda view: learn(view, "Zephyrine"))
        store.write(ALL, lambda view: view.set_blocked_topic("", "Wexlibop", blocked=True, now_ms=1))
        words = repr(events_of(store)).lower()
        assert not {word for word in ("quorvaneqqa", "zephyrine", "wexlibop") if word in words}


CY = Scope("other", "support", "cy", conversation="chat")
DAY = UsageRow("2026-01-02", "facts", "m", calls=2, failed=1, input_tokens=10, output_tokens=3, cached_tokens=4, cost=9)


def add_usage(store: Store, scope: Scope, *rows: UsageRow) -> None:
    def work(view: WriteView) -> None:
        if view.user() == UserRow():
            view.save_user(UserRow(epoch=1), 1)
        for row in rows:
            view.add_usage(row)

    store.write(scope, work)


class ModelsContract:
    """Counters of usage, versions of prompts, waiting jobs."""

    def test_counters_of_one_day_purpose_and_model_rise_and_others_stand_apart(self, store: Store) -> None:
        earlier = replace(DAY, day="2026-01-01")
        other = replace(DAY, layer="episodes", unpriced=1)
        add_usage(store, ANA, DAY, earlier, other, DAY)
        twice = replace(DAY, calls=4, failed=2, input_tokens=20, output_tokens=6, cached_tokens=8, cost=18)

        assert store.read(ANA, lambda view: view.usage()) == [earlier, other, twice]
        assert store.read(ANA, lambda view: view.usage("2026-01-02")) == [other, twice]
        assert store.read(BO, lambda view: view.usage()) == []

    def test_old_days_are_removed(self, store: Store) -> None:
        add_usage(store, ANA, DAY, replace(DAY, day="2025-12-31"))
        store.write(ANA, lambda view: view.remove_usage("2026-01-01"))

        assert store.read(ANA, lambda view: view.usage()) == [DAY]

    def test_usage_is_summed_over_what_nobody_asks_for(self, store: Store) -> None:
        add_usage(store, ANA, DAY, replace(DAY, layer="episodes"))
        add_usage(store, BO, DAY)
        add_usage(store, CY, replace(DAY, day="2026-01-05", model="n", cost=2**53))
        whole = [(("", "", ""), UsageRow("", "", "", 8, 4, 40, 12, 16, 27 + 2**53, 0))]

        assert store.usage([]) == whole
        assert [key for key, _ in store.usage(["org", "user", "bot"])] == [
            (scope.org, scope.user, scope.bot) for scope in (ANA, BO, CY)
        ]
        assert [(row.day, row.model, row.calls) for _, row in store.usage(["day", "model"])] == [
            ("2026-01-02", "m", 6),
            ("2026-01-05", "n", 2),
        ]
        assert [row.calls for _, row in store.usage([], since="2026-01-03")] == [2]
        assert [row.calls for _, row in store.usage([], until="2026-01-03")] == [6]
        assert [row.calls for _, row in store.usage(["layer"], org="acme", user="ana")] == [2, 2]
        assert store.usage([], bot="nobody") == []

    def test_every_version_of_a_prompt_is_kept_until_it_is_removed(self, store: Store) -> None:
        rows = [PromptRow("chunk_summary", number, f"words {number}", number) for number in (1, 2, 3)]
        other = PromptRow("meta_summary", 1, "", 5)

        def work(view: WriteView) -> None:
            say(view, "one")
            for row in (other, *rows):
                view.add_prompt(row)

        store.write(ANA, work)
        assert store.read(ANA, lambda view: view.prompts()) == [*rows, other]
        assert store.read(BO, lambda view: view.prompts()) == []
        store.write(ANA, lambda view: view.remove_prompts("chunk_summary", 2))
        assert store.read(ANA, lambda view: view.prompts()) == [rows[2], other]

    def test_how_often_a_key_is_used_is_changed_by_one_at_a_time(self, store: Store) -> None:
        first = RateRow("k1", version=1, requests_at=2**50, tokens_at=7, booked_until=8, closed_until=9)
        second = replace(first, version=2, tokens_at=70)

        assert store.rate("k1") == RateRow("k1")
        assert store.save_rate(first, idle_before=0)
        assert not store.save_rate(first, idle_before=0)
        assert store.save_rate(second, idle_before=0)
        assert not store.save_rate(replace(second, tokens_at=1), idle_before=0)
        assert (store.rate("k1"), store.rate("k2")) == (second, RateRow("k2"))
        assert store.save_rate(replace(first, id="k2"), idle_before=2**51)
        assert store.rate("k1") == RateRow("k1")

    def test_how_long_calls_took_is_added_up_and_forgotten_by_hour(self, store: Store) -> None:
        assert store.call_times("search", 0) == []
        store.add_call_times({("search", 7, -3): 2, ("search", 8, 1): 1, ("context", 7, 0): 5}, before_hour=0)
        store.add_call_times({("search", 8, 1): 10}, before_hour=8)

        assert sorted(store.call_times("search", 0)) == [(8, 1, 11)]
        assert store.call_times("context", 0) == [(7, 0, 5)]
        assert store.call_times("context", 8) == []

    def test_only_jobs_that_were_told_to_wait_are_released(self, store: Store) -> None:
        for scope, reason in ((ANA, "waiting: budget"), (BO, "model timed out"), (CY, "waiting: budget")):
            store.write(scope, lambda view: say(view, "one"))
            store.write(scope, lambda view: view.want("x", "", wanted=1, run_at_ms=0, now_ms=0))
            job = store.claim(now_ms=1, worker="w", lease_ms=10, user=scope)
            assert job is not None
            assert store.fail(job, reason=reason, run_at_ms=99, dead=False)

        assert store.release_waiting(5) == 2
        assert sorted((job.user, job.run_at_ms) for job in store.jobs()) == [("ana", 5), ("bo", 99), ("cy", 5)]
        assert store.release_waiting(5) == 0


SEAL = "c2VhbGVkIGFuZCBub3QgcmVhZGFibGUgYnkgYW55Ym9keQ=="
ROW = ProviderKeyRow("acme", "ana", "k1", "openai", "m", "https://api.openai.com/v1", "0a1b2c3d", SEAL, "x7qp", 5)
OF_ORG = replace(ROW, user="", id="k2")
OF_BO = replace(ROW, user="bo", id="k3")
ELSEWHERE = replace(ROW, org="other", id="k4")


class VaultContract:
    """Provider keys: kept per owner, found by the owner only, gone with the user."""

    def test_keys_of_one_owner_come_newest_first_and_nobody_elses_with_them(self, store: Store) -> None:
        assert not store.any_provider_key()
        newer = replace(ROW, id="k5", provider="google", set_at=9)
        for row in (ROW, OF_ORG, OF_BO, ELSEWHERE, newer):
            store.save_provider_key(row)

        assert store.provider_keys("acme", "ana") == [newer, ROW]
        assert store.provider_keys("acme", "") == [OF_ORG]
        assert store.provider_keys("acme", "eve") == []
        assert store.any_provider_key()

    def test_there_is_one_key_for_each_provider(self, store: Store) -> None:
        other = replace(ROW, id="k9", model="n", set_at=7)
        for row in (ROW, OF_BO, other):
            store.save_provider_key(row)

        assert store.provider_keys("acme", "ana") == [other]
        assert store.provider_keys("acme", "bo") == [OF_BO]

    def test_only_its_owner_can_remove_it(self, store: Store) -> None:
        store.save_provider_key(ROW)

        assert not store.remove_provider_key("acme", "bo", "k1")
        assert not store.remove_provider_key("other", "ana", "k1")
        assert store.remove_provider_key("acme", "ana", "k1")
        assert not store.remove_provider_key("acme", "ana", "k1")

    def test_a_new_seal_takes_the_place_of_the_one_it_was_made_from(self, store: Store) -> None:
        store.save_provider_key(ROW)
        again = replace(ROW, master="ffffffff", sealed=SEAL[::-1])

        assert store.keys_to_reseal("ffffffff") == [ROW]
        assert store.reseal_provider_key(again, SEAL)
        assert not store.reseal_provider_key(again, SEAL)
        assert store.keys_to_reseal("ffffffff") == []

    def test_an_erased_user_leaves_no_key(self, store: Store) -> None:
        for row in (ROW, OF_ORG, OF_BO, ELSEWHERE):
            store.save_provider_key(row)
        user = ANA.about(None)
        assert store.write(user, lambda view: view.count_rows())["provider_key"] == 1
        store.write(user, lambda view: view.remove_user())

        assert store.provider_keys("acme", "ana") == []
        assert [store.provider_keys(*owner) for owner in (("acme", ""), ("acme", "bo"), ("other", "ana"))] == [
            [OF_ORG],
            [OF_BO],
            [ELSEWHERE],
        ]
