"""The model for tests says what it was told to say, and keeps what it was asked."""

import pytest

from holdfast.llm.protocol import Answer, ModelError, Request
from holdfast.testing.model import ScriptedModel
from holdfast.text.render import render_block


def asked(layer="facts", text=""):
    return Request(layer, "Do as you are told.", text, "0" * 12)


def test_answers_of_a_layer_come_in_turn():
    model = ScriptedModel({"facts": ["one", "two"]})

    assert [model.ask(asked()).text for _ in range(3)] == ["one", "two", "NONE"]
    assert model.requests("facts") == [asked()] * 3
    assert model.requests("episodes") == []


def test_a_function_sees_the_request():
    model = ScriptedModel({"episodes": lambda request: request.text.upper()})

    assert model.ask(asked("episodes", "met Bo")).text == "MET BO"


def test_an_error_is_raised_and_an_answer_returned_as_it_is():
    cut = Answer("half a sent", "scripted:1", finish="length")
    model = ScriptedModel({"facts": [ModelError("refused"), cut]})
    with pytest.raises(ModelError):
        model.ask(asked())

    assert model.ask(asked()) is cut


def test_a_summary_that_nobody_scripted_repeats_the_last_words():
    said = ScriptedModel().ask(asked("chunk_summary", render_block("messages", ["1 user: Guten Tag"]))).text

    assert said == "SUMMARY: 1 user: Guten Tag"


def test_more_can_be_scripted_later():
    model = ScriptedModel()
    model.say("facts", "three")

    assert model.ask(asked()).text == "three"
    assert model.ask(asked()).estimated
