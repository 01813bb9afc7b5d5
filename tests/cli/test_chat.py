"""``holdfast chat`` and ``model``: what is stored, what is shown, and what happens when the model fails."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from holdfast import Memory
from holdfast.testing.model import ModelServer, ServerAnswer, ServerRequest, unreachable_url

from .conftest import Answer, Holdfast, started

BOT = '''
def reply(messages):
    """Says how many messages it was given, and the last of them."""
    return f"{len(messages)} given; {messages[-1]['content']!r}"


def broken(messages):
    raise ConnectionError("gone")
'''


@pytest.fixture
def bot(holdfast: Holdfast, tmp_path: Path) -> str:
    """A function in a file, as --llm takes it."""
    (tmp_path / "bot.py").write_text(BOT, encoding="utf-8")
    return "bot.py:reply"


def stored(tmp_path: Path) -> list[tuple[str, str]]:
    """The messages of the chat, as they are on disk."""
    with Memory(tmp_path / "holdfast.db", embedder=None) as memory:
        return [(message.role, message.content) for message in memory.conversation("main", user="me").load()]


def test_messages_are_stored_with_their_replies(holdfast: Holdfast, answer: Answer, bot: str, tmp_path: Path) -> None:
    answer("I live in Lisbon.\n\nWhere do I live?\n")
    run = holdfast("chat", "--llm", bot, "--reader", "rules")

    assert run.code == 0, run.err
    assert "bot> 2 given; 'I live in Lisbon.'" in run.out
    assert "bot> 4 given; 'Where do I live?'" in run.out
    assert [role for role, _ in stored(tmp_path)] == ["user", "assistant", "user", "assistant"]


def test_changes_are_shown_before_the_reply(holdfast: Holdfast, answer: Answer, bot: str) -> None:
    answer("I live in Lisbon.\nI moved to Porto!\n")
    out = holdfast("chat", "--llm", bot, "--reader", "rules").out

    assert out.index("Lisbon  new") < out.index("bot> 2 given")
    assert "Lisbon → Porto" in out
    assert out.index("→ Porto") < out.index("bot> 4 given")


def test_without_a_model_everything_is_still_remembered(holdfast: Holdfast, answer: Answer) -> None:
    answer("I'm allergic to peanuts.\nwhat am I allergic to?\n")
    run = holdfast("chat")

    assert run.code == 0
    assert "replies: none" in run.out
    assert "peanuts  new" in run.out
    assert "Is allergic to peanuts." in run.out.split("what am I allergic to?")[1]


def test_a_chat_continues_where_it_stopped(holdfast: Holdfast, answer: Answer, bot: str) -> None:
    answer("I live in Lisbon.\n")
    holdfast("chat", "--llm", bot, "--reader", "rules")
    answer("Hello again!\n")
    out = holdfast("chat", "--llm", bot, "--reader", "rules").out

    assert "main continues after message 2; 1 fact known" in out
    assert "4 given; 'Hello again!'" in out


def test_slashes_look_into_memory_and_say_nothing(holdfast: Holdfast, answer: Answer, bot: str, tmp_path: Path) -> None:
    answer("I live in Lisbon.\n/facts\n/context\n/search Lisbon\n/search\n/help\n/no-such\n//yes\n/quit\nnever said\n")
    run = holdfast("chat", "--llm", bot, "--reader", "rules")

    assert run.code == 0
    assert "Context for the next reply of main" in run.out
    assert run.out.count("end the chat; so does Ctrl-D") == 2
    assert [said for role, said in stored(tmp_path) if role == "user"] == ["I live in Lisbon.", "/yes"]


def test_a_model_that_fails_loses_no_turn_and_again_asks_again(
    holdfast: Holdfast, answer: Answer, tmp_path: Path
) -> None:
    """Over real HTTP: the first call is refused, the second answers."""
    with ModelServer([ServerAnswer(status=500), "Lisbon it is."]) as server:
        answer("I live in Lisbon.\n/again\n")
        run = holdfast("chat", "--llm", "openai:any", "--base-url", server.url, "--reader", "rules")

    assert "error[model]" in run.err
    assert stored(tmp_path) == [("user", "I live in Lisbon."), ("assistant", "Lisbon it is.")]


def test_a_provider_gets_the_turns_with_their_roles(holdfast: Holdfast, answer: Answer) -> None:
    def reply(asked: ServerRequest) -> str:
        return "Noted." if "Lisbon" in asked.text.splitlines()[-1] else "You live in Lisbon."

    with ModelServer(reply) as server:
        answer("I live in Lisbon.\nWhere do I live?\n")
        args = ("--llm", "openai:any", "--base-url", server.url, "--reader", "rules", "--system", "You are a guide.")
        run = holdfast("chat", *args)
        messages = server.asked[-1].body["messages"]

    assert run.code == 0, run.err
    assert messages[0]["role"] in ("system", "developer")
    assert "You are a guide." in str(messages[0]["content"])
    assert [message["role"] for message in messages[-3:]] == ["user", "assistant", "user"]
    assert "You live in Lisbon." in run.out


def test_a_script_learns_from_the_exit_code_that_a_reply_failed(holdfast: Holdfast, answer: Answer) -> None:
    answer("Hello\n")
    run = holdfast("chat", "--llm", "openai:any", "--base-url", unreachable_url(), "--reader", "rules")

    assert run.code == 1
    assert "cannot be reached" in run.err


def test_a_reader_that_fails_is_told_at_the_end(holdfast: Holdfast, answer: Answer, bot: str, tmp_path: Path) -> None:
    """The chat goes on meanwhile, and nothing that was said is lost."""
    answer("".join(f"This is the turn with the number {number}.\n" for number in range(1, 7)))
    run = holdfast("chat", "--llm", bot, "--reader", "bot.py:broken")

    assert run.code == 1
    assert "error[jobs-failed]" in run.err
    assert len(stored(tmp_path)) == 12


def test_json_output_is_one_line_a_message(holdfast: Holdfast, answer: Answer, bot: str) -> None:
    answer("I live in Lisbon.\n/facts\n")
    run = holdfast("chat", "--llm", bot, "--reader", "rules", "--json")
    turns = [json.loads(line) for line in run.out.splitlines()]

    assert [turn["said"] for turn in turns] == ["I live in Lisbon.", "/facts"]
    assert turns[0]["changes"][0]["fact"]["value"] == "Lisbon"
    assert turns[0]["reply"].startswith("2 given")
    assert turns[0]["seqs"] == [1]


def test_a_paused_memory_stores_nothing_of_a_chat(holdfast: Holdfast, answer: Answer, bot: str, tmp_path: Path) -> None:
    holdfast("pause")
    answer("I live in Lisbon.\nAnd now?\n")
    run = holdfast("chat", "--llm", bot, "--reader", "rules")

    assert "not stored: memory is paused" in run.out
    assert "1 given; 'I live in Lisbon.'" in run.out  # it is answered all the same
    assert "3 given; 'And now?'" in run.out  # and goes on as long as it is open
    assert stored(tmp_path) == []


def test_an_incognito_chat_stores_nothing_and_uses_nothing(
    holdfast: Holdfast, answer: Answer, bot: str, tmp_path: Path
) -> None:
    holdfast("say", "I live in Lisbon.")
    answer("I'm thinking of quitting.\nWhere do I live?\n")
    run = holdfast("chat", "--llm", bot, "--reader", "rules", "--incognito")

    assert '1 given; "I\'m thinking of quitting."' in run.out
    assert "3 given; 'Where do I live?'" in run.out
    assert stored(tmp_path) == [("user", "I live in Lisbon.")]
    assert "2 messages not stored" in run.out
    assert "everything is stored" not in run.out


@pytest.mark.parametrize(
    ("llm", "code", "says"),
    [
        ("nowhere.py:reply", "no-file", "there is no file nowhere.py"),
        ("bot.py:nobody", "bad-model", "has no function 'nobody'"),
        ("other:thing", "bad-config", "is not a model name"),
        ("llama", "bad-config", "is not a model name"),
        ("openai:gpt-5-mini", "bad-config", "needs a key"),
    ],
)
def test_an_unusable_model_is_an_error_before_anything_is_created(
    holdfast: Holdfast,
    bot: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    llm: str,
    code: str,
    says: str,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    run = holdfast("chat", "--llm", llm, "--json")

    assert run.code != 0
    assert run.error["code"] == code
    assert says in run.error["message"]
    assert "holdfast.llm" not in run.error["hint"]  # what to type, not what to program
    assert not (tmp_path / "holdfast.db").exists()


def test_a_file_that_is_not_python_is_named_with_its_line(holdfast: Holdfast, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("x = 1\ndef reply(:\n", encoding="utf-8")
    run = holdfast("model", "bad.py:reply")

    assert run.code == 1
    assert "bad.py:2 is not Python" in run.err


def test_model_shows_the_address_and_the_answer(holdfast: Holdfast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_API_KEY", "sk-hidden")
    with ModelServer(["OK"]) as server:
        run = holdfast("model", "openai:any", "--base-url", server.url)
        key = server.asked[0].headers["authorization"]

    assert run.code == 0, run.err
    assert key == "Bearer sk-hidden"
    assert "sk-hidden" not in run.out + run.err
    assert "from HOLDFAST_API_KEY" in run.out
    assert "answers  OK" in run.out


def test_model_without_a_model_names_the_built_in_rules(holdfast: Holdfast) -> None:
    assert "built-in rules" in holdfast("model").out
    assert holdfast("model", "--json").data == {"model": None}
    assert holdfast("model", "rules", "--json").data == {"model": None}


def test_ctrl_c_stops_a_reply_and_not_the_chat(holdfast: Holdfast, bot: str, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "import time\ndef reply(messages):\n    print('THINKING', flush=True)\n    time.sleep(60)\n", encoding="utf-8"
    )
    with started("chat", "--llm", "slow.py:reply", "--reader", "rules", cwd=tmp_path, stdin=-1) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"I live in Lisbon.\n")
        process.stdin.flush()
        for line in process.stdout:
            if b"THINKING" in line:
                break
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)

    assert process.returncode == 0, err
    assert b"stopped" in err
    assert b"everything is stored" in out
    assert stored(tmp_path) == [("user", "I live in Lisbon.")]
