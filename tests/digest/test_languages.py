"""What must hold across languages: one address for one meaning, text in the speaker's words, no language told."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from holdfast.digest.grammar import languages, load_language
from holdfast.digest.grounding import ground
from holdfast.digest.rules import MAX_READ_CHARS, extract_facts, may_state_facts
from holdfast.types import Candidate, Message

AT = datetime(2024, 5, 15, 12, tzinfo=UTC)


def believed(text: str, code: str | None = None, others: dict[str, str] | None = None) -> list[Candidate]:
    message = Message("user", text, seq=2, at=AT)
    found = extract_facts(message, language_code=code, others=others)
    return [candidate for candidate, _ in ground(found, {2: message}, min_confidence=0.7)[0]]


def addressed(text: str) -> list[str]:
    return [f"{c.subject}: {c.op} {c.category}/{c.key}={c.value}" for c in believed(text)]


@pytest.mark.parametrize(
    "text",
    [
        "I'm vegetarian.",
        "Soy vegetariana.",
        "Ich bin Vegetarierin.",
        "Je suis végétarienne.",
        "저는 채식주의자예요.",
        "我是素食者。",
    ],
)
def test_one_meaning_has_one_address(text: str) -> None:
    """Whoever changes the language of a conversation changes nothing that is known."""
    assert addressed(text) == ["self: assert dietary/vegetarian=true"]


@pytest.mark.parametrize(
    "text",
    [
        "I eat fish now",
        "ahora como pescado",
        "ich esse jetzt Fisch",
        "maintenant je mange du poisson",
        "이제 생선은 먹어요",
        "我现在吃鱼了",
    ],
)
def test_fish_ends_a_vegetarian_diet_in_every_language(text: str) -> None:
    """The diet is exclusive, so the new one replaces the old."""
    assert addressed(text) == ["self: assert dietary/pescatarian=true"]


@pytest.mark.parametrize(
    "text",
    [
        "We switched to MySQL",
        "Hemos cambiado a MySQL",
        "Wir sind auf MySQL umgestiegen",
        "On est passés à MySQL",
        "MySQL로 바꿨어요",
        "我们换成了MySQL",
    ],
)
def test_a_database_is_switched_in_every_language(text: str) -> None:
    """The key holds one database, so the switch replaces the old one."""
    assert addressed(text) == ["self: assert tech/uses_database=MySQL"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Soy vegetariana.", "Es vegetariana."),
        ("Ya no vivo en Lima.", "Ya no: vive en Lima."),
        ("Mi esposa es vegana.", "Su esposa es vegana."),
        ("Meine Frau ist Veganerin.", "Die Frau ist Veganerin."),
        ("Je prends du Doliprane.", "Prend Doliprane."),
        ("Ma mère a de l'asthme.", "Sa mère a de l'asthme."),
        ("저는 서울에 살아요.", "서울에 산다."),
        ("我太太是素食者。", "妻子：是素食者。"),
    ],
)
def test_the_sentence_is_in_the_speakers_words(text: str, sentence: str) -> None:
    """The address is English, what people read is not."""
    assert [candidate.text for candidate in believed(text)] == [sentence]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("우리 상사는 서울에 살아요. 채식주의자예요.", []),
        ("민수는 착해요. 비건이에요.", []),
        ("제 아내는 간호사예요. 비건이에요.", ["wife: assert work/works_as=간호사", "wife: assert dietary/vegan=true"]),
        (
            "제 아내는 간호사예요. 저는 비건이에요.",
            ["wife: assert work/works_as=간호사", "self: assert dietary/vegan=true"],
        ),
        ("안녕하세요! 비건이에요.", ["self: assert dietary/vegan=true"]),
        ("我老板住在北京，吃素。", []),
        ("我住在北京，吃素。", ["self: assert home/lives_in=北京", "self: assert dietary/vegetarian=true"]),
    ],
)
def test_a_subject_left_out_is_the_last_topic(text: str, expected: list[str]) -> None:
    """Where the subject may be left out, a stranger's facts never become the user's."""
    assert addressed(text) == expected


@pytest.mark.parametrize("code", languages())
def test_examples_are_read_without_being_told_the_language(code: str) -> None:
    """Chat is short and its language seldom sure: of a hundred examples at most three are missed."""
    rules = load_language(code)
    assert rules is not None
    examples = [
        example
        for pattern in rules.patterns
        for example in pattern.examples
        if {"question", "subject"}.isdisjoint(example)
    ]
    other = [
        example["message"]
        for example in examples
        if believed(example["message"], None, example.get("known"))
        != believed(example["message"], code, example.get("known"))
    ]

    assert len(other) <= 0.03 * len(examples), other


@pytest.mark.parametrize("code", ["es", "de", "fr", "ko", "zh"])
def test_examples_speak_for_and_against(code: str) -> None:
    """A language is worth its traps as much as its statements."""
    rules = load_language(code)
    assert rules is not None
    examples = [example for pattern in rules.patterns for example in pattern.examples]

    assert sum(bool(example["facts"]) for example in examples) >= 60
    assert sum(not example["facts"] for example in examples) >= 40


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("es", "¡Gracias!"),
        ("es", "jajaja ok"),
        ("de", "Danke schön!"),
        ("de", "Guten Morgen"),
        ("fr", "Merci !"),
        ("ko", "ㅋㅋㅋ"),
        ("ko", "감사합니다!"),
        ("zh", "谢谢！"),
        ("zh", "哈哈哈"),
    ],
)
def test_small_talk_keeps_the_gate_shut(code: str, text: str) -> None:
    """Small talk costs no extraction in any language."""
    assert not may_state_facts(text, code)


@pytest.mark.parametrize(
    ("code", "unit"),
    [
        ("es", "ya no soy muy muy "),
        ("es", "soy alérgica a las nueces y a la "),
        ("de", "ich bin Softwareentwicklerin "),
        ("de", "ich bin sehr sehr "),
        ("fr", "je ne suis pas très très "),
        ("fr", "j'ai une allergie à la "),
        ("ko", "저는 요즘 정말 진짜 "),
        ("ko", "서울에 살고 "),
        ("ko", "가"),
        ("zh", "我现在也都很"),
        ("zh", "我喜欢和"),
        ("zh", "中"),
    ],
)
def test_hostile_repetition_costs_linear_time(code: str, unit: str) -> None:
    """The longest text that is read stays far from a second a thousand characters."""
    long = (unit * (MAX_READ_CHARS // len(unit)))[:MAX_READ_CHARS]
    extract_facts(Message("user", long[:600], at=AT), language_code=code)
    start = time.process_time()
    extract_facts(Message("user", long, at=AT), language_code=code)

    assert time.process_time() - start < 6
