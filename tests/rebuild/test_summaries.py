"""Summaries are made again in their range alone; the old version is kept and comes back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from holdfast import Config, Memory, Summary
from holdfast.errors import BadInput, ConfigError, Conflict, NotFound
from holdfast.testing.fakes import HashEmbedder

from .talks import USER, opened, walked


def told(summaries: list[Summary]) -> list[tuple[int, int, int, str]]:
    return [(s.level, s.start_seq, s.end_seq, s.text) for s in summaries]


def test_only_the_range_is_made_again() -> None:
    with opened() as memory:
        chat = walked(memory)
        before = {s.id: s for s in chat.summaries()}
        report = chat.rebuild("summaries", start_seq=15, end_seq=22)

        assert [(s.start_seq, s.end_seq) for s in report.after] == [(11, 20), (21, 30)]
        assert (report.ranges, report.start_seq, report.end_seq, report.calls, report.cost) == (2, 11, 30, 0, 0.0)
        changed = {s.id for s in report.before}
        above = [s for s in before.values() if s.level == 2]
        same = [s for s in chat.summaries() if s.id in before and s.level == 1]
        assert same == [s for s in before.values() if s.id not in changed and s.level == 1]
        assert [(s.id, s.stale) for s in chat.summaries(2)] == [(s.id, True) for s in above]
        assert told(chat.summaries()) == told(list(before.values()))
        assert memory.doctor().findings == ()


def test_the_old_version_is_kept_and_comes_back() -> None:
    with opened() as memory:
        chat = walked(memory)
        before = chat.summaries()
        report = chat.rebuild("summaries")
        assert {s.id for s in report.before} == {s.id for s in before if s.level == 1}
        assert {s.id for s in report.before} <= {s.id for s in chat.summaries(live=False)}
        assert [s.version for s in chat.summaries(1)] == [2] * 5

        memory._clock.advance(seconds=1)  # type: ignore[attr-defined]
        back = chat.restore(report.id)
        assert {s.id for s in back.after} == {s.id for s in report.before}
        assert [replace(s, children=()) for s in chat.summaries()] == [replace(s, children=()) for s in before]
        assert [set(s.children) for s in chat.summaries()] == [set(s.children) for s in before]

        memory._clock.advance(seconds=1)  # type: ignore[attr-defined]
        again = chat.restore(back.id)
        assert {s.id for s in again.after} == {s.id for s in report.after}
        assert [past.id for past in chat.rebuilds()] == [report.id, back.id, again.id]
        assert [past.reverts for past in chat.rebuilds()] == ["", report.id, back.id]
        assert memory.doctor().findings == ()


def test_a_higher_summary_is_made_from_what_stands_below_it_now() -> None:
    with opened() as memory:
        chat = walked(memory)
        chat.rebuild("summaries")
        report = chat.rebuild("meta")

        (high,) = chat.summaries(2)
        assert (high.version, high.stale) == (2, False)
        assert set(high.children) == {s.id for s in chat.summaries(1) if s.end_seq <= 30}
        assert report.before[0].id != high.id
        assert memory.doctor().findings == ()


def test_versions_count_up_whatever_was_restored() -> None:
    with opened() as memory:
        chat = walked(memory, 6)
        first = chat.rebuild("summaries")
        chat.restore(first.id)
        report = chat.rebuild("summaries")
        assert [s.version for s in report.after if isinstance(s, Summary)] == [3, 3]


def test_a_rebuild_that_was_overtaken_cannot_be_put_back() -> None:
    with opened() as memory:
        chat = walked(memory)
        first = chat.rebuild("summaries", end_seq=10)
        second = chat.rebuild("summaries", end_seq=10)
        with pytest.raises(Conflict, match="summarized again"):
            chat.restore(first.id)
        chat.restore(second.id)
        chat.restore(first.id)
        assert chat.summaries(1)[0].version == 1
        with pytest.raises(NotFound):
            chat.restore("reb_nobody")


def test_a_dry_run_changes_nothing() -> None:
    with opened() as memory:
        chat = walked(memory)
        before = memory.user(USER).export()
        for layer in ("summaries", "meta", "facts"):
            report = chat.rebuild(layer, dry_run=True)
            assert (report.dry_run, report.id) == (True, "")
            assert [one.id for one in report.after] == ([one.id for one in report.before] if layer == "facts" else [])
            assert report.ranges > 0
            assert report.before
        assert memory.user(USER).export() == before
        assert chat.rebuilds() == []


def test_progress_is_told_range_by_range() -> None:
    seen: list[tuple[int, int]] = []
    with opened() as memory:
        walked(memory).rebuild("summaries", progress=lambda done, total: seen.append((done, total)))
    assert seen == [(n, 5) for n in range(1, 6)]


def test_what_nobody_asked_to_be_summarized_is_not() -> None:
    """Messages without a summary are the digest's work; messages and conversations that do not exist are refused."""
    with opened() as memory:
        chat = walked(memory, 6)
        for _ in range(3):
            chat.record("Still open.", "Yes.")
        assert chat.rebuild("summaries", start_seq=13).ranges == 0
        with pytest.raises(NotFound, match="no message 500"):
            chat.rebuild("summaries", start_seq=500)
        with pytest.raises(NotFound):
            memory.conversation("new", user=USER).rebuild("summaries")
        assert memory.conversation("new", user=USER).rebuilds() == []


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"layer": "chunks"}, BadInput),
        ({"layer": "summaries", "start_seq": 5, "end_seq": 4}, BadInput),
        ({"layer": "summaries", "start_seq": 0}, BadInput),
        ({"layer": "episodes"}, ConfigError),
        ({"layer": "vectors"}, ConfigError),
    ],
)
def test_what_cannot_be_made_is_refused(given: dict[str, object], error: type[Exception]) -> None:
    with opened() as memory, pytest.raises(error):
        walked(memory, 6).rebuild(**given)  # type: ignore[arg-type]


