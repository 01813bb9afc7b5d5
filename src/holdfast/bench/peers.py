"""
Plain retrieval to stand beside: BM25, cosine, and both fused by reciprocal ranks.

Nothing but the text counts here: no speakers, no dates, no neighbours.  BM25 and the fusion have the
constants that the literature uses (k1 = 1.2, b = 0.75; k = 60).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..embed.protocol import Embedder
from ..text.terms import terms
from .questions import Sample

Peer = Literal["bm25", "cosine", "rrf"]
PEERS: tuple[Peer, ...] = ("bm25", "cosine", "rrf")

_K1, _B, _RRF_K = 1.2, 0.75, 60
Floats = NDArray[np.float64]


@dataclass
class Remembered:
    """An embedder that keeps what it made, so that memory and peers pay for a text once."""

    inner: Embedder
    known: dict[str, NDArray[np.float32]] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """That of the embedder within, as are width and thresholds."""
        return self.inner.id

    def __post_init__(self) -> None:
        self.dim, self.thresholds = self.inner.dim, self.inner.thresholds

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row a text."""
        missing = [text for text in dict.fromkeys(texts) if text not in self.known]
        if missing:
            self.known.update(zip(missing, self.inner.embed(missing), strict=True))
        return np.stack([self.known[text] for text in texts])


class Plain:
    """One sample's lines, ready to be ranked without a memory."""

    def __init__(self, sample: Sample, embedder: Embedder | None) -> None:
        self._ids = [line.id for line in sample.lines]
        self._counts = [Counter(terms(line.text)) for line in sample.lines]
        lengths = np.array([sum(count.values()) for count in self._counts], dtype=np.float64)
        self._norm = _K1 * (1 - _B + _B * lengths / max(1.0, float(lengths.mean())))
        self._containing = Counter(term for count in self._counts for term in count)
        self._embedder = embedder
        self._vectors = _embedded(embedder, [line.text for line in sample.lines]) if embedder else None

    def rank(self, peer: Peer, question: str) -> list[str]:
        """
        The ids of all lines, best first; equal ones in the order in which they were said.
        """
        if peer == "rrf":
            ranks = [
                np.argsort(np.argsort(-scores, kind="stable"))
                for scores in (self._bm25(question), self._cosine(question))
            ]
            scores = sum((1 / (_RRF_K + 1 + rank) for rank in ranks), np.zeros(len(self._ids)))
        else:
            scores = self._bm25(question) if peer == "bm25" else self._cosine(question)
        return [self._ids[place] for place in np.argsort(-scores, kind="stable")]

    def _bm25(self, question: str) -> Floats:
        scores = np.zeros(len(self._ids))
        for term in set(terms(question)):
            among = self._containing[term]
            if not among:
                continue
            rarity = np.log(1 + (len(self._ids) - among + 0.5) / (among + 0.5))
            times = np.array([count[term] for count in self._counts], dtype=np.float64)
            scores += rarity * times * (_K1 + 1) / (times + self._norm)
        return scores

    def _cosine(self, question: str) -> Floats:
        if self._embedder is None or self._vectors is None:
            raise ValueError("cosine and rrf need an embedder")
        vector = self._embedder.embed([question])[0]
        return np.asarray(self._vectors @ vector, dtype=np.float64)


def _embedded(embedder: Embedder, texts: Sequence[str], batch: int = 64) -> NDArray[np.float32]:
    rows = [embedder.embed(texts[start : start + batch]) for start in range(0, len(texts), batch)]
    return np.concatenate(rows)
