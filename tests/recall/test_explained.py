"""What a question finds is explained part by part, today and as if it was asked earlier, without leaving a trace."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from holdfast import Config, Memory
from holdfast.errors import BadInput
from holdfast.testing.fakes import HashEmbedder

START = datetime(2026, 1, 5, 9, tzinfo=UTC)


@pytest.fixture
def memory(clock):
    with Memory(embedder=HashEmbedder(), clock=clock, config=Config(recall_limit=3)) as opened:
        chat = opened.conversation("c", user="ana")
        for number, said in enumerate(("I live in Porto.", "The clock strikes.", "I like old clocks.") * 4):
            chat.record(f"{said} Day {number}.", "I see.")
            clock.advance(days=1)
        opened.digest()
        yield opened


def test_the_groups_sum_to_the_score_of_the_same_search(memory):
    ana = memory.user("ana")
    found = ana.explain("Where do I live?", limit=10)

    assert [one.hit.id for one in found.ranked] == [hit.id for hit in ana.search("Where do I live?", limit=10)]
    assert [one.rank for one in found.ranked] == list(range(1, 11))
    for one in found.ranked:
        assert one.words + one.meaning + one.time + one.around == pytest.approx(one.hit.score)
        assert one.hit.parts


def test_what_is_kept_stands_above_the_threshold_and_within_the_limit(memory):
    found = memory.user("ana").explain("Where do I live?", limit=30)
    kept = [one for one in found.ranked if one.kept]

    assert (found.limit, len(kept)) == (3, 3)
    assert all(one.hit.score >= found.threshold and not one.reason for one in kept)
    assert all(one.reason for one in found.ranked if not one.kept)
    assert {"3 others are better"} <= {one.reason for one in found.ranked}


def test_as_if_asked_earlier_only_what_had_been_said_counts(memory):
    at = START + timedelta(days=2, hours=1)
    found = memory.user("ana").explain("clocks", at=at, limit=50)

    assert found.at == at
    assert found.ranked
    assert all(one.hit.at is not None and one.hit.at <= at for one in found.ranked if one.hit.kind == "message")
    assert {one.hit.seq for one in found.ranked if one.hit.kind == "message"} <= set(range(1, 7))


def test_facts_that_held_then_and_were_replaced_are_named_beside_the_ranking(memory, clock):
    before = clock()
    clock.advance(days=1)
    memory.conversation("c", user="ana").record("I moved to Faro.", "Nice.")
    found = memory.user("ana").explain("Where do I live?", at=before)

    assert [fact.value for fact in found.past] == ["Porto"]
    assert memory.user("ana").explain("Where do I live?").past == ()


def test_looking_leaves_no_trace(memory):
    def uses():
        return [(fact.id, fact.uses, fact.last_used_at) for fact in memory.user("ana").facts()]

    before = uses()
    memory.user("ana").explain("Where do I live?")
    memory.conversation("c", user="ana").context("Where do I live?", note=False)
    memory.digest()
    assert uses() == before
    memory.conversation("c", user="ana").record("Where do I live?", "In Porto.")
    assert memory.admin.metrics().measure("token_saving").n == 0


def test_nothing_is_found_while_memory_is_paused(memory):
    ana = memory.user("ana")
    ana.pause()
    found = ana.explain("Where do I live?")

    assert (found.state, found.ranked) == ("paused", ())


def test_what_cannot_be_asked_is_refused(memory):
    with pytest.raises(BadInput):
        memory.user("ana").explain("  ")
    with pytest.raises(BadInput):
        memory.user("ana").explain("x", at=datetime(2026, 1, 1))


def test_the_threshold_is_the_setting_whatever_the_embedder():
    for embedder in (None, HashEmbedder()):
        for least in (Config().recall_min_relevance, 0.25):
            with Memory(embedder=embedder, config=Config(recall_min_relevance=least)) as opened:
                assert opened.user("ana").explain("Where?").threshold == least
    assert Config().recall_min_relevance == 0.35


def test_only_what_is_called_by_its_name_is_recalled_where_nothing_is_relevant():
    """A fact that a question calls opens the gate for itself alone, in the explanation as in a context."""
    with Memory(embedder=None) as memory:
        chat, ana = memory.conversation("c", user="ana"), memory.user("ana")
        for said in ("Rain all day in the garden.", "The train was late.", "I bought a red lamp.") * 3:
            chat.record(said, "I see.")
        ana.remember("Orders that fail wait in the dead letter queue.", aliases=("dlq",))
        question = "Does the dlq of the late Roman emperors resemble any of these other ones at all?"
        found = ana.explain(question, limit=20)
        shown = memory.conversation("new", user="ana").context(question, note=False).section("recalled").items

        assert [one.hit.text for one in found.ranked if one.kept] == ["Orders that fail wait in the dead letter queue."]
        assert max(one.hit.relevance for one in found.ranked if not one.kept) >= 0.1 * found.threshold
        assert not any("train" in line for line in shown)
