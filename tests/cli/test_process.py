"""The command as a process: piped, interrupted, killed."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast import Memory

from .conftest import SOURCE, Holdfast, said, started, write_jsonl

MESSAGES = 2500


def numbered(count: int) -> list[dict[str, Any]]:
    told = {7: "I'm vegetarian.", 1201: "I eat fish now.", 1205: "I live in Lisbon."}
    return [
        {"role": ("assistant", "user")[n % 2], "content": told.get(n, f"message {n}"), "at": "2026-03-14T19:02:00Z"}
        for n in range(count)
    ]


def stored(path: Path, conversation: str = "chat") -> list[tuple[int, str, str]]:
    with Memory(path, embedder=None) as memory:
        messages = memory.conversation(conversation, user="me").load()
        return [(message.seq, message.role, message.content) for message in messages]


def wait_for(path: Path, seq: int) -> None:
    """Wait until the store at *path* holds message *seq*."""
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.005)
    with Memory(path, embedder=None) as memory:
        while not memory.conversation("chat", user="me").load(start_seq=seq, limit=1):
            assert time.monotonic() < deadline
            time.sleep(0.001)


def derived(path: Path) -> tuple[list[Any], list[Any]]:
    """Facts and summaries, without their ids."""
    with Memory(path, embedder=None) as memory:
        memory.digest()
        assert memory.doctor().ok
        facts = [(f.category, f.key, f.value, f.valid_to) for f in memory.user("me").history("dietary")]
        chat = memory.conversation("chat", user="me")
        return facts, [(s.level, s.start_seq, s.end_seq, s.text) for s in chat.summaries()]


@pytest.mark.slow
def test_an_import_killed_at_any_moment_resumes_to_the_same_store(holdfast: Holdfast, tmp_path: Path) -> None:
    """kill -9 three times, each later; then run to the end."""
    write_jsonl(tmp_path / "chat.jsonl", numbered(MESSAGES))
    for seq in (1, 501, 1001):
        process = started("import", "chat.jsonl", "-s", "killed.db", "--no-digest", cwd=tmp_path)
        wait_for(tmp_path / "killed.db", seq)
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert len(stored(tmp_path / "killed.db")) < MESSAGES
    resumed = holdfast("import", "chat.jsonl", "-s", "killed.db", "--no-digest", "--json").data
    whole = holdfast("import", "chat.jsonl", "-s", "whole.db", "--no-digest", "--json").data

    assert resumed["known"] >= 1001
    assert resumed["stored"] + resumed["known"] == whole["stored"] == MESSAGES
    assert stored(tmp_path / "killed.db") == stored(tmp_path / "whole.db")
    assert derived(tmp_path / "killed.db") == derived(tmp_path / "whole.db")


def test_ctrl_c_stops_an_import_and_says_how_to_continue(tmp_path: Path) -> None:
    many = 20 * MESSAGES  # it must not be done before a busy machine has sent the signal
    write_jsonl(tmp_path / "chat.jsonl", numbered(many))
    process = started("import", "chat.jsonl", "--no-digest", cwd=tmp_path)
    wait_for(tmp_path / "holdfast.db", 1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)

    assert (process.returncode, out) == (130, b"")
    assert b"error[interrupted]: stopped: " in err
    assert b"of 50,000 messages are stored" in err
    assert b"help: run the same command again; it continues from here" in err
    assert 0 < len(stored(tmp_path / "holdfast.db")) < many


def test_standard_input_can_be_imported(tmp_path: Path) -> None:
    process = started("import", "-", "-c", "piped", "--json", cwd=tmp_path, stdin=subprocess.PIPE)
    out, _ = process.communicate(json.dumps(said("I live in Lisbon.")).encode() + b"\n")

    assert process.returncode == 0
    assert json.loads(out)["stored"] == 1
    assert stored(tmp_path / "holdfast.db", "piped") == [(1, "user", "I live in Lisbon.")]


def test_nothing_is_colored_in_a_pipe(tmp_path: Path) -> None:
    for args in (("say", "I'm vegetarian."), ("facts",), ("context",), ("doctor",), ("facts", "--bogus"), ("--help",)):
        out, err = started(*args, cwd=tmp_path).communicate()

        assert out or err
        assert b"\x1b" not in out + err


def on_a_terminal(*args: str, cwd: Path, env: dict[str, str]) -> tuple[int, bytes]:
    """Run ``holdfast`` on a terminal of its own; returns its exit code and what the terminal was sent."""
    terminal, end = pty.openpty()
    clean = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast", *args],
        cwd=cwd,
        env=clean | {"TERM": "xterm", "PYTHONPATH": str(SOURCE)} | env,
        stdout=end,
        stderr=end,
    )
    os.close(end)
    seen = b""
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:  # how Linux says that the other end was closed
            break
        if not part:
            break
        seen += part
    os.close(terminal)
    return process.wait(), seen


@pytest.mark.parametrize(("env", "colored"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_a_terminal_gets_color_unless_no_color_is_set(tmp_path: Path, env: dict[str, str], colored: bool) -> None:
    started("say", "I'm vegetarian.", cwd=tmp_path).communicate()
    code, seen = on_a_terminal("facts", cwd=tmp_path, env=env)

    assert code == 0
    assert b"vegetarian" in seen
    assert (b"\x1b[" in seen) is colored


def test_a_terminal_gets_a_bar_for_long_work(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "chat.jsonl", numbered(3 * MESSAGES))
    code, seen = on_a_terminal("import", "chat.jsonl", "--no-digest", cwd=tmp_path, env={"COLUMNS": "120"})

    assert code == 0
    assert b"Importing" in seen
    assert b"of 7,500 messages" in seen
    assert b"Traceback" not in seen


def test_a_closed_pipe_prints_no_error(tmp_path: Path) -> None:
    rows = [said(f"My friend Ana{n} lives here and I like number {n} and the colour {n}.") for n in range(100)]
    write_jsonl(tmp_path / "chat.jsonl", rows)
    started("import", "chat.jsonl", "--no-digest", cwd=tmp_path).communicate()
    process = started("search", "number", "-n", "2000", cwd=tmp_path)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()

    assert process.wait() == 141
    assert err == b""


def test_a_terminal_without_unicode_works(tmp_path: Path) -> None:
    env = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    started("say", "I live in Zürich.", cwd=tmp_path).communicate()
    plain, _ = started("facts", cwd=tmp_path, env=env).communicate()
    as_json, err = started("facts", "--json", cwd=tmp_path, env=env).communicate()

    assert b"Z\\xfcrich" in plain
    assert err == b""
    assert json.loads(as_json)[0]["value"] == "Zürich"


def test_long_work_prints_its_progress_every_few_seconds(
    holdfast: Holdfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.cli.output.PROGRESS_INTERVAL_S", 0.05)
    monkeypatch.setattr("holdfast.cli.output.PROGRESS_DELAY_S", 0.01)
    write_jsonl(tmp_path / "chat.jsonl", numbered(MESSAGES))
    run = holdfast("import", "chat.jsonl", "--no-digest")

    lines = run.err.splitlines()
    assert lines
    assert all(line.startswith("Importing: ") and "of 2,500 messages, " in line for line in lines)
    assert "2,500 messages stored" in run.out
