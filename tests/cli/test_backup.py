"""``holdfast store backup``, ``verify``, ``restore`` and ``ledger``: a backup is checked, and restored after a loss."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holdfast import Memory
from holdfast.store.filelock import locked

from .conftest import SOURCE, Holdfast

ENVIRONMENT = os.environ | {"PYTHONPATH": str(SOURCE)}


def test_a_backup_is_checked_and_restored_without_what_was_erased(holdfast: Holdfast, tmp_path: Path) -> None:
    holdfast("say", "I live in Quorvane.")
    holdfast("say", "I have a dog named Rex.")
    assert "only you can read it" in holdfast("store", "backup", "monday.db").out
    assert (tmp_path / "monday.db").stat().st_mode & 0o077 == 0
    holdfast("forget", "--message", "1", "--yes")
    assert holdfast("store", "ledger", "erased.json").code == 0

    checked = holdfast("store", "verify", "monday.db", "--ledger", "erased.json")
    assert checked.code == 0
    assert "intact" in checked.out
    assert "holds: 1 message of what was erased since" in checked.out

    refused = holdfast("store", "restore", "monday.db")
    assert refused.code == 1
    assert "--replace" in refused.err
    done = holdfast("store", "restore", "monday.db", "--replace")
    assert "restored at" in done.out
    assert "is kept at" in done.out
    assert "Quorvane" not in holdfast("messages").out
    assert "Rex" in holdfast("messages").out


def test_a_lost_file_is_restored_with_an_exported_erasure_log(holdfast: Holdfast, tmp_path: Path) -> None:
    holdfast("say", "I live in Quorvane.")
    holdfast("store", "backup", "monday.db")
    holdfast("forget", "--message", "1", "--yes")
    holdfast("store", "ledger", "erased.json")
    (tmp_path / "holdfast.db").unlink()

    bare = holdfast("store", "restore", "monday.db", "--to", "bare.db")
    assert "there was no erasure log" in bare.out
    done = holdfast("store", "restore", "monday.db", "--ledger", "erased.json", "--json")
    report = json.loads(done.out)
    assert report["replayed"][0]["held"] == {"message": 1}
    assert b"Quorvane" not in (tmp_path / "holdfast.db").read_bytes()


def test_files_that_are_no_backup_or_no_erasure_log_are_refused_with_a_hint(holdfast: Holdfast, tmp_path: Path) -> None:
    holdfast("say", "I live in Faro.")
    (tmp_path / "text.txt").write_text("not a database, but long enough to be looked at " * 20)
    for args in (["verify", "text.txt"], ["restore", "text.txt", "--to", "new.db"], ["verify", "absent.db"]):
        run = holdfast("store", *args)
        assert run.code == 1
        assert "help" in run.err
    assert not (tmp_path / "new.db").exists()
    holdfast("store", "backup", "monday.db")
    assert "not an erasure log" in holdfast("store", "verify", "monday.db", "--ledger", "text.txt").err
    assert holdfast("store", "restore", "monday.db", "--to", "monday.db").code == 2


def test_a_file_of_another_kind_is_named_in_the_error(holdfast: Holdfast, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("not a database")
    run = holdfast("store", "verify", "text.txt")
    assert run.code == 1
    assert f"{tmp_path}/text.txt is not a backup" in " ".join(run.err.split())


def test_the_next_restore_removes_what_a_killed_one_left(holdfast: Holdfast, tmp_path: Path) -> None:
    holdfast("say", "I live in Faro.")
    holdfast("store", "backup", "monday.db")
    killed, used = tmp_path / "holdfast-working-killed", tmp_path / "holdfast-working-used"
    for folder in (killed, used):
        folder.mkdir()
        (folder / "lock").touch()
        (folder / "copy.db").write_text("I live in Faro.")
    with locked(str(used / "lock"), timeout_ms=0):
        assert holdfast("store", "restore", "monday.db", "--to", "new.db").code == 0
    assert not killed.exists()
    assert (used / "copy.db").exists()
    assert sorted(path.name for path in tmp_path.glob("holdfast-working-*")) == ["holdfast-working-used"]


def test_a_file_that_is_open_elsewhere_is_not_replaced(holdfast: Holdfast, tmp_path: Path) -> None:
    holdfast("say", "I live in Faro.")
    holdfast("store", "backup", "monday.db")
    script = "import sys, time; from holdfast import Memory; m = Memory('holdfast.db'); m.admin.users(); print('open', flush=True); time.sleep(60)"
    other = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        run = holdfast("store", "restore", "monday.db", "--replace")
        assert run.code == 1
        assert "stop the server" in run.err
    finally:
        other.kill()
        other.wait()
        assert other.stdout is not None
        other.stdout.close()


def test_a_restore_that_is_killed_has_changed_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Memory("live.db") as memory:
        for number in range(30):
            memory.conversation(f"c{number}", user="ana").record(f"I live in Quorvane {number}.", "Ok.")
        memory.backup("monday.db")
        for number in range(30):
            memory.conversation(f"c{number}", user="ana").forget(1)
    before = Path("live.db").read_bytes()
    script = "from holdfast import restore_backup; print('go', flush=True); restore_backup('monday.db', 'live.db', replace=True)"
    for delay_s in (0.0, 0.2, 0.5):
        process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
        with process:
            assert process.stdout is not None
            assert process.stdout.readline() == "go\n"
            time.sleep(delay_s)
            process.send_signal(signal.SIGKILL)
        kept = list(tmp_path.glob("live.db.replaced-*"))
        if not kept:  # it was killed before the end
            assert Path("live.db").read_bytes() == before
        with Memory("live.db") as memory:
            words = [m.content for n in range(30) for m in memory.conversation(f"c{n}", user="ana").load()]
            assert [word for word in words if "Quorvane" in word] == []
            assert memory.doctor().ok
