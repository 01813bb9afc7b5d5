"""``holdfast export`` writes everything about a user, and ``import`` recognizes such a file by its content."""

from __future__ import annotations

import json
import stat
import subprocess
from pathlib import Path

import pytest

from .conftest import Holdfast, said, started, write_jsonl


@pytest.fixture
def ana(holdfast: Holdfast) -> Holdfast:
    holdfast("say", "I live in Lisbon.", "--reply", "Noted!", "-u", "ana", "--no-digest")
    holdfast("say", "I moved to Porto.", "-u", "ana", "--no-digest")
    return holdfast


def shown_history(holdfast: Holdfast, *who: str) -> str:
    """Every value ever, with its dates, as the command shows it."""
    return holdfast("history", "home", *who).out


def test_an_export_goes_into_a_file_that_only_its_owner_reads(ana: Holdfast, tmp_path: Path) -> None:
    run = ana("export", "ana.json", "-u", "ana")
    file = tmp_path / "ana.json"

    assert run.out.startswith("ana.json: 1 conversation, 3 messages, 2 facts")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text(encoding="utf-8"))["user"] == "ana"
    assert "to import it into another store: holdfast import ana.json --store OTHER" in run.out
    assert sorted(path.name for path in tmp_path.iterdir() if "json" in path.name) == ["ana.json"]


def test_a_file_is_not_replaced_without_force(ana: Holdfast, tmp_path: Path) -> None:
    (tmp_path / "ana.json").write_text("precious")
    run = ana("export", "ana.json", "-u", "ana", "--json")

    assert (run.code, run.error["code"]) == (1, "file-exists")
    assert (tmp_path / "ana.json").read_text() == "precious"
    assert ana("export", "ana.json", "-u", "ana", "--force", "--json").data["bytes"] > 1000


def test_a_folder_that_is_not_there_is_an_error(ana: Holdfast) -> None:
    run = ana("export", "nowhere/ana.json", "-u", "ana", "--json")

    assert (run.code, run.error["code"]) == (1, "no-file")


@pytest.mark.parametrize("how", ["file", "stdout"])
def test_an_export_is_imported_unchanged(ana: Holdfast, tmp_path: Path, how: str) -> None:
    if how == "file":
        ana("export", "ana.json", "-u", "ana")
    else:
        (tmp_path / "ana.json").write_text(ana("export", "-u", "ana").out, encoding="utf-8")
    before, first = shown_history(ana, "-u", "ana"), ana("export", "-u", "ana").data
    ana("erase", "-u", "ana", "--yes")
    run = ana("import", "ana.json")

    assert run.code == 0
    assert "1 conversation, 3 messages, 2 facts of ana imported" in run.out
    assert shown_history(ana, "-u", "ana") == before
    assert ana("export", "-u", "ana").data["facts"] == first["facts"]


@pytest.mark.parametrize("shape", ["indented", "one line", "sorted"])
def test_an_export_is_recognized_in_any_layout(ana: Holdfast, tmp_path: Path, shape: str) -> None:
    data = ana("export", "-u", "ana").data
    layout = {"indented": {"indent": 4}, "one line": {}, "sorted": {"sort_keys": True}}[shape]
    (tmp_path / "again.json").write_text(json.dumps(data, **layout), encoding="utf-8")

    assert ana("import", "again.json", "-s", "other.db", "--json").data["facts"] == 2


def test_an_export_may_be_imported_for_another_user(ana: Holdfast, tmp_path: Path) -> None:
    ana("export", "ana.json", "-u", "ana")
    run = ana("import", "ana.json", "--user", "anna", "--bot", "cook", "--json")

    assert (run.data["user"], run.data["bot"], run.data["facts"]) == ("anna", "cook", 2)
    assert "Porto" in shown_history(ana, "-u", "anna", "--bot", "cook")


def test_an_export_is_read_from_standard_input(ana: Holdfast, tmp_path: Path) -> None:
    ana("export", "ana.json", "-u", "ana")
    process = started("import", "-", "-s", "piped.db", "--json", cwd=tmp_path, stdin=subprocess.PIPE)
    out, _ = process.communicate((tmp_path / "ana.json").read_bytes(), timeout=60)

    assert process.returncode == 0
    assert json.loads(out)["messages"] == 3


def test_an_existing_user_is_not_overwritten(ana: Holdfast) -> None:
    ana("export", "ana.json", "-u", "ana")
    run = ana("import", "ana.json")

    assert run.code == 1
    assert "error[conflict]: ana: this user has data already" in run.err
    assert "run `holdfast erase -u ana` first" in run.err


def test_a_damaged_export_stores_nothing(ana: Holdfast, tmp_path: Path) -> None:
    data = ana("export", "-u", "ana").data
    del data["conversations"][0]["messages"]
    (tmp_path / "bad.json").write_text(json.dumps(data), encoding="utf-8")
    run = ana("import", "bad.json", "-s", "new.db", "--json")

    assert (run.code, run.error["code"]) == (1, "bad-export")
    assert ana("status", "-u", "ana", "-s", "new.db", "--json").data["conversations"] == 0


def test_an_export_is_imported_alone(ana: Holdfast, tmp_path: Path) -> None:
    ana("export", "ana.json", "-u", "ana")
    write_jsonl(tmp_path / "chat.jsonl", [said("Hello.")])

    assert ana("import", "chat.jsonl", "ana.json", "-s", "new.db").code == 2


def test_a_chat_that_quotes_an_export_is_a_chat(holdfast: Holdfast, tmp_path: Path) -> None:
    rows = [
        said('It begins with {"format": "holdfast-user"}'),
        {"role": "user", "content": "a", "format": "holdfast-user"},
    ]
    run = holdfast("import", str(write_jsonl(tmp_path / "chat.jsonl", rows)), "--json")

    assert run.data["stored"] == 2


def test_an_export_of_an_unknown_user_is_an_error(ana: Holdfast, tmp_path: Path) -> None:
    run = ana("export", "anna.json", "-u", "anna", "--json")

    assert (run.code, run.error["code"]) == (1, "no-user")
    assert not (tmp_path / "anna.json").exists()
