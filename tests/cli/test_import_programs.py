"""``holdfast import`` of other programs' files, and ``holdfast export --format``: looked at, stored once, and for the right user."""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path
from typing import Any

import pytest

from holdfast import Memory

from .conftest import Holdfast

GOLDEN = Path(__file__).parent.parent / "importers" / "golden"


def texts(holdfast: Holdfast, user: str) -> list[str]:
    return sorted(fact["text"] for fact in holdfast("facts", "--user", user, "--json").data)


def test_a_dry_run_shows_what_is_in_a_file_and_stores_nothing(holdfast: Holdfast, tmp_path: Path) -> None:
    run = holdfast("import", str(GOLDEN / "discord.json"), "--me", "Ana", "--user", "ana", "--dry-run")

    assert run.code == 0
    assert "3 messages in 1 conversation" in run.out
    assert "discord.json:7" in run.out
    assert not (tmp_path / "holdfast.db").exists()


def test_all_that_is_left_out_is_reported_with_its_line(holdfast: Holdfast, tmp_path: Path) -> None:
    file = str(GOLDEN / "discord.json")
    run = holdfast("import", file, "--me", "Ana", "--json", "--report", "left-out.jsonl")

    rows = [json.loads(line) for line in (tmp_path / "left-out.jsonl").read_text().splitlines()]
    assert rows == [
        {"where": f"{file}:7", "why": "a GuildMemberJoin notice"},
        {"where": f"{file}:11", "why": "a message without text"},
    ]
    assert run.data["left_out"] == {"a GuildMemberJoin notice": 1, "a message without text": 1}


def test_dates_that_can_be_read_in_two_ways_are_bad_input(holdfast: Holdfast, tmp_path: Path) -> None:
    (tmp_path / "chat.txt").write_text("03/04/2026, 10:20 - Ana: Hi\n05/04/2026, 10:21 - Bo: Hello\n")
    run = holdfast("import", "chat.txt", "--me", "Ana", "--json")

    assert run.error["code"] == "bad-input"
    assert "--dates day-first or month-first" in run.error["hint"]


def test_a_chat_between_people_needs_to_be_told_who_is_the_user(holdfast: Holdfast) -> None:
    run = holdfast("import", str(GOLDEN / "discord.json"), "--user", "ana", "--json")
    assert run.error["code"] == "no-speaker"
    assert "Ana (1)" in run.error["message"]

    holdfast("import", str(GOLDEN / "discord.json"), "--user", "ana", "--me", "Ana")
    assert texts(holdfast, "ana") == ["Lives in Porto."]  # not where Bo lives


def test_memories_become_facts_once_and_do_not_overwrite_what_was_said_since(holdfast: Holdfast) -> None:
    holdfast("say", "I eat fish now.", "--user", "ana")  # after the vegetarian of 2024
    first, again = (holdfast("import", str(GOLDEN / "mem0.json"), "--user", "ana", "--json").data for _ in range(2))

    assert (first["memories"], again["memories"]) == (2, 0)
    assert again["known_memories"] == 2
    assert texts(holdfast, "ana") == ["Eats fish but no meat: is pescatarian.", "Works as a nurse"]


@pytest.fixture
def of_two(tmp_path: Path) -> str:
    rows = [{"id": str(n), "memory": text, "user_id": who} for n, (who, text) in enumerate(WHO_WHAT)]
    (tmp_path / "two.json").write_text(json.dumps({"results": rows}))
    return str(tmp_path / "two.json")


WHO_WHAT = [("ana", "Is vegetarian"), ("bo", "Works as a nurse"), ("ana", "Lives in Porto")]


def test_what_is_of_several_users_is_never_mixed(holdfast: Holdfast, of_two: str) -> None:
    assert holdfast("import", of_two, "--user", "me", "--json").error["code"] == "several-users"
    assert holdfast("import", of_two, "--from-user", "eve", "--json").error["code"] == "no-user"

    holdfast("import", of_two, "--all-users")
    assert texts(holdfast, "bo") == ["Works as a nurse"]
    assert texts(holdfast, "ana") == ["Is vegetarian", "Lives in Porto"]
    holdfast("import", of_two, "--from-user", "bo", "--user", "carl")
    assert texts(holdfast, "carl") == ["Works as a nurse"]


def test_messages_of_several_users_are_stored_for_each(holdfast: Holdfast, tmp_path: Path) -> None:
    talks = [
        {"id": f"t{n}", "user_id": who, "messages": [{"role": "user", "content": who}]} for n, who in enumerate("aba")
    ]
    (tmp_path / "talks.json").write_text(json.dumps(talks))
    holdfast("import", "talks.json", "--all-users", "--no-digest")

    with Memory("holdfast.db", embedder=None) as memory:
        found: dict[str, Any] = {who: sorted(memory.user(who).conversations()) for who in "ab"}
        assert found == {"a": ["t0", "t2"], "b": ["t1"]}


