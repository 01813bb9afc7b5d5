"""Which questions had been answered before, from plain values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from holdfast import Memory
from holdfast.jobs.metrics import questions
from holdfast.jobs.usage import count_used
from holdfast.testing.fakes import FakeClock
from holdfast.types import Message

START = datetime(2026, 1, 1, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("Where do you live?", ["Where do you live?"]),
        ("Noted. Where do you live? I ask for the trains.", ["Where do you live?"]),
        ('She asked "why" and left.', []),
        ("どこに住んでいますか？", ["どこに住んでいますか？"]),
        ("Really?! Where (in town?)", ["Where (in town?)"]),
        ("No question here.", []),
    ],
)
def test_the_questions_of_a_message_are_its_sentences_that_ask(said, asked):
    messages = [Message("user", "Is this one?", seq=1), Message("assistant", said, seq=2)]

    assert [one.text for one in questions(messages)] == asked


def test_a_question_knows_the_words_that_answer_it():
    messages = [Message("assistant", "Well?", seq=1), Message("user", "a", seq=2), Message("user", "b", seq=3)]
    messages += [Message("assistant", "So?", seq=4)]

    assert [one.answered_in for one in questions(messages)] == [(2, 3), ()]


@pytest.mark.parametrize(
    ("told", "question", "answer", "known"),
    [
        ("I live in Porto.", "Where do you live?", "In Porto.", "Lives in Porto."),
        ("I live in Porto.", "Can you tell me where you live?", "In Porto.", "Lives in Porto."),
        ("I'm vegetarian.", "Any dietary wishes?", "I'm vegetarian.", "Is vegetarian."),
        ("I'm vegetarian.", "Any dietary wishes?", "Something warm.", None),  # it may have been about today
        ("I live in Porto.", "What is the weather like?", "Fine. I live in Porto.", None),
        ("I live in Porto.", "How are you?", "Fine.", None),
        ("It rains.", "Where do you live?", "I live in Porto.", None),  # it was not known before
    ],
)
def test_a_question_is_repeated_when_its_answer_had_been_said(told, question, answer, known):
    clock = FakeClock(START)
    with Memory(embedder=None, clock=clock) as memory:
        chat = memory.conversation("c", user="ana")
        for said in ((told, question), (answer, "I see.")):
            chat.record(*said)
            clock.advance(minutes=1)
        found = memory.admin.metrics()

    assert [one.fact.text for one in found.asked_again] == ([known] if known else [])
    assert found.measure("repeated_question_rate").numerator == len(found.asked_again)


def test_a_value_that_had_been_replaced_answers_nothing():
    clock = FakeClock(START)
    with Memory(embedder=None, clock=clock) as memory:
        chat = memory.conversation("c", user="ana")
        for said in (("I live in Porto.", "Nice."), ("I don't live in Porto any more.", "Where do you live?")):
            chat.record(*said)
            clock.advance(minutes=1)

        assert memory.admin.metrics().asked_again == ()


def test_imported_conversations_are_judged_by_when_things_were_said():
    """A fact that is read today from words of last year had answered a question of last year."""
    with Memory(embedder=None, clock=FakeClock(START)) as memory:
        at = START - timedelta(days=300)
        lines = [("user", "I live in Porto."), ("assistant", "Where do you live?")]
        chat = memory.conversation("c", user="ana")
        chat.append([Message(role, text, at=at + timedelta(minutes=n)) for n, (role, text) in enumerate(lines)])
        memory.digest()

        assert [one.question for one in memory.admin.metrics().asked_again] == ["Where do you live?"]


@pytest.mark.parametrize(
    ("reply", "item", "question", "expected"),
    [
        ("A vegetarian francesinha, as in Porto.", "I am vegetarian and live in Porto.", "What should I cook?", True),
        ("Rice, perhaps.", "I am vegetarian and live in Porto.", "What should I cook?", False),
        ("In Porto.", "I live in Porto.", "Where do I live?", True),  # all that the item has beyond the question
        ("You live there.", "I live there.", "Do I live there?", False),  # nothing of its own
    ],
)
def test_a_reply_takes_up_what_it_shares_telling_words_with(reply, item, question, expected):
    assert count_used(reply, [item], question) == int(expected)
