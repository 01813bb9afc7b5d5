"""
The contract of a message store, as tests to inherit.

    class TestMyStore(MessageStoreContract):
        @pytest.fixture
        def store(self):
            return MyStore(...)

A store that cannot forget inherits `MessageLogContract`.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime

import pytest

from ..errors import BadInput
from ..store.messages import KeepsSummaries, MessageLog, MessageStore
from ..types import Message, RollingSummary
from .store_contract.memory import TEXTS

CALLS = [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}]

# What has got out of a folder, met another name, or could not be made a file somewhere.
SESSIONS = [
    "plain",
    "Plain",
    "PLAIN",
    "..",
    ".",
    "../outside",
    "..\\outside",
    "/absolute",
    "C:\\absolute",
    "a/b",
    "a\\b",
    "a:b",
    "nul",
    "CON",
    "com1.json",
    "trailing.",
    "trailing ",
    "with\0nul",
    "line\nfeed",
    "%2e%2e",
    "s_plain",
    "*?<>|\"'",
    "~",
    "-rf",
    ".hidden",
    "straße",
    "strasse",
    "\u00e9",
    "e\u0301",
    "개발자",
    "👩‍👩‍👧‍👦",
    "x" * 300,
    "x" * 299 + "y",
    "猫" * 300,
]


class MessageLogContract:
    """The contract of append and load; supply a ``store`` fixture that yields an empty one."""

    def test_an_unknown_session_is_empty(self, store: MessageLog) -> None:
        assert store.load("nobody") == []

    def test_messages_come_back_in_order_and_numbered(self, store: MessageLog) -> None:
        store.append("s", {"role": "user", "content": "one"})
        store.append("s", [Message("assistant", "two"), {"role": "user", "content": "three"}])

        assert [(m.seq, m.role, m.content) for m in store.load("s")] == [
            (1, "user", "one"),
            (2, "assistant", "two"),
            (3, "user", "three"),
        ]
        assert all(m.conversation == "s" and m.at and m.tokens > 0 for m in store.load("s"))

    @pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
    def test_a_message_comes_back_to_the_character(self, store: MessageLog, text: str) -> None:
        at = datetime(2026, 3, 14, 19, 2, 5, 250_000, tzinfo=UTC)
        meta = {"tool_calls": CALLS, "note": text[:50], "n": 1.5, "none": None}
        store.append("s", Message("assistant", text, name="Ana", at=at, meta=meta))

        (kept,) = store.load("s")
        assert (kept.role, kept.content, kept.name, kept.at, dict(kept.meta)) == ("assistant", text, "Ana", at, meta)

    def test_a_list_is_stored_whole_or_not_at_all(self, store: MessageLog) -> None:
        with pytest.raises(BadInput):
            store.append("s", [{"role": "user", "content": "fine"}, {"role": "nobody", "content": "not"}])

        assert store.load("s") == []

    def test_what_was_loaded_is_the_callers(self, store: MessageLog) -> None:
        given = {"role": "user", "content": "hi", "tags": ["a"]}
        store.append("s", given)
        given["tags"].append("b")  # type: ignore[attr-defined]
        store.load("s").clear()

        assert [dict(m.meta) for m in store.load("s")] == [{"tags": ["a"]}]

    def test_hostile_sessions_never_meet(self, store: MessageLog) -> None:
        for number, session in enumerate(SESSIONS):
            store.append(session, {"role": "user", "content": f"in {number}"})

        assert [[m.content for m in store.load(session)] for session in SESSIONS] == [
            [f"in {number}"] for number in range(len(SESSIONS))
        ]

    @pytest.mark.parametrize("session", ["", 5, None, "\ud800"])
    def test_what_cannot_name_a_session_is_refused(self, store: MessageLog, session: str) -> None:
        with pytest.raises(BadInput, match="session"):
            store.append(session, {"role": "user", "content": "hi"})
        with pytest.raises(BadInput, match="session"):
            store.load(session)

    def test_threads_lose_nothing_and_never_mix(self, store: MessageLog) -> None:
        def talk(session: str, who: int) -> None:
            for number in range(10):
                store.append(session, [{"role": "user", "content": f"{session} {who} {number}"}] * 2)

        threads = [threading.Thread(target=talk, args=(s, who)) for s in ("a", "b") for who in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        for session in ("a", "b"):
            said = [m.content for m in store.load(session)]
            assert said[::2] == said[1::2]
            assert sorted(said[::2]) == sorted(f"{session} {who} {n}" for who in range(4) for n in range(10))
            for who in range(4):
                assert [t for t in said[::2] if t.startswith(f"{session} {who} ")] == [
                    f"{session} {who} {n}" for n in range(10)
                ]


class MessageStoreContract(MessageLogContract):
    """The contract of append, load and clear."""

    def test_a_cleared_session_is_empty_and_begins_anew(self, store: MessageStore) -> None:
        store.append("s", {"role": "user", "content": "one"})
        store.append("other", {"role": "user", "content": "stays"})
        store.clear("s")
        store.clear("never there")
        gone = store.load("s")
        store.append("s", {"role": "user", "content": "anew"})

        assert gone == []
        assert [(m.seq, m.content) for m in store.load("s")] == [(1, "anew")]
        assert len(store.load("other")) == 1

    def test_a_summary_is_kept_with_its_session(self, store: MessageStore) -> None:
        if not isinstance(store, KeepsSummaries):
            pytest.skip("this store keeps no summaries")
        parts = ({"level": 1, "text": "한국어 ☕", "themes": ["tea"]},)
        store.append("s", [{"role": "user", "content": "one"}] * 3)
        before = store.load_summary("s")
        store.save_summary("s", RollingSummary("they said one", 2, "rules 1", parts))
        store.save_summary("s", RollingSummary("older", 1, "rules 1"))
        store.save_summary("s", RollingSummary("of more than there is", 9, "rules 1"))

        assert before is None
        assert store.load_summary("s") == RollingSummary("they said one", 2, "rules 1", parts)
        assert len(store.load("s")) == 3
        store.clear("s")
        assert store.load_summary("s") is None
