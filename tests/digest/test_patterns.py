"""Every example of every pattern file is a test."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.digest.grammar import languages, load_language
from holdfast.digest.grounding import ground
from holdfast.digest.rules import extract_facts, may_end_facts, may_state_facts
from holdfast.reconcile.registry import registry
from holdfast.text import plainly_lowered
from holdfast.types import Candidate, Message

OPEN = {"dietary", "medication", "favorite", "family", "budget", "appointment", "pets", "tech"}  # keyed by a word
AT = datetime(2024, 5, 15, 12, tzinfo=UTC)  # a Wednesday


def examples() -> Iterator[Any]:
    for code in languages():
        rules = load_language(code)
        assert rules is not None
        for pattern in (*rules.patterns, *rules.answers):
            for number, example in enumerate(pattern.examples):
                yield pytest.param(code, example, id=f"{code}-{pattern.id}-{number}")


def learned(code: str, example: dict[str, Any]) -> list[Candidate]:
    message = Message("user", example["message"], seq=2, at=AT)
    before = Message("assistant", example["question"], seq=1, at=AT) if "question" in example else None
    found = extract_facts(
        message,
        subject=example.get("subject", "self"),
        others=example.get("known", {}),
        before=before,
        language_code=code,
    )
    return [candidate for candidate, _ in ground(found, {2: message}, min_confidence=0.7)[0]]


def shown(candidate: Candidate) -> str:
    sign = "- " if candidate.op == "retract" else ""
    subject = "" if candidate.subject == "self" else f"{candidate.subject}: "
    return f"{sign}{subject}{candidate.category}/{candidate.key} = {candidate.value}"


@pytest.mark.parametrize(("code", "example"), list(examples()))
def test_example_gives_exactly_these_facts(code: str, example: dict[str, Any]) -> None:
    """What an example says is what is read from it: no fact less, none more."""
    assert sorted(example["facts"]) == sorted(shown(candidate) for candidate in learned(code, example))


@pytest.mark.parametrize(("code", "example"), list(examples()))
def test_gate_opens_for_every_positive_example(code: str, example: dict[str, Any]) -> None:
    """The cheap gate never holds back a message that states a fact."""
    if example["facts"] and "question" not in example:
        assert may_state_facts(example["message"], code) or may_end_facts(example["message"], code)


@pytest.mark.parametrize("code", languages())
def test_pattern_ids_are_unique_and_every_pattern_has_examples(code: str) -> None:
    """A pattern without an example is a pattern nobody has seen work."""
    rules = load_language(code)
    assert rules is not None
    patterns = (*rules.patterns, *rules.answers)

    assert len({pattern.id for pattern in patterns}) == len(patterns)
    assert [pattern.id for pattern in patterns if not any(example["facts"] for example in pattern.examples)] == []


@pytest.mark.parametrize("code", languages())
def test_every_expression_compiles(code: str) -> None:
    """Expressions compile on first use; here all of them do."""
    rules = load_language(code)
    assert rules is not None

    assert all(list(pattern.fitting(None)) for pattern in (*rules.patterns, *rules.answers))


@pytest.mark.parametrize("code", languages())
def test_a_pattern_matches_no_text_without_the_words_that_it_is_said_to_need(code: str) -> None:
    """What is left out before it is compiled would have found nothing: in the examples of all patterns."""
    rules = load_language(code)
    assert rules is not None
    patterns = (*rules.patterns, *rules.answers)
    said = [
        str(word) for one in patterns for example in one.examples for word in example.values() if isinstance(word, str)
    ]
    texts = [(text, plainly_lowered(text)) for text in {*said, *(text.upper() for text in said)}]
    forms = [(form, rules.expression(form.source, one.id).regex) for one in patterns for form in one.templates]
    needing = [(form, regex) for form, regex in forms if form.needs]

    assert len(needing) > len(forms) / 4
    assert [
        form.source for form, regex in needing for text, low in texts if not form.fits(low) and regex.search(text)
    ] == []


@pytest.mark.parametrize("code", languages())
def test_every_category_and_key_is_declared(code: str) -> None:
    """A pattern can only write where the registry says how facts join."""
    rules, known = load_language(code), registry().categories
    assert rules is not None
    undeclared = [
        f"{pattern.id}: {pattern.category}/{pattern.key}"
        for pattern in (*rules.patterns, *rules.answers)
        if "{" not in pattern.category + pattern.key
        and (pattern.category not in known or pattern.key not in known[pattern.category].keys)
        and pattern.category not in OPEN
    ]

    assert undeclared == []


@pytest.mark.parametrize("code", languages())
def test_every_value_in_an_example_has_the_declared_type(code: str) -> None:
    """What the examples give is what the registry would accept."""
    rules, known = load_language(code), registry()
    assert rules is not None
    refused = [
        (candidate.category, candidate.key, candidate.value, known.refusal(candidate))
        for pattern in (*rules.patterns, *rules.answers)
        for example in pattern.examples
        for candidate in learned(code, example)
        if known.refusal(candidate)
    ]

    assert refused == []
