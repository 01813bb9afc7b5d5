"""
The narrow waist: what the stages ask of a database, and all that a new store must offer.

There are two doors to memory, ``read`` and ``write``.  Both take a `Scope` first and hand the
caller's function a view of that one user: a `ReadView` over one consistent snapshot, or a
`WriteView` inside one transaction that is on disk when ``write`` returns.  A view cannot name
anybody else.  The third door, the job calls, looks across users and returns ids, never text.

The function given to ``write`` may run on another thread, together with others in one commit, and
again from the start after a conflict: it must touch nothing but the view.  If it raises, what it
wrote is undone and the error reaches the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, Self, TypeVar

from ..reports import Finding
from ..scope import Scope
from ..types import Candidate, Evidence, Job, Message, Rejected, Summary
from .access import KeyLooks, KeyRow
from .events import EventLooks, EventReads, EventWrites
from .health import HealthLooks
from .ledger import LedgerLooks, LedgerWrites
from .models import ModelLooks, ModelReads, ModelWrites
from .remade import RemadeReads, RemadeWrites
from .values import (
    ConsentRow,
    ConversationRow,
    Derivation,
    DocRow,
    EpisodesRow,
    FactRow,
    MessageRow,
    Partition,
    RebuiltRow,
    Scrubbed,
    Side,
    SummaryRow,
    UseRow,
    UserRow,
)
from .work import JobCalls, WorkLooks

__all__ = [
    "ConsentRow",
    "ConversationRow",
    "Derivation",
    "DocRow",
    "EpisodesRow",
    "FactRow",
    "KeyRow",
    "MessageRow",
    "Partition",
    "ReadView",
    "RebuiltRow",
    "Scrubbed",
    "Side",
    "Store",
    "SummaryRow",
    "UseRow",
    "UserRow",
    "WriteView",
]
T = TypeVar("T")


class ReadView(EventReads, ModelReads, RemadeReads, Protocol):
    """One user's memory as of one moment.  Lists come oldest first unless said otherwise."""

    scope: Scope

    def user(self) -> UserRow:
        """The counters; zeros for somebody who has no memory yet."""

    def conversation(self) -> ConversationRow | None:
        """The scope's conversation, or ``None`` before its first message."""

    def conversations(self) -> list[ConversationRow]:
        """All of the user's conversations the scope can see (its subject, or all), by name."""

    def messages(self, *, start_seq: int = 1, end_seq: int | None = None, limit: int | None = None) -> list[Message]:
        """
        Messages ``start_seq`` to ``end_seq`` of the scope's conversation, at most *limit* from the start;
        one that was erased leaves a gap in the numbers.
        """

    def idempotency(self, key: str) -> tuple[str, int, int] | None:
        """``(digest, first_seq, last_seq)`` stored under *key* in this conversation."""

    def facts(self, *, category: str | None = None, kind: str | None = None, evidence: bool = True) -> list[FactRow]:
        """
        The live facts that the scope may see, by (subject, category, key, value).

        A scope without a subject sees all.  ``self`` sees facts about the user and those about
        others that were said in a conversation about no subject in particular.  Any other subject
        sees its own facts and the user's.  With ``evidence=False`` the facts come without their
        quotes, which is half the work.
        """

    def facts_ever(self, *, category: str | None = None, key: str | None = None) -> list[FactRow]:
        """Live and past facts that the scope may see, by (valid_from, recorded_at)."""

    def fact(self, fact_id: str) -> FactRow | None:
        """One fact that the scope may see, live or past."""

    def expired(self, now_ms: int) -> set[str]:
        """Ids of the user's live facts, of all subjects, whose own words set an end that has passed."""

    def count_facts(self) -> int:
        """How many live facts the user has, of all subjects."""

    def count_statements(self) -> int:
        """How many statements and episodes were ever learned of the user, of all subjects."""

    def statements(self, subject: str) -> list[FactRow]:
        """
        Statements about *subject* that the scope may see and that stand, or stand in another: by number of document.

        Live, archived and merged ones, with their quotes.
        """

    def uses(self, fact_ids: Sequence[str]) -> list[UseRow]:
        """How often and when facts of the user were used, of those among *fact_ids* that are there."""

    def past_facts_of(self, messages: Iterable[tuple[str, str, int]]) -> list[tuple[tuple[str, str, int], str]]:
        """``(message, fact id)`` of past facts that rest on messages, each (subject, conversation, number)."""

    def rejected(self, *, limit: int = 100) -> list[Rejected]:
        """The newest refused candidates of the scope's conversation, or of all it can see."""

    def summaries(self, *, level: int | None = None, live: bool = True) -> list[Summary]:
        """Summaries of the scope's conversation by (start_seq, level)."""

    def episode_ranges(self) -> list[EpisodesRow]:
        """The ranges of the scope's conversation whose episodes were asked for, by start."""

    def covered(self, start_seq: int, end_seq: int) -> dict[int, str]:
        """``{seq: summary id}`` for covered messages of a range of the scope's conversation."""

    def partitions(self, kinds: Sequence[str]) -> list[Partition]:
        """Where a search in this scope may look; messages and summaries never cross subjects."""

    def docs(self, partition: Partition) -> list[DocRow]:
        """Every document of a partition, by number."""

    def columns(self, partition: Partition, *, signs_of: str = "") -> dict[str, tuple[Any, ...]]:
        """
        The same documents as one tuple per name in `values.COLUMNS`, several times faster than `docs`.
        With *signs_of* an embedder there are ``signs``, too: a bit for each number of its vector, 1 from
        0 upwards, the first in the highest bit; ``None`` where the current vector is not by it.
        """

    def postings(self, partition: Partition, terms: Sequence[str]) -> list[tuple[str, int, int]]:
        """``(term, doc, tf)`` for the given terms, by (term, doc)."""

    def vectors(self, partition: Partition, embedder: str) -> list[tuple[int, float, bytes]]:
        """``(doc, scale, int8 bytes)`` made by *embedder*, by number."""

    def vectors_of(self, partition: Partition, embedder: str, docs: Iterable[int]) -> list[tuple[int, float, bytes]]:
        """Those of `vectors` that belong to the given documents, in their order."""

    def texts(self, docs: Iterable[DocRow]) -> dict[tuple[str, int], str]:
        """``{(kind, doc): text}`` of documents: a message's content, a fact's or summary's text."""

    def unembedded(self, embedder: str, *, limit: int) -> list[DocRow]:
        """Documents of any subject whose current vector is not by *embedder*, oldest first."""

    def prefix(self, variant: str) -> tuple[str, str] | None:
        """``(sha256, manifest)`` of the last context of this conversation and shape."""

    def consent(self) -> list[ConsentRow]:
        """What the user chose, for each subject that the scope can see and for all (``""``)."""

    def topics(self) -> list[tuple[str, str]]:
        """``(subject, topic)`` of what shall never be remembered; subject ``""`` stands for all."""

    def at(self, subject: str | None, conversation: str | None) -> Self:
        """The same moment (or transaction), seen from elsewhere in the same user's memory."""

    def stored(self, *, start_seq: int = 1, end_seq: int | None = None) -> list[MessageRow]:
        """Messages of the scope's conversation with their columns, those that were erased among them."""

    def summary_rows(self) -> list[SummaryRow]:
        """All summaries of the scope's conversation, older versions among them, by (start_seq, level)."""

    def resting_on(self, start_seq: int, end_seq: int) -> list[tuple[str, str]]:
        """``(child kind, child)`` of what rests on a range of the scope's conversation, by kind and id."""

    def keys(self) -> list[tuple[str, str, int, int]]:
        """``(key, digest, first_seq, last_seq)`` of the callers' keys in the scope's conversation."""

    def endings(self) -> list[Derivation]:
        """Which messages ended facts of the user."""


