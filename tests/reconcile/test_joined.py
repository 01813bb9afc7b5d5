"""A model joins sentences: only what they say, in their own words, and a part of it can end."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Memory
from holdfast.digest.answers import parse_merged_statements
from holdfast.embed import default_embedder
from holdfast.llm.prompts import load
from holdfast.llm.protocol import Answer, BadAnswer, ModelError, Request
from holdfast.reconcile.compare import find_unfaithful, may_join
from holdfast.testing.fakes import FakeClock
from holdfast.testing.model import ScriptedModel
from holdfast.text.render import parse_blocks

from .sentences import believed, opened, say

DAY = 86_400
PAIRS = tomllib.loads((Path(__file__).parent / "pairs.toml").read_text(encoding="utf-8"))
DOG = ["I have a dog named Rex.", "Rex is a border collie."]
THINGS = (
    ("cellar", "lamp desk bed stove kiln loom easel anvil harp sledge cradle trunk piano barrel ladder mirror chair oven"),
    ("attic", "crib flute organ globe tent raft kayak canoe sled skis oar sail mast keel hull helm deck bow pump hose"),
    ("shed", "rake hoe spade axe saw drill plane vice clamp wrench hammer nail bolt screw gear lever crank wheel belt chain"),
)  # fmt: skip
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
        ("I have two dogs named Rex, a border collie.", DOG, "a number is new"),
        ("I have a dog named Rex, a border collie, since 2019.", DOG, "a number is new"),
        ("I have a dog named Rex, a lovely border collie.", DOG, "a word is new"),
        ("I have a dog named Rex, not a border collie.", DOG, "it denies something, or no longer does"),
        ("I had a dog named Rex, a border collie.", DOG, "a word is new"),
        ("My rent is 620 euros.", ["My rent is 620 euros.", "My rent rose by 40 euros."], "a number is missing"),
        ("My brother is a nurse and my sister is a doctor.", ["My brother is a doctor.", "My sister is a nurse."],
         "one of the sentences does not stand in it"),
        ("My brother is a doctor in Porto.", ["My brother is a doctor.", "I am a doctor in Porto."],
         "one of the sentences does not stand in it"),
        ("Anna likes Ben and Ben likes Carl.", ["Ben likes Anna.", "Carl likes Ben."], "one of the sentences does not stand in it"),
        ("I prefer JavaScript over Python.", ["I prefer Python over JavaScript.", "I prefer Python."],
         "one of the sentences does not stand in it"),
        ("x " * 300, DOG, "it is too long"),
        ("Ich habe einen Hund, der Rex heißt.", DOG, "it is not written in English words"),
    ],
)  # fmt: skip
def test_a_text_says_what_its_sentences_say_and_nothing_else(text: str, sentences: list[str], why: str) -> None:
    assert find_unfaithful(text, sentences) == why


@pytest.mark.parametrize("example", load("statements").examples, ids=lambda example: example.title)
def test_the_answers_of_the_prompts_examples_are_taken(example) -> None:  # type: ignore[no-untyped-def]
    ((_, lines),) = parse_blocks(example.text)
    groups: dict[str, list[str]] = {}
    for line in lines:
        number, _, sentence = line.partition(": ")
        groups.setdefault(number, []).append(sentence)
    texts = parse_merged_statements(Answer(example.answer, "m"), len(groups))

    assert texts
    assert [find_unfaithful(text, groups[str(number)]) for number, text in texts.items()] == [""] * len(texts)
    assert all(may_join(*pair) for number in texts for pair in permutations(groups[str(number)], 2))


FORMS = {
    "1: MERGED: a\n2: APART": {1: "a"},
    "1. MERGED: a\n2. MERGED: b": {1: "a", 2: "b"},
    "```\n1: MERGED: a\n```": {1: "a"},
    "Here you are:\n\n1: MERGED: a\n2: apart.": {1: "a"},
    "- 1: **MERGED**: a\n- 2: APART, they differ": {1: "a"},
    "1: a": {1: "a"},
    "1: APART\n2: APART\n3: MERGED: c": {},
    "2: MERGED: b\n2: MERGED: c": {2: "b"},
    '"1": "MERGED: a"': {1: "a"},
    "0: MERGED: a\n2:\n99: MERGED: z": {},
}


@pytest.mark.parametrize("text", FORMS)
def test_an_answer_is_read_in_whatever_form(text: str) -> None:
    assert parse_merged_statements(Answer(text, "m"), 2) == FORMS[text]


def test_a_line_that_was_cut_off_does_not_count() -> None:
    answer = Answer("1: MERGED: I have a dog.\n2: MERGED: I have a c", "m", finish="length")

    assert parse_merged_statements(answer, 2) == {1: "I have a dog."}


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = parse_merged_statements(Answer(text, "m"), 3)
    except BadAnswer:
        return
    assert set(found) <= {1, 2, 3}


WORDS = st.sampled_from("I we my sister has a dog house in Porto 7 three not over and Rex likes".split())


@given(st.lists(WORDS, min_size=1, max_size=12).map(" ".join))
def test_whatever_a_model_says_no_number_name_or_negation_is_lost_or_new(text: str) -> None:
    sentences = ["My sister has a dog named Rex.", "Rex likes the house in Porto."]
    if find_unfaithful(text, sentences) == "":
        assert {"sister", "dog", "Rex", "Porto"} <= set(text.replace(",", "").split())
        assert not {"7", "three", "not", "over"} & set(text.split())


@pytest.mark.parametrize(
    ("kind", "case"), [(kind, case) for kind in ("joined_well", "joined_badly") for case in PAIRS[kind]]
)
def test_a_rewording_is_taken_when_nothing_that_was_said_is_lost_or_mixed_up(kind: str, case: list[str]) -> None:
    *sentences, text = case

    assert (find_unfaithful(text, sentences) == "") == (kind == "joined_well")


def test_no_model_is_asked_to_join_what_contradicts() -> None:
    assert [pair for pair in PAIRS["contra"] if may_join(*pair)] == []


@pytest.mark.parametrize("kind", ["contra", "distinct", "unrelated", "hard"])
def test_neither_sentence_of_a_pair_may_be_left_out_whatever_a_model_says(kind: str) -> None:
    assert [pair for pair in PAIRS[kind] for text in pair if find_unfaithful(text, pair) == ""] == []


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
    (each,) = memory.user("ana").consolidate().merged

    assert each.fact.text == JOINED
    assert each.fact.source == f"scripted:1 {load('statements').digest}"
    assert [said.quote for said in each.fact.evidence] == GARDEN
    assert believed(memory) == [JOINED]


def test_what_ends_a_part_leaves_the_rest(memory: Memory, clock: FakeClock) -> None:
    memory.user("ana").consolidate()
    clock.advance(seconds=DAY)
    say(memory, "The garden has no roses.", conversation="b")
    memory.digest()

    assert believed(memory) == [GARDEN[1], "The garden has no roses."]


def test_erasing_the_message_of_a_part_leaves_the_rest(memory: Memory) -> None:
    (each,) = memory.user("ana").consolidate().merged
    memory.conversation("a", user="ana").forget(each.fact.evidence[0].seq)

    assert believed(memory) == [GARDEN[1]]
    assert "roses" not in str(memory.user("ana").export())


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
        report = memory.user("ana").consolidate()

        assert believed(memory) == sorted(GARDEN)
        assert report.merged == ()
        assert bool(report.refused) == (answer not in ("APART", "MERGED:"))
        assert report.tokens > 0
        assert memory.doctor().findings == ()


def test_a_model_that_fails_leaves_the_sentences_and_the_job_shows_why(clock: FakeClock) -> None:
    def fails(request: Request) -> Answer:
        raise ModelError("connection refused")

    with opened(clock, joins=fails, consolidate_similarity=0.8) as memory:
        say(memory, *GARDEN, *(f"A {word} stands in the {place}." for place, words in THINGS for word in words.split()))
        memory.digest()

        assert set(GARDEN) <= set(believed(memory))
        (job,) = [job for job in memory.jobs() if (job.kind, job.key) == ("consolidate", "model")]
        assert "connection refused" in job.reason
        with pytest.raises(ModelError):
            memory.user("ana").consolidate()


def test_nothing_that_was_written_by_hand_is_put_in_other_words(clock: FakeClock) -> None:
    with opened(clock, joins=joining(f"MERGED: {JOINED}"), consolidate_similarity=0.8) as memory:
        for sentence in GARDEN:
            memory.user("ana").remember(sentence)

        assert memory.user("ana").consolidate().merged == ()
        assert believed(memory) == sorted(GARDEN)


def test_three_memories_about_one_language_become_one(clock: FakeClock) -> None:
    """What the user uses, prefers and builds with is one memory, with its sources; split again they are three."""
    joined = "Uses Python with FastAPI for backend development, prefers Python over JavaScript."
    rows = {
        "Python is what I reach for.": "Uses Python.",
        "Python over JavaScript, any day.": "Prefers Python over JavaScript.",
        "The backend: Python with FastAPI.": "Backend is in Python with FastAPI.",
    }
    answer = "\n".join(
        f'technical,,"{text}",0.9,,add,asserted,state,{2 * n + 1},"{quote.rstrip(".")}"'
        for n, (quote, text) in enumerate(rows.items())
    )
    model = ScriptedModel({"facts": [answer], "statements": [f"1: MERGED: {joined}"]})
    with Memory(clock=clock, llm=model, embedder=default_embedder()) as memory:
        chat, ana = memory.conversation("a", user="ana"), memory.user("ana")
        for quote in rows:
            chat.record(quote, "Ok.")
        chat.end()
        memory.digest()
        (merged,) = ana.consolidate().merged

        assert [fact.text for fact in ana.facts(kind="statement")] == [joined]
        assert sorted(fact.text for fact in merged.sources) == sorted(rows.values())
        assert len(merged.fact.evidence) == 3
