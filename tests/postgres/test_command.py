"""Every command takes the address of a server's database where it takes a path."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from holdfast import Memory
from holdfast.cli.options import without_password
from tests.cli.conftest import SOURCE, Holdfast, holdfast  # noqa: F401  a fixture
from tests.postgres.lending import Lender


def test_a_memory_on_a_server_is_used_like_one_in_a_file(holdfast: Holdfast, address: str) -> None:  # noqa: F811
    said = holdfast("say", "I live in Porto.", "--store", address)
    assert said.code == 0, said.err

    assert [fact["value"] for fact in holdfast("facts", "-s", address, "--json").data] == ["Porto"]
    assert "Porto" in holdfast("search", "Where do they live?", "-s", address).out
    assert "Porto" in holdfast("export", "-s", address).out
    assert holdfast("digest", "-s", address).code == 0
    assert holdfast("list", "-s", address).code == 0
    sound = holdfast("doctor", "-s", address, "--json")
    assert sound.data["ok"] is True, sound.out
    assert holdfast("erase", "-s", address, "--yes").code == 0
    assert holdfast("facts", "-s", address, "--json").data == []


def test_a_copy_is_verified_and_says_what_it_moved(holdfast: Holdfast, address: str) -> None:  # noqa: F811
    holdfast("say", "I live in Porto.", "--store", "chat.db")
    moved = holdfast("store", "copy", "chat.db", address, "--json")

    assert moved.data["rows"]["message"] == 1
    assert "and compared" in holdfast("store", "copy", address, "back.db").out
    assert [fact["value"] for fact in holdfast("facts", "-s", "back.db", "--json").data] == ["Porto"]
    again = holdfast("store", "copy", "chat.db", address, "--json")
    assert (again.code, again.error["code"]) == (1, "conflict")


def test_a_backup_of_a_server_is_a_file(holdfast: Holdfast, address: str) -> None:  # noqa: F811
    holdfast("say", "I live in Porto.", "-s", address)

    assert holdfast("store", "backup", "backup.db", "-s", address).code == 0
    assert holdfast("store", "verify", "backup.db").code == 0
    with Memory("backup.db") as memory:
        assert [fact.value for fact in memory.user("me").facts()] == ["Porto"]


def test_init_prints_the_address_of_the_role(holdfast: Holdfast, address: str, postgres: Lender) -> None:  # noqa: F811
    ready = holdfast("store", "init", postgres.at("mine", "postgres"), "--json")

    assert ready.data["role"] == "holdfast_app"
    assert not ready.data["made"]
    assert ready.data["address"].startswith("postgresql://holdfast_app@")
    refused = holdfast("store", "init", "chat.db", "--json")
    assert refused.error["code"] == "bad-config"


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("chat.db", "chat.db"),
        ("postgresql://ana:p%40ss@db:5432/memory?sslmode=require", "postgresql://ana@db:5432/memory?sslmode=require"),
        (
            "postgresql://db/memory?user=ana&password=secret&sslmode=require",
            "postgresql://db/memory?user=ana&sslmode=require",
        ),
        ("postgresql://db/memory?password=secret", "postgresql://db/memory?"),
    ],
)
def test_a_password_is_not_shown(address: str, shown: str) -> None:
    assert without_password(address) == shown


def test_a_server_to_try_is_one_command() -> None:
    folder = Path(tempfile.mkdtemp(prefix="holdfast-try-"))  # the superuser's server runs as somebody else
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast", "store", "try", str(folder), "--json"],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )
    try:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        with Memory(told["address"]) as memory:
            memory.conversation("c", user="ana").record("I live in Porto.")
            assert [fact.value for fact in memory.user("ana").facts()] == ["Porto"]
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        assert process.stdout is not None
        process.stdout.close()
    assert not (folder / "postmaster.pid").exists()
    shutil.rmtree(folder)


def test_the_policies_of_owners_are_printed(holdfast: Holdfast, postgres: Lender) -> None:  # noqa: F811
    admin = postgres.at("mine", "postgres")
    printed = holdfast("store", "owners", admin)

    assert "CREATE POLICY only_own_rows ON message AS RESTRICTIVE TO holdfast_owner" in printed.out
    assert holdfast("store", "owners", admin, "--role", "ana_db").code == 2
    assert holdfast("store", "owners", "chat.db").code != 0