class WriteView(ReadView, EventWrites, ModelWrites, RemadeWrites, LedgerWrites, Protocol):
    """The same user, inside one transaction."""

    def save_user(self, row: UserRow, now_ms: int) -> None:
        """Insert or update the counters."""

    def save_conversation(self, row: ConversationRow) -> None:
        """Insert or update the scope's conversation."""

    def add_messages(self, rows: Sequence[MessageRow]) -> None:
        """Insert messages into the scope's conversation."""

    def add_idempotency(self, key: str, digest: str, first_seq: int, last_seq: int, now_ms: int) -> None:
        """Remember a caller's key."""

    def add_docs(self, rows: Sequence[DocRow]) -> None:
        """Insert documents."""

    def add_postings(self, rows: Iterable[tuple[str, str, str, int, int]]) -> None:
        """Insert ``(subject, kind, term, doc, tf)``."""

    def add_vectors(self, rows: Iterable[tuple[DocRow, str, float, bytes]]) -> None:
        """Insert or replace ``(document, embedder, scale, int8 bytes)``; other embedders' vectors and removed docs go."""

    def note_embedder(self, embedder: str) -> None:
        """Remember that all documents of the user have, or have been ordered, vectors by *embedder*."""

    def remove_docs(self, subject: str, kind: str, docs: Sequence[int]) -> None:
        """Delete documents with their postings and vectors."""

    def fact_at(self, subject: str, category: str, slot_key: str, slot_value: str) -> FactRow | None:
        """The live fact at an address, whatever the scope's subject is."""

    def facts_in(self, subject: str, category: str) -> list[FactRow]:
        """The live facts of one subject and category, whatever the scope's subject is, by (key, value)."""

    def history_in(self, subject: str, category: str) -> list[FactRow]:
        """Live and past facts of one subject and category, whatever the scope's subject is."""

    def add_fact(self, row: FactRow) -> None:
        """Insert a fact with its evidence; raises ``Conflict`` when its live address is taken."""

    def update_fact(self, row: FactRow) -> None:
        """Write every changeable column of an existing fact; evidence is left as it is."""

    def save_uses(self, rows: Sequence[UseRow]) -> None:
        """Write how often, when, and with what strength facts were used; one that is gone is passed over."""

    def add_evidence(self, subject: str, fact_id: str, home: str, evidence: Evidence, now_ms: int) -> bool:
        """Attach one more quote; ``False`` when that very quote was there already."""

    def add_rejected(self, candidate: Candidate, reason: str, now_ms: int) -> None:
        """Keep a refused candidate of the scope's conversation; the same one twice is kept once."""

    def add_summary(self, row: Summary, doc: int, covered: Sequence[int], *, live: bool = True) -> None:
        """
        Insert a summary with an edge to each of its children, and cover messages with it.
        ``live=False`` inserts an older version of its range.

        Raises ``Conflict`` when one of them is covered already, and writes nothing then.
        """

    def add_episodes(self, row: EpisodesRow, now_ms: int) -> None:
        """Note that a range of the scope's conversation was asked for episodes, or asked again."""

    def remove_episodes(self, row: EpisodesRow) -> None:
        """Forget that a range was asked; the episodes themselves are facts and are not touched."""

    def set_parent(self, children: Sequence[str], parent: str) -> None:
        """Let *parent* stand in for summaries of the scope's conversation."""

    def add_derivations(self, rows: Iterable[Derivation]) -> None:
        """Insert edges; the same edge twice is kept once."""

    def save_prefix(self, variant: str, sha256: str, manifest: str) -> None:
        """Remember the stable part of a context."""

    def want(self, kind: str, key: str, *, wanted: int, run_at_ms: int, now_ms: int) -> None:
        """
        Order work for the scope's conversation (or user): one row per (kind, key), made or moved.
        ``wanted`` only rises, ``run_at`` is set as given while the row waits in its first attempt.
        A running job keeps its lease and sees the new mark when it finishes; a dead or cancelled
        one stays as it is, with the new mark.
        """

    def holds(self, job: Job) -> bool:
        """Whether *job*'s fence is still the current one; a worker must ask before it writes."""

    def renew(self, job: Job, lease_until_ms: int) -> bool:
        """Extend the lease; ``False`` when the fence was lost."""

    def finish(self, job: Job, now_ms: int) -> bool:
        """
        Delete the job, or make it ready again when more was wanted meanwhile; ``False`` (and nothing
        done) when the fence was lost.
        """

    def save_consent(self, row: ConsentRow) -> None:
        """Insert or replace what the user chose; an active state leaves no row."""

    def set_topic(self, subject: str, topic: str, *, never: bool, now_ms: int) -> None:
        """Add a topic that shall never be remembered, or take it back."""

    def rewrite_message(self, row: MessageRow) -> None:
        """Write every column of an existing message but its number and times."""

    def replaced_by(self, subject: str, fact_id: str) -> list[FactRow]:
        """Past facts of a subject that name *fact_id* as what replaced them, by (valid_from, id)."""

    def remove_fact(self, row: FactRow) -> None:
        """Delete a fact with its evidence and edges; its document is not touched."""

    def remove_evidence(self, subject: str, fact_id: str, evidence: Evidence) -> None:
        """Delete one quote, and the edge to its message when no other quote of the fact stands there."""

    def remove_ending(self, fact_id: str, conversation: str, seq: int) -> None:
        """Delete the edge that says that a message of the scope's subject ended a fact."""

    def remove_summaries(self, rows: Sequence[Summary]) -> None:
        """Delete summaries of the scope's conversation with their coverage and edges."""

    def remove_rejected(self, start_seq: int, end_seq: int) -> int:
        """Delete what was refused of a range of the scope's conversation; how many."""

    def remove_all_rejected(self) -> int:
        """Delete everything that was refused in the conversations the scope can see; how many."""

    def forget_bodies(self, start_seq: int, end_seq: int) -> None:
        """Delete the digests under callers' keys of a range; the keys stay used."""

    def remove_prefixes(self) -> None:
        """Delete what is remembered of the contexts of all conversations."""

    def release_jobs(self, now_ms: int) -> None:
        """Take the user's running jobs from their workers; they are due again."""

    def remove_jobs(self) -> None:
        """Delete the jobs of the scope: of one conversation, of one subject, or all."""

    def remove_conversation(self) -> None:
        """Delete every row of the scope's conversation; documents, facts and edges of facts are not touched."""

    def remove_user(self) -> None:
        """Delete every row of the user in every table but what was chosen about memory."""

    def count_rows(self) -> dict[str, int]:
        """Rows of the user per table."""


