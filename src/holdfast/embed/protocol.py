"""
The protocol of an embedder: a name, a width, its own thresholds, and one method.

An embedder turns texts into unit vectors, so that a dot product is a cosine.  It knows nothing of
scopes, messages or facts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


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
