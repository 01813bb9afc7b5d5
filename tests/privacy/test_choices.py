"""Pause, opt out, incognito, topics, and secrets, as a chatbot and its user meet them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from holdfast import Config, Memory, with_memory
from holdfast.testing.fakes import FakeClock, HashEmbedder
from tests import keeping

from .looking import USER, raw, rows

CARD = "4111 1111 1111 1111"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    clock = FakeClock(datetime(2026, 1, 5, 9, tzinfo=UTC))
    with Memory(tmp_path / "chat.db", embedder=HashEmbedder(), clock=clock) as opened:
        yield opened


def test_memory_is_active_until_somebody_chooses(memory: Memory) -> None:
    status = memory.user(USER).status()

    assert (status.state, status.since, status.never) == ("active", None, ())


@pytest.mark.parametrize("state", ["paused", "opted-out"])
def test_nothing_is_written_or_used_when_the_user_does_not_want_it(memory: Memory, state: str) -> None:
    chat, user = memory.conversation("a", user=USER), memory.user(USER)
    chat.record("I live in Porto.", "Noted.")
    memory.digest()
    if state == "paused":
        user.pause()
    else:
        assert user.opt_out(erase=False).level == "E0"
    before = user.export()
    receipt = chat.record("I moved to Faro.", "Noted.", idempotency_key="k")
    context = chat.context("Where do I live?", system="Be kind.")
    chat.end()
    memory.digest()

    assert (receipt.seqs, receipt.skipped, receipt.changes) == ((), state, ())
    assert [m["content"] for m in context.messages] == ["Be kind.", "Where do I live?"]
    assert user.search("Porto") == chat.recall("Porto") == []
    assert user.remember("I eat fish.").op == "rejected"
    assert user.status().state == state
    assert [fact.value for fact in user.facts()] == ["Porto"]  # seen, exported and erased it can be
    assert len(chat.load()) == 2
    assert user.export() == before
    assert memory.jobs() == []
    assert memory.doctor().ok


def test_memory_goes_on_where_it_was_paused(memory: Memory) -> None:
    chat, user = memory.conversation("a", user=USER), memory.user(USER)
    roles = ("user", "assistant")
    chat.append([{"role": roles[n % 2], "content": f"Day {n} was fine, and I live in Porto."} for n in range(30)])
    user.pause()
    user.resume()
    memory.digest()

    assert user.status().state == "active"
    assert [fact.value for fact in user.facts()] == ["Porto"]
    assert chat.summaries()
    assert chat.record("I moved to Faro.").seqs == (31,)
    assert user.search("Faro")


def test_an_opt_out_erases_and_goes_on_to_hold(memory: Memory) -> None:
    chat, user = memory.conversation("a", user=USER), memory.user(USER)
    chat.record("I live in Quorvaneqqa.", "Noted.")
    receipt = user.opt_out()

    assert receipt.level == keeping.erased()
    assert chat.record("I live in Quorvaneqqa.").skipped == "opted-out"
    assert user.export()["conversations"] == []
    user.resume()
    assert user.status().state == "opted-out"  # only opt_in ends it
    user.erase()
    assert user.status().state == "opted-out"
    user.opt_in()
    assert chat.record("Hello.").seqs == (1,)


def test_a_choice_for_one_subject_leaves_the_others(memory: Memory) -> None:
    rex, me = memory.conversation("vet", user=USER, subject="rex"), memory.conversation("a", user=USER)
    memory.user(USER, subject="rex").pause()

    assert rex.record("He is allergic to chicken.").skipped == "paused"
    assert me.record("I live in Porto.").seqs == (1,)
    assert memory.user(USER).status().state == "active"
    assert memory.user(USER, subject="rex").status().state == "paused"
    memory.user(USER).pause()
    assert me.record("I live in Faro.").skipped == "paused"


def test_a_choice_of_one_is_none_of_another(memory: Memory) -> None:
    memory.user(USER).opt_out()

    assert memory.conversation("a", user="bo").record("Hello.").seqs == (1,)
    assert memory.conversation("a", user=USER, bot="other").record("Hello.").seqs == (1,)
    assert memory.conversation("a", user=USER, org="other").record("Hello.").seqs == (1,)


def test_an_incognito_conversation_leaves_nothing(memory: Memory, tmp_path: Path) -> None:
    memory.conversation("a", user=USER).record("I live in Porto.")
    chat = memory.conversation("b", user=USER, incognito=True)
    receipt = chat.record("I live in Quorvaneqqa.", "Noted.")
    context = chat.context("Where do I live?")
    chat.end()
    memory.digest()

    assert receipt.skipped == "incognito"
    assert [m["content"] for m in context.messages] == ["Where do I live?"]
    assert chat.load() == chat.recall("Porto") == []
    assert memory.user(USER).conversations() == ["a"]
    assert "Quorvaneqqa" not in rows(tmp_path / "chat.db")
    assert b"Quorvaneqqa" not in raw(tmp_path / "chat.db")


@pytest.mark.parametrize("keyed", [False, True])
def test_a_wrapped_callable_works_on_when_memory_is_paused(memory: Memory, keyed: bool) -> None:
    asked: list[list[dict[str, object]]] = []

    def reply(messages: list[dict[str, object]]) -> str:
        asked.append(messages)
        return "Hello!"

    bot = with_memory(reply, memory, user=USER, system="Be kind.")
    memory.user(USER).pause()
    config = {"configurable": {"session_id": "s"} | ({"idempotency_key": "k"} if keyed else {})}

    assert bot("Where do I live?", config=config) == "Hello!"
    assert [m["content"] for m in asked[0]] == ["Be kind.", "Where do I live?"]
    assert memory.conversation("s", user=USER).load() == []


def test_a_topic_is_never_remembered(memory: Memory, tmp_path: Path) -> None:
    chat, user = memory.conversation("a", user=USER), memory.user(USER)
    user.never_remember("work")
    user.never_remember("Lisbon")
    chat.record("I work at Zorblatt.")
    chat.record("I live in Lisbon.")
    chat.record("I'm vegetarian.")

    assert [fact.category for fact in user.facts()] == ["dietary"]
    assert user.rejected() == []  # that would remember it
    assert user.status().never == ("Lisbon", "work")
    assert user.remember(category="work", key="works_at", value="Zorblatt").reason.startswith("never-remember")
    user.allow("work")
    assert user.remember(category="work", key="works_at", value="Zorblatt").op == "new"


@pytest.mark.parametrize("redact", [False, True])
def test_a_card_reaches_nothing_that_is_derived(tmp_path: Path, redact: bool) -> None:
    path = tmp_path / "chat.db"
    embedder = HashEmbedder()
    with Memory(path, embedder=embedder, config=Config(redact_messages=redact)) as memory:
        chat = memory.conversation("a", user=USER)
        receipt = chat.record(f"My card is {CARD} and my password is swordfish77.", f"So {CARD}, thank you.")
        chat.record("I live at number 4111111111111111 in Porto, my name is 4111111111111111.", "I see.")
        chat.append({"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": {"arguments": CARD}}]})
        for _ in range(8):
            chat.record("What a long and friendly week it was.", "Indeed it was.")
        chat.end()
        memory.digest()
        user = memory.user(USER)
        # Ids are random, and times in milliseconds are what the clock says: both may hold any four digits.
        derived = re.sub(r"\b(?:[a-z]+_[0-9a-z]{20}|1[0-9]{12})\b", "", rows(path))
        hits = [hit.text for hit in user.search("card password number", limit=50)]
        stored = [m.content for m in chat.load()]

        assert receipt.discarded == {"card": 2, "password": 1}
        assert "4111" not in " ".join(hits)
        assert not any("4111" in text or "swordfish" in text for call in embedder.calls for text in call)
        assert not any("4111" in spoken for spoken in (str(user.facts()), str(user.rejected()), str(chat.summaries())))
        assert memory.doctor().ok
        if redact:
            assert "4111" not in derived
            assert stored[0] == "My card is [card removed] and my password is [password removed]."
            assert b"swordfish77" not in raw(path)
        else:
            assert stored[0] == f"My card is {CARD} and my password is swordfish77."
            terms = [row for row in rows(path).split("\n") if row in ("swordfish77", "4111", "1111")]
            assert terms == []


def test_a_detector_of_ones_own_counts_too() -> None:
    class Badges:
        kind = "badge"

        def find(self, text: str) -> list[tuple[int, int]]:
            at = text.find("EMP-")
            return [(at, at + 8)] if at >= 0 else []

    with Memory(embedder=None, config=Config(detectors=(Badges(),), redact_messages=True)) as memory:
        chat = memory.conversation("a", user=USER)
        receipt = chat.record("I am EMP-1234.")

        assert receipt.discarded == {"badge": 1}
        assert chat.load()[0].content == "I am [badge removed]."
        assert memory.user(USER).remember(category="work", key="badge", value="EMP-1234").reason.startswith("discarded")


def test_a_paused_subject_is_not_shown_in_a_general_conversation():
    with Memory(embedder=None) as memory:
        memory.conversation("a", user="ana").record("My dog is called Rex. Rex is allergic to chicken.", "Noted.")
        asked = memory.conversation("b", user="ana").context("What may Rex eat?")
        assert "chicken" in asked.section("facts").text

        memory.user("ana", subject="rex").pause()

        asked = memory.conversation("c", user="ana").context("What may Rex eat?")
        assert "chicken" not in asked.section("facts").text
        assert "chicken" not in memory.user("ana").profile().text


def test_a_category_that_is_never_remembered_stays_so_when_everything_is_erased():
    with Memory(embedder=None) as memory:
        chat, ana = memory.conversation("c", user="ana"), memory.user("ana")
        ana.never_remember("health")
        ana.never_remember("my ex husband")
        chat.record("I live in Porto.", "Noted.")

        receipt = ana.erase()
        chat.record("I have asthma.", "Noted.")

        assert ana.status().never == ("health",)
        assert ana.facts() == []
        assert receipt.rows["topics"] == 1