class Store(EventLooks, ModelLooks, KeyLooks, LedgerLooks, JobCalls, WorkLooks, HealthLooks, Protocol):
    """A database that holds memory.  Safe to call from any thread."""

    def read(self, scope: Scope, work: Callable[[ReadView], T]) -> T:
        """Run *work* over one snapshot of the scope's user."""

    def write(self, scope: Scope, work: Callable[[WriteView], T]) -> T:
        """Run *work* in one transaction; durable when this returns."""

    def users_embedded_otherwise(self, embedder: str, *, limit: int = 100) -> list[tuple[str, str, str]]:
        """``(org, user, bot)`` of users last noted with another embedder, and without an ``embed`` job of any state."""

    def users(self, *, limit: int = 1000, after: tuple[str, str, str] | None = None) -> list[tuple[str, str, str]]:
        """``(org, user, bot)`` of everybody with a memory, by key, for operators and checks."""

    def check(self) -> list[Finding]:
        """Every broken invariant; an empty list means that the store is sound."""

    def stats(self) -> Mapping[str, int]:
        """Rows per table and bytes on disk."""

    def scrub(self, traces: Sequence[bytes]) -> Scrubbed:
        """Overwrite what deleted rows left behind, and look whether any of *traces* still stands in the bytes."""

    def backup(self, path: str) -> None:
        """Copy the whole store to *path* while it is in use."""

    def close(self) -> None:
        """Finish what was accepted and let go of the file; calls after it raise ``StoreClosed``."""
