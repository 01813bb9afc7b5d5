"""
One user's memory as of one moment, in terms of named queries.

A view runs queries through a `Driver` and knows nothing else of the database.  Whatever it asks
carries the user's key as bound parameters, so it cannot reach anybody else's rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from ..errors import BadInput
from ..reports import Event, News
from ..scope import SELF, Scope
from ..types import (
    BY_HAND_CONVERSATION,
    LABELS,
    ConsentState,
    Evidence,
    Job,
    Message,
    Rejected,
    Story,
    Summary,
    TurnKey,
)
from . import rows
from .port import Driver, Row
from .segments import SEALED, Segment, decode, pack_columns
from .values import (
    COLUMNS,
    END_OF_NAMES,
    OF_USER,
    SEPARATOR,
    ConsentRow,
    ContextStatsRow,
    ConversationRow,
    Derivation,
    DocRow,
    EpisodeRangeRow,
    FactOwner,
    FactRow,
    ItemRow,
    MessageRow,
    Partition,
    PromptRow,
    RebuildRow,
    SubjectRow,
    SummaryRow,
    UsageRow,
    UseRow,
    UserRow,
)

EVERYTHING = 2**62
SPEAKERS_WITHIN = 200
"""Who takes part in a conversation has said something within so many messages."""
"""A limit, or the number of a last message, that no conversation reaches."""

RejectedPosition = tuple[int, str, str, int, str]
"""The place of a rejected candidate in the list: time, conversation, subject, message, id."""

_NEWEST: RejectedPosition = (EVERYTHING, "", "", 0, "")
# A user chooses for everything (subject ``""``) and may choose more strictly for one subject.
_STRICTNESS: tuple[ConsentState, ...] = ("active", "paused", "opted-out")


def effective_consent(chosen: Iterable[ConsentRow], subject: str | None) -> ConsentState:
    """
    Return the strictest state that was chosen for *subject*; ``None`` means the user as a whole.

    Only what was chosen for all subjects and for this very one counts.
    """
    mine = {row.state for row in chosen if row.subject in ("", subject)}
    return max((state for state in _STRICTNESS if state in mine), key=_STRICTNESS.index, default="active")


class ReadView:
    """One user's memory as of one moment.  Lists come oldest first unless said otherwise."""

    def __init__(self, driver: Driver, scope: Scope, owner: FactOwner | None = None) -> None:
        self.scope = scope
        self._owner = owner
        self._driver = driver
        self._past: dict[str, FactRow] = {}
        self._head = (scope.org, scope.user, scope.bot)
        self._key = {
            "org": scope.org,
            "user_id": scope.user,
            "bot": scope.bot,
            "subject": scope.subject,
            "conversation": scope.conversation,
        }

    def _run(self, name: str, /, **args: Any) -> list[Row]:
        return self._driver.run(name, self._key | args)

    def _place(self) -> tuple[str, str]:
        """
        Return the subject and the name of the scope's conversation.

        Raises:
            BadInput: the scope is of a user, or of all subjects; one conversation is needed.
        """
        if self.scope.conversation is None or self.scope.subject is None:
            raise BadInput("this call needs a conversation; its scope names none", hint="use scope.within(...)")
        return self.scope.subject, self.scope.conversation

    def user(self) -> UserRow:
        """Return the counters; zeros for a user without a memory."""
        found = self._run("user")
        return UserRow(*found[0]) if found else UserRow()

    def conversation(self) -> ConversationRow | None:
        """Return the scope's conversation, or ``None`` before its first message."""
        self._place()
        found = self._run("conversation")
        return ConversationRow(*found[0]) if found else None

    def conversations(self) -> list[ConversationRow]:
        """Return the conversations the scope can see (of its subject, or all), by name."""
        return [ConversationRow(*row) for row in self._run("conversations")]

    def conversation_names(self, *, limit: int | None = None, after: str = "") -> list[str]:
        """Return the names of the conversations that the scope can see, in order."""
        return [row[0] for row in self._run("conversation_names", after=after, limit=_most(limit))]

    def conversations_apart(self) -> set[tuple[str, str]]:
        """Return the conversations with facts of their own, of all subjects, but the scope's: subject and name."""
        here = (self.scope.subject, self.scope.conversation)
        return {(row[0], row[1]) for row in self._run("conversations_apart")} - {here}

    def corrections_apart(self) -> list[tuple[tuple[str, str], int]]:
        """Return the messages by hand that state facts of other conversations alone: subject and name, and number."""
        here, owners = (
            (self.scope.subject, self.scope.conversation),
            dict[tuple[tuple[str, str], int], set[FactOwner]](),
        )
        for subject, name, seq, *owner in self._run("corrections_apart", by_hand=BY_HAND_CONVERSATION):
            owners.setdefault(((subject, name), seq), set()).add((owner[0], owner[1]))
        return [place for place, all_of_it in owners.items() if not all_of_it & {here, OF_USER}]

    def newest_conversations(
        self, *, limit: int | None = None, after: tuple[int, str, str] | None = None
    ) -> list[ConversationRow]:
        """Return the conversations that the scope can see, newest first, behind *after*: its time, name, and subject."""
        position = _named("before", ("at", "conversation", "subject"), after or (EVERYTHING, "", ""))
        return [ConversationRow(*row) for row in self._run("newest_conversations", limit=_most(limit), **position)]

    def stale_summaries(self) -> dict[tuple[str, str], int]:
        """Count the stale summaries of the conversations that the scope can see, by (subject, conversation); those with none are left out."""
        found = self._run("stale_summaries")
        return {(subject, conversation): int(number) for subject, conversation, number in found}

    def messages(self, *, start_seq: int = 1, end_seq: int | None = None, limit: int | None = None) -> list[Message]:
        """
        Messages ``start_seq`` to ``end_seq`` of the scope's conversation, at most *limit* from the start;
        one that was erased leaves a gap in the numbers.
        """
        _, name = self._place()
        bounds = {
            "start_seq": start_seq,
            "end_seq": EVERYTHING if end_seq is None else end_seq,
            "limit": _most(limit),
        }
        return [rows.message(row, name) for row in self._run("messages", **bounds)]

    def names_at_start(self, limit: int) -> dict[str, int]:
        """Return the names that sign user messages among the first *limit* of the scope's conversation, each with its first."""
        self._place()
        return {row[0]: row[1] for row in self._run("names_at_start", limit=limit)}

    def idempotency(self, key: str) -> tuple[str, int, int] | None:
        """``(digest, first_seq, last_seq)`` stored under *key* in this conversation."""
        self._place()
        found = self._run("idempotency", key=key)
        return (found[0][0], found[0][1], found[0][2]) if found else None

    def _visible(self) -> dict[str, Any]:
        """Return the parameters that select the facts the scope may see; explained in facts.sql."""
        subject = self.scope.subject
        shared = subject == SELF or self.scope.general
        limits = {"all": int(subject is None), "subject": subject or SELF, "shared": int(shared)}
        return limits | self._owners()

    def _owners(self) -> dict[str, Any]:
        """Return the three parameters that say whose facts count: one owner's; the user's and those of the scope's
        conversation; or, without a conversation, all."""
        home, conversation = self._owner or (self.scope.subject or SELF, self.scope.conversation or "")
        every = self._owner is None and self.scope.conversation is None
        return {"every": int(every), "owner_home": home, "owner": conversation, "common": int(self._owner is None)}

    def _evidence_of(self, found: Sequence[Row]) -> Mapping[rows.FactKey, tuple[Evidence, ...]]:
        keys = [(*self._head, row[0], row[1]) for row in found]
        return rows.evidence_by_fact(self._driver.many("evidence_of", keys)) if keys else {}

    def _facts_with_evidence(self, found: Sequence[Row]) -> list[FactRow]:
        evidence = self._evidence_of(found)
        return [rows.fact(row, evidence) for row in found]

    def with_quotes(self, row: FactRow) -> FactRow:
        """Return a fact that was read without its quotes with them."""
        key = (row.fact.subject, row.fact.id)
        found = rows.evidence_by_fact(self._driver.many("evidence_of", [(*self._head, *key)]))
        return replace(row, fact=replace(row.fact, evidence=found.get(key, ())))

    def facts(
        self,
        *,
        category: str | None = None,
        kind: str | None = None,
        evidence: bool = True,
        now_ms: int | None = None,
        limit: int | None = None,
        after: tuple[str, str, str, str, str] | None = None,
    ) -> list[FactRow]:
        """
        Return the active facts that the scope may see, by (subject, category, key, value).

        A scope without a subject sees all.  ``self`` sees facts about the user and those about
        others that were said in a conversation about no subject in particular.  Any other subject
        sees its own facts and the user's.  With ``evidence=False`` the facts come without their
        quotes, which is half the work.  With *now_ms* facts that have expired are left out.  *after* is where the
        page before ended: subject, category, key, value, and id.
        """
        args = self._visible() | {"category": category, "label": _label(category), "kind": kind}
        names = ("subject", "category", "key", "value", "id")
        bounds = _named("after", names, after or ("",) * 5)
        bounds |= {"now_ms": -EVERYTHING if now_ms is None else now_ms, "limit": _most(limit)}
        found = self._run("facts", **args, **bounds)
        if limit is not None:
            return self._facts_with_evidence(found)
        quotes = rows.evidence_by_fact(self._run("evidence_of_facts", **args)) if found and evidence else {}
        return [rows.fact(row, quotes) for row in found]

    def all_facts(
        self,
        *,
        category: str | None = None,
        key: str | None = None,
        limit: int | None = None,
        after: tuple[int, int, str] | None = None,
    ) -> list[FactRow]:
        """Live and past facts that the scope may see, by (valid_from, recorded_at, id); *after* is such a position."""
        args = self._visible() | {"category": category, "label": _label(category), "key": key}
        bounds = _named("after", ("from", "recorded", "id"), after or (-EVERYTHING, 0, ""))
        found = self._run("all_facts", **args, **bounds, limit=_most(limit))
        if limit is not None:
            return self._facts_with_evidence(found)
        evidence = rows.evidence_by_fact(self._run("evidence_of_all_facts", **args)) if found else {}
        return [rows.fact(row, evidence) for row in found]

    def facts_said_here(
        self,
        start_seq: int = 1,
        end_seq: int = EVERYTHING,
        *,
        kind: str | None = None,
        live: bool = False,
        limit: int | None = None,
        after: tuple[int, int, str] | None = None,
    ) -> list[FactRow]:
        """
        Return facts with a quote among these messages of the scope's conversation, live and past or live alone.

        By the first of these messages, the time of recording, and id; *after* is such a position.
        """
        self._place()
        bounds = _named("after", ("seq", "recorded", "id"), after or (0, 0, ""))
        args = {"start_seq": start_seq, "end_seq": end_seq, "kind": kind, "live": int(live), "limit": _most(limit)}
        return self._facts_with_evidence(
            [row[:-1] for row in self._run("facts_said_here", **self._visible(), **args, **bounds)]
        )

    def fact(self, fact_id: str, *, evidence: bool = True) -> FactRow | None:
        """Return one fact that the scope may see, live or past; with ``evidence=False`` without its quotes."""
        found = self._run("fact", id=fact_id, **self._visible())
        quotes = self._evidence_of(found) if evidence else {}
        return rows.fact(found[0], quotes) if found else None

    def chains(self, fact_ids: Iterable[str]) -> Mapping[str, FactRow]:
        """
        Return facts that the scope may see, and those that replaced them one after the other, by id, without their quotes.

        A view reads each of them once, which is right for a snapshot alone.
        """
        for first in fact_ids:
            wanted: str | None = first
            while wanted and wanted not in self._past:
                row = self.fact(wanted, evidence=False)
                self._past |= {wanted: row} if row else {}
                wanted = row.fact.superseded_by if row else None
        return self._past

    def expired(self, now_ms: int) -> set[str]:
        """Ids of the user's live facts, of all subjects, whose own words set an end that has passed."""
        return {row[0] for row in self._run("expired", now_ms=now_ms)}

    def count_facts(self) -> int:
        """Count the live facts of the user, of all subjects."""
        return int(self._run("count_facts")[0][0])

    def count_statements(self) -> int:
        """Count the statements and episodes ever learned of the user, of all subjects."""
        return int(self._run("count_statements")[0][0])

    def statements(self, subject: str, *, evidence: bool = True) -> list[FactRow]:
        """
        Return statements about *subject* that the scope may see, active or merged into another, by document number.

        Live, archived and merged ones, with their quotes; with ``evidence=False`` without them.
        """
        found = self._run("statements", about=subject, **self._visible())
        return self._facts_with_evidence(found) if evidence else [rows.fact(row, {}) for row in found]

    def uses(self, fact_ids: Sequence[str]) -> list[UseRow]:
        """Return how often and when the facts among *fact_ids* were used; missing ones are left out."""
        keys = [(*self._head, fact_id) for fact_id in dict.fromkeys(fact_ids)]
        return [UseRow(*row) for row in self._driver.many("uses", keys)]

    def past_facts_of(self, messages: Iterable[TurnKey]) -> list[tuple[TurnKey, str]]:
        """``(message, fact id)`` of past facts that rest on messages, each (subject, conversation, number)."""
        pairs, subjects = self._facts_from(messages)
        known = [(*self._head, subject, id) for id, subject in subjects.items()]
        past = {row[0] for row in self._driver.many("past_fact", known)} if known else set()
        return [(message, id) for message, id in pairs if id in past]

    def _by_conversation(self, messages: Iterable[TurnKey]) -> list[tuple[str, ...]]:
        """Return the parameters of a query for messages by their numbers, once for each conversation."""
        seqs: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for subject, conversation, seq in messages:
            seqs[subject, conversation].append(seq)
        return [(*self._head, *place, f"[{','.join(map(str, some))}]") for place, some in seqs.items()]

    def _facts_from(self, messages: Iterable[TurnKey]) -> tuple[list[tuple[TurnKey, str]], dict[str, str]]:
        """``(message, fact id)`` of all facts that rest on messages, and the subjects of these facts by id."""
        place = {message: at for at, message in enumerate(messages)}
        found = self._driver.many("children_of_messages", self._by_conversation(place))
        known = {((row[0], row[1], row[2]), row[4]) for row in found if row[3] == "fact"}
        pairs = sorted(known, key=lambda pair: (place[pair[0]], pair[1]))
        ids = [(*self._head, id) for id in dict.fromkeys(id for _, id in pairs)]
        return pairs, dict(self._driver.many("subject_of_fact", ids)) if ids else {}

    def quotes_of(self, messages: Iterable[TurnKey]) -> list[tuple[TurnKey, str, str]]:
        """``(message, fact id, quote)`` of active facts that quote messages, each (subject, conversation, number)."""
        pairs, subjects = self._facts_from(messages)
        known = [(*self._head, subjects[id], id, *message) for message, id in pairs if id in subjects]
        found = self._driver.many("quotes_of", known) if known else []
        return [((row[0], row[1], row[2]), row[3], row[4]) for row in found]

    def turns_at(self, keys: Iterable[TurnKey]) -> dict[TurnKey, tuple[int, Message]]:
        """Return messages of any conversation by (subject, conversation, number), each with the number of its session."""
        found = self._driver.many("turns_at", self._by_conversation(keys))
        return {(row[0], row[1], row[3]): (row[2], rows.message(row[3:], row[1])) for row in found}

    def past_facts_in(self, end_seq: int) -> list[tuple[int, str, str]]:
        """``(message, fact id, words)`` of past facts that rest on the scope's conversation up to *end_seq*."""
        self._place()
        found = self._run("past_facts_in", end_seq=end_seq)
        # a diet is a key that is true; an attribute is said by its value, a sentence by its text
        return [
            (seq, fact_id, text if kind != "attribute" else key.replace("_", " ") if value == "true" else value)
            for seq, fact_id, kind, key, value, text in found
        ]

    def past_facts_about(self) -> list[tuple[str, str]]:
        """``(fact id, words)`` of past facts that rest on the conversations about the scope's subject."""
        return [
            (fact_id, text if kind != "attribute" else key.replace("_", " ") if value == "true" else value)
            for fact_id, kind, key, value, text in self._run("past_facts_about")
        ]

    def rejected(self, *, limit: int = 100, only: str = "") -> list[Rejected]:
        """Return the newest rejected candidates of the scope's conversation, or of all it can see; see `rejected_page`."""
        return self.rejected_page(limit=limit, only=only)[0]

    def rejected_page(
        self, *, limit: int, after: RejectedPosition | None = None, only: str = ""
    ) -> tuple[list[Rejected], RejectedPosition | None]:
        """
        Return rejected candidates, newest first, behind *after*; and the position of the last one if there are more.

        *only* is ``waiting`` for those that the user is asked about, ``refused`` for those that nobody accepted.
        """
        position = _named("before", ("at", "conversation", "subject", "seq", "id"), after or _NEWEST)
        limit = min(max(0, limit), EVERYTHING - 1)
        found = self._run("rejected", limit=limit + 1, only=only, **position)
        page = found[:limit]
        last = None
        if page and len(found) > limit:
            conversation, _, _, recorded_at, subject, seq, id_ = page[-1]
            last = (recorded_at, conversation, subject, seq, id_)
        return [rows.rejected(row) for row in page], last

    def summaries(
        self,
        *,
        level: int | None = None,
        live: bool = True,
        limit: int | None = None,
        after: tuple[int, int, int, str] | None = None,
    ) -> list[Summary]:
        """Return summaries of the scope's conversation by (start_seq, level, version, id); *after* is such a position."""
        _, name = self._place()
        bounds = _named("after", ("seq", "level", "version", "id"), after or (0, 0, 0, ""))
        found = self._run("summaries", level=level, old=int(not live), limit=_most(limit), **bounds)
        children = self._children(found, each=limit is not None)
        return [rows.summary(row, name, children) for row in found]

    def newest_summaries(self, *, limit: int) -> list[Summary]:
        """Return the highest live summaries of the other conversations about the scope's subject, newest first."""
        found = self._run("newest_summaries", limit=limit)
        return [rows.summary(row[1:], row[0], {}) for row in found]

    def stories(self) -> list[Story]:
        """Return the story of the scope's subject, or those of all subjects."""
        return [rows.story(row) for row in self._run("stories")]

    def _children(self, found: Sequence[Row], *, each: bool = False) -> Mapping[str, Sequence[str]]:
        """Return the children of the higher ones among *found* summaries, read one by one or all at once."""
        children: defaultdict[str, list[str]] = defaultdict(list)
        if higher := [(*self._head, row[0]) for row in found if row[1] > 1]:
            edges = self._driver.many("children_of_summary", higher) if each else self._run("summary_children")
            for parent, child, _ in edges:
                children[parent].append(child)
        return children

    def episode_ranges(self) -> list[EpisodeRangeRow]:
        """Return the ranges of the scope's conversation that were searched for episodes, by start."""
        self._place()
        return [EpisodeRangeRow(*row) for row in self._run("episode_ranges")]

    def covered(self, start_seq: int, end_seq: int) -> dict[int, str]:
        """``{seq: summary id}`` for covered messages of a range of the scope's conversation."""
        self._place()
        return {row[0]: row[1] for row in self._run("covered", start_seq=start_seq, end_seq=end_seq)}

    def partitions(self, kinds: Sequence[str]) -> list[Partition]:
        """Return the partitions that a search in this scope may read; messages and summaries never cross subjects."""
        subject = self.scope.subject
        found: list[Partition] = []
        for kind in kinds:
            if subject is None:
                query = "fact_subjects" if kind == "fact" else "message_subjects"
                found += [Partition(row[0], kind) for row in self._run(query)]
                continue
            shared = subject == SELF or self.scope.general
            own = dict.fromkeys((subject, SELF) if shared or kind == "fact" else (subject,))
            found += [Partition(name, kind) for name in own]
            if shared and kind == "fact":
                others = [row[0] for row in self._run("fact_subjects") if row[0] not in own]
                found += [Partition(name, kind, shared_only=True) for name in others]
        return found

    def docs(self, partition: Partition) -> list[DocRow]:
        """Return every document of a partition, by number."""
        return [rows.doc(row) for row in self._run("docs", **_where(partition))]

    def segments(self, partition: Partition, *, signs_of: str = "") -> list[Segment]:
        """Return every document of a partition, by number, from the packed ones as far as there are any; *signs_of* as of `columns`."""
        found, begin = [], 1
        if partition.kind in SEALED:
            for first, last, embedder, data in self._run("segments", subject=partition.subject, kind=partition.kind):
                if begin < first:
                    found.append(pack_columns(self.columns(partition, signs_of=signs_of, first=begin, last=first - 1)))
                segment, begin = decode(data), last + 1
                found.append(segment if embedder == signs_of else segment.without_signs())
        found.append(pack_columns(self.columns(partition, signs_of=signs_of, first=begin)))
        return [segment for segment in found if len(segment)]

    def columns(
        self, partition: Partition, *, signs_of: str = "", first: int = 0, last: int = EVERYTHING
    ) -> dict[str, tuple[Any, ...]]:
        """
        Return the documents from number *first* to *last*, a tuple per name in `values.COLUMNS`, several times faster than `docs`.
        With *signs_of* an embedder there are ``signs``, too: a bit for each number of its vector, 1 from
        0 upwards, the first in the highest bit; ``None`` where the current vector is not by it.
        """
        bounds = {"first": first, "last": last}
        found = self._run("doc_columns", embedder=signs_of, separator=SEPARATOR, **bounds, **_where(partition))
        names = (*COLUMNS, "signs")
        values: Iterable[tuple[Any, ...]] = zip(*found, strict=True) if found else ((),) * len(names)
        columns = dict(zip(names, values, strict=True))
        if not signs_of:
            del columns["signs"]
        return columns

    def vectors(self, partition: Partition, embedder: str, *, first: int = 0) -> list[tuple[int, float, bytes]]:
        """``(doc, scale, int8 bytes)`` made by *embedder*, by number, of documents from number *first* on."""
        name = "vectors_shared" if partition.shared_only else "vectors"
        place = {"subject": partition.subject, "kind": partition.kind, "embedder": embedder}
        found: list[Any] = self._run(name, first=first, **place)
        return found

    def vectors_of(self, partition: Partition, embedder: str, docs: Iterable[int]) -> list[tuple[int, float, bytes]]:
        """Return those of `vectors` that belong to the given documents, in their order."""
        head = (*self._head, partition.subject, partition.kind, embedder)
        place = {doc: at for at, doc in enumerate(docs)}
        found: list[Any] = self._driver.many("vector_of", [(*head, doc) for doc in place])
        return sorted(found, key=lambda row: place[row[0]])

    def texts(self, docs: Iterable[DocRow]) -> dict[tuple[str, int], str]:
        """``{(kind, doc): text}`` of documents: a message's content, a fact's or summary's text."""
        keys: dict[str, list[tuple[Any, ...]]] = {"summary": [], "fact": []}
        messages: dict[TurnKey, int] = {}
        for d in docs:
            if d.kind == "message":
                messages[d.subject, d.conversation, d.seq] = d.doc
                continue
            where = (d.subject,) if d.kind == "fact" else (d.subject, d.conversation)
            keys[d.kind].append((d.doc, *self._head, *where, d.ref))
        found: dict[tuple[str, int], str] = {}
        for subject, name, seq, text in self._driver.many("message_texts", self._by_conversation(messages)):
            found["message", messages[subject, name, seq]] = text
        for kind, wanted in keys.items():
            for number, text in self._driver.many(f"{kind}_text", wanted) if wanted else ():
                found[kind, number] = text
        return found

    def unembedded(self, embedder: str, *, limit: int) -> list[DocRow]:
        """Return documents of any subject whose current vector is not by *embedder*, oldest first."""
        return [rows.doc(row) for row in self._run("unembedded", embedder=embedder, limit=max(0, limit))]

    def prefix(self, variant: str) -> tuple[str, str] | None:
        """``(sha256, manifest)`` of the last context of this conversation and shape."""
        self._place()
        found = self._run("prefix", variant=variant)
        return (found[0][0], found[0][1]) if found else None

    def is_waiting(self, kind: str) -> bool:
        """Whether work of that kind waits in its first attempt in the scope's conversation."""
        lane = {"subject": self.scope.subject or "", "conversation": self.scope.conversation or ""}
        found = [rows.job(row) for row in self._run("job_in_lane", kind=kind, key="", **lane)]
        return any(job.state == "ready" and job.attempt == 0 for job in found)

    def jobs(self) -> list[Job]:
        """Return the user's unfinished jobs, oldest first."""
        return [rows.job(row) for row in self._run("jobs_of_user")]

    def has_job(self, kind: str) -> bool:
        """Whether the scope's conversation has an unfinished job of a *kind*, that of a range aside."""
        subject, conversation = self._place()
        return bool(self._run("job_in_lane", kind=kind, key="", subject=subject, conversation=conversation))

    def usage(self, since: str = "") -> list[UsageRow]:
        """Return the cost of models for the user, from the day *since* (``2026-11-21``), by (day, layer, model)."""
        return [UsageRow(*row) for row in self._run("usage", since=since)]

    def prompts(self) -> list[PromptRow]:
        """Return every version of the user's own prompts, by (name, version)."""
        return [
            PromptRow(row[0], row[1], row[2], row[3], bool(row[4]), percent=row[4] - 100 if row[4] > 100 else 100)
            for row in self._run("prompts")
        ]

    def context_stats(self) -> list[ContextStatsRow]:
        """Return the measurements of the contexts before the replies of the scope's conversation, by reply."""
        self._place()
        return [ContextStatsRow(*row) for row in self._run("context_stats")]

    def contexts_sent(self, seq: int, limit: int) -> list[ContextStatsRow]:
        """Return the contexts before reply *seq* of the scope's conversation and those ahead of it, newest first."""
        self._place()
        return [ContextStatsRow(*row) for row in self._run("contexts_sent", seq=seq, limit=limit)]

    def summary_text(self, summary_id: str) -> tuple[int, int, str] | None:
        """Return first message, last message, and text of a summary of the scope's conversation, of any version."""
        self._place()
        found = self._run("any_summary_text", id=summary_id)
        return (found[0][1], found[0][2], found[0][3]) if found else None

    def items(
        self, space: str, first: str = "", stop: str = END_OF_NAMES, *, limit: int | None = None
    ) -> list[ItemRow]:
        """Return the items of a space in the scope's conversation whose names are from *first* to before *stop*, by name."""
        self._place()
        found = self._run("items", space=space, first=first, stop=stop, limit=_most(limit))
        return [ItemRow(space, row[0], bytes(row[1]), row[2], row[3], row[4]) for row in found]

    def item_homes(self, space: str | None = None) -> list[tuple[str, str]]:
        """Return ``(subject, conversation)`` wherever the user has items, of one space or any."""
        return [(row[0], row[1]) for row in self._run("item_homes", space=space)]

    def every_item(self) -> list[tuple[str, str, ItemRow]]:
        """Return ``(subject, conversation, item)`` for every item of the user, in order."""
        return [(row[0], row[1], ItemRow(row[2], row[3], bytes(row[4]), *row[5:])) for row in self._run("every_item")]

    def known_ledger_key(self) -> str:
        """Return the key that hashes places in the ledger of erasures; ``""`` when nothing was ever erased."""
        found = self._run("ledger_key")
        return str(found[0][0]) if found else ""

    def is_in_ledger(self, entry_id: str) -> bool:
        """Whether the ledger of erasures has an entry of that id."""
        return bool(self._driver.run("is_in_ledger", {"id": entry_id}))

    def consent(self) -> list[ConsentRow]:
        """Return the user's choices, for each subject that the scope can see and for all (``""``)."""
        return [rows.consent(row) for row in self._run("consent")]

    def blocked_topics(self) -> list[tuple[str, str]]:
        """Return ``(subject, topic)`` of topics that must not be remembered; subject ``""`` means all."""
        return [(row[0], row[1]) for row in self._run("blocked_topics")]

    def subjects(self) -> list[SubjectRow]:
        """Return all subjects of the user that have conversations or were declared, by id, whatever the scope's is."""
        return [rows.subject(row) for row in self._run("subjects")]

    def at(self, subject: str | None, conversation: str | None) -> Self:
        """Return a view of the same moment (or transaction) with another subject and conversation of the same user."""
        scope = replace(self.scope, subject=subject, conversation=conversation)
        return type(self)(self._driver, scope, self._owner)

    def of_owner(self, owner: FactOwner) -> Self:
        """Return this view limited to the facts of one owner: of a conversation, or of the user."""
        return type(self)(self._driver, self.scope, owner)

    def of_user(self) -> Self:
        """Return this view limited to the facts of the user."""
        return self.of_owner(OF_USER)

    def facts_here(self) -> tuple[list[FactRow], set[str]]:
        """
        Return the active facts that hold in the scope's conversation, without quotes, and the ids of those that do not.

        A fact of the conversation's own stands in place of the user's at the same address.
        """
        rows_ = self.facts(evidence=False)
        own = {_address(row) for row in rows_ if row.fact.only_in}
        here = [row for row in rows_ if row.fact.only_in or _address(row) not in own]
        return here, {row.fact.id for row in rows_} - {row.fact.id for row in here}

    def fact_owner(self) -> FactOwner:
        """Return the owner of facts stated in the scope's conversation: the conversation itself when it keeps its facts apart."""
        if self._owner is not None:
            return self._owner
        row = self.conversation()
        return (row.subject, row.conversation) if row is not None and row.own_facts else OF_USER

    def message_rows(self, *, start_seq: int = 1, end_seq: int | None = None) -> list[MessageRow]:
        """Messages of the scope's conversation with their columns, those that were erased among them."""
        _, name = self._place()
        found = self._run("message_rows", start_seq=start_seq, end_seq=EVERYTHING if end_seq is None else end_seq)
        return [rows.stored(row, name) for row in found]

    def summary_rows(self) -> list[SummaryRow]:
        """Return all summaries of the scope's conversation with their older versions, by (start_seq, level)."""
        _, name = self._place()
        found = self._run("summary_rows")
        children = self._children(found)
        return [rows.summary_row(row, name, children) for row in found]

    def places_of(self, role: str) -> list[tuple[str, str]]:
        """Return subject and conversation of each of the user's conversations that holds messages of *role*."""
        return [(row[0], row[1]) for row in self._run("places_of_role", role=role)]

    def summary_words(self) -> list[tuple[str, str, int, str]]:
        """Return subject, conversation, first message and all words of each summary of the user, older versions included."""
        return [(row[0], row[1], row[2], "\n".join(row[3:])) for row in self._run("summary_words")]

    def derived_from(self, start_seq: int, end_seq: int) -> list[tuple[str, str]]:
        """Return ``(child kind, child)`` of rows derived from a range of the scope's conversation, by kind and id."""
        self._place()
        return [(row[0], row[1]) for row in self._run("derived_from", start_seq=start_seq, end_seq=end_seq)]

    def keys(self) -> list[tuple[str, str, int, int]]:
        """``(key, digest, first_seq, last_seq)`` of the callers' keys in the scope's conversation."""
        self._place()
        return [(row[0], row[1], row[2], row[3]) for row in self._run("idempotency_keys")]

    def endings(self) -> list[Derivation]:
        """Return the messages that ended facts of the user."""
        return [rows.derivation(row) for row in self._run("endings")]

    def read_ranges(self) -> list[tuple[str, int, int]]:
        """Return ``(model, start_seq, end_seq)``: the ranges of the scope's conversation that models read for facts."""
        self._place()
        return [(row[0], row[1], row[2]) for row in self._run("read_ranges")]

    def rebuilds(self) -> list[RebuildRow]:
        """Return the rebuilt ranges of the scope's conversation, oldest first."""
        self._place()
        return [rows.rebuilt(row) for row in self._run("rebuilds")]

    def news(self, after: int, *, limit: int) -> News:
        """Return the user's events after number *after*; 0 begins with the oldest that is kept."""
        there = self._run("newest_event")
        if not there:
            return News(0, lost=after > 0)
        newest = there[0][3]
        if after and not self._run("oldest_event")[0][0] - 1 <= after <= newest:
            return News(newest, lost=True)
        found = self._run("events_after", after=after, limit=max(0, limit)) if after < newest else []
        return News(newest, tuple(rows.event(row, self._head) for row in found))

    def events_before(self, before: int | None, *, limit: int) -> list[Event]:
        """Return the newest events below a number, or of all, newest first."""
        below = EVERYTHING if before is None else before
        found = self._run("events_before", before=below, limit=max(0, limit))
        return [rows.event(row, self._head) for row in found]


def _address(row: FactRow) -> tuple[str, str, str, str]:
    return (row.fact.subject, row.fact.category, row.slot_key, row.slot_value)


def _where(partition: Partition) -> dict[str, Any]:
    return {"subject": partition.subject, "kind": partition.kind, "shared": int(partition.shared_only)}


def _most(limit: int | None) -> int:
    return EVERYTHING if limit is None else max(0, limit)


def _label(category: str | None) -> str | None:
    """Return the label that a category is, for the facts that are filed more narrowly; ``None`` for other categories."""
    return category if category in LABELS else None


def _named(prefix: str, names: Sequence[str], position: Sequence[int | str]) -> dict[str, int | str]:
    """Return the parts of a position as parameters of a query."""
    return {f"{prefix}_{name}": value for name, value in zip(names, position, strict=True)}


def speaker_names(view: ReadView, messages: Sequence[Message] = ()) -> dict[str, int]:
    """Return the names of speakers at the conversation's beginning and in *messages*, each with its first message."""
    names = view.names_at_start(SPEAKERS_WITHIN)
    for message in messages:
        if message.role == "user" and message.name:
            names.setdefault(message.name, message.seq)
    return names
