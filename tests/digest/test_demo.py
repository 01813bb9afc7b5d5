"""The bundled conversations: complete, in order, and as an importer expects them."""

from __future__ import annotations

import json
import tomllib
from datetime import datetime
from importlib import resources
from itertools import pairwise
from typing import Any

import pytest

from holdfast import Memory
from holdfast.config import Config
from holdfast.digest.chunk import find_closed_chunks
from holdfast.digest.summarize import summarize_chunk
from holdfast.types import Message

FOLDER = resources.files("holdfast.cli") / "demo"
INDEX = tomllib.loads((FOLDER / "demo.toml").read_text(encoding="utf-8"))["conversation"]


def rows(file: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / file).read_text(encoding="utf-8").splitlines()]


def messages(file: str) -> list[Message]:
    return [
        Message(
            row["role"],
            row["content"],
            name=row.get("name"),
            at=datetime.fromisoformat(row["at"]),
            seq=seq,
            meta={key: row[key] for key in ("tool_calls", "tool_call_id") if key in row},
        )
        for seq, row in enumerate(rows(file), 1)
    ]


def test_the_index_names_every_file_once() -> None:
    files = sorted(entry.name for entry in FOLDER.iterdir() if entry.name.endswith(".jsonl"))

    assert sorted(each["file"] for each in INDEX) == files


@pytest.mark.parametrize("entry", INDEX, ids=lambda entry: entry["file"])
def test_an_entry_says_what_to_show(entry: dict[str, str]) -> None:
    assert {"title", "about", "user", "id", "file", "question"} <= set(entry)


@pytest.mark.parametrize("entry", INDEX, ids=lambda entry: entry["file"])
def test_times_have_a_zone_and_rise(entry: dict[str, str]) -> None:
    times = [datetime.fromisoformat(row["at"]) for row in rows(entry["file"])]

    assert all(at.tzinfo is not None for at in times)
    assert all(earlier < later for earlier, later in pairwise(times))


def test_every_tool_call_has_its_result_right_behind_it() -> None:
    support = rows("support.jsonl")
    calls = [(place, call["id"]) for place, row in enumerate(support) for call in row.get("tool_calls", ())]

    assert len(calls) >= 5
    assert all(support[place + 1].get("tool_call_id") == ident for place, ident in calls)


@pytest.mark.parametrize("entry", INDEX, ids=lambda entry: entry["file"])
def test_each_is_long_enough_for_summaries(entry: dict[str, str]) -> None:
    talk = messages(entry["file"])
    chunks = find_closed_chunks(talk, Config(), ended_seq=len(talk))
    drafts = [summarize_chunk(talk[chunk.start_seq - 1 : chunk.end_seq]) for chunk in chunks]

    assert len(chunks) >= 2
    assert all(30 <= len(draft.text.split()) <= 130 for draft in drafts)


def test_what_the_first_user_speaks_is_shown_as_languages_alone() -> None:
    """It is the first line of the user's page in the demo."""
    with Memory(embedder=None) as memory:
        memory.conversation("japan", user="priya").append(rows("trip.jsonl"))
        memory.digest()
        spoken = {fact.text for fact in memory.user("priya").facts() if "Hindi" in fact.text or "English" in fact.text}

    assert spoken == {"Speaks English.", "Speaks Hindi."}
