"""`holdfast serve` and the model behind it: where it is, which key goes there, and that the key is told to nobody."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import openai
import pytest

from holdfast import Memory
from holdfast.cli import main

from ..test_serve import start
from .test_clients import ask

NAMES = ("OPENAI_BASE_URL", "OPENAI_API_KEY", "HOLDFAST_UPSTREAM_BASE_URL", "HOLDFAST_UPSTREAM_API_KEY")
SECRET = "sk-canary-0123456789"


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("options", "environment", "sent"),
    [
        (["--upstream", "{url}"], {"HOLDFAST_UPSTREAM_API_KEY": SECRET}, f"Bearer {SECRET}"),
        ([], {"OPENAI_BASE_URL": "{url}", "OPENAI_API_KEY": SECRET}, f"Bearer {SECRET}"),
        (["--upstream", "{url}"], {"OPENAI_API_KEY": SECRET}, None),  # it was set for another address
    ],
)
def test_a_key_goes_to_its_own_address_and_nowhere_else(model, monkeypatch, tmp_path, options, environment, sent):
    for name, value in environment.items():
        monkeypatch.setenv(name, value.format(url=model.url))
    running = start(tmp_path / "chat.db", *[option.format(url=model.url) for option in options])

    headers = {"X-Memory-User": "ana"}
    with openai.OpenAI(base_url=f"{running.address}/v1", api_key=running.key, default_headers=headers) as client:
        assert ask(client).choices[0].message.content == "Noted!"
    running.process.terminate()
    out, err = running.process.communicate(timeout=30)

    assert model.asked[0].headers.get("authorization") == sent
    assert SECRET not in out + err
    # on a busy machine the first chat may not wait for the embedding model to be read
    assert [line for line in err.splitlines() if "went on without its memory: slow" not in line] == []
    assert SECRET.encode() not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


@pytest.mark.parametrize(
    "url", ["nonsense", "ftp://x/v1", "http://", "http://127.0.0.1:99999/v1", "http://localhost:{port}/v1"]
)
def test_an_upstream_that_cannot_be_one_is_refused_and_no_key_is_made(tmp_path, unused_port, capsys, url):
    store = tmp_path / "chat.db"
    options = ["--port", str(unused_port), "--json", "--upstream", url.format(port=unused_port)]

    assert main(["serve", "--store", str(store), *options]) == 2

    assert json.loads(capsys.readouterr().err)["error"]["code"] == "bad-upstream"
    with Memory(store, embedder=None) as memory:
        assert list(memory.admin.keys.list()) == []


def test_the_first_key_waits_for_a_start_that_is_not_refused(tmp_path, unused_port):
    store = tmp_path / "chat.db"
    command = [sys.executable, "-m", "holdfast", "serve", "--store", str(store), "--port", str(unused_port), "--json"]
    command += ["--upstream", "nonsense"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=os.environ)

    assert done.returncode == 2
    running = start(store)
    running.process.terminate()
    running.process.communicate(timeout=30)
    assert running.key is not None
