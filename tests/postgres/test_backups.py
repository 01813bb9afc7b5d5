"""A database is backed up while it is written, checked, lost, and put back without what was erased since."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import traceback
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

from holdfast import BackupReport, Memory, restore_backup, verify_backup
from holdfast.errors import Conflict, StoreCorrupt, StoreError
from holdfast.importers import backups
from holdfast.store.postgres import backend as postgres_copying
from holdfast.store.postgres.driver import connect
from holdfast.store.queries import tables
from holdfast.testing.fakes import HashEmbedder
from tests.cli.conftest import Holdfast, holdfast  # noqa: F401  a fixture
from tests.postgres.lending import Lender

pytestmark = pytest.mark.sqlite("they name their files and databases themselves")
SECRET = "Quorvane"


@pytest.fixture
def admin(postgres: Lender, address: str) -> str:
    """The same database, as the role that owns its tables."""
    return postgres.at("mine", "postgres")


def talk(address: str, *users: str) -> None:
    with Memory(address, embedder=HashEmbedder()) as memory:
        for user in users or ("ana", "bo"):
            chat = memory.conversation("c", user=user)
            chat.record(f"I live in {SECRET}.", "Lovely.")
            chat.record("I have a dog named Rex.", "Nice!")
        memory.digest()


def heard(address: str, user: str = "ana") -> list[str]:
    with Memory(address, embedder=HashEmbedder()) as memory:
        assert memory.doctor().findings == ()
        return [message.content for message in memory.conversation("c", user=user).load()]


def test_a_backup_holds_one_moment_while_others_write(address: str, tmp_path: Path) -> None:
    """Everything acknowledged before it began is in it, in order and without a gap, and every rule holds."""
    stop, stored = threading.Event(), {"ana": 0, "bo": 0}

    def write(user: str) -> None:
        with Memory(address, embedder=None) as memory:
            while not stop.is_set():
                memory.conversation("c", user=user).append({"role": "user", "content": f"{stored[user]}"})
                stored[user] += 1

    threads = [threading.Thread(target=write, args=(user,)) for user in stored]
    for thread in threads:
        thread.start()
    with Memory(address, embedder=None) as memory:
        while not all(stored.values()):
            stop.wait(0.01)
        before = dict(stored)
        memory.backup(tmp_path / "one.db")
    stop.set()
    for thread in threads:
        thread.join()

    report = verify_backup(tmp_path / "one.db")
    assert report.sound
    assert report.made_at is not None
    assert (tmp_path / "one.db").stat().st_mode & 0o077 == 0
    with Memory(tmp_path / "one.db", embedder=None) as memory:
        for user, least in before.items():
            said = [message.content for message in memory.conversation("c", user=user).load()]
            assert said == [str(number) for number in range(len(said))]
            assert least <= len(said)
    assert sum(report.rows[name] for name in ("message",)) >= sum(before.values())


def test_a_database_is_put_back_without_what_was_erased_since(address: str, postgres: Lender, tmp_path: Path) -> None:
    talk(address)
    with Memory(address, embedder=HashEmbedder()) as memory:
        memory.backup(tmp_path / "monday.db")
        memory.conversation("c", user="ana").forget(1)
        memory.user("bo").erase()
        ledger = memory.admin.erasures.export()
        left = [fact.value for fact in memory.user("ana").facts()]
    seen: list[tuple[int, int]] = []
    other = postgres.at("other")
    report = restore_backup(
        tmp_path / "monday.db", other, ledgers=[ledger], progress=lambda done, total: seen.append((done, total))
    )

    assert (report.sound, report.users, dict(report.replayed[0].held)) == (True, 1, {"message": 1, "user": 1})
    assert seen[-1][0] == seen[-1][1]
    assert heard(other) == heard(address)
    assert heard(other, "bo") == []
    with Memory(other, embedder=HashEmbedder()) as memory:
        assert [fact.value for fact in memory.user("ana").facts()] == left
        noted = {row["id"] for row in memory.admin.erasures.export()["erased"]}
        assert {row["id"] for row in ledger["erased"]} <= noted


def test_a_database_that_is_replaced_gives_its_own_ledger(admin: str, address: str, tmp_path: Path) -> None:
    """Nobody has to name it, and only who owns the tables may empty them."""
    talk(address)
    with Memory(address, embedder=HashEmbedder()) as memory:
        memory.backup(tmp_path / "monday.db")
        memory.conversation("c", user="ana").forget(1)
        memory.conversation("c", user="ana").record("I am tired.", "Oh.")
        memory.user("bo").pause()
    with pytest.raises(Conflict, match="--replace empties it"):
        restore_backup(tmp_path / "monday.db", address)
    with pytest.raises(StoreError, match=r"only the role that owns the tables.*store init"):
        restore_backup(tmp_path / "monday.db", address, replace=True)
    assert heard(address)[-1] == "Oh."

    report = restore_backup(tmp_path / "monday.db", admin, replace=True)
    assert "postgres@" not in report.path
    assert heard(address) == ["Lovely.", "I have a dog named Rex.", "Nice!"]
    with Memory(address) as memory:
        assert memory.user("bo").status().state == "paused"


def test_a_session_that_is_about_to_end_is_waited_for(admin: str, address: str, tmp_path: Path) -> None:
    with Memory(address, embedder=None) as memory:
        memory.conversation("c", user="ana").record("Hello.", "Hi.")
        memory.backup(tmp_path / "monday.db")
    other = connect(address)
    ending = threading.Timer(0.5, other.close)
    ending.start()
    restore_backup(tmp_path / "monday.db", admin, replace=True)
    ending.join()

    assert heard(address) == ["Hello.", "Hi."]


def test_a_database_that_is_in_use_is_not_replaced(
    admin: str, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_copying, "_GOING_S", 0.1)
    talk(address)
    with Memory(address, embedder=None) as memory:
        memory.backup(tmp_path / "monday.db")
        with pytest.raises(Conflict, match="stop the servers and workers"):
            restore_backup(tmp_path / "monday.db", admin, replace=True)
        assert len(memory.admin.users()) == 2


def test_what_is_erased_during_the_restore_stops_it(
    admin: str, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger was read before: what came later would be brought back."""
    talk(address)
    with Memory(address, embedder=None) as memory:
        memory.backup(tmp_path / "monday.db")
    ready = backups._made_ready

    def meanwhile(*args: Any) -> BackupReport:
        with psycopg.connect(admin) as other:
            other.execute("INSERT INTO erasure VALUES ('gone_1', 'p', 'user', 0, '', '[]', 1)")
        return ready(*args)

    monkeypatch.setattr(backups, "_made_ready", meanwhile)
    with pytest.raises(Conflict, match="written to during the restore: erasure changed"):
        restore_backup(tmp_path / "monday.db", admin, replace=True)
    assert len(heard(address)) == 4


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("replacing", [False, True])
def test_a_restore_that_is_killed_leaves_nothing_half(
    replacing: bool, admin: str, address: str, tmp_path: Path, full: bool
) -> None:
    """Killed with rows on their way, the database is as it was; the next restore succeeds."""
    talk(address)
    with Memory(address, embedder=HashEmbedder()) as memory:
        memory.backup(tmp_path / "monday.db")
        memory.user("bo").erase()
    if not replacing:
        with psycopg.connect(admin, autocommit=True) as connection:
            connection.execute(f"TRUNCATE {', '.join(table.name for table in tables())}".encode())
    before = (heard(address), heard(address, "bo"))
    for part in (0.0, 0.3, 0.6, 0.9, 1.0) if full else (0.5, 1.0):
        pid = os.fork()
        if pid == 0:

            def die(done: int, total: int, at: float = part) -> None:
                if done >= total * at:
                    os.kill(os.getpid(), signal.SIGKILL)

            try:
                restore_backup(tmp_path / "monday.db", admin, replace=replacing, progress=die)
            except BaseException:  # noqa: BLE001 - the child must never return into the test
                traceback.print_exc()
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
        assert (heard(address), heard(address, "bo")) == before

    restore_backup(tmp_path / "monday.db", admin, replace=replacing)
    assert heard(address)[0] == f"I live in {SECRET}."
    assert heard(address, "bo") == ([] if replacing else heard(address))


