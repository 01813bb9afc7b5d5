"""A memory that the rules made is upgraded with a model, by rebuild and by backfill; what it made is not made again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import BackfillReport, Budget, Config, Memory, Price
from holdfast.errors import BadInput
from holdfast.llm.protocol import Answer, BadAnswer, ModelError
from holdfast.testing.model import ScriptedModel
from holdfast.text.render import parse_blocks

from .talks import USER, believed, opened, walked

GOOD = "SUMMARY: They walked along the river."


def model(**script: Any) -> ScriptedModel:
    return ScriptedModel({"chunk_summary": lambda request: "SUMMARY: They walked.", **script})


def by_rules(path: Path, exchanges: int = 24) -> None:
    with opened(path) as memory:
        walked(memory, exchanges)


def test_a_rules_only_memory_is_upgraded(tmp_path: Path) -> None:
    by_rules(tmp_path / "a.db")
    asked = model(episodes=lambda request: "- Walked for 21 minutes [3]" if "day 1 " in request.text else "NONE")
    with opened(tmp_path / "a.db", llm=asked) as memory:
        chat = memory.conversation("web-42", user=USER)
        report = memory.backfill(USER, delay_ms=0)

        assert (report.created, report.errors, report.left, report.reasons) == (5 + 5 + 2 + 1, 0, 0, ())
        assert {s.source.split(" ")[0] for s in chat.summaries()} == {"scripted:1"}
        assert [s.text for s in chat.summaries(1)] == ["They walked."] * 5
        assert [f.text for f in chat.episodes()] == ["Walked for 21 minutes"]
        assert [s.stale for s in chat.summaries()] == [False] * 6
        assert report.calls == len(asked.asked) == sum(usage.calls for usage in memory.usage())
        assert report.tokens == sum(usage.tokens for usage in memory.usage())
        assert report.cost is None  # nobody knows the price of this model

        again = memory.backfill(USER, delay_ms=0)
        assert (again.created, again.skipped, again.calls) == (0, 13, 0)
        assert memory.digest().tokens == 0
        assert memory.doctor().findings == ()


def test_what_the_rules_read_wrongly_is_put_right_and_can_be_put_back(tmp_path: Path) -> None:
    by_rules(tmp_path / "a.db")
    said = "home,lives_in,Lisbon,0.95,,set,,,13,I live in Lisbon"
    asked = model(facts=lambda request: said if "I live in Lisbon" in request.text else "NONE")
    with opened(tmp_path / "a.db", llm=asked) as memory:
        chat, before = memory.conversation("web-42", user=USER), believed(memory)
        report = chat.rebuild("facts")
        now = {(f.category, f.value): f.source.split(" ")[0] for f in memory.user(USER).facts()}
        assert now == {("home", "Lisbon"): "scripted:1"}
        assert report.calls == 2
        assert len(before) > 1
        chat.restore(report.id)
        assert believed(memory) == before
        assert {f.source for f in memory.user(USER).facts()} == {"rules 1"}
        assert memory.doctor().findings == ()


def test_a_model_that_finds_nothing_leaves_what_was_written_by_hand(tmp_path: Path) -> None:
    with opened(tmp_path / "a.db") as memory:
        walked(memory)
        user = memory.user(USER)
        user.correct(user.facts("home")[0].id, value="Braga")
        user.remember("Prefers email to phone calls", category="preference")  # the rules file it
        user.remember("Wrestles with asyncio at work")  # and keep this as it is
        user.remember(category="work", key="works_as", value="nurse")
        by_hand = {
            "Lives in Braga.",
            "Prefers email to phone calls",
            "Wrestles with asyncio at work",
            "Works as a nurse.",
        }
        assert by_hand <= {fact.text for fact in user.facts()}
    with opened(tmp_path / "a.db", llm=model(facts=lambda request: "NONE", episodes=lambda request: "NONE")) as memory:
        for again in (
            lambda: memory.backfill(USER, delay_ms=0),
            lambda: memory.conversation("(by hand)", user=USER).rebuild("facts"),
        ):
            assert "(by hand)" not in str(again())
            assert {fact.text for fact in memory.user(USER).facts()} == by_hand
        assert memory.doctor().findings == ()


def test_what_was_known_of_the_range_is_not_shown_to_the_model(tmp_path: Path) -> None:
    """It would otherwise not say again what it is told that is known."""
    by_rules(tmp_path / "a.db")
    asked = model()
    with opened(tmp_path / "a.db", llm=asked) as memory:
        memory.conversation("web-42", user=USER).rebuild("facts")
    shown = [
        items for request in asked.requests("facts") for name, items in parse_blocks(request.text) if name == "known"
    ]
    assert "Lisbon" not in str(shown)


def test_a_dry_run_counts_upwards_and_asks_nobody(tmp_path: Path) -> None:
    by_rules(tmp_path / "a.db")
    asked = model()
    prices = Config(durable=False, prices={"scripted:1": Price(input=1.0, output=4.0)})
    with opened(tmp_path / "a.db", llm=asked, config=prices) as memory:
        chat = memory.conversation("web-42", user=USER)
        plans = {layer: chat.rebuild(layer, dry_run=True) for layer in ("summaries", "episodes", "facts", "meta")}
        whole = memory.backfill(USER, dry_run=True)
        assert asked.asked == []
        assert (whole.created, whole.calls) == (13, 13)
        done = {layer: chat.rebuild(layer) for layer in plans}
        for layer, plan in plans.items():
            assert (plan.ranges, plan.calls) == (done[layer].ranges, done[layer].calls), layer
            assert plan.tokens >= done[layer].tokens > 0
            assert plan.cost is not None
            assert (done[layer].cost or 0) > 0
            assert plan.cost >= (done[layer].cost or 0)


def test_a_limit_leaves_the_rest_for_the_next_call(tmp_path: Path) -> None:
    by_rules(tmp_path / "a.db")
    with opened(tmp_path / "a.db", llm=model()) as memory:
        reports = [memory.backfill(USER, delay_ms=0, limit=5) for _ in range(4)]
        assert [(r.created, r.left) for r in reports] == [(5, 8), (5, 3), (3, 0), (0, 0)]


def test_progress_and_pauses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits between calls of the model, as long as the settings or the call say, and tells where it is."""
    by_rules(tmp_path / "a.db", 6)
    waited: list[float] = []
    monkeypatch.setattr("holdfast.jobs.backfill.time.sleep", waited.append)
    seen: list[BackfillReport] = []
    with opened(tmp_path / "a.db", llm=model()) as memory:
        memory.backfill(USER, layers=["summaries"], progress=seen.append)
        memory.backfill(USER, layers=["episodes"], delay_ms=70)
    assert waited == [0.5, 0.07]
    assert [report.created for report in seen] == [1, 2]


