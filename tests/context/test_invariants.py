"""Whatever a conversation is like: the budget holds, nothing is told twice, nothing is left out silently."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.context.assemble import Material, assemble
from holdfast.context.turns import first_verbatim
from holdfast.text.terms import MESSAGE_OVERHEAD_TOKENS, count_tokens
from holdfast.types import Message

from .checks import check
from .hostile import HOSTILE
from .worlds import CHAT, fact, hit, message, summary

WORDS = ["tea", "I like fish now", "Lisbon", "하루", "東京", "ok\nsee you", "extraordinarily", "😀", "12,345 €"]


def one_text(rng: random.Random) -> str:
    if rng.random() < 0.1:
        return rng.choice(HOSTILE)
    if rng.random() < 0.1:
        return ""
    return " ".join(rng.choices(WORDS, k=rng.choice([1, 3, 10, 10, 30, 200])))


def conversation(rng: random.Random, length: int) -> list[Message]:
    found: list[Message] = []
    while len(found) < length:
        seq = len(found) + 1
        kind = rng.random()
        if kind < 0.1:
            ids = [f"call_{seq}_{i}" for i in range(rng.randint(1, 2))]
            calls = [
                {"id": i, "type": "function", "function": {"name": "look up", "arguments": '{"q": "x"}'}} for i in ids
            ]
            found.append(message(seq, one_text(rng), "assistant", meta={"tool_calls": calls}))
            for i in ids[: rng.choice([0, 1, 2, 2, 2])]:
                found.append(message(len(found) + 1, one_text(rng), "tool", meta={"tool_call_id": i}))
        else:
            role = rng.choice(["user", "assistant", "user", "assistant", "system"]) if kind < 0.3 else ""
            name = rng.choice([None, "Ana", "<|x|> y"])
            found.append(message(seq, one_text(rng), role, name=name))
    return found


def summarized(rng: random.Random, messages: list[Message]) -> list:
    """Chunks that never end inside a tool call and its results, up to some point, and their roll-ups."""
    ends = [m.seq for m, after in pairwise(messages) if after.role != "tool"]
    found, start = [], 1
    covered = rng.choice([0, 0.5, 0.9, 1])
    for end in ends:
        if end <= covered * len(messages) and end - start >= rng.randint(1, 12):
            found.append(summary(start, end, text=one_text(rng)))
            start = end + 1
    level, below = 1, list(found)
    while len(below) >= 3:
        level += 1
        groups = [below[i : i + 3] for i in range(0, len(below) - 2, 3)]
        below = [summary(g[0].start_seq, g[-1].end_seq, level, one_text(rng)) for g in groups]
        found += below
    return found


def world(seed: int, length: int, recent: int, *, erase: bool = False) -> Material:
    rng = random.Random(seed)
    messages = conversation(rng, length)
    summaries = summarized(rng, messages)
    facts = [
        fact(f"k{i}", text=one_text(rng), strength=rng.choice([0.5, 1, 3, 9]), subject=rng.choice(["self", "rex"]))
        for i in range(rng.choice([0, 1, 5, 40]))
    ]
    hits = [hit(rng.randint(1, length), one_text(rng), speaker="<b>") for _ in range(rng.randint(0, 6)) if length]
    hits += [hit(rng.randint(1, 99), one_text(rng), conversation="other") for _ in range(3)]
    hits += [hit(0, f.text, kind="fact", id=f.id) for f in facts[:3]]
    hits += [hit(s.end_seq, s.text, kind="summary", id=s.id) for s in rng.sample(summaries, min(3, len(summaries)))]
    hits += [hit(30, "both", kind="summary", id=i, conversation="other") for i in ("x", "y")]
    rng.shuffle(hits)
    query = rng.choice([None, "What now?", messages[-1].content if messages else "", one_text(rng)])
    total = len(messages)
    start = first_verbatim(summaries, total, recent)
    shown = [m for m in messages if m.seq >= start and not (erase and rng.random() < 0.1)]
    return Material(CHAT, shown, total, summaries, facts, hits, query, {(CHAT, 3): one_text(rng)}, start)


@given(
    seed=st.integers(0, 10**9),
    length=st.integers(0, 150),
    budget=st.one_of(st.integers(1, 300), st.integers(1, 6000)),
    recent=st.integers(2, 30),
    system=st.sampled_from([None, None, "Be kind.", ""]),
    erase=st.booleans(),
)
@example(seed=0, length=0, budget=1, recent=2, system=None, erase=False)
def test_every_context_holds_its_promises(seed, length, budget, recent, system, erase):
    budget += count_tokens(system or "") + MESSAGE_OVERHEAD_TOKENS if system is not None else 0
    material = world(seed, length, recent, erase=erase)

    context, prefix = assemble(material, budget_tokens=budget, recent_messages=recent, system=system)

    check(material, context, count_tokens)
    assert context.prefix_sha256 == prefix.sha256


@given(seed=st.integers(0, 10**9), length=st.integers(0, 60), budget=st.integers(1, 9000))
def test_another_count_of_tokens_is_respected(seed, length, budget):
    """As strict as a count can be: every character is a token."""
    material = world(seed, length, 10)

    context, _ = assemble(material, budget_tokens=budget, recent_messages=10, count=len)

    check(material, context, len)


@given(seed=st.integers(0, 10**9), length=st.integers(0, 100), budget=st.integers(1, 5000))
def test_the_same_material_gives_the_same_bytes(seed, length, budget):
    first = assemble(world(seed, length, 20), budget_tokens=budget, recent_messages=20)
    again = assemble(world(seed, length, 20), budget_tokens=budget, recent_messages=20, previous=first[1])

    assert again == (replace(first[0], prefix_changed_because=None), first[1])


@given(seed=st.integers(0, 10**9), length=st.integers(20, 120), budget=st.integers(200, 5000))
def test_messages_that_cannot_fit_need_not_be_loaded(seed, length, budget):
    material = world(seed, length, 20)
    start = first_verbatim(material.summaries, material.total_messages, 20, budget_tokens=budget)
    fewer = replace(material, messages=[m for m in material.messages if m.seq >= start], messages_from=start)

    context, _ = assemble(fewer, budget_tokens=budget, recent_messages=20)

    check(fewer, context, count_tokens)
    assert context.messages == assemble(material, budget_tokens=budget, recent_messages=20)[0].messages
