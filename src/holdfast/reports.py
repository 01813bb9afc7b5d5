"""
The results of calls: what was stored, erased, digested, rebuilt, measured or found broken.

All are frozen values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from datetime import date, datetime
from typing import Any, Literal, get_args

from .errors import BadInput
from .scope import SELF
from .text import dataclass
from .types import ConsentState, ErasureLevel, Fact, FactChange, Hit, Message, ReplyUsage, Subject, Summary


@dataclass(frozen=True, slots=True)
class Receipt:
    """
    ``append`` has the messages on disk.  ``duplicate``: this key had stored them before.

    ``skipped`` is empty, or says why nothing was stored: ``paused``, ``opted-out`` or ``incognito``;
    then there are no ``seqs``.  ``discarded`` counts by kind what was found that must not be
    remembered (``{"card": 1}``); the words themselves are in nothing that was derived.
    """

    seqs: tuple[int, ...]
    changes: tuple[FactChange, ...] = ()
    duplicate: bool = False
    skipped: str = ""
    discarded: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ErasurePreview:
    """
    The effects that an erasure would have, without doing it.

    ``facts`` would go, the one that is to be forgotten and what says the same among them; ``kept`` would stay and lose
    words of their quotes.  ``messages`` are those that would lose words, as they would read then.  ``summaries``
    would be written anew.
    """

    facts: tuple[Fact, ...] = ()
    kept: tuple[Fact, ...] = ()
    messages: tuple[Message, ...] = ()
    summaries: tuple[Summary, ...] = ()


@dataclass(frozen=True, slots=True)
class ErasureReceipt:
    """
    The result of an erasure; true when it is returned.

    ``rows`` counts what was removed, rewritten or made anew, by kind.  ``level`` is ``E2`` when
    everything that rested on it is gone and the bytes of the store were searched and hold no trace
    of it, ``E1`` when the rows are gone and the bytes could not be vouched for (``why`` says why),
    ``E0`` when nothing was deleted.  ``verified_at`` is when the bytes were searched.  ``changes``
    is what an edited message says now.  ``preview`` is set by a dry run, whose level is ``E0``.
    """

    rows: Mapping[str, int]
    level: ErasureLevel
    verified_at: datetime | None = None
    why: str = ""
    changes: tuple[FactChange, ...] = ()
    preview: ErasurePreview | None = None


@dataclass(frozen=True, slots=True)
class SubjectMerge:
    """
    The result of merging one subject into another, or with ``dry_run`` what it would be.

    ``facts`` changed their subject; of them and of those that were there already, ``replaced`` ended because later words
    hold at their address, or the other says the same.  ``conversations`` maps the names of the moved conversations to
    their names there, which differ only where one of that name was there.
    """

    subject: Subject
    facts: tuple[Fact, ...] = ()
    replaced: tuple[Fact, ...] = ()
    conversations: Mapping[str, str] = field(default_factory=dict)
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class DigestReport:
    """
    The result of one ``digest()``.

    ``failed`` counts jobs that will be retried or were put aside, ``waiting`` those that a model may not be asked
    for now: its budget is spent, or it asked to be left alone.
    """

    jobs: int = 0
    summaries: int = 0
    facts: int = 0
    rejected: int = 0
    failed: int = 0
    tokens: int = 0
    changes: tuple[FactChange, ...] = ()
    waiting: int = 0

    def __add__(self, other: DigestReport) -> DigestReport:
        return DigestReport(
            self.jobs + other.jobs,
            self.summaries + other.summaries,
            self.facts + other.facts,
            self.rejected + other.rejected,
            self.failed + other.failed,
            self.tokens + other.tokens,
            self.changes + other.changes,
            self.waiting + other.waiting,
        )


@dataclass(frozen=True, slots=True)
class Event:
    """
    One change, without message text; the audit of a memory is made of these.

    ``id`` counts up within the user without a gap.  ``kind`` is one of ``message.added``, ``message.edited``, ``message.rated``,
    ``message.deleted``; ``fact.added``, ``.waiting`` (for the user, or decided), ``.confirmed``, ``.changed``, ``.replaced``, ``.corrected``, ``.ended`` (taken
    back, archived, merged, not found again) and ``.forgotten``; ``summary.made``, ``.stale``, ``.removed``;
    ``episode.added``, ``.removed``; ``job.queued``, ``.running``, ``.progress``, ``.done``, ``.failed``,
    ``.cancelled``; ``consent.changed``, ``prompt.changed``, ``subject.changed``, ``erased``; ``memory.read`` (see
    `Config.read_log_share`; ``ref`` says what was read and how often: ``context``, ``story``, ``facts 2``); of an org ``key.made``, ``key.revoked``, ``vault.set``, ``vault.removed``.

    ``actor`` is the id of the key that did it, ``local`` for a program that uses the library, ``background`` for work
    without a caller.  ``subject`` and ``conversation`` are ``""`` where it concerns the user as a whole, and
    after the place was erased.  ``ref`` names the thing: the id of a fact, summary, job or key, the number of a message
    (``7``) or the first and the last of several (``7-8``), the range of episodes, the state that was chosen, the name
    of a prompt.
    """

    id: int
    at_ms: int
    kind: str
    actor: str
    org: str
    user: str
    bot: str
    subject: str
    conversation: str
    ref: str

    def concerns(self, subject: str | None, conversation: str | None = None) -> bool:
        """
        Whether it is shown to a viewer of *subject* (``None``: all) and *conversation* (``None``: all).

        Facts about the user reach all of the user's subjects, and so does what happens to the user as a whole.
        """
        if subject is not None and self.subject not in ("", subject):
            if self.subject != SELF or not self.kind.startswith("fact."):
                return False
        return conversation is None or self.conversation in ("", conversation)


UserKey = tuple[str, str, str]
"""(org, user, bot): whose memory."""

UserOrder = Literal["name", "newest", "oldest", "conversations"]
USER_ORDERS: tuple[UserOrder, ...] = get_args(UserOrder)


@dataclass(frozen=True, slots=True)
class News:
    """
    The events of one user after a number.

    ``events`` come oldest first, without gaps, as many as were asked for at most; ``newest`` is the number of the
    newest there is, 0 when there is none.  ``lost``: some after that number were removed from the record, so that
    reading on would leave something out; then there are no ``events``, and everything is to be looked at anew.
    """

    newest: int
    events: tuple[Event, ...] = ()
    lost: bool = False


@dataclass(frozen=True, slots=True)
class PruneReport:
    """The facts that `User.prune` archived, and how many are ``active`` now, of all subjects."""

    archived: tuple[Fact, ...] = ()
    active: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """
    The usage of a model, summed over every part of the key that is empty here.

    ``failed`` calls are among the ``calls``, ``cached_tokens`` among the ``input_tokens``.  ``cost`` is in US
    dollars at the prices of the time; ``None`` when the price of one of the answers (``unpriced``) is not known.
    """

    org: str = ""
    user: str = ""
    bot: str = ""
    day: str = ""
    layer: str = ""
    model: str = ""
    calls: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: float | None = None
    unpriced: int = 0

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class Merged:
    """One memory (``fact``) that was merged of several sentences (``sources``)."""

    fact: Fact
    sources: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class ConsolidationReport:
    """
    The result of `User.consolidate`.

    ``refused`` says, for each text that a model wrote and that was not believed, why; ``tokens`` are those of
    the model's calls.
    """

    merged: tuple[Merged, ...] = ()
    refused: tuple[str, ...] = ()
    tokens: int = 0

    def __add__(self, other: ConsolidationReport) -> ConsolidationReport:
        return ConsolidationReport(self.merged + other.merged, self.refused + other.refused, self.tokens + other.tokens)


@dataclass(frozen=True, slots=True)
class ConversationState:
    """
    How far one conversation has come.

    ``messages`` counts those that were ever stored, ``summarized`` and ``read`` are the numbers of the last message that a
    chunk summary covers and that was read for facts; 0 where none was.  ``own_facts``: what is stated in it are facts of
    its own.  ``stale`` counts the summaries of what has changed since.
    """

    conversation: str
    subject: str
    messages: int
    summarized: int
    read: int
    created_at: datetime
    last_at: datetime
    own_facts: bool = False
    stale: int = 0

    @property
    def waiting(self) -> int:
        """The number of messages that no chunk summary covers yet."""
        return self.messages - self.summarized


@dataclass(frozen=True, slots=True)
class RebuildReport:
    """
    The result of ``rebuild``, or with ``dry_run`` what it would do.

    ``before`` and ``after`` are the summaries or facts that were in the range and that are there now; of a dry
    run ``after`` has the facts alone, and only where no model is asked for them.  ``ranges`` counts what was made again one by one, ``start_seq`` to ``end_seq``
    is what they span.  ``calls`` of a model took ``tokens`` and ``cost`` (``None`` where no price is
    known); in a dry run these are estimates that err upwards.  ``id`` is what ``restore`` takes, empty when
    nothing can be restored.  ``errors`` lists, range by range, what was left unchanged and why.
    """

    layer: str
    before: tuple[Summary | Fact, ...] = ()
    after: tuple[Summary | Fact, ...] = ()
    calls: int = 0
    tokens: int = 0
    cost: float | None = 0.0
    id: str = ""
    start_seq: int = 0
    end_seq: int = 0
    ranges: int = 0
    dry_run: bool = False
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SentItem:
    """
    An item of a context that was sent: a fact, a summary, a message, or the story of all conversations.

    ``text`` is what it says today, ``None`` once it is erased.  ``new``: the context of the reply before had it not.
    """

    kind: Literal["fact", "summary", "message", "story"]
    id: str
    conversation: str
    start_seq: int
    end_seq: int
    text: str | None
    new: bool


@dataclass(frozen=True, slots=True)
class SentSection:
    """
    One section of a context that was sent.

    ``tokens_before`` are those that it took for the reply before, and ``gone`` what it held then and no longer held.
    """

    name: str
    tokens: int
    stable: bool
    items: tuple[SentItem, ...]
    tokens_before: int | None
    gone: tuple[SentItem, ...]


@dataclass(frozen=True, slots=True)
class SentContext:
    """
    The context that was sent for one reply, and its difference to that of the reply before, ``previous_seq``.

    Sizes and references are kept, no text: what is erased later has none here either.  ``tokens`` are without the
    caller's own system text.  ``prefix_changed_because`` is ``None`` where the stable part was the same as for the reply
    before.  ``usage`` is what the provider reported, if it was recorded; ``recalled`` facts and passages that answer the
    question were shown, of which the reply took up about ``used``.
    """

    seq: int
    at: datetime
    strategy: str
    tokens: int
    budget_tokens: int
    prefix: str
    prefix_changed_because: str | None
    sections: tuple[SentSection, ...]
    recalled: int
    used: int
    usage: ReplyUsage | None = None
    previous_seq: int | None = None


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """
    One past rebuild of a conversation: which layer and range, its author, and how many rows it replaced and added.

    ``reverts`` is the id of the rebuild that this one reverted, and empty otherwise.
    """

    id: str
    layer: str
    start_seq: int
    end_seq: int
    at: datetime
    source: str
    replaced: int
    added: int
    reverts: str = ""


@dataclass(frozen=True, slots=True)
class BackfillReport:
    """
    The result of ``backfill``, counted in ranges of messages, once per layer.

    ``processed`` were looked at, of which ``created`` were made, ``skipped`` had what was looked for and ``errors`` failed;
    ``reasons`` says why, by conversation and range.  ``left`` were not looked at as the limit was reached.
    """

    processed: int = 0
    created: int = 0
    skipped: int = 0
    errors: int = 0
    left: int = 0
    calls: int = 0
    tokens: int = 0
    cost: float | None = 0.0
    reasons: tuple[str, ...] = ()
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """
    The erased things that a copy still held, and that are erased again unless it was a dry run.

    ``held`` counts it by kind (``user``, ``subject``, ``conversation``, ``message``, ``fact``), of so many ``users``;
    ``choices`` are those to pause or opt out that did not hold here; the ledger has so many ``entries``.
    """

    users: int = 0
    held: Mapping[str, int] = field(default_factory=dict)
    choices: int = 0
    entries: int = 0
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken invariant: which rule, where (ids only), and what to do."""

    rule: str
    where: str
    hint: str


