"""One JSON file a session: nothing leaves the folder, nothing is lost, and no damage passes in silence."""

from __future__ import annotations

import json
import os
import random
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import StoreBusy, StoreCorrupt, StoreError, StoreFull, StoreReadOnly, StoreTooNew
from holdfast.store import messages
from holdfast.store.messages import JsonFileMessages, file_name, session_name
from holdfast.testing.message_contract import SESSIONS

HI = {"role": "user", "content": "hi"}

COUNT = """
import sys
from holdfast.store.messages import JsonFileMessages
store = JsonFileMessages(sys.argv[1])
print("open", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[3])):
    store.append("shared", {"role": "user", "content": f"{sys.argv[2]} {number}"})
print("done", flush=True)
"""

TALK_UNTIL_KILLED = r"""
import itertools, os, sys
from holdfast.store.messages import JsonFileMessages
store = JsonFileMessages(sys.argv[1])
for number in itertools.count(len(store.load("s")) + 1):
    store.append("s", {"role": "user", "content": f"{number} " + "x" * 2000})
    os.write(1, b"%d\n" % number)
"""


def start(code: str, *args: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *map(str, args)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@contextmanager
def finished(*processes: subprocess.Popen[str]) -> Iterator[None]:
    """Never leave a process or its pipes behind."""
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def test_a_killed_writer_leaves_every_message_that_it_acknowledged(tmp_path):
    """kill -9 in the middle of appends, again and again on one file."""
    chance, acknowledged = random.Random(7), 0
    for _ in range(12):
        talker = start(TALK_UNTIL_KILLED, tmp_path)
        with finished(talker):
            heard = talker.stdout.readline()
            time.sleep(chance.uniform(0, 0.08))
            talker.kill()
            rest = talker.stdout.read()  # with what `readline` took from the pipe and did not return
        acknowledged = max([acknowledged, *(int(line) for line in (heard + rest).split("\n")[:-1] if line)])
        kept = [int(m.content.split()[0]) for m in JsonFileMessages(tmp_path).load("s")]

        assert kept in (list(range(1, acknowledged + 1)), list(range(1, acknowledged + 2)))
    assert acknowledged > 30


def test_eight_processes_append_without_losing_one(tmp_path):
    counters = [start(COUNT, tmp_path, who, 15) for who in range(8)]
    with finished(*counters):
        assert [c.stdout.readline() for c in counters] == ["open\n"] * 8
        for counter in counters:
            counter.stdin.write("\n")
            counter.stdin.flush()
        assert [c.stdout.readline() for c in counters] == ["done\n"] * 8
    said = [m.content for m in JsonFileMessages(tmp_path).load("shared")]

    assert sorted(said) == sorted(f"{who} {number}" for who in range(8) for number in range(15))
    for who in range(8):
        assert [text for text in said if text.startswith(f"{who} ")] == [f"{who} {n}" for n in range(15)]


@pytest.mark.parametrize("session", SESSIONS)
def test_nothing_is_written_outside_the_folder(tmp_path, session):
    folder = tmp_path / "in" / "chats"
    store = JsonFileMessages(folder)
    store.append(session, HI)

    assert store.path(session).parent == folder
    assert {path.parent for path in tmp_path.rglob("*") if path.is_file()} == {folder}
    assert store.path(session).name.isascii()
    assert len(store.path(session).name) <= 160


@given(st.text(st.characters(exclude_categories=("Cs",)), min_size=1))
def test_a_file_name_says_which_session_it_is(session):
    name = file_name(session)

    assert name == name.lower()
    assert not set(name) & set('/\\:*?"<>|.\0 ')
    assert name.startswith("h_") or session_name(name) == session


@given(st.text(min_size=1, max_size=30), st.text(min_size=1, max_size=30))
def test_two_sessions_have_two_files_where_case_does_not_count(a, b):
    a, b = (text.encode("utf-8", "replace").decode() for text in (a, b))

    assert (file_name(a).casefold() == file_name(b).casefold()) == (a == b)


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_only_the_owner_can_read_the_files(tmp_path):
    store = JsonFileMessages(tmp_path / "chats")
    before = os.umask(0)
    try:
        store.append("s", HI)
        store.append("s", HI)
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "chats").stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "chats").iterdir()} == {0o600}


