"""``holdfast rebuild`` and ``backfill``: one layer of a conversation, old conversations, and undo."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Holdfast, said, write_jsonl


@pytest.fixture
def chat(holdfast: Holdfast, tmp_path: Path) -> Holdfast:
    """A conversation of two chunks, read and summarized by the rules."""
    rows = []
    for number in range(1, 13):
        rows.append(said(f"On day {number} we walked along the river for {number + 20} minutes."))
        rows.append({"role": "assistant", "content": "Lovely."})
    rows.append(said("I live in Lisbon."))
    write_jsonl(tmp_path / "walks.jsonl", rows)
    assert holdfast("import", "walks.jsonl").code == 0
    return holdfast


def test_rebuild_rebuilds_a_range_and_undo_reverts_it(chat: Holdfast) -> None:
    made = chat("rebuild", "summaries", "--from", "1", "--to", "3", "--json").data

    assert (made["ranges"], made["start_seq"]) == (1, 1)
    assert [one["version"] for one in made["after"]] == [2]
    assert [one["id"] for one in chat("rebuild", "--list", "--json").data] == [made["id"]]
    back = chat("rebuild", "--undo", "last", "--json").data
    assert [one["version"] for one in back["after"]] == [1]


def test_a_dry_run_changes_nothing(chat: Holdfast) -> None:
    before = chat("summaries", "--json").data
    run = chat("rebuild", "summaries", "--dry-run")

    assert run.code == 0
    assert "would be rebuilt; nothing was changed" in run.out
    assert chat("summaries", "--json").data == before
    assert "walks was not rebuilt yet" in chat("rebuild", "--list").out


def test_rebuild_says_what_it_did_and_how_to_undo_it(chat: Holdfast) -> None:
    out = chat("rebuild", "summaries").out
    (offer,) = [line for line in out.splitlines() if line.startswith("undo: holdfast ")]

    assert "rebuilt" in out
    assert chat(*offer.removeprefix("undo: holdfast ").split()).code == 0


def test_facts_that_are_found_again_keep_their_ids(chat: Holdfast) -> None:
    before = [fact["id"] for fact in chat("facts", "--json").data]
    run = chat("rebuild", "facts")

    assert run.code == 0
    assert "1 fact unchanged" in run.out
    assert [fact["id"] for fact in chat("facts", "--json").data] == before


@pytest.mark.parametrize(
    "args",
    [[], ["poems"], ["facts", "--list"], ["facts", "--from", "9", "--to", "3"], ["--list", "--undo", "last"]],
)
def test_rebuild_refuses_options_that_do_not_go_together(chat: Holdfast, args: list[str]) -> None:
    assert chat("rebuild", *args).code == 2


def test_undo_of_a_rebuild_that_does_not_exist_is_an_error(chat: Holdfast) -> None:
    assert chat("rebuild", "--undo", "last", "--json").error["code"] == "no-rebuild"
    assert "holdfast rebuild --list" in chat("rebuild", "--undo", "reb_0", "--json").error["hint"]


def test_backfill_skips_what_was_built(chat: Holdfast) -> None:
    report = chat("backfill", "--json").data

    assert (report["created"], report["errors"]) == (0, 0)
    assert report["skipped"] == report["processed"] > 0
    assert "0 built" in chat("backfill").out


def test_backfill_builds_what_is_missing(holdfast: Holdfast, tmp_path: Path) -> None:
    write_jsonl(tmp_path / "walks.jsonl", [said("We walked for an hour along the river.")] * 24)
    holdfast("import", "walks.jsonl", "--no-digest")
    made = holdfast("backfill", "--user", "me", "--json").data

    assert made["created"] >= 1
    assert holdfast("summaries", "--level", "1", "--json").data
    assert holdfast("backfill", "--json").data["created"] == 0


def test_backfill_refuses_unknown_layers(chat: Holdfast) -> None:
    assert chat("backfill", "--layers", "poems", "--json").error["code"] == "usage"
    assert chat("backfill", "--limit", "0").code == 2
