"""A model is asked as seldom as the settings promise."""

from __future__ import annotations

from collections import Counter

import pytest

from holdfast import Config
from holdfast.bench import model_calls

EXCHANGES = 100


@pytest.mark.parametrize("name", ["defaults", "economy"])
def test_calls_and_prompt_tokens_per_hundred_messages_stay_below_their_bars(name):
    requests = model_calls.count_requests(Config(economy=name == "economy", chunk_tokens=600), EXCHANGES)
    calls, tokens = model_calls.per_hundred(requests, 2 * EXCHANGES)
    layers = Counter(request.layer for request in requests)

    most_calls, most_tokens = model_calls.BARS[name]
    assert calls <= most_calls, layers
    assert tokens <= most_tokens
    assert layers["combined"] >= EXCHANGES // 12
    assert (layers["facts"] >= EXCHANGES // 20) == (
        name == "defaults"
    )  # what is stated is read before its chunk closes


def test_what_two_prompts_share_is_counted_from_their_beginning():
    shared = "word " * 2000

    assert model_calls.shared_beginnings([shared + "a", shared + "b"]) == pytest.approx((1, 1), abs=0.1)
    assert model_calls.shared_beginnings(["b" + shared, "a" + shared]) == (0, 0)
    assert model_calls.shared_beginnings(["short one", "short two"])[1] == 0
