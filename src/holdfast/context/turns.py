"""
Turns, and the window of them that a context shows verbatim while summaries cover the rest.  Pure.

Providers refuse a call without its results and a result without its call.  A `Turn` is what must
be shown or left out as a whole: one message, or a call with all its results.  What the stored
conversation itself left unpaired is shown as words.

The verbatim window starts where a chunk starts, so every message before it is inside a summary
that ends before it.  Where it starts depends on what is covered, never on how many messages came
since: it moves when a new chunk is closed, and only then.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..text import dataclass, expression
from ..text.render import render_line
from ..text.terms import MESSAGE_OVERHEAD_TOKENS
from ..types import Hit, Message, Summary
from .material import Material, TokenMeter, shorten_middle
from .result import LeftOut

_NOT_NAME = expression(r"[\s<|\\/>\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\U000e0000-\U000e0fff]+")
MAX_NAME_CHARS = 64
QUERY_SEQ = 0


@dataclass(frozen=True, slots=True)
class Turn:
    """
    Messages in OpenAI's shape that belong together, with the numbers of the stored ones.

    ``seqs`` is ``(0,)`` for the question that is not stored yet.  ``cut_seq`` is the message of
    which only a part is shown, -1 when all are whole.
    """

    seqs: tuple[int, ...]
    messages: tuple[Mapping[str, Any], ...]
    tokens: int
    role: str
    cut_seq: int = -1


def opening_messages(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the system messages at the head of *messages*."""
    return messages[: next((i for i, message in enumerate(messages) if message.role != "system"), len(messages))]


def build_turns(messages: Sequence[Message], query: str | None, meter: TokenMeter) -> list[Turn]:
    """*messages* in order as turns, and *query* as the last one unless the user's last message is it."""
    asked = None if not query or _is_asked(messages, query) else query
    found: list[Turn] = []
    index = 0
    while index < len(messages):
        message = messages[index]
        calls = _calls(message)
        results = _results(messages, index, calls)
        after = index + 1 + len(results)
        answered = {m.meta.get("tool_call_id") for m in results}
        open_end = after == len(messages) and asked is None  # the results are still to come
        kept = calls if open_end else [call for call in calls if call["id"] in answered]
        found.append(_build_turn(message, kept, [c for c in calls if c not in kept], results, meter))
        index = after
    if asked is not None:
        sent = {"role": "user", "content": asked}
        found.append(Turn((QUERY_SEQ,), (sent,), meter.content(asked), "user"))
    return found


def shorten_turn(turn: Turn, room: int, meter: TokenMeter) -> Turn | None:
    """*turn* with its longest content cut so that it fits into *room*; ``None`` when that cannot be done."""
    longest = max(range(len(turn.messages)), key=lambda i: len(turn.messages[i]["content"] or ""))
    content = turn.messages[longest]["content"] or ""
    others = turn.tokens - meter.count(content)
    kept = shorten_middle(content, room - others, meter.count) if content and room > others else None
    if kept is None:
        return None
    messages = [dict(message) for message in turn.messages]
    messages[longest]["content"] = kept
    return replace(turn, messages=tuple(messages), tokens=others + meter.count(kept), cut_seq=turn.seqs[longest])


def last_exchanges(turns: Sequence[Turn], exchanges: int) -> tuple[int, int]:
    """
    Return where the last *exchanges* exchanges begin, and where the last user message is.

    Without any user message the last turn counts as one.
    """
    asked = [index for index, turn in enumerate(turns) if turn.role == "user"]
    if not asked:
        return max(0, len(turns) - 1), max(0, len(turns) - 1)
    return asked[-exchanges] if len(asked) >= exchanges else 0, asked[-1]


def _is_asked(messages: Sequence[Message], query: str) -> bool:
    """Whether *query* is the user's last message and has no answer in words yet."""
    for message in reversed(messages):
        if message.role == "user":
            return message.content == query
        if message.role == "assistant" and not message.meta.get("tool_calls"):
            return False
    return False


