"""Nothing is believed without a quote that the user said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.digest.grounding import ground, verify_translation
from holdfast.types import Candidate, Message

TEXT = "Well, I live in Lisbon.\nAnd I'm vegan."
SAID = Message("user", TEXT, seq=3, conversation="c1")
LISBON = Candidate(
    kind="attribute",
    subject="self",
    category="home",
    key="lives_in",
    value="Lisbon",
    text="Lives in Lisbon.",
    confidence=0.9,
    seq=3,
    quote="I live in Lisbon",
    start=6,
)


def reason(candidate: Candidate, message: Message = SAID, injected: tuple[str, ...] = ()) -> str:
    """The code of the refusal; empty when the candidate stands."""
    good, bad = ground([candidate], {3: message}, min_confidence=0.7, injected=injected)

    assert len(good) + len(bad) == 1
    return bad[0][1].split(":")[0] if bad else ""


def test_evidence_gives_the_very_words() -> None:
    """The quote stands in the message at the place that the evidence names."""
    [(candidate, evidence)], refused = ground([LISBON], {3: SAID}, min_confidence=0.7)

    assert refused == []
    assert candidate == LISBON
    assert (evidence.conversation, evidence.seq, evidence.role) == ("c1", 3, "user")
    assert TEXT[evidence.start : evidence.end] == evidence.quote == "I live in Lisbon"


def test_wrong_place_is_mended_when_the_quote_stands_there_once() -> None:
    """Models count characters badly; one occurrence leaves no doubt."""
    [(candidate, evidence)], _ = ground([replace(LISBON, start=0)], {3: SAID}, min_confidence=0.7)

    assert candidate.start == evidence.start == 6


@pytest.mark.parametrize("role", ["assistant", "tool", "system", "developer"])
def test_only_the_user_is_believed(role: str) -> None:
    """The same words from anybody else are no evidence."""
    assert reason(LISBON, replace(SAID, role=role)) == "not-said-by-user"


@pytest.mark.parametrize(
    ("candidate", "code"),
    [
        (replace(LISBON, seq=4), "not-in-window"),
        (replace(LISBON, quote=""), "no-quote"),
        (replace(LISBON, quote=" \n"), "no-quote"),
        (replace(LISBON, quote="I live in Porto"), "quote-not-found"),
        (replace(LISBON, quote="i live in lisbon"), "quote-not-found"),
        (replace(LISBON, quote="I", start=99), "quote-ambiguous"),
        (replace(LISBON, confidence=0.69), "low-confidence"),
        (replace(LISBON, confidence=float("nan")), "low-confidence"),
        (replace(LISBON, modality="hypothetical"), "not-asserted"),
        (replace(LISBON, modality="reported"), "not-asserted"),
        (replace(LISBON, modality="question"), "not-asserted"),
        (replace(LISBON, modality="negated"), "not-asserted"),
        (replace(LISBON, value=""), "incomplete"),
        (replace(LISBON, key=""), "incomplete"),
        (replace(LISBON, subject=""), "incomplete"),
        (replace(LISBON, category=""), "incomplete"),
    ],
)
def test_refusals_have_stable_codes(candidate: Candidate, code: str) -> None:
    """Each way to fail says which it is."""
    assert reason(candidate) == code


def test_retraction_needs_no_value_and_may_be_negated() -> None:
    """ "Forget my job" names an address, not what stands there."""
    assert reason(replace(LISBON, op="retract", value="", key="", modality="negated")) == ""


@pytest.mark.parametrize(
    "content",
    [
        "> I live in Lisbon",
        "```\nI live in Lisbon\n```",
        "```python\nx = 'I live in Lisbon'",
        "`I live in Lisbon`",
        'She wrote: "I live in Lisbon and I love it".',
        "Sie schrieb: „I live in Lisbon und bin froh“.",
        "*I live in Lisbon*",
    ],
)
def test_words_that_are_not_the_users_own_are_no_evidence(content: str) -> None:
    """Quotations, code, quoted lines and stage directions say nothing about who pastes them."""
    quote = "I live in Lisbon"

    assert reason(replace(LISBON, start=content.index(quote)), replace(SAID, content=content)) == "not-own-words"


def test_short_quoted_name_is_the_users_own() -> None:
    """ "Call me “Bo”" is no quotation."""
    content = 'Please call me "Bo".'
    candidate = replace(LISBON, quote='call me "Bo"', start=content.index("call"))

    assert reason(candidate, replace(SAID, content=content)) == ""


@pytest.mark.parametrize("line", ["Well, I live in Lisbon.", "- well, i live in  Lisbon", '"Well, I live in Lisbon."'])
def test_what_the_memory_put_into_the_prompt_is_not_learned_again(line: str) -> None:
    """A line of ours that comes back as a message is no evidence, however it is marked."""
    assert reason(LISBON, injected=(line,)) == "injected"


def test_short_injected_lines_block_nothing() -> None:
    """A remembered "ok" must not make the user's own words disappear."""
    assert reason(LISBON, injected=("ok", "Lisbon")) == ""


