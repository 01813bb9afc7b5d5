"""An attribute and a sentence that say the same are one, and neither outlives the other's end."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from holdfast import Memory
from holdfast.reconcile.compare import restates
from holdfast.store import ReadView
from holdfast.testing.fakes import FakeClock
from holdfast.testing.model import ScriptedModel

AT = datetime(2026, 3, 20, 18, tzinfo=UTC)


def statement(text, seq, quote, category="note"):
    return f'{category},,"{text}",0.9,,set,asserted,state,{seq},"{quote}"'


def attribute(category, key, value, seq, quote):
    return f'{category},{key},"{value}",0.9,,set,asserted,state,{seq},"{quote}"'


def read(*turns):
    """Return what is believed, and what was, after messages of which a model read these rows."""
    clock = FakeClock(AT)
    with Memory(clock=clock, embedder=None, llm=ScriptedModel({"facts": [rows for _, rows in turns]})) as memory:
        chat = memory.conversation("c", user="ana")
        for text, _ in turns:
            chat.record(text, "Ok.")
            chat.end()
            memory.digest()
            clock.advance(seconds=3600)
        ana = memory.user("ana")
        facts = [fact for fact in ana.facts() if fact.kind != "episode"]
        return sorted(fact.value or fact.text for fact in facts), facts


def test_a_sentence_that_repeats_an_attribute_is_a_quote_of_it():
    found, facts = read(
        ("Gelato is a thing I would cross the city for.", attribute("preference", "likes", "gelato", 1, "Gelato is a thing I would cross the city for")),
        ("Yes, gelato, still a fan.", statement("The user loves gelato.", 3, "gelato, still a fan", "preference")),
    )  # fmt: skip

    assert found == ["gelato"]
    assert [len(fact.evidence) for fact in facts] == [2]


def test_an_attribute_takes_the_place_of_the_sentence_that_says_the_same():
    _, facts = read(
        ("Gelato is a thing I would cross the city for.", statement("Likes gelato.", 1, "Gelato is a thing I would cross the city for")),
        ("Gelato again today, my great love.", attribute("preference", "likes", "gelato", 3, "Gelato again today, my great love")),
    )  # fmt: skip

    assert [(fact.kind, fact.value) for fact in facts] == [("attribute", "gelato")]


@pytest.mark.parametrize(
    ("text", "value", "sentence", "address"),
    [
        ("Plays tennis on Mondays.", "tennis", "Plays tennis.", "hobby plays"),
        ("The user used to like gelato.", "gelato", "Likes gelato.", "preference likes"),
        ("Doesn't like gelato.", "gelato", "Likes gelato.", "preference likes"),
        ("Likes gelato with nuts.", "gelato", "Likes gelato.", "preference likes"),
        ("Might move to Oslo.", "Oslo", "Moves to Oslo.", "plan moving to"),
        ("Has two dogs.", "dog", "Has a dog.", "pets has pet"),
    ],
)
def test_a_sentence_that_says_more_or_other_is_a_fact_of_its_own(text, value, sentence, address):
    assert not restates(text, value, sentence, address)


def test_the_sentence_goes_with_the_value_that_it_repeats():
    found, _ = read(
        ("Home is a flat in Porto by the river.", statement("Lives in Porto by the river.", 1, "Home is a flat in Porto by the river")),
        ("I live in Oslo now.", attribute("home", "lives_in", "Oslo", 3, "I live in Oslo now")),
    )  # fmt: skip

    assert found == ["Oslo"]


def test_a_later_sentence_ends_the_older_attribute():
    found, _ = read(
        ("I live in Porto.", attribute("home", "lives_in", "Porto", 1, "I live in Porto")),
        ("The boxes are unpacked, Oslo it is from here on.", statement("The user lives in Oslo.", 3, "Oslo it is from here on")),
    )  # fmt: skip

    assert found == ["The user lives in Oslo."]


@pytest.mark.parametrize(
    ("old", "new", "left"),
    [
        ("Logs in Loki.", "We moved logs to Elastic.", ["We moved logs to Elastic."]),
        ("The photos are stored on Dropbox.", "We migrated the photos to Nextcloud.", ["We migrated the photos to Nextcloud."]),
        ("The couch is red.", "We moved the couch to the bedroom.", ["The couch is red.", "We moved the couch to the bedroom."]),
        ("Metrics in Prometheus.", "We moved logs to Elastic.", ["Metrics in Prometheus.", "We moved logs to Elastic."]),
    ],
)  # fmt: skip
def test_what_was_moved_is_not_where_it_was(old, new, left):
    found, _ = read((old, statement(old, 1, old.strip("."))), (new, statement(new, 3, new.strip("."))))

    assert [one for one in found if one in (old, new)] == left


@pytest.mark.parametrize(
    ("habit", "stays"),
    [
        ("Drinks coffee every morning.", False),
        ("Drinks coffee with oat milk.", True),
        ("Sells coffee every morning.", True),
    ],
)
def test_a_habit_ends_with_what_is_not_had_any_more(habit, stays):
    found, _ = read(
        ("Coffee with oat milk, drinks or sells, every morning.", statement(habit, 1, "Coffee with oat milk, drinks or sells, every morning")),
        ("The moka pot is gone, no coffee in this body.", attribute("food", "does_not_eat", "coffee", 3, "no coffee in this body")),
    )  # fmt: skip

    assert (habit in found) == stays


def test_an_event_that_only_repeats_a_fact_is_not_stored_twice():
    clock = FakeClock(AT)
    model = ScriptedModel(
        {
            "facts": [attribute("preference", "likes", "gelato", 1, "I adore gelato")],
            "episodes": ["[1] The user shared that they love gelato.\n[1] The user won the gelato quiz in Rome."],
        }
    )
    with Memory(clock=clock, embedder=None, llm=model) as memory:
        chat = memory.conversation("c", user="ana")
        chat.record("I adore gelato and I won the gelato quiz in Rome.", "Wow.")
        chat.end()
        memory.digest()

        assert [fact.text.removeprefix("[1] ") for fact in memory.user("ana").facts(kind="episode")] == [
            "The user won the gelato quiz in Rome."
        ]


@pytest.mark.parametrize(
    ("more", "sentence", "stays"),
    [
        ("", "The user is a site reliability engineer at Initech.", False),
        ("", "Works at Initech as a site reliability engineer", False),
        ("", "User hates long emails", False),
        (" I'm an engineer at Initech since the merger.", "The user is an engineer at Initech since the merger.", True),
        (" I might be the only engineer at Initech.", "The user might be the only engineer at Initech.", True),
    ],
)
def test_a_sentence_that_joins_what_its_message_made_known_is_no_further_fact(more, sentence, stays):
    """The rules read the message when it is stored, the model words the same in one sentence later."""
    said = f"I'm a site reliability engineer at Initech. I hate long emails.{more}"
    found, _ = read((said, statement(sentence, 1, more.strip() or said, "identity")))

    assert {"Initech", "long emails"} <= set(found)
    assert (sentence in found) == stays


def test_a_bullet_that_stands_among_facts_and_episodes_is_stored_once():
    bullets = "- Won the gelato quiz in Rome [1]\n- Bought a boat in Genoa [1]"
    model = ScriptedModel(
        {"facts": ["- Won the gelato quiz in Rome [1]\n- Sings in a choir [1]"], "episodes": [bullets]}
    )
    with Memory(clock=FakeClock(AT), embedder=None, llm=model) as memory:
        chat = memory.conversation("c", user="ana")
        chat.record("I won the gelato quiz in Rome, bought a boat in Genoa, and I sing in a choir.", "Wow.")
        chat.end()
        memory.digest()
        memory.digest()
        texts = [fact.text.rstrip(".") for fact in memory.user("ana").facts()]

    assert texts.count("Won the gelato quiz in Rome") == 1
    assert {"Bought a boat in Genoa", "Sings in a choir"} <= set(texts)


def test_a_write_of_many_claims_reads_the_facts_once(monkeypatch):
    """The cost of a message does not grow with its claims times all that is known."""
    read_facts, reads = ReadView.facts, []
    rows = [statement(f"Owns a lamp called number {n}", 1, f"a lamp called number {n}", "context") for n in range(12)]
    monkeypatch.setattr(ReadView, "facts", lambda view, **more: reads.append(more) or read_facts(view, **more))
    text = "I own " + ", ".join(f"a lamp called number {n}" for n in range(12)) + "."
    counts = []
    for some in (rows[:2], rows):
        reads.clear()
        assert len(read((text, "\n".join(some)))[1]) == len(some)
        counts.append(len(reads))

    assert counts[0] == counts[1]