def _calls(message: Message) -> list[dict[str, Any]]:
    if message.role != "assistant":
        return []
    given = message.meta.get("tool_calls")
    found: list[dict[str, Any]] = []
    for call in given if isinstance(given, list | tuple) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            continue
        if not isinstance(call.get("id"), str) or any(call["id"] == other["id"] for other in found):
            continue
        arguments = function.get("arguments")
        text = arguments if isinstance(arguments, str) else json.dumps(arguments if arguments is not None else {})
        found.append({"id": call["id"], "type": "function", "function": {"name": function["name"], "arguments": text}})
    return found


def _results(messages: Sequence[Message], index: int, calls: Sequence[Mapping[str, Any]]) -> list[Message]:
    waiting = {call["id"] for call in calls}
    found: list[Message] = []
    while waiting and (index := index + 1) < len(messages):
        answers = messages[index].meta.get("tool_call_id")
        if messages[index].role != "tool" or not isinstance(answers, str) or answers not in waiting:
            break
        waiting.discard(answers)
        found.append(messages[index])
    return found


def _build_turn(
    message: Message, kept: list[dict[str, Any]], lost: list[dict[str, Any]], results: list[Message], meter: TokenMeter
) -> Turn:
    first, tokens = _render_message(message, kept, lost, meter)
    sent = [first]
    for result in results:
        call_id = result.meta["tool_call_id"]
        sent.append({"role": "tool", "tool_call_id": call_id, "content": result.content})
        tokens += meter.message(result) + meter.count(call_id)
    return Turn((message.seq, *(m.seq for m in results)), tuple(sent), tokens, message.role)


def _render_message(
    message: Message, kept: list[dict[str, Any]], lost: list[dict[str, Any]], meter: TokenMeter
) -> tuple[dict[str, Any], int]:
    if message.role == "tool":
        words = f"Result of a tool call that is not shown: {render_line(message.content)}"
        return {"role": "user", "content": words}, meter.content(words)
    content, tokens = message.content, meter.message(message)
    if lost:
        names = ", ".join(_provider_name(call["function"]["name"]) for call in lost)
        content = f"{content}\n(called {names}; no result)".lstrip("\n")
        tokens = meter.count(content) + MESSAGE_OVERHEAD_TOKENS
    sent: dict[str, Any] = {"role": message.role, "content": content}
    if message.name and _provider_name(message.name):
        sent["name"] = _provider_name(message.name)
        tokens += meter.count(sent["name"])
    if kept:
        sent["content"] = content or None
        sent["tool_calls"] = kept
        tokens += meter.count(json.dumps(kept, ensure_ascii=False))
    return sent, tokens


def _provider_name(name: str) -> str:
    """A name as providers accept it: no white space, no brackets, nothing invisible, 64 characters."""
    return _NOT_NAME.sub("_", name).strip("_")[:MAX_NAME_CHARS]


@dataclass(frozen=True, slots=True)
class Verbatim:
    """The turns that are shown, in order, what they cost, and those for which no room was left."""

    turns: tuple[Turn, ...]
    tokens: int
    dropped: tuple[Turn, ...]


def choose_turns(
    turns: Sequence[Turn], *, exchanges: int, recent_messages: int, room: int, reserve: int, meter: TokenMeter
) -> Verbatim:
    """
    Spend *room* on *turns*: the last user message, what follows it, and then backwards without a hole.

    A turn of the last *exchanges* exchanges that does not fit is cut with a visible mark.  Messages
    older than the last *recent_messages* leave *reserve* tokens for what is recalled.
    """
    if not turns:
        return Verbatim((), 0, ())
    first, asked = last_exchanges(turns, exchanges)
    shown: dict[int, Turn] = {}
    spent = messages = 0
    for index in (asked, *range(len(turns) - 1, asked, -1), *range(asked - 1, -1, -1)):
        free = room - spent
        if index < first and messages >= recent_messages:
            free -= reserve
        turn: Turn | None = turns[index]
        if turns[index].tokens > free:
            turn = shorten_turn(turns[index], free, meter) if index >= first else None
        if turn is None:
            if index < asked:
                break
            continue
        shown[index] = turn
        spent += turn.tokens
        messages += len(turn.messages)
    chosen = tuple(shown[index] for index in sorted(shown))
    return Verbatim(chosen, spent, tuple(turn for index, turn in enumerate(turns) if index not in shown))


