"""Each classic strategy against its row of the table: what it keeps, how its tokens grow, what it loses, extra calls."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Memory, strategies
from holdfast.context.assemble import assemble
from holdfast.context.material import Material
from holdfast.digest.summarize import summarize_conversation
from holdfast.errors import BadInput, ConfigError
from holdfast.text.terms import MESSAGE_OVERHEAD_TOKENS, count_tokens
from holdfast.types import Message, RollingSummary

from .checks import anthropic_accepts, in_order, tool_calls_are_paired, within_budget
from .test_invariants import conversation, world
from .worlds import CHAT, message, summary, tree

Buffer, Window, TokenBuffer = strategies.Buffer, strategies.Window, strategies.TokenBuffer
Summary, SummaryBuffer = strategies.Summary, strategies.SummaryBuffer

SYSTEM = Message("system", "Answer in one sentence.")
CALL = [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Lisbon"}'}}]

some_strategy = st.one_of(
    st.just(Buffer()),
    st.integers(1, 12).map(Window),
    st.integers(1, 3000).map(TokenBuffer),
    st.integers(1, 6).map(Summary),
    st.integers(1, 3000).map(SummaryBuffer),
)


def exchanges(number: int, words: int = 8) -> list[Message]:
    found = []
    for n in range(1, number + 1):
        found.append(Message("user", f"question {n} " + "about things " * words))
        found.append(Message("assistant", f"answer {n} " + "of some length " * words))
    return found


def cost(messages: list[Message]) -> int:
    return sum(count_tokens(m.content) + MESSAGE_OVERHEAD_TOKENS for m in messages)


def said(messages: list[Message]) -> list[str]:
    return [" ".join(m.content.split()[:2]) for m in messages if "summary" not in m.meta]


# The table, over messages alone.


@given(st.integers(0, 80))
def test_buffer_keeps_everything_as_it_is(number):
    talk = exchanges(number)

    assert Buffer().apply(talk) == talk


@given(st.integers(1, 60), st.integers(1, 10))
def test_window_keeps_the_last_exchanges_and_its_cost_is_fixed(number, kept):
    shown = Window(kept).apply(exchanges(number))

    assert shown == exchanges(number)[-2 * kept :]
    assert cost(shown) <= cost(exchanges(kept)) + 4 * kept  # numbers get longer


@given(st.integers(0, 60), st.integers(100, 2000))
def test_token_buffer_keeps_as_many_as_fit(number, tokens):
    talk = exchanges(number)
    shown = TokenBuffer(tokens).apply(talk)
    more = talk[-len(shown) - 1 :] if shown else talk[-1:]

    assert shown == (talk[-len(shown) :] if shown else [])
    assert cost(shown) <= tokens
    assert len(shown) == len(talk) or cost(more) > tokens


def test_token_buffer_counts_tokens_and_not_messages():
    long, short = Message("user", "word " * 300), [Message("user", "yes"), Message("assistant", "no")] * 5

    assert TokenBuffer(150).apply([long, *short]) == short


def journeys(number: int) -> list[Message]:
    found = []
    for n in range(1, number + 1):
        town = ("Lisbon", "Porto", "Faro", "Braga", "Sintra")[n % 5]
        found.append(Message("user", f"On day {n} I took the train to {town} and met friend number {n} there."))
        found.append(Message("assistant", "That sounds like a lovely trip."))
    return found


@pytest.mark.parametrize("number", [5, 30, 300])
def test_summary_is_near_constant_and_tells_of_beginning_and_end(number):
    shown = Summary(2).apply(journeys(number))
    days = [int(day) for day in re.findall(r"On day (\d+) ", shown[0].content)]

    assert shown[1:] == journeys(number)[-4:]
    assert shown[0].meta["summary"] == {"through": 2 * number - 4, "source": "rules 1"}
    assert days == sorted(days)
    assert days[0] == 1
    assert days[-1] > number - 10
    assert cost(shown) < 500


@pytest.mark.parametrize("number", [3, 30, 300])
def test_summary_buffer_is_bounded_and_keeps_recent_messages_verbatim(number):
    shown = SummaryBuffer(400).apply(exchanges(number))
    verbatim = [m for m in shown if "summary" not in m.meta]

    assert verbatim == exchanges(number)[-len(verbatim) :]
    assert cost(verbatim) <= 400
    assert (len(verbatim) == 2 * number) == (cost(exchanges(number)) <= 400)
    assert cost(shown) < 400 + 500


def told_through(strategy, talk) -> tuple[int, list[tuple[str, int]]]:
    """Replay *talk* exchange by exchange: what the summary tells at the end, and every call of the summariser."""
    calls: list[tuple[str, int]] = []

    def summarize(before: str, messages: list[Message]) -> str:
        calls.append((before, len(messages)))
        return f"{before}|{messages[0].content.split()[1]}-{messages[-1].content.split()[1]}"

    strategy, kept = replace(strategy, summarize=summarize), None
    for end in range(2, len(talk) + 1, 2):
        kept = strategy.fold(talk[:end], kept)
    return kept.through, calls


def test_summary_calls_once_an_exchange_and_each_message_goes_in_once():
    through, calls = told_through(Summary(2), exchanges(40))

    assert through == 76
    assert [size for _, size in calls] == [2] * 38


def test_summary_buffer_calls_once_an_overflow():
    through, calls = told_through(SummaryBuffer(400), exchanges(40))

    assert sum(size for _, size in calls) == through
    assert 3 <= len(calls) <= 14


@pytest.mark.parametrize("strategy", [Buffer(), Window(3), TokenBuffer(300)])
def test_the_other_three_have_no_summariser_to_call(strategy):
    assert not hasattr(strategy, "summarize")


@given(
    strategy=st.one_of(st.integers(1, 5).map(Summary), st.integers(60, 900).map(SummaryBuffer)),
    number=st.integers(0, 20),
)
def test_nothing_falls_between_summary_and_messages(strategy, number):
    """Step by step: what the summary tells and what is shown are together the whole talk."""
    kept, talk = None, exchanges(number)
    for end in range(2, len(talk) + 1, 2):
        kept = strategy.fold(talk[:end], kept)
        shown = strategy.apply([*talk[:end], Message("user", "and now")], summary=kept)
        verbatim = [m for m in shown if "summary" not in m.meta]

        assert verbatim == [*talk[kept.through : end], Message("user", "and now")]
        assert kept.through == 0 or shown[0].meta["summary"]["through"] == kept.through


def test_a_callers_summary_is_named_and_cut_visibly_to_the_budget():
    strategy = Summary(1, summarize=lambda before, messages: "and then " * 3000)
    shown = strategy.apply(exchanges(9), budget_tokens=300)

    assert "characters left out" in shown[0].content
    assert "<lambda>" in shown[0].meta["summary"]["source"]
    assert cost(shown) <= 300


def test_a_summariser_must_return_text():
    with pytest.raises(BadInput, match="text"):
        Summary(1, summarize=lambda before, messages: None).fold(exchanges(3))


def test_the_built_in_summary_goes_on_as_if_it_began_anew():
    """Folding exchange by exchange tells the same as summarising everything at the end."""
    kept, talk = RollingSummary(), exchanges(37)
    for end in range(2, len(talk) + 1, 2):
        kept = Summary(2).fold(talk[:end], kept)

    assert kept == Summary(2).fold(talk)


# System messages, tools, questions.


@given(some_strategy, st.integers(0, 30))
def test_system_messages_at_the_head_stay_first(strategy, number):
    shown = strategy.apply([SYSTEM, *exchanges(number)], budget_tokens=2000)

    assert number == 0 or getattr(strategy, "tokens", 1000) < 300 or shown[0] == SYSTEM
    assert shown.count(SYSTEM) <= 1


def test_opening_system_messages_are_not_summarized():
    strategy = Summary(1, summarize=lambda before, messages: " ".join(m.role for m in messages))

    assert "system" not in strategy.fold([SYSTEM, *exchanges(5)]).text


def with_tools(number: int) -> list[Message]:
    found = []
    for n in range(number):
        calls = [{**CALL[0], "id": f"c{n}"}]
        found.append(Message("user", f"question {n}"))
        found.append(Message("assistant", "", meta={"tool_calls": calls}))
        found.append(Message("tool", "sunny " * 10, meta={"tool_call_id": f"c{n}"}))
        found.append(Message("assistant", f"answer {n}"))
    return found


@given(some_strategy, st.integers(0, 12), st.integers(0, 3), st.one_of(st.none(), st.integers(1, 600)))
def test_tool_calls_and_results_are_never_split(strategy, number, cut, budget):
    """Not even when the talk given begins with results whose call is gone."""
    shown = strategy.apply(with_tools(number)[cut:], budget_tokens=budget)

    sent = [m for m in shown if "summary" not in m.meta]
    waiting: set[str] = set()
    for each in sent:
        if each.role == "tool":
            assert each.meta["tool_call_id"] in waiting
        waiting = {call["id"] for call in each.meta.get("tool_calls", ())} if each.role != "tool" else waiting
    assert not sent or sent[0].role != "tool"


def test_results_at_the_head_without_their_call_are_not_shown():
    assert Buffer().apply(with_tools(1)[2:]) == with_tools(1)[3:]


def test_a_result_that_is_not_shown_is_left_out_by_name():
    messages = [replace(m, seq=seq) for seq, m in enumerate(with_tools(2)[2:], 1)]
    context, _ = assemble(Material(CHAT, messages, 6), budget_tokens=4000, recent_messages=20, strategy=Buffer())

    (left,) = context.left_out
    assert (left.start_seq, left.end_seq) == (1, 1)
    assert "without its call" in left.reason


def test_a_window_of_tokens_does_not_begin_with_a_result_without_its_call():
    """The call was never stored, and the result would be the oldest message that fits."""
    lost = Message("tool", "sunny", meta={"tool_call_id": "gone"})
    talk = [*exchanges(3), lost, *exchanges(1)]

    assert TokenBuffer(cost([lost, *exchanges(1)]) + 30).apply(talk) == exchanges(1)


def test_an_open_question_is_shown_beside_the_exchanges():
    asked = [*exchanges(9), Message("user", "and now?")]

    assert Window(2).apply(asked) == asked[-5:]
    assert Window(2).apply(asked[:-1]) == asked[-5:-1]


def test_a_question_too_long_for_the_budget_is_cut_visibly():
    shown = Buffer().apply([*exchanges(3), Message("user", "why " * 5000)], budget_tokens=100)

    assert len(shown) == 1
    assert "characters left out" in shown[0].content
    assert cost(shown) <= 100


def test_mappings_are_messages_too():
    assert [m.content for m in Window(1).apply([{"role": "user", "content": "hi"}])] == ["hi"]


@given(some_strategy, st.integers(0, 10**9), st.integers(0, 80), st.integers(1, 3000))
def test_the_budget_holds_whatever_the_talk_is_like(strategy, seed, length, budget):
    talk = conversation(random.Random(seed), length)
    shown = strategy.apply(talk, budget_tokens=budget)

    assert cost(shown) <= budget


@pytest.mark.parametrize("make", [Window, TokenBuffer, Summary, SummaryBuffer])
@pytest.mark.parametrize("number", [0, -1, 2.5, "4", True])
def test_a_size_is_a_whole_number_of_at_least_1(make, number):
    with pytest.raises(ConfigError, match="at least 1"):
        make(number)


# In a context.


def told_once(material: Material, context) -> None:
    """Every stored message is shown, summarized, or named among what is left out."""
    told = {seq for s in context.sources if s.kind != "query" for seq in range(s.start_seq, s.end_seq + 1)}
    told |= {
        seq for left in context.left_out if left.kind == "messages" for seq in range(left.start_seq, left.end_seq + 1)
    }
    erased = set(range(material.first_given, material.total_messages + 1)) - {m.seq for m in material.messages}

    assert set(range(1, material.total_messages + 1)) - told <= erased
    verbatim = [s.start_seq for s in context.sources if s.section in ("opening", "recent") and s.kind == "message"]
    assert len(verbatim) == len(set(verbatim))
    assert all(left.reason for left in context.left_out)


@given(
    strategy=some_strategy,
    seed=st.integers(0, 10**9),
    length=st.integers(0, 120),
    budget=st.one_of(st.integers(1, 300), st.integers(1, 6000)),
    erase=st.booleans(),
)
def test_every_context_keeps_the_promises_of_all(strategy, seed, length, budget, erase):
    """Budget, order, tool pairs, what Anthropic takes; and nothing left out in silence."""
    material = replace(world(seed, length, 10, erase=erase), roll=summarize_conversation)

    context, _ = assemble(material, budget_tokens=budget, recent_messages=10, strategy=strategy)

    within_budget(context, count_tokens)
    in_order(context)
    tool_calls_are_paired(context.messages)
    anthropic_accepts(context.to_anthropic())
    told_once(material, context)
    assert not context.section("recalled").items


def talk_of(last: int, covered: int) -> Material:
    return Material(
        CHAT,
        [message(seq) for seq in range(1, last + 1)],
        last,
        tree(covered),
        query="now?",
        roll=summarize_conversation,
    )


def test_a_context_with_a_summary_shows_what_the_memory_summarized():
    context, _ = assemble(talk_of(46, 40), budget_tokens=4000, recent_messages=20, strategy=Summary(2))

    (source,) = [s for s in context.sources if s.kind == "summary"]
    recent = [s.start_seq for s in context.sources if s.section == "recent" and s.kind == "message"]
    assert (source.start_seq, source.end_seq) == (1, 42)
    assert recent == [43, 44, 45, 46]


def test_a_summary_buffer_starts_where_a_stored_summary_ends():
    material = talk_of(47, 40)
    tokens = sum(m.tokens for m in material.messages[20:]) + 30
    context, _ = assemble(material, budget_tokens=4000, recent_messages=20, strategy=SummaryBuffer(tokens))

    recent = [s.start_seq for s in context.sources if s.section == "recent" and s.kind == "message"]
    assert recent == list(range(21, 48))


def test_old_messages_that_no_summary_tells_are_left_out_by_name():
    context, _ = assemble(talk_of(200, 0), budget_tokens=6000, recent_messages=20, strategy=Summary(2))

    (left,) = context.left_out
    assert (left.start_seq, left.reason) == (1, "no summary covers them yet")
    (source,) = [s for s in context.sources if s.kind == "summary"]
    assert source.start_seq == left.end_seq + 1


def test_a_window_says_what_it_left_out():
    context, _ = assemble(talk_of(40, 0), budget_tokens=4000, recent_messages=20, strategy=Window(3))

    assert [(left.start_seq, left.end_seq, left.reason) for left in context.left_out] == [
        (1, 34, "older than the last 3 exchanges")
    ]


def test_one_stored_summary_is_shown_as_it_is():
    given_ = Material(
        CHAT, [message(seq) for seq in range(1, 15)], 14, [summary(1, 10, text="tea")], roll=summarize_conversation
    )
    context, _ = assemble(given_, budget_tokens=4000, recent_messages=2, strategy=Summary(2))

    assert context.section("summaries").items == ('"messages 1-10 (extracts): tea"',)


@pytest.mark.parametrize("digested", [False, True])
@pytest.mark.parametrize("tokens", [60, 100, 200])
def test_a_summary_buffer_over_a_memory_leaves_no_message_unsaid(tokens, digested):
    with Memory(embedder=None) as memory:
        chat = memory.conversation("a", user="ana")
        chat.record("The safe combination is kept by notary Brandl.", "Nice.")
        for number in range(24):
            chat.record(f"Castle {number} was in Wales.", "Nice.")
        if digested:
            memory.digest()
        context = chat.context("And?", strategy=SummaryBuffer(tokens))

    assert context.left_out == ()
