"""
How many messages a second the background work gets through: facts, summaries and vectors, each alone.

    python benchmarks/digest.py [--messages 1000]

Real English: the bundled conversations, again and again under other names.  The vectors come from
the built-in model where it is installed, and once more from a stand-in that costs nothing: that is
what reading, storing and the queue take.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from importlib import resources
from itertools import cycle
from pathlib import Path

from support import StandIn, machine

from holdfast import Config, Memory
from holdfast.embed import Embedder, default_embedder
from holdfast.jobs.worker import drain

DEMO = ("trip", "pets-luna", "pets-max", "support")


def filled(path: Path, messages: int, embedder: Embedder | None) -> Memory:
    """A memory with at least so many messages, nothing of them digested."""
    folder = resources.files("holdfast.cli") / "demo"
    talks = [
        [json.loads(line) for line in (folder / f"{name}.jsonl").read_text("utf-8").splitlines() if line]
        for name in DEMO
    ]
    memory = Memory(path, embedder=embedder, config=Config(durable=False))
    stored = 0
    for number, talk in enumerate(cycle(talks)):
        if stored >= messages:
            return memory
        conversation = memory.conversation("talk", user=f"user{number}")
        # in one batch, as an import does it: nothing is read before the background gets to it
        stored += len(conversation.append([*talk, *talk]).seqs)
        conversation.end()
    return memory


def rate(memory: Memory, kind: str, messages: int) -> str:
    """Do all work of one kind."""
    began = time.perf_counter()
    report = drain(memory._engine.queue, kinds=(kind,))
    seconds = time.perf_counter() - began
    return f"{messages / seconds:8,.0f} messages/s   {report.facts} facts, {report.summaries} summaries, {report.jobs} jobs"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=1000)
    args = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        memory = filled(Path(folder, "a.db"), args.messages, StandIn())
        count = _count(memory)
        print(f"facts by rules          {rate(memory, 'extract', count)}")
        print(f"summaries by rules      {rate(memory, 'chunk', count)}")
        print(f"storing vectors         {rate(memory, 'embed', count)}")
        memory.close()
        model = default_embedder()
        if model is None:
            print("the built-in model is not installed: its vectors are skipped")
            return
        memory = filled(Path(folder, "b.db"), args.messages // 5, model)
        count = _count(memory)
        print(f"vectors, built-in model {rate(memory, 'embed', count)}")
        memory.close()


def _count(memory: Memory) -> int:
    return memory._engine.store.stats()["message"]


if __name__ == "__main__":
    main()
