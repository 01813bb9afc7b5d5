"""A file of any older schema is brought up to date with all that it holds, whoever is killed while doing so."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from holdfast import Config, Memory, restore_backup, verify_backup
from holdfast.errors import StoreTooNew
from holdfast.store.queries import tables
from holdfast.store.sqlite import backend as sqlite_file
from holdfast.store.sqlite.backend import open_file
from holdfast.testing.fakes import HashEmbedder
from tests.upgrade.old import (
    MANY,
    Kill,
    Rows,
    as_first,
    at_once,
    digest,
    fill,
    killed_at,
    make_file,
    rows_of,
    some,
)

pytestmark = [
    pytest.mark.sqlite("they make their databases themselves"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Rows:
    path = tmp_path_factory.mktemp("rows") / "new.db"
    fill(path)
    return rows_of(path)


def upgrade(path: Path) -> None:
    open_file(str(path), Config(), None).close()


def told(path: Path) -> dict[str, str]:
    """One word a table for what a file holds."""
    return {name: digest([tuple(row.values()) for row in found]) for name, found in rows_of(path).items()}


def test_every_row_of_an_older_schema_is_there_after_the_upgrade(rows: Rows, tmp_path: Path) -> None:
    """The old columns hold what they held, the rules hold, and the memory goes on."""
    path = tmp_path / "old.db"
    make_file(path, rows)
    before = as_first(rows)
    upgrade(path)

    after = rows_of(path)
    assert set(after) == {table.name for table in tables()}
    assert as_first(after) == before
    with Memory(path, embedder=HashEmbedder()) as memory:
        memory.digest()
        assert memory.doctor().findings == ()
        chat = memory.conversation("c", user="ana", org="acme")
        chat.record("I have a dog named Bello.", "Nice!")
        assert "Köln" in str(chat.context("Where do they live?").messages)
        assert memory.user("ana", org="acme").search("Bello")
        assert memory.user("bo", org="日本").status().state == "paused"


def test_an_upgrade_that_is_killed_is_completed_by_the_next_one(
    rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: bool
) -> None:
    """Killed with SIGKILL before each statement: the result is the same as without."""
    make_file(tmp_path / "old.db", rows)
    path = Path(shutil.copy(tmp_path / "old.db", tmp_path / "whole.db"))
    upgrade(path)
    expected = told(path)
    connect = sqlite_file._connect

    def work(next_one: Kill) -> None:
        def trace(*_: object) -> bool:
            next_one()
            return True

        def traced(*args: object) -> apsw.Connection:
            db = connect(*args)  # type: ignore[arg-type]
            db.exec_trace = trace
            return db

        monkeypatch.setattr(sqlite_file, "_connect", traced)
        upgrade(path)

    path = tmp_path / "counted.db"
    shutil.copy(tmp_path / "old.db", path)
    number = count(work)
    assert number > 7
    for at in some(number, full):
        path = tmp_path / f"{at}.db"
        shutil.copy(tmp_path / "old.db", path)
        assert killed_at(at, work)
        upgrade(path)
        assert told(path) == expected
        path.unlink()
    if full:
        print(f"killed at each of {number} statements")


def count(work: object) -> int:
    """How many statements there are."""
    reading, writing = os.pipe()

    def noted(next_one: Kill) -> None:
        work(lambda: os.write(writing, b"."))  # type: ignore[operator]

    assert not killed_at(MANY, noted)
    os.close(writing)
    with open(reading, "rb") as told_us:
        return len(told_us.read())


def test_processes_that_upgrade_at_once_do_it_once(rows: Rows, tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    make_file(path, rows)
    shutil.copy(path, tmp_path / "alone.db")
    upgrade(tmp_path / "alone.db")

    assert at_once([lambda: upgrade(path)] * 4) == [0] * 4
    assert told(path) == told(tmp_path / "alone.db")


AS_NOBODY = """
import os, sys
from holdfast import Memory
from holdfast.errors import HoldfastError
Memory().close()
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
try:
    Memory(sys.argv[1])
except HoldfastError as error:
    print(type(error).__name__, "|", error)
"""


def test_an_older_file_that_cannot_be_written_is_left_as_it_is(rows: Rows, tmp_path: Path) -> None:
    """As a user without rights, because root may write anything."""
    path = tmp_path / "old.db"
    make_file(path, rows)
    path.chmod(0o444)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o011)
    before = path.read_bytes()
    done = subprocess.run([sys.executable, "-c", AS_NOBODY, path], capture_output=True, text=True, check=False)

    assert done.stdout.startswith("StoreReadOnly | "), done.stdout + done.stderr
    assert "permissions" in done.stdout
    assert path.read_bytes() == before


def test_a_backup_of_an_older_schema_is_checked_and_put_back(rows: Rows, tmp_path: Path) -> None:
    make_file(tmp_path / "old.db", rows)
    report = verify_backup(tmp_path / "old.db")
    restore_backup(tmp_path / "old.db", tmp_path / "new.db")

    assert report.sound
    assert report.made_at is None
    assert report.rows["message"] == len(rows["message"])
    assert as_first(rows_of(tmp_path / "new.db"))["message"] == as_first(rows)["message"]


def test_a_newer_schema_is_not_put_back(rows: Rows, tmp_path: Path) -> None:
    """A backup by a later version is refused by name, and nothing appears at the target."""
    make_file(tmp_path / "old.db", rows)
    db = apsw.Connection(str(tmp_path / "old.db"))
    db.execute("INSERT INTO holdfast_migration VALUES ('9999_later.sql', 0)")
    db.close()
    for call in (verify_backup, lambda backup: restore_backup(backup, tmp_path / "new.db")):
        with pytest.raises(StoreTooNew, match=r"9999_later.*upgrade holdfast"):
            call(tmp_path / "old.db")
    assert not (tmp_path / "new.db").exists()
