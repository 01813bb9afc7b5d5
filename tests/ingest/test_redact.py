"""What must not be remembered is found, and what only looks like it is left alone."""

from __future__ import annotations

import re
import time
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Message
from holdfast.ingest.redact import (
    MASK,
    CleanTexts,
    count_secrets,
    find_secrets,
    luhn,
    mask_messages,
    mask_secrets,
    redact_secrets,
    redact_value,
)

# Written in pieces, so that no file of the project holds what looks like a secret.
AWS, GITHUB, OPENAI = "AK" + "IAIOSFODNN7EXAMPLE", "ghp_" + "a1B2c3D4" * 5, "sk" + "-proj-abcDEF123456ghiJKL7890"
SLACK, STRIPE = "xo" + "xb-123456789012-abcdefGHIJ", "sk" + "_live_4eC39HqLyjWDarjtT1zdp7dc"
JWT = "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0In0" + ".SflKxwRJSMeKKF2QT4fw"
PEM = "-----BEGIN " + "RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nq83v\n-----END RSA PRIVATE KEY-----"

FOUND = [
    ("card", "my card is 4111 1111 1111 1111, thanks", "4111 1111 1111 1111"),
    ("card", "5500-0000-0000-0004", "5500-0000-0000-0004"),
    ("card", "amex 340000000000009.", "340000000000009"),
    ("card", "amex 3782 822463 10005", "3782 822463 10005"),
    ("card", "diners 30569309025904", "30569309025904"),
    ("card", "jcb 3530111333300000", "3530111333300000"),
    ("card", "discover 6011111111111117", "6011111111111117"),
    ("card", "mastercard 2223003122003222", "2223003122003222"),
    ("card", "old visa 4222222222222", "4222222222222"),
    ("card", "order 12 4111 1111 1111 1111 exp 12/27", "4111 1111 1111 1111"),
    ("card", "卡号是4111111111111111。", "4111111111111111"),
    ("card", "４１１１ １１１１ １１１１ １１１１", "４１１１ １１１１ １１１１ １１１１"),
    ("card", "4111\u00a01111\u00a01111\u00a01111", "4111\u00a01111\u00a01111\u00a01111"),
    ("iban", "IBAN DE89 3704 0044 0532 0130 00.", "DE89 3704 0044 0532 0130 00"),
    ("iban", "GB82WEST12345698765432", "GB82WEST12345698765432"),
    ("iban", "FR14 2004 1010 0505 0001 3M02 606 OK", "FR14 2004 1010 0505 0001 3M02 606"),
    ("iban", "NL91-ABNA-0417-1643-00", "NL91-ABNA-0417-1643-00"),
    ("iban", "mi cuenta: ES91 2100 0418 4502 0005 1332", "ES91 2100 0418 4502 0005 1332"),
    ("iban", "NO93 8601 1117 947", "NO93 8601 1117 947"),
    ("ssn", "my ssn is 123-45-6789", "123-45-6789"),
    ("ssn", "it's 078-05-1120", "078-05-1120"),
    ("ssn", "123 45 6789", "123 45 6789"),
    ("ssn", "SSN: 123456789", "123456789"),
    ("ssn", "social security number 123456789", "123456789"),
    ("password", "my password is hunter2", "hunter2"),
    ("password", "My password is 'correct-horse'.", "correct-horse"),
    ("password", "Password: s3cr3t!x", "s3cr3t!x"),
    ("password", "pwd=letmein99", "letmein99"),
    ("password", "the password for the router is swordfish", "swordfish"),
    ("password", "the passphrase was now opensesame42", "opensesame42"),
    ("password", "mein Passwort ist Geheim99.", "Geheim99"),
    ("password", "Kennwort lautet Sommer2024", "Sommer2024"),
    ("password", "mi contraseña es gatito123", "gatito123"),
    ("password", "mon mot de passe est soleil42", "soleil42"),
    ("password", "minha senha é banana77", "banana77"),
    ("password", "wachtwoord is klompen12", "klompen12"),
    ("password", "moje hasło to zamek123", "zamek123"),
    ("password", "мой пароль qwerty77", "qwerty77"),
    ("password", "비밀번호는 qwer1234야", "qwer1234"),
    ("password", "我的密码是abc12345", "abc12345"),
    ("password", "パスワードはneko5678です", "neko5678"),
    ("password", "My PIN is 4821", "4821"),
    ("password", "postgres://bob:hunter22@db/x", "hunter22"),
    ("password", "DB_PASSWORD=hunter2secret", "hunter2secret"),
    ("password", "password = 'db.Column'", "db.Column"),
    ("password", "password: john.smith", "john.smith"),
    ("key", f"use {AWS} please", AWS),
    ("key", f"token {GITHUB}", GITHUB),
    ("key", f"OPENAI_API_KEY={OPENAI}", OPENAI),
    ("key", SLACK, SLACK),
    ("key", f"stripe: {STRIPE}", STRIPE),
    ("key", f"Authorization: Bearer {JWT}", JWT),
    ("key", "api_key = 'abcd1234efgh5678ijkl'", "abcd1234efgh5678ijkl"),
    ("key", 'client_secret: "Zx81qq77Lm02Pk55"', "Zx81qq77Lm02Pk55"),
    ("private-key", f"here:\n{PEM}\nkeep it safe", PEM),
    ("private-key", PEM[:70], PEM[:70]),
]
LEFT = [
    "    password = db.Column(db.String(80), nullable=False)",
    "    password = data.get('username')",
    "user = User(username=username, password=hashed_password)",
    "password = request.form['password']",
    "def login(username: str, password: str) -> bool:",
    'password=os.environ["DB_PASSWORD"]',
    "password: z.string().min(8)",
    "const password = useState('')",
    "PASSWORD=${DB_PASSWORD}",
    "conn = connect(password=settings.db_password)",
    "self.password = password",
    "my password is wrong",
    "I forgot my password.",
    "My password is too short",
    "Mein Passwort ist abgelaufen.",
    "mi contraseña es muy débil",
    "mon mot de passe est incorrect",
    "what is my password?",
    "password reset please",
    "a password manager is a good idea",
    "order 4111 1111 1111 1112",
    "0000 0000 0000 0000",
    "call 555-123-4567 or +44 20 7946 0958",
    "2026-03-14 19:02:11.123456",
    "123-00-4567",
    "000-12-3456",
    "666-12-3456",
    "912-34-5678",
    "12123-45-67890",
    "page 123 of 456, line 7890",
    "DE00 3704 0044 0532 0130 00",
    "ZZ68 5390 0754 7034 0001",
    "the token is expired",
    "the secret is to whisk slowly",
    "sk-learn is a library, task-oriented-dialogue-systems are not",
    "ISBN 978-3-16-148410-0",
    "Tracking 9400 1000 0000 0000 0000 00",
    "my pin broke",
    "my pin is on the map",
    "I passed my exam: 95 points",
    "the key to success is patience",
    "version 1.2.3.4 build 20260314",
    "비밀번호를 잊어버렸어요",
    "我忘了密码",
]


