"""A model is asked as seldom as the settings promise."""

from __future__ import annotations

import importlib
from collections import Counter
from pathlib import Path

import pytest

from holdfast import Config

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
EXCHANGES = 100


@pytest.mark.parametrize("name", ["defaults", "economy"])
def test_calls_and_prompt_tokens_per_hundred_messages_stay_below_their_bars(name, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    benchmark = importlib.import_module("model_calls")
    requests = benchmark.asked(Config(economy=name == "economy"), EXCHANGES)
    calls, tokens = benchmark.per_hundred(requests, 2 * EXCHANGES)
    layers = Counter(request.layer for request in requests)

    most_calls, most_tokens = benchmark.BARS[name]
    assert calls <= most_calls, layers
    assert tokens <= most_tokens
    assert layers["combined" if name == "economy" else "facts"] >= EXCHANGES // 6


def test_what_two_prompts_share_is_counted_from_their_beginning(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    benchmark = importlib.import_module("model_calls")
    shared = "word " * 2000

    assert benchmark.kept([shared + "a", shared + "b"]) == pytest.approx((1, 1), abs=0.1)
    assert benchmark.kept(["b" + shared, "a" + shared]) == (0, 0)
    assert benchmark.kept(["short one", "short two"])[1] == 0
