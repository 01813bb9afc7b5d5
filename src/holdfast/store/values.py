"""
The rows of the store as frozen values; their columns are explained in ``sql/sqlite/0001_layout4.sql``.

Times are integer milliseconds UTC.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import field, replace

from ..text import dataclass
from ..types import Fact, Message, Summary

END_OF_NAMES = "\U0010ffff"
"""Sorts after every name of an item."""


@dataclass(frozen=True, slots=True)
class UserRow:
    """The counters of one user's range; see the columns of ``user``."""

    next_doc: int = 1
    version: int = 0
    epoch: int = 0
    messages_rev: int = 0
    facts_rev: int = 0
    summaries_rev: int = 0

    def revision(self, kind: str) -> int:
        """Return how often indexed documents of a kind changed or went; see the columns."""
        return {"message": self.messages_rev, "fact": self.facts_rev, "summary": self.summaries_rev}[kind]


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """The counters of one conversation; see the columns of ``conversation``."""

    subject: str
    conversation: str
    next_seq: int
    chunk_start: int
    ended_seq: int
    extracted_seq: int
    session: int
    last_at: int
    created_at: int
    read_seq: int = 0
    stated_seq: int = 0
    unread_turns: int = 0
    ahead_turns: int = 0
    own_facts: int = 0


@dataclass(frozen=True, slots=True)
class EpisodeRangeRow:
    """A range of messages that was searched for episodes, and their number."""

    start_seq: int
    end_seq: int
    found: int
    source: str


@dataclass(frozen=True, slots=True)
class MessageRow:
    """A message on its way in: ``message`` has its ``seq``, ``at`` and ``tokens`` set."""

    message: Message
    session: int
    doc: int
    recorded_at: int


@dataclass(frozen=True, slots=True)
class DocRow:
    """One searchable thing; see the columns of ``doc``."""

    subject: str
    kind: str
    doc: int
    conversation: str
    seq: int
    ref: str
    session: int
    speaker: str
    role: str
    at: int
    terms: int
    chars: int
    signals: int
    unscoped: bool = True
    embedded: str = ""
    words: str = field(default="", compare=False)  # given to `WriteView.add_docs`; read by `ReadView.columns` alone


def pack_words(counts: Mapping[str, int]) -> str:
    """Return the index terms of a document as its row keeps them; a term has no white space."""
    return " ".join(Counter(counts).elements())


COLUMNS = ("doc", "said", "seq", "ref", "session", "at", "sizes", "words")
"""The fields of `DocRow` that `ReadView.columns` returns, in this order; ``said`` and ``sizes`` hold three each."""
SEPARATOR = "\x1f"
"""Between ``conversation``, ``role`` and ``speaker`` in ``said``; the first two cannot hold it."""
SIGNALS_SPAN, CHARS_SPAN = 64, 67_108_864
"""``sizes`` is ``(terms * CHARS_SPAN + chars) * SIGNALS_SPAN + signals``."""


@dataclass(frozen=True, slots=True)
class Partition:
    """
    One stretch of the index that a scope may search.

    ``shared_only`` restricts facts to those said in a conversation about no subject in particular.
    """

    subject: str
    kind: str
    shared_only: bool = False


FactOwner = tuple[str, str]
"""Subject and name of the conversation that a fact belongs to."""
OF_USER: FactOwner = ("", "")
"""The owner of what belongs to the user in every conversation."""


@dataclass(frozen=True, slots=True)
class FactRow:
    """
    A fact with what only the store needs: its address, its place in time, its document.

    ``home`` is the subject of the conversation that it belongs to; empty for the user's facts.
    """

    fact: Fact
    slot_key: str
    slot_value: str
    unscoped: bool
    stated_at: int
    stated_seq: int
    doc: int
    ended_at: int | None = None
    expires_at: int | None = None
    home: str = ""

    @property
    def owner(self) -> FactOwner:
        """The conversation that it belongs to, or the user."""
        return (self.home, self.fact.only_in)


@dataclass(frozen=True, slots=True)
class UseRow:
    """The uses of a fact; ``strength`` was computed at the latest of the three times."""

    subject: str
    id: str
    strength: float
    stated_at: int
    last_used_at: int | None
    uses: int
    recorded_at: int = 0


@dataclass(frozen=True, slots=True)
class Derivation:
    """``child`` rests on a range of messages, or on another derived row named by ``source``."""

    child_kind: str
    child: str
    source_kind: str
    subject: str
    conversation: str
    start_seq: int = 0
    end_seq: int = 0
    source: str = ""


@dataclass(frozen=True, slots=True)
class ConsentRow:
    """The user's choice for one subject, or (``""``) for all; no row means active."""

    subject: str
    state: str
    since: int


