"""What happens when a file is opened: created, brought up to date, or refused untouched."""

from __future__ import annotations

import hashlib
import os
import signal
import stat
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from holdfast.config import Config
from holdfast.errors import (
    ConfigError,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreTooNew,
)
from holdfast.store import open_store
from holdfast.store.sqlite.backend import open_file
from holdfast.testing.rows import ANA, learn, say


def fingerprint(folder: Path) -> dict[str, str]:
    return {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in folder.iterdir() if f.suffix != ".db-shm"}


def made(path: Path) -> Path:
    """A closed store with one message."""
    store = open_store(path)
    store.write(ANA, lambda view: say(view, "one"))
    store.close()
    return path


def test_a_new_file_belongs_to_its_owner_alone(tmp_path: Path) -> None:
    store = open_store(tmp_path / "memory.db")
    store.write(ANA, lambda view: say(view, "one"))

    modes = {f.name: stat.S_IMODE(f.stat().st_mode) for f in tmp_path.iterdir()}
    store.close()
    assert modes == {"memory.db": 0o600, "memory.db-wal": 0o600, "memory.db-shm": 0o600}


def test_a_closed_store_is_one_file(tmp_path: Path) -> None:
    made(tmp_path / "memory.db")

    assert [f.name for f in tmp_path.iterdir()] == ["memory.db"]


def test_what_was_written_is_there_after_opening_again(tmp_path: Path) -> None:
    path = made(tmp_path / "memory.db")
    store = open_store(str(path))

    assert [m.content for m in store.read(ANA, lambda view: view.messages())] == ["one"]
    store.close()


def test_the_file_is_synced_logged_and_wiped_as_promised(tmp_path: Path) -> None:
    store = open_store(tmp_path / "memory.db")
    fast = open_store(tmp_path / "fast.db", Config(durable=False))

    assert store.backend._db.pragma("journal_mode") == "wal"
    assert store.backend._db.pragma("synchronous") == 2
    assert fast.backend._db.pragma("synchronous") == 1
    assert store.backend._db.pragma("secure_delete") == 1
    assert store.backend._db.pragma("mmap_size") == 0
    store.close()
    fast.close()


def test_deleted_text_leaves_no_bytes_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    store = open_store(path)
    store.write(ANA, lambda view: learn(view, "Zanzibarnia"))
    facts = [row.doc for row in store.read(ANA, lambda view: view.facts())]
    store.write(ANA, lambda view: view.remove_docs("self", "fact", facts))
    store.close()
    assert b"Zanzibarnia" in path.read_bytes()
    again = open_file(str(path), Config(), None)
    for table in ("message", "fact", "evidence", "doc"):
        again.execute(f"DELETE FROM {table}")
    again.close()

    assert b"Zanzibarnia" not in path.read_bytes()


def test_a_file_of_a_newer_version_is_refused_untouched(tmp_path: Path) -> None:
    path = made(tmp_path / "memory.db")
    raw = apsw.Connection(str(path))
    raw.execute("INSERT INTO holdfast_migration (name, applied_at) VALUES ('9999_future.sql', 0)")
    raw.close()
    before = fingerprint(tmp_path)

    with pytest.raises(StoreTooNew, match="upgrade holdfast"):
        open_store(path)
    assert fingerprint(tmp_path) == before


def test_a_newer_file_with_a_log_left_behind_is_refused_untouched(tmp_path: Path) -> None:
    path = made(tmp_path / "memory.db")
    code = (
        "import sys, os, apsw; db = apsw.Connection(sys.argv[1]);"
        "db.execute(\"INSERT INTO holdfast_migration (name, applied_at) VALUES ('9999_future.sql', 0)\");"
        "os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, path], check=True)
    before = fingerprint(tmp_path)
    assert set(before) == {"memory.db", "memory.db-wal"}

    with pytest.raises(StoreTooNew):
        open_store(path)
    assert fingerprint(tmp_path) == before


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_another_programs_database_is_refused_untouched(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "other.db"
    raw = apsw.Connection(str(path))
    raw.pragma("journal_mode", mode)
    raw.execute("CREATE TABLE message (id INTEGER); INSERT INTO message VALUES (1)")
    raw.close()
    before = fingerprint(tmp_path)

    with pytest.raises(StoreError, match="another program"):
        open_store(path)
    assert fingerprint(tmp_path) == before


def test_a_file_that_is_no_database_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("dear diary, " * 500)
    before = fingerprint(tmp_path)

    with pytest.raises(StoreCorrupt, match="not a SQLite database"):
        open_store(path)
    assert fingerprint(tmp_path) == before


def test_a_damaged_file_is_reported(tmp_path: Path) -> None:
    path = made(tmp_path / "memory.db")
    data = bytearray(path.read_bytes())
    data[100:200] = b"\xff" * 100
    path.write_bytes(data)

    with pytest.raises(StoreCorrupt):
        open_store(path)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"no/such does not exist.*create it first"):
        open_store(tmp_path / "no" / "such" / "memory.db")


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is a folder"):
        open_store(tmp_path)


AS_NOBODY = """
import os, sys
from holdfast.errors import HoldfastError
from holdfast.store import open_store
open_store(":memory:").close()
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
try:
    open_store(sys.argv[1])
except HoldfastError as error:
    print(type(error).__name__, "|", error)
"""


@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_cannot_be_written_is_said(tmp_path: Path, what: str) -> None:
    """Run as a user without rights, because root may write anything."""
    path = made(tmp_path / "memory.db")
    path.chmod(0o444)
    target = path if what == "file" else tmp_path / "new.db"
    tmp_path.chmod(0o555)
    for folder in tmp_path.parents:
        if folder.stat().st_uid == os.getuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o011)
    done = subprocess.run([sys.executable, "-c", AS_NOBODY, target], capture_output=True, text=True, check=False)
    tmp_path.chmod(0o755)

    assert done.stdout.startswith("StoreReadOnly | "), done.stdout + done.stderr
    assert "permissions" in done.stdout or "writable" in done.stdout


