"""
One turn of a chat, a record and the context after it, as a memory grows.

    python benchmarks/turn.py [--messages 500 5000 50000] [--turns 30] [--embedder none|stand-in|default]
                              [--at postgresql://…]

A user with conversations of 5,000 messages in sittings of 40 is stored as an import stores it, vectors included. Then exchanges are
recorded in a new conversation, and after each the context for the next question is built. ``unit`` is the processor time of
``sum(range(100_000))``, measured between the turns; the clocks of shared machines are not worth comparing. ``again`` is the same context
once more, with nothing written in between. On PostgreSQL the processor time is the client's.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from search import fill
from support import StandIn, machine, sentence

from holdfast import Config, Memory
from holdfast.embed import Embedder, default_embedder
from holdfast.store import open_store

EMBEDDERS: dict[str, Callable[[], Embedder | None]] = {
    "none": lambda: None,
    "stand-in": StandIn,
    "default": default_embedder,
}


def busy(call: Callable[[], object]) -> float:
    """Return the processor time of a call, of all threads of this process, in milliseconds."""
    began = time.process_time()
    call()
    return (time.process_time() - began) * 1e3


def measure(memory: Memory, turns: int, name: str) -> dict[str, float]:
    """Return the median of each step, in units, and the unit."""
    rng = random.Random(name)  # other questions in each conversation: vectors of questions are remembered
    talk = memory.conversation(name, user="ana", org="o", bot="b")
    times: dict[str, list[float]] = {"unit": [], "record": [], "context": [], "turn": [], "again": []}
    for turn in range(turns + 3):
        question = f"What did I say about {sentence(rng, 4).lower()}?"
        said = [{"role": "user", "content": question}, {"role": "assistant", "content": sentence(rng)}]
        unit = busy(lambda: sum(range(100_000)))
        record = busy(partial(talk.append, said))
        asked = f"And about {sentence(rng, 3).lower()}?"
        context = busy(partial(talk.context, asked))
        again = busy(partial(talk.context, asked))
        if turn >= 3:
            for step, took in zip(times, (unit, record, context, record + context, again), strict=True):
                times[step].append(took)
    unit = statistics.median(times["unit"])
    return {"unit ms": unit} | {step: statistics.median(took) / unit for step, took in times.items() if step != "unit"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, nargs="+", default=[500, 5000, 50000])
    parser.add_argument("--turns", type=int, default=30)
    parser.add_argument("--embedder", choices=tuple(EMBEDDERS), default="stand-in")
    parser.add_argument("--at", default=None, help="an empty PostgreSQL database for one size, instead of a file")
    args = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        for messages in args.messages:
            where = args.at if args.at is not None else str(Path(folder, f"turn-{messages}.db"))
            store = open_store(where, Config(durable=False))
            fill(store, messages)
            store.close()
            with Memory(where, embedder=EMBEDDERS[args.embedder](), config=Config(durable=False)) as memory:
                found = measure(memory, args.turns, "now")
            steps = "  ".join(f"{step} {value:6.2f}" for step, value in found.items())
            print(f"{messages:7,} messages  {steps}")


if __name__ == "__main__":
    main()
