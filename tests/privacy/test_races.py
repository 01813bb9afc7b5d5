"""An erasure that meets a running digest wins: nothing that was erased comes back."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import Config, Memory
from holdfast.jobs import facts, summaries, upkeep
from holdfast.testing.fakes import HashEmbedder

from .looking import USER, rows

WORD = "Quorvaneqqa"
ROUNDS = 12
ERASURES: dict[str, Callable[[Memory], Any]] = {
    "message": lambda memory: memory.conversation("a", user=USER).forget(3),
    "edit": lambda memory: memory.conversation("a", user=USER).edit(3, "I live in Porto."),
    "conversation": lambda memory: memory.conversation("a", user=USER).clear(),
    "user": lambda memory: memory.user(USER).erase(),
    "opt-out": lambda memory: memory.user(USER).opt_out(),
}
# Where a job stands between its snapshot and its transaction.
STEPS = [(facts, "ground"), (summaries, "summarize_chunk"), (summaries, "summarize_level"), (upkeep, "quantize")]


def open_memory(path: Path) -> Memory:
    return Memory(path, embedder=HashEmbedder(), config=Config(durable=False, busy_timeout_ms=60_000))


def talk(memory: Memory, seed: int) -> None:
    """A conversation that gives every kind of job something to do, in one batch that is read later."""
    said = random.Random(seed)
    lines = ["Hello there.", "Hi!", f"I live in {WORD}, near the harbour.", f"So {WORD} it is."]
    lines += [f"The week had {said.randint(1, 99)} fine days and we walked a lot along the river." for _ in range(62)]
    roles = ("user", "assistant")
    memory.conversation("a", user=USER).append(
        [{"role": roles[n % 2], "content": line} for n, line in enumerate(lines)]
    )
    memory.conversation("a", user=USER).end()


def left(memory: Memory, path: Path, erasure: str) -> str:
    """What stands in the rows; the reply that repeats the word is no part of erasing one message."""
    found = rows(path)
    if erasure in ("message", "edit"):
        memory.conversation("a", user=USER).forget(4)
        assert f"live in {WORD}" not in found
        found = rows(path)
    return found


@pytest.mark.parametrize("erasure", ERASURES)
@pytest.mark.parametrize(("module", "step"), STEPS, ids=lambda value: getattr(value, "__name__", value))
def test_nothing_comes_back_when_a_job_is_overtaken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: bool, module: Any, step: str, erasure: str
) -> None:
    """Between what a job read and what it writes, everything that it rests on is erased."""
    real = getattr(module, step)
    for number in range(4 if step == "summarize_level" else ROUNDS if full else 6):
        path = tmp_path / f"{number}.db"
        with open_memory(path) as memory:
            talk(memory, number)
            met = [number % 3]  # in the first, second or third such step

            def overtaken(*args: Any, memory: Memory = memory, met: list[int] = met, **kwargs: Any) -> Any:
                result = real(*args, **kwargs)
                met[0] -= 1
                if met[0] == -1:
                    ERASURES[erasure](memory)
                return result

            with monkeypatch.context() as patch:
                patch.setattr(module, step, overtaken)
                memory.digest()
            if met[0] >= 0:  # there were fewer such steps than that
                ERASURES[erasure](memory)
            memory.digest()

            assert WORD not in left(memory, path, erasure)
            assert WORD not in str(memory.user(USER).export())
            assert memory.doctor().findings == ()


@pytest.mark.parametrize("erasure", ERASURES)
def test_nothing_comes_back_when_threads_meet(tmp_path: Path, erasure: str) -> None:
    for number in range(8):
        path = tmp_path / f"{number}.db"
        with open_memory(path) as memory, open_memory(path) as other:
            talk(memory, number)
            start = threading.Barrier(2)

            def digest(other: Memory = other, start: threading.Barrier = start) -> None:
                start.wait()
                other.digest()

            thread = threading.Thread(target=digest)
            thread.start()
            start.wait()
            threading.Event().wait(number * 0.004)
            ERASURES[erasure](memory)
            thread.join()
            memory.digest()

            assert WORD not in left(memory, path, erasure)
            assert memory.doctor().findings == ()


def test_a_pause_that_meets_a_running_digest_lets_it_write_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = summaries.summarize_chunk
    with open_memory(tmp_path / "a.db") as memory:
        talk(memory, 1)

        def paused(*args: Any) -> Any:
            memory.user(USER).pause()
            return real(*args)

        monkeypatch.setattr(summaries, "summarize_chunk", paused)
        memory.digest()
        assert memory.conversation("a", user=USER).summaries() == []
        monkeypatch.undo()
        memory.digest()
        assert memory.conversation("a", user=USER).summaries() == []
        memory.user(USER).resume()
        memory.digest()
        assert memory.conversation("a", user=USER).summaries()
        assert memory.doctor().ok


def test_a_conversation_that_many_change_is_still_erased(tmp_path: Path) -> None:
    """Writers that never rest neither starve an erasure nor are held up by it."""
    path = tmp_path / "a.db"
    with open_memory(path) as memory:
        talk(memory, 1)
        memory.digest()
        stop = threading.Event()

        def write() -> None:
            with open_memory(path) as other:
                chat = other.conversation("a", user=USER)
                while not stop.is_set():
                    chat.record("Another fine day it was.", "Indeed.")

        threads = [threading.Thread(target=write) for _ in range(2)]
        for thread in threads:
            thread.start()
        for seq in (3, 4, 5, 6):
            memory.conversation("a", user=USER).forget(seq)
        stop.set()
        for thread in threads:
            thread.join()
        memory.digest()

        assert WORD not in rows(path)
        assert memory.doctor().findings == ()