def test_an_empty_path_is_refused() -> None:
    with pytest.raises(ConfigError):
        open_store("")


def test_a_database_of_another_kind_is_refused() -> None:
    with pytest.raises(ConfigError, match="no store for mysql"):
        open_store("mysql://localhost/memory", Config())


def test_a_location_decides_the_store(tmp_path: Path) -> None:
    for location in (":memory:", tmp_path / "a.db", str(tmp_path / "b.db")):
        open_store(location, Config()).close()

    assert sorted(f.name for f in tmp_path.iterdir()) == ["a.db", "b.db"]


@pytest.mark.parametrize("names", [("0001_memory.sql", "0017_pace.sql"), ("0001_schema.sql",)])
def test_a_file_of_another_first_schema_is_refused_with_the_way_out(tmp_path: Path, names: tuple[str, ...]) -> None:
    path = tmp_path / "memory.db"
    open_store(path).close()
    with closing(apsw.Connection(str(path))) as db:
        db.execute("DELETE FROM holdfast_migration")
        db.executemany("INSERT INTO holdfast_migration VALUES (?, 0)", [(name,) for name in names])
    before = path.read_bytes()

    with pytest.raises(StoreError, match=r"older schema.*export its users with the version that wrote it"):
        open_store(path)
    assert path.read_bytes() == before


def test_two_stores_in_memory_are_two(tmp_path: Path) -> None:
    one, two = open_store(":memory:"), open_store(":memory:")
    one.write(ANA, lambda view: say(view, "one"))

    assert two.users() == []
    one.close()
    two.close()


def test_a_relative_path_stays_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("memory.db")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    store.write(ANA, lambda view: say(view, "one"))

    assert store.users() == [ANA.user_key]
    store.close()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_many_threads_may_open_one_new_file(tmp_path: Path) -> None:
    errors: list[BaseException] = []
    start = threading.Barrier(8)

    def work() -> None:
        start.wait()
        try:
            store = open_store(tmp_path / "memory.db")
            store.write(ANA, lambda view: say(view, "one"))
            store.close()
        except StoreError as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []


def test_a_new_file_that_somebody_holds_is_busy(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    holder = apsw.Connection(str(path))
    holder.execute("BEGIN EXCLUSIVE")

    with pytest.raises(StoreBusy):
        open_store(path, Config(busy_timeout_ms=50))
    holder.execute("ROLLBACK")
    holder.close()


def test_a_file_opens_while_a_stopped_process_holds_the_write_lock(tmp_path: Path) -> None:
    """What it holds can be read at once; a write waits, and then names the reason."""
    path = tmp_path / "memory.db"
    store = open_store(path)
    store.write(ANA, lambda view: say(view, "one"))
    store.close()
    code = "import apsw, sys; db = apsw.Connection(sys.argv[1]); db.execute('BEGIN IMMEDIATE'); print(1, flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"1\n"
        holder.send_signal(signal.SIGSTOP)
        try:
            opened = open_store(path, Config(busy_timeout_ms=50))
            assert [message.content for message in opened.read(ANA, lambda view: view.messages())] == ["one"]
            with pytest.raises(StoreBusy, match="stopped in a write"):
                opened.write(ANA, lambda view: say(view, "two"))
            opened.close()
        finally:
            holder.send_signal(signal.SIGCONT)
            holder.kill()


def test_a_migration_that_was_cut_off_is_done_again(tmp_path: Path) -> None:
    """Killed at any statement of the first migration, the next start finds an empty file and begins anew."""
    path = tmp_path / "memory.db"
    code = """
import os, sys, apsw
from holdfast.store import open_store
from holdfast.store.sqlite import backend
def trace(cursor, sql, bindings):
    global seen
    seen += 1
    if seen == int(sys.argv[2]):
        os._exit(9)
    return True
seen = 0
connect = backend._connect
def traced(*args):
    db = connect(*args)
    db.exec_trace = trace
    return db
backend._connect = traced
open_store(sys.argv[1])
"""
    died = 0
    for cut in (4, 8, 13, 20, 30):
        died += subprocess.run([sys.executable, "-c", code, path, str(cut)], check=False).returncode == 9
    made(path)

    assert died == 5
    store = open_store(path)
    assert store.check() == []
    store.close()
