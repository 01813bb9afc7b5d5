"""``holdfast provider-keys``: encrypted, never listed, never an argument."""

from __future__ import annotations

import io
import sqlite3
from pathlib import Path

import pytest

from holdfast.llm.sealing import MASTER, MASTER_FILE, Master

from .conftest import Holdfast

KEY = "sk-canary-On-Stdin-52"


@pytest.fixture(autouse=True)
def master(holdfast: Holdfast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(MASTER_FILE, raising=False)
    monkeypatch.delenv("HOLDFAST_PROVIDER_KEY", raising=False)
    monkeypatch.setenv(MASTER, holdfast("provider-keys", "--make-master-key").out.strip())


def type_in(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_a_new_master_key_works_from_a_file(
    holdfast: Holdfast, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = holdfast("provider-keys", "--make-master-key")
    assert made.code == 0
    assert Master.of(made.out.strip())
    assert holdfast("provider-keys", "--make-master-key", "--json").data["master_key"] != made.out.strip()
    path = tmp_path / "master.key"
    path.write_text(made.out)
    path.chmod(0o600)
    monkeypatch.delenv(MASTER)
    monkeypatch.setenv(MASTER_FILE, str(path))
    type_in(monkeypatch, KEY)
    assert holdfast("provider-keys", "--set", "openai:gpt-5").code == 0


def test_a_key_is_read_from_standard_input_or_the_environment(
    holdfast: Holdfast, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    type_in(monkeypatch, f"{KEY}\n")
    done = holdfast("provider-keys", "--set", "anthropic:claude-haiku-4-5", "--user", "ana", "--json")
    assert [key["model"] for key in done.data["keys"]] == ["claude-haiku-4-5"]
    monkeypatch.setenv("HOLDFAST_PROVIDER_KEY", f"{KEY}-2")
    type_in(monkeypatch, "")
    done = holdfast("provider-keys", "--set", "openai:gpt-5", "--user", "ana")
    assert "openai:gpt-5" in done.out
    assert "in use" in done.out
    assert KEY not in done.out + done.err
    with sqlite3.connect(tmp_path / "holdfast.db") as db:
        assert db.execute("SELECT count(*) FROM provider_key").fetchone() == (2,)
    db.close()
    assert not any(KEY.encode() in path.read_bytes() for path in tmp_path.iterdir())


def test_another_model_can_use_the_same_key(holdfast: Holdfast, monkeypatch: pytest.MonkeyPatch) -> None:
    type_in(monkeypatch, KEY)
    holdfast("provider-keys", "--set", "openai:gpt-5")
    (key,) = holdfast("provider-keys", "--set", "openai:gpt-5-mini", "--same-key", "--json").data["keys"]
    assert key["model"] == "gpt-5-mini"
    assert holdfast("provider-keys", "--remove", key["id"]).code == 0
    assert "has no provider key" in holdfast("provider-keys").out
    assert holdfast("provider-keys", "--remove", key["id"], "--json").error["code"] == "not-found"


def test_all_keys_are_encrypted_again_under_another_master_key(
    holdfast: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    type_in(monkeypatch, KEY)
    holdfast("provider-keys", "--set", "openai:gpt-5")
    new = holdfast("provider-keys", "--make-master-key").out.strip()
    monkeypatch.setenv("HOLDFAST_NEW_MASTER_KEY", new)
    assert holdfast("provider-keys", "--rotate", "--json").data["rotated"] == 1
    assert "its master key is missing" in holdfast("provider-keys").out
    monkeypatch.setenv(MASTER, new)
    assert "in use" in holdfast("provider-keys").out


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("--set", "openai:gpt-5"), "no-key"),
        (("--set", "openai:gpt-5", "--rotate"), "usage"),
        (("--set", "mistral:large", "--same-key"), "bad-input"),
        (("--set", "ollama:llama3", "--base-url", "http://localhost:11434"), "endpoint-refused"),
    ],
)
def test_impossible_options_are_errors(
    holdfast: Holdfast, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], code: str
) -> None:
    type_in(monkeypatch, "")
    assert holdfast("provider-keys", *args, "--json").error["code"] == code


def test_a_private_endpoint_is_allowed_by_name(holdfast: Holdfast, monkeypatch: pytest.MonkeyPatch) -> None:
    type_in(monkeypatch, "")
    near = ("--base-url", "http://localhost:11434", "--allow-endpoint", "localhost:11434")
    (key,) = holdfast("provider-keys", "--set", "ollama:llama3", *near, "--json").data["keys"]
    assert key["base_url"] == "http://localhost:11434/v1"


def test_without_a_master_key_nothing_is_stored(holdfast: Holdfast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(MASTER)
    type_in(monkeypatch, KEY)
    done = holdfast("provider-keys", "--set", "openai:gpt-5", "--json")
    assert done.error["code"] == "vault-locked"
    assert KEY not in done.out + done.err
