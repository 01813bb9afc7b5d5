"""Where sentences begin and end in chat."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.text.sentences import split_sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("I met Dr. Smith at 3.5 p.m. today. Good.", ["I met Dr. Smith at 3.5 p.m. today.", "Good."]),
        ("I live in St. Louis. You?", ["I live in St. Louis.", "You?"]),
        ("J. R. Tolkien wrote. I read.", ["J. R. Tolkien wrote.", "I read."]),
        ("So did I. Then we left.", ["So did I.", "Then we left."]),
        ("Fruit, e.g. apples, etc. are fine.", ["Fruit, e.g. apples, etc. are fine."]),
        ("well... maybe later. ok", ["well... maybe later.", "ok"]),
        ("Well... Maybe.", ["Well...", "Maybe."]),
        ("It costs 3.50 USD. Version 2.3.1 is out.", ["It costs 3.50 USD.", "Version 2.3.1 is out."]),
        ("What?! No way!!! Yes", ["What?!", "No way!!!", "Yes"]),
        ('He said "Go." Then left.', ['He said "Go."', "Then left."]),
        ("(Really.) Yes.", ["(Really.)", "Yes."]),
        ("line one\nline two\r\nline three", ["line one", "line two", "line three"]),
        ("- milk\n* eggs\n2) bread\n3. tea", ["milk", "eggs", "bread", "tea"]),
        ("我住在北京。我喜欢茶！你呢？", ["我住在北京。", "我喜欢茶！", "你呢？"]),
        ("東京に住んでいます。「はい。」と言った。", ["東京に住んでいます。", "「はい。」", "と言った。"]),
        ("서울에 살아요. 채식주의자예요!", ["서울에 살아요.", "채식주의자예요!"]),
        ("I moved 🎉 Now I live in Rome", ["I moved 🎉", "Now I live in Rome"]),
        ("Nice! 😀 See you", ["Nice!", "See you"]),
        ("see example.com for more", ["see example.com for more"]),
        ("", []),
        ("...", []),
        (" \n \n ", []),
    ],
)
def test_sentences_of_chat(text: str, sentences: list[str]) -> None:
    """Stops, lines, bullets and pictures end sentences; abbreviations and decimals do not."""
    assert [span.of(text) for span in split_sentences(text)] == sentences


@given(st.text(st.characters(codec=None), max_size=400))
def test_sentences_are_ordered_disjoint_and_lose_only_marks(text: str) -> None:
    """Every letter and digit outside list marks stands in exactly one sentence."""
    spans = split_sentences(text)

    assert all(0 <= span.start < span.end <= len(text) for span in spans)
    assert all(a.end <= b.start for a, b in pairwise(spans))
    assert all(span.of(text) == span.of(text).strip() for span in spans)


@pytest.mark.parametrize("unit", ["a. ", ".", ". x", " \n", "Dr. ", "😀", "\n- ", "。", "a", "\u2028"])
def test_a_megabyte_of_anything_is_split_in_bounded_time(unit: str) -> None:
    """The work grows with the length, whatever is repeated."""
    text = unit * (1_000_000 // len(unit)) + "x"
    start = time.process_time()
    split_sentences(text)

    assert time.process_time() - start < 6
