"""Counts that learn from providers, and tiktoken's own."""

from __future__ import annotations

import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import CalibratedCounter, Memory, TiktokenCounter
from holdfast.errors import ConfigError
from holdfast.text.terms import MESSAGE_OVERHEAD_TOKENS, count_tokens

LONG = [{"role": "user", "content": "words and more words " * 50}]
ESTIMATED = count_tokens(LONG[0]["content"]) + MESSAGE_OVERHEAD_TOKENS


def test_before_anything_was_learned_it_is_the_estimate():
    assert CalibratedCounter()("some words") == count_tokens("some words")


@pytest.mark.parametrize("ratio", [0.7, 1.0, 1.4])
def test_it_comes_to_count_as_the_provider_does(ratio):
    count = CalibratedCounter()
    for _ in range(30):
        count.learn(LONG, round(ESTIMATED * ratio), model="m")

    assert abs(count.factor("m") - ratio) < 0.02
    assert abs(count(LONG[0]["content"]) - ESTIMATED * ratio) < 0.05 * ESTIMATED


def test_each_model_has_its_own_factor():
    count = CalibratedCounter()
    count.learn(LONG, 2 * ESTIMATED, model="dense")
    count.learn(LONG, ESTIMATED, model="plain")

    assert count("x" * 600) == count.of("plain")("x" * 600) == count_tokens("x" * 600)
    assert count.of("dense")("x" * 600) == 2 * count_tokens("x" * 600)
    assert count.of("never seen")("x" * 600) == count_tokens("x" * 600)


def test_it_follows_a_rise_faster_than_a_fall():
    """A budget must hold."""
    count = CalibratedCounter()
    count.learn(LONG, ESTIMATED, model="m")
    count.learn(LONG, 2 * ESTIMATED, model="m")
    risen = count.factor("m")
    count.learn(LONG, ESTIMATED, model="m")

    assert risen == 1.5
    assert 1.4 < count.factor("m") < risen


@given(st.lists(st.integers(-5, 10**9), max_size=30))
def test_no_report_drives_it_out_of_its_bounds(reports):
    count = CalibratedCounter()
    for tokens in reports:
        count.learn(LONG, tokens, model="m")

    assert 0.5 <= count.factor("m") <= 3


def test_a_prompt_too_short_to_tell_anything_is_passed_over():
    count = CalibratedCounter()
    count.learn([{"role": "user", "content": "hi"}], 500, model="m")

    assert count.factor("m") == 1


def test_threads_may_learn_and_count_at_once():
    count = CalibratedCounter()
    threads = [
        threading.Thread(target=count.learn, args=(LONG, ESTIMATED), kwargs={"model": f"m{n}"}) for n in range(9)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {count.factor(f"m{n}") for n in range(9)} == {1.0}


def test_a_context_is_measured_with_it():
    with Memory(embedder=None) as memory:
        chat = memory.conversation("c", user="ana")
        for number in range(40):
            chat.record(f"question {number} " + "words " * 20, "answer " * 20)
        count = CalibratedCounter()
        count.learn(LONG, 2 * ESTIMATED)
        plain, doubled = chat.context(budget_tokens=1000), chat.context(budget_tokens=1000, count=count)

        assert doubled.tokens <= 1000
        assert len(doubled.section("recent").items) < len(plain.section("recent").items)


def test_tiktoken_that_is_missing_is_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "tiktoken", None)

    with pytest.raises(ConfigError, match=r"holdfast\[tiktoken\]"):
        TiktokenCounter("o200k_base")


def test_a_tiktoken_encoding_counts():
    """An encoding made here, of single bytes and one special token, so that nothing is downloaded."""
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {bytes([byte]): byte for byte in range(256)}
    encoding = tiktoken.Encoding("bytes", pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens={"<|end|>": 256})

    assert TiktokenCounter(encoding)("Olá <|end|>") == len("Olá <|end|>".encode())


def test_an_unknown_encoding_is_named():
    pytest.importorskip("tiktoken")

    with pytest.raises(ConfigError, match="no-such-model"):
        TiktokenCounter("no-such-model")
