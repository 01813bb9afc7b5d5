"""Long texts are searched step by step, with what one search of the whole finds."""

import re

import pytest

from holdfast.text import terms
from holdfast.text.terms import find_in_steps, search_in_steps

PATTERNS = [re.compile(r"(?<!\d)\d{3}-\d{2}(?!\d)"), re.compile(r"\bpaste\s+this\b"), re.compile(r"a+")]


@pytest.fixture(autouse=True)
def small_steps(monkeypatch):
    for name, chars in (("STEP_CHARS", 40), ("OVERLAP_CHARS", 16), ("_EDGE_CHARS", 4)):
        monkeypatch.setattr(terms, name, chars)


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
