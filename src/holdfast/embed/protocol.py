"""
The protocol of an embedder: a name, a width, its own thresholds, and one method.

An embedder turns texts into unit vectors, so that a dot product is a cosine.  It knows nothing of
scopes, messages or facts.  The store keeps a vector as one int8 a dimension and one scale a row, a quarter of the bytes:
measured on 1,536 questions, ranking by such rows found what float32 rows found (R@5 .6947 against .6949).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

from ..errors import BadInput
from ..text import NDArray, dataclass, np


@dataclass(frozen=True, slots=True)
class Thresholds:
    """
    The cosines at which this embedder's vectors mean something; another's mean something else.

    ``recall_min``: below it a text has nothing to do with a question.  ``related``: from it on two
    statements may be about the same thing and are compared by other means.  ``merge``: from it on
    they say the same, if their numbers, negations and names agree.  ``bm25_weight``: share of the
    words (against the vectors) when both are fused.
    """

    recall_min: float
    related: float
    merge: float
    bm25_weight: float


@runtime_checkable
class Embedder(Protocol):
    """
    Texts in, unit vectors out.

    ``id`` names model, revision, precision and width; it is stored with every vector, and vectors
    of two ids are never compared.  ``embed`` may be called from several threads at once.
    """

    @property
    def id(self) -> str: ...

    @property
    def dim(self) -> int: ...

    @property
    def thresholds(self) -> Thresholds: ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row a text, shape ``(len(texts), dim)``: of length 1, or all zeros for a text without words."""
        ...


def quantize(rows: NDArray[np.float32]) -> list[tuple[float, bytes]]:
    """
    ``(scale, int8 bytes)`` for each row of *rows*, shape (n, dim); a row of zeros has scale 0.

    ``value ≈ scale * int8``, off by at most half a scale, which is the row's largest value / 127.
    """
    scales = np.abs(rows).max(axis=1, initial=0.0) / np.float32(127)
    codes = np.rint(rows / np.where(scales > 0, scales, 1)[:, None]).astype(np.int8)
    return [(float(scale), code.tobytes()) for scale, code in zip(scales, codes, strict=True)]


def dequantize(pairs: Iterable[tuple[float, bytes]], dim: int) -> NDArray[np.float32]:
    """
    Return the rows that `quantize` stored, shape (n, dim).

    Raises:
        BadInput: a row is not *dim* bytes long, so another embedder made it.
    """
    scales: list[float] = []
    blobs: list[bytes] = []
    for scale, blob in pairs:
        if len(blob) != dim:
            raise BadInput(f"a stored vector has {len(blob)} dimensions, the embedder has {dim}")
        scales.append(scale)
        blobs.append(blob)
    codes = np.frombuffer(b"".join(blobs), np.int8).reshape(len(blobs), dim)
    return codes.astype(np.float32) * np.array(scales, np.float32)[:, None]
