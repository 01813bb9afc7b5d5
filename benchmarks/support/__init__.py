"""What the benchmarks share: made-up conversations, an embedder that costs nothing, and how figures are told."""

from __future__ import annotations

import os
import platform
import random
import statistics
import time
import zlib
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from holdfast.embed import Thresholds

SYLLABLES = ("ba", "del", "fi", "gor", "hun", "jas", "ki", "lem", "mo", "nar", "pel", "ros", "su", "tav", "vin", "zo")
VOCABULARY = [a + b + c for a in SYLLABLES for b in SYLLABLES for c in SYLLABLES[:8]]
DIM = 384


def sentence(rng: random.Random, words: int = 12) -> str:
    """So many words, the first of the vocabulary more often than the last; it states nothing."""
    found: dict[str, None] = {}
    while len(found) < words:
        found[VOCABULARY[int(len(VOCABULARY) * rng.random() ** 2)]] = None
    return " ".join(found).capitalize() + "."


def statement(rng: random.Random) -> str:
    """Something that a user says of themselves and that the rules take for a fact."""
    word = VOCABULARY[rng.randrange(len(VOCABULARY))]
    return rng.choice((f"I like {word}.", f"I hate {word}.", f"I work as a {word} engineer.", "My dog is called Rex."))


def talk(rng: random.Random, messages: int, stating: float) -> list[dict[str, Any]]:
    """A conversation of user and assistant by turns; the share *stating* of the user's turns holds a statement."""
    return [
        {"role": "assistant", "content": sentence(rng)}
        if number % 2
        else {"role": "user", "content": (statement(rng) + " " if rng.random() < stating else "") + sentence(rng)}
        for number in range(messages)
    ]


class StandIn:
    """An embedder whose vectors are ready beforehand: what is measured around it is the rest."""

    id, dim = "stand-in/1", DIM
    thresholds = Thresholds(recall_min=0.1, related=0.4, merge=0.9, bm25_weight=0.5)

    def __init__(self) -> None:
        rows = np.random.default_rng(7).normal(size=(4096, DIM)).astype(np.float32)
        self._rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows: NDArray[np.float32] = self._rows[[zlib.crc32(text.encode()) % len(self._rows) for text in texts]]
        return rows


def machine() -> str:
    """One line on where and when a table was made."""
    load = "/".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"{datetime.now():%Y-%m-%d %H:%M}, {os.cpu_count()} cores, load {load}, "
        f"Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}"
    )


def times_ms(calls: Sequence[Callable[[], object]]) -> list[float]:
    """How long each of *calls* took, in milliseconds."""
    taken = []
    for call in calls:
        began = time.perf_counter()
        call()
        taken.append((time.perf_counter() - began) * 1e3)
    return taken


def p50_p95(values: Sequence[float]) -> tuple[float, float]:
    """The median, and what 19 in 20 stay below."""
    return statistics.median(values), sorted(values)[int(0.95 * (len(values) - 1))]
