"""The postings of words that were asked for lately, kept beside an index and as true as it is."""

from __future__ import annotations

import threading
from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

Postings = tuple[NDArray[np.int64], NDArray[np.float64]]
# What a word costs beside its arrays.
_OVERHEAD = 400


class Words:
    """
    The least recently asked words make room when all together exceed *max_bytes*.

    Common words are asked again and again and have the longest postings.  Belongs to one index, so
    to one moment: it goes when the index goes.  Safe to use from any thread.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._held: OrderedDict[str, Postings] = OrderedDict()
        self._nbytes = 0
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """What is held now."""
        return self._nbytes

    def get(self, term: str) -> Postings | None:
        """The postings of *term*; ``None`` when they are not held, which says nothing about the text."""
        with self._lock:
            found = self._held.get(term)
            if found is not None:
                self._held.move_to_end(term)
            return found

    def put(self, term: str, found: Postings) -> None:
        """Keep the postings of *term*, unless they alone exceed the limit."""
        size = _size(found)
        with self._lock:
            if size > self.max_bytes or term in self._held:
                return
            self._held[term] = found
            self._nbytes += size
            while self._nbytes > self.max_bytes:
                _, oldest = self._held.popitem(last=False)
                self._nbytes -= _size(oldest)


def _size(found: Postings) -> int:
    return _OVERHEAD + found[0].nbytes + found[1].nbytes
