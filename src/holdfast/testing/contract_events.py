"""What every store must promise about the record of what happened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import methodcaller
from typing import Any

import pytest

from ..errors import HoldfastError
from ..reports import Event, News
from ..scope import Scope, acting
from ..store.access import KeyRow
from ..store.events import Kept
from ..store.protocol import ConsentRow, Store, WriteView
from ..store.values import PromptRow
from .apart import fill_apart
from .rows import ANA, END_MS, end_fact, learn, say, summarise

ALL = replace(ANA, subject=None, conversation=None)
BO = replace(ANA, user="bo")
KEY = KeyRow("acme", "k1", "digest", "app", "", "", "", "web", 1)


def told(store: Store, scope: Scope = ANA, after: int = 0) -> tuple[Event, ...]:
    return store.read(scope, lambda view: view.news(after, limit=10_000)).events


def kinds(store: Store, scope: Scope = ANA, after: int = 0) -> list[tuple[str, str]]:
    return [(event.kind, event.ref) for event in told(store, scope, after)]


def newest(store: Store, scope: Scope = ANA) -> int:
    return store.read(scope, lambda view: view.news(0, limit=0)).newest


def saying(word: str) -> Callable[[WriteView], object]:
    return lambda view: say(view, word)


class EventsContract:
    """Rows that tell what happened: complete, in order, without a word of what was said."""

    def test_messages_are_told_by_their_numbers(self, store: Store) -> None:
        store.write(ANA, lambda view: say(view, "one"))
        store.write(ANA, lambda view: say(view, "two", "three"))

        first, second = told(store)
        assert (first.kind, first.ref, second.ref) == ("message.added", "1", "2-3")
        assert (first.subject, first.conversation, first.actor) == ("self", "chat", "local")
        assert (first.org, first.user, first.bot) == ANA.user_key
        assert second.id == first.id + 1

    def test_every_change_is_told_once_and_by_whom(self, store: Store) -> None:
        with acting("key1"):
            store.write(ANA, fill_apart)
        found = told(store)

        assert {event.actor for event in found} == {"key1"}
        assert [event.id for event in found] == list(range(found[0].id, found[0].id + len(found)))
        assert len({(event.kind, event.subject, event.conversation, event.ref) for event in found}) == len(found)
        assert {event.kind for event in found} == {
            "message.added", "summary.made", "fact.added", "job.queued", "episode.added", "consent.changed",
            "prompt.changed",
        }  # fmt: skip

    def test_what_happens_to_a_fact_is_told_by_its_end(self, store: Store) -> None:
        ends = {"replaced": "fact.replaced", "never_true": "fact.corrected", "retracted": "fact.ended"}
        for because, kind in ends.items():
            row = store.write(ANA, partial(learn, value="Faro", key=because))
            before = newest(store)
            store.write(ANA, partial(end_fact, row=row, at_ms=END_MS, because=because))
            assert kinds(store, after=before) == [(kind, row.fact.id)]
        before = newest(store)
        store.write(ANA, lambda view: view.remove_fact(row))
        assert kinds(store, after=before) == [("fact.forgotten", row.fact.id)]

    def test_a_fact_does_not_name_a_conversation_about_somebody_else(self, store: Store) -> None:
        row = store.write(ANA.about("rex"), lambda view: learn(view, "Faro"))
        (event,) = [event for event in told(store) if event.kind == "fact.added"]
        assert (event.subject, event.conversation, event.ref) == ("self", "", row.fact.id)

    def test_what_takes_away_is_told(self, store: Store) -> None:
        summary = store.write(ANA, lambda view: (say(view, "one", "two"), summarise(view, 1, 2))[1])
        before = newest(store)

        def take(view: WriteView) -> None:
            stored = view.stored()
            view.remove_docs("self", "message", [stored[0].doc])
            blank = replace(stored[0].message, role="erased", content="", name=None, meta={}, tokens=0)
            view.rewrite_message(replace(stored[0], message=blank, doc=0))
            view.rewrite_message(stored[1])
            (row,) = view.summary_rows()
            view.rewrite_summary(replace(row, summary=replace(row.summary, stale=True)))

        store.write(ANA, take)
        assert kinds(store, after=before) == [
            ("message.deleted", "1"),
            ("message.edited", "2"),
            ("summary.stale", summary.id),
        ]

    def test_jobs_are_told_through_their_life(self, store: Store) -> None:
        store.write(ANA, lambda view: say(view, "one"))
        before = newest(store)
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

        assert kinds(store, after=before) == [(kind, job.id) for kind in ran]

    def test_a_job_that_is_stopped_and_taken_up_again_is_told(self, store: Store) -> None:
        store.write(ANA, lambda view: view.want("x", "", wanted=1, run_at_ms=0, now_ms=0))
        (job,) = store.jobs()
        assert store.cancel(job.id)
        assert store.retry(job.id, 5)
        assert not store.cancel("nobody")
        assert [kind for kind, _ in kinds(store)] == ["job.queued", "job.cancelled", "job.queued"]

    def test_choices_and_prompts_are_told_without_their_words(self, store: Store) -> None:
        store.write(ALL, lambda view: view.save_consent(ConsentRow("", "paused", 1)))
        store.write(ALL, lambda view: view.set_topic("", "a secret", never=True, now_ms=1))
        store.write(ANA, lambda view: say(view, "one"))
        store.write(ALL, lambda view: view.add_prompt(PromptRow("chunk_summary", 1, "another secret", 1)))

        found = kinds(store)
        assert found[:2] == [("consent.changed", "paused"), ("consent.changed", "")]
        assert found[3] == ("prompt.changed", "chunk_summary")

    def test_what_is_undone_is_not_told(self, store: Store) -> None:
        def fails(view: WriteView) -> None:
            say(view, "one")
            raise HoldfastError("no")

        with pytest.raises(HoldfastError):
            store.write(ANA, fails)
        assert told(store) == ()

    def test_reading_and_using_tell_nothing(self, store: Store) -> None:
        store.write(ANA, lambda view: say(view, "one"))
        before = newest(store)
        store.read(ANA, lambda view: view.messages())
        store.write(ANA, lambda view: view.save_uses(view.uses([])))
        store.write(ANA, lambda view: view.save_prefix("layered", "sha", "{}"))
        assert newest(store) == before

    def test_reading_goes_on_after_any_number(self, store: Store) -> None:
        for word in ("one", "two", "three"):
            store.write(ANA, saying(word))
        found = told(store)

        for at, event in enumerate(found):
            assert told(store, after=event.id) == found[at + 1 :]
        assert store.read(ANA, lambda view: view.news(0, limit=2)) == News(found[-1].id, found[:2])
        assert store.read(ANA, lambda view: view.events_before(None, limit=2)) == [found[2], found[1]]
        assert store.read(ANA, lambda view: view.events_before(found[1].id, limit=9)) == [found[0]]

    def test_a_number_that_is_not_kept_is_lost(self, store: Store) -> None:
        store.write(ANA, lambda view: say(view, "one"))
        first = newest(store)
        assert store.read(ANA, lambda view: view.news(first - 1, limit=9)).events
        for lost in (first - 2, first + 1, 5):
            assert store.read(ANA, methodcaller("news", lost, limit=9)) == News(first, lost=True)
        assert store.read(BO, lambda view: view.news(5, limit=9)) == News(0, lost=True)
        assert store.read(BO, lambda view: view.news(0, limit=9)) == News(0)

    def test_news_of_many_are_of_those_who_have_any(self, store: Store) -> None:
        for scope in (ANA, BO):
            store.write(scope, lambda view: say(view, "one"))
        heads = {
            ANA.user_key: newest(store),
            BO.user_key: 0,
            ("acme", "cy", "support"): 0,
            ("acme", "di", "support"): 7,
        }

        assert store.news(heads, limit=9) == {
            BO.user_key: News(newest(store, BO), told(store, BO)),
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
        store.clock, store.kept = (lambda: now), Kept(rows=300, days=10)
        store.write(ANA, lambda view: say(view, "one"))
        first = newest(store)
        for _ in range(600):
            store.write(ALL, lambda view: view.set_topic("", "x", never=True, now_ms=1))
        kept = told(store)
        assert 300 <= len(kept) <= 300 + 256
        assert store.read(ANA, lambda view: view.news(first, limit=9)).lost
        now += timedelta(days=11)
        for _ in range(256):
            store.write(ALL, lambda view: view.set_topic("", "x", never=True, now_ms=1))
        assert len(told(store)) <= 256

    def test_a_removed_conversation_is_not_named_any_more(self, store: Store) -> None:
        other = ANA.within("other")
        for scope in (ANA, other):
            store.write(scope, lambda view: say(view, "one"))
        before = newest(store)

        def clear(view: WriteView) -> None:
            say(view, "two")
            view.remove_docs("self", "message", [row.doc for row in view.stored()])
            view.remove_conversation()

        store.write(ANA, clear)
        assert kinds(store, after=before) == [("erased", "conversation")]
        assert [(event.conversation, event.ref) for event in told(store)] == [
            ("", ""), ("other", "1"), ("", "conversation"),
        ]  # fmt: skip

    def test_a_removed_subject_is_not_named_any_more(self, store: Store) -> None:
        rex = replace(ANA, subject="rex", conversation=None)
        store.write(rex, lambda view: view.set_topic("rex", "vet", never=True, now_ms=1))
        store.write(ANA, lambda view: say(view, "one"))
        store.write(rex, lambda view: view.forget_subject())
        assert [(event.kind, event.subject) for event in told(store)] == [
            ("consent.changed", ""), ("message.added", "self"), ("erased", ""),
        ]  # fmt: skip

    def test_of_a_removed_user_the_org_knows_only_that_there_was_one(self, store: Store) -> None:
        for scope in (ANA, BO):
            store.write(scope, lambda view: say(view, "one"))
        before, bos = newest(store), told(store, BO)

        def remove(view: WriteView) -> None:
            say(view.at("self", "x"), "two")
            view.remove_user()

        with acting("key1"):
            store.write(ALL, remove)

        assert store.read(ANA, lambda view: view.news(before, limit=9)) == News(0, lost=True)
        assert told(store, BO) == bos
        (event,) = store.events_of_org("acme", None, limit=9)
        assert (event.kind, event.actor, event.user, event.ref) == ("erased", "key1", "", "user")
        assert store.events_of_org("other", None, limit=9) == []
        assert store.users() == [BO.user_key]
        store.write(ANA, lambda view: say(view, "back again"))
        assert newest(store) > before
        assert store.read(ANA, lambda view: view.news(before, limit=9)).lost

    def test_keys_are_told_to_their_org(self, store: Store) -> None:
        with acting("boss"):
            store.add_key(KEY, spent_before_ms=0)
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
        store.write(ALL, lambda view: view.set_topic("", "Wexlibop", never=True, now_ms=1))
        words = repr(told(store)).lower()
        assert not {word for word in ("quorvaneqqa", "zephyrine", "wexlibop") if word in words}
