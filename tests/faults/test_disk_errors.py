"""
Every single write, truncation and sync of a short life fails once; the store goes on.

The script opens a new store, talks, believes, summarises, copies the log into the file and closes.
Each of its operations on the disk is made to fail, one run each, with "disk full" (until there is
room again) and with "input/output error" (once).
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import apsw
import pytest

from holdfast.errors import StoreError, StoreFull
from holdfast.store import Store, WriteView, open_store
from holdfast.store.sqlite import connection
from holdfast.store.sqlite.backend import SqliteBackend
from holdfast.testing.rows import ANA, END_MS, learn, say, summarize
from tests.faults.power import FaultyDisk

STEPS = 10


def step(number: int, view: WriteView) -> None:
    """One step of the script, unless it has been taken: a caller's retry must not do it twice."""
    key = f"step {number}"
    if view.idempotency(key) is not None:
        return
    if number % 9 == 0:
        done = view.conversation()
        assert done is not None
        summarize(view, done.chunk_start, done.next_seq - 1)
        seq = 1
    elif number % 4 == 0:
        seq = learn(view, f"place {number}", category="visited", key="place", multi=True).stated_seq
    else:
        seq = say(view, f"turn {number} " + f"word{number} " * 30)[0].seq
    view.want("digest", "", wanted=number, run_at_ms=END_MS, now_ms=END_MS)
    view.add_idempotency(key, "digest", seq, seq, END_MS)


def live_through(path: Path, disk: FaultyDisk) -> int:
    """Run the script, repeating what failed once the disk is well; how many calls raised."""
    raised = 0
    store = None
    while store is None:
        try:
            store = Store(SqliteBackend(path, vfs=disk.name))
        except StoreError:
            raised += 1
            disk.heal()
    for number in range(1, STEPS + 1):
        try:
            store.write(ANA, partial(step, number))
        except StoreError:
            raised += 1
            disk.heal()
            store.write(ANA, partial(step, number))
    store.close()
    disk.heal()
    return raised


def state_of(path: Path) -> tuple[object, ...]:
    """What the file holds in the end, without what is named by chance."""
    store = open_store(path)
    try:
        assert store.check() == []
        messages, facts, summaries, row = store.read(
            ANA, lambda view: (view.messages(), view.facts(), view.summaries(), view.conversation())
        )
        ranges = [(s.start_seq, s.end_seq) for s in summaries]
        return messages, [f.fact.value for f in facts], ranges, row, len(store.jobs())
    finally:
        store.close()


@pytest.mark.parametrize(
    ("error", "stays"), [(apsw.FullError, True), (apsw.IOError, False)], ids=["disk full", "input/output error"]
)
def test_any_failing_operation_is_survived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[apsw.Error], stays: bool
) -> None:
    monkeypatch.setattr(connection, "CHECKPOINT_PAGES", 60)
    well = FaultyDisk(f"well-{error.__name__}")
    assert live_through(tmp_path / "well.db", well) == 0
    expected = state_of(tmp_path / "well.db")

    heard = 0
    for fail_at in range(1, well.operations + 1):
        path = tmp_path / f"{fail_at}.db"
        disk = FaultyDisk(f"faulty-{error.__name__}", fail_at=fail_at, error=error, stays=stays)
        heard += live_through(path, disk)
        assert disk.failed > 0
        assert state_of(path) == expected, f"operation {fail_at}"
        disk.unregister()
        path.unlink()
    assert well.operations > 200
    assert heard > well.operations // 2  # the others were copies of the log, tried again later


def test_a_full_disk_says_so_and_takes_the_same_call_when_there_is_room(tmp_path: Path) -> None:
    disk = FaultyDisk("full", stays=True)
    store = Store(SqliteBackend(tmp_path / "memory.db", vfs=disk.name))
    disk.break_from_now()

    with pytest.raises(StoreFull, match="no room left"):
        store.write(ANA, lambda view: say(view, "one"))
    assert store.read(ANA, lambda view: view.messages()) == []
    with pytest.raises(StoreFull):
        store.write(ANA, lambda view: say(view, "one"))
    disk.heal()
    store.write(ANA, lambda view: say(view, "one"))

    assert [m.content for m in store.read(ANA, lambda view: view.messages())] == ["one"]
    assert store.check() == []
    store.close()
