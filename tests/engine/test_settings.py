"""Settings from a file, from variables and by name: which wins, what is refused, and what a reload changes."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import Budget, Config, Memory, PatternDetector, Price
from holdfast.config import PREFIX, VARIABLES, SettingsFile, load_config, variable_of
from holdfast.errors import ConfigError

FILE = """\
# settings of the bot
chunk_tokens = 800
redact_messages = true
language = "none"
memory_instruction = \"\"\"
Use it.
chunk_tokens = 3
\"\"\"
allow_private_endpoints = ["localhost:11434", "10.0.0.0/8"]
budget_org.usd_per_day = 5
store = "chat.db"

[budget]
tokens_per_day = 1_000_000

[prices."openai:small"]
input = 0.25
output = 2

[categories.garden]
description = "Their garden."

[[detectors]]
kind = "case number"
pattern = "CASE-[0-9]{6}"

[serve]
port = 7801
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "bot.toml"
    path.write_text(FILE, encoding="utf-8")
    return path


def refused(**given: Any) -> str:
    """Return the message for variables that cannot be used."""
    with pytest.raises(ConfigError) as caught:
        load_config(None, {variable_of(name): text for name, text in given.items()}, {})
    return caught.value.message


def test_a_file_holds_every_kind_of_setting(file):
    config = Config.load(file, environ={})

    assert (config.chunk_tokens, config.redact_messages, config.language) == (800, True, None)
    assert config.memory_instruction == "Use it.\nchunk_tokens = 3\n"
    assert config.allow_private_endpoints == ("localhost:11434", "10.0.0.0/8")
    assert (config.budget, config.budget_org) == (Budget(tokens_per_day=1_000_000), Budget(usd_per_day=5))
    assert config.prices == {"openai:small": Price(0.25, 2)}
    assert config.categories == {"garden": {"description": "Their garden."}}
    assert config.detectors == (PatternDetector("case number", "CASE-[0-9]{6}"),)


def test_variables_win_over_the_file_and_names_over_both(file):
    environ = {"HOLDFAST_CONFIG": str(file), "HOLDFAST_CHUNK_TOKENS": "900", "HOLDFAST_BUDGET_TOKENS": "1_500"}

    config = Config.load(environ=environ, budget_tokens=2000)

    assert (config.chunk_tokens, config.budget_tokens, config.redact_messages) == (900, 2000, True)


def test_a_memory_takes_what_was_loaded(file):
    with Memory(embedder=None, config=Config.load(file, environ={})) as memory:
        memory.conversation("c", user="ana").append({"role": "user", "content": "It is about CASE-123456."})
        (message,) = memory.conversation("c", user="ana").load()

    assert message.content == "It is about [case number removed]."


