"""Every figure is counted from rows that are there, with its n, and is not given without."""

from __future__ import annotations

from datetime import date

import pytest

from holdfast import Config, Memory, Message, Price
from holdfast.cli import main
from holdfast.errors import BadInput, StoreBusy
from holdfast.jobs.metrics import DEFINITIONS


def failing_write(scope, work):
    raise StoreBusy("the store is busy")


def value(memory, name):
    one = memory.admin.metrics().measure(name)
    return one.value, one.numerator, one.denominator, one.n


def test_an_empty_memory_measures_nothing_and_says_so(memory):
    found = memory.admin.metrics()

    assert [one.name for one in found.measures] == list(DEFINITIONS)
    assert all(one.value is None and one.not_measured and one.definition for one in found.measures)
    assert (found.users, found.left_out) == (0, 0)


def test_a_value_never_comes_without_its_n(memory):
    chat = memory.conversation("c", user="ana")
    for number in range(12):
        chat.context(f"What about {number}?")
        chat.record(f"I like tea number {number}.", "Which one?")
    memory.digest()

    measured = [one for one in memory.admin.metrics().measures if one.value is not None]
    assert len(measured) > 5
    assert all(one.n > 0 and one.denominator > 0 and not one.not_measured for one in measured)


def test_conversation_length_is_the_median_of_the_users_messages(memory):
    for name, turns in (("a", 1), ("b", 2), ("c", 7)):
        for number in range(turns):
            memory.conversation(name, user="ana").record(f"word {number}", "yes")

    assert value(memory, "conversation_length") == (2.0, 10, 3, 3)


def test_token_saving_compares_what_was_sent_with_the_whole_conversation(memory):
    chat = memory.conversation("c", user="ana")
    for number in range(40):
        chat.record(f"A long story about the number {number} and all its sisters. " * 3, "Go on.")
    sent = chat.context("And now?", budget_tokens=300, system="You are kind. " * 50).section("recent").tokens
    chat.record("And now?", "The end.")

    saving, numerator, denominator, n = value(memory, "token_saving")
    assert n == 1
    assert sent <= numerator <= 300  # the caller's own system text is not among it
    assert denominator == sum(message.tokens for message in chat.load()[:-1])
    assert saving == pytest.approx(1 - numerator / denominator)
    assert saving > 0.5


def test_a_reply_without_a_context_of_this_process_is_not_counted(memory):
    memory.conversation("c", user="ana").record("Hello.", "Hello!")

    assert memory.admin.metrics().measure("token_saving").not_measured


def test_a_context_that_is_asked_for_twice_counts_once(memory):
    chat = memory.conversation("c", user="ana")
    chat.context("Hello?")
    chat.context("Hello?")
    chat.record("Hello?", "Hello!")
    chat.record("Again?", "Yes.")

    assert value(memory, "token_saving")[3] == 1


def test_a_failed_append_keeps_the_measure_of_its_context_for_the_next_attempt(memory, monkeypatch):
    chat = memory.conversation("c", user="ana")
    chat.context("Hello?")
    with monkeypatch.context() as patch:
        patch.setattr(memory._engine.store, "write", failing_write)
        with pytest.raises(StoreBusy):
            chat.record("Hello?", "Hello!")
    chat.record("Hello?", "Hello!")

    assert value(memory, "token_saving")[3] == 1


def test_an_erasure_during_a_failed_append_drops_the_measure_of_its_context(memory, monkeypatch):
    chat = memory.conversation("c", user="ana")
    chat.record("My sister Marta collects antique clocks.", "How lovely.")
    chat.context("Who collects clocks?")

    def erased_meanwhile(scope, work):
        monkeypatch.undo()
        memory.user("ana").erase()
        failing_write(scope, work)

    monkeypatch.setattr(memory._engine.store, "write", erased_meanwhile)
    with pytest.raises(StoreBusy):
        chat.record("Who collects clocks?", "Marta and her antique ones.")
    chat.record("Who collects clocks?", "Marta and her antique ones.")

    assert memory.admin.metrics().measure("token_saving").n == 0


def test_prefix_stability_is_the_median_run_of_replies_with_one_prefix(memory):
    chat = memory.conversation("c", user="ana")
    said = ["Hello.", "It rains.", "I live in Porto.", "It rains."]
    for words in said:
        chat.context(words)
        chat.record(words, "I see.")

    # three replies before the fact stands in the prefix, one with it
    assert value(memory, "prefix_stability") == (2.0, 4, 2, 2)


def test_a_recalled_item_that_the_reply_uses_is_a_hit(memory):
    chat = memory.conversation("old", user="ana")
    pages = "Today I read page {} of the long book about ships, harbors, ropes and the people who sail."
    chat.append([Message("user", pages.format(number)) for number in range(40)])  # more than a summary repeats
    chat.record(
        "What a week! My sister Marta collects antique clocks from Vienna, the hall is full of them.", "How lovely."
    )
    chat = memory.conversation("new", user="ana")
    for reply in ("Ask Marta about the antique ones from Vienna.", "I do not know."):
        assert chat.context("Who collects clocks?").section("recalled").items
        chat.record("Who collects clocks?", reply)

    assert value(memory, "recall_hit_rate")[:3] == (0.5, 1, 2)


