"""What must hold of every context, whatever it was made from."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise

from holdfast.context.material import Material
from holdfast.context.result import Context
from holdfast.text.render import parse_blocks, parse_line
from holdfast.text.terms import MESSAGE_OVERHEAD_TOKENS


def check(material: Material, context: Context, count) -> None:
    within_budget(context, count)
    told_exactly_once(material, context)
    in_order(context)
    nothing_shown_twice(context)
    sections_are_closed(context)
    tool_calls_are_paired(context.messages)
    anthropic_accepts(context.to_anthropic())
    json.dumps(context.to_dict())


def within_budget(context, count):
    sent = 0
    for message in context.messages:
        sent += MESSAGE_OVERHEAD_TOKENS + count(message["content"] or "") + count(message.get("name", ""))
        sent += count(message.get("tool_call_id", ""))
        if "tool_calls" in message:
            sent += count(json.dumps(message["tool_calls"], ensure_ascii=False))
    assert sent <= context.tokens <= context.budget_tokens
    assert context.tokens == sum(section.tokens for section in context.sections)


def told_exactly_once(material, context):
    told = Counter()
    for source in context.sources:
        if source.section in ("summaries", "recent") and source.kind != "query":
            told.update(range(source.start_seq, source.end_seq + 1))
    for left in context.left_out:
        if left.kind == "messages":
            assert left.reason
            assert left.count == left.end_seq - left.start_seq + 1
            told.update(range(left.start_seq, left.end_seq + 1))
    erased = set(range(material.first_given, material.total_messages + 1)) - {m.seq for m in material.messages}
    assert {seq for seq in told if told[seq] != 1} == set()
    assert set(range(1, material.total_messages + 1)) - set(told) <= erased


def in_order(context):
    spans = [(s.start_seq, s.end_seq) for s in context.sources if s.section == "summaries"]
    seqs = [s.start_seq for s in context.sources if s.section == "recent" and s.kind == "message"]
    assert spans == sorted(spans)
    assert seqs == sorted(seqs)
    assert not spans or not seqs or spans[-1][1] < seqs[0]


def nothing_shown_twice(context):
    verbatim = {(s.conversation, s.start_seq) for s in context.sources if s.section == "recent"}
    recalled = [s for s in context.sources if s.section == "recalled"]
    ids = [s.id for s in context.sources if s.kind in ("fact", "summary")]
    assert not verbatim & {(s.conversation, s.start_seq) for s in recalled if s.kind == "message"}
    assert len(ids) == len(set(ids))


def sections_are_closed(context):
    recalled = [context.section("recalled").text] if "recalled" in {s.name for s in context.sections} else []
    below = [m for m in context.messages[context.stable_messages :] if m["content"] in recalled and m["content"]]
    memory = [*context.messages[int(context.system is not None) : context.stable_messages], *below]
    filled = [s for s in context.sections if s.items and s.name not in ("system", "recent")]
    expected = [(s.name, [parse_line(item) for item in s.items]) for s in filled]
    assert [block for message in memory for block in parse_blocks(message["content"])] == expected
    assert {message["role"] for message in memory} <= {"user"}


def tool_calls_are_paired(messages):
    waiting: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] in waiting
            waiting.discard(message["tool_call_id"])
        else:
            assert not waiting
            waiting = {call["id"] for call in message.get("tool_calls", ())}


def anthropic_accepts(request):
    roles = [turn["role"] for turn in request["messages"]]
    assert all(a != b for a, b in pairwise(roles))
    assert not roles or roles[0] == "user"
    blocks = [block for turn in request["messages"] for block in turn["content"]]
    assert all(block["text"].strip() for block in [*blocks, *request.get("system", ())] if block["type"] == "text")
    assert sum("cache_control" in block for block in [*blocks, *request.get("system", ())]) <= 2
    for turn, after in pairwise(request["messages"]):
        calls = {block["id"] for block in turn["content"] if block["type"] == "tool_use"}
        results = [block["type"] == "tool_result" for block in after["content"]]
        answered = {block["tool_use_id"] for block in after["content"] if block["type"] == "tool_result"}
        still_open = after is request["messages"][-1] and answered < calls and len(results) == len(answered) > 0
        assert calls == answered or still_open
        assert results == sorted(results, reverse=True)
