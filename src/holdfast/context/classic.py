"""
Five classic strategies, for a conversation that is only messages, facts with the last turns, and strategies by name.  Pure.

                   what it keeps                     tokens           lost                  extra calls
    Buffer         everything                        grow for ever    nothing               none
    Window         the last exchanges                fixed            older messages        none
    TokenBuffer    what fits into so many tokens     fixed            older messages        none
    Summary        a summary and the last exchanges  near constant    details               one an exchange
    SummaryBuffer  a summary, then recent messages   bounded          details of old ones   one an overflow

None goes above the budget of a context: a buffer that does not fit loses its oldest messages, and
the context says so.  System messages that open a conversation stay, before everything else.  A tool
call stays with its results; a result whose call is gone is not shown first.

They use no facts and recall nothing.  Where a memory has summaries, these replace what the last two
leave out, and only messages without a summary are summarized at once.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from itertools import accumulate
from typing import Any, Final, Literal

from ..errors import BadInput, ConfigError
from ..scope import CHARACTER
from ..text import dataclass
from ..text.render import render_line
from ..text.terms import MESSAGE_OVERHEAD_TOKENS, count_tokens
from ..text.validate import MessageLike, checked_messages
from ..types import Message, RollingSummary, Summary
from .assemble import Layered, Layout, Part, Strategy, build_part, facts_part, frame_cost, message_cost
from .material import Count, Item, Material, TokenMeter, covered_range, name_item, shorten_middle
from .result import ContextSource, LeftOut
from .turns import (
    NO_SUMMARY,
    QUERY_SEQ,
    Narrative,
    Turn,
    Verbatim,
    build_turns,
    choose_turns,
    covering_summaries,
    first_verbatim,
    last_exchanges,
    list_left_out,
    opening_messages,
)

FOLD_TO = 0.5  # of the threshold: a fold makes room for as much again, so few are needed
NOT_LOADED = "older than what the budget could hold, or a tool result without its call"


@dataclass(frozen=True, slots=True)
class Classic:
    """The base of the five strategies."""

    memory_role: Literal["user", "system", "developer"] = field(default="user", kw_only=True, repr=False)

    @property
    def recalls(self) -> bool:
        """See `Strategy.recalls`."""
        return False

    def first_wanted(self, summaries: Sequence[Summary], total: int, recent_messages: int, budget_tokens: int) -> int:
        """See `Strategy.first_wanted`: from the start of a chunk, so that summaries cover all before it."""
        return max(1, total - budget_tokens // MESSAGE_OVERHEAD_TOKENS + 1)

    def wanted_summaries(self, summaries: Sequence[Summary], recent_messages: int) -> Sequence[Summary]:
        """See `Strategy.wanted_summaries`."""
        return summaries


@dataclass(frozen=True, slots=True)
class Unsummarized(Classic):
    """The three that need messages and nothing else."""

    def apply(
        self: Strategy,
        messages: Sequence[MessageLike],
        *,
        budget_tokens: int | None = None,
        summary: RollingSummary | None = None,
        count: Count | None = None,
    ) -> list[Message]:
        """
        Return the *messages* that a model should see; nothing is stored.

        Args:
            messages: the whole conversation, oldest first.
            budget_tokens: never exceeded; no bound when not given.
            summary: of no use to this strategy.
            count: how tokens are counted; by an estimate when not given.

        Raises:
            BadInput: the budget is below 1, or a message cannot be used.
        """
        return choose_messages(self, check_messages(messages), budget_tokens=budget_tokens, count=count)


@dataclass(frozen=True, slots=True)
class Buffer(Unsummarized):
    """Every message."""

    @property
    def name(self) -> str:
        """See `Strategy.name`."""
        return "buffer"

    def lay_out(self, material: Material, room: int, recent_messages: int, meter: TokenMeter) -> Layout:
        """See `Strategy.lay_out`."""
        return lay_out_turns(ConversationTurns(material, meter), 0, room, NOT_LOADED)


@dataclass(frozen=True, slots=True)
class Window(Unsummarized):
    """The last *exchanges* exchanges, and the question that is being asked."""

    exchanges: int = 5

    def __post_init__(self) -> None:
        _at_least_1("exchanges", self.exchanges)

    @property
    def name(self) -> str:
        """See `Strategy.name`."""
        return f"window/{self.exchanges}"

    def lay_out(self, material: Material, room: int, recent_messages: int, meter: TokenMeter) -> Layout:
        """See `Strategy.lay_out`."""
        talk = ConversationTurns(material, meter)
        return lay_out_turns(
            talk, talk.exchanges(self.exchanges), room, f"older than the last {self.exchanges} exchanges"
        )


@dataclass(frozen=True, slots=True)
class TokenBuffer(Unsummarized):
    """As many of the last messages as fit into *tokens*, system messages that open the talk among them."""

    tokens: int = 2000

    def __post_init__(self) -> None:
        _at_least_1("tokens", self.tokens)

    @property
    def name(self) -> str:
        """See `Strategy.name`."""
        return f"token_buffer/{self.tokens}"

    def lay_out(self, material: Material, room: int, recent_messages: int, meter: TokenMeter) -> Layout:
        """See `Strategy.lay_out`."""
        talk, room = ConversationTurns(material, meter), min(room, self.tokens)
        start = talk.fitting(room - talk.opening_tokens)
        return lay_out_turns(talk, start, room, f"older than the last {self.tokens} tokens")


@dataclass(frozen=True, slots=True)
class Facts(Classic):
    """
    The known facts about the user, and the last *exchanges* exchanges.

    It needs no summary: a conversation that is opened with it makes none.
    """

    exchanges: int = 2

    def __post_init__(self) -> None:
        _at_least_1("exchanges", self.exchanges)

    @property
    def name(self) -> str:
        """See `Strategy.name`."""
        return f"facts/{self.exchanges}"

    @property
    def recalls(self) -> bool:
        """See `Strategy.recalls`."""
        return True

    def lay_out(self, material: Material, room: int, recent_messages: int, meter: TokenMeter) -> Layout:
        """See `Strategy.lay_out`."""
        talk = ConversationTurns(material, meter)
        start = talk.exchanges(self.exchanges)
        least = sum(turn.tokens for turn in talk.turns[talk.asked :])
        named = name_item(material.user_name, material.conversation)
        labels = {**material.labels, CHARACTER: ""}
        facts = facts_part(material.facts, min(room // 2, room - least), meter, labels, named, material.instruction)
        if message_cost((facts,)) > room - least:
            facts = build_part("facts", (), meter)
        older = f"older than the last {self.exchanges} exchanges"
        layout = lay_out_turns(talk, start, room - message_cost((facts,)), older)
        missing = len(material.facts) - len([item for item in facts.items if item is not named])
        left = [LeftOut("facts", missing, "no room in the budget")] if missing > 0 else []
        return replace(layout, stable=(*layout.stable, facts), left_out=(*layout.left_out, *left))


@dataclass(frozen=True, slots=True)
class Summarized(Classic):
    """A summary of everything but the last *exchanges* exchanges, and these verbatim."""

    exchanges: int = 2

    def __post_init__(self) -> None:
        _at_least_1("exchanges", self.exchanges)

    @property
    def name(self) -> str:
        """See `Strategy.name`."""
        return f"summary/{self.exchanges}"

    def first_wanted(self, summaries: Sequence[Summary], total: int, recent_messages: int, budget_tokens: int) -> int:
        """See `Strategy.first_wanted`: from the start of a chunk, so that summaries cover all before it."""
        return first_verbatim(summaries, total, recent_messages, budget_tokens=budget_tokens)

    def lay_out(self, material: Material, room: int, recent_messages: int, meter: TokenMeter) -> Layout:
        """See `Strategy.lay_out`."""
        talk = ConversationTurns(material, meter)
        last = talk.exchanges(self.exchanges)
        told = last if material.roll else talk.index_of(covered_end(material.summaries) + 1)
        return lay_out_turns(talk, min(told, last), room, NO_SUMMARY, roll_summaries(material, talk.seq_at(told)))

    def summary_through(self, messages: Sequence[Message], through: int, room: int, meter: TokenMeter) -> int:
        """Return how many messages a rolling summary should cover, when it covers the first *through*."""
        talk = ConversationTurns(Material("", messages, len(messages)), meter)
        return max(through, talk.seq_at(talk.exchanges(self.exchanges)) - 1)


@dataclass(frozen=True, slots=True)
class SummaryBuffered(Classic):
    """
    The recent messages verbatim while they stay within *tokens*; what overflows goes into a summary.

    In a memory the verbatim part starts where a stored summary ends.
    """

    tokens: int = 2000

    def __post_init__(self) -> None:
        _at_least_1("tokens", self.tokens)

    @property
    def name(self) -> str:
        """See `Strategy.name`."""
        return f"summary_buffer/{self.tokens}"

    def first_wanted(self, summaries: Sequence[Summary], total: int, recent_messages: int, budget_tokens: int) -> int:
        """See `Strategy.first_wanted`: from the start of a chunk, so that summaries cover all before it; what none covers is read, too."""
        first = max(1, total - min(self.tokens, budget_tokens) // MESSAGE_OVERHEAD_TOKENS + 1)
        first = min(first, max(covered_end(summaries) + 1, first - MAX_ON_THE_SPOT))
        return max(
            (s.start_seq for s in summaries if s.level == 1 and s.start_seq <= first <= s.end_seq), default=first
        )

    def lay_out(self, material: Material, room: int, recent_messages: int, meter: TokenMeter) -> Layout:
        """See `Strategy.lay_out`."""
        talk = ConversationTurns(material, meter)
        start = self._start(talk, room)
        return lay_out_turns(talk, start, room, NO_SUMMARY, roll_summaries(material, talk.seq_at(start)))

    def _start(self, talk: ConversationTurns, room: int) -> int:
        material = talk.material
        covered = covered_end(material.summaries)
        if material.roll is None:
            return talk.index_of(covered + 1)
        if material.first_given == 1 and talk.tokens_from(0) + talk.opening_tokens <= min(self.tokens, room):
            return 0
        limit = min(self.tokens, (room - talk.opening_tokens) // 2)  # the other half is the summary's
        starts = sorted({s.start_seq for s in material.summaries if s.level == 1} | {covered + 1})
        for seq in starts:
            index = talk.index_of(seq)
            if material.first_given <= seq and index <= talk.asked and talk.tokens_from(index) <= limit:
                return index
        return talk.fitting(limit)

    def summary_through(self, messages: Sequence[Message], through: int, room: int, meter: TokenMeter) -> int:
        """Return how many messages a rolling summary should cover, when it covers the first *through*."""
        talk, threshold = ConversationTurns(Material("", messages, len(messages)), meter), min(self.tokens, room // 2)
        if talk.tokens_from(talk.index_of(through + 1)) <= threshold:
            return through
        return max(through, talk.seq_at(talk.fitting(int(threshold * FOLD_TO))) - 1)


def _at_least_1(what: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(f"{what} must be a whole number of at least 1, not {value!r}")


SUMMARY_SHARE = 0.5


class ConversationTurns:
    """
    The turns of *material*.

    ``opening_messages``: the system messages that the conversation begins with.  ``asked``: the index of the
    last question.  An index of ``len(turns)`` means the end.
    """

    def __init__(self, material: Material, meter: TokenMeter) -> None:
        self.material, self.meter = material, meter
        messages = material.messages
        head = opening_messages(messages) if material.messages_from <= 1 else ()
        self.opening = tuple(build_turns([*material.opening, *head], None, meter))
        self.opening_tokens = sum(turn.tokens for turn in self.opening)
        turns = build_turns(messages[len(head) :], material.query, meter)
        self.turns = turns
        self.asked = last_exchanges(turns, 1)[1]
        self._after = [*accumulate((turn.tokens for turn in reversed(turns)), initial=0)][::-1]

    def exchanges(self, number: int) -> int:
        """Return where the last *number* exchanges begin; a question without an answer yet is not one of them."""
        replies = [turn for turn in self.turns[self.asked + 1 :] if turn.role == "assistant"]
        answered = any("tool_calls" not in turn.messages[0] for turn in replies)
        return last_exchanges(self.turns, number if answered else number + 1)[0]

    def fitting(self, room: int) -> int:
        """Return where to begin so that all from there on fits into *room*; at the last question at the latest."""
        return next((index for index in range(self.asked) if self._after[index] <= room), self.asked)

    def index_of(self, seq: int) -> int:
        """Return the first turn that begins at message *seq* or later; the question, which has no number yet, at the end."""
        return next(
            (i for i, turn in enumerate(self.turns) if QUERY_SEQ in turn.seqs or turn.seqs[0] >= seq), len(self.turns)
        )

    def seq_at(self, index: int) -> int:
        """Return the number of the message at which the turn begins, or will when it is stored."""
        if index < len(self.turns) and self.turns[index].seqs[0] != QUERY_SEQ:
            return self.turns[index].seqs[0]
        return self.material.total_messages + 1

    def tokens_from(self, index: int) -> int:
        """Return the cost of the turns from *index* on."""
        return self._after[index]


def lay_out_turns(
    talk: ConversationTurns, start: int, room: int, older: str, summaries: Sequence[RolledSummary] = ()
) -> Layout:
    """
    Lay out the turns from *start* on, as many as fit into *room*, after the opening and *summaries*.

    The last question comes first: what would leave it no room is left out.  *older* says why the
    messages before *start* are left out.
    """
    while start < len(talk.turns) and talk.turns[start].role == "tool":  # its call is not there
        start += 1
    meter, turns = talk.meter, talk.turns[start:]
    asked = turns[last_exchanges(turns, 1)[1]].tokens if turns else 0
    head = talk.opening if talk.opening_tokens + asked <= room else ()
    left = room - sum(turn.tokens for turn in head)
    told = _fit_summaries(summaries, min(left - asked, int(left * SUMMARY_SHARE)), meter)
    if message_cost((told,)) + asked > left:
        told = build_part("summaries", (), meter)
    verbatim = choose_turns(
        turns, exchanges=1, recent_messages=0, room=left - message_cost((told,)), reserve=0, meter=meter
    )
    shown = verbatim.turns
    while shown and shown[0].role == "tool":
        shown = shown[1:]
    ids = {item.source.id for item in told.items}
    story = Narrative(
        talk.material,
        told=[each.summary for each in summaries if each.summary.id in ids],
        untold=[each.summary for each in summaries if each.summary.id not in ids],
        start=talk.seq_at(start),
        verbatim=Verbatim((*head, *shown), 0, verbatim.dropped),
        older=older,
    )
    return Layout((told,), build_part("recalled", (), meter), shown, tuple(list_left_out(story)), head)


def _fit_summaries(summaries: Sequence[RolledSummary], room: int, meter: TokenMeter) -> Part:
    """*summaries* within *room*, latest first when not all fit; the one that does not is cut with a mark."""
    left = room - MESSAGE_OVERHEAD_TOKENS - frame_cost("summaries", meter)
    items: list[Item] = []
    for each in reversed(summaries):
        item = each.item
        if meter.line(item.line) > left:
            shorter = shorten_middle(each.text, left - 1, lambda text: meter.count(render_line(text)))
            if shorter is None:
                break
            item = item._replace(line=render_line(shorter))
        items.append(item)
        left -= meter.line(item.line)
        if item is not each.item:
            break
    return build_part("summaries", items[::-1], meter)


MAX_ON_THE_SPOT = 60  # messages: some 80 ms; what is older waits for its chunk to be summarized
ROLLING = "rolling"
EPOCH = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class RolledSummary:
    """A summary of a range of messages, and the line that shows it."""

    summary: Summary
    text: str
    item: Item


def roll_summaries(material: Material, before: int) -> list[RolledSummary]:
    """
    Summarize messages 1 to *before* - 1, as one text for each stretch without a hole.

    There is a hole only where messages are neither summarized nor given, or too many are not
    summarized yet; then the stretch before it and the one after it get a summary each.
    """
    stored = covering_summaries(material.summaries, before)
    if material.roll is None:
        return [_as_rolled(summary, material.conversation) for summary in stored]
    stretches = [_Stretch(s.start_seq, s.end_seq, [s], []) for s in stored]
    stretches += [_Stretch(m.seq, m.seq, [], [m]) for m in _unsummarized(material, stored, before)]
    stretches.sort(key=lambda stretch: stretch.start)
    joined: list[_Stretch] = []
    for stretch in stretches:
        last = joined[-1] if joined else None
        # A summary that follows messages which no summary tells begins anew: the roll takes summaries first.
        # Those of a model stay as they are: the roll would make extracts of them.
        follows = last is not None and stretch.start == last.end + 1 and not (last.messages and stretch.summaries)
        if last and follows and all(map(_by_rules, (*last.summaries, *stretch.summaries))):
            last.end = stretch.end
            last.summaries += stretch.summaries
            last.messages += stretch.messages
        else:
            joined.append(stretch)
    return [_as_rolled(stretch.told(material), material.conversation) for stretch in joined]


def _by_rules(summary: Summary) -> bool:
    return summary.source.startswith("rules ")


def covered_end(summaries: Sequence[Summary]) -> int:
    """Return the last message that a summary covers; 0 when there is none."""
    return max((summary.end_seq for summary in summaries), default=0)


@dataclass(slots=True)
class _Stretch:
    start: int
    end: int
    summaries: list[Summary] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)

    def told(self, material: Material) -> Summary:
        if len(self.summaries) == 1 and not self.messages:
            return self.summaries[0]
        assert material.roll is not None
        text, source = material.roll(self.summaries, self.messages)
        times = [at for s in self.summaries for at in (s.first_at, s.last_at)] + [m.at for m in self.messages]
        known = [at for at in times if at]
        ends = (min(known), max(known)) if known else (None, None)
        return replace(rolling_summary(text, self.start, self.end, source), first_at=ends[0], last_at=ends[1])


def rolling_summary(text: str, start: int, end: int, source: str) -> Summary:
    """Return a rolling summary as a value; it has no place in the store."""
    return Summary(
        id=f"{ROLLING} {start}-{end}",
        level=0,
        start_seq=start,
        end_seq=end,
        exchanges=0,
        text=text,
        themes=(),
        concerns=(),
        actions=(),
        block=0,
        version=1,
        children=(),
        created_at=EPOCH,
        source=source,
    )


def _unsummarized(material: Material, stored: Sequence[Summary], before: int) -> list[Message]:
    """Return the messages before *before* that no summary covers, the last ones when they are very many."""
    head = True
    found: list[Message] = []
    for message in material.messages:
        head = head and message.role == "system" and material.messages_from <= 1
        if message.seq >= before:
            break
        if not head and not any(s.start_seq <= message.seq <= s.end_seq for s in stored):
            found.append(message)
    return found[-MAX_ON_THE_SPOT:]


def _as_rolled(summary: Summary, conversation: str) -> RolledSummary:
    span = f"messages {summary.start_seq}-{summary.end_seq}"
    text = f"{covered_range(summary, 'extracts' if _by_rules(summary) else '')}: {summary.text}"
    source = ContextSource("summaries", "summary", summary.id, conversation, summary.start_seq, summary.end_seq)
    return RolledSummary(summary, text, Item(render_line(text), source, span))


NO_TIME = datetime.fromtimestamp(0, UTC)


def choose_messages(
    strategy: Strategy,
    messages: Sequence[Message],
    *,
    budget_tokens: int | None = None,
    summary: RollingSummary | None = None,
    count: Count | None = None,
) -> list[Message]:
    """
    Return the *messages* that *strategy* shows, after *summary* as one more message.

    What is shown whole is the message that was given.

    Raises:
        BadInput: the budget is below 1.
    """
    if budget_tokens is not None and budget_tokens < 1:
        raise BadInput(f"budget_tokens is {budget_tokens}; it must be at least 1")
    kept = summary if summary is not None and 0 < summary.through <= len(messages) else None
    material = Material(
        conversation="",
        messages=[replace(message, seq=seq) for seq, message in enumerate(messages, 1)],
        total_messages=len(messages),
        summaries=[replace(rolling_summary(kept.text, 1, kept.through, kept.source), level=1)] if kept else (),
        messages_from=1,
    )
    room = sys.maxsize if budget_tokens is None else budget_tokens
    layout = strategy.lay_out(material, room, len(messages), TokenMeter(count or count_tokens))
    told = [_summary(layout, strategy.memory_role, kept)] if kept and any(part.items for part in layout.stable) else []
    opening = [_as_sent(messages[seq - 1], sent) for turn in layout.opening for seq, sent in _sent_pairs(turn)]
    return [
        *opening,
        *told,
        *(_as_sent(messages[seq - 1], sent) for turn in layout.turns for seq, sent in _sent_pairs(turn)),
    ]


def check_messages(messages: Sequence[MessageLike]) -> list[Message]:
    """
    *messages* as values; a `Message` stays what it is.

    Raises:
        BadInput: one is neither a `Message` nor a mapping in OpenAI's shape.
    """
    found: list[Message] = []
    for given in messages:
        if isinstance(given, Message):
            found.append(given)
            continue
        message, dated = checked_messages(given, now=NO_TIME, max_chars=sys.maxsize)[0]
        found.append(message if dated else replace(message, at=None))
    return found


def _sent_pairs(turn: Turn) -> Iterator[tuple[int, Mapping[str, Any]]]:
    return zip(turn.seqs, turn.messages, strict=True)


def _summary(layout: Layout, role: str, summary: RollingSummary) -> Message:
    text = "\n".join(render_line for part in layout.stable if part.items for render_line in part.lines)
    return Message(role, text, meta={"summary": {"through": summary.through, "source": summary.source}})


def _as_sent(message: Message, sent: Mapping[str, Any]) -> Message:
    """*message* itself when it is sent whole, else what is sent of it."""
    calls, content = sent.get("tool_calls"), sent.get("content") or ""
    had = message.meta.get("tool_calls")
    if (message.role, message.content) == (sent["role"], content) and (not had or calls):
        return message
    meta = {key: value for key, value in message.meta.items() if key not in ("tool_calls", "tool_call_id", "parts")}
    if calls:
        meta["tool_calls"] = calls
    if sent["role"] == "tool":
        meta["tool_call_id"] = sent["tool_call_id"]
    return replace(message, role=sent["role"], content=content, meta=meta, tokens=0)


Kinds = Mapping[str, Callable[..., Strategy]]

KINDS: Final[Kinds] = {
    "layered": Layered,
    "facts": Facts,
    "window": Window,
    "summary": Summarized,
    "summary_buffer": SummaryBuffered,
    "token_buffer": TokenBuffer,
    "buffer": Buffer,
}
SIZES: Final = {name: "exchanges" for name in ("layered", "facts", "window", "summary")} | {
    "token_buffer": "tokens",
    "summary_buffer": "tokens",
}
MOST: Final = {"exchanges": 10_000, "tokens": 10_000_000}
ROLES: Final = ("user", "system", "developer")
SWITCHES: Final = {
    "on": True,
    "true": True,
    "yes": True,
    "1": True,
    "off": False,
    "false": False,
    "no": False,
    "0": False,
}


def make_strategy(name: str, options: Mapping[str, Any], kinds: Kinds = KINDS) -> Strategy:
    """
    Make a strategy from its name and its options.

    Raises:
        BadInput: there is no such strategy, or it has no such option or value.
    """
    if name not in kinds:
        near = difflib.get_close_matches(name, kinds, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(kinds)}"
        raise BadInput(f"there is no strategy {name[:50]!r}", hint=hint)
    known = {"memory_role", *([SIZES[name]] if name in SIZES else [])}
    known |= {"side_by_side", "character"} if name == "layered" else set()
    if wrong := options.keys() - known:
        raise BadInput(f"the strategy {name} has no {min(wrong)[:50]}", hint=f"it has {', '.join(sorted(known))}")
    return kinds[name](**{option: _checked(option, value) for option, value in options.items()})


def as_strategy(given: Strategy | str | None, kinds: Kinds = KINDS) -> Strategy | None:
    """
    Return the strategy that a text such as ``facts/2`` or ``layered/3,side_by_side=on`` names; another one as it is.

    Raises:
        BadInput: the text names none.
    """
    if not isinstance(given, str):
        return given
    head, *parts = (part.strip() for part in given.split(","))
    name, slash, size = head.partition("/")
    options: dict[str, Any] = dict([*part.split("=", 1), "on"][:2] for part in parts)
    if slash:
        options[SIZES.get(name, "size")] = size
    return make_strategy(name, options, kinds)


def strategy_text(given: Strategy | str | None, kinds: Kinds = KINDS) -> str | None:
    """
    Return the text that names a strategy of the library.

    Raises:
        BadInput: it is not one of them, or has a function in it.
    """
    strategy = as_strategy(given, kinds)
    if strategy is None:
        return None
    name = next((name for name, kind in kinds.items() if type(strategy) is kind), None)
    if name is None or getattr(strategy, "summarize", None) is not None:
        raise BadInput(
            f"the strategy {type(strategy).__name__} cannot be sent to a server",
            hint="use one of holdfast.strategies, without summarize",
        )
    options = [f"memory_role={strategy.memory_role}"] if strategy.memory_role != "user" else []
    if isinstance(strategy, Layered):
        options += [*(["side_by_side=on"] * strategy.side_by_side), *(["character=off"] * (not strategy.character))]
    size = f"/{getattr(strategy, SIZES[name])}" if name in SIZES else ""
    return ",".join([f"{name}{size}", *options])


def _checked(option: str, value: Any) -> Any:
    if option in MOST:
        digits = isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value)
        number = int(value) if digits else value
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= MOST[option]:
            raise BadInput(f"{option} is a whole number from 1 to {MOST[option]:,}, not {str(value)[:50]!r}")
        return number
    if option == "memory_role":
        if value not in ROLES:
            raise BadInput(f"memory_role is {', '.join(ROLES)}, not {str(value)[:50]!r}")
        return value
    if not isinstance(value, bool) and value not in SWITCHES:
        raise BadInput(f"{option} is on or off, not {str(value)[:50]!r}")
    return value if isinstance(value, bool) else SWITCHES[value]
