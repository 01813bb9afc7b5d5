"""Facts of one conversation: they replace one another there, and nothing elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import Config, Memory
from holdfast.errors import Conflict
from holdfast.testing.fakes import FakeClock, HashEmbedder
from holdfast.testing.model import ScriptedModel


@pytest.fixture
def memory(clock: FakeClock) -> Iterator[Memory]:
    with Memory(embedder=HashEmbedder(), clock=clock) as opened:
        yield opened
        opened.digest()
        assert opened.doctor().findings == ()


def trip(memory: Memory, name: str, *said: str, subject: str | None = None):
    chat = memory.conversation(name, user="ana", subject=subject, own_facts=True)
    for text in said:
        chat.record(text, "Noted.")
    return chat


def believed(memory: Memory, category: str | None = None) -> list[tuple[str, str]]:
    return sorted((fact.only_in, fact.value) for fact in memory.user("ana").facts(category))


def shown(chat, question: str = "What is my budget?") -> str:
    return str(chat.context(question).messages)


def test_facts_of_two_trips_replace_nothing_of_each_other(memory):
    memory.conversation("home", user="ana").record("My budget is $5000.", "Noted.")
    tokyo = trip(memory, "tokyo", "My budget is $3000.")
    trip(memory, "rome", "My budget is $900.")
    tokyo.record("Actually my budget is $3500 now.", "Noted.")

    assert believed(memory, "budget") == [("", "5000"), ("rome", "900"), ("tokyo", "3500")]
    assert [f.value for f in memory.user("ana").history("budget", "max_usd") if not f.live] == ["3000"]


def test_only_the_contexts_of_its_conversation_show_a_fact_and_its_messages(memory):
    home = memory.conversation("home", user="ana")
    home.record("My budget is $5000. I'm vegetarian.", "Noted.")
    tokyo = trip(memory, "tokyo", "My budget is $3000.")
    rome = trip(memory, "rome", "My budget is $900. I'm allergic to nuts.")

    def amounts(chat):
        facts = next(section.text for section in chat.context("What is my budget?").sections if section.name == "facts")
        return [amount for amount in ("5000", "3000", "900") if amount in facts]

    assert [amounts(chat) for chat in (home, tokyo, rome)] == [["5000"], ["3000"], ["900"]]
    assert "vegetarian" in shown(tokyo)
    assert "900" not in shown(tokyo) + shown(home)
    assert "nuts" not in shown(tokyo, "What am I allergic to?")
    assert "nuts" not in memory.user("ana").profile().text


def test_search_and_lists_say_whose_a_fact_is(memory, tmp_path):
    trip(memory, "tokyo", "My budget is $3000.")
    hit = memory.user("ana").search("budget", kinds=("fact",))[0]

    assert (hit.text, hit.conversation) == ("Has a budget of 3000 usd.", "tokyo")
    assert memory.conversation("tokyo", user="ana").state().own_facts
    assert [change.fact.only_in for change in trip(memory, "oslo").record("I live in Rome.").changes] == ["oslo"]


def test_the_choice_is_kept_with_the_first_message(memory):
    trip(memory, "tokyo", "My budget is $3000.")
    memory.conversation("tokyo", user="ana").record("Actually my budget is $3500 now.")

    assert believed(memory) == [("tokyo", "3500")]
    with pytest.raises(Conflict, match="own_facts=True"):
        memory.conversation("tokyo", user="ana", own_facts=False).record("My budget is $1.")


def test_a_setting_makes_the_choice_for_every_conversation(clock):
    with Memory(embedder=None, clock=clock, config=Config(own_facts=True)) as memory:
        memory.conversation("tokyo", user="ana").record("My budget is $3000.")
        memory.conversation("all", user="ana", own_facts=False).record("My budget is $5000.")
        memory.user("ana").remember("I live in Porto.")

        assert believed(memory) == [("", "5000"), ("", "Porto"), ("tokyo", "3000")]


def test_a_retraction_in_one_conversation_ends_nothing_elsewhere(memory):
    memory.conversation("home", user="ana").record("I'm vegetarian.", "Noted.")
    tokyo = trip(memory, "tokyo", "I'm vegan.", "I'm not vegan any more.", "I'm not vegetarian any more.")

    assert [(f.only_in, f.key) for f in memory.user("ana").facts("dietary")] == [("", "vegetarian")]
    assert "vegan" not in next(section.text for section in tokyo.context().sections if section.name == "facts")


def test_clearing_the_conversation_erases_its_facts_and_their_corrections(memory):
    memory.conversation("home", user="ana").record("My budget is $5000.", "Noted.")
    tokyo = trip(memory, "tokyo", "My budget is $3000.")
    user = memory.user("ana")
    (mine,) = [fact for fact in user.facts() if fact.only_in]
    change = user.correct(mine.id, value="3333")
    assert change.fact is not None
    assert change.fact.only_in == "tokyo"
    tokyo.clear()

    assert believed(memory) == [("", "5000")]
    assert "3333" not in str(user.export())


def test_what_was_never_true_and_restored_stays_with_its_conversation(memory):
    memory.conversation("home", user="ana").record("My budget is $5000.", "Noted.")
    trip(memory, "tokyo", "My budget is $3000.", "Actually my budget is $3500 now.")
    user = memory.user("ana")
    latest = next(fact for fact in user.facts() if fact.value == "3500")
    user.never_true(latest.id)
    assert believed(memory) == [("", "5000"), ("tokyo", "3000")]
    user.restore(latest.id)

    assert believed(memory) == [("", "5000"), ("tokyo", "3500")]


def test_conversations_of_one_name_about_two_subjects_are_two(memory):
    trip(memory, "visit", "My budget is $100.")
    luna = trip(memory, "visit", "My budget is $700.", subject="luna")

    assert sorted(fact.value for fact in memory.user("ana").facts("budget")) == ["100", "700"]
    assert "$100" not in shown(luna)
    assert "100 usd" not in shown(luna)


def test_sentences_of_two_conversations_are_not_merged(memory):
    for name in ("tokyo", "rome"):
        trip(memory, name, "im on dialysis")
    memory.digest()
    memory.user("ana").consolidate()
    statements = [fact for fact in memory.user("ana").facts() if fact.kind == "statement"]

    assert sorted(fact.only_in for fact in statements) == ["rome", "tokyo"]


def test_a_merged_subject_takes_its_conversations_facts_along(memory):
    trip(memory, "visit", "Her budget is $100. I live in Rome.", subject="luna")
    memory.conversation("other", user="ana", subject="moon").record("Hello.", "Hi.")
    user = memory.user("ana")
    user.merge_subjects("luna", into="moon")
    moved = memory.conversation("visit", user="ana", subject="moon")

    assert "Rome" in shown(moved, "Where do I live?")
    assert user.search("Rome", kinds=("fact",))[0].conversation == "visit"


def test_a_model_learns_facts_of_a_conversation_alike(clock):
    model = ScriptedModel()
    with Memory(embedder=None, llm=model, clock=clock, config=Config(extract_every_user_turns=1)) as memory:
        memory.conversation("home", user="ana").record("My budget is $5000.", "Noted.")
        memory.digest()
        chat = trip(memory, "tokyo")
        for seq, amount in ((1, 3000), (3, 3500)):
            quote = f"we can spend {amount} dollars here"
            model.say("facts", f'budget,max_usd,{amount},0.95,,set,asserted,state,{seq},"{quote}"')
            chat.record(f"I think {quote}.", "Noted.")
            memory.digest()

        assert believed(memory, "budget") == [("", "5000"), ("tokyo", "3500")]
        assert memory.doctor().findings == ()


def test_an_export_takes_facts_of_a_conversation_along(memory, tmp_path: Path):
    trip(memory, "tokyo", "My budget is $3000.")
    memory.conversation("home", user="ana").record("My budget is $5000.", "Noted.")
    with Memory(tmp_path / "other.db", embedder=None) as other:
        other.import_(memory.user("ana").export())

        assert believed(other) == believed(memory) == [("", "5000"), ("tokyo", "3000")]
        assert other.conversation("tokyo", user="ana").state().own_facts
        assert other.doctor().findings == ()


def test_a_fact_of_one_conversation_is_confirmed_there_alone(memory):
    chat = trip(memory, "rome", "I live in Porto.")
    (fact,) = memory.user("ana").facts("home")

    change = memory.user("ana").correct(fact.id, value=fact.value)

    assert (change.op, change.fact.id) == ("confirmed", fact.id)
    assert believed(memory) == [(chat.id, "Porto")]
    assert len(memory.user("ana").fact(fact.id).evidence) == 2


def test_what_is_added_for_a_range_is_of_the_conversation_alone(memory):
    trip(memory, "rome", "We met at Meko, over tteokbokki.")
    change = memory.user("ana").remember("First dinner at Meko.", conversation="rome", start_seq=1)

    assert (change.fact.kind, change.fact.only_in) == ("episode", "rome")


def test_no_other_conversation_recalls_the_words_of_a_correction(memory):
    memory.user("ana").remember("My budget for books is tight.")
    tokyo, rome = trip(memory, "tokyo", "My budget is $3000."), trip(memory, "rome", "I like old churches.")
    user = memory.user("ana")
    (mine,) = user.facts("budget")
    user.correct(mine.id, value="3333")
    user.correct(user.facts("budget")[0].id, value="3444")

    for chat in (rome, memory.conversation("home", user="ana")):
        assert "tight" in shown(chat)
        assert "3333" not in shown(chat)
        assert "3444" not in shown(chat)
    assert "3444" in shown(tokyo)
    assert "3444" in str(user.search("budget usd", limit=50))


def test_erasing_a_subject_erases_the_corrections_of_its_conversations(memory):
    trip(memory, "walk", "My budget is $3000.", subject="pet")
    user = memory.user("ana")
    (mine,) = user.facts("budget")
    assert mine.subject == "self"
    user.correct(mine.id, value="3333")
    memory.user("ana", subject="pet").erase()

    assert user.facts() == []
    assert "3333" not in str(user.export())
