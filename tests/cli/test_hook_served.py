"""``holdfast hook run`` with a server: what is stored and shown is the same, and the process loads next to nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from holdfast import Memory
from holdfast.server.gate import ServerSettings
from tests.server.proxy.conftest import served

HEAVY = ("typer", "rich", "numpy", "apsw", "pydantic", "holdfast.cli", "holdfast.memory", "holdfast.config")


@dataclass
class Server:
    memory: Memory
    address: str
    home: Path
    key: str

    def fire(self, event: dict[str, Any] | str, *options: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run the hook in a process of its own."""
        given = event if isinstance(event, str) else json.dumps(event)
        named = options or ("--store", self.address, "--user", "ana")
        env = {**os.environ, "HOME": str(self.home), "HOLDFAST_API_KEY": self.key, **environ}
        command = [sys.executable, "-m", "holdfast", "hook", "run", *named]
        return subprocess.run(command, input=given, env=env, capture_output=True, text=True, timeout=60)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Memory(embedder=None) as memory, served(memory, ServerSettings()) as address:
        key = memory.admin.keys.create("app").key
        yield Server(memory, address.removesuffix("/v1"), tmp_path, key)


def event(name: str, folder: Path, session: str = "s1", **more: str) -> dict[str, Any]:
    return {"hook_event_name": name, "session_id": session, "cwd": str(folder), **more}


def test_a_session_remembers_the_one_before(server: Server, tmp_path: Path) -> None:
    asked = server.fire(event("UserPromptSubmit", tmp_path, prompt="I use uv, not pip."))
    again = server.fire(event("UserPromptSubmit", tmp_path, prompt="I use uv, not pip."))
    replied = server.fire(event("Stop", tmp_path, last_assistant_message="Noted."))
    begun = server.fire(event("SessionStart", tmp_path, session="s2"))

    assert [one.stderr for one in (asked, again, replied, begun)] == [""] * 4
    (subject,) = server.memory.user("ana").subjects()
    assert subject.name == tmp_path.name.lower()
    chat = server.memory.conversation("s1", user="ana", subject=subject.id)
    assert [(m.role, m.content) for m in chat.load()] == [("user", "I use uv, not pip."), ("assistant", "Noted.")]
    told = json.loads(begun.stdout)["hookSpecificOutput"]
    assert told["hookEventName"] == "SessionStart"
    assert "uv" in told["additionalContext"]


def test_the_key_is_read_from_a_file_at_home(server: Server, tmp_path: Path) -> None:
    (tmp_path / ".holdfast").mkdir()
    (tmp_path / ".holdfast/key").write_text(server.key + "\n")
    done = server.fire(event("UserPromptSubmit", tmp_path, prompt="I use uv."), HOLDFAST_API_KEY="")

    assert done.stderr == ""
    assert server.memory.user("ana").subjects()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("nonsense", "could not be read"),
        ("[1]", "could not be read"),
        ("{}", "422"),
        ('{"hook_event_name": "SessionStart"}', "names no session"),
        ('{"hook_event_name": "PreToolUse", "session_id": "s"}', ""),
        ('{"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "\\ud83d \\u0000 x"}', ""),
    ],
)
def test_an_event_that_is_not_understood_stops_no_agent(server: Server, given: str, says: str) -> None:
    done = server.fire(given)

    assert (done.returncode, done.stdout) == (0, "")
    assert says in done.stderr
    assert bool(done.stderr) == bool(says)


def test_a_server_that_refuses_or_is_away_stops_no_agent(server: Server, tmp_path: Path) -> None:
    start = event("SessionStart", tmp_path)
    refused = server.fire(start, HOLDFAST_API_KEY="wrong")
    away = server.fire(start, "--store", "http://ana:secret@127.0.0.1:1", "--user", "ana")

    assert (refused.returncode, away.returncode) == (0, 0)
    assert "HOLDFAST_API_KEY" in refused.stderr
    assert "holdfast serve" in away.stderr
    assert "secret" not in away.stderr


def test_the_key_goes_to_no_other_address(server: Server, tmp_path: Path) -> None:
    heard: list[str] = []

    class Elsewhere(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(302)
            self.send_header("Location", f"http://localhost:{self.server.server_address[1]}/taken")
            self.end_headers()

        def do_GET(self) -> None:
            heard.append(str(self.headers["Authorization"]))
            self.send_error(404)

    with ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        done = server.fire(
            event("SessionStart", tmp_path), "--store", f"http://127.0.0.1:{other.server_address[1]}", "--user", "ana"
        )
        other.shutdown()

    assert (done.returncode, done.stdout, heard) == (0, "", [])
    assert done.stderr


def test_a_paused_user_is_neither_stored_nor_shown(server: Server, tmp_path: Path) -> None:
    server.memory.user("ana").pause()
    done = server.fire(event("UserPromptSubmit", tmp_path, prompt="I use uv."))

    assert (done.stdout, done.stderr) == ("", "")
    server.memory.user("ana").resume()
    assert not server.memory.user("ana").conversations()


def test_the_process_loads_next_to_nothing(tmp_path: Path) -> None:
    code = (
        "import sys; from holdfast.__main__ import main; sys.argv[1:] = "
        "['hook', 'run', '--store', 'http://127.0.0.1:1', '--user=ana']; "
        f"code = main(); print(code, [name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], input="{}", capture_output=True, text=True)

    assert done.stdout == "0 []\n"


def test_other_options_are_read_by_the_whole_command(server: Server, tmp_path: Path) -> None:
    start = event("SessionStart", tmp_path)

    assert "no such option" in server.fire(start, "--store", server.address, "--nonsense").stderr.lower()
    assert server.fire(start, "--store", server.address, "--user", "ana", "--json").stderr == ""
