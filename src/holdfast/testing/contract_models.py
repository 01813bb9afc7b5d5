"""What every store must promise about the cost of models and about users's own prompts."""

from __future__ import annotations

from dataclasses import replace

from ..scope import Scope
from ..store.protocol import Store, UserRow, WriteView
from ..store.values import PaceRow, PromptRow, UsageRow
from .rows import ANA, say

BO = replace(ANA, user="bo")
CY = Scope("other", "support", "cy", conversation="chat")
DAY = UsageRow("2026-01-02", "facts", "m", calls=2, failed=1, input_tokens=10, output_tokens=3, cached_tokens=4, cost=9)


def paid(store: Store, scope: Scope, *rows: UsageRow) -> None:
    def work(view: WriteView) -> None:
        if view.user() == UserRow():
            view.save_user(UserRow(epoch=1), 1)
        for row in rows:
            view.add_usage(row)

    store.write(scope, work)


class ModelsContract:
    """Counters of usage, versions of prompts, jobs that wait."""

    def test_counters_of_one_day_purpose_and_model_rise_and_others_stand_apart(self, store: Store) -> None:
        earlier = replace(DAY, day="2026-01-01")
        other = replace(DAY, layer="episodes", unpriced=1)
        paid(store, ANA, DAY, earlier, other, DAY)
        twice = replace(DAY, calls=4, failed=2, input_tokens=20, output_tokens=6, cached_tokens=8, cost=18)

        assert store.read(ANA, lambda view: view.usage()) == [earlier, other, twice]
        assert store.read(ANA, lambda view: view.usage("2026-01-02")) == [other, twice]
        assert store.read(BO, lambda view: view.usage()) == []

    def test_old_days_are_removed(self, store: Store) -> None:
        paid(store, ANA, DAY, replace(DAY, day="2025-12-31"))
        store.write(ANA, lambda view: view.remove_usage("2026-01-01"))

        assert store.read(ANA, lambda view: view.usage()) == [DAY]

    def test_usage_is_summed_over_what_nobody_asks_for(self, store: Store) -> None:
        paid(store, ANA, DAY, replace(DAY, layer="episodes"))
        paid(store, BO, DAY)
        paid(store, CY, replace(DAY, day="2026-01-05", model="n", cost=2**53))
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
        first = PaceRow("k1", version=1, requests_at=2**50, tokens_at=7, booked_until=8, closed_until=9)
        second = replace(first, version=2, tokens_at=70)

        assert store.pace("k1") == PaceRow("k1")
        assert store.keep_pace(first, idle_before=0)
        assert not store.keep_pace(first, idle_before=0)
        assert store.keep_pace(second, idle_before=0)
        assert not store.keep_pace(replace(second, tokens_at=1), idle_before=0)
        assert (store.pace("k1"), store.pace("k2")) == (second, PaceRow("k2"))
        assert store.keep_pace(replace(first, id="k2"), idle_before=2**51)
        assert store.pace("k1") == PaceRow("k1")

    def test_only_jobs_that_were_told_to_wait_are_released(self, store: Store) -> None:
        for scope, reason in ((ANA, "waiting: budget"), (BO, "model timed out"), (CY, "waiting: budget")):
            store.write(scope, lambda view: say(view, "one"))
            store.write(scope, lambda view: view.want("x", "", wanted=1, run_at_ms=0, now_ms=0))
            job = store.claim(now_ms=1, worker="w", lease_ms=10, user=scope)
            assert job is not None
            assert store.fail(job, reason=reason, run_at_ms=99, dead=False)

        assert store.release(5) == 2
        assert sorted((job.user, job.run_at_ms) for job in store.jobs()) == [("ana", 5), ("bo", 99), ("cy", 5)]
        assert store.release(5) == 0
