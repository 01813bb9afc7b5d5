"""``holdfast bench suite``: the cases of the recall lab, asked again in CI."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast import Memory

HOME = '{"user": "ana", "question": "Where do I live?", "fact": "Lives in Porto"}'
SAID = '{"user": "ana", "question": "Where do I live?", "conversation": "c", "seq": 1}'


@pytest.fixture
def store(holdfast) -> str:
    del holdfast  # it is in the folder that the store is written to
    with Memory("chat.db", embedder=None) as memory:
        memory.conversation("c", user="ana").record("I live in Porto.", "Noted.")
    return "chat.db"


def test_what_is_recalled_passes_and_what_is_not_fails(holdfast, store):
    Path("good.jsonl").write_text(f"{HOME}\n\n{SAID}\n", encoding="utf-8")
    good = holdfast("bench", "suite", "good.jsonl", "--store", store)
    assert good.code == 0
    assert "2 of 2 cases recalled" in good.out

    Path("bad.jsonl").write_text(HOME.replace("Porto", "Rome"), encoding="utf-8")
    bad = holdfast("bench", "suite", "bad.jsonl", "--store", store, "--json")
    assert bad.code == 1
    assert json.loads(bad.out)["rows"][0]["rank"] is None


def test_two_settings_are_compared_and_only_what_got_worse_fails(holdfast, store):
    Path("cases.jsonl").write_text(f"{HOME}\n{HOME.replace('Porto', 'Rome')}\n", encoding="utf-8")
    assert holdfast("bench", "suite", "cases.jsonl", "--store", store, "--report", "before.json").code == 1

    same = holdfast("bench", "suite", "cases.jsonl", "--store", store, "--against", "before.json")
    assert same.code == 0
    assert "0 cases recalled before and not now" in same.out
    stricter = ("--setting", "recall_limit=0")
    worse = holdfast("bench", "suite", "cases.jsonl", "--store", store, "--against", "before.json", *stricter)
    assert worse.code == 1
    assert "1 case recalled before and not now" in worse.out
    assert "was rank 1" in worse.out


@pytest.mark.parametrize(
    "line", ["banana", "[]", '{"user": "ana"}', '{"user": "ana", "question": "x"}', HOME[:-1] + ', "seq": 1, "x": 2}']
)
def test_a_line_that_is_no_case_is_named_with_what_to_write(holdfast, store, line):
    Path("cases.jsonl").write_text(f"{HOME}\n{line}\n", encoding="utf-8")
    wrong = holdfast("bench", "suite", "cases.jsonl", "--store", store)
    assert wrong.code == 2
    assert "cases.jsonl:2: this line is no case" in wrong.err
    assert '"question"' in wrong.err


def test_a_suite_needs_a_file_and_a_report_is_one(holdfast, store):
    assert "a suite needs a file" in holdfast("bench", "suite", "--store", store).err
    Path("cases.jsonl").write_text(HOME, encoding="utf-8")
    Path("other.json").write_text("[1]", encoding="utf-8")
    wrong = holdfast("bench", "suite", "cases.jsonl", "--store", store, "--against", "other.json")
    assert "no report of a suite" in wrong.err