def test_everybody_gets_their_turn_but_who_paused(tmp_path: Path) -> None:
    with opened(tmp_path / "a.db") as memory:
        for user in ("ana", "bo", "cy"):
            chat = memory.conversation("x", user=user, org="o1" if user == "bo" else "default")
            for number in range(6):
                chat.record(f"Walk {number}.", "Nice.")
            chat.end()
        memory.digest()
        memory.user("cy").pause()
    with opened(tmp_path / "a.db", llm=model()) as memory:
        report = memory.backfill(delay_ms=0, layers=["summaries"])
        assert (report.created, report.errors) == (4, 0)
        assert memory.conversation("x", user="cy").summaries(1)[0].source == "rules 1"
        assert memory.backfill("cy", delay_ms=0).processed == 0


def test_what_was_never_digested_is_digested(tmp_path: Path) -> None:
    with opened(tmp_path / "a.db") as memory:
        chat = memory.conversation("x", user=USER)
        for number in range(6):
            chat.record(f"Walk {number}.", "Nice.")
        chat.end()
    with opened(tmp_path / "a.db", llm=model()) as memory:
        report = memory.backfill(USER, delay_ms=0)
        assert report.created >= 2
        assert memory.conversation("x", user=USER).summaries(1)[0].source.startswith("scripted:1 ")
        assert memory.backfill(USER, delay_ms=0).created == 0


def test_a_range_that_fails_stays_as_it_was_and_is_tried_next_time(tmp_path: Path) -> None:
    by_rules(tmp_path / "a.db")
    answers: list[Any] = [GOOD, ModelError("busy"), BadAnswer("prose"), GOOD, GOOD]
    asked = ScriptedModel({"chunk_summary": answers})
    with opened(tmp_path / "a.db", llm=asked) as memory:
        chat = memory.conversation("web-42", user=USER)
        report = memory.backfill(USER, layers=["summaries"], delay_ms=0)
        assert (report.created, report.errors, report.calls) == (3, 2, 5)
        assert [reason.split(": ")[0] for reason in report.reasons] == [
            f"web-42 summaries {n}" for n in ("11-20", "21-30")
        ]
        assert report.reasons[1].endswith("bad-answer: prose")  # and no word that it were tried again by itself
        assert [s.source == "rules 1" for s in chat.summaries(1)] == [False, True, True, False, False]
        again = memory.backfill(USER, layers=["summaries"], delay_ms=0)
        assert (again.created, again.skipped) == (2, 3)
        assert memory.doctor().findings == ()


