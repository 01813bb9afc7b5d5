"""
The next prompt: stable sections first, volatile last.  Pure.

    system           the caller's own, whole and first
    opening          system messages of the conversation itself (classic strategies)
    summaries        ┐ one message, the same bytes until a fact or a summary changes
    facts            ┘
    ──────────────── cache breakpoint
    recalled         one message, for this question
    recent           the last messages verbatim, with their own roles

Knows no store, clock or model: what other stages found comes in as `Material`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from ..errors import BadInput
from ..text.render import render_line
from ..text.tokens import MESSAGE_OVERHEAD_TOKENS, count_tokens
from ..types import Fact, Section
from .budget import Count, TokenMeter
from .layered import Layered, Layout, Part, Strategy, facts_part, message_cost
from .material import Item, Material, Prefix, short_digest
from .result import Context, ContextSource
from .turns import QUERY_SEQ, Turn

LAYERED = Layered()


def assemble(
    material: Material,
    *,
    budget_tokens: int,
    recent_messages: int,
    system: str | None = None,
    previous: Prefix | None = None,
    count: Count = count_tokens,
    strategy: Strategy = LAYERED,
) -> tuple[Context, Prefix]:
    """
    Choose what the model sees for the next reply, within *budget_tokens* as *count* counts them.

    *previous* is what the last call for this conversation, strategy and budget returned; with it
    the context can say what changed above the breakpoint.  *system* is the caller's own text: it
    is sent whole, first, and counts.

    Raises:
        BadInput: *system* alone needs more than the budget, or the budget is below 1.
    """
    if budget_tokens < 1:
        raise BadInput(f"budget_tokens is {budget_tokens}; it must be at least 1")
    meter = TokenMeter(count)
    system_tokens = meter.content(system) if system is not None else 0
    if system_tokens > budget_tokens:
        raise BadInput(
            f"the system text alone takes {system_tokens} tokens; budget_tokens is {budget_tokens}",
            hint="raise budget_tokens or shorten the system text",
        )
    layout = strategy.lay_out(material, budget_tokens - system_tokens, recent_messages, meter)
    messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system is not None else []
    messages += [dict(message) for turn in layout.opening for message in turn.messages]
    messages += _memory(layout.stable, strategy.memory_role)
    stable = len(messages)
    items = [item for part in layout.stable for item in part.items]
    prefix = build_prefix(messages, items, system)
    messages += _memory((layout.recalled,), "user")
    messages += [dict(message) for turn in layout.turns for message in turn.messages]
    sections = _sections(layout, system, system_tokens)
    context = Context(
        messages=tuple(messages),
        sections=sections,
        tokens=sum(section.tokens for section in sections),
        budget_tokens=budget_tokens,
        prefix_sha256=prefix.sha256,
        prefix_changed_because=explain_change(previous, prefix, items, {fact.id for fact in material.facts}),
        cache_key=f"chat:{material.conversation}",
        left_out=layout.left_out,
        sources=_sources(layout, material.conversation),
        stable_messages=stable,
        system=system,
    )
    return context, prefix


def _memory(parts: tuple[Part, ...], role: str) -> list[dict[str, Any]]:
    texts = ["\n".join(part.lines) for part in parts if part.items]
    return [{"role": role, "content": "\n\n".join(texts)}] if texts else []


def _sections(layout: Layout, system: str | None, system_tokens: int) -> tuple[Section, ...]:
    """Every part with its tokens; a message's overhead is counted with the first part that it holds."""
    found = [] if system is None else [Section("system", system, system_tokens, True, (system,))]
    if layout.opening:
        found.append(_turns_section("opening", layout.opening, True))
    overhead = message_cost(layout.stable) - sum(part.tokens for part in layout.stable)
    for part in layout.stable:
        found.append(_part_section(part, overhead if part.items else 0, True))
        overhead = 0 if part.items else overhead
    found.append(_part_section(layout.recalled, message_cost((layout.recalled,)) - layout.recalled.tokens, False))
    found.append(_turns_section("recent", layout.turns, False))
    return tuple(found)


def _turns_section(name: str, turns: Sequence[Turn], stable: bool) -> Section:
    lines = tuple(_message_line(message) for turn in turns for message in turn.messages)
    return Section(name, "\n".join(lines), sum(turn.tokens for turn in turns), stable, lines)


def _part_section(part: Part, overhead: int, stable: bool) -> Section:
    lines = tuple(item.line for item in part.items)
    return Section(part.name, "\n".join(part.lines), part.tokens + overhead, stable, lines)


def _message_line(message: Any) -> str:
    speaker = f"{message['role']} {message['name']}" if "name" in message else message["role"]
    calls = "".join(f" calls {render_line(call['function']['name'])}" for call in message.get("tool_calls", ()))
    return f"{speaker}: {render_line(message['content'] or '')}{calls}"


