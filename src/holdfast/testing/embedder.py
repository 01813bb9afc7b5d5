"""An embedder for tests: no model, no file, microseconds a text, the same vectors on every machine."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..embed import Thresholds

_WORD = re.compile(r"[^\W_]+")


class HashEmbedder:
    """
    An embedder that hashes words and their three-letter pieces into ``dim`` buckets: texts that share letters are alike.

    It knows no meaning: "car" and "automobile" share nothing.  ``calls`` lists the texts of every call.
    """

    def __init__(self, dim: int = 64, *, name: str = "hash") -> None:
        self.dim = dim
        self.id = f"{name}/1/{dim}"
        self.thresholds = Thresholds(recall_min=0.1, related=0.3, merge=0.9, bm25_weight=0.5)
        self.calls: list[tuple[str, ...]] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row a text, shape (n, dim), of length 1; zeros for a text without words."""
        self.calls.append(tuple(texts))
        rows = np.zeros((len(texts), self.dim), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in _WORD.findall(text.lower()):
                marked = f"<{word}>"
                for piece in (word, *(marked[n : n + 3] for n in range(len(marked) - 2))):
                    # the extra hash bit gives the sign, so that buckets shared by chance cancel out
                    code = zlib.crc32(piece.encode("utf-8", "surrogatepass"))
                    row[code % self.dim] += 1 if code >> 31 else -1
            length = float(np.linalg.norm(row))
            if length:
                row /= length
        return rows