def test_a_file_is_json_that_others_can_read(tmp_path):
    store = JsonFileMessages(tmp_path)
    store.append("Ana's", [{"role": "user", "content": "Olá ☕"}, {"role": "assistant", "content": "Olá!"}])
    data = json.loads(store.path("Ana's").read_text(encoding="utf-8"))

    assert data["session"] == "Ana's"
    assert [message["content"] for message in data["messages"]] == ["Olá ☕", "Olá!"]


DAMAGE = {
    "empty": b"",
    "cut": b'{"format": 1, "session": "s", "messages": [{"role": "us',
    "no JSON": b"hello",
    "another shape": b"[]",
    "no messages": b'{"format": 1, "session": "s"}',
    "messages of another shape": b'{"format": 1, "session": "s", "messages": {"0": 1}}',
    "a message that is no object": b'{"format": 1, "session": "s", "messages": ["hi"]}',
    "a message without content": b'{"format": 1, "session": "s", "messages": [{"role": "user"}]}',
    "content that is no text": b'{"format": 1, "session": "s", "messages": [{"role": "user", "content": 5, "at": "2026-01-01"}]}',
    "a time that is none": b'{"format": 1, "session": "s", "messages": [{"role": "user", "content": "x", "at": "soon"}]}',
    "no UTF-8": b'{"format": 1, "session": "s\xff", "messages": []}',
    "zeros": bytes(500),
    "another session": b'{"format": 1, "session": "t", "messages": []}',
    "nested too deep": b"[" * 100_000,
}


@pytest.mark.parametrize("raw", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_named_and_left_as_it_is(tmp_path, raw):
    """Neither read as an empty session nor written over."""
    store = JsonFileMessages(tmp_path)
    path = store.path("s")
    path.write_bytes(raw)

    for call in (store.load, store.load_summary, lambda s: store.append(s, HI)):
        with pytest.raises(StoreCorrupt, match=path.name):
            call("s")
    assert path.read_bytes() == raw


def test_a_file_of_a_newer_version_is_left_untouched(tmp_path):
    store = JsonFileMessages(tmp_path)
    store.path("s").write_text('{"format": 2, "session": "s", "messages": []}')

    with pytest.raises(StoreTooNew, match="newer"):
        store.append("s", HI)


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_a_link_is_not_followed_out_of_the_folder(tmp_path):
    secret = tmp_path / "secret.json"
    secret.write_text("keep me")
    store = JsonFileMessages(tmp_path / "chats")
    store.append("other", HI)
    store.path("s").symlink_to(secret)

    with pytest.raises(StoreError, match=store.path("s").name):
        store.append("s", HI)
    assert secret.read_text() == "keep me"


def test_a_full_disk_loses_nothing_that_was_there(tmp_path, monkeypatch):
    store = JsonFileMessages(tmp_path)
    store.append("s", HI)

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(messages.os, "fsync", full)
        with pytest.raises(StoreFull, match="room"):
            store.append("s", HI)

    assert len(store.load("s")) == 1
    assert [path.suffix for path in tmp_path.iterdir() if not path.name.startswith(".lock")] == [".json"]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="permissions do not bind the superuser")
def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    folder = tmp_path / "chats"
    folder.mkdir(mode=0o500)

    with pytest.raises(StoreReadOnly, match="chats"):
        JsonFileMessages(folder).append("s", HI)


HOLD = """
import sys, fcntl
handle = open(sys.argv[1], "w")
fcntl.flock(handle, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.readline()
"""


@pytest.mark.skipif(os.name == "nt", reason="flock")
def test_a_held_session_is_waited_for_and_then_reported_busy(tmp_path):
    store = JsonFileMessages(tmp_path, timeout_ms=200)
    store.append("s", HI)
    (lock,) = tmp_path.glob(".lock-*")
    holder = start(HOLD, lock)
    with finished(holder):
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StoreBusy, match="held"):
            store.append("s", HI)
        readable = store.load("s")

    assert len(readable) == 1
    store.append("s", HI)
    assert len(store.load("s")) == 2


def test_clearing_leaves_no_word_on_the_disk(tmp_path):
    """Not even in the draft that a crash left behind."""
    store = JsonFileMessages(tmp_path)
    store.append("s", {"role": "user", "content": "the canary sings"})
    store.path("s").with_suffix(".tmp").write_text("the canary sings")
    store.clear("s")

    assert b"canary" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())
