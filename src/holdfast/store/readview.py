"""
One user's memory as of one moment, in terms of named queries.

A view runs queries through a `Driver` and knows nothing else of the database.  Whatever it asks
carries the user's key as bound parameters, so it cannot reach anybody else's rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, Self

from ..errors import BadInput
from ..reports import Event, News
from ..scope import SELF, Scope
from ..types import Evidence, Job, Message, Rejected, Summary
from . import rows
from .protocol import (
    ConsentRow,
    ConversationRow,
    Derivation,
    DocRow,
    EpisodesRow,
    FactRow,
    MessageRow,
    Partition,
    RebuiltRow,
    SummaryRow,
    UseRow,
    UserRow,
)
from .values import COLUMNS, SEPARATOR, PromptRow, ShownRow, UsageRow

EVERYTHING = 2**62
"""A limit, or the number of a last message, that no conversation reaches."""


class Driver(Protocol):
    """How a view reaches its database: inside one snapshot or one transaction."""

    def run(self, name: str, args: Mapping[str, Any]) -> list[rows.Row]:
        """Run the query *name*; the rows it returns."""

    def many(self, name: str, args: Iterable[Sequence[Any]]) -> list[rows.Row]:
        """
        Run the query *name* once for each sequence of parameters; all rows that come back.

        A sequence gives the parameters in the order in which the SQL first names them.
        """


class SqlReadView:
    """See `holdfast.store.protocol.ReadView`."""

    def __init__(self, driver: Driver, scope: Scope) -> None:
        self.scope = scope
        self._driver = driver
        self._head = (scope.org, scope.user, scope.bot)
        self._key = {
            "org": scope.org,
            "user_id": scope.user,
            "bot": scope.bot,
            "subject": scope.subject,
            "conversation": scope.conversation,
        }

    def _run(self, name: str, /, **args: Any) -> list[rows.Row]:
        return self._driver.run(name, self._key | args)

    def _place(self) -> tuple[str, str]:
        """
        The subject and the name of the scope's conversation.

        Raises:
            BadInput: the scope is of a user, or of all subjects; one conversation is needed.
        """
        if self.scope.conversation is None or self.scope.subject is None:
            raise BadInput("this call needs a conversation; its scope names none", hint="use scope.within(...)")
        return self.scope.subject, self.scope.conversation

    def user(self) -> UserRow:
        """See the protocol."""
        found = self._run("user")
        return UserRow(*found[0]) if found else UserRow()

    def conversation(self) -> ConversationRow | None:
        """See the protocol."""
        self._place()
        found = self._run("conversation")
        return ConversationRow(*found[0]) if found else None

    def conversations(self) -> list[ConversationRow]:
        """See the protocol."""
        return [ConversationRow(*row) for row in self._run("conversations")]

    def messages(self, *, start_seq: int = 1, end_seq: int | None = None, limit: int | None = None) -> list[Message]:
        """See the protocol."""
        _, name = self._place()
        bounds = {
            "start_seq": start_seq,
            "end_seq": EVERYTHING if end_seq is None else end_seq,
            "limit": EVERYTHING if limit is None else max(0, limit),
        }
        return [rows.message(row, name) for row in self._run("messages", **bounds)]

    def idempotency(self, key: str) -> tuple[str, int, int] | None:
        """See the protocol."""
        self._place()
        found = self._run("idempotency", key=key)
        return (found[0][0], found[0][1], found[0][2]) if found else None

    def _sight(self) -> dict[str, Any]:
        """The three parameters that say which facts the scope may see; explained in facts.sql."""
        subject = self.scope.subject
        return {"all": int(subject is None), "subject": subject or SELF, "shared": int(subject == SELF)}

    def _evidence_of(self, found: Sequence[rows.Row]) -> Mapping[rows.FactKey, tuple[Evidence, ...]]:
        keys = [(*self._head, row[0], row[1]) for row in found]
        return rows.evidence_by_fact(self._driver.many("evidence_of", keys)) if keys else {}

    def _facts_with_evidence(self, found: Sequence[rows.Row]) -> list[FactRow]:
        evidence = self._evidence_of(found)
        return [rows.fact(row, evidence) for row in found]

    def facts(self, *, category: str | None = None, kind: str | None = None, evidence: bool = True) -> list[FactRow]:
        """See the protocol."""
        args = self._sight() | {"category": category, "kind": kind}
        found = self._run("facts", **args)
        quotes = rows.evidence_by_fact(self._run("evidence_of_facts", **args)) if found and evidence else {}
        return [rows.fact(row, quotes) for row in found]

    def facts_ever(self, *, category: str | None = None, key: str | None = None) -> list[FactRow]:
        """See the protocol."""
        args = self._sight() | {"category": category, "key": key}
        found = self._run("facts_ever", **args)
        evidence = rows.evidence_by_fact(self._run("evidence_of_facts_ever", **args)) if found else {}
        return [rows.fact(row, evidence) for row in found]

    def fact(self, fact_id: str) -> FactRow | None:
        """See the protocol."""
        found = self._facts_with_evidence(self._run("fact", id=fact_id, **self._sight()))
        return found[0] if found else None

    def expired(self, now_ms: int) -> set[str]:
        """See the protocol."""
        return {row[0] for row in self._run("expired", now_ms=now_ms)}

    def count_facts(self) -> int:
        """See the protocol."""
        return int(self._run("count_facts")[0][0])

    def count_statements(self) -> int:
        """See the protocol."""
        return int(self._run("count_statements")[0][0])

    def statements(self, subject: str) -> list[FactRow]:
        """See the protocol."""
        return self._facts_with_evidence(self._run("statements", about=subject, **self._sight()))

    def uses(self, fact_ids: Sequence[str]) -> list[UseRow]:
        """See the protocol."""
        keys = [(*self._head, fact_id) for fact_id in dict.fromkeys(fact_ids)]
        return [UseRow(*row) for row in self._driver.many("uses", keys)]

    def past_facts_of(self, messages: Iterable[tuple[str, str, int]]) -> list[tuple[tuple[str, str, int], str]]:
        """See the protocol."""
        found = self._driver.many("past_facts_of", [(*self._head, *message) for message in messages])
        return [((row[0], row[1], row[2]), row[3]) for row in found]

    def rejected(self, *, limit: int = 100) -> list[Rejected]:
        """See the protocol."""
        return [rows.rejected(row) for row in self._run("rejected", limit=max(0, limit))]

    def summaries(self, *, level: int | None = None, live: bool = True) -> list[Summary]:
        """See the protocol."""
        _, name = self._place()
        found = self._run("summaries", level=level, old=int(not live))
        children = self._children(found)
        return [rows.summary(row, name, children) for row in found]

    def _children(self, found: Sequence[rows.Row]) -> Mapping[str, Sequence[str]]:
        """The children of the higher ones among *found* summaries."""
        children: defaultdict[str, list[str]] = defaultdict(list)
        if any(row[1] > 1 for row in found):
            for parent, child, _ in self._run("summary_children"):
                children[parent].append(child)
        return children

    def episode_ranges(self) -> list[EpisodesRow]:
        """See the protocol."""
        self._place()
        return [EpisodesRow(*row) for row in self._run("episode_ranges")]

    def covered(self, start_seq: int, end_seq: int) -> dict[int, str]:
        """See the protocol."""
        self._place()
        return {row[0]: row[1] for row in self._run("covered", start_seq=start_seq, end_seq=end_seq)}

    def partitions(self, kinds: Sequence[str]) -> list[Partition]:
        """See the protocol."""
        subject = self.scope.subject
        found: list[Partition] = []
        for kind in kinds:
            if kind != "fact":
                named = [subject] if subject is not None else [row[0] for row in self._run("message_subjects")]
                found += [Partition(name, kind) for name in named]
            elif subject is None:
                found += [Partition(row[0], kind) for row in self._run("fact_subjects")]
            elif subject == SELF:
                others = [row[0] for row in self._run("fact_subjects") if row[0] != SELF]
                found += [Partition(SELF, kind), *(Partition(name, kind, shared_only=True) for name in others)]
            else:
                found += [Partition(subject, kind), Partition(SELF, kind)]
        return found

    def docs(self, partition: Partition) -> list[DocRow]:
        """See the protocol."""
        return [rows.doc(row) for row in self._run("docs", **_where(partition))]

    def columns(self, partition: Partition, *, signs_of: str = "") -> dict[str, tuple[Any, ...]]:
        """See the protocol."""
        found = self._run("doc_columns", embedder=signs_of, separator=SEPARATOR, **_where(partition))
        names = (*COLUMNS, "signs")
        values: Iterable[tuple[Any, ...]] = zip(*found, strict=True) if found else ((),) * len(names)
        columns = dict(zip(names, values, strict=True))
        if not signs_of:
            del columns["signs"]
        return columns

    def postings(self, partition: Partition, terms: Sequence[str]) -> list[tuple[str, int, int]]:
        """See the protocol."""
        name = "postings_shared" if partition.shared_only else "postings"
        head = (*self._head, partition.subject, partition.kind)
        found: list[Any] = self._driver.many(name, [(*head, term) for term in sorted(set(terms))])
        return found

    def vectors(self, partition: Partition, embedder: str) -> list[tuple[int, float, bytes]]:
        """See the protocol."""
        name = "vectors_shared" if partition.shared_only else "vectors"
        found: list[Any] = self._run(name, subject=partition.subject, kind=partition.kind, embedder=embedder)
        return found

    def vectors_of(self, partition: Partition, embedder: str, docs: Iterable[int]) -> list[tuple[int, float, bytes]]:
        """See the protocol."""
        head = (*self._head, partition.subject, partition.kind, embedder)
        found: list[Any] = self._driver.many("vector_of", [(*head, doc) for doc in docs])
        return found

    def texts(self, docs: Iterable[DocRow]) -> dict[tuple[str, int], str]:
        """See the protocol."""
        keys: dict[str, list[tuple[Any, ...]]] = {"message": [], "summary": [], "fact": []}
        for d in docs:
            where = (d.subject,) if d.kind == "fact" else (d.subject, d.conversation)
            keys[d.kind].append((d.doc, *self._head, *where, d.seq if d.kind == "message" else d.ref))
        found: dict[tuple[str, int], str] = {}
        for kind, wanted in keys.items():
            for number, text in self._driver.many(f"{kind}_text", wanted) if wanted else ():
                found[kind, number] = text
        return found

    def unembedded(self, embedder: str, *, limit: int) -> list[DocRow]:
        """See the protocol."""
        return [rows.doc(row) for row in self._run("unembedded", embedder=embedder, limit=max(0, limit))]

    def prefix(self, variant: str) -> tuple[str, str] | None:
        """See the protocol."""
        self._place()
        found = self._run("prefix", variant=variant)
        return (found[0][0], found[0][1]) if found else None

    def jobs(self) -> list[Job]:
        """See the protocol."""
        return [rows.job(row) for row in self._run("jobs_of_user")]

    def usage(self, since: str = "") -> list[UsageRow]:
        """See the protocol."""
        return [UsageRow(*row) for row in self._run("usage", since=since)]

    def prompts(self) -> list[PromptRow]:
        """See the protocol."""
        return [PromptRow(row[0], row[1], row[2], row[3], draft=bool(row[4])) for row in self._run("prompts")]

    def shown(self) -> list[ShownRow]:
        """See the protocol."""
        self._place()
        return [ShownRow(*row) for row in self._run("shown")]

    def consent(self) -> list[ConsentRow]:
        """See the protocol."""
        return [rows.consent(row) for row in self._run("consent")]

    def topics(self) -> list[tuple[str, str]]:
        """See the protocol."""
        return [(row[0], row[1]) for row in self._run("topics")]

    def at(self, subject: str | None, conversation: str | None) -> Self:
        """See the protocol."""
        return type(self)(self._driver, replace(self.scope, subject=subject, conversation=conversation))

    def stored(self, *, start_seq: int = 1, end_seq: int | None = None) -> list[MessageRow]:
        """See the protocol."""
        _, name = self._place()
        found = self._run("stored", start_seq=start_seq, end_seq=EVERYTHING if end_seq is None else end_seq)
        return [rows.stored(row, name) for row in found]

    def summary_rows(self) -> list[SummaryRow]:
        """See the protocol."""
        _, name = self._place()
        found = self._run("summary_rows")
        children = self._children(found)
        return [rows.summary_row(row, name, children) for row in found]

    def resting_on(self, start_seq: int, end_seq: int) -> list[tuple[str, str]]:
        """See the protocol."""
        self._place()
        return [(row[0], row[1]) for row in self._run("resting_on", start_seq=start_seq, end_seq=end_seq)]

    def keys(self) -> list[tuple[str, str, int, int]]:
        """See the protocol."""
        self._place()
        return [(row[0], row[1], row[2], row[3]) for row in self._run("idempotency_keys")]

    def endings(self) -> list[Derivation]:
        """See the protocol."""
        return [rows.derivation(row) for row in self._run("endings")]

    def readings(self) -> list[tuple[str, int, int]]:
        """See the protocol."""
        self._place()
        return [(row[0], row[1], row[2]) for row in self._run("readings")]

    def rebuilt(self) -> list[RebuiltRow]:
        """See the protocol."""
        self._place()
        return [rows.rebuilt(row) for row in self._run("rebuilt")]

    def news(self, after: int, *, limit: int) -> News:
        """See the protocol."""
        there = self._run("newest_event")
        if not there:
            return News(0, lost=after > 0)
        newest = there[0][3]
        if after and not self._run("oldest_event")[0][0] - 1 <= after <= newest:
            return News(newest, lost=True)
        found = self._run("events_after", after=after, limit=max(0, limit)) if after < newest else []
        return News(newest, tuple(rows.event(row, self._head) for row in found))

    def events_before(self, before: int | None, *, limit: int) -> list[Event]:
        """See the protocol."""
        below = EVERYTHING if before is None else before
        found = self._run("events_before", before=below, limit=max(0, limit))
        return [rows.event(row, self._head) for row in found]


def _where(partition: Partition) -> dict[str, Any]:
    return {"subject": partition.subject, "kind": partition.kind, "shared": int(partition.shared_only)}
