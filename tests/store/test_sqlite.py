"""What the SQLite store adds to the contract: threads, forks, snapshots for backup, a small log."""

from __future__ import annotations

import gc
import os
import stat
import threading
import time
from pathlib import Path

import apsw
import pytest

from holdfast.config import Config
from holdfast.errors import Conflict, StoreClosed, StoreError
from holdfast.scope import Scope
from holdfast.store import ReadView, Store, WriteView, open_store
from holdfast.store.sqlite import connection
from holdfast.store.sqlite.backend import SqliteBackend
from holdfast.testing.rows import ANA, learn, say
from tests.faults.power import FaultyDisk

forks = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # Python 3.12 warns of forking with threads


@pytest.mark.parametrize("location", [":memory:", "memory.db"])
def test_a_store_is_not_called_from_within_itself(tmp_path: Path, location: str) -> None:
    """It could only wait for itself; the view that was given is the way."""
    store = open_store(location if location == ":memory:" else tmp_path / location, Config(busy_timeout_ms=100))

    with pytest.raises(StoreError, match="within"):
        store.write(ANA, lambda _: store.write(ANA, lambda view: say(view, "one")))
    with pytest.raises(StoreError, match="within"):
        store.read(ANA, lambda _: store.write(ANA, lambda view: say(view, "one")))
    with pytest.raises(StoreError, match="within"):
        store.write(ANA, lambda _: store.users())
    store.write(ANA, lambda view: say(view, "still works"))
    store.close()


def test_writes_that_wait_are_committed_together(tmp_path: Path) -> None:
    """Fewer commits than writes, when many come at once."""
    store = open_store(tmp_path / "memory.db")
    commits: list[int] = []
    store.backend._db.set_commit_hook(lambda: bool(commits.append(1)))
    hold, started = threading.Event(), threading.Event()

    def slow(view: WriteView) -> None:
        say(view, "slow")
        started.set()
        hold.wait(5)

    threads = [threading.Thread(target=store.write, args=(ANA, slow))]
    threads[0].start()
    started.wait(5)
    for _ in range(20):
        threads.append(threading.Thread(target=store.write, args=(ANA, lambda view: say(view, "quick"))))
        threads[-1].start()
    while store.backend._writer._waiting.qsize() < 20:
        time.sleep(0.001)
    hold.set()
    for thread in threads:
        thread.join()

    assert len(commits) == 2
    assert len(store.read(ANA, lambda view: view.messages())) == 21
    store.close()


def test_writes_committed_together_survive_a_fault_each_by_itself(tmp_path: Path) -> None:
    """The disk fails once under a whole group: each is tried again alone, and none is lost or doubled."""
    disk = FaultyDisk("grouped", error=apsw.IOError)
    store = Store(SqliteBackend(tmp_path / "memory.db", vfs=disk.name))
    hold, started = threading.Event(), threading.Event()

    def slow(view: WriteView) -> None:
        say(view, "slow")
        started.set()
        hold.wait(5)

    def break_the_disk(view: WriteView) -> None:
        say(view, "careless")
        if disk.failed == 0:
            disk.break_from_now()

    threads = [threading.Thread(target=store.write, args=(ANA, slow))]
    threads[0].start()
    started.wait(5)
    for work in (break_the_disk, *[lambda view: say(view, "quick")] * 9):
        threads.append(threading.Thread(target=store.write, args=(ANA, work)))
        threads[-1].start()
    while store.backend._writer._waiting.qsize() < 10:
        time.sleep(0.001)
    hold.set()
    for thread in threads:
        thread.join()

    assert disk.failed == 1
    assert [m.seq for m in store.read(ANA, lambda view: view.messages())] == list(range(1, 12))
    assert store.check() == []
    store.close()


def test_a_read_does_not_wait_for_a_write(tmp_path: Path) -> None:
    store = open_store(tmp_path / "memory.db")
    store.write(ANA, lambda view: say(view, "one"))
    hold, started = threading.Event(), threading.Event()

    def slow(view: WriteView) -> None:
        say(view, "two")
        started.set()
        hold.wait(5)

    connection = threading.Thread(target=store.write, args=(ANA, slow))
    connection.start()
    started.wait(5)
    seen = len(store.read(ANA, lambda view: view.messages()))
    hold.set()
    connection.join()

    assert seen == 1
    store.close()


