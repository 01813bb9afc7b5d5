"""A server that was recovered to a point in time by its own means loses again what was erased since."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import psycopg
import pytest

from holdfast import Memory
from holdfast.store import initialize
from tests.cli.conftest import Holdfast, holdfast  # noqa: F401  a fixture
from tests.postgres.lending import Server, new_folder

pytestmark = [pytest.mark.sqlite("it names its servers itself"), pytest.mark.slow]


def test_a_recovery_to_a_point_in_time_is_followed_by_a_replay(
    holdfast: Holdfast,  # noqa: F811
    tmp_path: Path,
) -> None:
    """
    A base backup and the archived log bring the memory to a moment before the erasures.

    The ledger was written down after them; one command, and the recovered server knows of them.
    """
    server, archive, base = Server(haste=False), new_folder(), new_folder()
    recovered = None
    try:
        server.own(archive)
        server.ask("ALTER SYSTEM SET archive_mode = on")
        server.ask(f"ALTER SYSTEM SET archive_command = 'cp %p {archive}/%f'")
        server.stop("fast")
        server.start()
        server.create("memory")
        mine = initialize(server.at("memory")).role
        server.copy_to(base)

        with Memory(server.at("memory", mine), embedder=None) as memory:
            memory.conversation("c", user="ana").record("I live in Quorvane.", "Lovely.")
            memory.conversation("c", user="bo").record("I live in Faro.", "Nice.")
            server.ask("SELECT pg_create_restore_point('monday')")
            memory.conversation("c", user="ana").forget(1)
            memory.user("bo").pause()
            memory.conversation("c", user="cy").record("I live in Porto.", "Oh.")
        ledger = str(tmp_path / "erased.json")
        assert holdfast("store", "ledger", ledger, "--store", server.at("memory", mine)).code == 0
        archive_all(server)
        server.stop("immediate")

        (base / "standby.signal").rename(base / "recovery.signal")
        with (base / "postgresql.auto.conf").open("a") as settings:
            settings.write(
                f"primary_conninfo = ''\narchive_mode = off\nrestore_command = 'cp {archive}/%f %p'\n"
                "recovery_target_name = 'monday'\nrecovery_target_action = 'promote'\n"
            )
        recovered = Server(folder=base)
        wait_for_writes(recovered)
        place = recovered.at("memory", mine)
        with Memory(place, embedder=None) as memory:
            assert [user for _, user, _ in memory.admin.users()] == ["ana", "bo"], "it is monday again"
            assert "Quorvane" in str(memory.conversation("c", user="ana").load())

        done = holdfast("store", "replay", ledger, "--store", place, "--json")
        assert (done.data["held"], done.data["choices"]) == ({"message": 1}, 1)
        with Memory(place, embedder=None) as memory:
            assert "Quorvane" not in str(memory.conversation("c", user="ana").load())
            assert memory.user("bo").status().state == "paused"
            assert memory.doctor().ok
    finally:
        server.close()
        if recovered is not None:
            recovered.close()
        for folder in (archive, base):
            shutil.rmtree(folder, ignore_errors=True)


def archive_all(server: Server) -> None:
    """Wait until the log as far as it goes is in the archive."""
    with psycopg.connect(server.admin, autocommit=True) as connection:
        (newest,) = connection.execute("SELECT pg_walfile_name(pg_switch_wal())").fetchall()[0]
        until = time.monotonic() + 60
        while time.monotonic() < until:
            (last,) = connection.execute("SELECT last_archived_wal FROM pg_stat_archiver").fetchall()[0]
            if last is not None and last >= newest:
                return
            time.sleep(0.05)
    raise AssertionError("the log was not archived")


def wait_for_writes(server: Server) -> None:
    """Wait until a server that recovers takes writes."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with psycopg.connect(server.admin, autocommit=True) as connection:
            if connection.execute("SELECT pg_is_in_recovery()").fetchall() == [(False,)]:
                return
        time.sleep(0.05)
    raise AssertionError("it did not come up")
