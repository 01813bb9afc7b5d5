"""Words of the index: what a text is stored under is what a question looks for."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.text.languages import IRREGULAR
from holdfast.text.terms import MAX_TERM_CHARS, dated_terms, language_of, query_terms, terms

JUNE = datetime(2023, 6, 7, 23, 30, tzinfo=UTC)


def finds(question: str, text: str) -> bool:
    """Whether any word of the question is among the terms of the text."""
    held = set(terms(text))
    return any(held.intersection(alternatives) for alternatives in query_terms(question))


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("", "en"),
        ("ok", "en"),
        ("My dog is called Rex", "en"),
        ("Die Hard was on TV", "en"),
        ("Vivo en Madrid", "es"),
        ("¿Cómo se llama tu perro?", "es"),
        ("J'habite à Paris", "fr"),
        ("Die Katze ist auf dem Dach", "de"),
        ("Tenho um cachorro", "pt"),
        ("Ho un cane", "it"),
        ("Ik woon in Utrecht", "nl"),
        ("저는 서울에 살아요", "ko"),
        ("我住在北京", "zh"),
        ("東京に住んでいます", "ja"),
        ("Я живу в Москве", "ru"),
        ("Είμαι από την Αθήνα", "el"),
        ("أعيش في القاهرة", "ar"),
        ("मैं दिल्ली में रहता हूँ", "hi"),
    ],
)
def test_language_is_told_from_script_and_common_words(text, language):
    assert language_of(text) == language


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The dogs were RUNNING to Paris", ["dog", "run", "pari"]),
        ("don't", ["don"]),
        ("snake_case, x2 & 3.14", ["snake", "case", "x2", "3", "14"]),
        ("서울에 살아", ["서울", "울에", "살아"]),
        ("iPhone은", ["iphon", "은"]),
        ("東京", ["東京"]),
        ("猫", ["猫"]),
        ("ＡＢＣ", ["abc"]),
        ("cafe\u0301", ["café"]),
        ("दिल्ली", ["दिल्ल"]),
        ("🙂 …", []),
    ],
)
def test_terms_of_a_text(text, expected):
    assert terms(text) == expected


def test_a_language_given_is_not_guessed():
    assert terms("cane", "it") == ["can", "cane"]


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Where does she live in Madrid?", "Vivo en Madrid con mi hermana"),
        ("¿Ella quiere vivir en la ciudad?", "Vivimos en el campo y no en la ciudad"),
        ("Madrid hotels", "¿Conoces los hoteles de Madrid?"),
        ("Wohnt er noch in Häusern?", "Das alte Haus ist schön, die Häuser sind alt"),
        ("iPhones", "мне нравится iPhone"),
        ("서울", "저는 서울에 살아요"),
        ("東京の天気", "昨日、東京へ行きました"),
    ],
)
def test_a_question_finds_the_same_word_across_languages(question, text):
    assert finds(question, text)


def test_a_wrong_guess_of_the_language_hides_nothing():
    """Half a sentence is taken for English; the English stem of the Spanish text still meets it."""
    assert language_of("hoteles baratos") == "en"
    assert finds("hoteles baratos", "Los hoteles de aquí no son baratos, ¿verdad?")


def test_the_day_of_a_text_can_be_searched():
    assert dated_terms("We saw 7 dogs", JUNE) == {"saw": 1, "7": 2, "dog": 1, "june": 1, "2023": 1}


def test_long_words_are_cut_alike_in_text_and_question():
    word = "x" * 5_000

    assert terms(word) == ["x" * MAX_TERM_CHARS]
    assert finds(word, word)


def test_threads_share_the_stemmers():
    """A native stemmer breaks when two threads use it at once."""
    words = [f"{stem}ings{number}ations" for number in range(200) for stem in ("walk", "talk", "run")]
    alone = [terms(word) for word in words]

    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda n: [terms(word + "x" * 0) for word in words[n:] + words[:n]], range(0, 80, 10)))

    for turned, start in zip(together, range(0, 80, 10), strict=True):
        assert turned == alone[start:] + alone[:start]


@given(st.text(max_size=200))
def test_any_text_has_terms_and_finds_itself(text):
    held = terms(text)
    wanted = query_terms(text)

    assert all(0 < len(term) <= MAX_TERM_CHARS for term in held)
    assert all(set(alternatives) & set(held) for alternatives in wanted)
    assert set(held) <= {term for alternatives in wanted for term in alternatives}


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("When did she go to Rome?", "I went to Rome"),
        ("When did she go to Rome?", "I have gone to Rome"),
        ("Has he written to them?", "I write to them"),
        ("Who bought the boat?", "they buy a boat"),
        ("How many children do they have?", "our child sleeps"),
    ],
)
def test_a_question_meets_irregular_forms(question, said):
    held = set(terms(said))
    assert any(held.intersection(alternatives[1:]) for alternatives in query_terms(question))


def test_irregular_forms_are_english():
    """Dutch "man" and "met" are other words."""
    assert query_terms("De man die ik heb ontmoet is naar huis gegaan", "nl")[0] == ("man",)


def test_no_irregular_form_is_a_stop_word_or_given_twice():
    forms = [form for entry in IRREGULAR.split(";") for form in entry.split()]

    assert len(forms) == len(set(forms))
    assert all(terms(form, "en") for form in forms)