def test_a_backup_that_was_damaged_where_no_rule_looks_is_refused(address: str, tmp_path: Path) -> None:
    """A letter of the assistant's words is nobody's invariant, but it is in the checksum of its table."""
    talk(address)
    with Memory(address, embedder=None) as memory:
        memory.backup(tmp_path / "monday.db")
    data = (tmp_path / "monday.db").read_bytes()
    assert b"Lovely." in data
    (tmp_path / "monday.db").write_bytes(data.replace(b"Lovely.", b"Lonely."))

    report = verify_backup(tmp_path / "monday.db")
    assert [(finding.rule, finding.where) for finding in report.findings] == [("backup-table", "message")]
    with pytest.raises(StoreCorrupt, match="not what was written: message"):
        restore_backup(tmp_path / "monday.db", tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


def test_a_file_goes_to_a_server_and_comes_back(address: str, postgres: Lender, tmp_path: Path) -> None:
    """A backup of either database can be put into the other."""
    talk(str(tmp_path / "chat.db"))
    with Memory(tmp_path / "chat.db", embedder=None) as memory:
        memory.backup(tmp_path / "monday.db")
    restore_backup(tmp_path / "monday.db", address)
    with Memory(address, embedder=None) as memory:
        memory.backup(tmp_path / "tuesday.db")
    restore_backup(tmp_path / "tuesday.db", tmp_path / "back.db")

    assert heard(str(tmp_path / "chat.db")) == heard(address) == heard(str(tmp_path / "back.db"))
    assert verify_backup(tmp_path / "monday.db").rows == verify_backup(tmp_path / "tuesday.db").rows
    left = apsw.Connection(str(tmp_path / "back.db"))
    assert not left.table_exists("main", "holdfast_backup")
    left.close()


def test_after_pg_restore_the_ledger_is_replayed(
    holdfast: Holdfast,  # noqa: F811
    admin: str,
    address: str,
    postgres: Lender,
    tmp_path: Path,
) -> None:
    """PostgreSQL's own copies know nothing of erasures; one command between restoring and serving does."""
    talk(address)
    tools = postgres.server.tools
    dump = [tools / "pg_dump", "--format=custom", f"--file={tmp_path / 'memory.dump'}"]
    refused = subprocess.run([*dump, address], capture_output=True, text=True, check=False)
    assert "row-level security" in refused.stderr, "the application's role cannot take everything along"
    subprocess.run([*dump, admin], check=True)
    with Memory(address, embedder=HashEmbedder()) as memory:
        memory.conversation("c", user="ana").forget(1)
        memory.user("bo").erase()
        Path(tmp_path / "erased.json").write_text(json.dumps(memory.admin.erasures.export()))
    postgres.server.create("restored")
    restored = postgres.server.at("restored")
    subprocess.run([tools / "pg_restore", f"--dbname={restored}", tmp_path / "memory.dump"], check=True)
    assert SECRET in "".join(heard(restored))

    ledger, mine = str(tmp_path / "erased.json"), postgres.server.at("restored", "holdfast_app")
    tried = holdfast("store", "replay", ledger, "--store", mine, "--dry-run")
    assert "1 message" in tried.out
    assert "1 user" in tried.out
    assert SECRET in "".join(heard(mine))
    done = holdfast("store", "replay", ledger, "--store", mine, "--json")
    assert json.loads(done.out)["held"] == {"message": 1, "user": 1}
    assert heard(mine) == heard(address)
    assert heard(mine, "bo") == []
    again = holdfast("store", "replay", ledger, "--store", mine)
    assert "nothing of what was erased" in again.out


def test_the_commands_do_all_of_it(
    holdfast: Holdfast,  # noqa: F811
    admin: str,
    address: str,
) -> None:
    """Backed up, checked, damaged and refused, put back; nothing that is printed tells a password."""
    talk(address)
    assert "only you can read it" in holdfast("store", "backup", "monday.db", "--store", address).out
    assert "compared with what was written on" in holdfast("store", "verify", "monday.db").out
    holdfast("forget", "--message", "1", "--user", "ana", "--conversation", "c", "--yes", "--store", address)

    refused = holdfast("store", "restore", "monday.db", "--to", address)
    assert (refused.code, "--replace empties it first" in refused.err) == (1, True)
    secret = admin.replace("postgres@", "postgres:sesame@")
    done = holdfast("store", "restore", "monday.db", "--to", secret, "--replace")
    assert done.code == 0
    assert "erased again: 1 message" in done.out
    assert "sesame" not in done.out + done.err
    assert heard(address)[0] == "Lovely."

    data = Path("monday.db").read_bytes()
    Path("monday.db").write_bytes(data.replace(b"Lovely.", b"Lonely."))
    bad = holdfast("store", "verify", "monday.db", "--json")
    assert (bad.code, bad.data["findings"][0]["where"]) == (1, "message")
    assert holdfast("store", "restore", "monday.db", "--to", "new.db").code == 1
