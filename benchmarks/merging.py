"""
Which pairs of statements would be merged: with the guard and without it, at several thresholds.

    python benchmarks/merging.py [-v]

The kinds are near (the same but for a trifle), same (the same in other words), merge (the same in another order, in
synonyms, or with a name more), contra (the newer ends the older), distinct (alike, and both true), unrelated, hard
(written against the rules), and never (like merge, and not the same).  Merging any of the last five is wrong.  ``-v`` lists every pair that should be merged with its cosine and what stood in
the way.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

from holdfast.embed import default_embedder
from holdfast.reconcile.compare import comparable, disagreement, reworded, same_words

PAIRS = Path(__file__).parent.parent / "tests" / "reconcile" / "pairs.toml"
KINDS = ("near", "same", "merge", "contra", "distinct", "unrelated", "hard", "never")


def main() -> None:
    pairs = tomllib.loads(Path(PAIRS).read_text(encoding="utf-8"))
    embedder = default_embedder()
    cosines = {}
    if embedder is not None:
        for kind in KINDS:
            rows = embedder.embed([text for pair in pairs[kind] for text in pair])
            cosines[kind] = [float(rows[n] @ rows[n + 1]) for n in range(0, len(rows), 2)]
    print("| merged when | " + " | ".join(f"{kind} / {len(pairs[kind])}" for kind in KINDS) + " |")
    print("|---|" + "---|" * len(KINDS))
    for name in (
        "words alone",
        "guard alone",
        *(f"{t} and guard" for t in (0.6, 0.7, 0.8, 0.85, 0.87, 0.9)),
        "0.87",
        "0.9",
    ):
        counts = []
        for kind in KINDS:
            done = 0
            for n, (a, b) in enumerate(pairs[kind]):
                safe = reworded(a, b) or (comparable(a) and comparable(b) and not disagreement(a, b))
                alike = not name[0].isdigit() or (bool(cosines) and cosines[kind][n] >= float(name.split()[0]))
                done += same_words(a, b) if name == "words alone" else alike and (safe or "guard" not in name)
            counts.append(str(done))
        print(f"| {name} | " + " | ".join(counts) + " |")
    for kind in ("near", "same"):
        for n, (a, b) in enumerate(pairs[kind]):
            if "-v" in sys.argv:
                print(f"{cosines[kind][n]:.3f} {disagreement(a, b) or '-':10} {a} | {b}")


if __name__ == "__main__":
    main()
