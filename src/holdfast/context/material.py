"""The material of a context, its price in tokens, and the record of its stable part.  Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import date
from typing import Any, Literal, NamedTuple, TypeVar

from ..scope import SELF
from ..text import dataclass, expression
from ..text.render import change_note, render_line
from ..text.terms import MESSAGE_OVERHEAD_TOKENS, count_tokens
from ..types import Fact, Hit, Message, Summary, TurnKey
from .result import ContextSource

DEFAULT_INSTRUCTION = "Use it naturally and do not recite it."
Roll = Callable[[Sequence[Summary], Sequence[Message]], tuple[str, str]]
Beside = Callable[[Sequence[Hit]], Mapping[TurnKey, Hit]]


@dataclass(frozen=True, slots=True)
class Material:
    """
    Everything that may go into one context of one conversation.

    ``messages`` are those that may be shown verbatim: all from ``messages_from`` (see
    `first_verbatim`) to the last, in order.  ``total_messages`` is the number of the last message.
    ``summaries``: the live ones of the conversation that may be shown (see `outermost`).  ``facts``: live and visible
    here.  ``hits``: recalled for this question, best first; at most ``recall_limit`` of those that
    are not shown anyway are taken.  ``query`` is the user's next message.
    ``notes`` says of a message what replaced it.  ``labels``: the name to show of each subject.
    ``subject``: what the conversation is about; hits may come from conversations about others.
    ``user_name``: what the user's turns are signed with, if all with the same.  ``instruction``: how the model should use facts.
    ``over``: plans of which the dates are over; they are not shown.
    ``beside`` finds the turns before and after some of the hits, of the same session.  ``quoted``: for messages of which every
    word is the quote of a fact, the ids of those facts.  ``searched``: whether the memory was looked at for the question.

    ``earlier``: summaries of the user's other conversations about the same subject, newest first; without an id where
    nothing is stored and the messages were summarized for this context.  ``documents``: how many messages, facts and
    summaries the user's memory has held; it only rises.

    ``opening``: system messages before ``messages`` that open the conversation.  ``roll`` makes one
    text of summaries and of the messages after them, and says who wrote it; without it, what no
    summary covers is not summarized at once.
    """

    conversation: str
    messages: Sequence[Message]
    total_messages: int
    summaries: Sequence[Summary] = ()
    facts: Sequence[Fact] = ()
    hits: Sequence[Hit] = ()
    query: str | None = None
    notes: Mapping[TurnKey, str] = field(default_factory=dict)
    messages_from: int = 0
    recall_limit: int | None = None
    opening: Sequence[Message] = ()
    roll: Roll | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    subject: str = SELF
    user_name: str = ""
    instruction: str = DEFAULT_INSTRUCTION
    over: Sequence[Fact] = ()
    beside: Beside = lambda hits: {}
    quoted: Mapping[TurnKey, Sequence[str]] = field(default_factory=dict)
    searched: bool = True
    earlier: Sequence[Summary] = ()
    documents: int = 0

    @property
    def first_given(self) -> int:
        """The number from which messages were loaded; one that is missing after it does not exist."""
        if self.messages_from:
            return self.messages_from
        return self.messages[0].seq if self.messages else self.total_messages + 1

    def until(self, stop: int) -> Material:
        """Return what there is without message *stop* of the conversation and those after it; facts stay."""
        here = self.conversation

        def after(hit: Hit) -> bool:
            return hit.conversation == here and hit.seq >= stop

        return replace(
            self,
            messages=[message for message in self.messages if message.seq < stop],
            summaries=[summary for summary in self.summaries if summary.end_seq < stop],
            hits=[hit for hit in self.hits if not (hit.kind == "message" and after(hit))],
            beside=lambda hits: {key: hit for key, hit in self.beside(hits).items() if not after(hit)},
            total_messages=min(self.total_messages, stop - 1),
            messages_from=min(self.messages_from, stop),
            opening=[message for message in self.opening if message.seq < stop],
        )


@dataclass(frozen=True, slots=True)
class Prefix:
    """
    The stable part of one context: its digest, and ids and digests of its items, without any text.

    ``manifest`` is JSON-able; `dumps` and `loads` are what a store keeps of it.
    """

    sha256: str
    manifest: Mapping[str, Any]

    def dumps(self) -> str:
        """Return the manifest as JSON text."""
        return json.dumps(self.manifest, separators=(",", ":"), sort_keys=True)

    @classmethod
    def loads(cls, sha256: str, manifest: str) -> Prefix:
        """Parse the text of `dumps`."""
        return cls(sha256, json.loads(manifest))


def short_digest(text: str) -> str:
    """Return a short fingerprint that shows whether something changed."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