def test_each_value_has_its_origin_with_the_line(file):
    found = load_config(file, {"HOLDFAST_ECONOMY": "on"}, {"min_confidence": "0.8"}, as_text=True)

    origins = {name: (one.kind, one.place.removeprefix(f"{file}, ")) for name, one in found.origins.items()}
    assert origins["chunk_tokens"] == ("file", "line 2")
    assert origins["memory_instruction"] == ("file", "line 5")
    assert origins["budget"] == ("file", "line 13")
    assert origins["detectors"] == ("file", "line 23")
    assert origins["economy"] == ("environment", "HOLDFAST_ECONOMY")
    assert origins["min_confidence"] == ("option", "--setting")
    assert origins["rollup_summaries"] == ("default", "")


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("budget_tokens", "2_000", 2000),
        ("min_confidence", ".8", 0.8),
        ("decay_half_life_days", "30", 30),
        ("prompt_cache", "off", False),
        ("economy", "YES", True),
        ("language", "de", "de"),
        ("language", "none", None),
        ("consolidate_similarity", "none", None),
        ("prompt_cache_retention", "in_memory", "in_memory"),
        ("allow_private_endpoints", "localhost:11434, 10.0.0.0/8", ("localhost:11434", "10.0.0.0/8")),
        ("budget", '{"usd_per_day": 2.5}', Budget(usd_per_day=2.5)),
        ("budget", "{tokens_per_day = 1_000}", Budget(tokens_per_day=1000)),
        ("prices", '{"openai:small": {"input": 1, "output": 2}}', {"openai:small": Price(1, 2)}),
        ("detectors", '[{"kind": "case", "pattern": "C-1"}]', (PatternDetector("case", "C-1"),)),
        ("budget_tokens", " ", 4000),
        ("memory_instruction", "none", ""),
        ("allow_private_endpoints", "None", ()),
        ("detectors", "none", ()),
    ],
)
def test_a_variable_holds_any_setting_as_text(name, text, value):
    assert getattr(Config.load(environ={variable_of(name): text}), name) == value


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"budget_tokens": "many"}, "budget_tokens is 'many'; it must be a whole number, at least 1"),
        ({"budget_tokens": "2.5"}, "it must be a whole number"),
        ({"min_confidence": "7"}, "it must be a number from 0 to 1"),
        ({"min_confidence": "nan"}, "it must be a number from 0 to 1"),
        ({"prompt_cache": "perhaps"}, "it must be true or false"),
        ({"prompt_cache_retention": "48h"}, "it must be 24h or in_memory"),
        ({"consolidate_similarity": "near"}, "from 0 to 1, or none"),
        ({"budget": "5"}, "a limit of tokens_per_day or usd_per_day"),
        ({"budget": "{tokens_a_day = 5}"}, "'tokens_a_day' in it; did you mean tokens_per_day?"),
        ({"budget": "{tokens_per_day = -5}"}, "0 or more"),
        ({"prices": '{"a": {"input": 1}}'}, "it needs input and output"),
        ({"detectors": '[{"kind": "x", "pattern": "("}]'}, "is no regular expression"),
        ({"detectors": '[{"kind": "x", "pattern": "a*"}]'}, "matches an empty text"),
        ({"categories": "garden"}, "a table of tables"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_what_would(given, said):
    message = refused(**given)

    assert said in message
    assert message.endswith(f"({variable_of(next(iter(given)))})")


def test_all_mistakes_are_named_at_once_with_their_places(tmp_path):
    path = tmp_path / "bot.toml"
    path.write_text('chunk_token = 5\n\nbudget_tokens = "2000"\nstore = 5\n')

    with pytest.raises(ConfigError) as caught:
        load_config(path, {"HOLDFAST_CHUNK_MESSAGE": "12"}, {"workers": "0"}, as_text=True)

    assert caught.value.message.splitlines() == [
        "there is no variable HOLDFAST_CHUNK_MESSAGE; did you mean HOLDFAST_CHUNK_MESSAGES?",
        f"store is 5; it must be text ({path}, line 4)",
        f"there is no setting 'chunk_token' ({path}, line 1); did you mean chunk_tokens?",
        f"budget_tokens is '2000'; it must be a whole number, at least 1 ({path}, line 3)",
        "workers is '0'; it must be a whole number, at least 1 (--setting)",
    ]


def test_variables_of_others_stop_nothing():
    environ = {
        "HOLDFAST_PORT": "tcp://10.0.0.1:7800",
        "HOLDFAST_PORT_7800_TCP_ADDR": "10.0.0.1",
        "HOLDFAST_WORKERS_SERVICE_HOST": "10.0.0.2",
        "HOLDFAST_STORE_FILE": "/run/secrets/store",
        "HOLDFAST_IMAGE": "holdfast:1",
    }

    assert load_config(None, environ, {}).unknown == ("HOLDFAST_IMAGE",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("budget_tokens 5", "is not TOML"),
        ("budget_tokens = 5\nbudget_tokens = 6", "is not TOML"),
        (None, "No such file"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(tmp_path, text, said):
    path = tmp_path / "bot.toml"
    if text is not None:
        path.write_text(text)

    with pytest.raises(ConfigError, match=said) as caught:
        Config.load(path, environ={})

    assert str(path) in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    "given",
    [
        {"redact_messages": "no"},
        {"chunk_tokens": 600.5},
        {"chunk_tokens": True},
        {"language": 5},
        {"allow_private_endpoints": "localhost"},
        {"budget": 5},
        {"prices": {"a": 1}},
        {"detectors": ("phone",)},
        {"categories": {"garden": "x"}},
    ],
)
def test_a_program_cannot_give_a_value_of_another_type(given):
    (name,) = given
    with pytest.raises(ConfigError, match=f"Config.{name} is .*; it must be "):
        Config(**given)


def test_every_variable_in_the_code_is_known():
    settings = {variable_of(item.name) for item in fields(Config)}
    package = Path(holdfast.__file__).parent
    named = {
        name.removesuffix("_FILE")
        for path in package.rglob("*.py")
        for name in re.findall(rf"\b{PREFIX}[A-Z_]*[A-Z]\b", path.read_text(encoding="utf-8"))
    }

    assert named - settings - VARIABLES == set()


def test_a_reload_changes_what_an_open_memory_does():
    given = Config(min_confidence=0.7)
    with Memory(embedder=None, config=given) as memory:
        chat = memory.conversation("c", user="ana")
        changes = memory.admin.reload(replace(given, redact_messages=True, budget_tokens=50, workers=9))
        chat.append({"role": "user", "content": "my password is hunter2secret, " + "and it rained " * 100})

        assert changes.applied == ("budget_tokens", "redact_messages")
        assert changes.restart == ("workers",)
        assert "hunter2secret" not in chat.load()[0].content
        assert memory.config.budget_tokens == 50
        assert memory.admin.reload(memory.config).applied == ()
    assert given.budget_tokens == 4000, "the value that the caller holds stays"


def test_a_reload_changes_no_other_memory():
    config = Config()
    with Memory(embedder=None, config=config) as one, Memory(embedder=None, config=config) as other:
        one.admin.reload(Config(budget_tokens=100))

        assert (one.config.budget_tokens, other.config.budget_tokens) == (100, 4000)


def test_a_reload_refuses_what_is_no_config():
    with Memory(embedder=None) as memory, pytest.raises(ConfigError, match="must be a Config"):
        memory.admin.reload({"budget_tokens": 5})


def test_a_pattern_detector_finds_each_match():
    detector = PatternDetector("case", "CASE-[0-9]+")

    assert list(detector.find("CASE-1 and CASE-22")) == [(0, 6), (11, 18)]


def test_the_lines_of_a_long_file_are_found_in_one_pass(tmp_path, monkeypatch):
    path, parsed = tmp_path / "bot.toml", 0
    tables = "".join(f"[categories.c{n}]\nkeys = [\n 'a',\n]\n" for n in range(100))
    path.write_text(
        f"budget_tokens = 2000\n# a remark\nlanguage = 'de'\n[[detectors]]\nkind = 'x'\n{tables}[serve]\nport = 5\n"
    )
    parse = tomllib.loads

    def counting(text):
        nonlocal parsed
        parsed += len(text)
        return parse(text)

    monkeypatch.setattr("holdfast.config.tomllib.loads", counting)
    file = SettingsFile(path)
    places = [
        file.place(*names) for names in (("language",), ("detectors",), ("categories", "c1", "keys"), ("serve", "port"))
    ]

    assert [int(place.rpartition(" ")[2]) for place in places] == [3, 4, 11, 407]
    assert parsed < 4 * len(path.read_text())


def test_the_table_of_a_command_must_be_one(tmp_path):
    path = tmp_path / "bot.toml"
    path.write_text("serve = 7801\n")
    with pytest.raises(ConfigError, match=r"serve must be a table of options, \[serve\] \(.*line 1\)"):
        load_config(path, {}, {})