def test_nothing_is_made_for_who_paused() -> None:
    with opened() as memory:
        chat = walked(memory, 6)
        report = chat.rebuild("summaries")
        memory.user(USER).pause()
        for layer in ("summaries", "facts", "meta"):
            with pytest.raises(Conflict, match="resume"):
                chat.rebuild(layer)
        with pytest.raises(Conflict, match="resume"):
            chat.restore(report.id)
        assert len(memory.user(USER).export()["conversations"][0]["rebuilds"]) == 2


def test_vectors_are_made_again_in_place(tmp_path: Path) -> None:
    """With another embedder, only those of the range are of the new one; the others follow by the digest."""
    with opened(tmp_path / "a.db", embedder=HashEmbedder()) as memory:
        chat = walked(memory)
        before = [hit.id for hit in memory.user(USER).search("walked on day 12", limit=5)]
        report = chat.rebuild("vectors", start_seq=5, end_seq=20)
        assert (report.ranges, report.start_seq, report.end_seq, report.id) == (1, 5, 20, "")
        assert [hit.id for hit in memory.user(USER).search("walked on day 12", limit=5)] == before
        assert memory.doctor().findings == ()


def test_an_erasure_takes_every_version_of_its_range() -> None:
    with opened() as memory:
        chat = walked(memory)
        report = chat.rebuild("summaries")
        other = chat.rebuild("summaries", start_seq=31)
        chat.forget(3)
        assert {s.start_seq for s in chat.summaries(live=False) if s.level == 1 and s.start_seq <= 3} == {1}
        assert len([s for s in chat.summaries(live=False) if (s.level, s.start_seq) == (1, 1)]) == 1
        with pytest.raises(Conflict, match="erased does not come back"):
            chat.restore(report.id)
        chat.restore(other.id)
        assert memory.doctor().findings == ()


def test_an_export_carries_the_versions_and_what_can_be_restored(tmp_path: Path) -> None:
    with opened() as memory, Memory(tmp_path / "b.db", embedder=None, config=Config(durable=False)) as other:
        chat = walked(memory)
        report, facts = chat.rebuild("summaries"), chat.rebuild("facts")
        data = memory.user(USER).export()
        other.user(USER).import_(data)
        assert other.user(USER).export() == data
        there = other.conversation("web-42", user=USER)
        assert there.rebuilds() == chat.rebuilds()
        there.restore(facts.id)
        assert {s.id for s in there.restore(report.id).after} == {s.id for s in report.before}
        assert other.doctor().findings == ()
