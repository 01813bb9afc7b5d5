"""Keys for prompt caches go to the providers that take them, and to no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.llm import Request, model

from . import server

ASKED = Request(layer="facts", system="Read. " * 300, text="I moved.", prompt="abc", cache_key="facts:1f:1-10")


def body_of(provider, name, request=ASKED, **options):
    provider.replies = [{"o": server.openai, "a": server.anthropic, "g": server.google}[name[0]]()]
    made = model(name, **options)
    made.ask(request)
    made.close()
    return provider.asked[-1].body


@pytest.mark.parametrize(
    ("name", "retention", "kept"),
    [
        ("openai:gpt-5.1", "24h", "24h"),
        ("openai:gpt-5.1", "in_memory", "in_memory"),
        ("openai:gpt-4.1-mini", "24h", "24h"),
        ("openai:gpt-4o-mini", "24h", "in_memory"),
        ("openai:gpt-5.6", "24h", None),
    ],
)
def test_openai_gets_the_key_and_the_longest_time_that_the_model_takes(provider, monkeypatch, name, retention, kept):
    monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
    body = body_of(provider, name, api_key="k", cache_retention=retention)

    assert body["prompt_cache_key"] == "facts:1f:1-10"
    assert body.get("prompt_cache_retention") == kept


@pytest.mark.parametrize(("retention", "ttl"), [("24h", "1h"), ("in_memory", "5m")])
def test_anthropic_gets_a_breakpoint_behind_the_instructions(provider, monkeypatch, retention, ttl):
    monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.url)
    body = body_of(provider, "anthropic:claude-haiku-4-5", api_key="k", cache_retention=retention)

    assert body["system"][-1]["cache_control"]["type"] == "ephemeral"
    assert body["system"][-1]["cache_control"].get("ttl", "5m") == ttl
    assert "cache_control" not in str(body["messages"])


def test_without_a_key_nothing_is_asked_to_be_kept(provider, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.url)
    silent = replace(ASKED, cache_key="")

    assert "cache" not in str(body_of(provider, "openai:gpt-5.1", silent, api_key="k"))
    assert "cache" not in str(body_of(provider, "anthropic:claude-haiku-4-5", silent, api_key="k"))


def test_others_are_asked_as_ever(provider, monkeypatch):
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", provider.url)

    assert "cache" not in str(body_of(provider, "google:gemini-2.5-flash", api_key="k"))
    assert "cache" not in str(body_of(provider, "openai:qwen3", base_url=provider.url))


def test_a_cache_that_is_refused_is_done_without(provider, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
    made = model("openai:gpt-5.1", api_key="k")
    refusal = {"error": {"message": "Unknown parameter: 'prompt_cache_retention'.", "code": "unknown_parameter"}}
    provider.replies = [server.of(refusal, 400), server.openai()]
    made.ask(ASKED)
    made.close()

    first, second = (asked.body for asked in provider.asked)
    assert first["prompt_cache_key"] == second["prompt_cache_key"] == "facts:1f:1-10"
    assert (first["prompt_cache_retention"], second.get("prompt_cache_retention")) == ("24h", None)


def test_a_key_is_no_longer_than_providers_take_and_stays_that_of_its_range(provider, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
    keys = [f"facts:{'conversation' * 20}:1-{end}" for end in (10, 10, 20)]
    sent = [
        body_of(provider, "openai:gpt-5.1", replace(ASKED, cache_key=key), api_key="k")["prompt_cache_key"]
        for key in keys
    ]

    assert max(map(len, sent)) <= 64
    assert sent[0] == sent[1] != sent[2]
