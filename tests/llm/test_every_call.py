"""The rules for every call of a model that a conversation causes, whatever its purpose."""

from __future__ import annotations

import re

import pytest

from holdfast import Config, Memory
from holdfast.llm.prompts import SAFETY, load
from holdfast.testing.fakes import FakeClock
from holdfast.testing.model import ScriptedModel
from holdfast.text.render import parse_blocks

from .moving import PHRASE, read, read_all

LONG = "long " * 1_000
KEY = re.compile(r"(facts|summary|episodes|meta|combined):chat:\d+-\d+")


@pytest.fixture(params=[{}, {"economy": True}], ids=["a call a layer", "economy"])
def told(request):
    """``(the model, the memory)`` after a hundred messages."""
    model, clock = ScriptedModel({"facts": read, "combined": read_all}), FakeClock()
    with Memory(
        llm=model, embedder=None, clock=clock, config=Config(prompt_cache_min_tokens=0, **request.param)
    ) as memory:
        chat = memory.conversation("chat", user="ana")
        for turn in range(50):
            said = {3: PHRASE, 8: LONG, 30: f"{LONG} {PHRASE}"}.get(turn, f"The train was late again, {turn} minutes.")
            chat.record(said, LONG if turn == 20 else "Oh no.")
            clock.advance(minutes=2)
            memory.digest()
        chat.end()
        memory.digest()
        yield model, memory


def test_every_call_is_asked_for_one_answer_with_the_same_settings(told):
    model, _ = told

    assert {request.temperature for request in model.asked} == {0}
    assert {request.max_output_tokens for request in model.asked} == {1_024}
    assert {request.timeout_s for request in model.asked} == {60}


def test_no_call_shows_more_of_a_message_than_the_limit(told):
    model, _ = told
    shown = [item for request in model.asked for _, items in parse_blocks(request.text) for item in items]

    assert any("long long" in item for item in shown)
    assert max(item.count("long ") for item in shown) <= 240
    assert all(len(item) < 1_200 + 80 for item in shown if "long long" in item)


def test_every_call_has_a_key_of_its_chat_and_range(told):
    model, _ = told

    assert [request.cache_key for request in model.asked if not KEY.fullmatch(request.cache_key)] == []


def test_every_call_begins_with_its_prompt_file_and_ends_its_instructions_with_the_warning(told):
    model, _ = told
    names = {"facts": "fact_extraction"}
    for request in model.asked:
        prompt = load(names.get(request.layer, request.layer))

        assert request.system.startswith(prompt.system)
        assert SAFETY in request.system
        assert request.prompt == prompt.digest


def test_every_row_that_a_model_wrote_names_it_and_its_prompt(told):
    model, memory = told
    known = {f"{model.name} {request.prompt}" for request in model.asked}
    rows = [*memory.user("ana").facts(), *memory.conversation("chat", user="ana").summaries()]

    assert {row.source for row in rows} <= known | {"rules 1"}
    assert any(row.source in known for row in rows)


def test_every_call_is_on_record_under_its_purpose(told):
    model, memory = told
    counted = {row.layer: (row.calls, row.failed) for row in memory.usage(by=("layer",))}

    assert counted == {
        layer: (sum(request.layer == layer for request in model.asked), 0)
        for layer in {request.layer for request in model.asked}
    }
    assert {row.model for row in memory.usage()} == {model.name}
    assert sum(row.calls for row in memory.usage(by=())) == len(model.asked) >= 5


def test_what_a_key_is_for_can_be_switched_off():
    model, clock = ScriptedModel(), FakeClock()
    with Memory(llm=model, embedder=None, clock=clock, config=Config(prompt_cache=False)) as memory:
        for turn in range(12):
            memory.conversation("chat", user="ana").record(f"The train was late again, {turn} minutes.", "Oh.")
        memory.digest()

    assert {request.cache_key for request in model.asked} == {""}
