"""Stored vectors are a quarter of the size and rank like the originals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from holdfast.embed import dequantize, quantize
from holdfast.errors import BadInput

ROWS = arrays(
    np.float32,
    st.tuples(st.integers(0, 6), st.integers(1, 40)),
    elements=st.floats(-1, 1, width=32, allow_subnormal=False).map(lambda v: v if abs(v) > 1e-6 else 0.0),
)


@given(rows=ROWS)
def test_comes_back_within_half_a_step(rows):
    pairs = quantize(rows)
    back = dequantize(pairs, rows.shape[1])

    assert back.shape == rows.shape
    assert back.dtype == np.float32
    for row, got, (scale, _) in zip(rows, back, pairs, strict=True):
        assert np.abs(row - got).max() <= scale * 0.5001


def test_one_byte_a_dimension():
    [(scale, blob)] = quantize(np.array([[0.5, -1.0, 0.0]], np.float32))

    assert blob == np.array([64, -127, 0], np.int8).tobytes()
    assert scale == pytest.approx(1 / 127)


def test_zeros_stay_zeros():
    pairs = quantize(np.zeros((2, 3), np.float32))

    assert pairs == [(0.0, b"\0\0\0")] * 2
    assert not dequantize(pairs, 3).any()


def test_row_of_another_width_is_refused():
    """Vectors of two embedders must never be compared."""
    with pytest.raises(BadInput, match="3 dimensions"):
        dequantize([(1.0, b"abc")], 4)


def test_cosines_survive():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(50, 384)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)

    np.testing.assert_allclose(dequantize(quantize(rows), 384) @ rows.T, rows @ rows.T, atol=0.006)
