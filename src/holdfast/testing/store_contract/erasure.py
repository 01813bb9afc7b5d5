"""The store contract for erasure, consent, and the versions of derived rows."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from operator import methodcaller
from typing import Any

import pytest

from ...scope import Scope
from ...store import (
    ConsentRow,
    Derivation,
    Partition,
    RebuildRow,
    Side,
    Store,
    SubjectRow,
    UserRow,
    WriteView,
)
from ...store.segments import encode, pack_columns
from ...types import Message
from .. import rows as test_rows
from ..rows import (
    ANA,
    END_MS,
    add_older_version,
    end_fact,
    fill_another_conversation,
    fill_conversation,
    fill_other_tables,
    learn,
    read_everything,
    remove_everything,
    say,
    scope_pairs,
    summarize,
    swap_versions,
)
from .memory import LOOKALIKES, scope_of

BO = replace(ANA, user="bo")
REX = ANA.about("rex")
ALL = replace(ANA, subject=None, conversation=None)


def fill_all_tables(view: WriteView) -> None:
    """Write a row into every table."""
    say(view, "one two", "three", "four")
    summarize(view, 1, 2)
    old = learn(view, "Faro")
    end_fact(view, old, at_ms=END_MS)
    learn(view, "Lisbon")
    view.add_derivations([Derivation("end", old.fact.id, "message", view.scope.subject or "", "chat", 3, 3)])
    fill_other_tables(view)
    first = view.docs(Partition(view.scope.subject or "", "message"))[0]
    here = {"subject": first.subject, "kind": "message", "first_doc": first.doc, "last_doc": first.doc}
    packed = encode(pack_columns(view.columns(Partition(first.subject, "message"), last=first.doc)))
    view._run("add_segment", docs=1, terms=first.terms, embedder=first.embedded, data=packed, **here)


def append_with_job(view: WriteView) -> None:
    """Append a message, and queue a job for its conversation."""
    say(view, "one")
    view.want("x", "", wanted=1, run_at_ms=0, now_ms=0)


class EraseContract:
    """Erased messages, removed facts, removed ranges, consent and topics."""

    @pytest.mark.parametrize("pair", [*LOOKALIKES, *scope_pairs()], ids=str)
    def test_what_is_taken_from_one_is_taken_from_nobody_else(
        self, store: Store, pair: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Even where ids are the same: an id is unique within its user, not beyond."""
        one, other = map(scope_of, pair)
        for scope in (one, other):
            if one.user != other.user:
                numbers = count()
                monkeypatch.setattr(test_rows, "new_id", lambda kind, now_ms, n=numbers: f"{kind}_{next(n)}")
            store.write(scope, fill_conversation)
        before = store.read(other, read_everything)
        store.write(one, remove_everything)
        assert store.read(other, read_everything) == before
        if one.user != other.user:
            self._from_a_whole_user(store, one, other)
            assert store.read(other, read_everything) == before

    def _from_a_whole_user(self, store: Store, one: Scope, other: Scope) -> None:
        """Check that removals from the whole user *one* leave the rows, the consent and the job of *other*."""
        job = store.claim(now_ms=5, worker="w", lease_ms=1000, user=other)
        assert job is not None
        paused = ConsentRow("", "paused", 1)
        store.write(other, methodcaller("save_consent", paused))
        store.write(replace(one, conversation=None), fill_another_conversation)
        rows = store.write(other, lambda view: view.count_rows())
        for call in (
            methodcaller("remove_all_rejected"),
            methodcaller("remove_prefixes"),
            methodcaller("remove_usage", "9999"),
            methodcaller("remove_prompts", "chunk_summary", 99),
            methodcaller("release_jobs", 9),
            methodcaller("remove_jobs"),
            methodcaller("save_consent", paused),
            methodcaller("save_consent", replace(paused, state="active")),
            methodcaller("set_blocked_topic", "", "health", blocked=False, now_ms=1),
            methodcaller("save_subject", SubjectRow("luna", "Max", (), 1)),
            methodcaller("remove_subject", "luna"),
            methodcaller("remove_user"),
        ):
            store.write(replace(one, subject=None, conversation=None), call)
            assert store.write(other, lambda view: view.count_rows()) == rows, call
        assert store.write(other, lambda view: view.holds(job))
        assert store.read(other, lambda view: view.consent()) == [paused]
        store.write(other, lambda view: view.finish(job, 9))
        store.write(other, methodcaller("save_consent", replace(paused, state="active")))

    def test_a_past_fact_is_found_by_what_replaced_it_within_its_user(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(test_rows, "new_id", lambda kind, now_ms: f"{kind}_same")
        mine = Scope("org", "bot", "user").within("chat")
        others = [replace(mine, org="other"), replace(mine, user="other"), replace(mine, bot="other")]

        def replaced(view: WriteView) -> None:
            row = learn(view, "Faro")
            end_fact(view, row, at_ms=END_MS, because="replaced", by=row.fact.id)

        for other in others:
            store.write(other, replaced)

        assert store.write(mine, lambda view: view.replaced_by("self", "fact_same")) == []
        assert len(store.write(others[0], lambda view: view.replaced_by("self", "fact_same"))) == 1

    def test_only_the_refusals_that_the_scope_sees_are_removed(self, store: Store) -> None:
        for scope in (ANA, REX):
            store.write(scope, fill_conversation)
        assert store.write(replace(REX, conversation=None), lambda view: view.remove_all_rejected()) == 1
        assert len(store.read(ALL, lambda view: view.rejected())) == 1

    def test_jobs_of_one_conversation_are_removed_alone(self, store: Store) -> None:
        for scope in (ANA, ANA.within("other")):
            store.write(scope, append_with_job)
        store.write(ANA, lambda view: view.remove_jobs())
        assert [job.conversation for job in store.jobs()] == ["other"]

    def test_an_erased_message_leaves_its_number(self, store: Store) -> None:
        def erase(view: WriteView) -> None:
            say(view, "one", "two", "three")
            row = view.message_rows(start_seq=2, end_seq=2)[0]
            view.remove_docs("self", "message", [row.doc])
            blank = replace(row.message, role="erased", content="", name=None, meta={}, tokens=0)
            view.rewrite_message(replace(row, message=blank, doc=0))

        store.write(ANA, erase)

        assert [m.seq for m in store.read(ANA, lambda view: view.messages())] == [1, 3]
        assert [m.seq for m in store.read(ANA, lambda view: view.messages(limit=2))] == [1, 3]
        assert [row.message.role for row in store.read(ANA, lambda view: view.message_rows())] == [
            "user",
            "erased",
            "user",
        ]

    def test_a_rewritten_message_comes_back_as_it_was_written(self, store: Store) -> None:
        def rewrite(view: WriteView) -> Message:
            say(view, "one")
            (row,) = view.message_rows()
            new = replace(row.message, content="喝 \u2028", name="Zoë", meta={"a": [1]}, tokens=7)
            view.rewrite_message(replace(row, message=new))
            return new

        new = store.write(ANA, rewrite)

        assert store.read(ANA, lambda view: view.messages()) == [new]

    def test_a_removed_fact_leaves_nothing(self, store: Store) -> None:
        def remove(view: WriteView) -> None:
            row = learn(view, "Lisbon")
            view.remove_docs("self", "fact", [row.doc])
            view.remove_fact(row)

        store.write(ANA, remove)

        rows = store.write(ANA, lambda view: view.count_rows())
        assert (rows["fact"], rows["evidence"], rows["derivation"]) == (0, 0, 0)

    def test_what_was_replaced_can_be_found(self, store: Store) -> None:
        def history(view: WriteView) -> tuple[list[str], list[str]]:
            old = learn(view, "Faro")
            end_fact(view, old, at_ms=END_MS)
            new = learn(view, "Lisbon")
            ended = view.all_facts_in("self", "home")[0]
            view.update_fact(replace(ended, fact=replace(ended.fact, superseded_by=new.fact.id)))
            return [row.fact.value for row in view.replaced_by("self", new.fact.id)], [
                row.fact.value for row in view.replaced_by("self", old.fact.id)
            ]

        assert store.write(ANA, history) == (["Faro"], [])

    def test_a_removed_quote_takes_its_edge_only_when_it_was_the_last(self, store: Store) -> None:
        def remove(view: WriteView) -> list[list[tuple[str, str]]]:
            row = learn(view, "Lisbon")
            first = row.fact.evidence[0]
            second = replace(first, start=0, end=2, quote="it")
            view.add_evidence("self", row.fact.id, "self", second, END_MS)
            view.remove_evidence("self", row.fact.id, second)
            kept = view.derived_from(1, 1)
            view.add_evidence("self", row.fact.id, "self", second, END_MS)
            view.remove_evidence("self", row.fact.id, first)
            view.remove_evidence("self", row.fact.id, second)
            left = view.derived_from(1, 1)
            view.remove_docs("self", "fact", [row.doc])
            view.remove_fact(row)
            return [kept, left]

        kept, left = store.write(ANA, remove)
        assert [kind for kind, _ in kept] == ["fact"]
        assert left == []

    def test_a_quote_is_removed_from_its_own_conversation(self, store: Store) -> None:
        def remove(view: WriteView) -> list[str]:
            row = learn(view, "Lisbon")
            there = replace(row.fact.evidence[0], conversation="other")
            say(view.at("self", "other"), "it is Lisbon now")
            view.add_evidence("self", row.fact.id, "self", there, END_MS)
            view.add_derivations([Derivation("fact", row.fact.id, "message", "self", "other", 1, 1)])
            view.remove_evidence("self", row.fact.id, there)
            (left,) = view.facts()
            return [e.conversation for e in left.fact.evidence] + [kind for kind, _ in view.derived_from(1, 1)]

        assert store.write(ANA, remove) == ["chat", "fact"]

    def test_removed_summaries_uncover_their_messages(self, store: Store) -> None:
        def remove(view: WriteView) -> None:
            say(view, "one", "two")
            summarize(view, 1, 2)
            (row,) = view.summary_rows()
            assert row.live
            view.remove_docs("self", "summary", [row.doc])
            view.remove_summaries([row.summary])
            conversation = view.conversation()
            assert conversation is not None
            view.save_conversation(replace(conversation, chunk_start=1))

        store.write(ANA, remove)

        assert store.read(ANA, lambda view: view.covered(1, 2)) == {}
        assert store.read(ANA, lambda view: view.derived_from(1, 2)) == []

    def test_an_older_version_covers_nothing_and_is_not_live(self, store: Store) -> None:
        def add(view: WriteView) -> None:
            say(view, "one", "two")
            new = summarize(view, 1, 2)
            view.add_summary(replace(new, id="sum_old", version=0), 0, (), live=False)

        store.write(ANA, add)

        assert len(store.read(ANA, lambda view: view.summaries())) == 1
        assert len(store.read(ANA, lambda view: view.summaries(live=False))) == 2
        assert [row.live for row in store.read(ANA, lambda view: view.summary_rows())] == [False, True]

    def test_a_key_outlives_the_body_that_it_stood_for(self, store: Store) -> None:
        def forget(view: WriteView) -> None:
            say(view, "one", "two", "three")
            view.add_idempotency("a", "d1", 1, 2, END_MS)
            view.add_idempotency("b", "d2", 3, 3, END_MS)
            view.forget_idempotency_digests(2, 2)

        store.write(ANA, forget)

        assert store.read(ANA, lambda view: view.keys()) == [("a", "", 1, 2), ("b", "d2", 3, 3)]

    def test_released_jobs_are_lost_to_their_workers(self, store: Store) -> None:
        store.write(ANA, append_with_job)
        job = store.claim(now_ms=5, worker="w", lease_ms=1000)
        assert job is not None
        store.write(ANA, lambda view: view.release_jobs(7))

        assert not store.write(ANA, lambda view: view.holds(job))
        again = store.claim(now_ms=7, worker="v", lease_ms=1000)
        assert again is not None
        assert again.fence == job.fence + 1

    def test_jobs_are_removed_by_scope(self, store: Store) -> None:
        for scope in (ANA, REX, BO):
            store.write(scope, append_with_job)
        store.write(REX, lambda view: view.remove_jobs())
        assert sorted((job.user, job.subject) for job in store.jobs()) == [("ana", "self"), ("bo", "self")]
        store.write(ALL, lambda view: view.remove_jobs())
        assert [job.user for job in store.jobs()] == ["bo"]

    def test_a_removed_user_leaves_nothing_but_the_choice(self, store: Store) -> None:
        for scope in (ANA, BO):
            store.write(scope, fill_all_tables)
        store.write(REX, lambda view: say(view, "one"))
        before = store.write(BO, lambda view: view.count_rows())
        assert all(number for table, number in before.items() if table not in ("consent", "provider_key"))
        store.write(ALL, lambda view: view.save_consent(ConsentRow("", "opted-out", 5)))
        store.write(ALL, lambda view: view.remove_user())

        left = store.write(ALL, lambda view: view.count_rows())
        assert {table for table, number in left.items() if number} == {"consent"}
        assert store.read(ALL, lambda view: view.user()) == UserRow()
        assert store.write(BO, lambda view: view.count_rows()) == before

    def test_a_removed_conversation_leaves_the_others(self, store: Store) -> None:
        other = ANA.within("other")
        for scope in (ANA, REX, other):
            store.write(scope, lambda view: say(view, "one", "two"))
            store.write(scope, lambda view: view.add_idempotency("k", "d", 1, 1, END_MS))

        def clear(view: WriteView) -> None:
            view.remove_docs("self", "message", [row.doc for row in view.message_rows()])
            view.remove_conversation()

        store.write(ANA, clear)

        assert store.read(ANA, lambda view: (view.conversation(), view.messages(), view.keys())) == (None, [], [])
        for scope in (REX, other):
            assert len(store.read(scope, lambda view: view.messages())) == 2
            assert store.read(scope, lambda view: view.keys()) == [("k", "d", 1, 1)]

    def test_choices_are_kept_by_subject(self, store: Store) -> None:
        whole, rex = ConsentRow("", "paused", 5), ConsentRow("rex", "opted-out", 6)
        for row in (whole, rex):
            store.write(ALL, methodcaller("save_consent", row))

        assert store.read(ALL, lambda view: view.consent()) == [whole, rex]
        assert store.read(ANA, lambda view: view.consent()) == [whole]
        assert store.read(REX, lambda view: view.consent()) == [whole, rex]
        assert store.read(BO, lambda view: view.consent()) == []
        store.write(ALL, lambda view: view.save_consent(replace(whole, state="active")))
        assert store.read(ALL, lambda view: view.consent()) == [rex]

    def test_topics_are_kept_once_and_taken_back(self, store: Store) -> None:
        for topic in ("health", "work", "health"):
            store.write(ALL, methodcaller("set_blocked_topic", "", topic, blocked=True, now_ms=1))
        store.write(ALL, lambda view: view.set_blocked_topic("rex", "vet", blocked=True, now_ms=1))

        assert store.read(ANA, lambda view: view.blocked_topics()) == [("", "health"), ("", "work")]
        assert store.read(REX, lambda view: view.blocked_topics()) == [("", "health"), ("", "work"), ("rex", "vet")]
        store.write(ALL, lambda view: view.set_blocked_topic("", "health", blocked=False, now_ms=1))
        assert store.read(ANA, lambda view: view.blocked_topics()) == [("", "work")]
        assert store.read(BO, lambda view: view.blocked_topics()) == []

    def test_a_view_of_another_place_is_of_the_same_user_and_moment(self, store: Store) -> None:
        def work(view: WriteView) -> tuple[int, int, int]:
            say(view, "one")
            elsewhere = view.at("rex", "vet")
            say(elsewhere, "two", "three")
            return len(view.messages()), len(elsewhere.messages()), len(view.at(None, None).conversations())

        assert store.write(ANA, work) == (1, 2, 2)
        assert store.read(BO, lambda view: view.at("rex", "vet").messages()) == []

    def test_a_scrubbed_store_holds_no_trace(self, store: Store) -> None:
        store.write(ANA, lambda view: say(view, "a Quorvaneqqa was here", "and a Zephyrine stays"))

        def erase(view: WriteView) -> None:
            row = view.message_rows()[0]
            view.remove_docs("self", "message", [row.doc])
            blank = replace(row.message, role="erased", content="", name=None, meta={}, tokens=0)
            view.rewrite_message(replace(row, message=blank, doc=0))

        store.write(ANA, erase)
        found = store.scrub([b"Quorvaneqqa", b"Zephyrine"])

        assert found.found == 0
        assert found.searched == 2 or found.why, "a store that cannot search its bytes says why"
        assert store.read(ANA, lambda view: [m.content for m in view.messages()]) == ["and a Zephyrine stays"]


def add_two_levels(view: WriteView) -> None:
    """Write four messages in two chunks, under one higher summary."""
    say(view, "one", "two", "three", "four")
    summarize(view, 1, 4, [summarize(view, 1, 2), summarize(view, 3, 4)])


Spans = list[tuple[int, int]]


class RemadeContract:
    """Versions of summaries, rebuilt ranges, readings."""

    def test_versions_change_places_with_what_they_cover(self, store: Store) -> None:
        """The replaced version covers nothing and is no longer active; the other covers its range."""

        def work(view: WriteView) -> str:
            say(view, "one", "two")
            new = summarize(view, 1, 2)
            old = add_older_version(view, new)
            rows = {row.summary.id: row for row in view.summary_rows()}
            swap_versions(view, rows[new.id], replace(rows[old.id], doc=0))
            view.rewrite_summary(replace(rows[new.id], summary=replace(new, parent=None), doc=0, live=False))
            return old.id

        with pytest.raises(_Undo):
            store.write(ANA, lambda view: _check_and_undo(view, work(view)))

    def test_a_mark_of_staleness_is_kept(self, store: Store) -> None:
        store.write(ANA, add_two_levels)

        def mark(view: WriteView) -> None:
            (row,) = (row for row in view.summary_rows() if row.summary.level == 2)
            view.rewrite_summary(replace(row, summary=replace(row.summary, stale=True)))

        store.write(ANA, mark)
        assert [s.stale for s in store.read(ANA, lambda view: view.summaries())] == [False, True, False]

    @pytest.mark.parametrize(
        ("spans", "kept"),
        [
            ([(1, 2), (3, 4)], [(1, 4)]),
            ([(1, 4), (2, 3)], [(1, 4)]),
            ([(1, 2), (4, 5)], [(1, 2), (4, 5)]),
            ([(1, 3), (1, 2)], [(1, 3)]),
            ([(4, 5), (1, 2), (3, 3)], [(1, 3), (4, 5)]),
        ],
    )
    def test_readings_that_join_become_one(self, store: Store, spans: Spans, kept: Spans) -> None:
        def work(view: WriteView) -> None:
            say(view, "one", "two", "three", "four", "five")
            for span in spans:
                view.add_read_range("m:1", *span)
            view.add_read_range("m:2", 2, 2)

        store.write(ANA, work)
        assert store.read(ANA, lambda view: view.read_ranges()) == [*(("m:1", *span) for span in kept), ("m:2", 2, 2)]

    def test_rebuilt_ranges_come_back_in_the_order_of_their_making(self, store: Store) -> None:
        side = Side(("a", "b"), (("f", "rules 1"),), (("g", 3),))
        rows = [RebuildRow("reb_2", part, "facts", 1, 2, side, Side(), "m 1", 5) for part in (0, 1)]
        rows.append(RebuildRow("reb_1", 0, "meta", 1, 2, Side(), side, "m 1", 6))

        def work(view: WriteView) -> None:
            say(view, "one", "two")
            for row in (rows[2], rows[1], rows[0]):
                view.add_rebuild(row)

        store.write(ANA, work)
        assert store.read(ANA, lambda view: view.rebuilds()) == rows
        assert store.read(ANA.about("rex").within("chat"), lambda view: view.rebuilds()) == []


class _Undo(Exception):
    """Rolls a write back after it was checked."""


def _check_and_undo(view: WriteView, now: str) -> None:
    assert view.covered(1, 2) == {1: now, 2: now}
    assert [summary.id for summary in view.summaries()] == [now]
    assert [row.doc for row in view.summary_rows()] == [0, 0]
    raise _Undo
