"""A merge that meets an erasure, an edit or a pause loses."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import Fact, Memory
from holdfast.jobs import upkeep
from holdfast.testing.fakes import FakeClock

from .sentences import SEA, opened, say


@pytest.fixture
def memory(clock: FakeClock) -> Iterator[Memory]:
    with opened(clock) as memory:
        yield memory


def rests(fact: Fact) -> bool:
    return any(said.quote == SEA[0] for said in fact.evidence)


OVERTAKEN = {
    "message": lambda memory: memory.conversation("a", user="ana").forget(1),
    "edit": lambda memory: memory.conversation("a", user="ana").edit(1, "The kettle is new."),
    "fact": lambda memory: memory.user("ana").forget(next(f.id for f in memory.user("ana").facts() if rests(f))),
    "conversation": lambda memory: memory.conversation("a", user="ana").clear(),
    "user": lambda memory: memory.user("ana").erase(),
    "opt-out": lambda memory: memory.user("ana").opt_out(),
    "pause": lambda memory: memory.user("ana").pause(),
}


@pytest.mark.parametrize("erasure", OVERTAKEN)
def test_an_erasure_that_overtakes_a_merge_wins(memory: Memory, monkeypatch: pytest.MonkeyPatch, erasure: str) -> None:
    """Between what a merge read and what it writes, one of its sentences goes."""
    say(memory, *SEA)
    memory.digest()
    real, left = upkeep.cluster_same, [1]

    def overtaken(*args: Any) -> Any:
        found = real(*args)
        if left.pop() if left else 0:
            OVERTAKEN[erasure](memory)
        return found

    monkeypatch.setattr(upkeep, "cluster_same", overtaken)

    assert memory.user("ana").consolidate().merged == ()
    assert memory.doctor().findings == ()
    if erasure != "pause":
        assert SEA[0] not in str(memory.user("ana").export())


@pytest.mark.parametrize("erasure", OVERTAKEN)
def test_nothing_comes_back_when_a_merge_and_an_erasure_meet(tmp_path: Path, clock: FakeClock, erasure: str) -> None:
    for number in range(6):
        path = str(tmp_path / f"{number}.db")
        with opened(clock, path, durable=False) as memory, opened(clock, path, durable=False) as other:
            say(memory, *SEA)
            memory.digest()
            start = threading.Barrier(2)

            def merge(other: Memory = other, start: threading.Barrier = start) -> None:
                start.wait()
                other.user("ana").consolidate()

            thread = threading.Thread(target=merge)
            thread.start()
            start.wait()
            threading.Event().wait(number * 0.003)
            OVERTAKEN[erasure](memory)
            thread.join()

            assert memory.doctor().findings == ()
            if erasure != "pause":
                assert SEA[0] not in str(memory.user("ana").export())
