"""
The values that pass between the stages and out of the front door.

All are frozen.  Times are aware ``datetime`` values at the front door and integer milliseconds
UTC below it (names that end in ``_ms``).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime, time, timedelta
from typing import Any, Literal, NoReturn, Protocol, get_args

from .errors import ConfigError
from .text import dataclass, expression

FactKind = Literal["attribute", "statement", "episode"]
Cardinality = Literal["exclusive", "single", "multi"]
Lifetime = Literal["permanent", "state", "event", "transient"]
Modality = Literal["asserted", "negated", "hypothetical", "reported", "question"]
ChangeOp = Literal["new", "confirmed", "replaced", "joined", "retracted", "rejected"]
HitKind = Literal["fact", "message", "summary"]
ConsentState = Literal["active", "paused", "opted-out"]
ErasureLevel = Literal["E0", "E1", "E2"]
Label = Literal["preference", "context", "identity", "history", "technical", "behavioral"]
Role = Literal["operator", "app", "user", "subject"]

HIT_KINDS: tuple[HitKind, ...] = ("fact", "message", "summary")
LABELS: tuple[Label, ...] = get_args(Label)
_LABELED: Mapping[Label, str] = {
    "preference": "favorite dietary food",
    "identity": "language home work education family pets contact",
    "history": "life",
    "technical": "tech",
    "behavioral": "communication schedule hobby",
}
_LABEL_OF = {category: label for label, names in _LABELED.items() for category in (label, *names.split())}
# The conversation that keeps the words of facts written by hand, and the source of those facts.
BY_HAND_CONVERSATION = "(by hand)"
BY_HAND_SOURCE = "by hand"


@dataclass(frozen=True, slots=True)
class ReplyUsage:
    """The tokens of one reply as its provider reported them; the cached ones are part of the input."""

    model: str
    input_tokens: int
    output_tokens: int = 0
    cached_tokens: int = 0

    @property
    def meta(self) -> dict[str, Any]:
        """The part of it that the reply's ``meta`` holds."""
        return {"usage": {name: getattr(self, name) for name in _USAGE}}


_USAGE = ("model", "input_tokens", "output_tokens", "cached_tokens")


@dataclass(frozen=True, slots=True)
class Message:
    """
    One verbatim message.

    ``role`` is ``user``, ``assistant``, ``system`` or ``tool``.  ``meta`` holds what else the
    caller gave and JSON can hold: ``tool_calls`` and ``tool_call_id`` among it, in OpenAI's shape.
    ``seq`` counts from 1 within the conversation; ``seq``, ``conversation`` and ``tokens`` are set
    by the store and ignored on the way in.
    """

    role: str
    content: str
    name: str | None = None
    at: datetime | None = None
    seq: int = 0
    conversation: str = ""
    tokens: int = 0
    meta: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def human(cls, content: str, *, name: str | None = None, at: datetime | None = None) -> Message:
        """Make a message of the user."""
        return cls("user", content, name=name, at=at)

    @classmethod
    def ai(cls, content: str, *, name: str | None = None, at: datetime | None = None) -> Message:
        """Make a message of the assistant."""
        return cls("assistant", content, name=name, at=at)

    @classmethod
    def system(cls, content: str, *, name: str | None = None, at: datetime | None = None) -> Message:
        """Make a message of the system."""
        return cls("system", content, name=name, at=at)

    @property
    def speaker(self) -> str:
        """Return the speaker: the name where there is one, the role otherwise."""
        return self.name or self.role

    @property
    def usage(self) -> ReplyUsage | None:
        """The tokens that the reply used, the cached ones among them, where they were recorded with it."""
        held = self.meta.get("usage")
        if not isinstance(held, Mapping) or not isinstance(held.get("model"), str):
            return None
        counts = [held.get(name) for name in _USAGE[1:]]
        whole = [count for count in counts if isinstance(count, int)]
        return ReplyUsage(held["model"], *whole) if len(whole) == len(counts) else None


