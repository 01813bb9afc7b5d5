"""Words of documents in memory: found as counting them one by one finds them, however the documents came."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from holdfast import Memory
from holdfast.store import pack_words, writeview
from holdfast.store.segments import SIZE, Block, Words, pack_texts
from holdfast.testing.rows import ANA, say

TERM = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=5) | st.sampled_from(
    ["a", "ab", "ba"]
)
DOCUMENTS = st.lists(st.lists(TERM, max_size=6), max_size=12)


def packed(documents: list[list[str]]) -> Block:
    return pack_texts([pack_words(Counter(words)) for words in documents])


def found(words: Words, asked: str) -> dict[int, int]:
    at, counts = words.find([asked])[asked]
    return dict(zip(at.tolist(), counts.tolist(), strict=True))


@given(st.lists(DOCUMENTS, max_size=6), TERM)
def test_each_document_that_holds_a_word_is_found_and_no_other(batches, missing):
    words = Words()
    for batch in batches:
        words = words.extend(packed(batch))
    documents = [document for batch in batches for document in batch]
    asked = {missing, *(word for document in documents for word in document)}

    counted = {word: {at: said.count(word) for at, said in enumerate(documents) if word in said} for word in asked}
    assert {word: found(words, word) for word in asked} == counted
    together = words.find(asked)
    assert {word: dict(zip(*map(list, together[word]), strict=True)) for word in asked} == counted


@given(st.lists(DOCUMENTS, max_size=4), st.sampled_from(["a", "ab", "b", "ü", "x"]))
def test_words_are_found_by_how_they_begin(batches, start):
    words = Words()
    for batch in batches:
        words = words.extend(packed(batch))

    said = {word for batch in batches for document in batch for word in document}
    assert words.beginning(start) == {word for word in said if word.startswith(start)}


def test_many_words_and_long_ones_are_told_apart():
    """More than are numbered at a time, one of them longer than that."""
    terms = [f"{'long' * (number % 7)}{number}" for number in range(20_000)]
    documents = [
        [terms[number], terms[number // 2], "x" * 100_000 if number == 77 else "y"] for number in range(20_000)
    ]
    words = Words().extend(packed(documents))

    assert found(words, terms[9_000]) == {9_000: 1, 18_000: 1, 18_001: 1}
    assert found(words, "x" * 100_000) == {77: 1}
    assert len(found(words, "y")) == 19_999


def test_long_words_that_differ_in_the_ends_of_their_blocks_are_different():
    pairs = [("w02707ba3pdjhx4l", "w02707bb3pdwhx4q"), ("ndi0og5aykee2iia", "ndi0og5bykep2iit")]
    for one, other in pairs:
        words = Words().extend(packed([[one], [other]]))

        assert found(words, one) == {0: 1}
        assert found(words, other) == {1: 1}


def test_adding_documents_one_by_one_leaves_few_blocks():
    words = Words()
    for number in range(1_000):
        words = words.extend(pack_texts([f"word{number}"]))

    assert len(words.blocks) <= 6
    assert found(words, "word0") == {0: 1}
    assert found(words, "word999") == {999: 1}
    assert Words().extend(pack_texts(["a", "b"])).nbytes < words.nbytes


def test_gaps_between_segments_do_not_stop_the_packing_of_newer_documents(tmp_path, monkeypatch):
    monkeypatch.setattr(writeview, "SEALED_AT_ONCE", 2)
    with Memory(tmp_path / "memory.db", embedder=None, background=False) as memory:
        store = memory._engine.store

        def add(parts: int) -> list[tuple[int, int]]:
            for _ in range(parts):
                store.write(ANA, lambda view: say(view, *["word"] * SIZE))
            return store.read(ANA, lambda view: view._run("segment_ranges", subject="self", kind="message"))

        for first, last in add(7)[:6:2]:
            store.write(ANA, lambda view, gone=range(first, last + 1): view.remove_docs("self", "message", gone))
        sealed = add(3)

    assert sealed[-1] == (9 * SIZE + 1, 10 * SIZE)
    assert len(sealed) == 7
