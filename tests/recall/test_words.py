"""Postings beside an index: bounded, the oldest out first."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from holdfast.recall.index import PostingsCache


def postings(size: int) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(size), np.ones(size)


def test_the_least_recently_asked_makes_room():
    words = PostingsCache(3_000)
    for term in ("a", "b"):
        words.put(term, postings(50))
    words.get("a")
    words.put("c", postings(50))

    assert words.get("b") is None
    assert [len(words.get(term)[0]) for term in ("a", "c")] == [50, 50]


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 300))))
def test_it_never_holds_more_than_it_may(puts):
    words = PostingsCache(4_000)
    for term, size in puts:
        words.put(term, postings(size))
        assert words.nbytes <= 4_000