@dataclass(frozen=True, slots=True)
class BackupReport:
    """
    A backup that was looked at or put back.

    It holds so many ``users`` and is ``sound``, or breaks the rules in ``findings``.  ``replayed`` has an entry
    for each ledger: what of it was still there.  After a restore ``path`` is its place now, ``replaced`` the
    file that was there before.  ``rows`` counts them by table; they and a SHA-256 of each table are compared with what
    was noted in the file when it was made, at ``made_at`` (``None``: nothing was noted, by an older version).
    """

    backup: str
    users: int
    sound: bool
    findings: tuple[Finding, ...] = ()
    replayed: tuple[ReplayReport, ...] = ()
    path: str = ""
    replaced: str = ""
    rows: Mapping[str, int] = field(default_factory=dict)
    made_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """
    The findings of ``doctor``; ``checked`` names every rule that was checked.

    ``findings`` break a promise; ``notices`` do not, but an operator should know them.  ``database`` says what the
    database is: its version, its schema, and on a server the role and how rows are guarded.
    """

    ok: bool
    findings: tuple[Finding, ...]
    checked: tuple[str, ...] = ()
    notices: tuple[Finding, ...] = ()
    database: Mapping[str, str] = field(default_factory=dict)


OperationState = Literal["ready", "running", "done", "failed", "cancelled", "interrupted"]