def test_what_somebody_corrected_counts_against_what_was_learned(memory, clock):
    chat = memory.conversation("c", user="ana")
    chat.record("I live in Porto. I'm vegetarian. My name is Ana.", "Noted.")
    clock.advance(minutes=1)
    ana = memory.user("ana")
    wrong = next(fact for fact in ana.facts() if fact.value == "Porto")
    ana.correct(wrong.id, value="Faro")

    corrected = memory.admin.metrics().measure("correction_rate")
    assert (corrected.numerator, corrected.denominator) == (1, 3)


def test_freshness_is_the_age_of_the_oldest_message_without_summary(memory, clock):
    memory.conversation("c", user="ana").record("Hello.", "Hello!")
    clock.advance(minutes=5)

    age, _, _, n = value(memory, "freshness")
    assert (age, n) == (300.0, 2)


def test_costs_and_cached_tokens_come_from_what_providers_reported(memory):
    chat = memory.conversation("c", user="ana")
    chat.record("Hello.", "Hello!")
    chat.record_usage("m:1", input_tokens=1_000, output_tokens=10, cached_tokens=250, cost=0.002)

    assert value(memory, "cached_share") == (0.25, 250, 1000, 1)
    assert value(memory, "cost_per_1000_turns") == (2.0, 0.002, 1, 1)
    assert value(memory, "call_failures") == (0.0, 0, 1, 1)


def test_a_cost_of_which_a_price_is_missing_is_not_given(clock):
    config = Config(prices={"m:1": Price(input=1.0, output=1.0)})
    with Memory(embedder=None, clock=clock, config=config) as memory:
        chat = memory.conversation("c", user="ana")
        chat.record("Hello.", "Hello!")
        for model in ("m:1", "m:2"):
            chat.record_usage(model, input_tokens=10, output_tokens=1)
        cost = memory.admin.metrics().measure("cost_per_1000_turns")

    assert cost.value is None
    assert cost.not_measured == "the price of 1 answers is not known"


def test_days_bound_what_counts(memory, clock):
    chat = memory.conversation("c", user="ana")
    chat.record("I live in Porto.", "Where do you live?")
    clock.advance(days=2)
    chat.record("In Porto.", "Where do you live?")

    for since, until, asked in ((None, None, 2), (date(2026, 1, 6), None, 1), (None, date(2026, 1, 5), 1)):
        found = memory.admin.metrics(since=since, until=until)
        assert found.measure("repeated_question_rate").denominator == asked
    with pytest.raises(BadInput):
        memory.admin.metrics(since=date(2026, 1, 2), until=date(2026, 1, 1))


def test_users_are_counted_apart_and_together(memory):
    for user, org in (("ana", "acme"), ("bo", "acme"), ("cy", "other")):
        memory.conversation("c", user=user, org=org).record("Hello.", "How are you?")

    assert memory.admin.metrics(org="acme").users == 2
    assert memory.admin.metrics().measure("conversation_length").n == 3
    assert memory.user("bo", org="acme").metrics().measure("repeated_question_rate").n == 1
    some = memory.admin.metrics(most_users=2)
    assert (some.users, some.left_out) == (2, 1)


def test_an_erasure_takes_what_waits_for_a_reply(memory):
    """No words of what was recalled stay in memory after somebody was erased."""
    chat = memory.conversation("c", user="ana")
    chat.record("My sister Marta collects antique clocks.", "How lovely.")
    chat.context("Who collects clocks?")
    memory.user("ana").erase()
    chat.record("Who collects clocks?", "Marta and her antique ones.")

    assert memory.admin.metrics().measure("token_saving").n == 0


def test_the_command_tells_figures_with_their_n(tmp_path, capsys):
    path = str(tmp_path / "m.db")
    with Memory(path, embedder=None) as memory:
        memory.conversation("c", user="ana").record("I live in Porto.", "Where do you live?")

    assert main(["metrics", "--store", path]) == 0
    told = capsys.readouterr().out
    assert "100.0%" in told
    assert "n = 1" in told
    assert "Where do you live?" in told
    assert "not measured" in told


def test_the_use_of_a_reply_is_not_noted_while_paused_or_incognito(memory):
    chat = memory.conversation("c", user="ana")
    chat.append([{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good day"}])

    memory.conversation("c", user="ana", incognito=True).record_usage("m", input_tokens=1, output_tokens=1, seq=2)
    memory.user("ana").pause()
    chat.record_usage("m", input_tokens=1, output_tokens=1, seq=2)
    memory.user("ana").resume()
    assert chat.load()[1].usage is None

    chat.record_usage("m", input_tokens=1, output_tokens=1, seq=2)
    assert chat.load()[1].usage is not None
