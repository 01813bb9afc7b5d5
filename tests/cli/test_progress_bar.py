"""The progress bar, on a terminal that is 80 columns wide."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from .conftest import SETTINGS, said, write_jsonl

SHOWN_AT_ONCE = (
    "import sys, holdfast.cli.output as o; o.PROGRESS_DELAY_S = 0; from holdfast.cli import main; sys.exit(main())"
)


def frames(arguments: list[str], cwd: Path) -> list[str]:
    """What a terminal shows on stderr, line by line, without colours and cursor movements."""
    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    clean = {name: value for name, value in os.environ.items() if name not in SETTINGS} | {"TERM": "xterm"}
    done = subprocess.Popen(
        [sys.executable, "-c", SHOWN_AT_ONCE, *arguments], cwd=cwd, env=clean, stdout=subprocess.DEVNULL, stderr=end
    )
    os.close(end)
    seen = b""
    try:
        while part := os.read(terminal, 4096):
            seen += part
    except OSError:  # how Linux says that the other end was closed
        pass
    os.close(terminal)

    assert done.wait() == 0
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())
    return [line for line in re.split(r"[\r\n]+", plain) if line.strip()]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["import", "chat.jsonl", "--no-digest"],
            r"Importing [━╺╸]{16} [\d,]+ of 4,000 messages, \d+ %, [\d,]+/s \d:\d\d:\d\d",
        ),
        (
            ["digest"],
            r"Learning [━╺╸]{16} (extracting facts|summarizing|indexing for search|writing the story)( \([\d,]+ texts? done\))?(, \d+ jobs? to go)? \d:\d\d:\d\d",
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
def test_a_terminal_sees_a_bar_with_what_is_done(tmp_path: Path, arguments: list[str], says: str) -> None:
    write_jsonl(tmp_path / "chat.jsonl", [said(f"message {n}") for n in range(4000)])
    if arguments == ["digest"]:
        write_jsonl(tmp_path / "chat.jsonl", [said(f"My number {n} is the one I like.") for n in range(200)])
        frames(["import", "chat.jsonl", "--no-digest"], tmp_path)

    lines = frames(arguments, tmp_path)
    title = says.split()[0]

    assert all(line.startswith(title) and len(line) <= 80 for line in lines)
    assert any(re.fullmatch(says, line.rstrip()) for line in lines), lines