def test_order_is_kept() -> None:
    """Later claims win by their order, so grounding never changes it."""
    vegan = replace(LISBON, category="dietary", key="vegan", value="true", quote="I'm vegan", start=TEXT.index("I'm"))
    good, _ = ground([vegan, LISBON], {3: SAID}, min_confidence=0.7)

    assert [candidate for candidate, _ in good] == [vegan, LISBON]


def refusal(content: str, quote: str, said: str, category: str = "context", key: str = "") -> str:
    """Return why an English claim of *content* is refused: a sentence, or with *key* a value."""
    claim = Candidate(
        kind="attribute" if key else "statement",
        subject="self",
        category=category,
        key=key,
        value=said if key else "",
        text=said,
        confidence=0.9,
        seq=1,
        quote=quote,
        start=content.index(quote),
    )
    message = Message("user", content, seq=1, conversation="c")
    return verify_translation(claim, message, [content], "en").split(":")[0]


@pytest.mark.parametrize(
    ("content", "quote", "said"),
    [
        ("Ich rauche nicht.", "Ich rauche", "Smokes."),
        ("Ich esse Fleisch seit Jahren nicht mehr.", "Ich esse Fleisch", "Eats meat."),
        ("Moi je mange pas de porc.", "je mange", "Eats pork."),
        ("저는 고기를 먹지 않아요.", "고기를 먹지", "Eats meat."),
        ("私は肉を食べません。", "私は肉を食べ", "Eats meat."),
    ],
)
def test_a_translation_heeds_the_no_behind_its_quote(content: str, quote: str, said: str) -> None:
    """The rest of the clause is the quote's."""
    assert refusal(content, quote, said) == "negation-not-said"


@pytest.mark.parametrize(
    ("content", "quote", "said"),
    [
        ("Ich esse Fisch und kein Fleisch.", "Ich esse Fisch", "Eats fish."),
        ("Ich rauche nicht.", "Ich rauche", "Does not smoke."),
        ("Ich wohne in Berlin. Ich rauche nicht.", "Ich wohne in Berlin.", "Lives in Berlin."),
        ("Vivo en Madrid sin coche.", "Vivo en Madrid", "Lives in Madrid."),
        ("J'habite à Lyon parce que je n'aime pas Paris.", "J'habite à Lyon", "Lives in Lyon."),
        ("고기를 먹고 생선은 안 먹어요.", "고기를 먹고", "Eats meat."),
        ("魚は食べますが肉は食べません。", "魚は食べます", "Eats fish."),
    ],
)
def test_the_no_of_another_clause_is_not_the_quotes(content: str, quote: str, said: str) -> None:
    """A clause ends at a mark or before a word that begins the next."""
    assert refusal(content, quote, said) == ""


@pytest.mark.parametrize(
    ("content", "quote", "said"),
    [
        ("Ich nehme 50 mg Sertralin, mein Bruder nimmt 100.", "Ich nehme 50 mg Sertralin", "Takes 100 mg sertraline."),
        ("Ich nehme 7,5 mg Mirtazapin.", "Ich nehme 7,5 mg", "Takes 5.7 mg."),
        ("Ich nehme 7,5 mg Mirtazapin.", "Ich nehme 7,5 mg", "Takes 5 mg."),
        ("Tengo dos gatos.", "Tengo dos gatos", "Has five cats."),
        ("Tengo dos gatos.", "Tengo dos gatos", "Has 5 cats."),
        ("J'ai un chat.", "J'ai un chat", "Has 2 cats."),
        ("고양이 두 마리가 있어요.", "고양이 두 마리가 있어요", "Has 3 cats."),
        ("猫を二匹飼っています。", "猫を二匹飼っています", "Has 4 cats."),
    ],
)
def test_a_translation_has_the_numbers_of_its_quote(content: str, quote: str, said: str) -> None:
    """Whole numbers count, of the quote and its clause; no small one is free."""
    assert refusal(content, quote, said) == "number-not-said"