def test_closing_finishes_what_was_accepted(tmp_path: Path) -> None:
    store = open_store(tmp_path / "memory.db")
    hold, started = threading.Event(), threading.Event()

    def slow(view: WriteView) -> None:
        say(view, "one")
        started.set()
        hold.wait(5)

    connection = threading.Thread(target=store.write, args=(ANA, slow))
    connection.start()
    started.wait(5)
    closer = threading.Thread(target=store.close)
    closer.start()
    closer.join(0.05)
    assert closer.is_alive()
    hold.set()
    closer.join()
    connection.join()
    with pytest.raises(StoreClosed):
        store.users()

    again = open_store(tmp_path / "memory.db")
    assert len(again.read(ANA, lambda view: view.messages())) == 1
    again.close()


def test_a_store_that_is_dropped_lets_go_of_its_file(tmp_path: Path) -> None:
    """Nobody closed it; not even a function that mentions the store keeps it alive."""

    def use_and_forget() -> threading.Thread:
        store = open_store(tmp_path / "memory.db")
        store.write(ANA, lambda view: say(view, type(store).__name__))
        return store.backend._writer._thread

    thread = use_and_forget()
    gc.collect()

    assert not thread.is_alive()
    assert [f.name for f in tmp_path.iterdir()] == ["memory.db"]


@forks
def test_a_forked_process_is_told_to_open_its_own(tmp_path: Path) -> None:
    store = open_store(tmp_path / "memory.db")
    child = os.fork()
    if child == 0:
        try:
            store.users()
        except StoreError as error:
            os._exit(7 if "after the fork" in str(error) else 1)
        os._exit(2)
    _, status = os.waitpid(child, 0)
    store.write(ANA, lambda view: say(view, "one"))

    assert os.waitstatus_to_exitcode(status) == 7
    store.close()


@forks
def test_a_forked_process_that_opens_its_own_loses_nothing_when_the_parent_closes(tmp_path: Path) -> None:
    """SQLite's locks belong to a process: the child must not believe that it holds its parent's."""
    path = tmp_path / "memory.db"
    store = open_store(path)
    store.write(ANA, lambda view: say(view, "parent"))
    store.users()
    to_child, to_parent = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        own = open_store(path)
        own.write(ANA, lambda view: say(view, "child"))
        os.write(to_parent[1], b"!")
        os.read(to_child[0], 1)
        own.write(ANA, lambda view: say(view, "child again"))
        os._exit(0)
    os.read(to_parent[0], 1)
    store.close()
    open_store(path).close()
    os.write(to_child[1], b"!")
    _, status = os.waitpid(child, 0)
    for end in (*to_child, *to_parent):
        os.close(end)
    again = open_store(path)

    assert os.waitstatus_to_exitcode(status) == 0
    assert [m.content for m in again.read(ANA, lambda view: view.messages())] == ["parent", "child", "child again"]
    assert again.check() == []
    again.close()