@dataclass(frozen=True, slots=True)
class PromptSample:
    """
    The result of a prompt for messages ``start_seq`` to ``end_seq``: ``new``, beside the stored ``old`` by ``source``.

    ``gained`` and ``lost`` are facts, for the prompt that reads them.  ``error`` says why there is no answer.
    """

    subject: str
    conversation: str
    start_seq: int
    end_seq: int
    old: str = ""
    source: str = ""
    new: str = ""
    gained: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    calls: int = 0
    tokens: int = 0
    cost: float | None = 0.0
    error: str = ""


@dataclass(frozen=True, slots=True)
class PromptPreview:
    """
    A prompt tried on saved chunks: nothing was written but what the calls cost.

    With ``dry_run`` nothing was asked, and ``calls``, ``tokens`` and ``cost`` are estimates that err upwards.  ``cost``
    is ``None`` where no price is known.
    """

    name: str
    digest: str
    model: str
    samples: tuple[PromptSample, ...]
    calls: int = 0
    tokens: int = 0
    cost: float | None = 0.0
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class AskedAgain:
    """A question of the assistant to ``user`` (of ``org`` and ``bot``) whose answer, ``fact``, was believed before it was asked."""

    subject: str
    conversation: str
    seq: int
    question: str
    at: datetime | None
    fact: Fact
    org: str = "default"
    user: str = ""
    bot: str = "default"