Range = tuple[int, int]


def first_verbatim(
    summaries: Sequence[Summary], total_messages: int, recent_messages: int, *, budget_tokens: int | None = None
) -> int:
    """
    Return the number of the first message that a context may show verbatim.

    It is the latest start of a chunk with at least *recent_messages* covered messages from there
    on; 1 before that many are covered.  With *budget_tokens*, messages so far back that they could
    not fit even if each were empty need not be loaded, and a later number is returned.
    """
    start = window_starts(summaries, recent_messages)[0]
    if budget_tokens is None:
        return start
    return max(start, total_messages - budget_tokens // MESSAGE_OVERHEAD_TOKENS + 1)


def window_starts(summaries: Sequence[Summary], recent_messages: int) -> list[int]:
    """Return where the window may start, most messages first; the last is just after everything covered."""
    chunks = sorted((s.start_seq, s.end_seq) for s in summaries if s.level == 1)
    if not chunks:
        return [1]
    end = max(chunk_end for _, chunk_end in chunks)
    starts = [start for start, _ in chunks]
    first = bisect_right(starts, end - recent_messages + 1) - 1
    tail = starts[first:] if first >= 0 else [1, *(start for start in starts if start > 1)]
    return [*tail, end + 1]


def covering_summaries(summaries: Iterable[Summary], before: int) -> list[Summary]:
    """
    Return the fewest summaries that cover messages 1 to *before* - 1, in order.

    At each message the highest level that starts there and ends in time is taken, so a summary is
    never beside one that it covers.  Where nothing starts, the next one that does follows.
    """
    at: dict[int, Summary] = {}
    for summary in summaries:
        if summary.level < 1 or summary.end_seq >= before:
            continue
        there = at.get(summary.start_seq)
        if there is None or _height(summary) > _height(there):
            at[summary.start_seq] = summary
    chosen: list[Summary] = []
    reached = 0
    for start in sorted(at):
        if start > reached:
            chosen.append(at[start])
            reached = at[start].end_seq
    return chosen


def outermost(summaries: Sequence[Summary], before: int) -> list[Summary]:
    """Return *summaries* without those that a higher one covers, if that ends before message *before*: they are never shown."""
    kept: list[Summary] = []
    level, end = 0, 0  # of the widest one so far
    for one in sorted(summaries, key=lambda s: (s.start_seq, -s.level, -s.end_seq)):
        if one.level < level and one.end_seq <= end:
            continue
        kept.append(one)
        if one.end_seq < before and one.end_seq > end:
            level, end = one.level, one.end_seq
    return kept


def _height(summary: Summary) -> tuple[int, int, int, str]:
    return (summary.level, summary.end_seq, summary.version, summary.id)


def ranges(seqs: Iterable[int]) -> list[Range]:
    """Rising numbers as closed ranges."""
    found: list[Range] = []
    for seq in seqs:
        if found and found[-1][1] == seq - 1:
            found[-1] = (found[-1][0], seq)
        else:
            found.append((seq, seq))
    return found


def gaps(shown: Iterable[Range], last: int) -> list[Range]:
    """Return the ranges from 1 to *last* that lie in none of *shown*."""
    found: list[Range] = []
    reached = 0
    for start, end in sorted(shown):
        if start > reached + 1:
            found.append((reached + 1, start - 1))
        reached = max(reached, end)
    if reached < last:
        found.append((reached + 1, last))
    return found


NO_ROOM = "no room in the budget"
NO_ROOM_FOR_SUMMARY = "no room in the budget for their summary"
NO_SUMMARY = "no summary covers them yet"


@dataclass(frozen=True, slots=True)
class Narrative:
    """
    One context's narrative: summaries that are shown and not, where verbatim starts, the turns.

    ``older``: why the strategy leaves out what is before the start and in no summary.
    """

    material: Material
    told: Sequence[Summary]
    untold: Sequence[Summary]
    start: int
    verbatim: Verbatim
    older: str = ""

    @property
    def asked(self) -> str:
        """The question that the context is for: the user's next or last message."""
        last = next((m.content for m in reversed(self.material.messages) if m.role == "user"), "")
        return self.material.query or last

    @property
    def verbatim_seqs(self) -> frozenset[int]:
        """The numbers of the messages that are shown verbatim."""
        return frozenset(seq for turn in self.verbatim.turns for seq in turn.seqs)

    @property
    def verbatim_ranges(self) -> list[Range]:
        """Stored messages that are shown verbatim."""
        return ranges(seq for turn in self.verbatim.turns for seq in turn.seqs if seq != QUERY_SEQ)

    def shown_anyway(self, hit: Hit, facts: Collection[str], verbatim: Collection[int]) -> str:
        """
        Why the context holds *hit* already; empty when it does not.

        *facts* are the ids of the facts that it shows, *verbatim* the messages.

        A summary is recalled only where nothing of its range is shown.
        """
        if hit.kind == "fact":
            return "it is among the facts" if hit.id in facts else ""
        if (hit.subject or self.material.subject, hit.conversation) != (
            self.material.subject,
            self.material.conversation,
        ):
            return ""
        if hit.kind == "message":
            return "it is among the last messages" if hit.seq in verbatim else ""
        own = next((s for s in self.material.summaries if s.id == hit.id), None)
        start, end = (own.start_seq, own.end_seq) if own else (hit.seq, hit.seq)
        shown = [*self.verbatim_ranges, *((s.start_seq, s.end_seq) for s in self.told)]
        return "its messages are shown already" if any(a <= end and start <= b for a, b in shown) else ""


def list_left_out(story: Narrative) -> list[LeftOut]:
    """List the stored messages that are neither shown nor summarized, as ranges with the reason, and every cut one."""
    material = story.material
    exists = {message.seq for message in material.messages}
    told = [(s.start_seq, s.end_seq) for s in story.told]
    found: list[LeftOut] = []
    for gap in gaps([*story.verbatim_ranges, *told], material.total_messages):
        for start, end, reason in _split_by_reason(gap, story):
            pieces = [(start, end)]
            if start >= material.first_given:  # what was not loaded from there on was erased
                pieces = ranges(seq for seq in range(start, end + 1) if seq in exists)
            for a, b in pieces:
                last = found[-1] if found else None
                if last and last.reason == reason and last.end_seq == a - 1:
                    found[-1] = LeftOut("messages", last.count + b - a + 1, reason, last.start_seq, b)
                else:
                    found.append(LeftOut("messages", b - a + 1, reason, a, b))
    for turn in story.verbatim.turns:
        if turn.cut_seq > QUERY_SEQ:
            found.append(LeftOut("part", 1, "cut to fit the budget", turn.cut_seq, turn.cut_seq))
        elif turn.cut_seq == QUERY_SEQ:
            found.append(LeftOut("query", 1, "cut to fit the budget"))
    if any(QUERY_SEQ in turn.seqs for turn in story.verbatim.dropped):
        found.append(LeftOut("query", 1, NO_ROOM))
    return found


def _split_by_reason(gap: Range, story: Narrative) -> Iterator[tuple[int, int, str]]:
    """*gap* in pieces, each with its one reason."""
    edges = {gap[0], story.material.first_given, story.start}
    for summary in story.untold:
        edges.update((summary.start_seq, summary.end_seq + 1))
    inside = sorted(edge for edge in edges if gap[0] <= edge <= gap[1])
    for start, after in zip(inside, [*inside[1:], gap[1] + 1], strict=True):
        if any(s.start_seq <= start <= s.end_seq for s in story.untold):
            reason = NO_ROOM_FOR_SUMMARY
        elif story.older and start < story.start:
            reason = story.older
        else:
            reason = NO_ROOM if start >= min(story.start, story.material.first_given) else NO_SUMMARY
        yield start, after - 1, reason