MAX_NAME_CHARS = 40
MAX_RECALLED_CHARS = 600  # one recalled item; the answer is rarely further in, and ten have to fit
BRIEF_WORDS = 12
BRIEF_EARLIER_WORDS = 16
_OPENING = expression(r"^(?:\[[\d –to-]+\] )?(?:user: )?")
SLOT_PARTS = {"exclusive": 0, "single": 1, "multi": 2}  # key and value


class Item(NamedTuple):
    """
    One rendered line and where it comes from.

    ``slot`` says which other fact would take its place (as much of the address as its cardinality
    needs); ``label`` names it in a sentence about changes; ``brief``: it only names what it was about; ``why`` it is shown.
    ``day``: the conversation and the day on which it was said; ``undated`` is the line to show right behind another of that day.
    """

    line: str
    source: ContextSource
    label: str = ""
    slot: tuple[str, ...] = ()
    brief: bool = False
    why: str = ""
    day: tuple[str, ...] = ()
    undated: str = ""

    def because(self, why: str) -> Item:
        """Return the same item with the reason why it is shown."""
        return self._replace(why=why)


def turn_key(hit: Hit) -> TurnKey:
    """Return the key of a turn or fact; the summaries of one conversation share theirs, so that only one is recalled."""
    if hit.kind == "message":
        return (hit.subject, hit.conversation, hit.seq)
    return (hit.kind, hit.id if hit.kind == "fact" else f"{hit.subject}/{hit.conversation}", 0)


def fact_item(fact: Fact, labels: Mapping[str, str] | None = None) -> Item:
    """Render the fact as one sentence, with its subject's name, and when it holds unless that is for good."""
    text = fact.text or f"{fact.category} {fact.key}: {fact.value}"
    label = (labels or {}).get(fact.subject, fact.subject)
    if fact.subject != SELF and label.casefold() not in text.casefold():
        text = f"{label}: {text}"
    if fact.lifetime != "permanent" and not _STAMP.search(text):
        text = f"{text} ({_when(fact)})"
    parts = (fact.key, fact.value)[: SLOT_PARTS[fact.cardinality]]
    source = ContextSource("facts", "fact", fact.id, "", 0, 0)
    slot = (fact.subject, fact.category, *parts)
    return Item(render_line(text), source, f"{fact.category}/{fact.key}", slot, why=_why(fact))


def _when(fact: Fact) -> str:
    """Return the day of a fact: "since 2020", "as of 2026-03-05"; the bare day of what passes, happened, or was measured."""
    said, day = fact.dated
    return f"{said} {day}" if fact.lifetime == "state" and said != "on" else fact.valid_from.date().isoformat()


def _why(fact: Fact) -> str:
    """Why a fact is among those that are shown, in words."""
    if fact.kind == "attribute":
        first = f"{fact.category} comes first" if fact.category in FIRST else f"attribute {fact.category}/{fact.key}"
        return f"{first}, strength {fact.strength:.1f}"
    return f"{fact.kind} that fits after the attributes, strength {fact.strength:.1f}"


# What a reply must never miss stands first: who the user is, what could hurt them, what they asked for once and for all.
FIRST = "identity allergy medication health dietary food communication family social pets home work".split()
PASSING_CATEGORIES = frozenset(("plan", "trip", "appointment"))
_PLACES = {category: place for place, category in enumerate(FIRST)}
_STAMP = expression(r"\((\d{4})-(\d\d)(?:-(\d\d))?\)")
_NAMED = expression(r"[^\W\d_]+(?:[ '’.-]{1,2}[^\W\d_]+){0,3}\.?")


