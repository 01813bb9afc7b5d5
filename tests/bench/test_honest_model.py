"""With a model that reads honestly, the memory around it holds nothing stale and no contradiction."""

from __future__ import annotations

import pytest

from holdfast import Config, Memory
from holdfast.bench.beliefs import HonestModel, run_story
from holdfast.bench.stories import write_story
from holdfast.testing.fakes import FakeClock

EXCHANGES = 300


@pytest.mark.parametrize("seed", [1, 2])
def test_corrections_joins_and_retractions_of_a_long_story_all_come_through(seed):
    told = write_story(exchanges=EXCHANGES, seed=seed)
    kinds = [turn.kind for turn in told.turns]
    assert min(kinds.count(kind) for kind in ("corrected", "joined", "retracted")) > 10
    clock = FakeClock(told.turns[0].at)
    model = HonestModel(told)

    with Memory(embedder=None, llm=model, clock=clock, config=Config()) as memory:
        seen = run_story(
            told, memory, set_clock=lambda turn: clock.advance(seconds=(turn.at - clock()).total_seconds()) and None
        )
        report = memory.doctor()

    assert [look.stale for look in seen.looks if look.stale] == []
    assert [look.contradicting for look in seen.looks if look.contradicting] == []
    assert seen.end.merged == ()
    assert len(seen.end.lost) <= seen.end.held // 50
    assert model.calls >= EXCHANGES // 10
    assert report.findings == ()
