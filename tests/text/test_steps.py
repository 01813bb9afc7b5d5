"""Long texts are searched step by step, with what one search of the whole finds."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.text import terms
from holdfast.text.terms import find_in_steps, fold_quotes, pieces, search_in_steps

PATTERNS = [re.compile(r"(?<!\d)\d{3}-\d{2}(?!\d)"), re.compile(r"\bpaste\s+this\b"), re.compile(r"a+")]


@pytest.fixture(autouse=True, scope="module")
def small_steps():
    with pytest.MonkeyPatch.context() as patch:
        for name, chars in (("STEP_CHARS", 40), ("OVERLAP_CHARS", 16), ("_EDGE_CHARS", 4)):
            patch.setattr(terms, name, chars)
        yield


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.pattern)
@pytest.mark.parametrize("before", range(20, 60, 3))
def test_a_match_across_two_steps_is_found_once_and_whole(pattern, before):
    text = f"{'x ' * (before // 2)} 123-45 paste  this aaaaa 12-34 {'y ' * 30} 999-99 aa"

    assert [found.span() for found in find_in_steps(pattern, text)] == [
        found.span() for found in pattern.finditer(text)
    ]
    assert search_in_steps(pattern, text).span() == pattern.search(text).span()


def test_a_match_longer_than_a_step_is_found_whole():
    text = "x" * 30 + "a" * 500 + "b" * 50

    assert [found.span() for found in find_in_steps(PATTERNS[2], text)] == [(30, 530)]


def test_what_is_nowhere_is_not_found():
    assert search_in_steps(PATTERNS[0], "nothing " * 50) is None


WORDS = [
    "Straße",
    "ΟΔΟΣ",
    "caf\u0065\u0301",
    "fährt",
    "I",
    "don\u2019t",
    "3",
    "1,000",
    "我喜欢茶",
    "か\u3099き",
    "=\u0338",
    "\u0663\u0664",
    "x_y",
]
GAPS = [" ", "\n", "\n\n", ", ", "。", "", ".", "\u2013", " (", "'"]


@given(st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(GAPS)), min_size=30, max_size=90))
def test_a_long_text_has_the_words_tokens_and_quotes_that_it_has_in_one_piece(said):
    text = "".join(word + gap for word, gap in said)

    assert "".join(pieces(text)) == text
    assert terms._words(text) == terms._words_of_piece(text)
    assert terms._count(text) == max(1, terms._count_piece(text))
    assert fold_quotes(text) == text.translate(terms._SAME_WIDTH)


@pytest.mark.parametrize("text", ["some words ", "Wörter und Sätze, ", "我喜欢茶。"])
def test_no_call_of_an_expression_sees_a_long_text_whole(text):
    """Such a call holds the interpreter until it returns, and every other thread waits."""
    assert max(map(len, pieces(text * 200))) <= 2 * terms.STEP_CHARS + len(text)


def test_a_text_without_marks_is_one_piece():
    assert list(pieces("a" * 500)) == ["a" * 500]
