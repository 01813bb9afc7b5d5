"""What stands in a pasted, quoted or played text is nobody's statement; the sentence beside it is the user's."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.digest.authorship import find_other_text, masked, split_authorship
from holdfast.digest.grounding import ground
from holdfast.digest.rules import extract_facts
from holdfast.types import Candidate, Message

# What stands in the pasted text, and what the user says beside it, with the value that is learned of it.
SAID = {
    "en": ("I live in Rome and I'm allergic to peanuts.", "I live in Porto.", "Porto"),
    "de": ("Ich wohne in Rom und ich bin allergisch gegen Erdnüsse.", "Ich wohne in Porto.", "Porto"),
    "es": ("Vivo en Roma y soy alérgico a los cacahuetes.", "Vivo en Oporto.", "Oporto"),
    "fr": ("J'habite à Rome et je suis allergique aux arachides.", "J'habite à Porto.", "Porto"),
    "zh": ("我住在罗马，我对花生过敏。", "我住在北京。", "北京"),
    "ja": ("私は大阪に住んでいます。卵アレルギーがあります。", "私は東京に住んでいます。", "東京"),
    "it": ("Vivo a Roma e sono allergico alle noci.", "Vivo a Milano.", "Milano"),
    "pt": ("Moro em Lisboa e sou alérgico a nozes.", "Moro no Porto.", "Porto"),
    "ko": ("저는 로마에 살아요. 저는 땅콩 알레르기가 있어요.", "저는 부산에 살아요.", "부산"),
}
SHAPES = {
    path.suffixes[0][1:]: path.read_text(encoding="utf-8").rstrip("\n").split("\n%%\n")
    for path in sorted((Path(__file__).parent / "authorship").glob("pasted.*.txt"))
}

# More shapes, each with every one of these contents: what is learned does not hang on what the text says.
TABLE = (Path(__file__).parent / "authorship" / "shapes.txt").read_text(encoding="utf-8").rstrip("\n").split("\n%%\n")
CONTENTS = (
    "I live in Rome and I'm allergic to peanuts.",
    "my name is Paul and i work at Siemens",
    "I have two kids and a dog named Rex.",
)
# Messages in everyday words: ⟪what the user says⟫, and ⟦what others say⟧.
MARKED = (Path(__file__).parent / "authorship" / "marked.txt").read_text(encoding="utf-8").rstrip("\n").split("\n%%\n")


def shapes() -> Iterator[Any]:
    for code, texts in SHAPES.items():
        for number, text in enumerate(texts):
            yield pytest.param(code, text, id=f"{code}-{number}-{text[:24]!r}")


def learned(text: str, code: str | None = None, *, statements: bool = False) -> list[Candidate]:
    message = Message("user", text, seq=1)
    read = extract_facts(message, language_code=code, statements=statements)
    return [good for good, _ in ground(read, {1: message}, min_confidence=0.7)[0]]


def test_there_are_many_shapes() -> None:
    """The promise is about what people paste, not about a handful of examples."""
    assert sum(map(len, SHAPES.values())) >= 220


@pytest.mark.parametrize("code", SAID)
def test_the_same_words_are_learned_where_they_stand_alone(code: str) -> None:
    """Else nothing below would mean anything."""
    content, own, value = SAID[code]

    assert len(learned(content, code)) >= 2
    assert [fact.value for fact in learned(own, code)] == [value]


@pytest.mark.parametrize(("code", "shape"), list(shapes()))
def test_pasted_words_teach_nothing_and_the_sentence_beside_them_does(code: str, shape: str) -> None:
    """By rules: 0 facts of the pasted text, and the user's own one."""
    content, own, value = SAID[code]
    found = learned(shape.replace("{c}", content).replace("{own}", own))

    assert {fact.value for fact in found} == ({value} if "{own}" in shape else set())


@pytest.mark.parametrize("content", CONTENTS)
def test_two_hundred_shapes_of_pasted_text_teach_nothing_whatever_they_say(content: str) -> None:
    """By rules, sentences included; the user's own sentence beside the text is learned."""
    assert len(TABLE) >= 200
    assert learned(content, statements=True)

    for shape in TABLE:
        text = shape.replace("{c}", content).replace("{own}", "I live in Porto.")
        found = {fact.value or fact.text for fact in learned(text, statements=True)}
        assert found == ({"Porto"} if "{own}" in shape else set()), shape


def test_everyday_messages_are_divided_between_the_user_and_others() -> None:
    """Lists, labels, days and stage directions of the user are his own; what looks alike and is pasted is not."""
    assert sum("⟪" in marked for marked in MARKED) >= 170
    assert sum("⟦" in marked for marked in MARKED) >= 170

    for marked in MARKED:
        text = re.sub("[⟪⟫⟦⟧]", "", marked)
        place, mine, out = 0, None, masked(text)
        for part in re.split("([⟪⟫⟦⟧])", marked):
            if part in ("⟪", "⟦"):
                mine, start = part == "⟪", place
            elif part in ("⟫", "⟧"):
                share = out[start:place].count("\x00") / (place - start)
                assert share == 0 if mine else share >= 0.9, marked
            else:
                place += len(part)
        foreign = [text.index(words) for words in re.findall("⟦([^⟧]*)", marked)]
        assert not [fact for fact in learned(text, statements=True) if fact.start in foreign], marked


