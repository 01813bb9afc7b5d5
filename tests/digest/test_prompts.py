"""The examples in the prompt files: what a model is shown can be read, and the answer passes all that looks at it."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from holdfast.digest.answers import (
    build_summary,
    episode_answers,
    fact_answers,
    is_foreign,
    parse_parts,
    parse_rolling_summary,
    parse_summary,
)
from holdfast.digest.answers.fact_answers import PromptWindow
from holdfast.digest.grounding import ground
from holdfast.llm.prompts import format_sections, load
from holdfast.llm.protocol import Answer
from holdfast.reconcile.registry import registry
from holdfast.text.render import parse_blocks
from holdfast.text.terms import count_tokens, language_of
from holdfast.types import Message, Summary

LINE = re.compile(r"(\d+) (user|assistant|tool|system)(?: ([^(:]+?))?(?: \((\d{4}-\d\d-\d\d)\))?: (.*)", re.S)
NAMES = (
    "fact_extraction", "character", "episodes", "chunk_summary", "meta_summary", "rolling_summary", "combined", "story",
)  # fmt: skip
EXAMPLES = [
    pytest.param(name, example, id=f"{name}: {example.title}") for name in NAMES for example in load(name).examples
]


def messages(lines):
    """The messages that an example shows; the day stands where it changes."""
    found, day = {}, None
    for line in lines:
        seq, role, name, date, text = LINE.fullmatch(line).groups()
        day = datetime.fromisoformat(date).replace(tzinfo=UTC) if date else day
        found[int(seq)] = Message(role, text, name=name, at=day, seq=int(seq))
    return found


def shown(example):
    sections = dict(parse_blocks(example.text))
    return sections, messages(sections["read"]) if "messages " not in sections["read"][0][:9] else {}


def stored(draft, number, at):
    """A draft as the summary of one conversation on one day."""
    return Summary(
        id=f"sum_{number}", level=1, start_seq=1, end_seq=2, exchanges=1, text=draft.text, themes=(), concerns=(), actions=(),
        block=0, version=1, children=(), created_at=at, source="m", conversation=f"c{number}", first_at=at, last_at=at,
    )  # fmt: skip


def of(name):
    return [param for param in EXAMPLES if param.values[0] == name]


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_an_example_is_written_as_prompts_are(name, example):
    assert format_sections(parse_blocks(example.text)) == example.text


@pytest.mark.parametrize(("name", "example"), of("fact_extraction") + of("combined") + of("character"))
def test_every_fact_of_an_example_is_grounded_and_fits_its_category(name, example):
    sections, told = shown(example)
    before = messages(sections.get("before", ()))
    if name == "character":  # the assistant is the one who states something
        roles = {"user": "assistant", "assistant": "user"}
        told = {seq: replace(message, role=roles[message.role]) for seq, message in told.items()}
    text = example.answer if name != "combined" else parse_parts(example.answer)["facts"]
    found = fact_answers.parse_fact_rows(text, PromptWindow(told, before=tuple(before.values())), source="m")
    _, refused = ground(found.candidates, told, min_confidence=0.7)
    categories = registry({})

    assert (found.dropped, refused, found.problems) == ([], [], ())
    assert [categories.refusal(c) for c in found.candidates if c.kind == "attribute"].count("") == sum(
        c.kind == "attribute" for c in found.candidates
    )
    assert bool(found.candidates) == ("NONE" not in text)


@pytest.mark.parametrize(("name", "example"), of("episodes") + of("combined"))
def test_every_episode_of_an_example_rests_on_what_users_said(name, example):
    _, told = shown(example)
    text = example.answer if name == "episodes" else parse_parts(example.answer)["episodes"]
    found = episode_answers.parse_bullets(text, list(told.values()), source="m")
    grounded, refused = ground(found.candidates, told, min_confidence=0.7)

    assert (found.dropped, refused) == ([], [])
    assert len({c.text for c, _ in grounded}) == sum(line.startswith("- ") for line in text.splitlines())


@pytest.mark.parametrize(("name", "example"), of("chunk_summary") + of("meta_summary") + of("combined"))
def test_every_summary_of_an_example_is_taken_whole(name, example):
    sections, _ = shown(example)
    parts = {k: v for k, v in parse_parts(example.answer).items() if k not in ("episodes", "facts")}
    draft = build_summary(parts, sections["read"], exchanges=1, source="m")

    assert draft.text.startswith(parts["summary"])
    assert draft.themes
    if name == "meta_summary":
        assert parts["progression"] in draft.text
    whole = parse_summary(Answer(example.answer, "m"), sections["read"], exchanges=1, source="m")
    assert name == "combined" or whole == draft


@pytest.mark.parametrize(("name", "example"), of("rolling_summary"))
def test_every_running_summary_of_an_example_is_taken_whole(name, example):
    sections, _ = shown(example)

    assert parse_rolling_summary(Answer(example.answer, "m"), sections["read"]) == example.answer


@pytest.mark.parametrize(("name", "example"), of("story"))
def test_every_line_of_a_story_of_an_example_rests_on_its_summaries(name, example):
    summaries = []
    for line in dict(parse_blocks(example.text))["read"]:
        _, day, text = re.fullmatch(r"(\d+) \((\S+)\): (.*)", line).groups()
        at = datetime.fromisoformat(day).replace(tzinfo=UTC)
        summaries.append(build_summary({"summary": text}, [], exchanges=1, source="m"))
        summaries[-1] = stored(summaries[-1], len(summaries), at)
    found = episode_answers.parse_story(Answer(example.answer, "m"), summaries)

    assert [line.dated for line in found] == [line.rpartition(" [")[0] for line in example.answer.splitlines()]


@pytest.mark.parametrize(
    ("name", "example"), of("episodes") + of("chunk_summary") + of("meta_summary") + of("rolling_summary")
)
def test_an_example_answers_in_the_language_of_the_chat(name, example):
    sections, _ = shown(example)

    assert not is_foreign(example.answer, sections["read"])


@pytest.mark.parametrize("name", NAMES)
def test_examples_come_in_several_languages(name):
    spoken = {language_of("\n".join(dict(parse_blocks(example.text))["read"])) for example in load(name).examples}

    assert {"en", "ko"} <= spoken
    assert len(spoken) >= 3


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("fact_extraction", 510), ("character", 520), ("episodes", 330), ("chunk_summary", 320), ("meta_summary", 350),
        ("rolling_summary", 260), ("combined", 645), ("story", 320),
    ],
)  # fmt: skip
def test_instructions_stay_short(name, most):
    """They are sent with every call: 100 messages must not cost more than the budget says."""
    assert count_tokens(load(name).system) <= most
