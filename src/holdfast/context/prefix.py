"""What changed above the cache breakpoint since the last context, in words.  Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from .items import Item
from .material import Prefix, digest

FIRST = "first context of this conversation"
OTHERWISE = "the wording around the memory changed"
MOST_CHANGES = 4

_Range = tuple[int, int]


def prefix_of(messages: Sequence[Mapping[str, Any]], items: Sequence[Item], system: str | None) -> Prefix:
    """The digest of the stable messages, and what tells their items apart without saying what they hold."""
    canonical = json.dumps(messages, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    manifest = {
        "system": "" if system is None else digest(system),
        "summaries": [
            [item.source.id, item.source.start_seq, item.source.end_seq, digest(item.line)]
            for item in items
            if item.source.kind == "summary"
        ],
        "facts": [
            [item.source.id, digest("\x1f".join(item.slot)), digest(item.line)]
            for item in items
            if item.source.kind == "fact"
        ],
    }
    return Prefix(hashlib.sha256(canonical.encode()).hexdigest(), manifest)


def changed_because(old: Prefix | None, new: Prefix, items: Sequence[Item], believed: AbstractSet[str]) -> str | None:
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
