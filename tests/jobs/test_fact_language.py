"""Facts and episodes in another language than the chat: the quote grounds them, and holds their numbers, names and negation."""

from __future__ import annotations

import pytest

from holdfast import Config, Memory
from holdfast.errors import ConfigError
from holdfast.testing.model import ScriptedModel

SAID = (
    "I live in Lisbon and I'm allergic to peanuts.",
    "My brother Sam is 30. I don't eat meat, and I'd love to move to Porto one day.",
    "I take 50 mg sertraline.",
)


def read(language, said, rows="NONE", episodes="No facts to record"):
    """Return the user after a model answered *rows* and *episodes* about what was *said* in messages 1, 3, 5, …"""
    model = ScriptedModel({"chunk_summary": ["SUMMARY: They talked."], "facts": lambda _: rows, "episodes": [episodes]})
    memory = Memory(":memory:", llm=model, config=Config(fact_language=language))
    chat = memory.conversation("a", user="u")
    for text in said:
        chat.record(text, "OK.")
    chat.end()
    memory.digest()
    asked = [request.text for request in model.asked if request.layer == "combined"]
    user = memory.user("u")
    found = {fact.text: fact.evidence[0].quote for fact in user.facts()}
    refused = {one.candidate.text: one.reason.partition(":")[0] for one in user.rejected()}
    hits = [hit.text for hit in user.search("Which peanuts allergy?", kinds=("fact",))]
    memory.close()
    return found, refused, hits, asked


@pytest.mark.parametrize(
    ("row", "text", "quote"),
    [
        ("home,lives_in,Lisboa,0.95,,set,1,I live in Lisbon", "Vive en Lisboa.", "I live in Lisbon"),
        ("allergy,allergic_to,cacahuetes,0.95,,add,1,I'm allergic to peanuts", "Tiene alergia: cacahuetes.", "I'm allergic to peanuts"),
        ("context,,Su hermano Sam tiene 30 años.,0.9,,add,3,My brother Sam is 30", "Su hermano Sam tiene 30 años.", "My brother Sam is 30"),
        ("food,,No come carne.,0.9,,add,3,I don't eat meat", "No come carne.", "I don't eat meat"),
        ("goal,wants_to,mudarse a Oporto,0.9,,add,3,I'd love to move to Porto one day", "Quiere mudarse a Oporto.", "I'd love to move to Porto one day"),
        ("context,,Quiere mudarse a Oporto algún día.,0.9,,add,3,I'd love to move to Porto one day", "Quiere mudarse a Oporto algún día.", "I'd love to move to Porto one day"),
        ("medication,sertralina,50 mg,0.9,,set,5,I take 50 mg sertraline", "Sertralina: 50 mg.", "I take 50 mg sertraline"),
    ],
)  # fmt: skip
def test_a_fact_has_its_language_and_the_quote_the_chats(row, text, quote):
    found, refused, _, _ = read("es", SAID, row)

    assert found == {text: quote}
    assert not refused


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("history,,Fue a la luna.,0.9,,add,1,I went to the moon", "quote-not-found"),
        ("home,lives_in,Madrid,0.95,,set,1,I live in Lisbon", "name-not-said"),
        ("context,,Vive con Ana en Lisboa.,0.9,,add,1,I live in Lisbon", "name-not-said"),
        ("context,,Su hermano Sam tiene 31 años.,0.9,,add,3,My brother Sam is 30", "number-not-said"),
        ("medication,sertralina,75 mg,0.9,,set,5,I take 50 mg sertraline", "number-not-said"),
        ("food,likes,carne,0.9,,add,3,I don't eat meat", "negation-not-said"),
        ("food,likes,carne,0.9,,add,3,eat meat", "negation-not-said"),
        ("home,,No vive en Lisboa.,0.9,,add,1,I live in Lisbon", "negation-not-said"),
        ("context,,Vive en Oporto.,0.9,,add,3,I'd love to move to Porto one day", "not-asserted"),
        ("context,,Tiene 30 años.,0.9,,add,3,My brother Sam is 30", "about-someone-else"),
    ],
)
def test_what_the_quote_does_not_hold_is_refused_in_any_language(row, reason):
    found, refused, _, _ = read("es", SAID, row)

    assert not found
    assert list(refused.values()) == [reason]


def test_an_episode_in_korean_rests_on_the_words_that_it_quotes():
    """Also on a short message that it names; a date that nobody said, and the opposite, are refused."""
    said = (
        "On November 10, 2025 we had our first meeting over tteokbokki at Meko Restaurant!",
        "I am afraid of cats.",
    )
    lines = (
        '- 2025년 11월 10일, Meko Restaurant에서 떡볶이를 먹으며 처음 만남 [1: "we had our first meeting over tteokbokki at Meko Restaurant"]',
        "- 사용자는 고양이를 무서워함 [3]",
        "- 사용자는 고양이를 무서워하지 않음 [3]",
        "- 2024년 12월 24일 처음 만남 [1]",
        "- 제주에서 만남 [1: we met on Jeju]",
    )
    found, refused, _, asked = read("ko", said, episodes="\n".join(lines))

    assert found == {
        "2025년 11월 10일, Meko Restaurant에서 떡볶이를 먹으며 처음 만남": "we had our first meeting over tteokbokki at Meko Restaurant",
        "사용자는 고양이를 무서워함": "I am afraid of cats.",
    }
    assert sorted(refused.values()) == ["negation-not-said", "number-not-said", "quote-not-found"]
    assert "facts and episodes: in Korean" in asked[0]


