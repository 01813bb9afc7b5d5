"""OpenClaw itself with the plugin of `holdfast-memory`, in front of a model's server of a test."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from holdfast import Memory
from holdfast.server.gate import ServerSettings
from tests.server.proxy.conftest import served
from tests.server.proxy.upstream import answer, serving

ROOT = Path(__file__).parent.parent.parent.parent.parent
PACKAGES = Path(os.environ["HOLDFAST_NPM"]) / "node_modules"


@pytest.fixture
def openclaw(tmp_path):
    """``openclaw(arguments…)``: run it in a home folder of its own."""

    def run(*arguments):
        command = [PACKAGES / ".bin/node", PACKAGES / "openclaw/openclaw.mjs", *arguments]
        env = {**os.environ, "HOME": str(tmp_path)}
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_openclaw_remembers_what_it_was_told_in_another_process(openclaw, tmp_path):
    openclaw("plugins", "install", "--link", str(ROOT / "npm"), "--force", "--accept-capabilities")
    with serving() as model, Memory(embedder=None) as memory, served(memory, ServerSettings()) as address:
        model.reply = lambda asked: answer(asked, "Noted!")
        place = tmp_path / ".openclaw/openclaw.json"
        settings = json.loads(place.read_text())
        entry = {"baseURL": address, "apiKey": memory.admin.keys.create("app").key}
        settings["plugins"]["entries"]["holdfast-memory"] = {
            "enabled": True,
            "hooks": {"allowConversationAccess": True},
            "config": entry,
        }
        known = {"id": "m-1", "name": "m-1", "contextWindow": 100_000, "maxTokens": 1_000}
        provider = {"baseUrl": model.url, "apiKey": "k", "api": "openai-completions", "models": [known]}
        settings["models"] = {"providers": {"fake": provider}}
        settings["agents"] = {"defaults": {"model": {"primary": "fake/m-1"}}}
        place.write_text(json.dumps(settings))
        for session, text in (("s1", "I am a vegetarian."), ("s2", "What may I cook?")):
            openclaw("agent", "--local", "--session-id", session, "-m", text)
        found = {
            name: [message.content for message in memory.conversation(name, user="me").load()]
            for name in memory.user("me").conversations()
        }

    assert list(found.values()) == [["I am a vegetarian.", "Noted!"], ["What may I cook?", "Noted!"]]
    asked = [one for one in model.asked if one.path.endswith("/chat/completions")]
    assert "Is vegetarian." in str(asked[-1].body["messages"][0]["content"])
