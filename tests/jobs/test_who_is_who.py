"""A model is told who the user is and what day it is, and its words for the user mean the user."""

from __future__ import annotations

from datetime import UTC, datetime

from holdfast import Config, Memory, Message
from holdfast.testing.fakes import FakeClock
from holdfast.testing.model import ScriptedModel
from holdfast.text.render import parse_blocks

AT = datetime(2026, 3, 14, 9, tzinfo=UTC)
EVERY_TURN = Config(extract_every_user_turns=1)


def row(subject, message, value="hazelnuts", quote="allergic to hazelnuts"):
    return f"allergy,allergic_to,{value},0.95,{subject},add,asserted,permanent,{message},{quote}"


def about(model, layer):
    return [dict(parse_blocks(request.text)).get("about") for request in model.requests(layer)]


def test_prompts_name_the_user_and_the_day():
    model = ScriptedModel()
    with Memory(embedder=None, llm=model, config=EVERY_TURN, clock=FakeClock(AT)) as memory:
        chat = memory.conversation("a", user="u1")
        chat.append([Message("user", "Hi, I'm Hanna.", at=AT), Message("assistant", "Hello!", at=AT)])
        memory.digest()
        chat.append([Message("user", "I sing in a choir.", at=AT), Message("assistant", "Nice.", at=AT)])
        chat.end()
        memory.digest()

    assert about(model, "facts")[-1] == ["the user: Hanna", "today: Saturday 2026-03-14"]
    assert about(model, "combined")[-1][:2] == ["the user: Hanna", "today: Saturday 2026-03-14"]


def test_the_users_name_as_a_subject_is_the_user():
    model = ScriptedModel({"facts": ["NONE", row("Hanna", 3)]})
    with Memory(embedder=None, llm=model, config=EVERY_TURN) as memory:
        chat = memory.conversation("a", user="u1")
        for said in ("Hi, I'm Hanna.", "I'm allergic to hazelnuts."):
            chat.record(said, "I see.")
            memory.digest()
        facts = memory.user("u1").facts("allergy")

    assert [(fact.subject, fact.value) for fact in facts] == [("self", "hazelnuts")]


def test_in_a_chat_of_two_each_is_who_they_are():
    """The user by name is the user in whoever's message; a row without a subject is about whoever speaks."""
    rows = "\n".join([row("Hanna", 1), row("", 2, "eggs", "allergic to eggs"), row("hanna", 3, "figs", "figs as well")])
    model = ScriptedModel({"facts": [rows]})
    with Memory(embedder=None, llm=model, config=Config(extract_every_user_turns=3)) as memory:
        chat = memory.conversation("a", user="u1")
        said = [
            ("Hanna", "I'm allergic to hazelnuts."),
            ("Oskar", "And I'm allergic to eggs."),
            ("Hanna", "Oh, and figs as well."),
        ]
        chat.append([Message("user", text, name=name, at=AT) for name, text in said])
        chat.end()
        memory.digest()
        facts = memory.user("u1").facts("allergy")

    assert {(fact.subject, fact.value) for fact in facts} == {
        ("self", "hazelnuts"),
        ("self", "figs"),
        ("oskar", "eggs"),
    }


def test_of_two_with_one_name_the_one_shown_under_it_is_meant():
    """The other is shown under the relation: so neither becomes a third."""
    rows = [
        "family,son,Sam,0.95,,add,1,My son Sam\nfood,does_not_eat,peas,0.9,Sam,add,1,My son Sam hates peas\n"
        "family,brother_in_law,Sam,0.95,,set,1,My brother-in-law is also called Sam",
        "food,does_not_eat,peas,0.9,Sam,remove,3,Sam eats peas now\nallergy,allergic_to,eggs,0.9,Sam,add,3,allergic to eggs",
    ]
    model = ScriptedModel({"facts": rows})
    with Memory(embedder=None, llm=model, config=EVERY_TURN) as memory:
        chat = memory.conversation("a", user="u1")
        for said in (
            "My son Sam hates peas. My brother-in-law is also called Sam.",
            "Little Sam eats peas now. He's allergic to eggs though.",
        ):
            chat.record(said, "I see.")
            memory.digest()
        facts = [
            (fact.subject, fact.value) for fact in memory.user("u1").facts() if fact.category in ("allergy", "food")
        ]

    assert facts == [("sam", "eggs")]


def test_another_speaker_ends_nothing_of_the_users():
    with Memory(embedder=None) as memory:
        chat = memory.conversation("a", user="u1")
        for name, text in (
            ("u1", "I have a greyhound called Otis."),
            ("Oskar", "Sold them, the neighbours hated the noise."),
        ):
            chat.append(Message("user", text, name=name))
        memory.digest()
        left = [fact.value for fact in memory.user("u1").facts() if fact.key in ("pet_named", "breed")]

    assert sorted(left) == ["Otis", "greyhound"]
