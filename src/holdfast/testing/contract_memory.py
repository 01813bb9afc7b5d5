"""What every store must promise about messages, scopes, transactions and snapshots."""

from __future__ import annotations

import threading
from dataclasses import replace
from operator import methodcaller

import pytest

from ..errors import BadInput, Conflict, StoreClosed
from ..scope import Scope
from ..store.protocol import ConversationRow, MessageRow, ReadView, Store, UserRow, WriteView
from ..text.clean import storable
from .rows import ANA, START_MS, said_at, say

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
    storable("was NUL: \0, was a surrogate: \ud800"),
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
        """A fresh store has nothing that breaks a promise, and says of which version it is."""
        health = store.health()

        assert health.findings == ()
        assert health.about["version"]
        assert {notice.rule for notice in health.notices} <= set(health.checked)

    def test_stats_count_rows(self, store: Store) -> None:
        store.write(ANA, lambda view: say(view, "one two", "three"))

        stats = store.stats()

        assert (stats["message"], stats["posting"], stats["user"]) == (2, 3, 1)
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
        assert round(message.at.timestamp() * 1000) == said_at(1)