@dataclass(frozen=True, slots=True)
class Evidence:
    """
    The words a fact rests on: ``quote == message.content[start:end]``, always.

    ``home`` is the subject of the conversation that holds the message; it may differ from the
    subject of the fact.
    """

    conversation: str
    seq: int
    role: str
    quote: str
    start: int
    end: int
    at: datetime | None = None
    home: str = "self"


_ALSO_CALLED = expression(r" \(also called: ([^()]+)\)$")


def with_aliases(text: str, aliases: Sequence[str]) -> str:
    """Return the words of a fact that is remembered under other names, too; `aliases_in` reads them."""
    return f"{text} (also called: {'; '.join(aliases)})" if aliases else text


def aliases_in(quote: str) -> tuple[str, ...]:
    """Return the other names that `with_aliases` wrote behind *quote*."""
    found = _ALSO_CALLED.search(quote)
    return tuple(found[1].split("; ")) if found else ()


def without_aliases(quote: str) -> str:
    """Return *quote* without the other names that `with_aliases` wrote behind it."""
    return _ALSO_CALLED.sub("", quote)


@dataclass(frozen=True, slots=True)
class Fact:
    """
    Something believed about a subject.

    ``category``, ``key`` and ``value`` address an attribute; ``text`` says the same as one
    sentence and is what search reads.  ``valid_from``/``valid_to`` bound when it held, ``recorded_at``
    is when it was learned; a live fact has no ``valid_to``, but ``until`` where its end lies ahead ("until Friday").  ``evidence`` lists every message that
    stated it, oldest first.  ``source`` is ``"rules 1"`` or a model with the digest of its prompt.
    ``ended_because`` is empty for a live fact, else ``replaced``, ``retracted``, ``expired``,
    ``never_true``, ``archived`` (because there were too many), ``merged`` (one sentence with
    others, which ``superseded_by`` names), ``unmerged`` (such a sentence, taken apart again) or
    ``rebuilt`` (a later reading of the same words did not find it).
    ``only_in`` names the conversation that it belongs to, where facts are the conversation's own; empty for the user's.
    ``strength`` is as of now: 1 when it is learned, one more for each use, and half of it with each half-life since.
    ``start_seq`` to ``end_seq`` of ``conversation`` are the first and the last message that it rests on there (in the first
    conversation that states it, unless another one was asked for); 0 when it was only written by hand.  ``importance``, from 0
    to 1, says which events and sentences come first where room is short.  ``label`` is one of six broad words
    (``preference``, ``context``, ``identity``, ``history``, ``technical``, ``behavioral``): as a model or a person gave
    it, else that of the category.
    """

    id: str
    kind: FactKind
    subject: str
    category: str
    key: str
    value: str
    text: str
    confidence: float
    cardinality: Cardinality
    lifetime: Lifetime
    valid_from: datetime
    valid_to: datetime | None
    recorded_at: datetime
    superseded_by: str | None
    evidence: tuple[Evidence, ...]
    strength: float
    last_used_at: datetime | None
    uses: int
    source: str
    ended_because: str = ""
    conversation: str = ""
    start_seq: int = 0
    end_seq: int = 0
    importance: float = 0.5
    only_in: str = ""
    label: str = ""
    until: datetime | None = None

    def __post_init__(self) -> None:
        if not self.label:
            object.__setattr__(self, "label", label_of(self.kind, self.category))
        if self.conversation:
            return
        said = next((e for e in self.evidence if e.conversation != BY_HAND_CONVERSATION), None)
        if said is not None:
            _set_range(self, said.conversation, said.home)

    def within(
        self,
        conversations: Collection[str],
        start_seq: int = 1,
        end_seq: int = sys.maxsize,
        home: str | None = None,
    ) -> Fact | None:
        """Return the fact with its range in the first of *conversations* that states it in these messages; ``None``: none does."""
        for said in self.evidence:
            here = said.conversation in conversations and home in (None, said.home)
            if here and start_seq <= said.seq <= end_seq:
                fact = replace(self)
                _set_range(fact, said.conversation, said.home)
                return fact
        return None

    def __repr__(self) -> str:
        whom = "" if self.subject == "self" else f"{self.subject}: "
        ended = f", {self.ended_because.replace('_', ' ')}" if self.ended_because else ""
        return f"<Fact {_brief(self.text)} ({whom}{'/'.join(filter(None, (self.category, self.key)))}{ended})>"

    @property
    def live(self) -> bool:
        """Whether it is believed now."""
        return self.valid_to is None

    @property
    def dated(self) -> tuple[Literal["since", "as of", "on"], str]:
        """
        Say how its day is to be read, and the day, month, or year (ISO).

        ``since`` where the user named the time, which then begins at midnight ("since 2020": the first of a month or
        year stands for all of it); ``on`` for an event and the result of a test; ``as of`` the day on which a state was told.
        """
        day = self.valid_from.date().isoformat()
        result = self.category == "health" and self.value[:1].isdecimal() and self.key not in ("weight", "height")
        if self.kind == "episode" or self.lifetime == "event" or (result and self.valid_from.time() == time.min):
            return "on", day
        if self.valid_from.time() != time.min:
            return "as of", day
        return "since", day.removesuffix("-01").removesuffix("-01")

    @property
    def last_day(self) -> datetime | None:
        """A time on the last day on which it is believed; ``None`` for what holds until something else is said."""
        return self.until - timedelta(milliseconds=1) if self.until is not None and self.live else None

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other names under which questions find it, as they were given with its words."""
        return tuple(dict.fromkeys(name for said in self.evidence for name in aliases_in(said.quote)))

    @property
    def confirmations(self) -> int:
        """The number of further messages in which the user said it again."""
        return max(0, len({(e.conversation, e.seq) for e in self.evidence}) - 1)

    @property
    def version(self) -> str:
        """A digest that changes with what users see of the fact, not with how often it is used; see ``if_version``."""
        ended = None if self.valid_to is None else self.valid_to.isoformat()
        ended = self.until.isoformat() if ended is None and self.until is not None else ended
        quotes = [(e.conversation, e.seq, e.start) for e in self.evidence]
        seen = [self.id, self.value, self.text, ended, self.ended_because, self.superseded_by, quotes, self.importance]
        return hashlib.sha256(json.dumps(seen).encode()).hexdigest()[:16]


def _brief(text: str) -> str:
    """Return the text in quotes, cut to a length that a line can hold."""
    return repr(text if len(text) <= 80 else text[:79] + "…")


def label_of(kind: FactKind, category: str) -> Label:
    """Return the broad label of a fact by its category; an event is history, and what is of no known kind is context."""
    return "history" if kind == "episode" else _LABEL_OF.get(category, "context")


def _set_range(fact: Fact, conversation: str, home: str) -> None:
    """Set the range of a fact that is being made to the messages of one conversation that it rests on."""
    seqs = [e.seq for e in fact.evidence if (e.conversation, e.home) == (conversation, home)]
    for name, value in (("conversation", conversation), ("start_seq", min(seqs)), ("end_seq", max(seqs))):
        object.__setattr__(fact, name, value)


@dataclass(frozen=True, slots=True)
class Subject:
    """
    A person, an animal or a thing that a user speaks of: a pet, a child, a patient, a project, a friend.

    ``name`` is what is shown, ``aliases`` are the other names that mean it, those that the user introduced among them
    ("my sister Meera").  ``facts`` and ``conversations`` count the active facts and the conversations about it.
    """

    id: str
    name: str
    aliases: tuple[str, ...] = ()
    facts: int = 0
    conversations: int = 0


@dataclass(frozen=True, slots=True)
class Candidate:
    """
    A claim of an extractor (rules or a model), before it becomes a fact.

    ``op`` is ``assert`` or ``retract`` (the value, or whatever the address holds when the value is
    empty, no longer holds).  ``join`` overrides the registry for an unknown category: ``replace``
    or ``add``.  ``quote`` must occur verbatim in message ``seq`` at ``start``; grounding checks it.
    ``valid_from_ms``/``valid_to_ms`` are set when the words themselves name a time.
    """

    kind: FactKind
    subject: str
    category: str
    key: str
    value: str
    text: str
    confidence: float
    seq: int
    quote: str
    start: int
    op: Literal["assert", "retract"] = "assert"
    join: Literal["replace", "add", ""] = ""
    modality: Modality = "asserted"
    lifetime: Lifetime = "state"
    valid_from_ms: int | None = None
    valid_to_ms: int | None = None
    source: str = ""
    importance: float = 0.5
    label: str = ""


@dataclass(frozen=True, slots=True)
class Rejected:
    """
    A candidate that was not believed, with the reason; kept so that users can ask why, or decide.

    ``home`` is the subject of its conversation; `User.review` takes the ``id``.
    """

    candidate: Candidate
    reason: str
    conversation: str = ""
    at: datetime | None = None
    id: str = ""
    home: str = ""

    @property
    def waiting(self) -> bool:
        """Whether the user has still to decide."""
        return self.reason == WAITING


# Why candidates are not believed that were held back for the user, and what `User.review` can do with them.
WAITING = "waiting: the user has not decided yet"
DISMISSED = "dismissed: the user does not want it remembered"
ACCEPTED = "accepted:"  # with the ids of the facts that it made or ended
ReviewChoice = Literal["accept", "dismiss", "wait"]


@dataclass(frozen=True, slots=True)
class FactChange:
    """The effect of one statement: ``previous`` is the value it replaced, ``reason`` why it was rejected."""

    op: ChangeOp
    fact: Fact | None
    previous: Fact | None = None
    reason: str = ""

    def __repr__(self) -> str:
        now = f" {_brief(self.fact.text)}" if self.fact else ""
        was = f", was {_brief(self.previous.text)}" if self.previous else ""
        return f"<FactChange {self.op}{now}{was}{self.reason and ': ' + self.reason}>"


@dataclass(frozen=True, slots=True)
class Summary:
    """
    The story of messages ``start_seq`` to ``end_seq``, both included.

    Level 1 covers one chunk of messages, level n+1 covers ``children`` of level n.  ``exchanges``
    counts the turns inside, ``block`` is the summary's place in its level (from 0), ``version``
    counts how often this range was summarized.  ``stale`` says that a source has changed since.
    ``first_at`` and ``last_at`` are the times of its first and its last message.
    """

    id: str
    level: int
    start_seq: int
    end_seq: int
    exchanges: int
    text: str
    themes: tuple[str, ...]
    concerns: tuple[str, ...]
    actions: tuple[str, ...]
    block: int
    version: int
    children: tuple[str, ...]
    created_at: datetime
    source: str
    stale: bool = False
    conversation: str = ""
    parent: str | None = None
    first_at: datetime | None = None
    last_at: datetime | None = None

    @property
    def days(self) -> str:
        """The days of its first and its last message, one when they are the same; empty when they are unknown."""
        return " to ".join(dict.fromkeys(at.date().isoformat() for at in (self.first_at, self.last_at) if at))


@dataclass(frozen=True, slots=True)
class StorySource:
    """A summary that a line of a story rests on: its id (empty where no summary covers the messages yet), its conversation, and its range of messages."""

    summary: str
    conversation: str
    start_seq: int
    end_seq: int


@dataclass(frozen=True, slots=True)
class StoryLine:
    """One line of a story, with the times of the first and last message it covers, and the summaries that it rests on."""

    text: str
    first_at: datetime | None
    last_at: datetime | None
    sources: tuple[StorySource, ...]

    @property
    def dated(self) -> str:
        """The text after its days."""
        days = " to ".join(dict.fromkeys(at.date().isoformat() for at in (self.first_at, self.last_at) if at))
        return self.text if not days or self.text.startswith(f"[{days}]") else f"{days}: {self.text}"


@dataclass(frozen=True, slots=True)
class Story:
    """
    The summary of a subject across all its conversations, above their own summaries: what a new conversation begins with.

    ``lines`` are in the order of time; there are none, and ``version`` is 0, before it is made.  ``version`` counts how often it was made, ``source`` says who wrote it.
    """

    id: str
    subject: str
    lines: tuple[StoryLine, ...] = ()
    version: int = 0
    source: str = ""
    created_at: datetime | None = None

    @property
    def text(self) -> str:
        """All lines with their days."""
        return "\n".join(line.dated for line in self.lines)


@dataclass(frozen=True, slots=True)
class RollingSummary:
    """
    One text that summarizes the first ``through`` messages of a conversation.

    ``source`` says who wrote it.  ``parts`` is what the built-in summariser needs to go on from
    here, as JSON can hold it; a summariser of the caller's own has only the text.
    """

    text: str = ""
    through: int = 0
    source: str = ""
    parts: tuple[Mapping[str, Any], ...] = ()


TurnKey = tuple[str, str, int]
"""A message by the subject and the name of its conversation, and its number in it."""


@dataclass(frozen=True, slots=True)
class Hit:
    """
    One search result.

    ``relevance`` says from 0 to 1 how surely it bears on the question, and means the same in every
    memory; that of a turn does not always fall with its rank.  ``score`` orders the hits of one search.
    ``parts`` holds the components whose sum, added in their order, is ``score``, when asked for.
    ``subject`` is whom or what a fact, or the conversation of a message or summary, is about.
    ``replaced_by`` says of a message that stated what is not believed any more what is now.
    """

    kind: HitKind
    id: str
    text: str
    score: float
    at: datetime | None
    conversation: str
    seq: int
    parts: Mapping[str, float] = field(default_factory=dict)
    speaker: str = ""
    subject: str = ""
    replaced_by: str = ""
    relevance: float = 0.0

    def __repr__(self) -> str:
        where = f" (message {self.seq} of {self.conversation})" if self.kind == "message" else ""
        return f"<Hit {self.kind} {_brief(self.text)}{where}, relevance {self.relevance:.2f}>"


@dataclass(frozen=True, slots=True)
class Section:
    """
    One part of a context.

    ``items`` are the rendered lines (or messages) in order; ``stable`` says that it is above
    the cache breakpoint.
    """

    name: str
    text: str
    tokens: int
    stable: bool
    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Consent:
    """
    The choice of a user about memory.

    ``state`` is ``active``, ``paused`` (what exists is kept and not used, nothing is written) or
    ``opted-out``, since ``since``.  ``never`` lists topics that are not to be remembered.
    """

    state: ConsentState = "active"
    since: datetime | None = None
    never: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a model, in US dollars per million tokens; ``cached`` input costs like other input unless given."""

    input: float
    output: float
    cached: float | None = None

    def of(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> float:
        """Return the price of tokens in US dollars; the cached ones are part of the input."""
        again = self.input if self.cached is None else self.cached
        fresh = max(0, input_tokens - cached_tokens)
        return (fresh * self.input + cached_tokens * again + output_tokens * self.output) / 1e6


@dataclass(frozen=True, slots=True)
class Budget:
    """A limit of what models use on one day (UTC): tokens of input and output together, US dollars, or both."""

    tokens_per_day: int | None = None
    usd_per_day: float | None = None


@dataclass(frozen=True, slots=True)
class PromptVersion:
    """
    One version of a user's own prompt; of those that are no ``draft`` the newest is used.

    A draft of fewer than 100 ``percent`` is used for so many of 100 users of its org or bot (`Prompts.activate`).
    ``text`` is empty where they went back to the words that come with the library.  ``digest`` is part of the
    ``source`` of what it wrote.
    """

    name: str
    version: int
    text: str
    since: datetime
    digest: str
    draft: bool = False
    percent: int = 100


@dataclass(frozen=True, slots=True)
class ApiKey:
    """
    A key that opens the server, without the key itself.

    ``user`` and ``subject`` are set where the role names a user, ``bot`` where it opens one assistant's memory only.
    """

    id: str
    role: Role
    org: str
    user: str | None
    bot: str | None
    subject: str | None
    name: str
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key in full, which is shown once, and what is known of it."""

    key: str = field(repr=False)
    about: ApiKey


class Detector(Protocol):
    """
    Finds what must not be remembered.

    ``kind`` is a word for users: it appears in ``[… removed]`` and in ``Receipt.discarded``.
    """

    @property
    def kind(self) -> str:
        """The kind of thing that it finds, in one word."""

    def find(self, text: str) -> Iterable[tuple[int, int]]:
        """Yield the ``(start, end)`` of each, in characters, end excluded."""


@dataclass(frozen=True, slots=True)
class PatternDetector:
    """
    A `Detector` that finds what a regular expression matches.

        Config(detectors=(PatternDetector("case number", r"CASE-[0-9]{6}"),))
    """

    kind: str
    pattern: str

    def __post_init__(self) -> None:
        try:
            found = re.compile(self.pattern).search("")
        except (re.error, TypeError) as error:
            raise ConfigError(f"the pattern of {self.kind!r} is no regular expression: {error}") from None
        if found is not None:
            raise ConfigError(f"the pattern of {self.kind!r} matches an empty text", hint="it would match everywhere")
        if not isinstance(self.kind, str) or not self.kind.strip():
            raise ConfigError("a detector needs a kind", hint='kind = "case number"')

    def find(self, text: str) -> Iterable[tuple[int, int]]:
        """Yield the start and the end of each match."""
        return (match.span() for match in re.finditer(self.pattern, text) if match.end() > match.start())


@dataclass(frozen=True, slots=True)
class Job:
    """
    One standing piece of background work.

    ``key`` is unique within the user: ``kind`` and the lane it keeps in order.  ``state`` is
    ``ready``, ``waiting`` (its model may not be asked now), ``running``, ``dead`` or ``cancelled``; finished work
    leaves no row.  ``wanted`` is how far the work should reach (a message number); it rises while the job waits or
    runs.  ``fence`` rises with each claim: a worker whose fence is old can write nothing.
    """

    org: str
    user: str
    bot: str
    id: str
    kind: str
    key: str
    subject: str
    conversation: str
    state: str
    wanted: int
    attempt: int
    fence: int
    run_at_ms: int
    lease_until_ms: int
    worker: str
    reason: str
    created_at_ms: int


HIDDEN = "Secret('…')"


class Secret:
    """
    A key or a password.  Whatever prints, formats, logs or copies it shows that there is one, and not which.

    Only `reveal` gives it, where it is sent.
    """

    __slots__ = ("__value",)
    __hash__ = None  # type: ignore[assignment]  # no table is keyed by it

    def __init__(self, value: str) -> None:
        self.__value = value

    def reveal(self) -> str:
        """Return the value itself."""
        return self.__value

    def __repr__(self) -> str:
        return HIDDEN

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return HIDDEN

    def __bool__(self) -> bool:
        return bool(self.__value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self.__value.encode(), other.__value.encode())

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a secret is not written down")


@dataclass(frozen=True, slots=True)
class ProviderKey:
    """
    A provider's key that a user or an org brought, without the key itself, which is never returned.

    ``user`` is ``None`` for the org's own.  ``fingerprint`` are four characters by which its owner knows it; they are
    not of the key.  ``in_use``: it is the one that its owner set last.  ``opens``: this process has its master key.
    """

    id: str
    org: str
    user: str | None
    provider: str
    model: str
    base_url: str
    fingerprint: str
    set_at: datetime
    in_use: bool
    opens: bool

    @property
    def name(self) -> str:
        """Provider and model, as rows and usage name them: ``openai:gpt-5-mini``."""
        return f"{self.provider}:{self.model}"


@dataclass(frozen=True, slots=True)
class Upstream:
    """
    The model to ask for a user or an org, with its key and the one address that the key may be sent to.

    ``whose``: ``user`` or ``org``.  `holdfast.llm.guarded_http.upstream_client` sends to it.
    """

    provider: str
    model: str
    base_url: str
    key: Secret
    whose: str
    id: str
