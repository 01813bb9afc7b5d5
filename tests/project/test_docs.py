"""
Every example in README.md, CONTRIBUTING.md and docs/ runs.

A page is a story: its blocks run from top to bottom in one folder of their own, the Python ones in
one namespace.  What follows the opening fence says what a block is:

    python              run; an exception fails the page
    python no-run       shown only; counted, and few
    text output         must appear in what the last Python block printed; "…" stands for any text
    console             every line "$ holdfast …" or "$ … | holdfast …" is run and must succeed; the lines below
                        it, up to the next "$", must appear in what it prints; "…" stands for any text
    console fails       the same, but the commands must fail
    console server      every command is run, beside `holdfast serve` on a store of its own: what stands there for its
                        address is that address, $KEY is an operator's key. Also "python server": "hf_…" is that key
    console no-run      shown only; counted, and few
    jsonl chat.jsonl    any kind with a file name, Python too: written to that file
"""

import io
import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch
from urllib.request import urlopen

import pytest

from holdfast import Config
from holdfast.cli import main

ROOT = Path(__file__).parent.parent.parent
# The pages of frameworks are run where these are installed: tests/integrations/frameworks, `make integrations-latest`.
# Those of mem0, Zep, and hooks need none.
OF_FRAMEWORKS = [
    page for page in sorted((ROOT / "docs/integrations").rglob("*.md")) if page.stem not in ("mem0", "zep", "hooks")
]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
MAX_SHOWN_ONLY = 8

SHOWN_ADDRESS = "http://127.0.0.1:7800"

