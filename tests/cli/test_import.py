"""``holdfast import``: the fields of a line, errors in bad lines, and that nothing is stored twice."""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Memory, Message
from holdfast.importers.jsonl import BadLine, ImportedLine, lines

from .conftest import Holdfast, said, write_jsonl

ANSWER = {"role": "assistant", "content": "Noted."}


def stored(conversation: str, **who: Any) -> list[Message]:
    with Memory("holdfast.db", embedder=None) as memory:
        return memory.conversation(conversation, user=who.pop("user", "me"), **who).load()


def contents(conversation: str, **who: Any) -> list[str]:
    return [message.content for message in stored(conversation, **who)]


def numbered(count: int, start: int = 0) -> list[dict[str, Any]]:
    return [{"role": ("user", "assistant")[n % 2], "content": f"message {n}"} for n in range(start, start + count)]


def test_messages_are_stored_unchanged_in_the_conversation_named_after_the_file(
    holdfast: Holdfast, tmp_path: Path
) -> None:
    rows = [said("I live in Lisbon.", name="Ana", at="2026-01-12T19:00:00+01:00", channel="web"), ANSWER]
    holdfast("import", str(write_jsonl(tmp_path / "chat.jsonl", rows)))

    first, second = stored("chat")
    assert (first.role, first.name, first.content) == ("user", "Ana", "I live in Lisbon.")
    assert first.at is not None
    assert first.at.isoformat() == "2026-01-12T18:00:00+00:00"
    assert first.meta == {"channel": "web"}
    assert (second.role, second.at) == ("assistant", first.at)


def test_lines_are_stored_in_the_conversation_that_they_name(holdfast: Holdfast, tmp_path: Path) -> None:
    rows = [said("a", conversation="one"), said("b"), said("c", conversation="one"), said("d", conversation="two")]
    run = holdfast("import", str(write_jsonl(tmp_path / "chat.jsonl", rows)), "-c", "rest", "--json")

    assert run.data["conversations"] == ["one", "rest", "two"]
    assert [contents(name) for name in run.data["conversations"]] == [["a", "c"], ["b"], ["d"]]


def test_a_line_without_a_time_takes_its_neighbours(holdfast: Holdfast, tmp_path: Path) -> None:
    rows = [said("a"), said("b", at="2026-01-12"), said("c"), said("d", at="2026-01-14"), said("e")]
    holdfast("import", str(write_jsonl(tmp_path / "chat.jsonl", rows)))

    assert [message.at.day for message in stored("chat") if message.at] == [12, 12, 12, 14, 14]


def test_what_was_learned_is_shown(holdfast: Holdfast, tmp_path: Path) -> None:
    rows = [said("I'm vegetarian."), ANSWER, said("I eat fish now."), ANSWER, *numbered(30)]
    run = holdfast("import", str(write_jsonl(tmp_path / "chat.jsonl", rows)))

    assert run.code == 0
    assert "34 messages stored in 1 conversation" in run.out
    assert "2 facts learned, 1 of them replaced an older value" in run.out
    assert ["dietary", "vegetarian", "→", "pescatarian", "replaced"] in [line.split() for line in run.out.splitlines()]


def test_repeating_an_import_stores_nothing_twice(holdfast: Holdfast, tmp_path: Path) -> None:
    file = str(write_jsonl(tmp_path / "chat.jsonl", numbered(1200)))
    holdfast("import", file, "--no-digest")
    again = holdfast("import", file, "--no-digest", "--json").data

    assert (again["stored"], again["known"]) == (0, 1200)
    assert contents("chat") == [row["content"] for row in numbered(1200)]


