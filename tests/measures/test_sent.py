"""What was sent for a reply comes back by reference: sections, tokens, what changed, and nothing that was erased."""

from __future__ import annotations

import json

import pytest

from holdfast import Config, Memory
from holdfast.cli import main
from holdfast.errors import BadInput, ConfigError
from holdfast.llm.protocol import ModelError
from holdfast.testing.fakes import HashEmbedder
from holdfast.testing.model import ScriptedModel


def talk(chat, *said, reply="Noted."):
    """Say each, with its context made before the reply; return the numbers of the replies."""
    replies = []
    for text in said:
        chat.context(text)
        replies.append(chat.record(text, reply).seqs[-1])
    return replies


def texts(found, name):
    return [item.text for section in found.sections if section.name == name for item in section.items]


def test_the_sections_and_tokens_are_those_of_the_context(memory):
    chat = memory.conversation("web", user="ana")
    talk(chat, "I'm vegetarian.", "I live in Porto.")
    made = chat.context("What should I cook?")
    reply = chat.record("What should I cook?", "A curry.").seqs[-1]

    found = chat.sent(reply)
    assert found == chat.sent()
    assert [(s.name, s.tokens, s.stable) for s in found.sections] == [
        (s.name, s.tokens, s.stable) for s in made.sections if s.tokens
    ]
    assert (found.tokens, found.budget_tokens, found.prefix) == (
        made.tokens,
        made.budget_tokens,
        made.prefix_sha256[:16],
    )
    assert texts(found, "facts") == ["Is vegetarian.", "Lives in Porto."]
    assert texts(found, "recent") == [message.content for message in chat.load(limit=4)]


def test_the_difference_to_the_reply_before_says_why_the_prefix_changed(memory):
    chat = memory.conversation("web", user="ana")
    _, second, third = talk(chat, "I'm vegetarian.", "I live in Porto.", "The sea is near.")
    talk(chat, "It is warm.")

    changed, same = chat.sent(third), chat.sent()
    assert changed.previous_seq == second
    assert changed.prefix_changed_because == "facts: 1 new"
    assert [item.text for s in changed.sections if s.name == "facts" for item in s.items if item.new] == [
        "Lives in Porto."
    ]
    assert same.prefix_changed_because is None
    assert same.sections[0].tokens_before == same.sections[0].tokens
    memory.user("ana").forget(next(fact.id for fact in memory.user("ana").facts() if "Porto" in fact.text))
    talk(chat, "The sky is blue.")
    assert "1 no longer shown" in chat.sent().prefix_changed_because


def test_what_is_erased_later_has_no_text_and_no_copy(memory, tmp_path):
    path = tmp_path / "m.db"
    with Memory(path, embedder=HashEmbedder()) as memory:
        chat, other = memory.conversation("web", user="ana"), memory.conversation("zeppelin-chat", user="ana")
        talk(chat, "The sea is near.")
        talk(other, "I live in Porto.", "The zeppelin flies on Monday at noon.")
        (reply,) = talk(chat, "When does the zeppelin fly?")
        assert any("zeppelin flies" in str(text) for text in texts(chat.sent(reply), "recalled"))
        memory.user("ana").forget(memory.user("ana").facts()[0].id)
        other.clear()

        found = chat.sent(reply)
        assert "Porto" not in repr(found)
        assert "flies" not in repr(found)
        assert None in [item.text for section in found.sections for item in section.items]
    assert b"zeppelin-chat" not in path.read_bytes()


def test_items_that_stay_are_kept_once(memory):
    chat = memory.conversation("web", user="ana")
    talk(chat, "I'm vegetarian.", "I live in Porto.", *(f"Point {n}." for n in range(40)))
    rows = memory._engine.store.read(chat._scope, lambda view: view.contexts_sent(1_000, 100))
    kept = [json.loads(row.sent) for row in reversed(rows)]
    assert all(isinstance(held, int) for one in kept[5:] for name, *_, held in one["sections"] if name == "facts")
    assert texts(chat.sent(), "facts") == ["Is vegetarian.", "Lives in Porto."]


def test_the_provider_s_report_stands_beside_it(memory):
    chat = memory.conversation("web", user="ana")
    (reply,) = talk(chat, "Hello.")
    assert chat.sent(reply).usage is None
    chat.record_usage("gpt-x", input_tokens=120, output_tokens=5, cached_tokens=64, seq=reply)
    assert chat.sent(reply).usage.cached_tokens == 64


def test_nothing_is_on_record_without_a_context(memory):
    chat = memory.conversation("web", user="ana")
    assert chat.sent() is None
    chat.record("Hello.", "Hi.")
    chat.context("Who am I?", note=False)
    chat.record("Who am I?", "Ana.")
    assert chat.sent() is None
    assert chat.sent(2) is None
    for wrong in (0, -1, "two", True, 2.0):
        with pytest.raises(BadInput):
            chat.sent(wrong)


def test_another_user_s_record_is_not_seen(memory):
    (reply,) = talk(memory.conversation("web", user="ana"), "I live in Porto.")
    assert memory.conversation("web", user="bo").sent(reply) is None


def test_the_command_shows_it(tmp_path, capsys):
    path = str(tmp_path / "m.db")
    with Memory(path, config=Config()) as memory:
        talk(memory.conversation("web", user="ana"), "I'm vegetarian.", "Hello.")
    assert main(["context", "--store", path, "--user", "ana", "--sent", "4"]) == 0
    shown = capsys.readouterr().out
    assert "facts: 1 new" in shown
    assert "+ Is vegetarian." in shown
    assert main(["context", "--store", path, "--user", "ana", "--sent", "3"]) != 0
    assert "no context is on record for message 3" in capsys.readouterr().err
    assert main(["context", "--store", path, "--user", "ana", "--sent", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["seq"] == 4


def test_the_memory_s_own_model_replies_and_both_are_stored():
    """The model sees what is known; what it used is counted as a chat and kept with the reply."""
    model = ScriptedModel({"chat": ["A lentil curry."]})
    with Memory(embedder=HashEmbedder(), llm=model) as memory:
        chat = memory.conversation("web", user="ana")
        memory.user("ana").remember("I'm vegetarian.")
        answer = chat.reply("What should I cook?", system="Be brief.")

        assert (answer.role, answer.content, answer.seq) == ("assistant", "A lentil curry.", 2)
        assert [message.content for message in chat.load()] == ["What should I cook?", "A lentil curry."]
        assert "egetarian" in repr(model.requests("chat")[0].before)
        assert "Be brief." in model.requests("chat")[0].system
        assert answer.usage.model
        assert chat.sent().seq == 2
        assert [one.layer for one in memory.usage(by=("layer",))] == ["chat"]


def test_a_model_that_fails_stores_nothing_and_no_model_says_what_to_do(memory):
    with pytest.raises(ConfigError, match="no model"):
        memory.conversation("web", user="ana").reply("Hello.")
    with Memory(embedder=HashEmbedder(), llm=ScriptedModel({"chat": [" ", ModelError("down")]})) as other:
        chat = other.conversation("web", user="ana")
        for _ in range(2):
            with pytest.raises(ModelError):
                chat.reply("Hello.")
        for wrong in ("", "   ", 5, None):
            with pytest.raises(BadInput):
                chat.reply(wrong)
        assert chat.load() == []