@pytest.mark.parametrize(("code", "shape"), list(shapes()))
def test_a_model_cannot_quote_pasted_words(code: str, shape: str) -> None:
    """A row whose quote stands in such a text is refused, with the kind of text as the reason."""
    content, own, _ = SAID[code]
    text = shape.replace("{c}", content).replace("{own}", own)
    message = Message("user", text, seq=1)
    row = replace(
        learned(own, code)[0],
        value="Rome",
        text="Lives in Rome.",
        quote=content,
        start=text.index(content),
        source="model",
    )
    grounded, rejected = ground([row], {1: message}, min_confidence=0.7)

    assert grounded == []
    assert rejected[0][1].startswith("not-own-words: the words stand inside ")
    assert not rejected[0][1].endswith("inside ")


@pytest.mark.parametrize(("code", "shape"), list(shapes()))
def test_blanked_text_keeps_its_length_and_its_lines(code: str, shape: str) -> None:
    """Offsets stay true."""
    content, own, _ = SAID[code]
    text = shape.replace("{c}", content).replace("{own}", own)
    out = masked(text)

    assert len(out) == len(text)
    assert [place for place, ch in enumerate(text) if ch == "\n"] == [
        place for place, ch in enumerate(out) if ch == "\n"
    ]
    assert all(0 <= other.start < other.end <= len(text) for other in find_other_text(text))


PLAIN = [
    pytest.param(*line.replace("\\n", "\n").split(" => "), id=line[:40])
    for line in (Path(__file__).parent / "authorship" / "plain.txt").read_text(encoding="utf-8").splitlines()
]


@pytest.mark.parametrize(("text", "value"), PLAIN)
def test_plain_statements_are_still_learned(text: str, value: str) -> None:
    """Colons, quotes, times, lists and greetings make nobody else's words of them."""
    assert value in {fact.value if fact.value != "true" else fact.key for fact in learned(text)}


@pytest.mark.parametrize(
    "text",
    [
        "Name: Dana\nAge: 34\nAllergies: eggs",
        "Here are my details:\nName: Dana\nAge: 34\nAllergies: eggs",
        "Here are my details:\n\nName: Dana\nCity: Porto",
        "City: Porto\nJob: tiler\nKids: two\n(my own details, for the form we're going to write)",
        "To answer your form: diet: vegan; height: 1.82 m; weight: 77 kg.",
        "Update from my side >>> I work for Ikea now.",
        '{"name": "Ottilia", "lives_in": "Graz"} <- that\'s me',
        "I told my boss: I quit.",
        "* sister: Ruth\n* brother: Saul\nThat's my whole family.",
        "Nombre: Ana\nEdad: 34\nAlergias: huevos",
        "Name: Anna\nWohnort: Porto\nBeruf: Lehrerin",
        "Nom : Anne\nVille : Porto\nMétier : infirmière",
        "姓名：李明\n城市：北京",
        "이름: 민수\n도시: 부산",
        "Write my dating profile: I'm Dana, 34, a nurse from Porto.",
        "Monday: gym\nTuesday: choir\nWednesday: I work late\nThursday: I see my mother",
        "Breakfast: I skip it\nLunch: salad\nDinner: I cook",
        "Morning Routine: I get up at 6\nEvening Routine: I read\nWeekend Plans: I hike\nBig Dream: I want a boat",
    ],
)
def test_lists_about_oneself_are_ones_own_words(text: str) -> None:
    """A form filled in for the assistant, or a dictated profile, is nobody else's."""
    assert [other for other in find_other_text(text) if other.kind != "a quotation"] == []


PIECES = [line for texts in SHAPES.values() for text in texts for line in text.split("\n")]


@given(
    st.lists(
        st.sampled_from([*PIECES, "", "She wrote:", "---", "```", '"', "'", "> ", "a:", "1.", "*", "\x00", " "]),
        max_size=12,
    )
)
@settings(max_examples=300, deadline=None)
def test_any_text_keeps_its_length(lines: list[str]) -> None:
    """Whatever is pasted behind one another, nothing breaks and every offset stays."""
    text = "\n".join(lines)
    own, others = split_authorship(text)

    assert len(masked(text)) == len(text)
    assert len(own) == len(text)
    assert len(others) in (0, len(text))


def test_a_long_transcript_costs_linear_time() -> None:
    """Ten times the lines cost about ten times the time; a hundred times where each line looks at all others."""

    def seconds(lines: int) -> float:
        text = "Ana: I like tea\nBob: me too\n" * (lines // 2)
        start = time.process_time()
        assert find_other_text(text)
        return time.process_time() - start

    seconds(200)
    assert seconds(20_000) < 40 * seconds(2_000) + 0.3  # twice as much room as a machine with other work needs


@pytest.mark.parametrize(
    "text",
    [
        'here is what he answered:\n"From: J. de Groot\nPlease note that I have moved to Schiedam.\nRent will be 640."',
        "From: J. de Groot\nI have moved to Schiedam.",
        "His mail:\n„Hallo,\nI have moved to Schiedam.\nGruß“",
    ],
)
def test_a_mail_between_marks_or_of_one_initial_teaches_nothing(text: str) -> None:
    assert "moved to Schiedam" not in masked(text)


@pytest.mark.parametrize(
    "text",
    [
        'I need:\n"milk"\n"eggs"\nI have moved to Schiedam',
        'the "new\nplace" is great, I have moved to Schiedam',
        'my 5" pipe\nand my 6" pipe\nI have moved to Schiedam',
        'I said "no"\nand I have moved to Schiedam\nhe said "ok"',
        'She said "hi"\nI have moved to Schiedam. Call me "Bo"',
    ],
)
def test_words_between_two_quotations_are_the_writers_own(text: str) -> None:
    assert "moved to Schiedam" in masked(text)