def test_a_damaged_document_is_named_by_its_line(holdfast: Holdfast, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('[\n {"mapping": {},\n  "title": oops}\n]\n')
    run = holdfast("import", "x.json", "--json")

    assert run.error["code"] == "bad-line"
    assert "line 3" in run.error["message"]


@pytest.mark.parametrize("format", ["pam", "omi", "okf"])
def test_a_portable_format_takes_the_facts_to_another_user_and_names_what_is_lost(
    holdfast: Holdfast, format: str
) -> None:
    for text in ("I'm vegetarian.", "I live in Porto.", "I eat fish now.", "My sister Lena is allergic to nuts."):
        holdfast("say", text, "--user", "ana", "-c", "chat")
    holdfast("remember", "The cabin key is under the stone.", "--user", "ana")
    lost = holdfast("export", f"ana.{format}", "--user", "ana", "--format", format, "--json").data["lost"]
    counted = {one["what"]: one["count"] for one in lost}
    taken = holdfast("import", f"ana.{format}", "--user", "twin")
    facts = holdfast("facts", "--user", "twin", "--json").data

    assert texts(holdfast, "twin") == texts(holdfast, "ana")
    assert (counted["subjects"], "messages" in counted) == (1, format != "pam")
    assert "link to another file" not in taken.out
    assert {len(fact["evidence"]) for fact in facts} == {1}  # a copy of a fact is not said once more


def test_memories_as_json_keep_when_they_were_said(holdfast: Holdfast, tmp_path: Path) -> None:
    (tmp_path / "chat.jsonl").write_text(
        '{"role": "user", "content": "I live in Porto.", "at": "2025-03-01T10:00:00Z"}\n'
    )
    holdfast("import", "chat.jsonl", "--user", "ana")
    holdfast("export", "back.json", "--user", "ana", "--format", "memories")
    holdfast("import", "back.json", "--user", "twin")

    assert json.loads((tmp_path / "back.json").read_text())[0]["source"]["extractedAt"] == "2025-03-01T10:00:00Z"
    assert holdfast("facts", "--user", "twin", "--json").data[0]["valid_from"].startswith("2025-03-01")


def test_memories_as_json_are_taken_and_given(holdfast: Holdfast, tmp_path: Path) -> None:
    rows = [
        {"content": "Deploys on Kubernetes", "category": "context", "confidence": 0.95},
        {"content": "Might be interested in Rust", "category": "preference", "confidence": 0.4},
        {"content": "Prefers concise responses", "category": "behavioral", "confidence": 0.8},
    ]
    (tmp_path / "memories.json").write_text(json.dumps(rows))
    first = holdfast("import", "memories.json", "--user", "ana")
    again = holdfast("import", "memories.json", "--user", "ana")
    holdfast("export", "back.json", "--user", "ana", "--format", "memories")
    back = json.loads((tmp_path / "back.json").read_text())
    kept = [("Deploys on Kubernetes", "context", 0.95), ("Prefers concise responses", "behavioral", 0.8)]

    assert "low confidence" in first.out
    assert "2 memories" in first.out
    assert "0 memories" in again.out or "known" in again.out
    assert sorted((one["content"], one["category"], one["confidence"]) for one in back) == kept
    assert back[0]["source"]["conversationId"] is None
    holdfast("import", "back.json", "--user", "twin")
    assert texts(holdfast, "twin") == texts(holdfast, "ana")


def test_an_export_without_a_file_says_a_command_that_works(holdfast: Holdfast) -> None:
    holdfast("say", "I live in Porto.", "--user", "ana")
    refused = holdfast("export", "--format", "memories", "--user", "ana")

    assert "holdfast export ana.json --format memories" in refused.err


def test_a_paused_user_among_several_is_named_beside_the_result(holdfast: Holdfast, tmp_path: Path) -> None:
    talks = [
        {"id": f"t{n}", "user_id": who, "messages": [{"role": "user", "content": "I live in Porto."}]}
        for n, who in enumerate(("ana", "bo"))
    ]
    (tmp_path / "talks.json").write_text(json.dumps(talks))
    holdfast("pause", "--user", "bo")
    result = holdfast("import", "talks.json", "--all-users", "--no-digest")

    assert "bo has paused memory" in result.err
    assert "1 message stored" in result.out


def test_more_users_are_imported_than_files_can_be_open(holdfast: Holdfast, tmp_path: Path) -> None:
    rows = [{"id": f"t{n}", "user_id": f"u{n}", "messages": [{"role": "user", "content": "x"}]} for n in range(200)]
    (tmp_path / "talks.json").write_text(json.dumps(rows))
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 100, limits[1]))
    try:
        result = holdfast("import", "talks.json", "--all-users", "--dry-run")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)

    assert result.code == 0
    assert "for u199" in result.out