def fact_sort_key(fact: Fact) -> tuple[object, ...]:
    """
    Return a sort key that does not change when a fact is used or confirmed.

    The user first, what matters most first, the rest by address; what passes comes last, because a change there leaves all before it the same.
    """
    passes = fact.kind == "episode" or fact.lifetime in ("event", "transient") or fact.category in PASSING_CATEGORIES
    place = _PLACES.get(fact.category, len(FIRST)) if fact.kind == "attribute" else len(FIRST) + 1
    return (passes, fact.subject != SELF, fact.subject, place, fact.category, fact.key, fact.value, fact.id)


def name_item(name: str, conversation: str) -> Item | None:
    """Render who the user is, by the *name* that signs their messages; ``None`` for what is no name."""
    if len(name) > MAX_NAME_CHARS or not _NAMED.fullmatch(name):
        return None
    source = ContextSource("facts", "message", "", conversation, 0, 0)
    return Item(render_line(f"The user is called {name.rstrip('.')}."), source, why="it signs the user's messages")


def is_past_plan(fact: Fact, today: date) -> bool:
    """Whether *fact* is a plan or an event for days that are over, by the dates in its own words."""
    if fact.category not in PASSING_CATEGORIES:
        return False
    stamps = [tuple(map(int, filter(None, one))) for one in _STAMP.findall(fact.text)]
    return bool(stamps) and all(stamp < (today.year, today.month, today.day)[: len(stamp)] for stamp in stamps)


def summary_item(summary: Summary, conversation: str) -> Item:
    """Render the summary's text after its range and its days."""
    span = f"messages {summary.start_seq}-{summary.end_seq}"
    source = ContextSource("summaries", "summary", summary.id, conversation, summary.start_seq, summary.end_seq)
    return Item(render_line(f"{covered_range(summary)}: {summary.text}"), source, span, why=f"tells {span}")


def covered_range(summary: Summary, note: str = "") -> str:
    """Return the range of a summary, with its days and a *note* in parentheses."""
    notes = ", ".join(filter(None, (summary.days, note)))
    return f"messages {summary.start_seq}-{summary.end_seq}" + (f" ({notes})" if notes else "")


def about(summary: Summary) -> str:
    """Return what a summary is about, in a few words."""
    return "; ".join(summary.themes) or " ".join(summary.text.split()[:BRIEF_WORDS])


def brief_item(summary: Summary, conversation: str) -> Item:
    """Render the range and its subject in a line, where there is no room for the summary itself."""
    full = summary_item(summary, conversation)
    short = render_line(f"{covered_range(summary)}, in brief: {about(summary)}")
    return full if len(full.line) <= len(short) else Item(short, full.source, full.label, brief=True)


def earlier_item(summary: Summary) -> Item:
    """Render the summary of another conversation after its days."""
    return _earlier(summary, summary.text)


def earlier_brief_item(summary: Summary) -> Item:
    """Render the days of another conversation and how it began, where there is no room for its summary."""
    words = _OPENING.sub("", summary.text).split()
    begun = " ".join(words[:BRIEF_EARLIER_WORDS]) + (" …" if len(words) > BRIEF_EARLIER_WORDS else "")
    full, short = earlier_item(summary), _earlier(summary, f"in brief: {begun or about(summary)}", brief=True)
    return full if len(full.line) <= len(short.line) else short


def _earlier(summary: Summary, text: str, *, brief: bool = False) -> Item:
    kind: Literal["summary", "message", "story"] = (
        "message" if not summary.id else "summary" if summary.level > 0 else "story"
    )
    source = ContextSource("earlier", kind, summary.id, summary.conversation, summary.start_seq, summary.end_seq)
    dated = text if not summary.days or text.startswith(f"[{summary.days}]") else f"{summary.days}: {text}"
    return Item(render_line(dated), source, "an earlier conversation", brief=brief, why="tells an earlier conversation")