def test_without_a_model_the_backfill_says_why_there_are_no_episodes(tmp_path: Path) -> None:
    by_rules(tmp_path / "a.db")
    with opened(tmp_path / "a.db") as memory:
        report = memory.backfill(USER, delay_ms=0)
        some = memory.backfill(USER, layers=["summaries", "facts"], delay_ms=0)

    assert report.errors == 0
    assert [reason.split(",")[0] for reason in report.reasons] == ["episodes need a model"]
    assert some.reasons == ()


def test_what_only_a_user_can_mend_ends_the_run(tmp_path: Path) -> None:
    by_rules(tmp_path / "a.db")
    wrong = ModelError("the key is refused", transient=False, setup=True)
    with opened(tmp_path / "a.db", llm=ScriptedModel({"chunk_summary": lambda request: wrong})) as memory:
        chat = memory.conversation("web-42", user=USER)
        report = memory.backfill(USER, layers=["summaries"], delay_ms=0)
        assert (report.created, report.errors, report.calls) == (0, 1, 1)
        assert "the key is refused" in report.reasons[0]
        assert "stopped" in report.reasons[1]
        rebuilt = chat.rebuild("summaries")
        assert (rebuilt.ranges, rebuilt.id, len(rebuilt.errors)) == (0, "", 1)


def test_a_budget_ends_the_run_where_it_ends(tmp_path: Path) -> None:
    by_rules(tmp_path / "a.db")
    config = Config(durable=False, budget=Budget(tokens_per_day=1_000))
    with opened(tmp_path / "a.db", llm=model(), config=config) as memory:
        report = memory.backfill(USER, delay_ms=0)
        assert 0 < report.created < 5
        assert report.errors == 1
        assert "1,000 tokens" in report.reasons[0]


def test_economy_leaves_the_levels_to_the_rules(tmp_path: Path) -> None:
    by_rules(tmp_path / "a.db")
    with opened(tmp_path / "a.db", llm=model(), config=Config(durable=False, economy=True)) as memory:
        memory.backfill(USER, delay_ms=0)
        chat = memory.conversation("web-42", user=USER)
        assert [s.source for s in chat.summaries(2)] == ["rules 1"]
        assert {s.source.split(" ")[0] for s in chat.summaries(1)} == {"scripted:1"}
        assert memory.backfill(USER, delay_ms=0).created == 0


def test_episodes_of_a_chunk_are_made_again_and_put_back(tmp_path: Path) -> None:
    by_rules(tmp_path / "a.db", 6)
    told = ["- Walked for 21 minutes [3]", "NONE", "- Walked 21 minutes [3]\n- Walked 22 minutes [5]", "NONE"]
    with opened(tmp_path / "a.db", llm=model(episodes=told)) as memory:
        chat = memory.conversation("web-42", user=USER)
        chat.rebuild("episodes")
        assert [f.text for f in chat.episodes()] == ["Walked for 21 minutes"]
        report = chat.rebuild("episodes")
        assert [f.text for f in chat.episodes()] == ["Walked 21 minutes", "Walked 22 minutes"]
        chat.restore(report.id)
        assert [f.text for f in chat.episodes()] == ["Walked for 21 minutes"]
        assert memory.doctor().findings == ()


@pytest.mark.parametrize("given", [{"layers": ["chunks"]}, {"limit": -1}, {"delay_ms": -1}])
def test_what_cannot_be_backfilled_is_refused(given: dict[str, Any]) -> None:
    with opened() as memory, pytest.raises(BadInput):
        memory.backfill(USER, **given)


def test_an_answer_that_was_cut_off_is_asked_on(tmp_path: Path) -> None:
    """The rest of the range is read by further calls."""
    by_rules(tmp_path / "a.db")
    cut = Answer("home,lives_in,Lisbon,0.95,,set,,,13,I live in Lisbon\nfood,eats,fi", "scripted:1", finish="length")
    with opened(tmp_path / "a.db", llm=ScriptedModel({"facts": [cut]})) as memory:
        report = memory.conversation("web-42", user=USER).rebuild("facts", end_seq=30)
        assert report.calls == 2
        assert report.errors == ()
        assert memory.doctor().findings == ()


def test_the_memory_says_what_was_used_for_whom(tmp_path: Path) -> None:
    by_rules(tmp_path / "a.db", 6)
    with Memory(tmp_path / "a.db", embedder=None, llm=model()) as memory:
        memory.conversation("web-42", user=USER).rebuild("summaries")
        assert [(u.layer, u.calls) for u in memory.usage(by=["layer"])] == [("chunk_summary", 2)]
