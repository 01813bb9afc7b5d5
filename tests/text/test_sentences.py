"""Where sentences begin and end in chat."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.text.sentences import describes_only_past, spell_out, split_sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("I met Dr. Smith at 3.5 p.m. today. Good.", ["I met Dr. Smith at 3.5 p.m. today.", "Good."]),
        ("I live in St. Louis. You?", ["I live in St. Louis.", "You?"]),
        ("Wir fahren vom 12. bis 19. Juni. Gut.", ["Wir fahren vom 12. bis 19. Juni.", "Gut."]),
        ("Es waren 12. Dann 13.", ["Es waren 12.", "Dann 13."]),
        ("J. R. Tolkien wrote. I read.", ["J. R. Tolkien wrote.", "I read."]),
        ("So did I. Then we left.", ["So did I.", "Then we left."]),
        ("Fruit, e.g. apples, etc. are fine.", ["Fruit, e.g. apples, etc. are fine."]),
        ("well... maybe later. ok", ["well... maybe later.", "ok"]),
        ("Well... Maybe.", ["Well...", "Maybe."]),
        ("It costs 3.50 USD. Version 2.3.1 is out.", ["It costs 3.50 USD.", "Version 2.3.1 is out."]),
        ("What?! No way!!! Yes", ["What?!", "No way!!!", "Yes"]),
        ('He said "Go." Then left.', ['He said "Go."', "Then left."]),
        ("(Really.) Yes.", ["(Really.)", "Yes."]),
        ("line one\nline two\r\nline three", ["line one", "line two", "line three"]),
        ("- milk\n* eggs\n2) bread\n3. tea", ["milk", "eggs", "bread", "tea"]),
        ("我住在北京。我喜欢茶！你呢？", ["我住在北京。", "我喜欢茶！", "你呢？"]),
        ("東京に住んでいます。「はい。」と言った。", ["東京に住んでいます。", "「はい。」", "と言った。"]),
        ("서울에 살아요. 채식주의자예요!", ["서울에 살아요.", "채식주의자예요!"]),
        ("I moved 🎉 Now I live in Rome", ["I moved 🎉", "Now I live in Rome"]),
        ("Nice! 😀 See you", ["Nice!", "See you"]),
        ("see example.com for more", ["see example.com for more"]),
        ("", []),
        ("...", []),
        (" \n \n ", []),
    ],
)
def test_sentences_of_chat(text: str, sentences: list[str]) -> None:
    """Stops, lines, bullets and pictures end sentences; abbreviations and decimals do not."""
    assert [span.of(text) for span in split_sentences(text)] == sentences


@given(st.text(st.characters(codec=None), max_size=400))
def test_sentences_are_ordered_disjoint_and_lose_only_marks(text: str) -> None:
    """Every letter and digit outside list marks stands in exactly one sentence."""
    spans = split_sentences(text)

    assert all(0 <= span.start < span.end <= len(text) for span in spans)
    assert all(a.end <= b.start for a, b in pairwise(spans))
    assert all(span.of(text) == span.of(text).strip() for span in spans)


@pytest.mark.parametrize("unit", ["a. ", ".", ". x", " \n", "Dr. ", "😀", "\n- ", "。", "a", "\u2028"])
def test_a_megabyte_of_anything_is_split_in_bounded_time(unit: str) -> None:
    """The work grows with the length, whatever is repeated."""
    text = unit * (1_000_000 // len(unit)) + "x"
    start = time.process_time()
    split_sentences(text)

    assert time.process_time() - start < 6


@pytest.mark.parametrize(
    "text",
    [
        "Previously kept bees. Given up.",
        "Formerly cooked on gas.",
        "Used to live in Rome.",
        "Ana used to smoke.",
        "Was deciding between a loan and savings for the roof.",
        "Moved from paper to a spreadsheet. Later replaced by an app.",
        "Our team previously used faxes. They were abandoned in favor of mail.",
        "Früher habe ich geraucht.",
    ],
)
def test_words_that_tell_only_of_the_past_are_known_as_such(text: str) -> None:
    assert describes_only_past(text)


@pytest.mark.parametrize(
    "text",
    [
        "Was born in Porto.",
        "Worked at a bank for ten years.",
        "Previously on paper, now in an app.",
        "Previously used faxes. Sends mails.",
        "Uses an app for notes. Replaced the spreadsheet.",
        "Is used to cold weather.",
        "Got used to the noise.",
        "No longer eats meat.",
        "The old boiler was replaced by a heat pump.",
        "Früher oder später zieht sie um.",
        "",
    ],
)
def test_what_holds_now_and_biography_are_not_the_past(text: str) -> None:
    assert not describes_only_past(text)


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("my membership's been cancelled", "my membership has been cancelled"),
        ("Our landlord’s now Ada.", "Our landlord is now Ada."),
        ("The tenants've left and the flat's not let.", "The tenants have left and the flat is not let."),
        ("my phone's finally been mended", "my phone has finally been mended"),
        ("my son's already moved out", "my son has already moved out"),
        ("my firm's already tight budget", None),
        ("her now-famous soup, my mum's now-famous soup", None),
        ("my sister's not-so-new car", None),
        ("it's been a while", None),
        ("the dog's bowl", None),
        ("no quotes at all", None),
        ("she said 'been there'", None),
    ],
)
def test_a_verb_behind_a_noun_is_spelled_out_and_an_owner_stays(text: str, spelled: str | None) -> None:
    found = spell_out(text)

    assert (found.text if found else None) == spelled


def test_the_words_of_a_text_spelled_out_are_found_as_they_were_written() -> None:
    text = "the tenants've left, the gym's been closed since May, and Max's now fine"
    found = spell_out(text)

    assert found is not None
    for words in ("tenants", "left", "gym", "closed since May", "fine"):
        start = found.text.index(words)
        assert text[slice(*found.written(start, start + len(words)))] == words
    start, end = found.text.index("gym has been"), found.text.index(" closed")
    assert text[slice(*found.written(start, end))] == "gym's been"