def _sources(layout: Layout, conversation: str) -> tuple[ContextSource, ...]:
    found = [item.source for part in (*layout.stable, layout.recalled) for item in part.items]
    opening = [
        ContextSource("opening", "message", "", conversation, seq, seq) for turn in layout.opening for seq in turn.seqs
    ]
    return (*opening, *found, *(_message_source(seq, conversation) for turn in layout.turns for seq in turn.seqs))


def _message_source(seq: int, conversation: str) -> ContextSource:
    return ContextSource("recent", "query" if seq == QUERY_SEQ else "message", "", conversation, seq, seq)


FIRST = "first context of this conversation"
OTHERWISE = "the wording around the memory changed"
MOST_CHANGES = 4

_Range = tuple[int, int]


def build_prefix(messages: Sequence[Mapping[str, Any]], items: Sequence[Item], system: str | None) -> Prefix:
    """The digest of the stable messages, and what tells their items apart without saying what they hold."""
    canonical = json.dumps(messages, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    manifest = {
        "system": "" if system is None else short_digest(system),
        "summaries": [
            [item.source.id, item.source.start_seq, item.source.end_seq, short_digest(item.line)]
            for item in items
            if item.source.kind == "summary"
        ],
        "facts": [
            [item.source.id, short_digest("\x1f".join(item.slot)), short_digest(item.line)]
            for item in items
            if item.source.kind == "fact"
        ],
    }
    return Prefix(hashlib.sha256(canonical.encode()).hexdigest(), manifest)


def explain_change(old: Prefix | None, new: Prefix, items: Sequence[Item], believed: AbstractSet[str]) -> str | None:
    """
    ``None`` when the bytes are the same, else a sentence that names what changed.

    *items* are the new ones; *believed* are the ids of all live facts, shown or not.
    """
    if old is None:
        return FIRST
    if old.sha256 == new.sha256:
        return None
    said = ["the system text changed"] if old.manifest["system"] != new.manifest["system"] else []
    said += _summary_changes(old.manifest["summaries"], new.manifest["summaries"])
    labels = {item.source.id: item.label for item in items if item.source.kind == "fact"}
    said += _fact_changes(old.manifest["facts"], new.manifest["facts"], labels, believed)
    if not said:
        return OTHERWISE
    more = len(said) - MOST_CHANGES
    return "; ".join(said[:MOST_CHANGES]) + (f"; and {more} more changes" if more > 0 else "")


def _summary_changes(old: Sequence[Sequence[Any]], new: Sequence[Sequence[Any]]) -> list[str]:
    before: dict[_Range, tuple[str, str]] = {(start, end): (id_, mark) for id_, start, end, mark in old}
    after: dict[_Range, tuple[str, str]] = {(start, end): (id_, mark) for id_, start, end, mark in new}
    gone = {span for span in before if span not in after}
    said = []
    for span, mark in after.items():
        named = f"messages {span[0]}-{span[1]}"
        inside = {other for other in gone if span[0] <= other[0] and other[1] <= span[1]}
        around = {other for other in gone if other[0] <= span[0] and span[1] <= other[1]}
        if span in before:
            said += [f"the summary of {named} was rewritten"] if before[span][1] != mark[1] else []
        elif inside:
            gone -= inside
            said.append(f"the summary of {named} now stands for {len(inside)} older ones")
        elif around:
            said.append(f"{named} are summarised on their own again")
        else:
            said.append(f"older {named} moved into a summary")
    return said + [f"the summary of messages {start}-{end} is no longer shown" for start, end in sorted(gone)]


def _fact_changes(
    old: Sequence[Sequence[Any]], new: Sequence[Sequence[Any]], labels: Mapping[str, str], believed: AbstractSet[str]
) -> list[str]:
    before = {id_: (slot, mark) for id_, slot, mark in old}
    after = {id_: (slot, mark) for id_, slot, mark in new}
    gone = {id_: slot for id_, (slot, _) in before.items() if id_ not in after and id_ not in believed}
    vacated = set(gone.values())
    said = []
    for id_, (slot, mark) in after.items():
        if id_ not in before:
            said.append(f"fact {labels[id_]} {'was replaced' if slot in vacated else 'is new here'}")
        elif before[id_][1] != mark:
            said.append(f"fact {labels[id_]} was reworded")
    filled = {slot for id_, (slot, _) in after.items() if id_ not in before}
    said += [f"fact {id_} is no longer believed" for id_, slot in gone.items() if slot not in filled]
    return said + [f"fact {id_} made room for others" for id_ in before if id_ not in after and id_ in believed]


def profile(facts: Sequence[Fact], budget_tokens: int, count: Count) -> Section:
    """
    The facts that matter most within *budget_tokens*, sorted by address so that the text seldom changes.

    One JSON string a line, like every other section of a context: data that cannot break out.
    """
    part = facts_part(facts, budget_tokens + MESSAGE_OVERHEAD_TOKENS, TokenMeter(count))
    return Section("facts", "\n".join(part.lines), part.tokens, True, tuple(item.line for item in part.items))