def hit_item(hit: Hit, replaced_by: str | None, most: int = MAX_RECALLED_CHARS) -> Item:
    """Render a recalled item with *most* characters of its text, its day and speaker, and what replaced it meanwhile."""
    text = hit.text
    if len(text) > most:
        text = f"{text[:most]} […{len(text) - most} characters left out…]"
    head = [hit.at.date().isoformat()] if hit.at and hit.kind != "fact" else []
    head += [hit.speaker] if hit.speaker and hit.kind == "message" else []
    head += ["earlier conversation"] if hit.kind == "summary" else []
    said = f"{' '.join(head)}: {text}" if head else text
    note = f" ({change_note(replaced_by)})" if replaced_by else ""
    seq = 0 if hit.kind == "fact" else hit.seq
    source = ContextSource("recalled", hit.kind, hit.id, hit.conversation, seq, seq)
    if hit.kind != "message" or not hit.at or not hit.speaker:
        return Item(render_line(said + note), source)
    day = (hit.subject, hit.conversation, head[0])
    line = render_line(said + note)
    return Item(line, source, day=day, undated=f'"{line[len(head[0]) + 2 :]}')  # the quote, the day and a space


T = TypeVar("T")
Count = Callable[[str], int]

MAX_CHARS_A_TOKEN = 16  # more than any tokenizer packs into one on average; bounds the search for a cut
MISSES = 4
LINE_TOKENS = 6  # no useful line is shorter


class TokenMeter:
    """
    A meter of tokens, in the caller's count.

    A rendered line costs its own tokens and one for its end, so that lines can be added up without
    counting the whole text again.  Remembers what it counted for as long as one context takes.
    """

    __slots__ = ("_known", "_stored", "count")

    def __init__(self, count: Count) -> None:
        self.count = count
        self._stored = count is count_tokens  # then the store has counted every message already
        self._known: dict[str, int] = {}

    def line(self, text: str) -> int:
        """Tokens of one line with its end."""
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = self.count(text) + 1
        return known

    def lines(self, lines: Iterable[str]) -> int:
        """Tokens of several lines."""
        return sum(self.line(text) for text in lines)

    def content(self, text: str) -> int:
        """Tokens of one message that holds nothing but *text*."""
        return self.count(text) + MESSAGE_OVERHEAD_TOKENS

    def message(self, message: Message) -> int:
        """Tokens of a stored message's content, as counted when it was stored where that is the same count."""
        return message.tokens if self._stored and message.tokens else self.content(message.content)


def choose_affordable(
    items: Iterable[T], cost: Callable[[T], int], room: int, *, least: int = 1
) -> tuple[list[T], int]:
    """
    Choose the *items* that fit into *room*, most wanted first, and return them with their cost.

    One that is too big is passed over.  Stops when less than *least* is left, or when too many in a
    row were too big, so that nothing is counted for a room that is as good as full.
    """
    chosen: list[T] = []
    spent = misses = 0
    for item in items:
        if room - spent < least or misses >= MISSES:
            break
        price = cost(item)
        if spent + price > room:
            misses += 1
            continue
        misses = 0
        spent += price
        chosen.append(item)
    return chosen, spent


def shorten_middle(text: str, room: int, count: Count) -> str | None:
    """
    Return the beginning and the end of *text* with a visible mark between them, within *room* tokens.

    Two thirds are kept from the beginning, one third from the end, where questions tend to be.
    ``None`` when not even the mark and a character fit.
    """
    low, high = 0, min(len(text) - 1, room * MAX_CHARS_A_TOKEN)
    while low < high:
        middle = (low + high + 1) // 2
        if count(_with_mark(text, middle)) <= room:
            low = middle
        else:
            high = middle - 1
    while low > 0 and count(_with_mark(text, low)) > room:  # a count that is not monotone
        low //= 2
    return _with_mark(text, low) if low > 0 else None


def _with_mark(text: str, kept: int) -> str:
    tail = kept // 3
    head = kept - tail
    return (
        f"{text[:head]} […{len(text) - kept} characters left out…] {text[len(text) - tail :] if tail else ''}".rstrip()
    )
