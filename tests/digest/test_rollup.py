"""Summaries of summaries: what comes back, the story in order, and a size that does not grow."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from holdfast.digest.summarize import SummaryDraft, summarize_chunk, summarize_level
from holdfast.types import Message, Summary

MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)
STAMP = re.compile(r"\[\d{4}-\d{2}-\d{2}\] ")


def talk(*lines: str) -> list[Message]:
    """Messages from ``"Priya: text"``, ``"assistant: text"``; a minute passes between them."""
    messages = []
    for seq, line in enumerate(lines, 1):
        speaker, _, content = line.partition(": ")
        role = speaker if speaker in ("user", "assistant", "tool", "system") else "user"
        name = None if role == speaker else speaker
        messages.append(Message(role, content, name=name, at=MONDAY + timedelta(minutes=seq), seq=seq))
    return messages


def summary(draft: SummaryDraft, number: int, start: int, end: int, level: int = 1) -> Summary:
    return Summary(
        f"s{level}-{number}",
        level,
        start,
        end,
        draft.exchanges,
        draft.text,
        draft.themes,
        draft.concerns,
        draft.actions,
        number,
        1,
        (),
        MONDAY,
        draft.source,
    )


def letters(text: str) -> str:
    """*text* without everything that trimming may touch: only letters and digits are left."""
    return "".join(ch for ch in text.lower() if ch.isalnum())


def words(text: str) -> int:
    return len(text.split())


class TestARollUp:
    """Level 2 and above."""

    WEEKS = (
        talk(
            "Mia: Luna eats grain-free food since Monday. I'm worried about her itching.",
            "assistant: I recommend an oatmeal bath twice a week.",
        ),
        talk(
            "Mia: The itching got worse after the oatmeal bath, and I'm worried about her itching at night.",
            "assistant: Stop the bath and switch to salmon food.",
        ),
        talk(
            "Mia: Luna's itching is gone since we switched to salmon food!",
            "assistant: Keep the salmon food for six weeks.",
        ),
    )

    def children(self) -> list[Summary]:
        drafts = [summarize_chunk(messages) for messages in self.WEEKS]
        return [summary(draft, n, 10 * n + 1, 10 * n + 10) for n, draft in enumerate(drafts)]

    def test_says_what_comes_back_and_how_often(self) -> None:
        text = summarize_level(self.children()).text

        assert re.search(r"^Comes up again and again: .*itching \(3/3\)", text, re.MULTILINE)

    def test_tells_the_story_in_order(self) -> None:
        text = summarize_level(self.children()).text
        marks = ["First (1–10):", "grain-free", "Later (11–20):", "got worse", "Now (21–30):", "is gone"]
        places = [text.find(mark) for mark in marks]

        assert -1 not in places
        assert places == sorted(places)

    def test_a_concern_that_comes_back_is_named_in_its_latest_words(self) -> None:
        draft = summarize_level(self.children())

        assert "worried about her itching at night" in draft.concerns[0]
        assert "Concern (2/3): " in draft.text

    def test_exchanges_add_up(self) -> None:
        assert summarize_level(self.children()).exchanges == 3

    def test_is_the_same_whatever_order_the_children_are_handed_in(self) -> None:
        assert summarize_level(self.children()) == summarize_level(self.children()[::-1])

    @pytest.mark.parametrize("count", [3, 7, 40])
    def test_the_size_does_not_grow_with_level_or_children(self, count: int) -> None:
        level = [
            summary(
                summarize_chunk(
                    talk(*(f"Ana: In week {n} of {count} I paid {n * m} euros for the flat number {m} in Porto, and I was worried." for m in range(9)))
                ),
                n,
                n * 10 + 1,
                n * 10 + 10,
            )
            for n in range(count * 3)
        ]  # fmt: skip
        for height in (2, 3, 4):
            groups = [level[i : i + count] for i in range(0, len(level), count)]
            drafts = [summarize_level(group) for group in groups]
            level = [
                summary(draft, n, group[0].start_seq, group[-1].end_seq, height)
                for n, (draft, group) in enumerate(zip(drafts, groups, strict=True))
            ]

            assert all(words(each.text) <= 220 for each in level)

    def test_sentences_of_a_higher_level_were_said_too(self) -> None:
        said = letters(" ".join(m.content for week in self.WEEKS for m in week))
        draft = summarize_level(self.children())
        story = [line.split("): ", 1)[1] for line in draft.text.split("\n") if re.match(r"(First|Later|Now) ", line)]
        told = [
            part
            for line in story
            for part in re.split(
                r"(?<=[.!?])\s+|…", STAMP.sub("", line.replace("Mia: ", "").replace("assistant: ", ""))
            )
        ]

        assert [part for part in told if letters(part) not in said] == []

    def test_children_written_as_prose_are_told_as_well(self) -> None:
        """A model writes paragraphs, not lines with names."""
        prose = SummaryDraft(
            "Priya plans a trip to Kyoto in May. She has a budget of $3,000.", ("Kyoto trip",), (), (), 5, "model"
        )
        draft = summarize_level([summary(prose, n, n * 10 + 1, n * 10 + 10) for n in range(3)])

        assert "Kyoto trip (3/3)" in draft.text
        assert "budget of $3,000" in draft.text


def test_what_improved_is_told_though_every_week_says_the_same_of_something_else() -> None:
    """Sentences that differ in their numbers alone come back most; the turn of the story is told before them."""
    turns = [
        "Luna: diarrhoea since Monday, three times a day.",
        "Luna: we changed her diet to rice and turkey, the diarrhoea is the same.",
        "Luna: the symptoms improved, her stool is firm.",
    ]
    children = []
    for week, turn in enumerate(turns):
        nights = [
            f"user: In week {week} she slept {5 + day} hours on day {day} and ate {100 + 10 * day} g of her food in the kitchen at home."
            for day in range(8)
        ]
        lines = [
            line for night in nights for line in (night, "assistant: Thank you, that helps me to follow her progress.")
        ]
        draft = summarize_chunk(talk(f"user: Week {week}: {turn}", "assistant: I see.", *lines))
        children.append(summary(draft, week, 18 * week + 1, 18 * week + 18))

    told = summarize_level(children).text

    assert [turn for turn in turns if turn not in told] == []
