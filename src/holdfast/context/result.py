"""The answer to "what should the model see now", as a value."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ..text import dataclass, expression
from ..types import Section

SECTION_NAMES = ("system", "opening", "character", "earlier", "meta_summaries", "chunk_summaries", "summaries", "facts")
VOLATILE_NAMES = ("recalled", "recent")  # of sections below the cache breakpoint
MOST_REASONS = 20  # of what is shown and of what is left out, in JSON


@dataclass(frozen=True, slots=True)
class ContextSource:
    """
    The origin of one shown item.

    ``kind`` is ``fact``, ``summary``, ``message`` or ``query``; ``id`` names a fact or summary, the
    range names messages (of ``conversation``), 0 where there is none.
    """

    section: str
    kind: Literal["fact", "summary", "message", "query", "story"]
    id: str
    conversation: str
    start_seq: int
    end_seq: int


@dataclass(frozen=True, slots=True)
class LeftOut:
    """
    An omission: messages or items that the model does not see, and why.

    ``messages``: ``start_seq`` to ``end_seq`` are neither shown nor summarized here; ``part``: of
    that message only the beginning and the end are shown; ``query``, ``facts`` and ``recalled``: so
    many of them did not fit.
    """

    kind: Literal["messages", "part", "query", "facts", "recalled"]
    count: int
    reason: str
    start_seq: int = 0
    end_seq: int = 0


@dataclass(frozen=True, slots=True)
class Reason:
    """
    One item that a context shows or leaves out, and why, in words.

    ``text`` is the line as it is shown, or the beginning of what is left out.
    """

    section: str
    kind: str
    shown: bool
    why: str
    text: str
    id: str = ""
    conversation: str = ""
    seq: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class Context:
    """
    A prompt: everything the model should see for the next reply.

    ``messages`` are in OpenAI's shape; the first ``stable_messages`` of them are above the cache
    breakpoint, and the next request of this conversation usually begins with the first
    ``repeated_messages``: those and what was said before the question.  ``prefix_changed_because`` is ``None`` when those are byte for byte what the last
    context of this conversation and shape had.  ``tokens`` is the sum over ``sections`` and never
    above ``budget_tokens``.
    """

    messages: tuple[dict[str, Any], ...]
    sections: tuple[Section, ...]
    tokens: int
    budget_tokens: int
    prefix_sha256: str
    prefix_changed_because: str | None
    cache_key: str
    left_out: tuple[LeftOut, ...]
    sources: tuple[ContextSource, ...]
    stable_messages: int = 0
    repeated_messages: int = 0
    system: str | None = None
    reasons: tuple[Reason, ...] = ()

    def explain(self) -> str:
        """
        Return in words what the context shows and what it leaves out, a line each, with the reason.

        `reasons` holds the same as values.
        """
        lines = [f"{self.tokens:,} of {self.budget_tokens:,} tokens"]
        for shown, title in ((True, "shown"), (False, "left out")):
            rows = [one for one in self.reasons if one.shown is shown]
            lines += [f"{title}:"] if rows else []
            lines += [f"  {one.section}: {one.text or one.kind} ({one.why})" for one in rows]
        return "\n".join(lines)

    def section(self, name: str) -> Section:
        """
        Return the section called *name*, empty when this context has nothing to say there.

        Raises:
            KeyError: no context has a section of that name.
        """
        for section in self.sections:
            if section.name == name:
                return section
        if name not in (*SECTION_NAMES, *VOLATILE_NAMES):
            names = ", ".join((*SECTION_NAMES, *VOLATILE_NAMES))
            raise KeyError(f"no context has a section {name!r}; the sections are {names}")
        return Section(name, "", 0, name in SECTION_NAMES, ())

    def to_anthropic(self) -> dict[str, Any]:
        """
        ``system`` (when there is any) and ``messages`` as Anthropic's Messages API takes them.

        Roles alternate, and tool calls and results are blocks.  ``cache_control`` marks the last
        block above the breakpoint and the last one before what is recalled for this question, so
        the conversation is read from the cache as well.
        """
        return anthropic_request(self.messages, self.stable_messages, self.repeated_messages)

    def to_text(self) -> str:
        """Return the same as plain text with a heading per section, for models without roles and for users."""
        parts = [f"# {section.name}\n{section.text}" for section in self.sections if section.text]
        return "\n\n".join(parts)

    def __repr__(self) -> str:
        shown = ", ".join(f"{s.name} {len(s.items)}" for s in self.sections if s.items)
        prefix = self.prefix_changed_because or "unchanged"
        return f"<Context {self.tokens:,} of {self.budget_tokens:,} tokens; {shown or 'empty'}; prefix: {prefix}>"

    def to_dict(self) -> Mapping[str, Any]:
        """JSON-able data, for logs and other programs."""
        return {
            "messages": list(self.messages),
            "sections": [_fields(section) for section in self.sections],
            "tokens": self.tokens,
            "budget_tokens": self.budget_tokens,
            "prefix_sha256": self.prefix_sha256,
            "prefix_changed_because": self.prefix_changed_because,
            "cache_key": self.cache_key,
            "left_out": [_fields(item) for item in self.left_out],
            "sources": [_fields(item) for item in self.sources],
            "stable_messages": self.stable_messages,
            "repeated_messages": self.repeated_messages,
            "reasons": [_fields(item) for item in _first_reasons(self.reasons)],
        }


def _first_reasons(reasons: Sequence[Reason]) -> list[Reason]:
    """Return the first reasons of what is shown and of what is left out, and how many more of each there are."""
    found = list[Reason]()
    for shown in (True, False):
        rows = [one for one in reasons if one.shown is shown]
        found += rows[:MOST_REASONS]
        if len(rows) > MOST_REASONS:
            found.append(Reason("", "", shown, "not named here", f"{len(rows) - MOST_REASONS:,} more"))
    return found


def _fields(value: Section | LeftOut | ContextSource | Reason) -> dict[str, Any]:
    named = {name: getattr(value, name) for name in value.__slots__}
    return {name: list(item) if isinstance(item, tuple) else item for name, item in named.items()}


_NOT_ID = expression(r"[^a-zA-Z0-9_-]")
_EMPTY = "(empty)"
_OPENING = "(earlier messages are not shown)"

Block = dict[str, Any]


def anthropic_request(messages: Sequence[Mapping[str, Any]], stable: int, repeated: int = 0) -> dict[str, Any]:
    """
    ``{"system": [blocks], "messages": [...]}``; ``system`` only when there is any.

    System messages among the first *stable* become system blocks; a later one was part of the
    conversation and is shown in it.  The last block that comes from the first *stable* messages
    and the last one from the first *repeated* carry ``cache_control``: two of the four marks that
    Anthropic takes.
    """
    system: list[Block] = []
    turns: list[dict[str, Any]] = []
    ends = dict[int, Block]()  # the last block that comes from that many messages
    for index, message in enumerate(messages):
        if index < stable and message["role"] in ("system", "developer"):
            system.append({"type": "text", "text": _text(message.get("content"))})
            ends[stable] = system[-1]
            continue
        role = "assistant" if message["role"] == "assistant" else "user"
        blocks = _blocks(message)
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"].extend(blocks)
        else:
            turns.append({"role": role, "content": blocks})
        ends.update({end: blocks[-1] for end in (stable, repeated) if index < end})
    for block in ends.values():
        block["cache_control"] = {"type": "ephemeral"}
    if turns and turns[0]["role"] == "assistant":
        turns.insert(0, {"role": "user", "content": [{"type": "text", "text": _OPENING}]})
    if turns and turns[-1]["role"] == "assistant" and turns[-1]["content"][-1]["type"] == "text":
        last = turns[-1]["content"][-1]  # the API refuses an ending in white space
        last["text"] = last["text"].rstrip() or _EMPTY
    return {"system": system, "messages": turns} if system else {"messages": turns}


def _blocks(message: Mapping[str, Any]) -> list[Block]:
    content = message.get("content")
    if message["role"] == "tool":
        return [{"type": "tool_result", "tool_use_id": _id(message["tool_call_id"]), "content": _text(content)}]
    calls = [_tool_use(call) for call in message.get("tool_calls", ())]
    if calls and not (content or "").strip():
        return calls
    text = _text(content)
    if message["role"] == "user" and message.get("name"):
        text = f"{message['name']}: {text}"  # the API has no field for it
    return [{"type": "text", "text": text}, *calls]


def _tool_use(call: Mapping[str, Any]) -> Block:
    function = call["function"]
    return {
        "type": "tool_use",
        "id": _id(call["id"]),
        "name": _id(function["name"])[:128],
        "input": _input(function["arguments"]),
    }


def _input(arguments: str) -> dict[str, Any]:
    try:
        loaded = json.loads(arguments or "{}")
    except ValueError:
        return {"arguments": arguments}
    return loaded if isinstance(loaded, dict) else {"arguments": loaded}


def _text(content: str | None) -> str:
    return content if content and content.strip() else _EMPTY


def _id(text: str) -> str:
    return _NOT_ID.sub("_", text) or "_"
