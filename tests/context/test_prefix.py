"""Request n+1 extends request n above the cache breakpoint, unless the context says why not."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.context.assemble import FIRST, Material, Prefix, assemble
from holdfast.context.turns import first_verbatim

from .checks import check
from .worlds import CHAT, DAY, fact, hit, message, summary, talk, tree


def material(last: int, covered: int, facts=(), hits=(), **more) -> Material:
    summaries = more.pop("summaries", None)
    summaries = tree(covered) if summaries is None else summaries
    start = first_verbatim(summaries, last, 20)
    return Material(CHAT, talk(last, start), last, summaries, facts, hits, messages_from=start, **more)


def reason(before: Material, after: Material, budget: int = 4000, **more) -> str | None:
    _, prefix = assemble(before, budget_tokens=budget, recent_messages=20)
    context, _ = assemble(after, budget_tokens=budget, recent_messages=20, previous=prefix, **more)
    return context.prefix_changed_because


def stable_bytes(context) -> str:
    return json.dumps(context.messages[: context.stable_messages])


FISH = fact("pescatarian", category="dietary", cardinality="exclusive", text="The user eats fish.")
VEGETARIAN = fact("vegetarian", category="dietary", cardinality="exclusive", text="The user is vegetarian.")
TEA = fact("tea")


@pytest.mark.parametrize(
    ("before", "after", "because"),
    [
        (material(45, 40), material(49, 40), None),
        (material(45, 40, [TEA]), material(46, 40, [TEA], [hit(3)]), None),
        (material(45, 40, [TEA]), material(46, 40, [replace(TEA, uses=7, strength=1.9, last_used_at=DAY)]), None),
        (material(45, 40), material(45, 40, [TEA]), "fact likes/tea is new here"),
        (material(45, 40, [VEGETARIAN]), material(45, 40, [FISH]), "fact dietary/pescatarian was replaced"),
        (material(45, 40, [TEA]), material(45, 40), f"fact {TEA.id} is no longer believed"),
        (material(45, 40, [TEA]), material(45, 40, [replace(TEA, text="Tea!")]), "fact likes/tea was reworded"),
        (material(39, 30), material(40, 40), "older messages 11-20 moved into a summary"),
        (
            material(45, 40),
            material(45, 40, summaries=[*tree(40), summary(1, 20, 2)]),
            "the summary of messages 1-20 now stands for 2 older ones",
        ),
        (
            material(50, 50),
            material(50, 50, summaries=[replace(s, text=s.text + "!") for s in tree(50)]),
            "the summary of messages 1-30 was rewritten",
        ),
        (
            material(50, 50),
            material(50, 50, summaries=tree(50)[:-1]),
            "messages 1-10 are summarized on their own again; ",
        ),
        (material(60, 50), material(60, 50, summaries=[]), "the summary of messages 1-30 is no longer shown"),
    ],
)
def test_the_reason_names_what_changed(before, after, because):
    said = reason(before, after)

    assert (said or "").startswith(because) if because and because.endswith("; ") else said == because


def test_the_first_context_says_so():
    context, _ = assemble(material(5, 0), budget_tokens=4000, recent_messages=20)

    assert context.prefix_changed_because == FIRST


def test_another_system_text_is_named():
    assert reason(material(5, 0), material(5, 0), system="Be kind.") == "the system text changed"


def test_many_changes_are_counted():
    facts = [fact(f"k{i}") for i in range(9)]

    said = reason(material(5, 0), material(5, 0, facts))

    assert said is not None
    assert said.endswith("; and 5 more changes")


def test_facts_that_make_room_for_others_are_named():
    facts = [
        fact(f"k{i:02}", text=f"A fact of some ten words, number {i}, that needs quite some room.") for i in range(80)
    ]
    wanted = replace(facts[-1], strength=8.0)

    said = reason(material(5, 0, facts), material(5, 0, [*facts[:-1], wanted]), 2000)

    assert said is not None
    assert "is new here" in said
    assert "made room for others" in said


def test_using_a_fact_does_not_reshuffle_the_facts():
    facts = [
        fact(f"k{i:02}", text=f"A fact of some ten words, number {i}, that needs quite some room.") for i in range(80)
    ]
    used = replace(facts[-1], strength=1.9, uses=5, last_used_at=DAY)

    assert reason(material(5, 0, facts), material(5, 0, [*facts[:-1], used]), 2000) is None


def test_the_manifest_holds_no_text():
    facts = [fact("oysters", "never", text="The user fears oysters.")]
    _, prefix = assemble(material(60, 50, facts), budget_tokens=4000, recent_messages=20, system="Be discreet.")

    kept = prefix.dumps()

    assert Prefix.loads(prefix.sha256, kept) == prefix
    assert not [word for word in ("fears", "oysters.", "discreet", "talked") if word in kept]


@given(seed=st.integers(0, 10**9), budget=st.sampled_from([700, 1500, 4000]))
def test_a_growing_conversation_says_exactly_when_its_prefix_moves(seed, budget):
    """Messages come in, chunks close behind them, summaries roll up, facts change: bytes differ if and only if it says so."""
    rng = random.Random(seed)
    last, covered, facts, before, prefix = 0, 0, [], None, None
    for step in range(40):
        last += 2
        covered += 10 if last - covered >= 10 and rng.random() < 0.7 else 0
        if rng.random() < 0.2:
            facts = [*facts, fact(f"k{step}")]
        if facts and rng.random() < 0.1:
            facts = facts[:-1]
        hits = [hit(rng.randint(1, last)) for _ in range(3)]
        now = material(last, covered, facts, hits)
        context, prefix = assemble(now, budget_tokens=budget, recent_messages=20, previous=prefix)
        check_now = before is None or stable_bytes(before) != stable_bytes(context)

        assert (context.prefix_changed_because is not None) == check_now
        before = context


@given(seed=st.integers(0, 10**9))
def test_nothing_below_the_breakpoint_moves_what_is_above(seed):
    """Same facts, same coverage: more messages and other hits leave every stable byte alone, and extend the rest."""
    rng = random.Random(seed)
    covered = 10 * rng.randint(0, 12)
    facts = [fact(f"k{i}") for i in range(rng.randint(0, 60))]
    previous, prefix = None, None
    for more in range(1, 13):
        hits = [hit(rng.randint(1, covered + 1), f"something {rng.random()}") for _ in range(rng.randint(0, 9))]
        now = material(covered + more, covered, facts, hits)
        context, prefix = assemble(now, budget_tokens=4000, recent_messages=20, previous=prefix)
        check(now, context, lambda text: 0)
        if previous is not None:
            assert context.prefix_changed_because is None
            assert stable_bytes(context) == stable_bytes(previous)
            assert context.messages[0] == previous.messages[0]
            assert (
                context.section("recent").items[: len(previous.section("recent").items)]
                == previous.section("recent").items
            )
        previous = context


def test_a_long_answer_may_push_the_memory_out_and_says_so():
    """The last two exchanges come first; what stood above the breakpoint is named as gone."""
    short = material(60, 50, [TEA])
    long = replace(short, messages=[*short.messages, message(61, "why? " * 800)], total_messages=61)

    said = reason(short, long, 1000)
    context, _ = assemble(long, budget_tokens=1000, recent_messages=20)

    assert said is not None
    assert "the summary of messages 1-30 is no longer shown" in said
    check(long, context, lambda text: 0)
