"""
What memory costs a turn by voice: from the end of the user's words to the call of the model, and behind the turn.

    python benchmarks/voice.py [--turns 200]

A user with 2,000 messages on disk in twenty earlier calls speaks in a new one.  The yardstick is one read of a row in the
same file.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from support import machine

from holdfast import Memory
from holdfast.integrations.common import AdapterMemory
from holdfast.integrations.voice.turns import VoiceTurns

CALLS, MESSAGES = 20, 100
TOWNS = ("Porto", "Lyon", "Ghent", "Turin", "Malmö")


def main() -> None:
    """Fill a memory, hold a call, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=200)
    given = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as folder, Memory(Path(folder) / "calls.db") as memory:
        for call in range(CALLS):
            chat = memory.conversation(f"call-{call}", user="ana")
            for number in range(MESSAGES // 2):
                town = TOWNS[(call + number) % len(TOWNS)]
                chat.record(
                    f"On day {number} of trip {call} I went to {town} by train.", f"{town} is fine on day {number}."
                )
        memory.digest()
        asyncio.run(hold(memory, given.turns))
        chat = memory.conversation("call-0", user="ana")
        reads = [measured(lambda: chat.load(last=1)) for _ in range(given.turns)]
    print(f"{'yardstick: one row':32} {figures(reads)}")


async def hold(memory: Memory, turns: int) -> None:
    """Speak so many turns."""
    members = AdapterMemory(memory, user="ana")
    voice = VoiceTurns(members, "ana", "now")
    behind, busy = list[float](), list[float]()
    for number in range(turns):
        question = f"When was I in {TOWNS[number % len(TOWNS)]} on trip {number % CALLS}?"
        processor = time.process_time()
        voice.said("user", question)
        await voice.blocks(question)
        busy.append((time.process_time() - processor) * 1000)
        voice.said("assistant", f"On day {number}.")
        begun = time.perf_counter()
        await voice.flush()
        behind.append((time.perf_counter() - begun) * 1000)
    print(f"{'before the model is asked':32} {figures(list(voice.milliseconds))}")
    print(f"{'of it, processor time':32} {figures(busy)}")
    print(f"{'behind the turn':32} {figures(behind)}")


def measured(call: object) -> float:
    """Return the milliseconds of a call."""
    begun = time.perf_counter()
    call()  # type: ignore[operator]
    return (time.perf_counter() - begun) * 1000


def figures(milliseconds: list[float]) -> str:
    """Return median and 99th percentile in words."""
    return f"p50 {statistics.median(milliseconds):6.1f} ms, p99 {statistics.quantiles(milliseconds, n=100)[98]:6.1f} ms"


if __name__ == "__main__":
    main()
