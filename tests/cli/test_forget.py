"""``forget`` and ``erase``: they show what goes, ask first, print a receipt, and leave nothing."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import apsw
import pytest

from .conftest import Answer, Holdfast, started, write_jsonl


@pytest.fixture
def ana(holdfast: Holdfast) -> Holdfast:
    """A store in which two conversations of ana's and one of bo's are held."""
    holdfast("say", "I live in Quorvane.", "--reply", "Quorvane is lovely.", "-u", "ana", "-c", "one", "--no-digest")
    holdfast("say", "I'm allergic to nuts.", "-u", "ana", "-c", "two", "--no-digest")
    holdfast("say", "I live in Oslo.", "-u", "bo", "-c", "one", "--no-digest")
    return holdfast


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("holdfast.db*")))


def test_a_fact_goes_with_its_words_after_asking(ana: Holdfast, answer: Answer, tmp_path: Path) -> None:
    answer("yes\n")
    run = ana("forget", "home", "-u", "ana")

    assert run.code == 0
    assert "1 |  I live in Quorvane." in run.out
    assert "Erase home, lives in: Quorvane, with the words that state it? [y/N]" in run.err
    assert "E2  deleted, and no trace is left" in run.out
    assert b"Quorvane" not in bytes_of(tmp_path)
    assert ana("facts", "home", "-u", "ana", "--json").data == []


@pytest.mark.parametrize("said", ["n\n", "\n", "quit\n", ""])
def test_any_answer_but_yes_erases_nothing(ana: Holdfast, answer: Answer, said: str) -> None:
    answer(said)
    run = ana("forget", "home", "-u", "ana")

    assert run.code == 1
    assert "error[not-confirmed]: nothing was changed" in run.err
    assert len(ana("facts", "-u", "ana", "--json").data) == 2


def test_a_message_is_shown_and_forgotten(ana: Holdfast, answer: Answer) -> None:
    answer("y\n")
    run = ana("forget", "--message", "1", "-c", "one", "-u", "ana")

    assert 'Erase message 1 of one: "I live in Quorvane."? [y/N]' in run.err
    assert "1 message, 1 fact" in run.out
    assert [fact["category"] for fact in ana("facts", "-u", "ana", "--json").data] == ["allergy"]


def test_a_conversation_is_forgotten(ana: Holdfast) -> None:
    run = ana("forget", "-c", "one", "-u", "ana", "--yes", "--json")

    assert (run.code, run.data["rows"]["messages"], run.data["level"]) == (0, 2, "E2")
    assert ana("status", "-u", "ana", "--json").data["conversations"] == 1
    assert ana("status", "-u", "bo", "--json").data["facts"] == 1


def test_all_facts_are_forgotten_and_conversations_stay(ana: Holdfast) -> None:
    run = ana("forget", "--all-facts", "-u", "ana", "--yes")
    status = ana("status", "-u", "ana", "--json").data

    assert run.code == 0
    assert (status["facts"], status["conversations"]) == (0, 2)


@pytest.mark.parametrize(
    "call", [(), ("home", "--all-facts"), ("home", "-m", "1"), ("--all-facts", "-c", "one"), ("home", "-c", "one")]
)
def test_one_thing_is_forgotten_at_a_time(ana: Holdfast, call: tuple[str, ...]) -> None:
    run = ana("forget", *call, "-u", "ana", "--yes")

    assert (run.code, run.out) == (2, "")
    assert "forget one thing" in run.err


def test_forgetting_what_does_not_exist_is_an_error(ana: Holdfast) -> None:
    message = ana("forget", "-m", "99", "-c", "one", "-u", "ana", "--yes", "--json")
    conversation = ana("forget", "-c", "three", "-u", "ana", "--yes", "--json")

    assert (message.code, message.error["code"]) == (1, "no-message")
    assert (conversation.code, conversation.error["code"]) == (1, "no-conversation")
    assert "one, two" in conversation.error["hint"]


def test_erase_shows_what_it_erases_and_asks_for_the_name(ana: Holdfast, answer: Answer, tmp_path: Path) -> None:
    answer("bo\n")
    wrong = ana("erase", "-u", "ana")
    answer("ana\n")
    run = ana("erase", "-u", "ana")

    assert (wrong.code, run.code) == (1, 0)
    assert "2 conversations, 3 messages, 2 facts" in wrong.out
    assert "type exactly ana, or add --yes" in wrong.err
    assert "Type ana to erase it:" in run.err
    assert "E2  deleted, and no trace is left in the bytes of the file   searched " in run.out
    assert "still stored: nothing" in run.out
    assert b"Quorvane" not in bytes_of(tmp_path)
    assert [fact["value"] for fact in ana("facts", "-u", "bo", "--json").data] == ["Oslo"]


def test_a_receipt_says_why_it_reaches_no_further(ana: Holdfast, tmp_path: Path) -> None:
    """Another process reads the file, so its log cannot be emptied."""
    reader = apsw.Connection(str(tmp_path / "holdfast.db"))
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM message").fetchall()
    run = ana("erase", "-u", "ana", "--yes")
    reader.close()

    assert run.code == 0
    assert "E1  the rows are deleted; the bytes of the file could not be checked" in run.out
    assert run.out.splitlines()[-2].startswith("    ")


def test_one_subject_is_erased_alone(holdfast: Holdfast) -> None:
    holdfast("say", "She is allergic to chicken.", "--subject", "luna", "-c", "vet", "--no-digest")
    holdfast("say", "He is allergic to fish.", "--subject", "max", "-c", "vet", "--no-digest")
    run = holdfast("erase", "--subject", "luna", "--yes")

    assert run.code == 0
    assert {fact["subject"] for fact in holdfast("facts", "--json").data} == {"max"}


def test_erasing_an_unknown_user_is_an_error(ana: Holdfast) -> None:
    run = ana("erase", "-u", "anna", "--yes", "--json")

    assert (run.code, run.error["code"]) == (1, "no-user")
    assert "ana" in run.error["hint"]


def test_erasing_twice_is_an_error(ana: Holdfast) -> None:
    assert ana("erase", "-u", "ana", "--yes").code == 0
    assert ana("erase", "-u", "ana", "--yes", "--json").error["code"] == "no-user"


def test_json_output_needs_yes(ana: Holdfast) -> None:
    run = ana("erase", "-u", "ana", "--json")

    assert (run.code, run.error["code"]) == (2, "not-confirmed")
    assert ana("status", "-u", "ana", "--json").data["facts"] == 2


def test_ctrl_c_at_the_question_does_nothing(ana: Holdfast, tmp_path: Path) -> None:
    process = started("erase", "-u", "ana", cwd=tmp_path, stdin=subprocess.PIPE)
    assert process.stderr is not None
    asked = b""
    while b"to erase it:" not in asked:
        letter = process.stderr.read(1)
        assert letter, asked
        asked += letter
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)

    assert process.returncode == 130
    assert b"error[interrupted]" in err
    assert b"Traceback" not in err
    assert ana("status", "-u", "ana", "--json").data["facts"] == 2


def test_forgetting_a_long_conversation_counts_its_messages(holdfast: Holdfast, answer: Answer, tmp_path: Path) -> None:
    rows = [{"role": ("user", "assistant")[n % 2], "content": f"message {n}"} for n in range(1200)]
    holdfast("import", str(write_jsonl(tmp_path / "long.jsonl", rows)), "--no-digest")
    answer("n\n")

    assert "Erase the 1,200 messages of long" in holdfast("forget", "-c", "long").err


def test_erasing_says_which_choices_stay(holdfast: Holdfast) -> None:
    holdfast("never-remember", "health")
    holdfast("never-remember", "my ex husband")
    holdfast("say", "I live in Porto.")

    run = holdfast("erase", "--yes")

    assert run.code == 0
    assert "still stored: nothing" in run.out
    assert "still in force: never remember health\n" in run.out
