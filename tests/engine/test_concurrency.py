"""Many processes and threads over one file: everything is stored once, one belief a question, nobody is refused."""

from __future__ import annotations

import os
import threading
from itertools import pairwise

import pytest

from holdfast import Memory
from holdfast.testing.fakes import HashEmbedder

from .crowd import assert_sound, ended, open_memory, settle, spawn, told

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def test_eight_processes_share_one_conversation(tmp_path):
    """Appends, digests and reads at once; every process comes to its end, so none met a locked file."""
    path = str(tmp_path / "chat.db")
    open_memory(path).close()

    def work(number: int):
        def body(pipe: int) -> None:
            memory = open_memory(path)
            chat = memory.conversation("a", user="ana")
            for turn in range(25):
                text = f"I live in Town{number}x{turn}." if turn % 5 == 0 else f"Process {number} says {turn}."
                receipt = chat.record(text, "Noted.", idempotency_key=f"{number}.{turn}")
                os.write(pipe, f"{receipt.seqs[0]} {text}\n".encode())
                if turn % 8 == number:
                    memory.digest()
                chat.context("Where?", budget_tokens=500)
            memory.close()

        return body

    crowd = [spawn(work(number)) for number in range(8)]
    lines = [line for _, reader in crowd for line in told(reader)]
    assert [ended(pid) for pid, _ in crowd] == [0] * 8
    assert len(lines) == 8 * 25
    memory = settle(path)
    assert_sound(memory, {"a": lines})
    assert len([f for f in memory.user("ana").facts("home") if f.key == "lives_in"]) == 1
    memory.close()


@pytest.mark.parametrize("where", ["file", ":memory:"])
def test_twenty_threads_that_state_one_fact_leave_one_belief(tmp_path, where):
    memory = Memory(tmp_path / "chat.db" if where == "file" else where, embedder=HashEmbedder())
    barrier = threading.Barrier(20)
    errors: list[BaseException] = []

    def state(number: int) -> None:
        try:
            chat = memory.conversation(f"c{number % 4}", user="ana")
            barrier.wait()
            chat.record("I'm vegetarian.")
        except Exception as error:  # noqa: BLE001 - reported by the test's own thread
            errors.append(error)

    threads = [threading.Thread(target=state, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    memory.digest()

    assert errors == []
    (fact,) = memory.user("ana").facts("dietary")
    assert len({(e.conversation, e.seq) for e in fact.evidence}) == 20
    assert memory.doctor().ok
    memory.close()


def test_the_newest_of_contradicting_statements_wins_whoever_reads_first(tmp_path):
    """Four processes read facts out of four conversations at once; the latest statement is believed."""
    path = str(tmp_path / "chat.db")
    with open_memory(path) as memory:
        for number in range(12):
            memory.conversation(f"c{number % 4}", user="ana").append(
                [{"role": "user", "content": f"I live in Town{number}.", "at": f"2026-01-{number + 1:02}T00:00:00Z"}]
                * 1
                + [{"role": "assistant", "content": "Noted.", "at": f"2026-01-{number + 1:02}T00:00:01Z"}] * 24
            )

    def body(pipe: int) -> None:
        open_memory(path).digest()

    crowd = [spawn(body) for _ in range(4)]
    for pid, reader in crowd:
        told(reader)
        assert ended(pid) == 0
    memory = settle(path)

    assert [f.value for f in memory.user("ana").facts("home")] == ["Town11"]
    history = memory.user("ana").history("home")
    assert [f.value for f in history] == [f"Town{n}" for n in range(12)]
    assert all(a.valid_to == b.valid_from for a, b in pairwise(history))
    assert memory.doctor().ok
    memory.close()
