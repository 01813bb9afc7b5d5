"""One thing has one address and one of two contradicting facts, however callers and models spell them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from holdfast import Config, Memory
from holdfast.reconcile.registry import fold_name, matches_blocked_topic, registry
from holdfast.testing.fakes import FakeClock
from holdfast.testing.model import ScriptedModel
from holdfast.types import Candidate

AT = datetime(2026, 3, 2, 18, tzinfo=UTC)


def candidate(category, key, value, source="model"):
    return Candidate("attribute", "self", category, key, value, "", 0.9, 1, "", 0, source=source)


@pytest.mark.parametrize(
    ("given", "declared"),
    [
        (("favourite", "colour", "blue"), ("favorite", "colour", "blue")),
        (("Favourites", "food", "sushi"), ("favorite", "food", "sushi")),
        (("home", "city", "Oslo"), ("home", "lives_in", "Oslo")),
        (("identity", "location", "Oslo"), ("home", "lives_in", "Oslo")),
        (("personal", "occupation", "nurse"), ("work", "works_as", "nurse")),
        (("allergies", "allergens", "eggs"), ("allergy", "allergic_to", "eggs")),
        (("health", "smoker", "yes"), ("health", "smokes", "true")),
        (("health", "smoker", "ten a day"), ("health", "smoker", "ten a day")),  # the key holds true or false
        (("garden", "city", "Oslo"), ("garden", "city", "Oslo")),
        (
            ("technical", "language", "Python"),
            ("tech", "uses_language", "Python"),
        ),  # a broad label says nothing that a key does not
    ],
)
def test_other_names_of_a_declared_address_mean_it(given, declared):
    found = registry().known_address(candidate(*given))

    assert (found.category, found.key, found.value) == declared


def test_who_writes_by_hand_finds_it_where_it_was_put():
    with Memory(embedder=None) as memory:
        memory.user("ana").remember(category="home", key="city", value="Oslo")

        assert [fact.key for fact in memory.user("ana").facts("home")] == ["city"]


def test_the_british_name_of_favorites_is_taken():
    with Memory(embedder=None) as memory:
        ana = memory.user("ana")
        ana.remember(category="favourite", key="food", value="sushi")

        assert [fact.category for fact in ana.facts("favourite")] == ["favorite"]
        assert [fact.value for fact in ana.history("favourite", "food")] == ["sushi"]


@pytest.mark.parametrize("other", ["color", "Colours", "COLOR"])
def test_two_spellings_of_a_key_are_one_key(other):
    with Memory(embedder=None) as memory:
        ana = memory.user("ana")
        ana.remember(category="room", key="colour", value="blue")
        ana.remember(category="room", key=other, value="green")

        assert [(fact.key, fact.value) for fact in ana.facts("room") if fact.value == "green"] == [("colour", "green")]


@pytest.mark.parametrize("pair", [("news", "new"), ("glass", "glasses"), ("bus", "buses"), ("left", "right")])
def test_other_words_are_other_keys(pair):
    one, other = map(fold_name, pair)
    assert one != other or pair == ("news", "new")


@pytest.mark.parametrize(
    ("said", "left"),
    [
        (["I prefer Python over JavaScript.", "I hate Python."], ["dislikes=Python"]),
        (["I prefer tea over coffee.", "I prefer coffee over tea."], ["prefers=coffee over tea"]),
        (["My favorite food is sushi.", "I hate sushi."], ["dislikes=sushi"]),
        (["I hate sushi.", "My favorite food is sushi."], ["food=sushi"]),
        (["I prefer tea over coffee.", "I hate coffee."], ["dislikes=coffee", "prefers=tea over coffee"]),
        (["I love listening to jazz.", "I hate listening to podcasts."], ["dislikes=listening to podcasts", "likes=listening to jazz"]),
    ],
)  # fmt: skip
def test_of_two_that_contradict_the_later_holds(said, left):
    with Memory(embedder=None) as memory:
        for text in said:
            memory.conversation("c", user="ana").record(text)

        assert sorted(f"{fact.key}={fact.value}" for fact in memory.user("ana").facts()) == left


@pytest.mark.parametrize(
    ("habit", "refused", "left"),
    [
        ("a cup of coffee every morning", "coffee", ["coffee"]),
        ("coffee with almond milk every morning", "milk", ["coffee with almond milk every morning", "milk"]),
        ("running every morning", "meat", ["meat", "running every morning"]),
    ],
)
def test_what_one_does_not_eat_is_no_habit(habit, refused, left):
    with Memory(embedder=None) as memory:
        ana = memory.user("ana")
        ana.remember(category="schedule", key="does", value=habit)
        ana.remember(category="food", key="does_not_eat", value=refused)

        assert sorted(fact.value for fact in ana.facts()) == left


def test_what_passes_ends_by_itself():
    """ "Biscuit hasn't eaten since yesterday" is not believed a month later, and not shown to a model as known."""
    clock = FakeClock(AT)
    row = "health,,Biscuit has not eaten since yesterday.,0.9,,set,asserted,transient,1,Biscuit hasn't eaten since yesterday"
    model = ScriptedModel({"facts": [row]})
    with Memory(clock=clock, embedder=None, llm=model, config=Config(extract_every_user_turns=1)) as memory:
        chat = memory.conversation("c", user="ana")
        chat.record("My Biscuit hasn't eaten since yesterday and I worry.", "Oh no.")
        chat.end()
        memory.digest()
        assert [fact.text for fact in memory.user("ana").facts()] == ["Biscuit has not eaten since yesterday."]

        clock.advance(seconds=timedelta(days=30).total_seconds())
        chat.record("I work as a nurse and I live in Oslo.", "Nice.")
        chat.end()
        memory.digest()

        assert "Biscuit" not in " ".join(fact.text for fact in memory.user("ana").facts())
        assert "Biscuit has not eaten" not in model.requests("combined")[-1].text


@pytest.mark.parametrize(
    ("topics", "hit"),
    [
        (["health"], True),
        (["diabetes"], True),
        (["Diabetes type"], True),
        (["type 1 diabetes at work"], False),
        (["work"], False),
        (["the"], False),
        ([], False),
        (["work", "diabetes"], True),
    ],
)
def test_a_blocked_topic_is_a_category_or_words_that_all_occur(topics, hit):
    assert matches_blocked_topic(candidate("health", "condition", "type 1 diabetes"), topics) is hit