@dataclass(frozen=True, slots=True)
class Measure:
    """
    One figure, with what it was counted from.

    ``value`` is ``None`` when nothing was recorded to count; ``not_measured`` says why.  ``n`` is how many cases it
    rests on; ``heuristic`` marks a figure that goes by words and errs.
    """

    name: str
    value: float | None
    unit: str
    numerator: float
    denominator: float
    n: int
    definition: str
    heuristic: bool = False
    not_measured: str = ""


@dataclass(frozen=True, slots=True)
class Metrics:
    """
    The measures of some users and days; ``left_out`` users were not counted, as there were too many.

    ``asked_again`` lists the repeated questions, at most 200 of them.
    """

    measures: tuple[Measure, ...]
    asked_again: tuple[AskedAgain, ...] = ()
    users: int = 0
    left_out: int = 0

    def measure(self, name: str) -> Measure:
        """
        Return the measure called *name*.

        Raises:
            KeyError: there is none.
        """
        for one in self.measures:
            if one.name == name:
                return one
        raise KeyError(name)


@dataclass(frozen=True, slots=True)
class StoreStats:
    """A store's ``place`` (without a password), its ``bytes``, its ``schema`` version, its ``rows`` by kind."""

    place: str
    bytes: int
    schema: str
    rows: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Backlog:
    """
    Jobs of one ``kind`` in one ``state``, counted across users.

    Of ``jobs`` so many are ``due``: waiting for a worker.  So many are ``overdue``: ready for more than
    five minutes.  The oldest has been due for ``oldest_due_ms``; ``None`` when none is.
    """

    kind: str
    state: str
    jobs: int
    due: int
    overdue: int
    oldest_due_ms: int | None


@dataclass(frozen=True, slots=True)
class FoundAcross:
    """
    Facts and conversations that contain some words, of the users that were searched.

    ``facts`` are owners and ids of facts, ``conversations`` owners, subjects and names; ``after`` is the user behind whom
    the next look begins, ``None`` when all were looked through.
    """

    facts: tuple[tuple[UserKey, str], ...]
    conversations: tuple[tuple[UserKey, str, str], ...]
    after: UserKey | None


