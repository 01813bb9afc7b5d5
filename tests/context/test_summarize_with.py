"""One running summary of a whole conversation, written by a model."""

from __future__ import annotations

import pytest

from holdfast import Config, strategies
from holdfast.errors import ConfigError
from holdfast.llm.prompts import load
from holdfast.llm.protocol import ModelError
from holdfast.testing.model import ScriptedModel

TALK = [
    {"role": role, "content": text}
    for turn in range(6)
    for role, text in (("user", f"In room {40 + turn} we need {turn} chairs."), ("assistant", "Noted."))
]


def fold(model, messages, before=None, **settings):
    strategy = strategies.Summary(2, summarize=strategies.summarize_with(model, Config(**settings)))
    return strategy, strategy.fold(messages, before)


def test_the_model_sees_the_summary_so_far_and_the_messages_after_it():
    model = ScriptedModel({"rolling_summary": ["Room 40 needs chairs.", "Rooms 40 to 43 need chairs."]})
    strategy, first = fold(model, TALK[:6])
    second = strategy.fold(TALK, first)

    assert (first.text, first.through) == ("Room 40 needs chairs.", 2)
    assert (second.text, second.through) == ("Rooms 40 to 43 need chairs.", 8)
    assert second.source == f"scripted:1 {load('rolling_summary').digest}"
    asked = model.requests("rolling_summary")
    assert "<summary>" not in asked[0].text
    assert '"Room 40 needs chairs."' in asked[1].text
    assert "In room 41" in asked[1].text
    assert "In room 40" not in asked[1].text


def test_the_next_prompt_is_the_summary_and_the_last_exchanges():
    model = ScriptedModel({"rolling_summary": ["Rooms 40 to 43 need chairs."]})
    strategy, rolling = fold(model, TALK)
    shown = strategy.apply(TALK, summary=rolling)

    assert "Rooms 40 to 43 need chairs." in shown[0].content
    assert [message.content for message in shown[1:]] == [message["content"] for message in TALK[8:]]


@pytest.mark.parametrize(
    "reply", [ModelError("no connection"), "I'm sorry, but I can't help with that.", "", "Room 99 needs chairs."]
)
def test_a_model_that_fails_leaves_the_summary_as_it_was(reply):
    model = ScriptedModel({"rolling_summary": ["Room 40 needs chairs.", reply, "Rooms 40 to 43 need chairs."]})
    strategy, first = fold(model, TALK[:6])

    assert strategy.fold(TALK, first) == first
    assert strategy.fold(TALK, first).text == "Rooms 40 to 43 need chairs."


def test_secrets_are_not_shown_and_long_messages_are_cut():
    model = ScriptedModel({"rolling_summary": ["They spoke of rooms and of a card."]})
    talk = [{"role": "user", "content": "My card is 4242 4242 4242 4242. " + "x" * 5000}, *TALK[1:]]
    fold(model, talk, message_char_limit=100)
    (request,) = model.requests("rolling_summary")

    assert "4242" not in request.text
    assert "x" * 200 not in request.text


def test_no_model_is_refused():
    with pytest.raises(ConfigError):
        strategies.summarize_with(None)
