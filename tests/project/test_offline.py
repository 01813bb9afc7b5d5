"""Nothing leaves the machine: the whole way of a message runs in a process that may open no socket."""

import subprocess
import sys

PROGRAM = """
import sys
import time

opened = []
sys.addaudithook(lambda event, args: opened.append(event) if event.split(".")[0] in ("socket", "urllib", "http") else None)

from holdfast import Memory

with Memory("offline.db", background=True) as memory:
    chat = memory.conversation("web-42", user="ana")
    for number in range(12):
        chat.record(f"I live in Lisbon, and this is remark {number}.", "Noted!")
    chat.end()
    report, patience = memory.digest(), time.monotonic() + 60
    while report.failed == 0 and not chat.summaries() and time.monotonic() < patience:
        time.sleep(0.01)  # a thread in the background has taken it up
        report = memory.digest()
    assert report.failed == 0 and chat.summaries(), report
    assert memory.user("ana").search("where does she live?")
    assert chat.context("What should I cook?").messages
    assert memory.doctor().ok
if len(sys.argv) > 1:
    import socket

    socket.socket()
sys.exit(f"opened: {opened}" if opened else 0)
"""


def run(folder, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], cwd=folder, capture_output=True, encoding="utf-8", timeout=120
    )
    return done.returncode, done.stderr


def test_remembering_opens_no_socket(tmp_path):
    assert run(tmp_path) == (0, "")


def test_a_socket_would_be_noticed(tmp_path):
    code, said = run(tmp_path, "open one")

    assert code == 1
    assert "socket" in said
