"""What the assistant says of the character that it plays is about the assistant, and only where that is asked for."""

from __future__ import annotations

import pytest

from holdfast import Config, Memory
from holdfast.testing.model import ScriptedModel

ROWS = "\n".join(
    [
        "identity,name,Captain Flint,0.95,,set,asserted,permanent,2,I am Captain Flint",
        "home,lives_in,Porto,0.95,,set,asserted,state,1,I live in Porto",
        "possession,owns,the Grey Gull,0.95,user,add,asserted,state,2,I sail on the Grey Gull",
        "hobby,plays,fiddle,0.9,,add,asserted,state,2,If you pay me I play the fiddle",
    ]
)


def played(**settings):
    model = ScriptedModel({"character": [ROWS]})
    with Memory(embedder=None, llm=model, config=Config(extract_every_user_turns=1, **settings)) as memory:
        chat = memory.conversation("a", user="ana")
        chat.record(
            "Ahoy! I live in Porto. Who are you?",
            "I am Captain Flint, and I sail on the Grey Gull. If you pay me I play the fiddle.",
        )
        memory.digest()
        chat.end()
        memory.digest()
        assert memory.doctor().ok
        ana = memory.user("ana")
        facts = [(f.subject, f.key, f.value, f.evidence[0].role) for f in ana.facts() if f.kind == "attribute"]
        return model, sorted(facts), [one.reason.split(":")[0] for one in ana.rejected()]


@pytest.mark.parametrize("economy", [False, True])
def test_the_characters_facts_are_the_assistants(economy):
    model, facts, refused = played(character_facts=True, economy=economy)

    assert facts == [
        ("assistant", "name", "Captain Flint", "assistant"),
        ("assistant", "owns", "the Grey Gull", "assistant"),
        ("self", "lives_in", "Porto", "user"),
    ]
    assert sorted(refused) == ["not-asserted", "not-said-by-character"]
    assert len(model.requests("character")) == 1


def test_without_the_setting_the_assistant_states_nothing():
    model, facts, _ = played()

    assert facts == [("self", "lives_in", "Porto", "user")]
    assert model.requests("character") == []


def test_what_the_character_said_in_other_endings_of_korean_is_its_own():
    rows = "preference,,고양이를 무서워한다,0.95,,add,2,나는 고양이를 무서워해\nplan,plans_to,12월 3일 한강에 간다고 약속했다,0.9,,add,4,약속할게"
    model = ScriptedModel({"character": [rows]})
    with Memory(embedder=None, llm=model, config=Config(character_facts=True, economy=False)) as memory:
        chat = memory.conversation("a", user="mina")
        chat.record("나는 매운 음식을 잘 먹어.", "대단하다. 그리고 나는 고양이를 무서워해.")
        chat.record("고양이를 무서워한다고? 12월 3일에 한강에 같이 가자. 약속해 줘.", "약속할게. 12월 3일, 한강.")
        chat.end()
        memory.digest()

        own = {fact.text for fact in memory.user("mina").facts() if fact.subject == "assistant"}
        assert own == {"고양이를 무서워한다", "계획: 12월 3일 한강에 간다고 약속했다."}


def test_what_is_written_by_hand_of_the_character_reaches_its_context():
    with Memory(embedder=None, config=Config(character_facts=True)) as memory:
        chat = memory.conversation("a", user="ana")
        chat.record("Hello, Ember.", "Rrr.")
        memory.user("ana", subject="assistant").remember("Ember guards a hoard of gold teapots.")
        memory.user("ana", subject="assistant").remember(category="home", key="lives_in", value="Svalbard")
        for one in (chat, memory.conversation("b", user="ana")):
            told = one.context("Who are you?").section("character").text
            assert "gold teapots" in told
            assert "Svalbard" in told
