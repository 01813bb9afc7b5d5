"""
What the built-in embedder costs on one core: a query, and texts a second by how many go together.

    python benchmarks/embed.py             as installed: onnxruntime with the extra ``fast``, else numpy
    python benchmarks/embed.py numpy

Times are CPU times of the best of five rounds.  The yardstick is a bare numpy product with as many
multiplications as the model needs for the same texts, in the same run: the ratio is what everything else costs.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from holdfast.embed import minilm, resolve

SENTENCES = [
    "I live in Lisbon.",
    "We moved to Porto last week, and the flat is still full of boxes!",
    "What should I cook tonight? Remember that my daughter does not eat mushrooms.",
    "ok thanks",
    "My flight leaves at 7:40 on Monday, I land in Oslo around noon and the meeting is at three, so book a taxi, please.",
]
TEXTS = [f"{sentence} ({number})" for number in range(24) for sentence in SENTENCES]
BATCHES = (1, 2, 4, 8, 16)


def cpu_seconds(work: Callable[[], object], rounds: int = 5) -> float:
    """The CPU time of *work*, best of so many rounds."""
    taken = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return min(taken)


def main() -> None:
    """Print one line a measurement."""
    embedder = resolve(sys.argv[1] if len(sys.argv) > 1 else "default")
    assert isinstance(embedder, minilm.MiniLM), "the embedding model is missing"
    print(f"computed by     {embedder.runtime}")
    embedder.embed(TEXTS[:5])
    query_ms = statistics.median(cpu_seconds(lambda t=text: embedder.embed([t]), 3) * 1e3 for text in TEXTS[:20])
    print(f"one text        {query_ms:6.1f} ms (median of 20)")

    tokens = sum(len(embedder._loaded().words.ids(text, minilm.MAX_TOKENS)) for text in TEXTS)
    rows, matrix = np.ones((tokens, minilm.DIM), np.float32), np.ones((minilm.DIM, 12 * minilm.DIM), np.float32)
    with threadpool_limits(1, "blas"):
        yardstick = cpu_seconds(lambda: [rows @ matrix for _ in range(minilm.LAYERS)])
    print(f"bare product    {len(TEXTS) / yardstick:6.0f} texts/s")
    for size in BATCHES:
        minilm.BATCH = size
        took = cpu_seconds(lambda: embedder.embed(TEXTS))
        print(f"{size:2} together     {len(TEXTS) / took:6.0f} texts/s   {yardstick / took:.2f} of the bare product")


if __name__ == "__main__":
    main()
