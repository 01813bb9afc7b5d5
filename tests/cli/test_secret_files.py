"""Secrets from files, as containers pass them."""

from __future__ import annotations

import os
from unittest.mock import patch

import pytest

from holdfast import Memory
from holdfast.cli import SECRET_NAMES, read_secret_files
from holdfast.cli.terminal import CommandError


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_a_file_sets_its_variable(tmp_path, name):
    (tmp_path / "secret").write_text("  s3cret\n")
    environ = {f"{name}_FILE": str(tmp_path / "secret"), "OTHER": "kept"}

    read_secret_files(environ)
    read_secret_files(environ)

    assert environ == {name: "s3cret", "OTHER": "kept"}


@pytest.mark.parametrize(
    ("content", "also", "word"),
    [
        (None, {}, "No such file"),
        (b"", {}, "is empty"),
        (b"\xff\xfe", {}, "not text"),
        (b"x", {"OPENAI_API_KEY": "y"}, "both set"),
    ],
)
def test_a_bad_file_is_refused_without_printing_the_secret(tmp_path, content, also, word):
    path = tmp_path / "secret"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(CommandError, match=word) as caught:
        read_secret_files({"OPENAI_API_KEY_FILE": str(path), **also})
    assert caught.value.exit_code == 2


def test_every_command_reads_them(holdfast, tmp_path):
    (tmp_path / "store").write_text(str(tmp_path / "chat.db"))

    with patch.dict(os.environ, {"HOLDFAST_STORE_FILE": str(tmp_path / "store")}):  # the command sets another one
        os.environ.pop("HOLDFAST_STORE", None)
        assert holdfast("say", "I live in Porto.").code == 0
    with Memory(tmp_path / "chat.db") as memory:
        assert [fact.value for fact in memory.user("me").facts()] == ["Porto"]


def test_a_missing_file_is_an_error_as_json(holdfast, monkeypatch):
    monkeypatch.setenv("HOLDFAST_STORE_FILE", "/no/such/file")

    done = holdfast("facts", "--json")

    assert (done.code, done.error["code"]) == (2, "secret-file")