@dataclass(frozen=True, slots=True)
class Activity:
    """
    Changes of one ``kind`` on one ``day`` (UTC), counted across the users of one ``org`` and ``bot``.

    ``kind`` is that of an `Event`, or ``context.reused`` and ``context.changed``: replies whose context began with the same stable
    part as that of the reply before, or with another one.  ``count`` is how many there were, of ``message.added`` the messages, and ``users`` how many
    users they concern.
    """

    day: date
    org: str
    bot: str
    kind: str
    count: int
    users: int


@dataclass(frozen=True, slots=True)
class Ranked:
    """
    One candidate of a search, with why it would be recalled or not.

    The parts of its score in four groups, which sum to it: ``words`` and ``meaning`` of the text itself, ``time``
    (days that are named, newest first), and ``around`` (neighbors, speaker, prior and the rest).
    """

    rank: int
    hit: Hit
    words: float
    meaning: float
    time: float
    around: float
    kept: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Explained:
    """
    How a question would be answered from memory, as `User.explain` found it.

    ``threshold`` is the relevance that the best hit needs for anything to be recalled (other facts need half of it, turns
    a tenth), ``limit`` how many may be.  ``past`` are facts that held at ``at`` and do not any more: they are not in the
    index, so they are not ranked.  ``state`` is what the user chose; nothing is found unless it is ``active``.
    """

    query: str
    at: datetime
    threshold: float
    limit: int
    ranked: tuple[Ranked, ...]
    past: tuple[Fact, ...] = ()
    state: ConsentState = "active"


@dataclass(frozen=True, slots=True)
class RecallCase:
    """
    A question of a user and what it should find: a message by conversation and number, or a fact by words that it contains.

    A file of them, one JSON object a line, is a suite: the recall lab writes the lines, and ``holdfast bench suite`` runs them.
    """

    question: str
    user: str
    org: str = "default"
    bot: str = "default"
    conversation: str = ""
    seq: int = 0
    fact: str = ""

    @classmethod
    def parse(cls, line: str) -> RecallCase:
        """
        Read one line of a suite.

        Raises:
            BadInput: it is no case.
        """
        hint = 'write {"user": …, "question": …, "conversation": …, "seq": …}, or "fact": … in place of the last two'
        try:
            found = cls(**json.loads(line))
        except (ValueError, TypeError):
            raise BadInput("this line is no case", hint=hint) from None
        texts = (found.question, found.user, found.org, found.bot, found.conversation, found.fact)
        wanted = bool(found.fact) != bool(found.conversation and found.seq)
        if not all(isinstance(text, str) for text in texts) or not isinstance(found.seq, int) or not wanted:
            raise BadInput("this line is no case", hint=hint)
        return found

    @property
    def line(self) -> str:
        """The case as a line of a suite."""
        usual = {"org": "default", "bot": "default", "conversation": "", "seq": 0, "fact": ""}
        every = {name: getattr(self, name) for name in ("user", "question", *usual)}
        return json.dumps(
            {name: value for name, value in every.items() if value != usual.get(name)}, ensure_ascii=False
        )

    @property
    def wanted(self) -> str:
        """Say in words which fact or message should be found."""
        return f"fact: {self.fact}" if self.fact else f"message {self.seq} of {self.conversation}"

    def find(self, found: Explained) -> Ranked | None:
        """Return the first of the ranked hits that is what should be found."""
        words = self.fact.casefold()
        for one in found.ranked:
            hit = one.hit
            if hit.kind == "fact" and words and words in hit.text.casefold():
                return one
            if hit.kind == "message" and (hit.conversation, hit.seq) == (self.conversation, self.seq):
                return one
        return None


@dataclass(frozen=True, slots=True)
class Operation:
    """
    Long work that a request started; a name is ``""`` where it concerns all of its kind.

    ``done`` of ``total`` parts, 0 while unknown.  ``report`` has figures and ids.  ``once`` and ``asked`` are digests
    of the caller's idempotency key and of what was asked for.  ``seen_ms``: when whoever works on it last said so.
    """

    org: str
    user: str
    bot: str
    subject: str
    conversation: str
    id: str
    kind: str
    state: OperationState
    done: int
    total: int
    code: str
    reason: str
    report: Mapping[str, Any] | None
    once: str
    asked: str
    stop: bool
    created_ms: int
    seen_ms: int
    ended_ms: int | None = None


@dataclass(frozen=True, slots=True)
class MessageCount:
    """How many ``messages`` the key of this id stored in a ``period`` (``2026-03-14``, ``2026-03``); ``""``: all keys."""

    key: str
    period: str
    messages: int
