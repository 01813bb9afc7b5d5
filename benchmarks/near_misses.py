"""
How often a small memory recalls something for questions about what was said, and for near misses.

    python benchmarks/near_misses.py [near_misses.jsonl] [--embedder default|none] [--each]

A near miss asks for a thing next to what was said: the color of the bathroom where the kitchen's was told.  The file holds invented users, one a
line: `said` (what they said, four messages a conversation), `own` (questions that this answers) and `near` (questions that it does not answer).

recalled   share of the questions for which a context would recall something, at the default settings
at 95 %    the same, if the gate stood where 95 % of the questions about what was said still recall something
AUROC      how well the relevance of the best hit tells the two kinds apart
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from holdfast import Config, Memory, Message
from holdfast.embed import default_embedder
from holdfast.embed.protocol import Embedder
from holdfast.testing.fakes import FakeClock

KINDS = ("own", "near")
MESSAGES = 4  # of a conversation; the next one is three days later


def ask(user: Mapping[str, Any], embedder: Embedder | None, *, each: bool) -> dict[str, list[tuple[float, bool]]]:
    """Return for each question the relevance of its best hit, and whether a context would recall anything."""
    clock, name = FakeClock(datetime(2026, 6, 1, 9, tzinfo=UTC)), user["user"]
    found: dict[str, list[tuple[float, bool]]] = {kind: [] for kind in KINDS}
    with Memory(":memory:", clock=clock, embedder=embedder, config=Config(durable=False)) as memory:
        for start in range(0, len(user["said"]), MESSAGES):
            chat = memory.conversation(f"talk {start}", user=name)
            for said in user["said"][start : start + MESSAGES]:
                chat.append([Message("user", said), Message("assistant", "I see.")])
            clock.advance(seconds=3 * 86_400)
        memory.digest()
        for kind in KINDS:
            for question in user[kind]:
                ranked = memory.user(name).explain(question).ranked
                best = max(ranked, key=lambda one: one.hit.relevance, default=None)
                relevance = best.hit.relevance if best else 0.0
                found[kind].append((relevance, any(one.kept for one in ranked)))
                if each:
                    print(f"{name:8}{kind:6}{relevance:6.2f}  {question}  |  {best.hit.text[:60] if best else ''}")
    return found


def report(found: Mapping[str, Sequence[tuple[float, bool]]]) -> None:
    """Print the shares."""
    own, near = (np.array([relevance for relevance, _ in found[kind]]) for kind in KINDS)
    gate = np.sort(own)[int(0.05 * len(own))]
    order = np.sign(own[:, None] - near[None, :])
    for kind, relevance in zip(KINDS, (own, near), strict=True):
        recalled = np.mean([kept for _, kept in found[kind]])
        print(
            f"{kind:6}{len(relevance):4} questions   recalled {recalled:.3f}   at 95 % {np.mean(relevance >= gate):.3f}"
        )
    print(f"AUROC {float((order + 1).mean() / 2):.3f}, gate at 95 %: {gate:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, default=Path(__file__).with_suffix(".jsonl"))
    parser.add_argument("--embedder", choices=("default", "none"), default="default")
    parser.add_argument("--each", action="store_true", help="print every question with its best hit")
    args = parser.parse_args()
    embedder = None if args.embedder == "none" else default_embedder()
    found: dict[str, list[tuple[float, bool]]] = {kind: [] for kind in KINDS}
    for line in args.file.read_text(encoding="utf-8").splitlines():
        for kind, rows in ask(json.loads(line), embedder, each=args.each).items():
            found[kind] += rows
    report(found)


if __name__ == "__main__":
    main()