def test_a_long_import_says_how_far_it_is_and_its_damage_by_line(
    holdfast: Holdfast, tmp_path: Path, full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """100,000 messages with --full."""
    count = 100_000 if full else 4_000
    monkeypatch.setattr("holdfast.cli.output.PROGRESS_DELAY_S", 0.05)
    monkeypatch.setattr("holdfast.cli.output.PROGRESS_INTERVAL_S", 0.1)
    rows = [json.dumps({"conversation": f"c{n // 500}", **row}) for n, row in enumerate(numbered(count))]
    rows[1_234] = rows[1_234][:30]
    (tmp_path / "long.jsonl").write_text("\n".join(rows))
    refused = holdfast("import", "long.jsonl", "--no-digest")
    run = holdfast("import", "long.jsonl", "--no-digest", "--skip-bad")
    again = holdfast("import", "long.jsonl", "--no-digest", "--skip-bad")

    assert "long.jsonl:1235: it is not JSON" in refused.err
    assert f"{count - 1:,} messages stored in {count // 500} conversations" in run.out
    assert re.search(rf"Importing: [\d,]+ of {count - 1:,} messages, \d+ %", run.err)
    assert f"nothing new: {count - 1:,} messages were already stored" in again.out


def test_a_file_that_has_grown_adds_what_is_new(holdfast: Holdfast, tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    holdfast("import", str(write_jsonl(file, numbered(700))), "--no-digest")
    again = holdfast("import", str(write_jsonl(file, numbered(1300))), "--no-digest", "--json").data

    assert (again["stored"], again["known"]) == (600, 700)
    assert contents("chat") == [row["content"] for row in numbered(1300)]


def test_an_import_is_repeatable_though_something_was_said_before_and_after(holdfast: Holdfast, tmp_path: Path) -> None:
    file = str(write_jsonl(tmp_path / "chat.jsonl", numbered(600)))
    holdfast("say", "Before.", "-c", "chat", "--no-digest")
    holdfast("import", file, "--no-digest")
    holdfast("say", "After.", "-c", "chat", "--no-digest")
    again = holdfast("import", file, "--no-digest", "--json").data

    assert (again["stored"], again["known"]) == (0, 600)
    assert contents("chat") == ["Before.", *(row["content"] for row in numbered(600)), "After."]


def test_equal_messages_of_one_file_are_all_stored(holdfast: Holdfast, tmp_path: Path) -> None:
    file = str(write_jsonl(tmp_path / "chat.jsonl", [said("ok")] * 1100))
    holdfast("import", file, "--no-digest")
    holdfast("import", file, "--no-digest")

    assert contents("chat") == ["ok"] * 1100


BAD = [
    ("hello", "is not JSON", "one object a line"),
    ('["a"]', "it is a list", "jq -c '.[]'"),
    ('"hello"', "it is a text, not an object", "one object a line"),
    ('{"content": "hi"}', 'no "role"', '"role": "user"'),
    ('{"content": "hi", "from": "human"}', 'no "role"', '"from" may be it: rename it'),
    ('{"role": "user"}', 'no "content"', '"content": "…"'),
    ('{"role": "user", "text": "hi"}', 'no "content"', '"text" may be it: rename it'),
    ('{"role": "Ana", "content": "hi"}', 'its role is "Ana"', "goes into name"),
    ('{"role": "user", "content": 7}', "a number, not text", '"content": "…"'),
    ('{"role": "user", "content": null}', "its content is null", '"content": "…"'),
    ('{"role": "user", "content": "hi", "at": "yesterday"}', "not ISO 8601", '"at": "2026-03-14T19:02:00Z"'),
    ('{"role": "user", "content": "hi", "at": 1700000000}', "its time is a number", '"at": "2026-03-14T19:02:00Z"'),
    ('{"role": "user", "content": "hi", "name": 7}', "its name is not text", '"name": "Ana"'),
    ('{"role": "user", "content": "hi", "conversation": ""}', "its conversation is no name", "printable text"),
    ('{"role": "user", "content": "hi", "score": NaN}', "NaN is no JSON number", "one object a line"),
    ('{"role": "user", "content": "hi", "score": 1e999}', "1e999 is too large a number", "one object a line"),
    ('{"role": "user", "content": "hi", "at": "2999-01-01"}', "2999-01-01, lies in the future", 'leave "at" out'),
    ('{"role": "user", "content": "a\0b"}', "it holds a zero byte", "tr -d"),
    ('{"role": "user", "content": "hi', "unterminated string starting at column 29", "one object a line"),
    ('{"role": "tool", "content": "12"}', "without tool_call_id", "name the call"),
    ('{"messages": [{"role": "user", "content": "hi"}]}', "a whole conversation", "jq -c '.messages[]'"),
    ("[" * 100_000, "nested too deeply", "one object a line"),
]


@pytest.mark.parametrize(("line", "problem", "fix"), BAD, ids=[problem for _, problem, _ in BAD])
def test_a_bad_line_is_named_with_what_is_wrong_and_the_fix(
    holdfast: Holdfast, tmp_path: Path, line: str, problem: str, fix: str
) -> None:
    file = write_jsonl(tmp_path / "chat.jsonl", [said("one"), line, said("three")])
    run = holdfast("import", str(file))

    assert (run.code, run.out) == (1, "")
    assert f"{file}:2: " in run.err
    assert problem in run.err
    assert fix in run.err
    assert "nothing was stored" in run.err
    assert not (tmp_path / "holdfast.db").exists()


def test_a_file_that_is_not_text_is_one_error(holdfast: Holdfast, tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_bytes(bytes(range(256)) * 40)
    run = holdfast("import", "photo.jpg")

    assert run.code == 1
    assert run.err.splitlines() == [
        "error[not-text]: photo.jpg: the file is neither text nor a ZIP archive",
        "  help: choose a JSONL or JSON file, or an export's ZIP",
    ]


def test_the_last_messages_of_an_import_are_summarized_as_well(holdfast: Holdfast, tmp_path: Path) -> None:
    """Unless the conversations go on."""
    write_jsonl(tmp_path / "over.jsonl", [said("I live in Lisbon."), {"role": "assistant", "content": "Noted."}])
    write_jsonl(tmp_path / "on.jsonl", [said("I live in Lisbon."), {"role": "assistant", "content": "Noted."}])
    holdfast("import", "over.jsonl", "--store", "over.db")
    holdfast("import", "on.jsonl", "--store", "on.db", "--no-end")

    assert [one["end_seq"] for one in holdfast("summaries", "--store", "over.db", "--json").data] == [2]
    assert holdfast("jobs", "--store", "over.db", "--json").data["jobs"] == []
    assert holdfast("summaries", "--store", "on.db", "--json").data == []
    assert [job["kind"] for job in holdfast("jobs", "--store", "on.db", "--json").data["jobs"]] == ["chunk"]


def test_a_wrong_encoding_is_named(holdfast: Holdfast, tmp_path: Path) -> None:
    (tmp_path / "latin.jsonl").write_bytes('{"role": "user", "content": "caf\xe9"}\n'.encode("latin-1"))
    (tmp_path / "wide.jsonl").write_bytes('{"role": "user", "content": "hi"}\n'.encode("utf-16"))

    assert "it is not UTF-8" in holdfast("import", "latin.jsonl").err
    assert holdfast("import", "wide.jsonl").err.splitlines() == [
        "error[not-text]: wide.jsonl: the file is UTF-16",
        "  help: save it as UTF-8: iconv -f utf-16 -t utf-8 FILE > NEW",
    ]
    for coding in ("utf-16le", "utf-16be"):  # without a byte order mark
        (tmp_path / "bare.jsonl").write_bytes('{"role": "user", "content": "hi"}\n'.encode(coding))
        assert f"iconv -f {coding}" in holdfast("import", "bare.jsonl").err


def test_a_json_document_over_several_lines_is_an_error_with_the_fix(holdfast: Holdfast, tmp_path: Path) -> None:
    """A list of messages is taken as it is; of anything else the lines are wanted."""
    (tmp_path / "chat.json").write_text(json.dumps([said("hi")], indent=2))
    (tmp_path / "other.json").write_text(json.dumps({"talk": [said("hi")]}, indent=2))
    assert holdfast("import", "chat.json", "--json").data["stored"] == 1
    run = holdfast("import", "other.json")

    assert "one JSON document over several lines" in run.err
    assert "jq -c '.[]'" in run.err


def test_bad_lines_can_be_left_out_and_are_counted(holdfast: Holdfast, tmp_path: Path) -> None:
    file = write_jsonl(tmp_path / "chat.jsonl", [said("one"), "oops", said("three"), "{", said("five")])
    run = holdfast("import", str(file), "--skip-bad", "--json")

    assert run.code == 0
    assert (run.data["stored"], run.data["skipped"]) == (3, 2)
    assert [bad["number"] for bad in run.data["bad_lines"]] == [2, 4]
    assert contents("chat") == ["one", "three", "five"]


def test_a_message_that_only_the_store_refuses_is_named_by_its_line(holdfast: Holdfast, tmp_path: Path) -> None:
    """Four million characters are the most that one message may have."""
    file = write_jsonl(tmp_path / "chat.jsonl", [said("one"), said("x" * 4_000_001), said("three")])

    run = holdfast("import", str(file))
    assert run.code == 1
    assert f"{file}:2: it is 4000001 characters long" in run.err

    again = holdfast("import", str(file), "--skip-bad", "--json").data
    assert [bad["number"] for bad in again["bad_lines"]] == [2]
    assert contents("chat") == ["one", "three"]


def test_what_only_the_store_refuses_is_in_the_report_too(holdfast: Holdfast, tmp_path: Path) -> None:
    file = write_jsonl(tmp_path / "chat.jsonl", [said("one"), said("x" * 4_000_001), said("three")])
    run = holdfast("import", str(file), "--skip-bad", "--report", "left.jsonl")

    assert f"{file}:2: it is 4000001 characters long" in run.err
    (left,) = [json.loads(line) for line in (tmp_path / "left.jsonl").read_text().splitlines()]
    assert (left["where"], left["why"][:5]) == (f"{file}:2", "it is")


def test_a_time_in_the_future_costs_its_line_only(holdfast: Holdfast, tmp_path: Path) -> None:
    """It would outlast all that the user says until then; no line without a time takes it."""
    rows = [said("I have a dog."), said("I live in Lisbon.", at="2999-01-01T00:00:00Z"), said("I'm vegetarian.")]
    holdfast("import", str(write_jsonl(tmp_path / "chat.jsonl", rows)), "--skip-bad")
    holdfast("say", "I moved to Porto.")

    facts = holdfast("facts", "--json").data
    assert {fact["text"] for fact in facts} == {"Has a dog.", "Is vegetarian.", "Lives in Porto."}
    assert not [fact for fact in facts if fact["valid_from"] > "2998"]


def test_times_that_go_backwards_are_reported_before_anything_is_stored(holdfast: Holdfast, tmp_path: Path) -> None:
    rows = [said("I live in Lisbon.", at="2026-05-01"), said("I live in Porto.", at="2026-03-01")]
    file = write_jsonl(tmp_path / "chat.jsonl", rows)
    run = holdfast("import", str(file), "--dry-run")

    assert f"warning: 1 line is older than the line before, first {file}:2" in run.out
    assert holdfast("import", str(file), "--dry-run", "--json").data["files"][0]["backwards"] == 1
    assert "warning: 1 line is older" in holdfast("import", str(file)).out


def test_an_import_of_bad_lines_alone_says_that_nothing_was_stored(holdfast: Holdfast, tmp_path: Path) -> None:
    run = holdfast("import", str(write_jsonl(tmp_path / "chat.jsonl", ["oops", "{"])), "--skip-bad")

    assert "nothing was stored" in run.out
    assert "Next:" not in run.out


def test_nul_and_lone_surrogates_cost_no_message(holdfast: Holdfast, tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    file.write_text('{"role": "user", "content": "a\\u0000b"}\n{"role": "user", "content": "c\\ud800d"}\n')
    holdfast("import", str(file))
    again = holdfast("import", str(file), "--json").data

    assert contents("chat") == ["a\ufffdb", "c\ufffdd"]
    assert (again["stored"], again["known"]) == (0, 2)


def test_a_byte_order_mark_and_blank_lines_are_ignored(holdfast: Holdfast, tmp_path: Path) -> None:
    (tmp_path / "chat.jsonl").write_bytes(b'\xef\xbb\xbf{"role": "user", "content": "hi"}\r\n\r\n  \n')

    assert holdfast("import", "chat.jsonl", "--json").data["stored"] == 1


def test_an_empty_file_is_an_error(holdfast: Holdfast, tmp_path: Path) -> None:
    (tmp_path / "chat.jsonl").write_text("\n")

    assert holdfast("import", "chat.jsonl", "--json").error["code"] == "empty-file"


@given(st.lists(st.binary(max_size=60), max_size=6))
def test_reading_never_fails_whatever_the_bytes(raws: list[bytes]) -> None:
    """Every line becomes a message or a bad line with a problem and a fix."""
    for line in lines(io.BytesIO(b"\n".join(raws)), "chat"):
        assert isinstance(line, ImportedLine) or (isinstance(line, BadLine) and line.problem and line.fix)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


@given(st.fixed_dictionaries({}, optional={key: _JSON for key in ("role", "content", "name", "at", "conversation")}))
def test_reading_never_fails_whatever_the_values(row: dict[str, Any]) -> None:
    for line in lines(io.BytesIO(json.dumps(row).encode()), "chat"):
        assert isinstance(line, ImportedLine | BadLine)


CLAUDE = [
    {
        "uuid": "c1",
        "name": "Dinner",
        "created_at": "2025-03-01T10:00:00Z",
        "chat_messages": [
            {"uuid": "m1", "sender": "human", "text": "I'm vegetarian.", "created_at": "2025-03-01T10:00:00Z"},
            {"uuid": "m2", "sender": "assistant", "text": "Noted.", "created_at": "2025-03-01T10:00:05Z"},
        ],
    }
]


@pytest.mark.parametrize("packed", [False, True])
def test_exports_of_other_programs_are_imported_like_lines(holdfast: Holdfast, tmp_path: Path, packed: bool) -> None:
    """As JSON and as the ZIP that users download; a second time stores nothing."""
    path = tmp_path / "claude.json"
    path.write_text(json.dumps(CLAUDE), "utf-8")
    if packed:
        with zipfile.ZipFile(tmp_path / "claude.zip", "w") as archive:
            archive.write(path, "conversations.json")
        path = tmp_path / "claude.zip"
    first, again = (holdfast("import", str(path), "--user", "ana", "--json").data for _ in range(2))

    assert (first["stored"], again["stored"], again["known"]) == (2, 0, 2)
    (name,) = first["conversations"]
    assert [message.content for message in stored(name, user="ana")] == ["I'm vegetarian.", "Noted."]
    assert [fact["text"] for fact in holdfast("facts", "--user", "ana", "--json").data] == ["Is vegetarian."]


@pytest.mark.parametrize("content", [b'[{"mapping": {"a": 3}, "current_node": "a"}]', b"PK\x03\x04 broken", b"[1, 2]"])
def test_a_misshapen_export_is_one_error_without_its_words(holdfast: Holdfast, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.json").write_bytes(content)
    run = holdfast("import", str(tmp_path / "x.json"), "--json")

    assert run.code != 0
    assert len(run.error["message"]) > 15
    assert not (tmp_path / "holdfast.db").exists()