@pytest.mark.parametrize(
    ("content", "quote", "said"),
    [
        ("Ich nehme 7,5 mg Mirtazapin.", "Mirtazapin", "Takes 7.5 mg mirtazapine."),
        ("Ich bin dreiundzwanzig.", "Ich bin dreiundzwanzig", "Is 23 years old."),
        ("Meine Tochter ist dreijährig.", "Meine Tochter ist dreijährig", "The daughter is 3 years old."),
        ("Ich verdiene 1.000 Euro im Monat.", "Ich verdiene 1.000 Euro", "Earns 1,000 euros."),
        ("Ich stehe um 7.30 Uhr auf.", "Ich stehe um 7.30 Uhr auf", "Gets up at 7:30."),
        ("Ich arbeite ab 18 Uhr.", "Ich arbeite ab 18 Uhr", "Works from 6 pm."),
        ("Tengo dos gatos.", "Tengo dos gatos", "Has two cats."),
        ("Tengo cuarenta años.", "Tengo cuarenta años", "Is 40 years old."),
        ("Me levanto a las siete y media.", "Me levanto a las siete y media", "Gets up at 7:30."),
        ("J'ai trois enfants.", "J'ai trois enfants", "Has 3 children."),
        ("J'habite ici depuis 12 ans.", "J'habite ici depuis 12 ans", "Has lived here for twelve years."),
        ("고양이 두 마리가 있어요.", "고양이 두 마리가 있어요", "Has 2 cats."),
        ("저는 스물다섯 살이에요.", "저는 스물다섯 살이에요", "Is 25 years old."),
        ("猫を二匹飼っています。", "猫を二匹飼っています", "Has two cats."),
        ("家賃は10万円です。", "家賃は10万円です", "Pays 100,000 yen of rent."),
    ],
)
def test_a_number_may_be_a_word_in_one_language_and_digits_in_the_other(content: str, quote: str, said: str) -> None:
    """Also with another mark in it, or of another clock."""
    assert refusal(content, quote, said) == ""


@pytest.mark.parametrize(
    ("content", "said", "category", "key"),
    [
        ("mi hermana Martha vive conmigo", "Martin", "family", "sister"),
        ("me gusta mucho Queen", "Metallica", "interest", "likes"),
        ("Ich bin allergisch gegen Penicillin", "Ibuprofen", "allergy", "allergic_to"),
        ("Je suis allergique à la pénicilline", "aspirin", "allergy", "allergic_to"),
        ("Ich nehme 50 mg Sertralin", "50 mg", "medication", "fluoxetine"),
    ],
)
def test_a_translation_keeps_names_and_substances(content: str, said: str, category: str, key: str) -> None:
    """Four equal letters make no name, and the first word of a value may be one."""
    assert refusal(content, content, said, category, key) == "name-not-said"


@pytest.mark.parametrize(
    ("content", "said", "category", "key"),
    [
        ("Ich bin allergisch gegen Penicillin", "penicillin", "allergy", "allergic_to"),
        ("Ich bin allergisch gegen Erdnüsse", "peanuts", "allergy", "allergic_to"),
        ("Soy alérgica a las calabazas", "pumpkin", "allergy", "allergic_to"),
        ("Je suis allergique à la pénicilline", "Penicillin", "allergy", "allergic_to"),
        ("페니실린 알레르기가 있어요", "penicillin", "allergy", "allergic_to"),
        ("ペニシリンアレルギーです", "penicillin", "allergy", "allergic_to"),
        ("Ich nehme 50 mg Sertralin", "50 mg", "medication", "sertraline"),
        ("Tomo morfina por la noche", "morphine", "medication", "takes"),
        ("Ich nehme die Pille", "birth control", "medication", "takes"),
        ("me gusta mucho Queen", "Queen", "interest", "likes"),
        ("Me gusta mucho el jazz", "Jazz", "interest", "likes"),
        ("Ich mag Käse", "Cheese", "food", "likes"),
        ("J'adore les Beatles", "The Beatles", "interest", "likes"),
        ("Vivo en Andalucía", "Andalusia", "home", "lives_in"),
        ("Ich wohne in Argentinien", "Argentina", "home", "lives_in"),
        ("저는 Queen을 좋아해요", "Queen", "interest", "likes"),
    ],
)
def test_a_name_may_have_the_form_of_the_other_language(content: str, said: str, category: str, key: str) -> None:
    """An ending, a particle, or the name of a land; what is no name may be any word."""
    assert refusal(content, content, said, category, key) == ""
