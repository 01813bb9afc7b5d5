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
    assert sorted(refused) == ["not-asserted", "not-said-by-user"]
    assert len(model.requests("character")) == 1


def test_without_the_setting_the_assistant_states_nothing():
    model, facts, _ = played()

    assert facts == [("self", "lives_in", "Porto", "user")]
    assert model.requests("character") == []
