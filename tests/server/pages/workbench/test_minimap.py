"""The map of a conversation as a table of paths, and search in the messages."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from holdfast.reports import Rebuilt
from holdfast.server.pages.workbench import transcript
from holdfast.server.pages.workbench.transcript import minimap, search_messages
from holdfast.types import Summary

NOW = datetime(2026, 11, 2, tzinfo=UTC)


def summary(level: int, start: int, end: int, *, stale: bool = False) -> Summary:
    return Summary(f"{level}-{start}", level, start, end, 1, "", (), (), (), 0, 1, (), NOW, "rules", stale)


def paths(drawn) -> dict[str, str]:
    return {path.kind: path.d for path in drawn.paths}


def test_the_width_is_messages():
    drawn = minimap([summary(1, 1, 10), summary(1, 11, 20, stale=True), summary(2, 1, 20)], 30)
    found = paths(drawn)
    assert re.match(r"M0 15h9\.98\d?v12", found["area l1 fresh"])
    assert found["area l1 stale"].startswith("M10 15h9.98")
    assert found["area l2 fresh"].startswith("M0 1h19.98")
    assert found["area waiting"].startswith("M20 15h9.98")
    assert drawn.words == (
        "30 messages",
        "2 chunk summaries",
        "1 meta summary",
        "1 summary out of date",
        "10 messages not summarized yet",
    )


def test_rebuilds_facts_and_hits_are_marked():
    made = Rebuilt("r", "facts", 5, 9, NOW, "rules", 0, 0)
    drawn = minimap([], 10, [(2, None, False), (6, None, True)], [made], hits=[3, 4], failed=True)
    found = paths(drawn)
    assert found["area rebuilt"] == "M4 37h5v3h-5z"
    assert found["line learned"] == "M1.5 29v6"
    assert found["line replacing"] == "M5.5 28v8"
    assert found["line hit"] == "M2.5 0v40M3.5 0v40"
    assert "area failed" in found


def test_a_long_conversation_is_drawn_with_as_many_marks_as_can_be_told_apart():
    chunks = [summary(1, n, n + 9) for n in range(1, 20_001, 10)]
    drawn = minimap(chunks, 20_000, [(n, None, False) for n in range(1, 20_001)])
    assert sum(len(path.d) for path in drawn.paths) < 80_000
    assert paths(drawn)["line learned"].count("M") <= 1_001


def test_messages_are_found_page_by_page(memory, monkeypatch):
    monkeypatch.setattr(transcript, "HITS_A_PAGE", 2)
    monkeypatch.setattr(transcript, "READ", 3)
    chat = memory.conversation("c", user="ana")
    chat.append([{"role": "user", "content": f"A Straße {n}." if n % 2 else "Nothing."} for n in range(1, 12)])
    chat.forget(5)
    first = search_messages(chat, "STRASSE", 11)
    assert first.hits == ()
    first = search_messages(chat, "a straße", 11)
    assert [hit.seq for hit in first.hits] == [1, 3]
    assert (first.hits[0].before, first.hits[0].found, first.hits[0].after) == ("", "A Straße", " 1.")
    second = search_messages(chat, "a straße", 11, first.after)
    assert [hit.seq for hit in second.hits] == [7, 9]
    third = search_messages(chat, "a straße", 11, second.after)
    assert ([hit.seq for hit in third.hits], third.after) == ([11], None)


def test_what_was_not_read_is_searched_on_the_next_page(memory, monkeypatch):
    monkeypatch.setattr(transcript, "MAX_READ", 4)
    chat = memory.conversation("c", user="ana")
    chat.append([{"role": "user", "content": f"Word {n}."} for n in range(1, 7)])
    first = search_messages(chat, "word 6", 6)
    assert (first.hits, first.after) == ((), 4)
    assert [hit.seq for hit in search_messages(chat, "word 6", 6, 4).hits] == [6]