@pytest.mark.parametrize(("kind", "text", "words"), FOUND, ids=[text[:24] for _, text, _ in FOUND])
def test_a_secret_is_found_once_and_to_the_character(kind: str, text: str, words: str) -> None:
    assert [(span.kind, text[span.start : span.end]) for span in find_secrets(text)] == [(kind, words)]


@pytest.mark.parametrize("text", LEFT)
def test_what_only_looks_like_a_secret_is_left(text: str) -> None:
    assert find_secrets(text) == []


def test_masking_keeps_every_other_character_in_place() -> None:
    text = f"a 4111 1111 1111 1111 b\n{PEM}\nc"
    hidden = mask_secrets(text)

    assert len(hidden) == len(text)
    assert hidden.startswith("a " + MASK * 19 + " b\n")
    assert hidden.endswith("\nc")
    assert re.sub(f"[{MASK}\n abc]", "", hidden) == ""
    assert hidden.count("\n") == text.count("\n")


def test_what_users_are_told_names_the_kind() -> None:
    assert redact_secrets("card 4111 1111 1111 1111, pin: 4821.") == "card [card removed], pin: [password removed]."
    assert count_secrets("4111 1111 1111 1111 and 5500-0000-0000-0004") == {"card": 2}


def test_texts_inside_json_are_redacted_too() -> None:
    call = {"tool_calls": [{"args": {"card": "4111 1111 1111 1111", "n": 3}}], "ok": True}

    assert redact_value(call) == {"tool_calls": [{"args": {"card": "[card removed]", "n": 3}}], "ok": True}


class BadgeNumbers:
    """What a company might add."""

    kind = "badge"

    def find(self, text: str) -> list[tuple[int, int]]:
        return [match.span() for match in re.finditer(r"\bEMP-\d{6}\b", text)]


class Everything:
    kind = "all"

    def find(self, text: str) -> list[tuple[int, int]]:
        return [(0, len(text)), (-1, 3), (2, 1), (0, len(text) + 1)]


def test_a_detector_can_be_added() -> None:
    assert redact_secrets("I am EMP-123456.", [BadgeNumbers()]) == "I am [badge removed]."


def test_a_span_has_one_kind_and_an_impossible_one_is_passed_over() -> None:
    text = "card 4111 1111 1111 1111"

    assert [span.kind for span in find_secrets(text, [Everything()])] == ["card"]
    assert [(s.start, s.end) for s in find_secrets("ab", [Everything()])] == [(0, 2)]


