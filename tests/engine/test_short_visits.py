"""Visits of a few messages, months apart, make one dated story, with and without a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from holdfast import Config, Memory
from holdfast.llm.protocol import Request
from holdfast.testing.fakes import FakeClock
from holdfast.testing.model import ScriptedModel

VISITS = {
    "march": [
        ("Luna has been limping on her left front leg since Sunday.", "Did she jump from somewhere?"),
        ("Yes, from the balcony. She still eats well.", "Keep her indoors and rest her for a week."),
        ("Ok, we will try that.", "Call the vet if it swells."),
    ],
    "june": [
        ("Luna limps less, but she scratches her ears a lot.", "Any dark wax in the ears?"),
        ("Yes, dark brown. The vet gave us Stronghold drops today.", "Apply them once a month."),
        ("Good, once a month then.", "Come back if it goes on."),
    ],
    "september": [
        ("Luna stopped scratching after the second dose.", "Great news."),
        ("But Luna weighs 5.2 kg now, a bit too much.", "Cut the dry food by a fifth."),
        ("We feed her 60 g a day, so 48 g then.", "Exactly."),
        ("Thanks, bye!", "See you."),
    ],
}
MARKS = ("limping", "Stronghold", "stopped scratching")


def told(request: Request) -> str:
    """Answer as a model would, in words of what it was shown."""
    if request.layer == "story":
        numbered = [line for line in request.text.split("\n") if any(mark in line for mark in MARKS)]
        assert len(numbered) == 3
        return "\n".join(
            (
                "- Luna has been limping on her left front leg since Sunday [1]",
                "- The vet gave us Stronghold drops today [2]",
                "- Luna stopped scratching after the second dose [3]",
            )
        )
    if request.layer == "combined":
        line = next(line for line in request.text.split("\n") if any(mark in line for mark in MARKS))
        return f"SUMMARY: {line.partition(': ')[2] or line}\nTHEMES: -\nCONCERNS: -\nACTIONS: -\nEPISODES:\nNONE\nFACTS:\nNONE"
    return "NONE"


def visits(memory: Memory, clock: FakeClock, *, turns: int = 9, end: bool = False) -> None:
    for name, said in VISITS.items():
        chat = memory.conversation(name, user="elena", subject="luna")
        for user, assistant in said[:turns]:
            chat.record(user, assistant)
            clock.advance(minutes=1)
        if end:
            chat.end()
        memory.digest()
        clock.advance(days=91)
        memory.digest()


@pytest.mark.parametrize("end", [True, False], ids=["end()", "silence"])
@pytest.mark.parametrize("turns", [9, 2], ids=["whole", "two exchanges"])
@pytest.mark.parametrize("model", [None, told], ids=["rules", "model"])
def test_three_short_visits_months_apart_make_a_story(
    end: bool, turns: int, model: Callable[[Request], str] | None
) -> None:
    clock = FakeClock(datetime(2026, 3, 2, 18, tzinfo=UTC))
    llm = ScriptedModel(otherwise=model) if model else None
    with Memory(llm=llm, embedder=None, clock=clock) as memory:
        visits(memory, clock, turns=turns, end=end)

        story = memory.user("elena").story("luna")
        assert [one.conversation for line in story.lines for one in line.sources] == list(VISITS)
        assert [f"{line.first_at:%Y-%m}" for line in story.lines] == ["2026-03", "2026-06", "2026-08"]
        shown = memory.conversation("new", user="elena", subject="luna").context("Hi, we're back. Is she any better?")
        earlier = shown.section("earlier")
        assert [mark for mark in MARKS if mark in earlier.text] == list(MARKS)
        assert [item[:12].strip('[-" ')[:7] for item in earlier.items] == ["2026-03", "2026-06", "2026-08"]
        assert memory.doctor().ok
        if llm and not end:
            calls = Counter(request.layer for request in llm.asked)
            assert calls["combined"] + calls["facts"] <= 3 * (2 if turns == 9 else 1)


def test_without_a_model_the_story_says_what_was_advised() -> None:
    clock = FakeClock(datetime(2026, 3, 2, 18, tzinfo=UTC))
    with Memory(embedder=None, clock=clock) as memory:
        visits(memory, clock)

        assert "Keep her indoors and rest her for a week" in memory.user("elena").story("luna").lines[0].text


def test_a_visit_that_only_silence_ended_costs_no_call_for_its_summary() -> None:
    clock = FakeClock(datetime(2026, 3, 2, 18, tzinfo=UTC))
    model = ScriptedModel()
    with Memory(llm=model, embedder=None, clock=clock, config=Config(story_tokens=0)) as memory:
        chat = memory.conversation("march", user="elena", subject="luna")
        for user, assistant in VISITS["march"][:2]:
            chat.record(user, assistant)
        memory.digest()
        clock.advance(hours=7)
        memory.digest()
        read = Counter(request.layer for request in model.asked)
        assert chat.summaries() == []
        clock.advance(days=7)
        memory.digest()

        assert [(one.start_seq, one.end_seq) for one in chat.summaries()] == [(1, 4)]
        assert Counter(request.layer for request in model.asked) == read == {"facts": 1}


def test_what_the_model_has_not_read_after_a_week_is_read_with_the_summary() -> None:
    clock = FakeClock(datetime(2026, 3, 2, 18, tzinfo=UTC))
    model = ScriptedModel()
    with Memory(llm=model, embedder=None, clock=clock) as memory:
        chat = memory.conversation("march", user="elena", subject="luna")
        chat.record(*VISITS["march"][0])
        clock.advance(days=8)
        memory.digest()

        assert len(chat.summaries()) == 1
        assert Counter(request.layer for request in model.asked) == {"combined": 1}


def test_a_chat_that_goes_on_after_six_days_is_not_cut() -> None:
    clock = FakeClock(datetime(2026, 3, 2, 18, tzinfo=UTC))
    with Memory(embedder=None, clock=clock) as memory:
        chat = memory.conversation("march", user="elena", subject="luna")
        for user, assistant in VISITS["march"][:2]:
            chat.record(user, assistant)
            memory.digest()
            clock.advance(days=6)
        memory.digest()

        assert chat.summaries() == []


def test_what_no_model_has_read_of_a_visit_is_read_when_the_user_returns():
    clock = FakeClock(datetime(2026, 3, 2, 18, tzinfo=UTC))
    llm = ScriptedModel()
    with Memory(embedder=None, llm=llm, clock=clock) as memory:
        chat = memory.conversation("c", user="elena")
        for said, reply in (("hi", "Any allergies?"), ("Peanuts.", "Noted.")):
            chat.record(said, reply)
        memory.digest()
        clock.advance(days=8)
        memory.digest()
        assert [summary.end_seq for summary in chat.summaries()] == [4]
        assert llm.asked == []
        for number in range(14):
            chat.record(f"Tell me about the history of town {number}. " + "I read a lot about it. " * 20, "Gladly.")
            clock.advance(minutes=1)
        memory.digest()

        assert any("Peanuts." in request.text.rpartition("<read>")[2] for request in llm.asked)
