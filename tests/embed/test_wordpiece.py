"""Token ids are those of the reference tokenizer."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.embed.minilm import CLS, MAX_CHARS, SEP, WordPiece

REFERENCE = json.loads(Path(__file__).with_name("reference.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def words(minilm):
    return WordPiece(minilm._folder / "vocab.txt")


@pytest.mark.parametrize("case", REFERENCE["vectors"] + REFERENCE["tokens"], ids=lambda case: ascii(case["text"][:24]))
def test_ids_are_those_of_the_reference(words, case):
    assert words.ids(case["text"] * case.get("times", 1), 256) == case["ids"]


def test_user_text_cannot_forge_a_marker(words):
    assert words.ids("a [SEP] b", 256).count(SEP) == 1


@given(text=st.text(), limit=st.integers(min_value=3, max_value=300))
def test_any_text_is_cut_to_the_limit_between_its_marks(words, text, limit):
    ids = words.ids(text, limit)

    assert len(ids) <= limit
    assert ids == [] or (ids[0] == CLS and ids[-1] == SEP and len(ids) > 2)


@given(text=st.text(max_size=40))
def test_cached_words_give_the_same_ids(words, text):
    assert words.ids(text, 256) == words.ids(text, 256)


def test_only_the_beginning_of_a_megabyte_is_looked_at(words):
    text = "é" * MAX_CHARS

    assert words.ids(text + " tail" * 200_000, 256) == words.ids(text, 256)
