"""An erasure that meets a running rebuild, backfill or call of a model wins: nothing that was erased comes back."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from holdfast import Config, Memory
from holdfast.errors import Conflict, NotFound
from holdfast.llm.protocol import Request
from holdfast.testing.fakes import HashEmbedder
from holdfast.testing.model import ScriptedModel
from tests.privacy.looking import USER, rows

WORD = "Quorvaneqqa"
FILES = 5
ERASURES: dict[str, Callable[[Memory], Any]] = {
    "message": lambda memory: [memory.conversation("a", user=USER).forget(seq) for seq in (3, 4)],
    "edit": lambda memory: [memory.conversation("a", user=USER).edit(seq, "I live in Porto.") for seq in (3, 4)],
    "conversation": lambda memory: memory.conversation("a", user=USER).clear(),
    "user": lambda memory: memory.user(USER).erase(),
    "opt-out": lambda memory: memory.user(USER).opt_out(),
}
WORK: dict[str, Callable[[Memory], Any]] = {
    "summaries": lambda memory: memory.conversation("a", user=USER).rebuild("summaries"),
    "meta": lambda memory: memory.conversation("a", user=USER).rebuild("meta"),
    "facts": lambda memory: memory.conversation("a", user=USER).rebuild("facts"),
    "episodes": lambda memory: memory.conversation("a", user=USER).rebuild("episodes"),
    "backfill": lambda memory: memory.backfill(USER, delay_ms=0),
    "digest": lambda memory: memory.digest(),
    "consolidate": lambda memory: memory.user(USER).consolidate(),
}


class Teller:
    """A model that says the word whenever it was shown it; ``meet`` runs in the middle of one of its calls."""

    def __init__(self) -> None:
        self.meet: Callable[[], Any] | None = None
        self.left = 0

    def __call__(self, request: Request) -> str:
        self.left -= 1
        if self.left == -1 and self.meet is not None:
            self.meet()
        held = WORD in request.text
        if request.layer == "facts":
            return f'home,lives_in,{WORD},0.95,,set,asserted,state,3,"I live in {WORD}"' if held else "NONE"
        if request.layer == "episodes":
            return f"- They live in {WORD}, near the harbour [3]" if held else "No facts to record"
        return f"SUMMARY: They live in {WORD}, near the harbour." if held else "SUMMARY: They walked along the river."


def opened(path: Path, teller: Teller | None = None) -> Memory:
    model = ScriptedModel(otherwise=teller) if teller else None
    return Memory(path, embedder=HashEmbedder(), llm=model, config=Config(durable=False, busy_timeout_ms=60_000))


def talk(memory: Memory) -> None:
    lines = ["Hello there.", "Hi!", f"I live in {WORD}, near the harbour.", f"So {WORD} it is."]
    lines += [f"Day {n} was fine and we walked a lot along the river." for n in range(28)]
    roles = ("user", "assistant")
    chat = memory.conversation("a", user=USER)
    chat.append([{"role": roles[n % 2], "content": line} for n, line in enumerate(lines)])
    chat.end()


def worked(memory: Memory, work: Callable[[Memory], Any]) -> None:
    """Whoever opted out or was erased meanwhile ends the work with an error that says so."""
    with suppress(Conflict, NotFound):
        work(memory)


def nothing_left(memory: Memory, path: Path) -> None:
    memory.digest()
    assert WORD not in rows(path)
    assert WORD not in str(memory.user(USER).export())
    assert not re.search(WORD, str(memory.jobs()))
    assert memory.doctor().findings == ()


@pytest.mark.parametrize("erasure", ERASURES)
@pytest.mark.parametrize("work", [name for name in WORK if name != "consolidate"])
def test_nothing_comes_back_when_a_call_is_overtaken(tmp_path: Path, work: str, erasure: str) -> None:
    """The erasure happens while the model thinks about what it was shown: in the first call, or the second."""
    for number in range(2):
        path = tmp_path / f"{number}.db"
        with opened(path) as memory:
            talk(memory)
            if work != "digest":
                memory.digest()
        teller = Teller()
        with opened(path, teller) as memory:
            if work == "meta":
                memory.conversation("a", user=USER).rebuild("summaries")
            met: list[bool] = []

            def meet(memory: Memory = memory, met: list[bool] = met) -> None:
                ERASURES[erasure](memory)
                met.append(True)

            teller.meet, teller.left = meet, number
            worked(memory, WORK[work])
            if not met:
                meet()
            nothing_left(memory, path)


@pytest.mark.parametrize("work", WORK)
def test_nothing_comes_back_when_threads_meet(tmp_path: Path, work: str) -> None:
    for number, erasure in enumerate(ERASURES.values()):
        path = tmp_path / f"{number}.db"
        with opened(path, Teller()) as memory, opened(path, Teller()) as other:
            talk(memory)
            if work != "digest":
                memory.digest()
            start = threading.Barrier(2)

            def begin(other: Memory = other, start: threading.Barrier = start) -> None:
                start.wait()
                worked(other, WORK[work])

            thread = threading.Thread(target=begin)
            thread.start()
            start.wait()
            threading.Event().wait(number * 0.006)
            erasure(memory)
            thread.join()
            nothing_left(memory, path)


def test_what_is_said_meanwhile_is_neither_lost_nor_doubled(tmp_path: Path) -> None:
    """Rebuilding while the talk goes on and the digest runs: every message once, every chunk once, no gap."""
    path = tmp_path / "a.db"
    with opened(path, Teller()) as memory, opened(path, Teller()) as other:
        talk(memory)
        memory.digest()
        stop, chat = threading.Event(), memory.conversation("a", user=USER)

        def say() -> None:
            number = 0
            while not stop.is_set() and number < 60:
                other.conversation("a", user=USER).record(f"And walk {number} was fine.", "Nice.")
                number += 1
                if number % 10 == 0:
                    other.digest()

        thread = threading.Thread(target=say)
        thread.start()
        reports = [chat.rebuild(layer) for layer in ("summaries", "meta", "facts", "episodes") for _ in range(2)]
        stop.set()
        thread.join()
        memory.digest()
        assert [report.errors for report in reports] == [()] * 8
        covered = [seq for s in chat.summaries(1) for seq in range(s.start_seq, s.end_seq + 1)]
        assert covered == list(range(1, len(covered) + 1))
        assert memory.doctor().findings == ()
