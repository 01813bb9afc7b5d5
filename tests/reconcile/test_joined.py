"""A model joins sentences: only what they say, in their own words, and a part of it can end."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Memory
from holdfast.llm.prompts import load
from holdfast.llm.protocol import Answer, ModelError, Request
from holdfast.reconcile.wording import may_gather, unfaithful
from holdfast.testing.clock import FakeClock
from holdfast.text.render import parse_blocks

from .sentences import believed, opened, say

DAY = 86_400
PAIRS = tomllib.loads((Path(__file__).parent / "pairs.toml").read_text(encoding="utf-8"))
DOG = ["I have a dog named Rex.", "Rex is a border collie."]
GARDEN = ["The garden has roses.", "The garden has a pond with goldfish."]
JOINED = "The garden has roses and a pond with goldfish."


@pytest.mark.parametrize(
    ("text", "sentences", "why"),
    [
        ("I have a dog named Rex, a border collie.", DOG, ""),
        ("I have a dog named Rex and Rex is a border collie.", DOG, ""),
        (JOINED, GARDEN, ""),
        ("I like tea and coffee.", ["I like tea.", "I like coffee."], ""),
        ("I have a cat named Tom.", ["I have a cat.", "I have a cat named Tom."], ""),
        ("I eat meat substitutes.", ["I eat meat substitutes.", "I eat meat."], "one of the sentences does not stand in it"),
        ("I smoke at parties.", ["I smoke.", "I smoke at parties."], "one of the sentences does not stand in it"),
        ("I have a dog named Rex.", DOG, "a word is missing"),
        ("I have a dog named Max, a border collie.", [DOG[0].replace("Rex", "Max"), DOG[1]], "a word is missing"),
        ("I have two dogs named Rex, a border collie.", DOG, "a word is missing"),
        ("I have a dog named Rex, a border collie, since 2019.", DOG, "a number is new"),
        ("I have a dog named Rex, a lovely border collie.", DOG, "a word is new"),
        ("I have a dog named Rex, not a border collie.", DOG, "it denies something, or no longer does"),
        ("I had a dog named Rex, a border collie.", DOG, "a word is missing"),
        ("My rent is 620 euros.", ["My rent is 620 euros.", "My rent rose by 40 euros."], "a number is missing"),
        ("My brother is a nurse and my sister is a doctor.", ["My brother is a doctor.", "My sister is a nurse."],
         "one of the sentences does not stand in it"),
        ("My brother is a doctor in Porto.", ["My brother is a doctor.", "I am a doctor in Porto."],
         "a word is missing"),
        ("Anna likes Ben and Ben likes Carl.", ["Ben likes Anna.", "Carl likes Ben."], "one of the sentences does not stand in it"),
        ("I prefer JavaScript over Python.", ["I prefer Python over JavaScript.", "I prefer Python."],
         "one of the sentences does not stand in it"),
        ("x " * 300, DOG, "it is too long"),
        ("Ich habe einen Hund, der Rex heißt.", DOG, "it is not written in English words"),
    ],
)  # fmt: skip
def test_a_text_says_what_its_sentences_say_and_nothing_else(text: str, sentences: list[str], why: str) -> None:
    assert unfaithful(text, sentences) == why


@pytest.mark.parametrize("example", load("statements").examples, ids=lambda example: example.title)
def test_the_answers_of_the_prompts_examples_are_taken(example) -> None:  # type: ignore[no-untyped-def]
    ((_, sentences),) = parse_blocks(example.text)
    text = example.answer.removeprefix("MERGED: ")

    assert text == "APART" or unfaithful(text, sentences) == ""
    assert text == "APART" or all(may_gather(one, other) for one, other in permutations(sentences, 2))


WORDS = st.sampled_from("I we my sister has a dog house in Porto 7 three not over and Rex likes".split())


@given(st.lists(WORDS, min_size=1, max_size=12).map(" ".join))
def test_whatever_a_model_says_no_number_name_or_negation_is_lost_or_new(text: str) -> None:
    sentences = ["My sister has a dog named Rex.", "Rex likes the house in Porto."]
    if unfaithful(text, sentences) == "":
        assert {"sister", "dog", "Rex", "Porto"} <= set(text.replace(",", "").split())
        assert not {"7", "three", "not", "over"} & set(text.split())


def test_no_model_is_asked_to_join_what_contradicts() -> None:
    assert [pair for pair in PAIRS["contra"] if may_gather(*pair)] == []


@pytest.mark.parametrize("kind", ["contra", "distinct", "unrelated", "hard"])
def test_neither_sentence_of_a_pair_may_be_left_out_whatever_a_model_says(kind: str) -> None:
    assert [pair for pair in PAIRS[kind] for text in pair if unfaithful(text, pair) == ""] == []


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(datetime(2026, 1, 5, 9, tzinfo=UTC))


def joining(*answers: str):  # type: ignore[no-untyped-def]
    left = list(answers)

    def joins(request: Request) -> str:
        return left.pop(0) if left else "APART"

    return joins


@pytest.fixture
def memory(clock: FakeClock) -> Iterator[Memory]:
    with opened(clock, joins=joining(f"MERGED: {JOINED}"), consolidate_similarity=0.8) as memory:
        say(memory, *GARDEN)
        memory.digest()
        yield memory
        memory.digest()
        assert memory.doctor().findings == ()


def test_the_models_text_stands_for_the_sentences_and_names_its_prompt(memory: Memory) -> None:
    (each,) = memory.person("ana").consolidate().merged

    assert each.fact.text == JOINED
    assert each.fact.source == f"scripted:1 {load('statements').digest}"
    assert [said.quote for said in each.fact.evidence] == GARDEN
    assert believed(memory) == [JOINED]


def test_what_ends_a_part_leaves_the_rest(memory: Memory, clock: FakeClock) -> None:
    memory.person("ana").consolidate()
    clock.advance(seconds=DAY)
    say(memory, "The garden has no roses.", conversation="b")
    memory.digest()

    assert believed(memory) == [GARDEN[1], "The garden has no roses."]


def test_erasing_the_message_of_a_part_leaves_the_rest(memory: Memory) -> None:
    (each,) = memory.person("ana").consolidate().merged
    memory.conversation("a", user="ana").forget(each.fact.evidence[0].seq)

    assert believed(memory) == [GARDEN[1]]
    assert "roses" not in str(memory.person("ana").export())


@pytest.mark.parametrize(
    "answer",
    [
        "MERGED: The garden has 12 roses and a pond with goldfish.",
        "MERGED: The garden has roses and no pond with goldfish.",
        "MERGED: Anna's garden has roses and a pond with goldfish.",
        "MERGED: The garden has flowers.",
        "The user is planning a wedding.",
        "Sure! Here is the merged sentence:\nThe garden has roses and a pond with goldfish.",
        "I'm sorry, but I can't help with that.",
        '{"merged": "The garden has roses and a pond with goldfish"}',
        "MERGED:",
        "APART",
        "NONE",
        "x" * 200_000,
    ],
)
def test_what_the_model_may_not_say_is_not_believed(clock: FakeClock, answer: str) -> None:
    with opened(clock, joins=joining(answer), consolidate_similarity=0.8) as memory:
        say(memory, *GARDEN)
        memory.digest()
        report = memory.person("ana").consolidate()

        assert believed(memory) == sorted(GARDEN)
        assert report.merged == ()
        assert bool(report.refused) == (answer not in ("APART", "NONE", "MERGED:"))
        assert report.tokens > 0
        assert memory.doctor().findings == ()


def test_a_model_that_fails_leaves_the_sentences_and_the_job_shows_why(clock: FakeClock) -> None:
    def fails(request: Request) -> Answer:
        raise ModelError("connection refused")

    with opened(clock, joins=fails, consolidate_similarity=0.8) as memory:
        say(
            memory,
            *GARDEN,
            *(
                f"A {word} stands in the cellar."
                for word in "lamp desk bed stove kiln loom easel anvil harp sledge cradle trunk piano barrel ladder mirror chair oven".split()
            ),
        )
        memory.digest()

        assert set(GARDEN) <= set(believed(memory))
        (job,) = [job for job in memory.jobs() if job.kind == "consolidate"]
        assert "connection refused" in job.reason
        with pytest.raises(ModelError):
            memory.person("ana").consolidate()


def test_nothing_that_was_written_by_hand_is_put_in_other_words(clock: FakeClock) -> None:
    with opened(clock, joins=joining(f"MERGED: {JOINED}"), consolidate_similarity=0.8) as memory:
        for sentence in GARDEN:
            memory.person("ana").remember(sentence)

        assert memory.person("ana").consolidate().merged == ()
        assert believed(memory) == sorted(GARDEN)