@forks
def test_a_file_in_use_at_the_fork_is_refused_in_the_child(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    store = open_store(path)

    def fork_while_reading(view: ReadView) -> int:
        view.user()
        child = os.fork()
        if child == 0:
            try:
                open_store(path)
            except StoreError as error:
                os._exit(7 if "moment of the fork" in str(error) else 1)
            os._exit(2)
        return os.waitpid(child, 0)[1]

    assert os.waitstatus_to_exitcode(store.read(ANA, fork_while_reading)) == 7
    store.close()


@forks
def test_a_fork_right_after_a_write_finds_the_writer_at_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer copies its log after the answer was given; the fork waits for that."""
    monkeypatch.setattr(connection, "CHECKPOINT_PAGES", 1)
    path = tmp_path / "memory.db"
    store = open_store(path)
    codes = []
    for _ in range(20):
        store.write(ANA, lambda view: say(view, "parent"))
        child = os.fork()
        if child == 0:
            own = open_store(path)
            own.write(ANA, lambda view: say(view, "child"))
            own.close()
            os._exit(0)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    assert codes == [0] * 20
    assert len(store.read(ANA, lambda view: view.messages())) == 40
    store.close()


def test_an_error_in_the_middle_of_a_write_cannot_be_swallowed(tmp_path: Path) -> None:
    """When SQLite itself fails, the transaction may be gone: the function must not go on without it."""
    store = open_store(tmp_path / "memory.db")

    def stubborn(view: WriteView) -> str:
        say(view, "one")
        try:
            view.save_prefix("a", "b", 2**80)  # type: ignore[arg-type]
        except (StoreError, OverflowError):
            pass
        return "done"

    store.backend._sql = store.backend._sql | {"save_prefix": "SELECT no_such_function()"}
    store.backend._writer._sql = store.backend._sql
    with pytest.raises(StoreError, match="no_such_function"):
        store.write(ANA, stubborn)
    assert store.read(ANA, lambda view: view.messages()) == []
    store.close()


def test_a_conflict_may_be_handled_within_the_write(tmp_path: Path) -> None:
    store = open_store(tmp_path / "memory.db")
    row = store.write(ANA, lambda view: learn(view, "Lisbon"))

    def careful(view: WriteView) -> None:
        with pytest.raises(Conflict):
            view.add_fact(row)
        say(view, "no matter")

    store.write(ANA, careful)
    assert len(store.read(ANA, lambda view: view.messages())) == 2
    store.close()


def test_the_log_stays_small_while_a_reader_is_there(tmp_path: Path) -> None:
    """Checkpoints happen behind the answers; once the reader has left the log is cut back."""
    path = tmp_path / "memory.db"
    store = open_store(path, Config(durable=False))
    big = "word " * 20_000

    def write_under_a_reader(view: ReadView) -> int:
        view.user()
        connection = threading.Thread(
            target=lambda: [store.write(ANA, lambda view: say(view, big)) for _ in range(200)], daemon=True
        )
        connection.start()
        connection.join()
        return (tmp_path / "memory.db-wal").stat().st_size

    grown = store.read(ANA, write_under_a_reader)
    for _ in range(100):
        store.write(ANA, lambda view: say(view, big))

    assert grown > 16 * 2**20
    assert (tmp_path / "memory.db-wal").stat().st_size <= 16 * 2**20
    store.close()


def test_a_backup_is_a_whole_store_of_one_moment(tmp_path: Path) -> None:
    store = open_store(tmp_path / "memory.db")
    stop = threading.Event()

    def write_on() -> None:
        while not stop.is_set():
            store.write(ANA, lambda view: learn(view, "Lisbon", category="c", key="k", multi=True) and None)
            store.write(ANA, lambda view: view.update_fact(view.facts()[0]))
            break
        while not stop.is_set():
            store.write(ANA, lambda view: say(view, "one more"))

    connection = threading.Thread(target=write_on)
    connection.start()
    copies = []
    for number in range(5):
        before = len(store.read(ANA, lambda view: view.messages()))
        store.backup(str(tmp_path / f"copy{number}.db"))
        copies.append((tmp_path / f"copy{number}.db", before, len(store.read(ANA, lambda view: view.messages()))))
    stop.set()
    connection.join()
    store.close()

    for path, before, after in copies:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        copy = open_store(path)
        assert copy.check() == []
        assert before <= len(copy.read(ANA, lambda view: view.messages())) <= after
        copy.close()


def test_a_backup_never_overwrites(tmp_path: Path) -> None:
    store = open_store(":memory:")
    store.write(ANA, lambda view: say(view, "one"))
    target = tmp_path / "copy.db"
    target.write_text("precious")

    with pytest.raises(StoreError, match="already"):
        store.backup(str(target))
    with pytest.raises(StoreError, match="could not be written"):
        store.backup(str(tmp_path / "no" / "copy.db"))
    assert target.read_text() == "precious"
    assert [f.name for f in tmp_path.iterdir()] == ["copy.db"]
    store.backup(str(tmp_path / "other.db"))
    store.close()


def test_a_statement_is_planned_once_whatever_values_it_is_given(tmp_path: Path) -> None:
    backend = SqliteBackend(tmp_path / "memory.db")
    backend.read(lambda driver: driver.run("user", {"org": "o", "user_id": "u", "bot": "b"}))

    connections = [backend._db, *backend._idle]
    assert len(connections) == 2
    assert [one.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, -1) for one in connections] == [1, 1]
    backend.close()


def test_a_user_costs_the_same_however_many_there_are(tmp_path: Path) -> None:
    """Counted in SQLite's own steps, so the machine's speed does not matter."""

    def steps(store: Store) -> int:
        db = store.backend._idle[-1]
        statement: list[int] = []
        db.trace_v2(
            apsw.SQLITE_TRACE_PROFILE, lambda event: statement.append(event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"])
        )
        store.read(ANA, lambda view: (view.messages(), view.facts(), view.partitions(["fact"])))
        db.trace_v2(0, None)
        return sum(statement)

    store = open_store(tmp_path / "memory.db", Config(durable=False))
    for user in ("aaa", "ana", "zzz"):
        store.write(Scope("acme", "support", user, conversation="chat"), lambda view: learn(view, "Lisbon"))
    store.users()
    alone = steps(store)
    for number in range(300):
        store.write(Scope("acme", "support", f"u{number}", conversation="chat"), lambda view: learn(view, "Porto"))
    crowded = steps(store)

    assert alone > 0
    assert crowded == alone
    store.close()
