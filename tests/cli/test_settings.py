"""Settings of the command: files, variables, --setting, ``holdfast config``, and a reload by SIGHUP."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import termios
from pathlib import Path
from typing import Any

import pytest

from .conftest import started


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return path.name


def row(run: Any, name: str) -> dict[str, Any]:
    """Return the row of ``holdfast config --json`` about a setting or an option."""
    (found,) = [one for one in (*run.data["settings"], *run.data["command"]) if one["name"] == name]
    return found


def test_every_command_reads_the_file_the_variables_and_the_option(holdfast, tmp_path, monkeypatch):
    write(tmp_path / "bot.toml", 'store = "chat.db"\nredact_messages = true\nmax_message_chars = 90\n')
    monkeypatch.setenv("HOLDFAST_CONFIG", "bot.toml")

    assert holdfast("say", "my password is hunter2secret").code == 0
    assert (tmp_path / "chat.db").exists()
    assert "hunter2secret" not in holdfast("messages").out
    assert holdfast("say", "x" * 91).code == 2
    monkeypatch.setenv("HOLDFAST_MAX_MESSAGE_CHARS", "95")
    assert holdfast("say", "x" * 91).code == 0
    assert holdfast("say", "x" * 91, "--setting", "max_message_chars=80").code == 2


def test_config_shows_each_setting_with_its_place(holdfast, tmp_path, monkeypatch):
    write(tmp_path / "bot.toml", "budget_tokens = 2000\nmin_confidence = 0.9\n\n[serve]\nport = 7801\n")
    monkeypatch.setenv("HOLDFAST_MIN_CONFIDENCE", "0.8")

    found = holdfast("config", "--config", "bot.toml", "--setting", "economy=on", "--json")

    assert (row(found, "budget_tokens")["value"], row(found, "budget_tokens")["place"]) == (2000, "bot.toml, line 1")
    assert (row(found, "min_confidence")["value"], row(found, "min_confidence")["place"]) == (
        0.8,
        "HOLDFAST_MIN_CONFIDENCE",
    )
    assert (row(found, "economy")["value"], row(found, "economy")["place"]) == (True, "--setting")
    assert (row(found, "chunk_tokens")["from"], row(found, "chunk_tokens")["variable"]) == (
        "default",
        "HOLDFAST_CHUNK_TOKENS",
    )
    assert (row(found, "serve.port")["value"], row(found, "serve.port")["place"]) == (7801, "bot.toml, line 5")
    table = holdfast("config", "--config", "bot.toml", "--changed").out.splitlines()
    assert [line.split()[0] for line in table] == ["min_confidence", "budget_tokens", "serve.port"]


def test_config_hides_secrets(holdfast, monkeypatch):
    monkeypatch.setenv("HOLDFAST_STORE", "postgresql://ana:opensesame@db/memory")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-opensesame")
    monkeypatch.setenv("HOLDFAST_MASTER_KEY", "opensesame")

    for options in ((), ("--json",)):
        found = holdfast("config", *options)
        assert found.code == 0
        assert "opensesame" not in found.out
        assert "OPENAI_API_KEY" in found.out


def test_a_mistake_stops_every_command_with_its_place(holdfast, tmp_path):
    write(tmp_path / "bot.toml", 'chunk_tokens = 800\nchunk_gap = 5\nbudget_tokens = "x"\n')

    for command in (("say", "hello"), ("facts",), ("worker", "--drain"), ("serve",), ("model",), ("config",)):
        found = holdfast(*command, "--config", "bot.toml", "--json")
        assert found.code == 2
        assert found.error["code"] == "bad-setting"
        assert "'chunk_gap' (bot.toml, line 2)" in found.error["message"]
        assert (
            "budget_tokens is 'x'; it must be a whole number, at least 1 (bot.toml, line 3)" in found.error["message"]
        )
    assert not (tmp_path / "holdfast.db").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[serve]\nprt = 5\n", "[serve] has no option 'prt' (bot.toml, line 2); did you mean port?"),
        ('[serve]\nport = "x"\n', "(bot.toml, line 2)"),
        ('[serve]\nallow_host = "x"\n', "allow_host is 'x'; it must be a list of texts (bot.toml, line 2)"),
        ('[serve]\nfirst_key = "no"\n', "first_key is 'no'; it must be true or false (bot.toml, line 2)"),
        ("[worker]\n\nthreads = 0\n", "threads is 0"),
        ("serve = 3\n", "serve must be a table of options"),
        ('[categories.garden]\ncardinality = "many"\n', "it must be one of exclusive, single, multi"),
        ('[categories.garden]\ndescripton = "x"\n', "there is no 'descripton' in it; did you mean description?"),
        ('[categories.garden.keys.grows]\ncardinalty = "multi"\n', "key 'grows': there is no 'cardinalty' in it"),
        ('[categories]\ngarden = "x"\n', "it must be a table"),
        ("[server]\nport = 1\n", "there is no setting 'server' (bot.toml, line 1); did you mean serve?"),
        ('stor = "x.db"\n', "there is no setting 'stor' (bot.toml, line 1); did you mean store?"),
        ("budget = 5\n", "budget is 5; it must be a limit of tokens_per_day or usd_per_day"),
        ("x", "bot.toml is not TOML"),
    ],
)
def test_check_finds_what_a_command_would_stumble_over(holdfast, tmp_path, text, said):
    found = holdfast("config", "--check", write(tmp_path / "bot.toml", text), "--json")

    assert found.code == 2
    assert said in found.error["message"]


def test_check_names_every_mistake_at_once(holdfast, tmp_path):
    text = 'chunk_tokenz = 4\n[serve]\nprt = 5\nhots = "x"\n[worker]\nthreads = 0\ndrain = "x"\n'
    found = holdfast("config", "--check", write(tmp_path / "bot.toml", text), "--json")

    for wrong in ("'chunk_tokenz'", "'prt'", "'hots'", "threads is 0", "drain is 'x'"):
        assert wrong in found.error["message"]


def test_check_accepts_a_whole_file(holdfast, tmp_path):
    text = 'budget_tokens = 2000\nstore = "a.db"\n[serve]\nport = 0\nallow_host = ["a"]\nfirst_key = false\n[worker]\ndrain = true\n'

    assert holdfast("config", "--check", write(tmp_path / "bot.toml", text), "--json").data["settings"] == 1


def test_the_table_of_a_command_gives_its_options(holdfast, tmp_path):
    write(tmp_path / "bot.toml", "workers = 3\n[worker]\ndrain = true\n")
    holdfast("say", "I live in Porto.")

    found = holdfast("worker", "--config", "bot.toml")

    assert found.code == 0
    assert "3 threads" in found.out


def test_the_switches_of_prompt_caching_are_variables(holdfast, monkeypatch):
    monkeypatch.setenv("HOLDFAST_PROMPT_CACHE", "off")
    monkeypatch.setenv("HOLDFAST_PROMPT_CACHE_RETENTION", "in_memory")
    monkeypatch.setenv("HOLDFAST_PROMPT_CACHE_MIN_TOKENS", "2048")

    found = holdfast("config", "--json")

    assert row(found, "prompt_cache")["value"] is False
    assert row(found, "prompt_cache_retention")["value"] == "in_memory"
    assert row(found, "prompt_cache_min_tokens")["value"] == 2048


@pytest.mark.parametrize("command", [("worker",), ("serve", "--port", "0")])
def test_a_hangup_reads_the_file_again(tmp_path, command):
    path = tmp_path / "bot.toml"
    path.write_text("budget_tokens = 2000\n")
    process = started(*command, "--config", "bot.toml", "--json", cwd=tmp_path, start_new_session=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline(), process.communicate()[1]
        path.write_text("budget_tokens = 1000\njob_attempts = 9\n[serve]\nport = 5\n[worker]\nthreads = 5\n")
        process.send_signal(signal.SIGHUP)
        changed = json.loads(process.stdout.readline())
        path.write_text("budget_tokens = 0\nserve = 7801\n")
        process.send_signal(signal.SIGHUP)
        assert process.stderr is not None
        refused = b"".join(iter(process.stderr.readline, b"}\n"))
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()

    assert b"budget_tokens is 0; it must be a whole number, at least 1 (bot.toml, line 1)" in refused
    assert b"serve must be a table of options, [serve] (bot.toml, line 2)" in refused
    assert (changed["state"], changed["applied"]) == ("reloaded", ["budget_tokens"])
    assert changed["restart"] == ["job_attempts", f"{command[0]}.{'threads' if command[0] == 'worker' else 'port'}"]


def test_a_terminal_that_closes_ends_the_command(tmp_path):
    """The signal is the same as for a reload."""
    here, there = pty.openpty()

    def attach() -> None:
        os.setsid()
        fcntl.ioctl(there, termios.TIOCSCTTY, 0)

    process = started("worker", "--json", cwd=tmp_path, preexec_fn=attach, pass_fds=(there,))
    assert process.stdout is not None
    try:
        assert process.stdout.readline(), process.communicate()[1]
        os.close(there)
        os.close(here)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.communicate()
