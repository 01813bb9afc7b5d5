"""``holdfast demo`` shows the real engine at work on the bundled conversations."""

from __future__ import annotations

import io
import re
import shlex
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from holdfast import Memory
from holdfast.cli import main
from holdfast.cli.user_commands.demo import bundled

from .conftest import SETTINGS, Holdfast, Run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def shown(folder: Path) -> Run:
    """One run of the demo, for all of these tests."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(folder)
        for name in SETTINGS:
            patch.delenv(name, raising=False)
        code = main(["demo"])
    return Run(code, out.getvalue(), err.getvalue())


def test_it_reads_every_bundled_conversation(shown: Run) -> None:
    total = sum(len(story.messages) for story in bundled())

    assert shown.code == 0
    assert f"{total} messages stored" in shown.out
    for story in bundled():
        assert story.title in shown.out


def test_it_shows_replaced_values_with_both_quotes(shown: Run) -> None:
    assert re.search(r"^dietary: pescatarian +replaced on 15 Mar 2026$", shown.out, re.M)
    assert re.search(r"^ +\^+$", shown.out.replace("|", " "), re.M)
    assert """= was: vegetarian   3 Mar 2026 → 15 Mar 2026   (message 3: "I'm vegetarian")""" in shown.out


def test_it_shows_candidates_that_were_rejected(shown: Run) -> None:
    assert "read, but rejected:" in shown.out
    assert "not-asserted" in shown.out


def test_its_subjects_are_kept_apart(shown: Run) -> None:
    assert shown.out.count("nothing leaks") == 2
    assert "LEAKED" not in shown.out


def test_it_shows_a_context_within_its_budget(shown: Run) -> None:
    found = re.search(r"Context for the next reply of japan   ([\d,]+) of 2,000 tokens", shown.out)

    assert found
    assert int(found[1].replace(",", "")) <= 2000


def test_the_commands_that_it_ends_with_work(shown: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    calls = [line.strip().split("  ")[0] for line in shown.out.split("\nNext")[1].splitlines() if "holdfast " in line]
    calls = [call for call in calls if call.startswith("holdfast ")]
    assert len(calls) == 5
    monkeypatch.setattr("sys.stdin", io.StringIO("/facts\n"))

    for call in calls:
        if "import" not in call:
            assert main(shlex.split(call)[1:]) == 0


def test_its_memory_is_a_file_to_use_further(shown: Run, folder: Path) -> None:
    with Memory(folder / "holdfast-demo.db", embedder=None) as memory:
        assert memory.doctor().ok
        assert len(memory.admin.users()) == len({story.user for story in bundled()})


def test_it_does_not_change_a_file_that_holds_anything_else(holdfast: Holdfast, tmp_path: Path) -> None:
    holdfast("say", "I live in Lisbon.", "--no-digest")
    run = holdfast("demo", "--store", "holdfast.db")

    assert run.code == 1
    assert "error[not-a-demo]" in run.err
    with Memory(tmp_path / "holdfast.db", embedder=None) as memory:
        assert len(memory.conversation("main", user="me").load()) == 1


def test_a_second_run_replaces_the_first_and_prints_json(holdfast: Holdfast, tmp_path: Path) -> None:
    """What was said in between is gone; a file that holds only a part of the demo is one of ours, too."""
    first = bundled()[0]
    with Memory(tmp_path / "demo.db", embedder=None) as memory:
        first.chat(memory).append(first.messages[:2])
        first.chat(memory).record("I'm vegan.")

    run = holdfast("demo", "--store", "demo.db", "--json")

    assert (run.code, run.err) == (0, "")
    assert [chat["messages"] for chat in run.data["conversations"]] == [len(story.messages) for story in bundled()]
    assert {user["user"] for user in run.data["users"]} == {story.user for story in bundled()}
    with Memory(tmp_path / "demo.db", embedder=None) as memory:
        assert len(first.chat(memory).load()) == len(first.messages)


def test_it_spares_a_memory_of_a_user_with_the_same_name(holdfast: Holdfast, tmp_path: Path) -> None:
    holdfast("say", "I live in Lisbon.", "--user", bundled()[0].user, "--no-digest")
    run = holdfast("demo", "--store", "holdfast.db", "--json")

    assert (run.code, run.out, run.error["code"]) == (1, "", "not-a-demo")
    assert "--store PATH" in run.error["hint"]
    with Memory(tmp_path / "holdfast.db", embedder=None) as memory:
        assert memory.user(bundled()[0].user).conversations() == ["main"]
