"""What is read from a chat waits for the user where the operator wants that."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest

from holdfast import Config, Memory
from holdfast.cli import main
from holdfast.client import AsyncClient, Client
from holdfast.errors import BadInput, NotFound
from holdfast.testing.fakes import FakeClock, HashEmbedder
from holdfast.testing.model import ScriptedModel
from tests import keeping

USER = "ana"


@pytest.fixture
def memory(clock: FakeClock) -> Iterator[Memory]:
    with Memory(embedder=HashEmbedder(), clock=clock, config=Config(ask_before_learning=True)) as opened:
        yield opened
        opened.digest()
        assert opened.doctor().findings == ()


def say(memory: Memory, clock: FakeClock, *texts: str) -> None:
    for text in texts:
        clock.advance(seconds=86_400)
        memory.conversation("a", user=USER).record(text, "Noted.")
    memory.digest()


def waiting(memory: Memory) -> dict[str, str]:
    return {one.candidate.text: one.id for one in memory.user(USER).rejected(waiting=True)}


def believed(memory: Memory) -> list[str]:
    return sorted(fact.text for fact in memory.user(USER).facts())


def test_nothing_that_waits_is_used_anywhere(memory, clock):
    say(memory, clock, "I'm vegetarian, and I live in Porto.")
    user, chat = memory.user(USER), memory.conversation("b", user=USER)

    assert sorted(waiting(memory)) == ["Is vegetarian.", "Lives in Porto."]
    assert believed(memory) == [fact.text for fact in user.history()] == user.rejected() == []
    assert user.profile().text == ""
    assert {hit.kind for hit in user.search("Where do I live?")} == {"message"}
    assert "Lives in Porto." not in chat.context("Where do I live?").to_text()
    (one,) = (one for one in user.rejected(waiting=True) if one.candidate.category == "home")
    assert (one.waiting, one.conversation, one.home, one.candidate.quote) == (True, "a", "self", "I live in Porto")


def test_what_is_accepted_is_believed_with_its_quote_and_can_be_taken_back(memory, clock):
    say(memory, clock, "I live in Porto.")
    user, ids = memory.user(USER), [*waiting(memory).values()]
    (change,) = user.review(ids, "accept")

    assert change.op == "new"
    assert [(said.conversation, said.quote) for fact in user.facts() for said in fact.evidence] == [
        ("a", "I live in Porto")
    ]
    assert "Lives in Porto." in memory.conversation("b", user=USER).context("Where do I live?").to_text()
    assert waiting(memory) == {}
    assert user.review(ids, "accept")[0].op == "confirmed"  # once is enough
    assert user.review(ids, "dismiss")[0].reason.startswith("accepted-already")

    user.review(ids, "wait")
    assert believed(memory) == []
    assert [*waiting(memory).values()] == ids


def test_taking_back_restores_what_was_replaced(memory, clock):
    say(memory, clock, "I live in Porto.")
    user = memory.user(USER)
    user.review([*waiting(memory).values()], "accept")
    say(memory, clock, "I live in Faro now.")
    ids = [*waiting(memory).values()]
    assert believed(memory) == ["Lives in Porto."]

    assert user.review(ids, "accept")[0].op == "replaced"
    assert believed(memory) == ["Lives in Faro."]
    user.review(ids, "wait")
    assert believed(memory) == ["Lives in Porto."]


def test_another_value_is_accepted_instead(memory, clock):
    say(memory, clock, "I live in Porto.")
    user, ids = memory.user(USER), [*waiting(memory).values()]
    user.review(ids, "accept", value="Lagos")

    assert believed(memory) == ["Lives in Lagos."]
    user.review(ids, "wait")
    assert believed(memory) == []
    assert [*waiting(memory)] == ["Lives in Porto."]


def test_what_is_dismissed_is_not_asked_again_for_the_same_words(memory, clock):
    say(memory, clock, "I live in Porto.")
    user, ids = memory.user(USER), [*waiting(memory).values()]
    user.review(ids, "dismiss")
    memory.conversation("a", user=USER).rebuild("facts")
    memory.digest()

    assert waiting(memory) == {}
    assert believed(memory) == []
    assert [one.reason.partition(":")[0] for one in user.rejected()] == ["dismissed"]
    say(memory, clock, "I live in Porto.")  # said anew, it is a new question
    assert [*waiting(memory)] == ["Lives in Porto."]


def test_an_end_waits_as_well(memory, clock):
    say(memory, clock, "I'm vegetarian.")
    user = memory.user(USER)
    user.review([*waiting(memory).values()], "accept")
    say(memory, clock, "I'm not vegetarian any more.")
    assert believed(memory) == ["Is vegetarian."]
    ids = [*waiting(memory).values()]

    assert user.review(ids, "accept")[0].op == "retracted"
    assert believed(memory) == []
    user.review(ids, "wait")
    assert believed(memory) == ["Is vegetarian."]


def test_what_ended_before_it_was_accepted_waits_no_more(memory, clock):
    say(memory, clock, "I'm vegetarian.", "I'm not vegetarian any more.")
    assert waiting(memory) == {}


def test_what_is_known_is_confirmed_without_asking(memory, clock):
    say(memory, clock, "I live in Porto.")
    user = memory.user(USER)
    user.review([*waiting(memory).values()], "accept")
    say(memory, clock, "As I said, I live in Porto.")

    assert waiting(memory) == {}
    assert [len(fact.evidence) for fact in user.facts()] == [2]


def test_what_says_the_same_is_decided_together(memory, clock):
    say(memory, clock, "I live in Porto.", "I live in Porto.")
    user = memory.user(USER)
    assert len(user.rejected(waiting=True)) == 2
    user.review([user.rejected(waiting=True)[0].id], "accept")

    assert waiting(memory) == {}
    assert [len(fact.evidence) for fact in user.facts()] == [2]


def test_remembering_by_hand_asks_nobody_and_answers_the_question(memory, clock):
    say(memory, clock, "I live in Porto.", "I'm vegetarian.")
    memory.user(USER).remember("I live in Porto.")

    assert believed(memory) == ["Lives in Porto."]
    assert [*waiting(memory)] == ["Is vegetarian."]


@pytest.mark.parametrize("erase", ["message", "conversation", "words", "everything"])
def test_what_waits_is_erased_with_its_source(memory, clock, erase):
    say(memory, clock, "I live in Porto.")
    user, chat = memory.user(USER), memory.conversation("a", user=USER)
    {
        "message": lambda: chat.forget(1),
        "conversation": chat.clear,
        "words": lambda: chat.edit(1, "I like it here."),
        "everything": user.erase,
    }[erase]()

    assert waiting(memory) == {}
    assert "Porto" not in str(user.export())


def test_an_edited_message_asks_about_its_new_words(memory, clock):
    say(memory, clock, "I live in Porto.")
    memory.conversation("a", user=USER).edit(1, "I live in Faro.")
    memory.digest()

    assert [*waiting(memory)] == ["Lives in Faro."]
    assert believed(memory) == []


def test_an_export_keeps_what_waits(memory, clock):
    say(memory, clock, "I live in Porto.")
    user, ids = memory.user(USER), waiting(memory)
    data = user.export()
    user.erase()
    user.import_(data)

    assert waiting(memory) == ids
    user.review([*ids.values()], "accept")
    assert believed(memory) == ["Lives in Porto."]


def test_a_pause_and_a_forbidden_topic_hold_for_what_waits(memory, clock):
    say(memory, clock, "I live in Porto.")
    user, ids = memory.user(USER), [*waiting(memory).values()]
    user.never_remember("home")
    assert user.review(ids, "accept")[0].reason.startswith("never-remember")
    user.allow("home")
    user.pause()
    assert user.review(ids, "accept")[0].reason.startswith("paused")
    user.resume()

    assert [*waiting(memory).values()] == ids
    assert user.review(ids, "accept")[0].op == "new"


def test_nobody_decides_for_another(memory, clock):
    say(memory, clock, "I live in Porto.")
    ids = [*waiting(memory).values()]
    for other in (memory.user("ben"), memory.user(USER, org="elsewhere"), memory.user(USER, bot="other")):
        with pytest.raises(NotFound):
            other.review(ids, "accept")
    with pytest.raises(NotFound):
        memory.user(USER).review([*ids, "nothing"], "accept")
    assert [*waiting(memory).values()] == ids  # none of them, where one is missing


def test_a_decision_that_is_none_is_refused(memory, clock):
    say(memory, clock, "I live in Porto.", "I'm vegetarian.")
    user, ids = memory.user(USER), [*waiting(memory).values()]
    for bad in (
        {"ids": ids, "choice": "maybe"},
        {"ids": ids[0], "choice": "accept"},
        {"ids": [7], "choice": "accept"},
        {"ids": ids, "choice": "accept", "value": "x"},
        {"ids": ids[:1], "choice": "dismiss", "value": "x"},
        {"ids": ids[:1], "choice": "accept", "value": " "},
        {"ids": ids[:1], "choice": "accept", "value": 7},
    ):
        with pytest.raises(BadInput):
            user.review(**bad)
    assert len(waiting(memory)) == 2


def test_what_a_model_reads_waits_as_well(clock):
    with Memory(
        embedder=HashEmbedder(), clock=clock, llm=ScriptedModel(), config=Config(ask_before_learning=True)
    ) as memory:
        say(memory, clock, *["I live in Porto.", "I'm vegetarian."] * 4)
        assert believed(memory) == []
        assert "Lives in Porto." in waiting(memory)


def test_facts_of_a_conversation_stay_its_own(memory, clock):
    memory.conversation("trip", user=USER, own_facts=True).record("I live in Porto.", "Noted.")
    memory.digest()
    user = memory.user(USER)
    user.review([*waiting(memory).values()], "accept")

    assert [fact.only_in for fact in user.facts()] == ["trip"]


def test_every_way_in_decides_the_same(clock, tmp_path, served, capsys):
    path = tmp_path / "asking.db"
    with Memory(path, embedder=None, clock=clock, config=Config(ask_before_learning=True)) as memory:
        say(memory, clock, "I live in Porto, and I'm vegetarian.", "I'm allergic to peanuts.")
        ids = waiting(memory)
        home, diet = ids["Lives in Porto."], ids["Is vegetarian."]
        with served(memory) as address, Client(address, key=memory.admin.keys.create("user", user=USER).key) as client:
            there = client.user(USER)
            assert {one.candidate.text: one.id for one in there.rejected(waiting=True, limit=1000)} == ids
            assert there.rejected() == []
            assert [change.op for change in there.review([home], "accept", value="Faro")] == ["replaced"]
            with pytest.raises(BadInput):
                there.review([diet], "perhaps")

            async def dismiss() -> None:
                async with AsyncClient(address, key=memory.admin.keys.create("operator").key) as aio:
                    await aio.user(USER).review([diet], "dismiss")

            asyncio.run(dismiss())
        assert believed(memory) == ["Lives in Faro."]
    words = ("--store", keeping.address(path), "--user", USER)
    assert main(["facts", "--waiting", "--json", *words]) == 0
    (nuts,) = json.loads(capsys.readouterr().out)
    assert main(["facts", "--waiting", *words]) == 0
    assert nuts["id"] in capsys.readouterr().out
    assert main(["review", nuts["id"], *words]) == 0
    assert "peanuts" in capsys.readouterr().out
    assert main(["review", nuts["id"], "--dismiss", "--wait", *words]) == 2
    assert main(["review", nuts["id"], "--wait", *words]) == 0
    assert main(["review", "nothing", *words]) == 1
    capsys.readouterr()
    assert main(["facts", "--json", *words]) == 0
    assert [fact["text"] for fact in json.loads(capsys.readouterr().out)] == ["Lives in Faro."]
