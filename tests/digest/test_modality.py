"""Questions, hypotheses and reports are told from what is asserted."""

from __future__ import annotations

import pytest

from holdfast.digest.authorship import BLANK, masked
from holdfast.digest.clauses import judge
from holdfast.digest.grammar import PatternLanguage, load_language


@pytest.fixture(scope="module")
def english() -> PatternLanguage:
    rules = load_language("en")
    assert rules is not None
    return rules


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("I'm vegan.", "asserted"),
        ("Well, actually I'm vegan now.", "asserted"),
        ("Hi there, I'm vegan, what should I cook?", "asserted"),
        ("What should I cook, given that I'm vegan?", "asserted"),
        ("Since I'm vegan, what should I cook?", "asserted"),
        ("As I said, I'm vegan.", "asserted"),
        ("I told you I'm vegan", "asserted"),
        ("If it helps, I'm vegan.", "asserted"),
        ("You should know that I'm vegan.", "asserted"),
        ("I'm vegan, any ideas?", "asserted"),
        ("where do we eat, I'm vegan so no steak", "asserted"),
        ("My doctor said I'm vegan now", "asserted"),
        ("Do you think I'm vegan?", "reported"),
        ("I'm vegan?", "question"),
        ("I'm vegan, right?", "question"),
        ("If I'm vegan, what should I cook?", "hypothetical"),
        ("Suppose I'm vegan.", "hypothetical"),
        ("Imagine that I'm vegan.", "hypothetical"),
        ("I'm vegan, just kidding", "hypothetical"),
        ("She said I'm vegan.", "reported"),
        ("My brother thinks I'm vegan.", "reported"),
        ("People say I'm vegan.", "reported"),
        ("The reason I'm vegan is simple.", None),
    ],
)
def test_judgement_by_the_words_around(english: PatternLanguage, sentence: str, expected: str | None) -> None:
    """The same three words mean different things in different company."""
    start = sentence.index("I'm vegan")
    verdict = judge(english, sentence, start, start + len("I'm vegan"))

    assert (verdict.modality if verdict else None) == expected


@pytest.mark.parametrize("sentence", ["I think I'm vegan.", "Maybe I'm vegan.", "I'm vegan, I guess."])
def test_hedges_weaken(english: PatternLanguage, sentence: str) -> None:
    """What the writer is not sure of falls below the threshold of belief."""
    start = sentence.index("I'm vegan")
    verdict = judge(english, sentence, start, start + len("I'm vegan"))

    assert verdict is not None
    assert verdict.weight * 0.95 < 0.7


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a `b` c", "a  c"),
        ("a ```b\nc``` d", "a \n d"),
        ("> b\na", "\na"),
        ('a "b c d e f" g', "a  g"),
        ('a "Bo" b', 'a "Bo" b'),
        ("a 'b c d e f' g", "a  g"),
        ("I don't and can't", "I don't and can't"),
        ("see https://a.b/c d", "see  d"),
        ("a *waves at you* b", "a  b"),
        ("a <b c> d", "a  d"),
        ("“Bo”", '"Bo"'),
    ],
)
def test_foreign_words_are_blanked_in_place(text: str, kept: str) -> None:
    """What is not the writer's own talk vanishes, and everything else keeps its place."""
    out = masked(text)

    assert len(out) == len(text)
    assert out.replace(BLANK, "") == kept


@pytest.mark.parametrize(
    "order", ["Translate this: ", "Please proofread my essay:\n", "Here's my draft:\n", "Act as a pirate. "]
)
def test_text_to_work_on_is_not_talk(english: PatternLanguage, order: str) -> None:
    """After an order to work on a text, the text follows."""
    assert masked(order + "I'm vegan.").replace(BLANK, "").strip() in order.strip()
