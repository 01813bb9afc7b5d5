"""What two sentences must agree in before anything is merged."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.embed import default_embedder
from holdfast.reconcile.compare import NUMBERS, comparable, disagreement, reworded, same_words, sense
from holdfast.reconcile.decide import may_merge

PAIRS = tomllib.loads((Path(__file__).parent / "pairs.toml").read_text(encoding="utf-8"))
WRONG = [pair for kind in ("contra", "distinct", "unrelated", "hard") for pair in PAIRS[kind]]
RIGHT = [pair for kind in ("near", "same") for pair in PAIRS[kind]]


def test_the_pairs_are_as_many_of_each_kind_as_the_figures_say() -> None:
    assert {kind: len(pairs) for kind, pairs in PAIRS.items()} == {
        "near": 12, "same": 24, "contra": 20, "distinct": 14, "unrelated": 20, "hard": 89,
        "merge": 24, "never": 24, "joined_well": 8, "joined_badly": 12, "tools_one": 7, "tools_apart": 21,
        "phrases": 31, "not_phrases": 60,
    }  # fmt: skip


@pytest.mark.parametrize("pair", WRONG, ids=" | ".join)
def test_words_alone_merge_nothing_that_is_not_the_same(pair: list[str]) -> None:
    assert not same_words(*pair)
    assert not same_words(*reversed(pair))


def test_what_says_the_same_in_other_order_or_synonyms_is_merged_without_a_model() -> None:
    assert [pair for pair in PAIRS["merge"] if not (same_words(*pair) or reworded(*pair) or may_merge(*pair))] == []


@pytest.mark.parametrize("kind", ["never", "contra", "distinct", "unrelated", "hard"])
def test_no_rewording_merges_what_differs(kind: str) -> None:
    assert [pair for pair in PAIRS[kind] if reworded(*pair) or reworded(*reversed(pair)) or may_merge(*pair)] == []


@pytest.mark.parametrize("kind", ["contra", "distinct", "hard"])
def test_no_similarity_however_high_merges_what_contradicts_or_differs(kind: str) -> None:
    assert [pair for pair in PAIRS[kind] if may_merge(*pair) or may_merge(*reversed(pair))] == []


def test_at_the_calibrated_threshold_nothing_is_merged_wrongly_and_most_trifles_are() -> None:
    embedder = default_embedder()
    if embedder is None:
        pytest.skip("the package was built without the embedder's files")

    def merged(pairs: list[list[str]]) -> int:
        rows = embedder.embed([text for pair in pairs for text in pair])
        alike = [float(rows[2 * n] @ rows[2 * n + 1]) >= embedder.thresholds.merge for n in range(len(pairs))]
        return sum(near and may_merge(*pair) for near, pair in zip(alike, pairs, strict=True))

    assert merged(WRONG) == 0
    assert merged(PAIRS["near"]) >= 10
    assert merged(PAIRS["same"]) >= 2


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [
        ("I have two cats.", "I have three cats.", "numbers"),
        ("I earn 1,000 euros.", "I earn 1000 euros.", ""),
        ("I like it here.", "I don\u2019t like it here.", "negation"),
        ("I no longer smoke.", "I smoke.", "negation"),
        ("I told Anna about Rex.", "I told Ben about Rex.", "names"),
        ("Anna likes hiking.", "Ben likes hiking.", "names"),
        ("My sister has a boat.", "She has a boat.", "person"),
        ("I was a nurse.", "I am a nurse.", "time"),
        ("I can swim.", "I could swim.", "mood"),
        ("All my plants died.", "Some of my plants died.", "quantity"),
        ("I came from Porto.", "I came to Porto.", "word"),
        ("We swim on Mondays.", "We swim on Fridays.", "word"),
        ("we swim on mondays", "we swim on fridays", "word"),
        ("My brother cooks with butter.", "My sister cooks with butter.", "opposites"),
        ("The cat chased the dog.", "The dog chased the cat.", "order"),
        ("I drink green tea.", "I drink black tea.", "value"),
        ("I love long walks.", "I enjoy long walks.", ""),
        ("The user likes tea.", "I like tea.", ""),
    ],
)
def test_what_differs_is_named(one: str, other: str, why: str) -> None:
    assert disagreement(one, other) == why
    assert disagreement(other, one) == why


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("Ich trinke gern Tee.", "ich trinke gern Tee", True),
        ("Ich trinke gern Tee.", "Ich trinke nicht gern Tee.", False),
        ("Ich trinke gern Tee.", "Ich trinke ungern Tee.", False),
        ("\u6211\u559c\u6b22\u8336", "\u6211\u559c\u6b22\u8336\u3002", True),
        ("\u6211\u559c\u6b22\u8336", "\u6211\u4e0d\u559c\u6b22\u8336", False),
        ("\ub098\ub294 \ucee4\ud53c\ub97c \ub9c8\uc2e0\ub2e4", "\ub098\ub294 \ucc28\ub97c \ub9c8\uc2e0\ub2e4", False),
    ],
)
def test_in_other_languages_only_the_same_words_are_the_same(one: str, other: str, alike: bool) -> None:
    assert same_words(one, other) is alike
    assert not may_merge(one, other) or comparable(one)


NAMES = ["Anna", "Ben", "Chloe", "Dario", "Emil", "Porto", "Lisbon", "Google"]
PLACES = [
    "My colleague {} keeps bees",
    "I met {} at the station",
    "I often write letters to {}",
    "{} plays chess with me",
]


@given(st.sampled_from(PLACES), st.sampled_from(NAMES), st.sampled_from(NAMES))
def test_never_where_names_differ(place: str, one: str, other: str) -> None:
    assert same_words(place.format(one), place.format(other)) is (one == other)
    assert one == other or not may_merge(place.format(one), place.format(other))


COUNTS = ["I own {} goats", "My rent is {} euros", "The train takes {} hours", "We met {} times in the park"]


@given(
    st.sampled_from(COUNTS),
    st.one_of(st.integers(0, 9_999).map(str), st.sampled_from(sorted(NUMBERS))),
    st.one_of(st.integers(0, 9_999).map(str), st.sampled_from(sorted(NUMBERS))),
)
def test_never_where_numbers_differ(count: str, one: str, other: str) -> None:
    same_number = NUMBERS.get(one, one) == NUMBERS.get(other, other)

    assert same_number or not may_merge(count.format(one), count.format(other))


STATED = ["I {} eat meat", "My neighbour {} work here", "We {} own a boat", "They {} like the garden"]


@given(st.sampled_from(STATED), st.sampled_from(["don't", "do not", "never", "didn't", "don\u2019t", "no longer"]))
def test_never_where_one_is_negated(stated: str, negation: str) -> None:
    plain = stated.replace(" {}", "")

    assert not may_merge(plain, stated.format(negation))


@given(st.sampled_from([text for pair in WRONG + RIGHT for text in pair]))
def test_a_sentence_agrees_with_itself_in_other_dress(text: str) -> None:
    assert same_words(text, text.rstrip(".") + " !")
    assert sense(text).words == sense("  " + text).words


@pytest.mark.parametrize("pair", PAIRS["phrases"], ids=" + ".join)
def test_one_thing_in_two_phrases_is_one(pair: list[str]) -> None:
    assert reworded(*pair)
    assert reworded(*reversed(pair))


@pytest.mark.parametrize("pair", PAIRS["not_phrases"], ids=" + ".join)
def test_what_only_sounds_like_the_same_phrase_stays_apart(pair: list[str]) -> None:
    assert not reworded(*pair)
    assert not reworded(*reversed(pair))
    assert not same_words(*pair)
