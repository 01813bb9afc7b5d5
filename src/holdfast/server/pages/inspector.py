"""What the model would see next, section by section, as JSON, and beside what it would see for an earlier question."""

from __future__ import annotations

import json
from typing import Any

from fastapi import Request

from ...context.result import Context
from ...conversation import Conversation
from .shell import number


def inspected(request: Request, which: Conversation) -> dict[str, Any]:
    """The context that the address asks for; it takes a search, so only when somebody asks.  Looking notes nothing."""
    query, budget = request.query_params.get("query", "").strip(), number(request, "budget")
    against = number(request, "against")
    told: dict[str, Any] = {"query": query, "budget": budget, "against": against}
    told |= {"found": None, "sections": [], "raw": "", "other": None}
    wanted = request.headers.get("x-fragment", "context").split()
    if "context" not in wanted or "query" not in request.query_params:
        return told
    budget = budget if budget and budget > 0 else None
    found = which.context(query or None, budget_tokens=budget, note=False)
    raw = json.dumps(found.to_dict(), ensure_ascii=False, indent=1)
    told |= {"found": found, "sections": [_section(found, section) for section in found.sections], "raw": raw}
    asked = _question(which, against)
    if asked is not None:
        told["other"] = compared(which.context(asked, budget_tokens=budget, note=False), found)
    return told


def _question(which: Conversation, seq: int | None) -> str | None:
    """What the user said in an earlier message; ``None`` when it is none of theirs."""
    if seq is None or seq < 1:
        return None
    found = which.load(start_seq=seq, limit=1)
    return found[0].content if found and found[0].seq == seq and found[0].role == "user" else None


def compared(before: Context, after: Context) -> dict[str, Any]:
    """How two contexts differ: tokens, whether the stable part is the same, and per section what is in one alone."""
    sections = []
    for section in after.sections:
        old = next((one for one in before.sections if one.name == section.name), None)
        was = old.items if old is not None else ()
        gone = [readable(item) for item in was if item not in section.items]
        new = [readable(item) for item in section.items if item not in was]
        sections.append({"name": section.name, "gone": gone, "new": new, "same": len(section.items) - len(new)})
    same_prefix = before.prefix_sha256 == after.prefix_sha256
    return {"tokens": before.tokens, "sections": sections, "same_prefix": same_prefix}


def _section(found: Context, section: Any) -> dict[str, Any]:
    sources = [source for source in found.sources if source.section == section.name]
    exact = len(sources) == len(section.items)
    told = [(readable(item), sources[n] if exact else None) for n, item in enumerate(section.items)]
    return {"name": section.name, "tokens": section.tokens, "stable": section.stable, "items": told}


def readable(item: str) -> str:
    """The text of an item, which in a prompt stands as a JSON string."""
    try:
        text = json.loads(item)
    except ValueError:
        return item
    return text if isinstance(text, str) else item
