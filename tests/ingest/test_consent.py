"""Which choice holds, and which claims are of a topic that is never remembered."""

from __future__ import annotations

import pytest

from holdfast.ingest.consent import effective_consent, matches_blocked_topic
from holdfast.store import ConsentRow
from holdfast.types import Candidate, ConsentState


@pytest.mark.parametrize(
    ("chosen", "subject", "state"),
    [
        ([], "self", "active"),
        ([("", "paused")], "self", "paused"),
        ([("", "paused")], None, "paused"),
        ([("rex", "paused")], "self", "active"),
        ([("rex", "paused")], "rex", "paused"),
        ([("rex", "paused")], None, "active"),
        ([("", "paused"), ("rex", "opted-out")], "rex", "opted-out"),
        ([("", "opted-out"), ("rex", "paused")], "rex", "opted-out"),
    ],
)
def test_the_strictest_choice_holds(chosen: list[tuple[str, ConsentState]], subject: str | None, state: str) -> None:
    rows = [ConsentRow(about, choice, 0) for about, choice in chosen]

    assert effective_consent(rows, subject) == state


def claim(category: str, value: str, text: str) -> Candidate:
    return Candidate("attribute", "self", category, "key", value, text, 1.0, 1, text, 0)


@pytest.mark.parametrize(
    ("topics", "hit"),
    [
        (["health"], True),
        (["diabetes"], True),
        (["Diabetes type"], True),
        (["type 1 diabetes at work"], False),
        (["work"], False),
        (["the"], False),
        ([], False),
        (["work", "diabetes"], True),
    ],
)
def test_a_topic_is_a_category_or_words_that_all_occur(topics: list[str], hit: bool) -> None:
    assert matches_blocked_topic(claim("health", "type 1 diabetes", "Has type 1 diabetes."), topics) is hit
