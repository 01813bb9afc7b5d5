"""Each rule of the doctor finds what breaks it: a sound store is damaged from outside, one rule at a time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import apsw
import pytest

from holdfast import Memory
from holdfast.store import ContextStatsRow, EpisodeRangeRow, ItemRow, ProviderKeyRow, WriteView, open_store
from holdfast.store.queries import load
from holdfast.store.sqlite import backend
from holdfast.store.store import HINTS
from holdfast.testing.rows import ANA, END_MS, add_rebuilt_range, add_usage_and_prompt, end_fact, learn, say, summarize

DAMAGE = {
    "coverage_points_home": "UPDATE coverage SET summary = 'nobody' WHERE seq = 1",
    "coverage_whole": "DELETE FROM coverage WHERE seq = 2",
    "level1_contiguous": "UPDATE summary SET end_seq = 1 WHERE level = 1 AND start_seq = 1",
    "chunk_start": "UPDATE conversation SET chunk_start = 2",
    "summary_range": "UPDATE summary SET end_seq = 99 WHERE level = 2",
    "parent": "UPDATE summary SET parent = 'nobody' WHERE level = 1 AND start_seq = 1",
    "children": "UPDATE summary SET parent = NULL WHERE level = 1 AND start_seq = 3",
    "summary_edges": "DELETE FROM derivation WHERE child_kind = 'summary'",
    "edge_of_summary": "UPDATE derivation SET child = 'nobody' WHERE child_kind = 'summary' AND start_seq = 1",
    "edge_of_story": "INSERT INTO derivation SELECT org, user_id, bot, 'story', 'nobody', source_kind, subject, conversation, "
    "start_seq, end_seq, source FROM derivation WHERE child_kind = 'summary' LIMIT 1",
    "edge_of_fact": "UPDATE derivation SET child = 'nobody' WHERE child_kind = 'fact'",
    "edge_to_summary": "UPDATE derivation SET source = 'nobody' WHERE source_kind = 'summary' AND source >= "
    "(SELECT max(source) FROM derivation)",
    "edge_to_messages": "UPDATE derivation SET end_seq = 99 WHERE child_kind = 'fact'",
    "live_address": "DROP INDEX fact_live; UPDATE fact SET slot_value = '' WHERE category = 'friends'",
    "fact_evidence": "DELETE FROM evidence",
    "fact_end": "UPDATE fact SET ended_because = '' WHERE valid_to IS NOT NULL",
    "superseded_by": "UPDATE fact SET superseded_by = 'nobody' WHERE valid_to IS NOT NULL",
    "merged": "UPDATE fact SET ended_because = 'merged' WHERE valid_to IS NOT NULL",
    "evidence_fact": "UPDATE evidence SET fact = 'nobody'",
    "quote": "UPDATE evidence SET quote = 'lisbon' WHERE quote = 'Lisbon'",
    "message_doc": "UPDATE message SET doc = 99 WHERE seq = 1",
    "fact_doc": "UPDATE fact SET unscoped = 0",
    "summary_doc": "UPDATE summary SET doc = 99 WHERE level = 2",
    "doc_of_message": "UPDATE message SET doc = 99 WHERE seq = 1",
    "doc_of_fact": "UPDATE fact SET valid_to = 1, ended_at = 1, ended_because = 'expired'",
    "doc_of_summary": "UPDATE summary SET live = 0 WHERE level = 2",
    "doc_kind": "UPDATE doc SET kind = 'note' WHERE kind = 'fact'",
    "doc_terms": "UPDATE doc SET words = replace(words, ' Lisbon', '')",
    "segment": "INSERT INTO segment SELECT org, user_id, bot, subject, kind, 1, 9, 1, 1, '', x'00' FROM doc LIMIT 1",
    "vector_doc": "UPDATE doc SET embedded = 'other'",
    "doc_vector": "DELETE FROM vector",
    "next_doc": "UPDATE user_state SET next_doc = 2",
    "next_seq": "DELETE FROM message WHERE seq = 2",
    "message_home": "DELETE FROM conversation",
    "conversation_home": "DELETE FROM user_state",
    "marks": "UPDATE conversation SET extracted_seq = 99",
    "episode_range": "UPDATE episode_range SET end_seq = 99",
    "idempotency": "UPDATE idempotency SET last_seq = 99",
    "rebuild": "UPDATE rebuild SET end_seq = 99",
    "read_range": "UPDATE read_range SET end_seq = 99",
    "context_stats": "UPDATE context_stats SET used = 3",
    "item": "UPDATE item SET space = ''",
    "subject": "UPDATE conversation SET subject = 'luna'",
    "older_version": "UPDATE summary SET doc = 99 WHERE live = 0",
    "erased_message": "UPDATE message SET role = 'erased', doc = 0 WHERE seq = 1",
    "edge_of_end": "INSERT INTO derivation SELECT org, user_id, bot, 'end', id, 'message', subject, 'chat', 1, 1, '' "
    "FROM fact WHERE valid_to IS NULL LIMIT 1",
    "consent": "INSERT INTO consent VALUES ('acme', 'ana', 'support', '', 'paused', 1)",
    "usage": "UPDATE usage SET failed = 3",
    "prompt": "UPDATE prompt SET name = 'poem'",
    "provider_key": "UPDATE provider_key SET sealed = 'sk-plain'",
    "event_numbers": "DELETE FROM event WHERE number = (SELECT max(number) - 1 FROM event WHERE user_id = 'ana')",
    "event_home": "UPDATE event SET conversation = 'elsewhere'",
    "job_state": "UPDATE job SET worker = 'w'",
}


def fill(view: WriteView) -> None:
    """A memory in which every rule has something to look at."""
    say(view, "one two", "three", "four", "five")
    low = [summarize(view, 1, 2), summarize(view, 3, 4)]
    summarize(view, 1, 4, low)
    old = learn(view, "Faro")
    end_fact(view, old, at_ms=END_MS)
    new = learn(view, "Lisbon")
    for name in ("bo", "cy"):
        learn(view, name, category="friends", key="name", multi=True)
    ended = view.fact(old.fact.id)
    assert ended is not None
    view.update_fact(replace(ended, fact=replace(ended.fact, superseded_by=new.fact.id, ended_because="replaced")))
    view.add_idempotency("key", "digest", 1, 2, END_MS)
    view.add_episode_range(EpisodeRangeRow(1, 2, 1, "rules 1"), END_MS)
    view.want("digest", "", wanted=4, run_at_ms=0, now_ms=0)
    add_rebuilt_range(view)
    view.add_context_stats(ContextStatsRow(2, END_MS, "layered", 40, "sha", 2, 1))
    view.save_item(ItemRow("framework.state", "step 1", b"state", END_MS, END_MS))
    view.add_vectors([(doc, "e1", 0.5, b"123") for doc in view.unembedded("e1", limit=99)])
    add_usage_and_prompt(view)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "memory.db"
    store = open_store(path)
    store.write(ANA, fill)
    sealed = "c2VhbGVkIGFuZCBub3QgcmVhZGFibGUgYnkgYW55Ym9keQ=="
    store.save_provider_key(
        ProviderKeyRow(
            "acme", "ana", "k1", "openai", "m", "https://api.openai.com/v1", "0a1b2c3d", sealed, "x7qp", END_MS
        )
    )
    store.close()
    return path


def broken_rules(path: Path) -> set[str]:
    store = open_store(path)
    try:
        return {finding.rule.replace("-", "_") for finding in store.check()}
    finally:
        store.close()


def test_a_sound_store_has_no_findings(path: Path) -> None:
    assert broken_rules(path) == set()


@pytest.mark.parametrize("rule", HINTS)
def test_each_rule_finds_what_breaks_it(path: Path, rule: str) -> None:
    outside = apsw.Connection(str(path))
    outside.execute(DAMAGE[rule])
    outside.close()

    assert rule in broken_rules(path)


def test_every_rule_has_a_query_a_hint_and_a_test() -> None:
    queries = {name.removeprefix("check_") for name in load("sqlite") if name.startswith("check_")}

    assert queries == set(HINTS) == set(DAMAGE)


def test_a_finding_carries_keys_and_no_text(path: Path) -> None:
    outside = apsw.Connection(str(path))
    outside.execute("UPDATE evidence SET quote = 'a secret' WHERE quote = 'Lisbon'")
    outside.close()
    store = open_store(path)
    (finding,) = store.check()
    store.close()

    assert finding.rule == "quote"
    assert finding.hint
    assert finding.where.startswith('["acme","ana","support","self","fact_')
    assert "Lisbon" not in finding.where
    assert "secret" not in finding.where


def test_a_damaged_page_is_found(path: Path) -> None:
    """SQLite's own check is part of ours."""
    data = bytearray(path.read_bytes())
    outside = apsw.Connection(str(path))
    root = outside.execute("SELECT rootpage FROM sqlite_master WHERE name = 'derivation_source'").get
    outside.close()
    page = int.from_bytes(data[16:18], "big")
    data[(root - 1) * page + 8 : root * page] = bytes(page - 8)
    path.write_bytes(data)

    assert "sqlite_integrity" in broken_rules(path)


def test_a_file_that_others_may_read_is_a_notice(path: Path) -> None:
    """It breaks no rule of the rows, so the store is sound; the mode is named, with the command that mends it."""
    path.chmod(0o644)
    with Memory(path, embedder=None) as memory:
        report = memory.doctor()

    assert report.ok
    assert [(notice.rule, notice.hint) for notice in report.notices] == [("file-rights", f"chmod 600 {path}")]
    assert report.database["version"].startswith("SQLite 3.")
    assert report.database["synchronous"] == "full"


def test_a_full_disk_and_a_log_that_grows_are_notices(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "LARGE_LOG_BYTES", 0)
    monkeypatch.setattr(backend.shutil, "disk_usage", lambda folder: SimpleNamespace(free=10))
    with Memory(path, embedder=None) as memory:
        memory.conversation("c", user="bo").append({"role": "user", "content": "Hello."})
        report = memory.doctor()

    assert [notice.rule for notice in report.notices] == ["disk-space", "large-log"]


def test_a_library_that_damages_its_log_is_a_finding(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "FIXED", (99, 0, 0))
    with Memory(path, embedder=None) as memory:
        report = memory.doctor()

    assert not report.ok
    assert [finding.rule for finding in report.findings] == ["sqlite-version"]
