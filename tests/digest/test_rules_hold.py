"""What must hold for any text at all."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.digest.grammar import languages, load_language
from holdfast.digest.mentions import subject_names
from holdfast.digest.rules import MAX_READ_CHARS, extract_facts, may_state_facts
from holdfast.types import Evidence, Fact, Message

AT = datetime(2024, 5, 15, 12, tzinfo=UTC)
ANY_TEXT = st.text(st.characters(codec=None), max_size=300)
SAID = sorted(
    example["message"]
    for code in languages()
    for pattern in getattr(load_language(code), "patterns", ())
    for example in pattern.examples
)
TALK = st.lists(
    st.sampled_from(SAID)
    | st.sampled_from([", ", " and ", "\n", " 😀 ", "“", '"', "?", "> ", "`", "'s ", " but "])
    | ANY_TEXT,
    max_size=8,
).map("".join)


@settings(max_examples=400, deadline=None)
@given(TALK)
@example("\ud800 I live in \udfff Lisbon\x00.")
@example("I'm \x00\x00\x00 and I live in \x00")
@example("İ live in İstanbul and I'm ﬁne")
def test_every_quote_stands_where_it_says(text: str) -> None:
    """Whatever is written, reading it never fails, and every quote is verbatim."""
    message = Message("user", text, seq=7, at=AT)
    for candidate in extract_facts(message, others={"Luna": "luna"}):
        assert candidate.quote
        assert text[candidate.start : candidate.start + len(candidate.quote)] == candidate.quote
        assert candidate.seq == 7
        assert candidate.value or candidate.op == "retract"
        assert 0 < candidate.confidence <= 1


@settings(max_examples=200, deadline=None)
@given(TALK)
def test_reading_is_a_function_of_the_text(text: str) -> None:
    """Twice the same message gives twice the same facts."""
    message = Message("user", text, seq=1, at=AT)

    assert extract_facts(message) == extract_facts(message)


@pytest.mark.parametrize(
    "unit",
    [
        "I live in ",
        "I'm allergic to a, b and c, ",
        "my wife my wife my ",
        "really really ",
        "and I and I ",
        "so but because ",
        "I'm not not ",
        "'a ",
        '"',
        "`",
        "<a ",
        "* ",
        "3 and ",
        "Aa ",
        "x",
        " ",
        ".",
        "。",
        "tomorrow at 5pm ",
        "if i'm ",
        "with on at the is ",
        "I like going to the ",
    ],
)
def test_hostile_repetition_costs_linear_time(unit: str) -> None:
    """Ten times the text costs about ten times the time, and a megabyte stays bounded."""
    long = (unit * (MAX_READ_CHARS // len(unit)))[:MAX_READ_CHARS]
    short = long[: MAX_READ_CHARS // 10]
    extract_facts(Message("user", short, at=AT))
    start = time.process_time()
    extract_facts(Message("user", short, at=AT))
    small = time.process_time() - start
    start = time.process_time()
    extract_facts(Message("user", long, at=AT))
    large = time.process_time() - start

    assert large < 30 * small + 0.5


def test_a_megabyte_is_read_in_bounded_time() -> None:
    """Only the beginning of a document is talk."""
    text = "I live in Lisbon. " + "lorem ipsum dolor " * 60_000
    start = time.process_time()
    found = extract_facts(Message("user", text, seq=1, at=AT))

    assert [candidate.value for candidate in found] == ["Lisbon"]
    assert may_state_facts(text)
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    "text", ["", " ", "Thanks!", "ok", "lol 😂", "Good morning", "How are you?", "What's the weather?", "haha nice"]
)
def test_small_talk_keeps_the_gate_shut(text: str) -> None:
    """Small talk costs no extraction."""
    assert not may_state_facts(text)


def fact(subject: str, category: str, key: str, value: str) -> Fact:
    said = Evidence("c", 1, "user", value, 0, len(value))
    return Fact(
        id="f", kind="attribute", subject=subject, category=category, key=key, value=value, text=value, confidence=0.9,
        cardinality="multi", lifetime="state", valid_from=AT, valid_to=None, recorded_at=AT, superseded_by=None,
        evidence=(said,), strength=1.0, last_used_at=None, uses=0, source="rules 1",
    )  # fmt: skip


def test_names_learned_before_are_understood_later() -> None:
    """Facts about a named pet, child or wife find their subject in later messages."""
    others = subject_names(
        [],
        [
            fact("self", "pets", "pet_named", "Luna"),
            fact("luna", "identity", "species", "dog"),
            fact("self", "family", "wife", "Anna"),
            fact("self", "family", "son", "Tom"),
            fact("self", "family", "how_many_sons", "1"),
        ],
    )

    assert others.ids == {
        "luna": "luna", "dog": "luna", "anna": "wife", "wife": "wife", "tom": "tom", "son": "tom",
    }  # fmt: skip
    for text, subject in (
        ("Luna is allergic to chicken.", "luna"),
        ("My dog is allergic to chicken.", "luna"),
        ("Anna is allergic to chicken.", "wife"),
        ("My wife is allergic to chicken.", "wife"),
        ("Tom is allergic to chicken.", "tom"),
    ):
        assert [c.subject for c in extract_facts(Message("user", text, seq=1), others=others)] == [subject]


def test_conversation_about_a_subject_keeps_owner_and_subject_apart() -> None:
    """In a conversation about Luna, "she" is Luna and "I" is the user."""
    message = Message("user", "She is allergic to chicken. I'm allergic to pollen.", seq=1)

    assert [(c.subject, c.value) for c in extract_facts(message, subject="luna")] == [
        ("luna", "chicken"),
        ("self", "pollen"),
    ]


def test_times_beside_a_statement_bound_it() -> None:
    """ "Since 2019" says from when a fact holds, in the message's own time."""
    [lives] = extract_facts(Message("user", "I've lived in Rome since 2019.", seq=1, at=AT))
    [moved] = extract_facts(Message("user", "We moved to Porto last week!", seq=1, at=AT))
    [exam] = extract_facts(Message("user", "My exam is on June 3.", seq=1, at=AT))

    assert lives.valid_from_ms == 1_546_300_800_000
    assert lives.quote == "I've lived in Rome since 2019"
    assert moved.valid_from_ms == datetime(2024, 5, 6, tzinfo=UTC).timestamp() * 1000
    assert exam.valid_to_ms == datetime(2024, 6, 4, tzinfo=UTC).timestamp() * 1000
    assert exam.text == "Has an exam on June 3 (2024-06-03)."


