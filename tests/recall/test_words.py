"""Postings beside an index: bounded, the oldest out first."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from holdfast.recall.index import Postings, PostingsCache


def postings(size: int) -> Postings:
    return Postings(size, np.arange(size), np.arange(size), np.ones(size))


def test_the_least_recently_asked_makes_room():
    words = PostingsCache(4_000)
    for term in ("a", "b"):
        words.put(term, postings(50))
    words.get("a")
    words.put("c", postings(50))

    assert words.get("b") is None
    assert [len(words.get(term).docs) for term in ("a", "c")] == [50, 50]


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 200))))
def test_it_never_holds_more_than_it_may(puts):
    words = PostingsCache(4_000)
    for term, size in puts:
        words.put(term, postings(size))
        assert words.nbytes <= 4_000


def test_the_postings_of_more_documents_replace_those_of_fewer():
    words = PostingsCache(10_000)
    for size in (50, 80, 60):
        words.put("a", postings(size))

    assert words.get("a").end == 80
    assert words.nbytes == postings(80).nbytes
