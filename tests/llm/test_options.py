"""The options of a call beside the prompt, and the call without those that a provider refuses."""

from __future__ import annotations

import pytest

from holdfast.llm import model

from . import server
from .server import of
from .test_remote import ASKED, KEY, SHAPES, URLS, failure


@pytest.fixture
def compatible(provider):
    made = model("openai:qwen3", base_url=f"{provider.url}/v1", api_key=KEY)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("name", "temperature", "limit"),
    [
        ("openai:gpt-4.1-mini", 0, 1024),
        ("openai:gpt-5.1", 0, 1024),
        ("openai:gpt-5-mini", None, 5120),
        ("openai:o3", None, 5120),
        ("anthropic:claude-haiku-4-5", 0, 1024),
        ("anthropic:claude-opus-4-7", None, 1024),
        ("google:gemini-2.5-pro", 0, 5120),
    ],
)
def test_models_that_take_no_temperature_get_none_and_thinkers_get_room(
    provider, monkeypatch, name, temperature, limit
):
    kind = name.partition(":")[0]
    monkeypatch.setenv(URLS[kind], provider.url)
    provider.replies = [SHAPES[kind]()]
    asked = model(name, api_key=KEY)
    asked.ask(ASKED)
    asked.close()

    (body,) = (seen.body for seen in provider.asked)
    sent = body.get("generationConfig", body)
    limits = {"openai": "max_completion_tokens", "anthropic": "max_tokens", "google": "maxOutputTokens"}
    assert (sent.get("temperature"), sent[limits[kind]]) == (temperature, limit)


@pytest.mark.parametrize(
    ("code", "body"),
    [
        (
            400,
            {"message": "Unsupported value: 'temperature' does not support 0 with this model.", "param": "temperature"},
        ),
        (422, {"message": "unexpected field temperature"}),
    ],
)
def test_a_model_that_takes_no_temperature_is_asked_without_from_then_on(compatible, provider, code, body):
    provider.replies = [of({"error": body}, code), server.openai()]

    assert [compatible.ask(ASKED).text for _ in range(2)] == ["Porto"] * 2
    assert [asked.body.get("temperature") for asked in provider.asked] == [0, None, None]


def test_a_limit_under_its_newer_name_is_used_where_the_older_is_refused(compatible, provider):
    refusal = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
    provider.replies = [of({"error": {"message": refusal}}, 400), server.openai()]

    assert [compatible.ask(ASKED).text for _ in range(2)] == ["Porto"] * 2
    limits = [(asked.body.get("max_tokens"), asked.body.get("max_completion_tokens")) for asked in provider.asked]
    assert limits == [(1024, None), (None, 1024), (None, 1024)]


def test_an_option_is_left_out_once_and_then_the_refusal_is_told(compatible, provider):
    provider.replies = [of({"error": {"message": "temperature and max_tokens: no"}}, 400)]

    assert "rejected the request (status 400)" in str(failure(compatible))
    assert len(provider.asked) == 3
