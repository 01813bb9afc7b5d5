"""The store contract for messages, scopes, transactions, snapshots, facts, summaries and the search index."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from operator import methodcaller
from typing import Any

import pytest

from ...clock import to_ms
from ...errors import BadInput, Conflict, NotFound, StoreClosed
from ...scope import Scope
from ...store import ConversationRow, DocRow, FactRow, MessageRow, Partition, ReadView, Store, UserRow, WriteView
from ...store.segments import SIZE, Segment, Words, join_segments, pack_columns
from ...store.values import CHARS_SPAN, COLUMNS, SEPARATOR, SIGNALS_SPAN
from ...text.validate import replace_unstorable
from ...types import Candidate, Evidence
from ..rows import ANA, START_MS, end_fact, learn, new_fact, say, sent_at_ms, summarize

TEXTS = [
    "",
    "plain",
    " leading, trailing ",
    "two\nlines\r\nand a\ttab",
    "quotes ' \" ; -- /* */ %s :name ? \\",
    "Ünïcödé, 喝绿茶, 東京で, 개발자, שלום, مرحبا",
    "e\u0301 is not \u00e9",
    "👩‍👩‍👧‍👦 🏳️‍🌈",
    "\u202ebidi\u202c \u200bzero\ufeff width",
    "\x01\x1f\x7f controls",
    "\U0010ffff",
    "long " * 20_000,
    replace_unstorable("was NUL: \0, was a surrogate: \ud800"),
]

# Pairs of users (org, user, bot, subject, conversation) that meet when parts are joined, folded,
# trimmed, normalised, or taken for patterns.
LOOKALIKES = [
    (("a", "bc", "d", "self", "e"), ("ab", "c", "d", "self", "e")),
    (("a", "b", "cd", "self", "e"), ("a", "bc", "d", "self", "e")),
    (("a|b", "c", "d", "self", "e"), ("a", "b|c", "d", "self", "e")),
    (("a/b", "c", "d", "self", "e"), ("a", "b/c", "d", "self", "e")),
    (("a", "b", "c", "de", "f"), ("a", "b", "c", "d", "ef")),
    (("a", "b", "c", "self", "ana"), ("a", "b", "c", "self", "Ana")),
    (("a", "ana", "c", "self", "e"), ("a", "ANA", "c", "self", "e")),
    (("a", "straße", "c", "self", "e"), ("a", "strasse", "c", "self", "e")),
    (("a", "\u00e9", "c", "self", "e"), ("a", "e\u0301", "c", "self", "e")),
    (("a", "b", "c", "self", "e"), ("a", "b ", "c", "self", "e")),
    (("a", "%", "c", "self", "e"), ("a", "b", "c", "self", "e")),
    (("a", "_", "c", "self", "e"), ("a", "b", "c", "self", "e")),
    (("a", "b*", "c", "self", "e"), ("a", "bcd", "c", "self", "e")),
    (("a", "0", "c", "self", "e"), ("a", "00", "c", "self", "e")),
    (("a", "1", "c", "self", "e"), ("a", "1.0", "c", "self", "e")),
    (("a", "null", "c", "self", "e"), ("a", "NULL", "c", "self", "e")),
    (("a", "b", "c", "self", "e"), ("a", "b", "c", "rex", "e")),
    (("a", "b", "c", "self", "e"), ("a", "b", "other", "self", "e")),
    (("a", "'; DELETE FROM message; --", "c", "self", "e"), ("a", "b", "c", "self", "e")),
]


def scope_of(parts: tuple[str, str, str, str, str]) -> Scope:
    org, user, bot, subject, conversation = parts
    return Scope(org, bot, user, subject, conversation)


class MemoryContract:
    """Messages, scopes, transactions, snapshots."""

    @pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
    def test_a_message_comes_back_to_the_character(self, store: Store, text: str) -> None:
        meta = {"tool_calls": [{"id": text[:50], "n": 1.5}], "none": None, "é": [True, {}]}
        said = store.write(ANA, lambda view: say(view, text, "next", role="tool", name=text[:20] or None, meta=meta))

        assert store.read(ANA, lambda view: view.messages()) == said
        assert said[0].content == text

    def test_a_lone_surrogate_is_refused_and_leaves_nothing(self, store: Store) -> None:
        with pytest.raises(BadInput):
            store.write(ANA, lambda view: say(view, "fine", "\ud800"))

        assert store.read(ANA, lambda view: view.conversation()) is None

    def test_messages_come_in_order_and_within_bounds(self, store: Store) -> None:
        store.write(ANA, lambda view: say(view, *"abcdefghijkl"))

        def texts(**bounds: int) -> str:
            return "".join(m.content for m in store.read(ANA, lambda view: view.messages(**bounds)))

        assert texts() == "abcdefghijkl"
        assert texts(start_seq=10) == "jkl"
        assert texts(start_seq=2, end_seq=4) == "bcd"
        assert texts(start_seq=2, limit=2) == "bc"
        assert texts(limit=0) == ""
        assert texts(start_seq=13) == ""

    def test_a_user_without_memory_has_empty_counters(self, store: Store) -> None:
        assert store.read(ANA, lambda view: view.user()) == UserRow()
        assert store.read(ANA, lambda view: view.conversation()) is None
        assert store.read(ANA, lambda view: view.messages()) == []
        assert store.users() == []

    def test_counters_come_back_as_they_were_saved(self, store: Store) -> None:
        user = UserRow(next_doc=7, version=2**40, epoch=3)
        row = ConversationRow("self", "chat", 1, 1, 0, 0, 9, START_MS, START_MS)

        def save(view: WriteView, counters: UserRow, now: ConversationRow) -> None:
            view.save_user(counters, 1)
            view.save_conversation(now)

        store.write(ANA, lambda view: save(view, UserRow(), row))
        store.write(ANA, lambda view: save(view, user, replace(row, session=10)))

        assert store.read(ANA, lambda view: view.user()) == user
        assert store.read(ANA, lambda view: view.conversation()) == replace(row, session=10)

    @pytest.mark.parametrize(("mine", "theirs"), LOOKALIKES, ids=range(len(LOOKALIKES)))
    def test_scopes_that_look_alike_never_meet(
        self, store: Store, mine: tuple[str, str, str, str, str], theirs: tuple[str, str, str, str, str]
    ) -> None:
        me, they = scope_of(mine), scope_of(theirs)
        store.write(me, lambda view: say(view, "mine"))
        store.write(they, lambda view: say(view, "theirs", "theirs"))

        assert [m.content for m in store.read(me, lambda view: view.messages())] == ["mine"]
        assert [m.content for m in store.read(they, lambda view: view.messages())] == ["theirs"] * 2

    def test_conversations_are_seen_by_their_subject_in_the_order_of_code_points(self, store: Store) -> None:
        names = ["Zoe", "ana", "Émile", "bo", "a b", "ab"]
        for name in names:
            store.write(ANA.within(name), lambda view: say(view, "hi"))
        store.write(ANA.about("rex").within("vet"), lambda view: say(view, "woof"))

        def seen(scope: Scope) -> list[str]:
            return [row.conversation for row in store.read(scope, lambda view: view.conversations())]

        assert seen(ANA) == sorted(names)
        assert seen(ANA.about("rex")) == ["vet"]
        assert seen(ANA.about("cat")) == []
        assert seen(ANA.about(None)) == sorted([*names, "vet"])

    def test_a_call_about_a_conversation_needs_one(self, store: Store) -> None:
        with pytest.raises(BadInput):
            store.read(replace(ANA, conversation=None), lambda view: view.messages())
        with pytest.raises(BadInput):
            store.read(ANA.about(None), lambda view: view.messages())

    def test_a_failed_write_leaves_nothing(self, store: Store) -> None:
        def work(view: WriteView) -> None:
            say(view, "half")
            raise RuntimeError("worker died")

        with pytest.raises(RuntimeError, match="worker died"):
            store.write(ANA, work)

        assert store.read(ANA, lambda view: view.messages()) == []
        assert store.users() == []

    def test_a_message_number_is_given_once(self, store: Store) -> None:
        (said,) = store.write(ANA, lambda view: say(view, "first"))

        with pytest.raises(Conflict):
            store.write(ANA, lambda view: view.add_messages([MessageRow(said, 1, 5, START_MS)]))

    def test_a_write_sees_what_it_wrote(self, store: Store) -> None:
        assert store.write(ANA, lambda view: (say(view, "one"), view.messages())[1])[0].content == "one"

    def test_a_read_stays_at_its_moment_while_others_write(self, store: Store) -> None:
        store.write(ANA, lambda view: say(view, "one"))
        writer = threading.Thread(target=store.write, args=(ANA, lambda view: say(view, "two")))

        def work(view: ReadView) -> tuple[int, int]:
            before = len(view.messages())
            writer.start()
            writer.join(timeout=0.2)
            return before, len(view.messages())

        assert store.read(ANA, work) == (1, 1)
        writer.join()
        assert len(store.read(ANA, lambda view: view.messages())) == 2

    def test_writes_of_many_threads_are_one_after_the_other(self, store: Store) -> None:
        def write_ten() -> None:
            for _ in range(10):
                store.write(ANA, lambda view: say(view, "again"))

        threads = [threading.Thread(target=write_ten) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert [m.seq for m in store.read(ANA, lambda view: view.messages())] == list(range(1, 81))

    def test_a_failing_write_harms_none_of_those_beside_it(self, store: Store) -> None:
        failed, start = [], threading.Barrier(12)

        def write(number: int) -> None:
            def work(view: WriteView) -> None:
                say(view, f"number {number}")
                if number % 3 == 0:
                    raise ValueError(number)

            start.wait()
            try:
                store.write(ANA, work)
            except ValueError:
                failed.append(number)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        kept = sorted(m.content for m in store.read(ANA, lambda view: view.messages()))
        assert sorted(failed) == [0, 3, 6, 9]
        assert kept == sorted(f"number {n}" for n in range(12) if n % 3)

    def test_a_callers_key_is_remembered_literally(self, store: Store) -> None:
        store.write(ANA, lambda view: say(view, "one"))
        store.write(ANA, lambda view: view.add_idempotency("key_1", "digest", 1, 1, START_MS))

        assert store.read(ANA, lambda view: view.idempotency("key_1")) == ("digest", 1, 1)
        for other in ("key%", "KEY_1", "keyX1", ""):
            assert store.read(ANA, methodcaller("idempotency", other)) is None
        assert store.read(ANA.within("other"), lambda view: view.idempotency("key_1")) is None

    def test_a_prefix_is_kept_for_each_variant(self, store: Store) -> None:
        store.write(ANA, lambda view: view.save_prefix("a", "1", "{}"))
        store.write(ANA, lambda view: view.save_prefix("b", "2", "[]"))
        store.write(ANA, lambda view: view.save_prefix("a", "3", "{1}"))

        assert store.read(ANA, lambda view: (view.prefix("a"), view.prefix("b"))) == (("3", "{1}"), ("2", "[]"))
        assert store.read(ANA, lambda view: view.prefix("A")) is None

    def test_users_are_listed_by_key_and_page_by_page(self, store: Store) -> None:
        everybody = [("a", "b", "c"), ("a", "b", "d"), ("a", "é", "c"), ("B", "b", "c"), ("a b", "b", "c")]
        for org, user, bot in everybody:
            store.write(Scope(org, bot, user, conversation="x"), lambda view: say(view, "hi"))

        first = store.users(limit=2)
        rest = store.users(after=first[-1])

        assert first + rest == sorted(everybody)

    def test_health_names_the_database_and_what_was_looked_at(self, store: Store) -> None:
        """A fresh store has no findings, and names its version."""
        health = store.backend.health()

        assert health.findings == ()
        assert health.about["version"]
        assert {notice.rule for notice in health.notices} <= set(health.checked)

    def test_stats_count_rows(self, store: Store) -> None:
        store.write(ANA, lambda view: say(view, "one two", "three"))

        stats = store.stats()

        assert (stats["message"], stats["doc"], stats["user"]) == (2, 2, 1)
        assert stats["bytes"] > 0

    def test_closed_means_closed(self, store: Store) -> None:
        store.write(ANA, lambda view: say(view, "one"))
        store.close()
        store.close()

        with pytest.raises(StoreClosed):
            store.read(ANA, lambda view: view.messages())
        with pytest.raises(StoreClosed):
            store.write(ANA, lambda view: say(view, "two"))

    def test_times_keep_their_millisecond(self, store: Store) -> None:
        store.write(ANA, lambda view: say(view, "one"))

        (message,) = store.read(ANA, lambda view: view.messages())
        assert message.at is not None
        assert round(message.at.timestamp() * 1000) == sent_at_ms(1)


REX = ANA.about("rex")
CAT = ANA.about("cat")
ALL = replace(ANA, subject=None, conversation=None)


def live_values(store: Store, scope: Scope, **limits: Any) -> list[str]:
    """Return the values of the active facts that *scope* sees."""
    return [row.fact.value for row in store.read(scope, lambda view: view.facts(**limits))]


class FactsContract:
    """Facts, their evidence, and the scopes that see them."""

    def test_facts_can_come_without_their_quotes(self, store: Store) -> None:
        store.write(ANA, lambda view: learn(view, "Lisbon"))
        whole, bare = store.read(ANA, lambda view: (view.facts(), view.facts(evidence=False)))

        assert [
            replace(row, fact=replace(row.fact, evidence=(), conversation="", start_seq=0, end_seq=0)) for row in whole
        ] == bare
        assert whole[0].fact.evidence

    def test_a_fact_comes_back_whole(self, store: Store) -> None:
        row = store.write(ANA, lambda view: learn(view, "Lisbon"))

        assert store.read(ANA, lambda view: view.facts()) == [row]
        assert store.read(ANA, lambda view: view.fact(row.fact.id)) == row
        assert store.write(ANA, lambda view: view.fact_at("self", "home", "lives_in", "")) == row
        assert row.fact.evidence[0].quote == "Lisbon"

    def test_what_has_run_out_is_named_at_once(self, store: Store) -> None:
        row = store.write(ANA, lambda view: learn(view, "Lisbon"))
        store.write(ANA, lambda view: learn(view, "Porto", category="trip"))
        store.write(ANA, lambda view: view.update_fact(replace(row, expires_at=START_MS)))

        assert store.read(CAT, lambda view: view.expired(START_MS)) == {row.fact.id}
        assert store.read(ANA, lambda view: view.expired(START_MS - 1)) == set()
        assert store.read(replace(ANA, user="ben"), lambda view: view.expired(START_MS)) == set()

    def test_a_live_address_is_taken_once(self, store: Store) -> None:
        store.write(ANA, lambda view: learn(view, "Lisbon"))

        with pytest.raises(Conflict):
            store.write(ANA, lambda view: learn(view, "Porto"))
        assert live_values(store, ANA) == ["Lisbon"]
        assert len(store.read(ANA, lambda view: view.messages())) == 1

    def test_an_address_is_literal(self, store: Store) -> None:
        for key in ("lives_in", "livesXin", "Lives_in", "lives%", "lives_in "):
            store.write(ANA, partial(learn, value="Lisbon", key=key))

        assert len(live_values(store, ANA)) == 5
        found = store.write(ANA, lambda view: view.fact_at("self", "home", "lives%", ""))
        assert found is not None
        assert found.fact.key == "lives%"
        assert store.write(ANA, lambda view: view.fact_at("self", "home", "LIVES_IN", "")) is None
        assert live_values(store, ANA, category="HOME") == []
        assert live_values(store, ANA, category="hom_") == []

    def test_an_ended_fact_frees_its_address_and_stays_in_history(self, store: Store) -> None:
        old = store.write(ANA, lambda view: learn(view, "Lisbon"))
        store.write(ANA, lambda view: end_fact(view, old, at_ms=sent_at_ms(9)))
        new = store.write(ANA, lambda view: learn(view, "Porto"))

        ever = store.read(ANA, lambda view: view.all_facts())
        assert live_values(store, ANA) == ["Porto"]
        assert [(row.fact.value, row.fact.live, row.fact.ended_because) for row in ever] == [
            ("Lisbon", False, "retracted"),
            ("Porto", True, ""),
        ]
        assert ever[0].fact.evidence == old.fact.evidence
        assert store.write(ANA, lambda view: view.facts_in("self", "home")) == [new]
        assert [r.fact.id for r in store.write(ANA, lambda view: view.all_facts_in("self", "home"))] == [
            old.fact.id,
            new.fact.id,
        ]
        assert store.read(ANA, lambda view: view.all_facts(category="home", key="born_in")) == []

    def test_a_fact_cannot_come_back_to_a_taken_address(self, store: Store) -> None:
        old = store.write(ANA, lambda view: learn(view, "Lisbon"))
        store.write(ANA, lambda view: end_fact(view, old, at_ms=sent_at_ms(9)))
        store.write(ANA, lambda view: learn(view, "Porto"))

        with pytest.raises(Conflict):
            store.write(ANA, lambda view: view.update_fact(old))

    def test_an_unknown_fact_cannot_be_updated(self, store: Store) -> None:
        (said,) = store.write(ANA, lambda view: say(view, "it is Lisbon"))

        with pytest.raises(NotFound):
            store.write(ANA, lambda view: view.update_fact(new_fact(said, "Lisbon")))

    def test_facts_are_ordered_by_code_point(self, store: Store) -> None:
        names = ["Zoe", "ana", "Émile", "bo", "Ana", "a b", "ab"]
        for name in names:
            store.write(ANA, partial(learn, value=name, category="friends", key="name", multi=True))

        assert live_values(store, ANA) == sorted(names)

    def test_facts_can_be_limited_to_a_category_or_a_kind(self, store: Store) -> None:
        store.write(ANA, lambda view: learn(view, "Lisbon"))
        store.write(ANA, lambda view: learn(view, "tea", category="diet", key="drinks"))

        assert live_values(store, ANA, category="diet") == ["tea"]
        assert live_values(store, ANA, kind="attribute") == ["tea", "Lisbon"]
        assert live_values(store, ANA, kind="episode") == []
        assert live_values(store, ANA, kind="attribute", category="home") == ["Lisbon"]

    def test_a_quote_is_attached_once(self, store: Store) -> None:
        row = store.write(ANA, lambda view: learn(view, "Lisbon"))
        (again,) = store.write(ANA, lambda view: say(view, "still Lisbon"))
        quote = Evidence("chat", again.seq, "user", "Lisbon", 6, 12, again.at)

        def attach() -> bool:
            return store.write(
                ANA, lambda view: view.add_evidence("self", row.fact.id, "self", quote, sent_at_ms(again.seq))
            )

        assert (attach(), attach()) == (True, False)
        (found,) = store.read(ANA, lambda view: view.facts())
        assert [e.seq for e in found.fact.evidence] == [1, 2]
        assert found.fact.confirmations == 1

    def test_each_scope_sees_its_facts(self, store: Store) -> None:
        """Facts about the user reach every scope; those about another subject reach its scope, and the user's if unscoped."""
        store.write(ANA, lambda view: learn(view, "Lisbon"))
        store.write(ANA, lambda view: learn(view, "salmon", about="rex", key="eats"))
        store.write(REX, lambda view: learn(view, "chicken", about="rex", key="fears"))
        store.write(REX, lambda view: learn(view, "cats", key="likes"))
        store.write(CAT, lambda view: learn(view, "milk", about="cat", key="drinks"))
        store.write(replace(ANA, user="bo"), lambda view: learn(view, "Oslo"))

        assert sorted(live_values(store, ALL)) == ["Lisbon", "cats", "chicken", "milk", "salmon"]
        assert sorted(live_values(store, ANA)) == ["Lisbon", "cats", "salmon"]
        assert sorted(live_values(store, REX)) == ["Lisbon", "cats", "chicken", "salmon"]
        assert sorted(live_values(store, CAT)) == ["Lisbon", "cats", "milk"]

    def test_a_fact_out_of_sight_is_not_found(self, store: Store) -> None:
        row = store.write(REX, lambda view: learn(view, "chicken", about="rex"))

        assert store.read(ANA, lambda view: view.fact(row.fact.id)) is None
        assert store.read(CAT, lambda view: view.fact(row.fact.id)) is None
        assert store.read(replace(REX, user="bo"), lambda view: view.fact(row.fact.id)) is None
        assert store.read(ANA, lambda view: view.all_facts()) == []
        assert store.read(REX, lambda view: view.fact(row.fact.id)) == row

    def test_a_refused_claim_is_kept_once_newest_first(self, store: Store) -> None:
        claim = Candidate("attribute", "self", "home", "lives_in", "Mars", "lives in Mars", 0.9, 3, "Mars", 0)
        other = replace(claim, value="Venus", seq=4)
        for now, candidate in enumerate((claim, claim, other)):
            store.write(ANA, methodcaller("add_rejected", candidate, "quote not found", START_MS + now))

        found = store.read(ANA, lambda view: view.rejected())
        assert [r.candidate for r in found] == [other, claim]
        assert found[0].reason == "quote not found"
        assert found[0].conversation == "chat"
        assert len(store.read(ALL, lambda view: view.rejected(limit=1))) == 1
        assert store.read(ANA.within("other"), lambda view: view.rejected()) == []
        assert store.read(REX, lambda view: view.rejected()) == []

    def test_rejected_claims_are_paged_by_their_position(self, store: Store) -> None:
        claim = Candidate("attribute", "self", "home", "lives_in", "Mars", "lives in Mars", 0.9, 3, "Mars", 0)
        for number in range(7):  # four of them in the same millisecond
            store.write(ANA, methodcaller("add_rejected", replace(claim, seq=number), "no", START_MS + number // 4))
        everything = store.read(ALL, lambda view: view.rejected())
        first, last = store.read(ALL, lambda view: view.rejected_page(limit=3))
        store.write(ANA, methodcaller("add_rejected", replace(claim, seq=9), "no", START_MS + 9))

        pages = [first]
        while last is not None:
            page, last = store.read(ALL, methodcaller("rejected_page", limit=3, after=last))
            pages.append(page)
        assert [len(page) for page in pages] == [3, 3, 1]
        assert [r for page in pages for r in page] == everything

    def test_lists_come_whole_and_by_pages_in_the_same_order(self, store: Store) -> None:
        for word in ("Zoe", "ana", "Émile", "a b"):
            store.write(ANA.within(word), lambda view: say(view, "hi"))
        row = store.write(ANA, lambda view: learn(view, "Porto", category="x"))
        store.write(ANA, partial(end_fact, row=row, at_ms=START_MS + 10**6))
        for word in ("Faro", "Évora", "a", "Z"):
            store.write(ANA, partial(learn, value=word, category="home", multi=True))
        low = [store.write(ANA, partial(summarize, start_seq=seq, end_seq=seq)) for seq in (1, 2, 3)]
        store.write(ANA, lambda view: summarize(view, 1, 3, low))

        def paged(name: str, position: Callable[[Any], Any], **options: Any) -> None:
            whole = store.read(ANA, methodcaller(name, **options))
            found, last = [], None
            while page := store.read(
                ANA, methodcaller(name, **options, limit=2, **({} if last is None else {"after": last}))
            ):
                assert len(page) <= 2
                found += page
                last = position(page[-1])
            assert found == whole
            assert len(whole) > 3

        def learned(one: FactRow) -> tuple[int, str]:
            return to_ms(one.fact.recorded_at), one.fact.id

        paged("conversation_names", str)
        paged("newest_conversations", lambda one: (one.last_at, one.conversation, one.subject))
        paged("facts", lambda one: (one.fact.subject, one.fact.category, one.fact.key, one.fact.value, one.fact.id))
        paged("all_facts", lambda one: (to_ms(one.fact.valid_from), *learned(one)))
        paged("facts_said_here", lambda one: (one.fact.evidence[0].seq, *learned(one)))
        paged("summaries", lambda one: (one.start_seq, one.level, one.version, one.id))


class SummariesContract:
    """Summaries and their coverage."""

    def test_summaries_come_back_with_their_children(self, store: Store) -> None:
        store.write(ANA, lambda view: say(view, *"abcdef"))
        low = [store.write(ANA, partial(summarize, start_seq=seq, end_seq=seq + 1)) for seq in (1, 3, 5)]
        high = store.write(ANA, lambda view: summarize(view, 1, 6, low))

        found = store.read(ANA, lambda view: view.summaries())
        assert found[1] == high
        assert found == [replace(low[0], parent=high.id), high, *(replace(s, parent=high.id) for s in low[1:])]
        assert store.read(ANA, lambda view: view.summaries(level=2)) == [high]
        assert store.read(ANA.within("other"), lambda view: view.summaries()) == []

    def test_a_message_is_covered_once(self, store: Store) -> None:
        store.write(ANA, lambda view: say(view, *"abcd"))
        first = store.write(ANA, lambda view: summarize(view, 1, 2))

        def overlap(view: WriteView) -> None:
            row = replace(first, id="sum_other", start_seq=2, end_seq=3)
            with pytest.raises(Conflict):
                view.add_summary(row, 99, [2, 3])

        store.write(ANA, overlap)
        assert store.read(ANA, lambda view: view.covered(1, 4)) == {1: first.id, 2: first.id}
        assert store.read(ANA, lambda view: view.summaries()) == [first]

    def test_coverage_belongs_to_its_conversation(self, store: Store) -> None:
        for scope in (ANA, ANA.within("other"), REX):
            store.write(scope, lambda view: say(view, "a", "b"))
            store.write(scope, lambda view: summarize(view, 1, 2))

        assert len(store.read(ANA, lambda view: view.summaries())) == 1


class IndexContract:
    """Documents, terms, vectors."""

    def test_columns_say_the_same_as_documents(self, store: Store) -> None:
        store.write(ANA, lambda view: say(view, "one two", "three"))
        part = Partition("self", "message")

        docs = store.read(ANA, lambda view: view.docs(part))
        columns = store.read(ANA, lambda view: view.columns(part))
        empty = store.read(ANA, lambda view: view.columns(Partition("self", "fact")))

        assert [d.doc for d in docs] == [1, 2]
        said = tuple(SEPARATOR.join((d.conversation, d.role, d.speaker)) for d in docs)
        sizes = tuple((d.terms * CHARS_SPAN + d.chars) * SIGNALS_SPAN + d.signals for d in docs)
        plain = {
            name: tuple(getattr(d, name) for d in docs) for name in COLUMNS if name not in ("said", "sizes", "words")
        }
        assert columns == plain | {"said": said, "sizes": sizes, "words": ("one two", "three")}
        assert empty == {name: () for name in COLUMNS}

    def test_the_words_of_a_document_are_in_its_row_as_often_as_they_occur(self, store: Store) -> None:
        store.write(ANA, lambda view: say(view, "b a a b ü", "a A", "% _"))
        part = Partition("self", "message")

        def words(first: int) -> tuple[str, ...]:
            return store.read(ANA, lambda view: view.columns(part, first=first))["words"]

        assert words(0) == ("b b a a ü", "a A", "% _")
        assert words(3) == ("% _",)

    def test_texts_are_found_by_document(self, store: Store) -> None:
        store.write(ANA, lambda view: learn(view, "Lisbon"))
        store.write(ANA, lambda view: summarize(view, 1, 1))

        def texts(view: ReadView) -> dict[tuple[str, int], str]:
            kinds = ("message", "fact", "summary")
            docs = [doc for kind in kinds for doc in view.docs(Partition("self", kind))]
            return view.texts(docs)

        assert store.read(ANA, texts) == {
            ("message", 1): "it is Lisbon now",
            ("fact", 2): "lives_in Lisbon",
            ("summary", 3): "what was said",
        }

    def test_a_search_looks_where_its_scope_may(self, store: Store) -> None:
        store.write(ANA, lambda view: learn(view, "salmon", about="rex", key="eats"))
        store.write(REX, lambda view: learn(view, "chicken", about="rex", key="fears"))
        kinds = ("message", "fact")

        def parts(scope: Scope) -> set[Partition]:
            return set(store.read(scope, lambda view: view.partitions(kinds)))

        def facts(scope: Scope, part: Partition) -> int:
            columns = store.read(scope, lambda view: view.columns(part))
            return len(columns["doc"]) * 10 + " ".join(columns["words"]).count("salmon")

        shared = Partition("rex", "fact", shared_only=True)
        assert parts(ANA) == {Partition("self", "message"), Partition("self", "fact"), shared}
        assert parts(REX) == {Partition("rex", "message"), Partition("rex", "fact"), Partition("self", "fact")}
        assert parts(ALL) == {Partition("self", "message"), Partition("rex", "message"), Partition("rex", "fact")}
        assert facts(ANA, shared) == 11
        assert facts(REX, Partition("rex", "fact")) == 21

    def test_removed_documents_take_their_terms_and_vectors_along(self, store: Store) -> None:
        row = store.write(ANA, lambda view: learn(view, "Lisbon"))
        kept = store.write(ANA, lambda view: learn(view, "Lisbon", key="works_in"))
        embed(store, "e1")
        store.write(ANA, lambda view: end_fact(view, row, at_ms=sent_at_ms(9)))
        part = Partition("self", "fact")

        assert [d.doc for d in store.read(ANA, lambda view: view.docs(part))] == [kept.doc]
        assert store.read(ANA, lambda view: view.columns(part)["words"]) == ("works_in Lisbon",)
        assert [v[0] for v in store.read(ANA, lambda view: view.vectors(part, "e1"))] == [kept.doc]

    def test_a_vector_is_of_one_embedder_at_a_time(self, store: Store) -> None:
        store.write(ANA, lambda view: say(view, "one", "two", "three"))
        part = Partition("self", "message")

        def waiting(embedder: str) -> list[int]:
            return [d.doc for d in store.read(ALL, lambda view: view.unembedded(embedder, limit=10))]

        assert waiting("e1") == [1, 2, 3]
        embed(store, "e1", limit=2)
        assert (waiting("e1"), waiting("e2")) == ([3], [1, 2, 3])
        assert store.read(ANA, lambda view: view.vectors(part, "e1")) == [(1, 0.5, b"\x011"), (2, 0.5, b"\x012")]
        embed(store, "e2")
        assert store.read(ANA, lambda view: view.vectors(part, "e1")) == []
        assert len(store.read(ANA, lambda view: view.vectors(part, "e2"))) == 3

    def test_vectors_come_by_document_and_with_their_signs(self, store: Store) -> None:
        store.write(ANA, lambda view: say(view, "one", "two", "three"))
        part = Partition("self", "message")
        first, second, _ = store.read(ANA, lambda view: view.docs(part))
        given = [(first, "e1", 0.5, bytes([1, 0, 255, 128, 127, 0, 0, 0, 255])), (second, "e2", 0.5, b"\xff")]
        store.write(ANA, lambda view: view.add_vectors(given))

        def found(view: ReadView) -> list[int]:
            return [doc for doc, _, _ in view.vectors_of(part, "e1", [second.doc, 99, first.doc])]

        assert store.read(ANA, found) == [first.doc]
        signs = store.read(ANA, lambda view: view.columns(part, signs_of="e1")["signs"])
        assert signs == (bytes([0b11001111, 0b00000000]), None, None)
        again = store.read(ANA, lambda view: view.columns(part, signs_of="e2")["signs"])
        assert again == (None, bytes([0]), None)

    def test_documents_are_read_packed_as_they_are_read_from_rows(self, store: Store) -> None:
        """After each kind of change; of what went nothing is left in the packed ones."""
        part = Partition("self", "message")
        texts = [f"word{number} all canary{number}" for number in range(2 * SIZE + 40)]

        def remove(view: WriteView, numbers: Sequence[int]) -> None:
            view.remove_docs("self", "message", [doc.doc for doc in view.docs(part) if doc.seq in numbers])

        steps: list[Callable[[WriteView], object]] = [
            lambda view: say(view, *texts),
            lambda view: remove(view, (3,)),
            lambda view: view.add_vectors([(doc, "e1", 0.5, b"\x01\xff") for doc in view.unembedded("e1", limit=700)]),
            lambda view: view.add_vectors([(doc, "e1", 0.5, b"\xff\x01") for doc in view.unembedded("e1", limit=700)]),
            lambda view: remove(view, range(5, SIZE + 9)),
            lambda view: view.add_vectors([(view.docs(part)[0], "e2", 0.5, b"\x01\xff")]),
            lambda view: say(view, *(f"later{number}" for number in range(2 * SIZE))),
            lambda view: view.move_conversations("bo", {"chat": "chat"}),
        ]
        for step in steps:
            store.write(ANA, step)
            where = Partition("bo", "message") if step is steps[-1] else part
            for embedder in ("", "e1", "e2"):
                look = partial(_both_ways, partition=where, embedder=embedder)
                _assert_same(*store.read(ANA, look))
            assert [finding for finding in store.check() if finding.rule == "segment"] == []
        packed = store.read(ANA, lambda view: view._run("segments", subject="bo", kind="message"))
        assert packed
        assert not any(word in data for word in (b"canary3 ", b"canary77 ") for *_, data in packed)
        store.write(ANA, lambda view: view.remove_user())
        assert store.write(ANA, methodcaller("count_rows"))["segment"] == 0

    def test_users_are_told_apart_by_who_embedded_them(self, store: Store) -> None:
        def others(embedder: str) -> list[str]:
            return sorted(user for _, user, _ in store.users_to_embed(embedder, limit=10))

        for scope in (ANA, REX):
            store.write(scope, lambda view: say(view, "one"))
        assert others("e1") == [ANA.user]
        store.write(ANA, lambda view: view.note_embedder("e1"))
        assert (others("e1"), others("e2"), others("")) == ([], [ANA.user], [ANA.user])
        assert store.users_to_embed("e2", limit=0) == []

    def test_a_vector_for_a_removed_document_is_passed_over(self, store: Store) -> None:
        row = store.write(ANA, lambda view: learn(view, "Lisbon"))
        docs = store.read(ANA, lambda view: view.unembedded("e1", limit=10))
        store.write(ANA, lambda view: end_fact(view, row, at_ms=sent_at_ms(9)))

        store.write(ANA, lambda view: view.add_vectors([(doc, "e1", 0.5, b"x") for doc in docs]))

        assert store.read(ANA, lambda view: view.vectors(Partition("self", "fact"), "e1")) == []


def _both_ways(view: ReadView, *, partition: Partition, embedder: str) -> tuple[list[Segment], Segment]:
    """Return the documents as they are packed, and as their rows are."""
    return view.segments(partition, signs_of=embedder), pack_columns(view.columns(partition, signs_of=embedder))


def _assert_same(found: Sequence[Segment], expected: Segment) -> None:
    """Assert that segments hold together what one of all documents holds."""
    whole = join_segments(found)
    assert {name: values.tolist() for name, values in whole.numbers.items()} == {
        name: values.tolist() for name, values in expected.numbers.items()
    }
    assert [whole.said[at] for at in whole.said_at] == [expected.said[at] for at in expected.said_at]
    assert whole.refs == expected.refs
    words, others = (Words().extend(one.words) for one in (whole, expected))
    for start in ("word1", "all", "canary2"):
        assert words.beginning(start) == others.beginning(start)
    for word in ("word7", "all", "canary3", "canary1000", "none"):
        assert [values.tolist() for values in words.find([word])[word]] == [
            values.tolist() for values in others.find([word])[word]
        ]
    width = expected.signs.shape[1]
    assert [row for one in found for row in one.signs_of(width)[0].tolist()] == expected.signs.tolist()
    assert [here for one in found for here in one.signs_of(width)[1].tolist()] == expected.signed.tolist()


def embed(store: Store, embedder: str, *, limit: int = 100) -> None:
    """Add a vector to every document of ANA that has none."""

    def data(doc: DocRow) -> bytes:
        return b"\x01" + str(doc.doc).encode()

    docs = store.read(ANA, lambda view: view.unembedded(embedder, limit=limit))
    store.write(ANA, lambda view: view.add_vectors([(doc, embedder, 0.5, data(doc)) for doc in docs]))