@dataclass(frozen=True, slots=True)
class UsageRow:
    """The calls of one model on one day for one purpose; see the columns of ``usage``."""

    day: str
    layer: str
    model: str
    calls: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: int = 0
    unpriced: int = 0

    def __add__(self, other: UsageRow) -> UsageRow:
        sums = {name: getattr(self, name) + getattr(other, name) for name in COUNTERS}
        return replace(self, **sums)


@dataclass(frozen=True, slots=True)
class RateRow:
    """The rate limit of a provider's key; times in microseconds, see the columns of ``rate_limit``."""

    id: str
    version: int = 0
    requests_at: int = 0
    tokens_at: int = 0
    booked_until: int = 0
    closed_until: int = 0


COUNTERS = ("calls", "failed", "input_tokens", "output_tokens", "cached_tokens", "cost", "unpriced")


@dataclass(frozen=True, slots=True)
class SubjectRow:
    """A subject of conversations beside the user: its id, the name to show (or ``""``), other names."""

    subject: str
    name: str = ""
    aliases: tuple[str, ...] = ()
    created_at: int = 0


@dataclass(frozen=True, slots=True)
class PromptRow:
    """One version of a prompt; see the columns of ``prompt``.  A draft of fewer than 100 ``percent`` is used for so many users."""

    name: str
    version: int
    text: str
    since: int
    draft: bool = False
    percent: int = 100


@dataclass(frozen=True, slots=True)
class ItemRow:
    """A piece of an agent framework's state; see the columns of ``item``."""

    space: str
    name: str
    value: bytes
    created_at: int
    updated_at: int
    expires_at: int | None = None


@dataclass(frozen=True, slots=True)
class ContextStatsRow:
    """The measurements of the context before one reply; see the columns of ``context_stats``."""

    seq: int
    at: int
    strategy: str
    tokens: int
    prefix: str
    recalled: int
    used: int
    sent: str = ""


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """A summary with what only the store needs: its document, and whether it is an older version."""

    summary: Summary
    doc: int
    live: bool


@dataclass(frozen=True, slots=True)
class Side:
    """
    One of the two states of a rebuilt range, before and after; a revert restores it.

    ``ids`` of summaries or facts; ``sources`` are ``(fact id, who wrote it)`` where only that changed;
    ``ends`` are ``(fact id, message number)`` of retractions.
    """

    ids: tuple[str, ...] = ()
    sources: tuple[tuple[str, str], ...] = ()
    ends: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class RebuildRow:
    """One rebuilt range; see the columns of ``rebuild``."""

    id: str
    part: int
    layer: str
    start_seq: int
    end_seq: int
    before: Side
    after: Side
    source: str
    created_at: int

    def undoes(self, other: RebuildRow) -> bool:
        """Whether this range went back to what it was before *other*."""
        place = (self.layer, self.start_seq, self.end_seq) == (other.layer, other.start_seq, other.end_seq)
        return place and self.before != self.after and (self.before, self.after) == (other.after, other.before)


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """
    The result of a search of the store's bytes after an erasure.

    ``searched`` traces were looked for, ``found`` of them are still there although no row holds them;
    ``why`` says why the result is uncertain, and is empty otherwise.
    """

    searched: int = 0
    found: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True)
class KeyRow:
    """One key as it is stored: times in milliseconds UTC, ``None`` where there is none; names ``""``."""

    org: str
    id: str
    digest: str
    role: str
    user: str
    bot: str
    subject: str
    label: str
    created: int
    expires: int | None = None
    revoked: int | None = None
    parent: str = ""


@dataclass(frozen=True, slots=True)
class ProviderKeyRow:
    """One key of a provider as it is stored; ``user`` is ``""`` for an org's own, ``set_at`` in milliseconds UTC."""

    org: str
    user: str
    id: str
    provider: str
    model: str
    base_url: str
    master: str
    sealed: str
    print: str
    set_at: int

    @property
    def bound(self) -> tuple[str, ...]:
        """Return the fields that the seal covers: a row that was moved or changed does not open."""
        return (self.org, self.user, self.id, self.provider, self.base_url)


@dataclass(frozen=True, slots=True)
class ErasureRow:
    """
    One thing that was erased.

    ``place`` is a digest of who and which conversation it was, ``kind`` says what went: ``user``, ``subject``,
    ``conversation``; in a conversation ``message`` number ``seq``, or the ``words`` between the offsets
    ``spans`` of it; of a user the ``fact`` of that id.
    """

    id: str
    place: str
    kind: str
    at: int
    seq: int = 0
    fact: str = ""
    spans: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class EventLimits:
    """How many events are kept: rows a user, and days."""

    rows: int = 10_000
    days: int = 90
