"""The bits that ranking reads of every message."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.text.terms import (
    FIRST_PERSON,
    HAS_NUMBER,
    IS_QUESTION,
    NAMES_THING,
    NAMES_TIME,
    STANDING,
    signals,
)


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("", 0),
        ("I like tea.", FIRST_PERSON),
        ("How are you?", IS_QUESTION),
        ("元気ですか？", IS_QUESTION),
        ("Really? " + "I had no idea that it would rain all through the whole afternoon.", FIRST_PERSON),
        ("We met yesterday", NAMES_TIME | FIRST_PERSON),
        ("Last week was hard", NAMES_TIME),
        ("last Tuesday", NAMES_TIME),
        ("two days ago", NAMES_TIME | HAS_NUMBER),
        ("in 2019", NAMES_TIME | HAS_NUMBER),
        ("I have 3 cats", HAS_NUMBER | FIRST_PERSON),
        ("a dozen eggs", HAS_NUMBER),
        ("someone often weakens", 0),
        ("Always answer in short sentences", STANDING),
        ("Please don’t use emojis", STANDING),
        ("a word or two " * 50 + "as always", HAS_NUMBER),
        ("Last summer we drove down to Porto", NAMES_TIME | NAMES_THING | FIRST_PERSON),
        ('The best of all was "the night train", though', NAMES_THING),
        ("Good morning Ben", 0),
        ("What happened last Friday at 5?", IS_QUESTION | NAMES_TIME | HAS_NUMBER),
    ],
)
def test_signals_of_a_text(text, bits):
    assert signals(text) == bits


@given(st.text(max_size=300))
def test_any_text_has_signals(text):
    assert 0 <= signals(text) < 64
