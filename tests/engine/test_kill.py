"""kill -9 at random moments and at every step that writes: nothing acknowledged is lost, nothing happens twice."""

from __future__ import annotations

import os
import random
import signal
import time

import pytest

from holdfast.jobs import facts, summaries, upkeep
from holdfast.jobs.facts import UNREAD_AHEAD
from holdfast.store import Store, WriteView

from .crowd import assert_sound, deaths, digest, dying_at, ended, kill, open_memory, settle, spawn, talk, told

# Forking a process that has threads is safe here: the children open the file for themselves.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

FILES, ROUNDS_PER_FILE, ROUNDS_WITHOUT_FULL = 5, 40, 4

LINES = ("I'm vegetarian.", "I live in Porto.", "I eat fish now.", "I think I'm vegan.", "Lovely day.")
VIEW_STEPS = [
    "add_messages",
    "add_docs",
    "save_user",
    "save_conversation",
    "add_idempotency",
    "want",
    "add_fact",
    "update_fact",
    "add_evidence",
    "add_rejected",
    "add_derivations",
    "add_summary",
    "set_parent",
    "add_vectors",
    "finish",
    "renew",
]
FAILPOINTS = [
    *((WriteView, step) for step in VIEW_STEPS),
    (Store, "write"),
    (Store, "read"),
    (Store, "claim"),
    (Store, "claim_some"),
    (facts, "learn"),
    (facts, "ground"),
    (summaries, "summarize_chunk"),
    (summaries, "summarize_level"),
    (upkeep, "quantize"),
]


def first_word(path: str) -> float:
    """Return the seconds that a writer among such a crowd takes here until its first message is acknowledged."""
    open_memory(path).close()
    began = time.monotonic()
    crowd = [spawn(talk(path, 1, "a")), spawn(talk(path, 2, "b")), spawn(digest(path)), spawn(digest(path))]
    os.read(crowd[0][1], 1)
    took = time.monotonic() - began
    for pid, reader in crowd:
        kill(pid)
        told(reader)
    return took


@pytest.mark.parametrize("file", range(FILES))
def test_random_kills_lose_and_double_nothing(tmp_path, file, full):
    """Two workers and two writers share one file; each round kills all of them at a random moment."""
    path, rng = str(tmp_path / "chat.db"), random.Random(file)
    open_memory(path).close()
    acknowledged: dict[str, list[str]] = {"a": [], "b": []}
    enough, soon = ROUNDS_PER_FILE if full else ROUNDS_WITHOUT_FULL, first_word(str(tmp_path / "other.db"))
    for round_number in range(ROUNDS_PER_FILE):
        if round_number >= enough and all(acknowledged.values()):  # short rounds on a busy machine acknowledge nothing
            break
        seed = 1000 * file + round_number
        crowd = [(name, *spawn(talk(path, 10 * seed + n, name))) for n, name in enumerate(acknowledged)]
        crowd += [("", *spawn(digest(path))) for _ in range(2)]
        time.sleep(rng.uniform(0.5, 3.0) * soon)
        for _, pid, _ in rng.sample(crowd, len(crowd)):
            kill(pid)
        for name, _, reader in crowd:
            lines = told(reader)
            if name:
                acknowledged[name] += lines
        memory = settle(path)
        assert_sound(memory, acknowledged)
        memory.close()
    assert all(acknowledged.values())


@pytest.mark.parametrize(("target", "step"), FAILPOINTS, ids=lambda value: getattr(value, "__name__", value))
def test_a_kill_at_any_step_loses_and_doubles_nothing(tmp_path, target, step, full):
    """A writer and a worker that die at the same named step, in its first, third and ninth call."""
    for number, ways in enumerate(deaths(FAILPOINTS.index((target, step)), (1, 3, 9), full=full)):
        die_each_way(str(tmp_path / f"{number}.db"), target, step, ways)


def die_each_way(path: str, target: object, step: str, ways: list[tuple[int, bool]]) -> None:
    open_memory(path).close()
    acknowledged: list[str] = []

    def story(pipe: int) -> None:
        memory = open_memory(path)
        chat = memory.conversation("a", user="ana")
        start = len(chat.load())
        talk = [{"role": "user", "content": f"Lovely day {start}.{number}."} for number in range(UNREAD_AHEAD + 1)]
        chat.append(talk, idempotency_key=f"talk {start}")  # more than a statement reads along: a job does
        for number in range(start, start + 40):
            text = LINES[number % len(LINES)] + f" ({number})"
            receipt = chat.record(text, "Noted.", idempotency_key=str(number))
            spoken = f"{receipt.seqs[0]} {text}\n".encode()
            os.write(pipe, spoken)
            if number % 8 == 7:
                memory.digest()
        memory.digest()

    for countdown, after in ways:

        def doomed(pipe: int, countdown: int = countdown, after: bool = after) -> None:
            with dying_at(target, step, countdown, after=after):
                story(pipe)

        pid, reader = spawn(doomed)
        acknowledged += told(reader)
        signalled = ended(pid)
        assert signalled == signal.SIGKILL if countdown == 1 else signalled in (0, signal.SIGKILL)
        memory = settle(path)
        assert_sound(memory, {"a": acknowledged})
        memory.close()
