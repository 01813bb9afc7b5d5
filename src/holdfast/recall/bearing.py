"""Whether a question bears on a memory at all.  Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from .rank import Match, idf


@dataclass(frozen=True, slots=True)
class Bearing:
    """
    What the best document says about whether a question bears on this memory at all.

    Deviations cannot tell: some document always stands out.  So every score of a search is moved by
    the same amount, ``nearness`` times the largest cosine (0 at the embedder's ``recall_min``, 1 at
    its ``merge``) plus ``coverage`` times the largest share of the question's words in one
    document, plus ``offset``.  The offset puts 19 in 20 of the turns that answered, among the first
    ten, above 0 (866 questions of LoCoMo and REALTALK); questions about somebody else's life lose
    95 % of their first ten on LoCoMo and 74 % on REALTALK, where users overlap, and small talk 96
    and 81 %.  By words alone: 85, 69, 83 and 73 %.  The best of few is less than the best of many,
    so below 500 documents ``fewer`` is added for each factor of e that there are less.
    """

    nearness: float
    coverage: float
    offset: float
    fewer: float

    def of(self, nearness: float, coverage: float, documents: int) -> float:
        """How far all scores of a search move."""
        fewer = self.fewer * max(0.0, math.log(500 / max(documents, 1)))
        return self.nearness * nearness + self.coverage * coverage + self.offset + fewer


BEARING: Final = Bearing(nearness=7.2, coverage=5.0, offset=-10.35, fewer=0.9)
BEARING_OF_WORDS: Final = Bearing(nearness=0.0, coverage=15.0, offset=-14.15, fewer=1.8)


def coverage(matches: list[Match], holding: list[int], background: int, size: int) -> float:
    """
    The largest share of the question's words that one document holds, 0 to 1, rare words counting more.

    *holding* says how many of the *background* documents hold each word, *size* how many documents
    *matches* speak of.
    """
    weights = [match.times_asked * idf(count, background) for match, count in zip(matches, holding, strict=True)]
    held = np.zeros(size)
    for match, weight in zip(matches, weights, strict=True):
        held[match.places] += weight
    return float(held.max(initial=0.0)) / (sum(weights) or 1.0)
