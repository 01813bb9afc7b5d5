"""Vectors are compared exactly; of very many, their signs first, and nothing that matters is lost by that."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.embed import quantize
from holdfast.recall import index
from holdfast.recall.vectors import (
    NEAREST,
    Comparison,
    Vectors,
    compare_exactly,
    cosines,
    mean_and_deviation,
    merge_comparisons,
    order_signs,
    order_vectors,
    pack_signs,
)
from holdfast.store.rows import signs
from holdfast.store.segments import stack_signs

from .conftest import ANA
from .test_search import SMALL_TALK, TALK

DIM = 384


def likely(count: int, seed: int) -> np.ndarray:
    """Unit vectors in loose clusters of some ten, the way texts lie."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(count // 10 + 1, DIM))
    rows = centres[rng.integers(0, len(centres), count)] + rng.normal(size=(count, DIM)) * 1.2
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def stored(rows: np.ndarray) -> list[tuple[int, float, bytes]]:
    return [(10 * number, *pair) for number, pair in enumerate(quantize(rows))]


def arranged(rows: np.ndarray) -> Vectors:
    docs = np.arange(len(rows)) * 10
    return order_vectors(docs, np.arange(len(rows)), stored(rows), rows.shape[1])


def test_every_cosine_is_that_of_brute_force():
    rows, question = likely(2_000, 1), likely(1, 2)[0]
    exact = np.array(
        [scale * np.frombuffer(data, np.int8).astype(np.float64) @ question for _, scale, data in stored(rows)]
    )

    found = compare_exactly(arranged(rows), question)

    assert np.abs(found.cosine - exact).max() < 1e-6
    assert found.moments == pytest.approx((exact.mean(), exact.std()), abs=1e-6)


def test_vectors_stand_where_their_documents_do():
    """In any order, with gaps, and with one of another width."""
    rows = likely(6, 3)
    given = stored(rows)
    given[2] = (20, 1.0, b"short")
    docs, places = np.array([0, 10, 20, 30, 45]), np.array([4, 2, 0, 1, 3])

    held = order_vectors(docs, places, given, DIM)

    assert held.present.tolist() == [False, True, True, False, True]
    for doc, place in ((0, 4), (10, 2), (30, 1)):
        assert held.codes[place].tobytes() == given[doc // 10][2]


@pytest.mark.parametrize("seed", range(5))
def test_by_signs_the_nearest_are_those_of_brute_force(seed):
    rows = likely(12_000, seed)
    question = (rows[77] * 0.6 + likely(1, seed + 90)[0] * 0.8).astype(np.float32)
    held = arranged(rows)
    marks = stack_signs([signs(data) for _, _, data in stored(rows)])

    def read(places):
        return held.codes[places], held.scale[places]

    by_signs = order_signs(*marks, np.arange(len(rows)), DIM, read).compare(question, np.zeros(0, np.int64), read)
    exact = compare_exactly(held, question)

    best, told = np.argsort(-exact.cosine)[:10], np.argsort(-by_signs.cosine)[:10]
    assert told[:5].tolist() == best[:5].tolist()
    assert len(set(told) & set(best)) >= 9  # random numbers lie closer together than texts
    assert np.abs(by_signs.cosine[best[:5]] - exact.cosine[best[:5]]).max() < 1e-6
    assert by_signs.moments == pytest.approx(exact.moments, abs=0.02)


def test_signs_wait_for_vectors_that_are_not_there():
    rows = likely(300, 5)
    held = arranged(rows)
    marks = [signs(data) if number % 3 else None for number, (_, _, data) in enumerate(stored(rows))]
    marks[1] = b"of another width"
    places = np.arange(300)[::-1].copy()

    def read(at):
        return held.codes[299 - at], held.scale[299 - at]

    seen = order_signs(*stack_signs(marks), places, DIM, read)
    found = seen.compare(rows[5], np.zeros(0, np.int64), read)

    assert seen.present[299 - 0] == seen.present[299 - 1] == np.False_
    assert seen.present.sum() == 199
    assert int(found.cosine.argmax()) == 299 - 5
    assert (found.cosine[~seen.present] == 0).all()


def test_documents_with_the_words_are_compared_exactly_whatever_their_signs():
    rows = likely(3_000, 7)
    held, question = arranged(rows), likely(1, 8)[0]

    def read(places):
        return held.codes[places], held.scale[places]

    marks = stack_signs([signs(data) for _, _, data in stored(rows)])
    told = order_signs(*marks, np.arange(3_000), DIM, read)
    farthest = np.argsort(told.estimates(question))[:5]
    found = told.compare(question, farthest, read)

    assert found.cosine[farthest] == pytest.approx(cosines(read(farthest), question), abs=1e-6)


@given(st.binary(min_size=0, max_size=70))
def test_signs_are_those_of_numpy(data):
    assert signs(data) == np.packbits(np.frombuffer(data, np.int8) >= 0).tobytes()


def test_two_embedders_are_put_on_one_scale():
    """Each document as it stands among those that its embedder has seen."""
    many = np.array([0.1, 0.2, 0.3, 0.2, 0.0, 0.0])
    few = np.array([0.0, 0.0, 0.0, 0.0, 0.7, 0.9])
    main = Comparison(many, many > 0, mean_and_deviation(many[:4], few=0))
    rest = Comparison(few, few > 0, mean_and_deviation(few[4:], few=0))

    for both in (merge_comparisons(main, rest), merge_comparisons(rest, main)):
        assert both.present.all()
        assert both.moments == main.moments
        assert both.cosine[:4].tolist() == many[:4].tolist()
        assert both.cosine[4:] == pytest.approx([0.2 - main.moments[1], 0.2 + main.moments[1]])


def test_a_big_scope_finds_what_a_small_one_does(embedding, monkeypatch):
    """The same memory, read in both ways."""
    embedding.say(TALK, [*SMALL_TALK, "the xylophone is in the attic", *SMALL_TALK * 4])
    embedding.believe(TALK, 7, "attic", "the xylophone is in the attic")
    ask = partial(embedding.find, ANA, "where is my xylophone?", explain=True, limit=5)
    small = ask()

    monkeypatch.setattr(index, "BIG", 10)
    big = ask()

    assert NEAREST > 40  # so all of them are compared exactly
    assert [hit.id for hit in big] == [hit.id for hit in small]
    assert [hit.score for hit in big] == pytest.approx([hit.score for hit in small], abs=0.2)


def test_signs_stand_where_their_documents_do(embedding, monkeypatch):
    """Two conversations by turns: documents lie by conversation, not in the order in which they came."""
    monkeypatch.setattr(index, "BIG", 10)
    for turn, text in enumerate([*SMALL_TALK, "the xylophone is in the attic", *SMALL_TALK] * 2):
        embedding.say(ANA.within(f"talk{turn % 3}"), [text])

    def work(view):
        found = index.read_index(view, "message", view.user(), [embedding.embedder], None)
        places = np.arange(len(found))
        codes, _ = index.read_vectors(view, found, embedding.embedder, places)
        return found, codes

    found, codes = embedding.store.read(ANA, work)
    assert not np.array_equal(found.docs, found.sorted_docs)
    (signs,) = found.vectors
    assert np.array_equal(signs.bits, pack_signs(np.packbits(codes >= 0, axis=1), codes.shape[1]))
