"""
A clock and an embedder for tests.

The clock moves only by command.  The embedder needs no model and no file, takes microseconds a text, and gives the same
vectors on every machine.
"""

from __future__ import annotations

import re
import threading
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from ..embed import Thresholds


class FakeClock:
    """
    Call it for the time, as an aware ``datetime``; ``advance`` moves it, backwards too.

    It does not move otherwise, so a test decides when things happen.
    """

    def __init__(self, start: datetime = datetime(2026, 1, 5, 9, tzinfo=UTC)) -> None:
        if start.tzinfo is None:
            raise ValueError("a clock needs a start with a time zone")
        self._now = start
        self._lock = threading.Lock()

    def __call__(self) -> datetime:
        with self._lock:
            return self._now

    def advance(self, *, seconds: float = 0, minutes: float = 0, hours: float = 0, days: float = 0) -> datetime:
        """Move by the sum of the arguments, and return the new time."""
        with self._lock:
            self._now += timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
            return self._now


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