SHELL_ONLY = re.compile(r"[|<>&;$`*]")  # pipes, redirections, variables, patterns
FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]\n]*\]\((?!https?:|mailto:|#)([^)#\s]+)")


@pytest.fixture(autouse=True)
def real_chunks() -> Iterator[None]:
    """Pages speak of the default, which most tests replace; see conftest.py."""
    with patch.dict(Config.__init__.__kwdefaults__, chunk_tokens=600):  # type: ignore[arg-type]
        yield


class Block(NamedTuple):
    """One fenced block of a page."""

    line: int
    kind: str
    mark: str
    text: str


def blocks(page: str) -> list[Block]:
    """The fenced blocks of the Markdown text *page*, in order."""
    found = []
    for match in FENCE.finditer(page):
        kind, _, mark = match[1].strip().partition(" ")
        found.append(Block(page.count("\n", 0, match.start(2)) + 1, kind, mark.strip(), match[2]))
    return found


def commands(text: str) -> list[tuple[str, list[str]]]:
    """``(command, lines shown below it)`` for each line of a console block that starts with ``$``."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found and found[-1][0].endswith("\\") and not found[-1][1]:
            found[-1] = (f"{found[-1][0][:-1]} {line.strip()}", [])
        elif found:
            found[-1][1].append(line)
    return found


def missing(shown: list[str], printed: str) -> list[str]:
    """The lines of *shown* that are not in *printed* in this order; white space does not count, ``…`` is any text."""
    squeezed, at, left = re.sub(r"\s+", " ", printed), 0, list[str]()
    for line in (re.sub(r"\s+", " ", line.strip()) for line in shown):
        found = re.compile(".*?".join(map(re.escape, line.split("…")))).search(squeezed, at)
        at = found.end() if found else at
        left += [] if found else [line]
    return left


class Server(NamedTuple):
    """`holdfast serve`, started for a page."""

    process: subprocess.Popen[str]
    address: str
    key: str

    @classmethod
    def start(cls, folder: Path) -> "Server":
        """One with a store of its own in *folder*."""
        command = [sys.executable, "-m", "holdfast", "serve", "--store", "served.db", "--port", "0", "--json"]
        env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        for _ in range(300):
            with suppress(OSError), urlopen(f"{told['address']}/healthz"):
                break
            time.sleep(0.05)
        return cls(process, told["address"], told["operator_key"])

    def stop(self) -> None:
        """End it as Ctrl-C does."""
        self.process.terminate()
        self.process.communicate(timeout=30)

    def at(self, text: str) -> str:
        """*text* with its address and key."""
        return text.replace(SHOWN_ADDRESS, self.address).replace("hf_…", self.key)


def run_command(command: str, shown: list[str], folder: Path, *, fails: bool, **more: str) -> None:
    """Run one line as a reader would, and compare its output with what the page shows."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    env = {
        **os.environ,
        "PATH": path,
        "PYTHONPATH": str(ROOT / "src"),
        "NO_COLOR": "1",
        "COLUMNS": "100",
        "PYTHONIOENCODING": "utf-8",
        **more,
    }
    if SHELL_ONLY.search(command) or not command.startswith("holdfast "):
        code, printed = run_in_shell(command, folder, env)
    else:
        code, printed = run_here(command, env)

    assert (code != 0) == fails, f"$ {command}\n{printed}"
    assert missing(shown, printed) == [], f"$ {command}\n{printed}"


def run_in_shell(command: str, folder: Path, env: dict[str, str]) -> tuple[int, str]:
    """The exit code and the output of a line that pipes or redirects, or is another program's."""
    done = subprocess.run(command, shell=True, cwd=folder, env=env, capture_output=True, encoding="utf-8", timeout=300)
    return done.returncode, done.stdout + done.stderr


def run_here(command: str, env: dict[str, str]) -> tuple[int, str]:
    """The exit code and the output of a `holdfast` command, run in this process: starting one takes half a second."""
    out, err = io.StringIO(), io.StringIO()
    with (
        patch.dict(os.environ, env, clear=True),
        patch("sys.stdin", io.StringIO()),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        code = main(shlex.split(command)[1:])
    return code, out.getvalue() + err.getvalue()


def run_page(path: Path, text: str, folder: Path) -> None:
    """Run all blocks of a page in *folder*, which is the current one."""
    found = blocks(text)
    server = Server.start(folder) if any(block.mark == "server" for block in found) else None
    try:
        run_blocks(path, found, folder, server)
    finally:
        if server is not None:
            server.stop()


def run_blocks(path: Path, found: list[Block], folder: Path, server: Server | None) -> None:
    """Run the blocks of a page from top to bottom."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    printed = io.StringIO()
    for block in found:
        if block.mark == "no-run":
            continue
        if server is not None and block.mark == "server" and block.kind == "console":
            for command, shown in commands(block.text):
                run_command(server.at(command), shown, folder, fails=False, KEY=server.key)
        elif block.kind == "python" and block.mark in ("", "server"):
            code = server.at(block.text) if server is not None and block.mark else block.text
            # blank lines in front, so that a traceback names the line of the page
            with redirect_stdout(printed := io.StringIO()):
                exec(compile("\n" * (block.line - 1) + code, str(path), "exec"), namespace)
        elif block.mark == "output":
            shown = block.text.splitlines()
            assert missing(shown, printed.getvalue()) == [], f"{path}:{block.line}\n{printed.getvalue()}"
        elif block.kind == "console":
            for command, shown in commands(block.text):
                if re.search(r"(^|\| )holdfast ", command):
                    run_command(command, shown, folder, fails=block.mark == "fails")
        elif block.mark:
            assert Path(block.mark).name == block.mark, f"{path}:{block.line}: a plain file name, please"
            (folder / block.mark).write_text(block.text, encoding="utf-8")


@pytest.mark.parametrize(
    "path",
    [page for page in PAGES if page not in OF_FRAMEWORKS],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_page_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOLDFAST_MASTER_KEY", "")  # what a page sets there is gone after it

    run_page(path, path.read_text(encoding="utf-8"), tmp_path)


def test_few_examples_are_only_shown():
    shown_only = [
        f"{path.relative_to(ROOT)}:{block.line}"
        for path in PAGES
        for block in blocks(path.read_text(encoding="utf-8"))
        if block.mark == "no-run"
    ]

    assert len(shown_only) <= MAX_SHOWN_ONLY, shown_only


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path):
    links = LINK.findall(path.read_text(encoding="utf-8"))

    assert [link for link in links if not (path.parent / link).exists()] == []


PAGE = """\
# A page

```jsonl chat.jsonl
{"role": "user"}
```

```python
from pathlib import Path
lines = Path("chat.jsonl").read_text().splitlines()
```

```python
assert len(lines) == 1
```

```python no-run
raise SystemExit("never")
```
"""


def test_runner_runs_a_page_in_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    run_page(Path("page.md"), PAGE, tmp_path)


def test_runner_notices_a_failing_block(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(AssertionError):
        run_page(Path("page.md"), PAGE.replace("== 1", "== 2"), tmp_path)


def test_runner_notices_output_that_nobody_printed(tmp_path):
    page = "```python\nprint('Porto')\n```\n\n```text output\nLisbon\n```\n"

    run_page(Path("page.md"), page.replace("Lisbon", "Porto"), tmp_path)
    with pytest.raises(AssertionError, match="Porto"):
        run_page(Path("page.md"), page, tmp_path)


def test_runner_notices_a_failing_command(tmp_path):
    with pytest.raises(AssertionError, match="no-such-command"):
        run_page(Path("page.md"), "```console\n$ holdfast no-such-command\n```\n", tmp_path)


def test_runner_writes_python_files_and_runs_pipes(tmp_path):
    page = (
        "```python tool.py\nraise SystemExit\n```\n\n```console\n$ ls tool.py\n$ echo | holdfast no-such-command\n```\n"
    )

    with pytest.raises(AssertionError, match="no-such-command"):
        run_page(Path("page.md"), page, tmp_path)
    assert (tmp_path / "tool.py").read_text() == "raise SystemExit\n"


def test_runner_asks_a_server_and_holds_its_answer_against_the_page(tmp_path, tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (
        '```console server\n$ curl -s -H "Authorization: Bearer $KEY" \\\n    http://127.0.0.1:7800/v1/whoami\n'
        '{…"role":"operator"…}\n```\n'
    )

    run_page(Path("page.md"), page, tmp_path)
    with pytest.raises(AssertionError, match="operator"):
        run_page(Path("page.md"), page.replace('"operator"', '"king"'), tmp_path_factory.mktemp("other"))


def test_runner_tells_the_line_of_a_fault(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ZeroDivisionError) as caught:
        run_page(Path("page.md"), "# Title\n\n```python\n1 / 0\n```\n", tmp_path)
    assert caught.traceback[-1].lineno == 3  # counted from 0


@pytest.mark.parametrize(
    ("shown", "lost"),
    [
        (["lives_in   Porto"], []),
        (["lives_in … (message 2)"], []),
        (["", "…"], []),
        (["lives_in Lisbon"], ["lives_in Lisbon"]),
    ],
)
def test_shown_output_is_held_against_the_printed(shown, lost):
    assert missing(shown, "facts\n  lives_in  Porto   (message 2)\n") == lost