@given(st.text(alphabet="0123456789 -.", max_size=60))
def test_only_numbers_with_a_right_check_digit_are_cards(text: str) -> None:
    for span in find_secrets(text):
        digits = re.sub(r"\D", "", text[span.start : span.end])
        assert span.kind != "card" or luhn(digits)


@given(st.lists(st.sampled_from([words for _, _, words in FOUND] + [" ", "\n", "x", "password is ", ", "]), max_size=8))
def test_spans_are_in_order_and_apart_whatever_stands_together(parts: list[str]) -> None:
    text = "".join(parts)
    spans = find_secrets(text)

    assert all(0 <= s.start < s.end <= len(text) for s in spans)
    assert all(a.end <= b.start for a, b in pairwise(spans))
    assert len(mask_secrets(text)) == len(text)


@pytest.mark.parametrize(
    "hard",
    [
        "1 ",
        "12 ",
        "a",
        "password is ",
        "password for ",
        "eyJ",
        "sk-a",
        "secret ",
        "a://",
        "AB12 ",
        "token aaaa",
        "code 123 ",
        "pw, it's a1bcd ",
        "密码是",
    ],
)
def test_no_text_makes_it_slow(hard: str) -> None:
    text = hard * (200_000 // len(hard))
    began = time.perf_counter()
    find_secrets(text)

    assert time.perf_counter() - began < 5  # 0.6 s for the hardest when this was written


EVERYDAY = tomllib.loads((Path(__file__).parent / "secrets.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("marked", EVERYDAY["found"])
def test_secrets_in_everyday_words_are_found_to_the_character(marked: str) -> None:
    text = marked.replace("[", "").replace("]", "")

    assert [text[span.start : span.end] for span in find_secrets(text)] == re.findall(r"\[(.*?)\]", marked)


@pytest.mark.parametrize("text", EVERYDAY["left"])
def test_words_about_secrets_are_left(text: str) -> None:
    assert find_secrets(text) == []


def test_a_login_of_two_words_is_one_whatever_they_look_like() -> None:
    assert mask_secrets("root / toor is the login") == "████ / ████ is the login"


@pytest.mark.parametrize(
    ("question", "answer", "masked"),
    [
        ("What is your PIN?", "4821", "████"),
        ("Sure. Please tell me your password.", "Krokus77", "████████"),
        ("And the CVV?", "123", "███"),
        ("Enter the 6-digit code we sent you.", "883 201", "███ ███"),
        ("What is your password?", "sommerregen", "███████████"),
        ("What's your door code?", "it's 4471#.", "it's █████."),
        ("Wie lautet dein Passwort?", "Tulpe4711", "█████████"),
        ("What is your PIN?", "I forgot", "I forgot"),
        ("Did you change your password?", "In 2024", "In 2024"),
        ("How many digits has your PIN?", "6", "6"),
        ("Which password manager do you use?", "1Password", "1Password"),
        ("How old are you?", "42", "42"),
    ],
)
def test_a_bare_answer_is_masked_where_a_secret_was_asked_for(question: str, answer: str, masked: str) -> None:
    found = mask_messages([Message("assistant", question), Message("user", answer)])

    assert found[1].content == masked


def test_a_key_without_a_digit_is_found() -> None:
    key = "sk-" + "abcDEF" * 5

    assert [span.kind for span in find_secrets(f"here: {key}")] == ["key"]


def test_a_number_with_letters_costs_linear_time() -> None:
    assert find_secrets("my pass 1" + "a" * 60 + "_x")


def test_texts_without_secrets_are_remembered_as_digests_and_no_others() -> None:
    clean = CleanTexts(4)
    for text in ("a", "b", "c"):
        clean.add(clean.digest(text))
    assert clean.has(clean.digest("a"))
    assert not clean.has(clean.digest("d"))
    for text in ("d", "e", "f", "g", "h"):
        clean.add(clean.digest(text))
    assert len(clean) <= 4
    assert clean.has(clean.digest("h"))
    assert not clean.has(clean.digest("a"))
    assert clean.digest("a") != CleanTexts(4).digest("a")  # nobody can look a text up in another process


def test_a_text_looked_at_again_is_judged_the_same() -> None:
    for _ in range(2):
        assert redact_secrets("My password is Hunter2!x") == "My password is [password removed]"
        assert redact_secrets("the word is swordfish, \ud800") == "the word is swordfish, \ud800"


def test_a_detector_is_asked_about_a_text_that_was_clean_before() -> None:
    class Word:
        kind = "word"

        def find(self, text: str) -> list[tuple[int, int]]:
            return [(0, 4)]

    assert redact_secrets("plum cake") == "plum cake"
    assert redact_secrets("plum cake", [Word()]) == "[word removed] cake"
    assert redact_secrets("plum cake") == "plum cake"