def test_a_sentence_may_end_in_loose_commas():
    said = Message("user", "Hi, I'm Craig, a hands-on developer., ,")
    assert "Craig" in {candidate.value for candidate in extract_facts(said)}


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("I drive a Corolla.", "Drives a Corolla."),
        ("I traded the Corolla for an Audi A3.", "Drives an Audi A3."),
        ("I have an iPhone 13.", "Has an iPhone 13."),
        ("I'm training for a marathon.", "Is training for a marathon."),
        ("I'm training for the London marathon.", "Is training for the London marathon."),
        ("I'm working on my business.", "Is working on their business."),
        ("I love a game of padel.", "Likes a game of padel."),
        ("We both love immersing ourselves in the culture.", "Likes immersing themselves in the culture."),
        ("I've decided to restructure my paper.", "Plans to restructure their paper."),
        ("I really enjoy dramas and emotionally-driven films.", "Likes dramas."),
        ("I like action and sci-fi films.", "Likes action films."),
        ("Always give dates when I ask about my deadlines.", "Asks: Always give dates when I ask about my deadlines."),
        ("I have a peanut allergy.", "Is allergic to peanuts."),
        ("I'm allergic to penicillin.", "Is allergic to penicillin."),
        ("I have crohn's.", "Has Crohn's disease."),
        ("My mum has alzheimers.", "Their mother has Alzheimer's."),
    ],
)
def test_what_is_noted_reads_as_english(said, text):
    assert text in [one.text for one in extract_facts(Message("user", said, seq=1)) if one.op == "assert"]


@pytest.mark.parametrize(
    "said",
    ["Awesome! Enjoy yourself!", "I'm trying to check two triangles with sides 9, 12, 15 and 6.75, 9, 11.25 cm."],
)
def test_a_wish_and_an_attempt_say_nothing_of_oneself(said):
    assert extract_facts(Message("user", said, seq=1)) == []