def test_english_facts_of_a_korean_chat():
    found, refused, _, _ = read(
        "en",
        ("오늘 메코 식당에서 떡볶이를 먹으면서 처음 만났어요. 저는 고수는 못 먹어요.",),
        "food,does_not_eat,cilantro,0.9,,add,1,고수는 못 먹어요\nfood,likes,cilantro,0.9,,add,1,고수는 못 먹어요",
    )

    assert found == {"Does not eat or drink cilantro.": "고수는 못 먹어요"}
    assert list(refused.values()) == ["negation-not-said"]


def test_a_question_in_the_chats_language_finds_it_by_its_quote():
    _, _, hits, _ = read("es", SAID, "allergy,allergic_to,cacahuetes,0.95,,add,1,I'm allergic to peanuts")

    assert hits[:1] == ["Tiene alergia: cacahuetes."]


def test_a_chat_in_the_facts_language_is_read_as_ever():
    """By the rules at once, and what a model makes of it is compared word by word."""
    row = "history,,Trabajó en Marte.,0.9,,add,1,Vivo en Lisboa"
    found, refused, _, _ = read("es", ("Vivo en Lisboa y soy vegetariana, gracias.",), row)

    assert "Vive en Lisboa." in found
    assert refused == {}
    assert "Trabajó en Marte." not in found or found["Trabajó en Marte."] == "Vivo en Lisboa"


def test_without_the_setting_a_translated_value_is_refused_with_the_fix():
    memory = Memory(":memory:", llm=ScriptedModel({"facts": ["home,lives_in,Busan,0.9,,set,1,부산 바닷가에서 지내고"]}))
    memory.conversation("a", user="u").record("요즘은 부산 바닷가에서 지내고 있어요.", "네.")
    memory.conversation("a", user="u").end()
    memory.digest()

    assert "Config.fact_language" in memory.user("u").rejected()[0].reason


def test_a_language_is_given_by_its_code():
    with pytest.raises(ConfigError, match="it must be one of"):
        Config(fact_language="Spanish")


def episodes_of(said: str, bullet: str) -> list[str]:
    answer = f"SUMMARY: -\nTHEMES: -\nCONCERNS: -\nACTIONS: -\nEPISODES:\n- {bullet} [1]\nFACTS:\nNONE"
    model = ScriptedModel(otherwise=lambda request: answer if request.layer == "combined" else "NONE")
    with Memory(embedder=None, llm=model) as memory:
        chat = memory.conversation("c", user="mina", bot="rin")
        chat.record(said, "Hm.")
        chat.end()
        memory.digest()
        return [fact.text for fact in chat.episodes()]


@pytest.mark.parametrize(
    ("said", "bullet", "kept"),
    [
        # says no more than the fact that was read
        ("저는 매운 음식을 좋아해요.", "사용자는 매운 음식을 좋아함", False),
        ("등산을 좋아합니다.", "사용자가 등산을 정말 좋아한다고 함", False),
        ("辛い食べ物が好きです。", "ユーザーは辛い食べ物が好き", False),
        ("Ich mag scharfes Essen.", "Der Nutzer mag scharfes Essen", False),
        ("Me gusta la comida picante.", "Al usuario le gusta la comida picante", False),
        # says more
        ("등산을 좋아합니다.", "사용자는 주말 등산을 좋아함", True),
        ("저는 매운 음식을 좋아해요.", "사용자는 매운 음식을 잘 먹는다고 함", True),
        ("떡볶이를 좋아해요. 메코 식당에서 처음 먹었어요.", "사용자는 메코 식당에서 떡볶이를 처음 먹음", True),
        # gives the character what the user said of himself
        ("I love tteokbokki.", "The character loves tteokbokki", False),
        ("My favorite city is Porto.", "Character's favorite city is Porto", False),
        ("저는 고양이를 무서워해요.", "캐릭터는 고양이를 무서워함", False),
        ("登山が好きです。", "キャラクターは登山が好き", False),
        ("Ich habe Angst vor Spinnen.", "Der Charakter hat Angst vor Spinnen", False),
        # what the user said of the character, and of both
        ("You are afraid of cats, Rin!", "The character is afraid of cats", True),
        ("I promised you a trip to Jeju.", "The character was promised a trip to Jeju", True),
        ("We met at Meko Restaurant.", "The character met the user at Meko Restaurant", True),
        ("I gave the assistant a silver ring.", "The assistant got a silver ring", True),
        ("너는 고양이를 무서워해.", "캐릭터는 고양이를 무서워함", True),
        ("린은 고양이를 무서워해.", "캐릭터는 고양이를 무서워함", True),
    ],
)
def test_a_bullet_is_kept_where_it_says_something_and_of_whom_it_was_said(said: str, bullet: str, kept: bool) -> None:
    assert episodes_of(said, bullet) == [bullet] * kept
