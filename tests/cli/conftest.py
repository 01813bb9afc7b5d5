"""The real command on real stores: called in this process, or started as one of its own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli import main

SOURCE = Path(__file__).parent.parent.parent / "src"  # this tree's, wherever a process is started
SETTINGS = (
    "HOLDFAST_STORE",
    "HOLDFAST_CONFIG",
    "HOLDFAST_USER",
    "HOLDFAST_ORG",
    "HOLDFAST_BOT",
    "NO_COLOR",
    "FORCE_COLOR",
)


@dataclass(frozen=True)
class Run:
    """What one command line did."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """stdout as the one JSON document that it is."""
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, str]:
        """The error on stderr, as JSON."""
        found: dict[str, str] = json.loads(self.err)["error"]
        return found


Holdfast = Callable[..., Run]


@pytest.fixture
def holdfast(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Holdfast:
    """Run ``holdfast`` in an empty folder, with nothing set in the environment."""
    monkeypatch.chdir(tmp_path)
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)

    def run(*args: str) -> Run:
        capsys.readouterr()
        code = main(args)
        said = capsys.readouterr()
        return Run(code, said.out, said.err)

    return run


Answer = Callable[[str], None]


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Put lines on standard input for the next command; "" is its end."""

    def put(text: str) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO(text))

    return put


def started(*args: str, cwd: Path, **more: Any) -> subprocess.Popen[bytes]:
    """``python -m holdfast`` as a process of its own, its output piped."""
    clean = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    clean["PYTHONPATH"] = str(SOURCE)
    return subprocess.Popen(
        [sys.executable, "-m", "holdfast", *args],
        cwd=cwd,
        env=clean | more.pop("env", {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **more,
    )


def write_jsonl(path: Path, rows: list[Any]) -> Path:
    """A file of JSON lines; text is written as it stands."""
    lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def said(content: str, **more: Any) -> dict[str, Any]:
    """A line of the user's."""
    return {"role": "user", "content": content, **more}
