"""
What a memory believes whose model reads honestly: the belief benchmark without a model's own mistakes.

    python benchmarks/honest_beliefs.py [--exchanges 300] [--seeds 3]

Rates as in ``holdfast.bench.beliefs``, over all looks (one every ten messages of the user) and at the end.
"""

from __future__ import annotations

import argparse
import statistics

from holdfast import Memory
from holdfast.bench.beliefs import RATES, BeliefScores, HonestModel, run_story
from holdfast.bench.stories import HALVES, Half, StoryTurn, write_story
from holdfast.testing.fakes import FakeClock


def run(half: Half, seed: int, exchanges: int, *, honest: bool) -> tuple[BeliefScores, int]:
    """The scores of one story, and how often the model was asked."""
    story = write_story(exchanges=exchanges, seed=seed, half=half)
    clock, model = FakeClock(story.turns[0].at), HonestModel(story)

    def set_clock(turn: StoryTurn) -> None:
        clock.advance(seconds=(turn.at - clock()).total_seconds())

    with Memory(embedder=None, llm=model if honest else None, clock=clock) as memory:
        return run_story(story, memory, set_clock=set_clock), model.calls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exchanges", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    print(f"{'half':12} {'reader':7} {'calls':>5}  " + " ".join(f"{name:>14}" for name in RATES))
    for half in HALVES:
        for honest in (False, True):
            runs = [run(half, seed + 1, given.exchanges, honest=honest) for seed in range(given.seeds)]
            cells = []
            for name in RATES:
                along, end = (statistics.mean(b.rate(name, end=end) for b, _ in runs) for end in (False, True))
                cells.append(f"{along:6.2%} {end:6.2%}")
            calls = statistics.mean(calls for _, calls in runs)
            print(f"{half:12} {'honest' if honest else 'rules':7} {calls:5.0f}  " + " ".join(f"{c:>14}" for c in cells))


if __name__ == "__main__":
    main()
