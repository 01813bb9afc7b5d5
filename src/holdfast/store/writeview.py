"""
One user's memory inside one transaction, in terms of named queries; and the log of what the transaction changed.

Nothing is computed in SQL: every value that is written was read and computed here, under the
transaction, so the same statements are legal on SQLite, PostgreSQL and Citus.
"""

from __future__ import annotations

import secrets
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import product
from typing import Self

from ..clock import new_id, to_ms
from ..errors import Conflict, NotFound
from ..scope import SELF, Scope
from ..types import WAITING, Candidate, Evidence, Job, Rejected, Story, StoryLine, Summary
from . import rows
from .changes import ERASED, REVISIONS, ChangeLog
from .port import Driver
from .readview import EVERYTHING, ReadView
from .segments import SEALED, SIZE, encode, pack_columns
from .values import (
    COLUMNS,
    END_OF_NAMES,
    SEPARATOR,
    ConsentRow,
    ContextStatsRow,
    ConversationRow,
    Derivation,
    DocRow,
    EpisodeRangeRow,
    ErasureRow,
    FactOwner,
    FactRow,
    ItemRow,
    MessageRow,
    PromptRow,
    RebuildRow,
    SubjectRow,
    SummaryRow,
    UsageRow,
    UseRow,
    UserRow,
)

OF_CONVERSATION = (
    "message",
    "idempotency",
    "coverage",
    "summary",
    "rejected",
    "episode_range",
    "prefix",
    "rebuild",
    "read_range",
    "context_stats",
    "item",
    "conversation",
)
MOVED = (*OF_CONVERSATION, "derivation", "evidence", "owned_doc", "owned_fact", "doc", "job", "event")
OF_USER = (
    *OF_CONVERSATION,
    "story",
    "fact",
    "evidence",
    "derivation",
    "doc",
    "segment",
    "vector",
    "job",
    "operation",
    "blocked_topic",
    "usage",
    "prompt",
    "provider_key",
    "event",
    "subject",
    "user",
)

SEALED_AT_ONCE = 8
"""Segments that one change may make."""
SEALING_LOOKS = 64
"""How often one change may read documents for segments; what it finds may be none, or not ready to be packed."""


class WriteView(ReadView):
    """One user's memory inside one transaction."""

    def __init__(self, driver: Driver, scope: Scope, changes: ChangeLog, owner: FactOwner | None = None) -> None:
        super().__init__(driver, scope, owner)
        self._changes = changes

    def at(self, subject: str | None, conversation: str | None) -> Self:
        """Return a view of the same transaction with another subject and conversation of the same user."""
        scope = replace(self.scope, subject=subject, conversation=conversation)
        return type(self)(self._driver, scope, self._changes, self._owner)

    def of_owner(self, owner: FactOwner) -> Self:
        """Return this view limited to the facts of one owner: of a conversation, or of the user."""
        return type(self)(self._driver, self.scope, self._changes, owner)

    @property
    def _here(self) -> tuple[str, str]:
        """Return the place of an event: ``""`` for the user as a whole."""
        return self.scope.subject or "", self.scope.conversation or ""

    def note_read(self, by: str, what: str) -> None:
        """Log that *by* read *what* earlier; a place that is gone since, or holds nothing yet, is not named."""
        named = self.scope.conversation is not None and self.conversation() is not None
        self._changes.note_read(by, self._here if named else ("", ""), what)

    def save_user(self, row: UserRow, now_ms: int) -> None:
        """Insert or update the counters."""
        self._run("save_user", next_doc=row.next_doc, version=row.version, epoch=row.epoch, created_at=now_ms)

    def save_conversation(self, row: ConversationRow) -> None:
        """Insert or update the scope's conversation, and list its subject among the user's."""
        subject, _ = self._place()
        if subject != SELF:
            self._run("note_subject", aliases="[]", created_at=row.created_at)
        self._run(
            "save_conversation",
            next_seq=row.next_seq,
            chunk_start=row.chunk_start,
            ended_seq=row.ended_seq,
            extracted_seq=row.extracted_seq,
            session=row.session,
            last_at=row.last_at,
            created_at=row.created_at,
            read_seq=row.read_seq,
            stated_seq=row.stated_seq,
            unread_turns=row.unread_turns,
            ahead_turns=row.ahead_turns,
            own_facts=row.own_facts,
        )

    def add_messages(self, rows_: Sequence[MessageRow]) -> None:
        """Insert messages into the scope's conversation."""
        head = (*self._head, *self._place())
        self._driver.many("add_message", [head + rows.message_columns(row) for row in rows_])
        if rows_:
            first, last = rows_[0].message.seq, rows_[-1].message.seq
            self._changes.note("message.added", self._here, first if first == last else f"{first}-{last}")
        for row in rows_:
            self._changes.count("message", row.message.role)

    def add_idempotency(self, key: str, digest: str, first_seq: int, last_seq: int, now_ms: int) -> None:
        """Remember a caller's key."""
        self._place()
        self._run("add_idempotency", key=key, digest=digest, first_seq=first_seq, last_seq=last_seq, created_at=now_ms)

    def add_docs(self, rows_: Sequence[DocRow]) -> None:
        """Insert documents with their words."""
        head = self._head
        self._driver.many("add_doc", [head + rows.doc_columns(row) for row in rows_])
        if any(row.kind == "fact" for row in rows_):
            self._changes.note_reindexed("fact")
        for place in {(row.subject, row.kind) for row in rows_ if row.doc % SIZE == 0}:
            self._seal(*place)

    def add_vectors(self, rows_: Iterable[tuple[DocRow, str, float, bytes]]) -> None:
        """Insert or replace ``(document, embedder, scale, int8 bytes)``; other embedders' vectors and removed docs go."""
        head = self._head
        given = {(d.subject, d.kind, d.doc): (embedder, scale, data) for d, embedder, scale, data in rows_}
        there = self._driver.many("doc_embedded", [head + key for key in given])
        add, mark, remove = [], [], []
        for subject, kind, doc, before in there:
            embedder, scale, data = given[subject, kind, doc]
            add.append((*head, subject, kind, embedder, doc, scale, data))
            mark.append((embedder, rows.signs(data), *head, subject, kind, doc))
            if before:
                self._changes.note_reindexed(kind)
            if before not in ("", embedder):
                remove.append((*head, subject, kind, before, doc))
        self._driver.many("add_vector", add)
        self._driver.many("mark_embedded", mark)
        self._driver.many("remove_vector", remove)
        for place in {key[:2] for key in given}:
            docs = sorted(doc for subject, kind, doc, _ in there if (subject, kind) == place)
            if self._unseal(*place, docs) or any(doc % SIZE == 0 for doc in docs):
                self._seal(*place)

    def _unseal(self, subject: str, kind: str, docs: Sequence[int]) -> bool:
        """Remove the segments that hold any of *docs*, which ascend; say whether there were some."""
        if kind not in SEALED or not docs:
            return False
        sealed = self._run("segment_ranges", subject=subject, kind=kind)
        hit = [first for first, last in sealed if bisect_left(docs, first) < bisect_right(docs, last)]
        self._driver.many("remove_segment", [(*self._head, subject, kind, first) for first in hit])
        return bool(hit)

    def _seal(self, subject: str, kind: str) -> None:
        """
        Pack documents that are in no segment, `SIZE` at a time; of the newest only whole segments.

        What is between the newest segments comes first, as what is left between older ones may never get packed.
        Documents whose vectors are by two embedders, or missing in part, wait: they are about to get them.
        """
        if kind not in SEALED:
            return
        place = {"subject": subject, "kind": kind}
        sealed = self._run("segment_ranges", **place)
        gaps = zip([1, *(last + 1 for _, last in sealed)], [*(first for first, _ in sealed), EVERYTHING], strict=True)
        to_make, looks = SEALED_AT_ONCE, SEALING_LOOKS
        for start, first in reversed(list(gaps)):
            begin = start
            while begin < first and to_make and looks:
                looks -= 1
                bounds = {"first": begin, "last": first - 1, "limit": SIZE}
                found = self._run("unsealed", separator=SEPARATOR, **bounds, **place)
                if not found or (first == EVERYTHING and len(found) < SIZE):
                    break
                *columns, embedded, terms = zip(*found, strict=True)
                end = found[-1][0] if len(found) == SIZE else first - 1
                if len(set(embedded)) == 1:
                    to_make -= 1
                    packed = pack_columns(dict(zip((*COLUMNS, "signs"), columns, strict=True)))
                    sums = {"docs": len(found), "terms": sum(terms), "embedder": embedded[0]}
                    self._run("add_segment", first_doc=begin, last_doc=end, data=encode(packed), **sums, **place)
                begin = end + 1

    def note_embedder(self, embedder: str) -> None:
        """Note that all documents of the user have vectors by *embedder*, or a job for them."""
        self._run("note_embedder", embedder=embedder)

    def remove_docs(self, subject: str, kind: str, docs: Sequence[int]) -> None:
        """Delete documents with their words and vectors."""
        if not docs:
            return
        head, gone = (*self._head, subject, kind), set(docs)
        there = self._driver.many("doc_embedded", [(*head, doc) for doc in sorted(gone)])
        self._driver.many("remove_vector", [(*head, by, doc) for _, _, doc, by in there if by])
        self._driver.many("remove_doc", [(*head, doc) for doc in sorted(gone)])
        self._changes.note_reindexed(kind)
        if self._unseal(subject, kind, sorted(gone)):
            self._seal(subject, kind)

    def fact_at(self, subject: str, category: str, slot_key: str, slot_value: str) -> FactRow | None:
        """Return the active fact at an address, whatever the scope's subject is."""
        address = {"category": category, "slot_key": slot_key, "slot_value": slot_value}
        found = self._facts_with_evidence(self._run("fact_at", about=subject, **address, **self._owners()))
        return found[0] if found else None

    def facts_in(self, subject: str, category: str) -> list[FactRow]:
        """Return the active facts of one subject and category, whatever the scope's subject is, by (key, value)."""
        return self._facts_with_evidence(self._run("facts_in", about=subject, category=category, **self._owners()))

    def all_facts_in(self, subject: str, category: str, *, evidence: bool = True) -> list[FactRow]:
        """Live and past facts of one subject and category, whatever the scope's subject is."""
        found = self._run("all_facts_in", about=subject, category=category, **self._owners())
        return self._facts_with_evidence(found) if evidence else [rows.fact(row, {}) for row in found]

    def last_stated_in(self, subject: str, category: str) -> int:
        """Return when the latest live or past fact of one subject and category was stated; 0 for none."""
        return int(self._run("last_stated_in", about=subject, category=category, **self._owners())[0][0] or 0)

    def add_fact(self, row: FactRow) -> None:
        """Insert a fact with its evidence; raises ``Conflict`` when its live address is taken."""
        self._run("add_fact", **rows.fact_columns(row))
        recorded_at = to_ms(row.fact.recorded_at)
        for evidence in row.fact.evidence:
            self.add_evidence(row.fact.subject, row.fact.id, evidence.home, evidence, recorded_at)
        self._changes.note_fact("fact.added", row.fact.id, row.fact.subject, self._here)

    def update_fact(self, row: FactRow) -> None:
        """Write every changeable column of an existing fact; evidence is left as it is."""
        if not self._run("update_fact", **rows.fact_columns(row)):
            raise NotFound(f"there is no fact {row.fact.id} about this subject to update")
        self._changes.note_end(row.fact.ended_because, row.fact.id, row.fact.subject, self._here)

    def save_uses(self, rows_: Sequence[UseRow]) -> None:
        """Store when and how often facts were used, and their strength; a fact that is gone is skipped."""
        head = self._head
        self._driver.many("save_uses", [(r.strength, r.last_used_at, r.uses, *head, r.subject, r.id) for r in rows_])

    def add_evidence(self, subject: str, fact_id: str, home: str, evidence: Evidence, now_ms: int) -> bool:
        """Attach one more quote; ``False`` when that very quote was there already."""
        added = self._run(
            "add_evidence",
            about=subject,
            fact=fact_id,
            home=home,
            conversation=evidence.conversation,
            seq=evidence.seq,
            start=evidence.start,
            stop=evidence.end,
            role=evidence.role,
            quote=evidence.quote,
            at=now_ms if evidence.at is None else to_ms(evidence.at),
            recorded_at=now_ms,
        )
        if added:
            self._changes.note_fact("fact.confirmed", fact_id, subject, self._here)
        return bool(added)

    def add_rejected(self, candidate: Candidate, reason: str, now_ms: int) -> None:
        """Keep a refused candidate of the scope's conversation; the same one twice is kept once."""
        self._place()
        self._run("add_rejected", reason=reason, recorded_at=now_ms, **rows.claim_columns(candidate))
        if reason == WAITING:
            self._changes.note("fact.waiting", self._here)

    def decide_rejected(self, one: Rejected, reason: str) -> None:
        """Change the reason of a candidate that was held back for the user."""
        here = self.at(one.home, one.conversation)
        here._run("decide_rejected", reason=reason, seq=one.candidate.seq, id=one.id)
        self._changes.note("fact.waiting", here._here)

    def add_summary(self, row: Summary, doc: int, covered: Sequence[int], *, live: bool = True) -> None:
        """
        Insert a summary with an edge to each of its children, and cover messages with it.
        ``live=False`` inserts an older version of its range.

        Raises ``Conflict`` when one of them is covered already, and writes nothing then.
        """
        subject, name = self._place()
        if covered:
            taken = self.covered(min(covered), max(covered))
            for seq in covered:
                if seq in taken:
                    raise Conflict(f"message {seq} is covered by summary {taken[seq]} already")
        self._run("add_summary", live=int(live), **rows.summary_columns(row, doc))
        if live:
            self._changes.note("summary.made", self._here, row.id)
            self._changes.count("summary", str(row.level))
        head = (*self._head, subject, name)
        self._driver.many("add_coverage", [(*head, seq, row.id) for seq in covered])
        self.add_derivations(
            Derivation("summary", row.id, "summary", subject, name, source=child) for child in row.children
        )

    def save_story(self, row: Story) -> None:
        """Write the story of a subject in place of the one before, with an edge to each summary that it rests on."""
        here = self.at(row.subject, None)
        here.remove_story()
        here._run("save_story", **rows.story_columns(row))
        found = dict.fromkeys(one for line in row.lines for one in line.sources)
        here.add_derivations(
            Derivation("story", row.id, "summary", row.subject, one.conversation, source=one.summary) for one in found
        )

    def remove_story(self) -> list[Story]:
        """Delete the story of the scope's subject with its edges, and return it if there was one."""
        found = self.stories()
        for row in found:
            self._run("remove_edges_of", child_kind="story", child=row.id)
            self._run("remove_story")
        return found

    def cut_story(self, gone: Callable[[StoryLine], bool]) -> list[StoryLine]:
        """Delete the lines of the subject's story that are *gone*, and return them; a story without lines goes as a whole."""
        cut: list[StoryLine] = []
        for row in self.at(self.scope.subject, None).stories():
            kept = tuple(line for line in row.lines if not gone(line))
            if len(kept) == len(row.lines):
                continue
            cut += [line for line in row.lines if gone(line)]
            here = self.at(row.subject, None)
            if kept:
                here.save_story(replace(row, lines=kept, version=row.version + 1))
            else:
                here.remove_story()
        return cut

    def add_episode_range(self, row: EpisodeRangeRow, now_ms: int) -> None:
        """Note that a range of the scope's conversation was searched for episodes."""
        self._place()
        place = {"start_seq": row.start_seq, "end_seq": row.end_seq}
        self._run("add_episode_range", found=row.found, source=row.source, created_at=now_ms, **place)
        self._changes.note("episode.added", self._here, f"{row.start_seq}-{row.end_seq}")

    def remove_episode_range(self, row: EpisodeRangeRow) -> None:
        """Delete the note of a searched range; the episodes themselves are facts and stay."""
        self._place()
        self._run("remove_episode_range", start_seq=row.start_seq, end_seq=row.end_seq)
        self._changes.note("episode.removed", self._here, f"{row.start_seq}-{row.end_seq}")

    def set_parent(self, children: Sequence[str], parent: str) -> None:
        """Set the summary that replaces lower ones of the scope's conversation in a context."""
        head = (*self._head, *self._place())
        self._driver.many("set_parent", [(parent, *head, child) for child in children])

    def add_derivations(self, rows_: Iterable[Derivation]) -> None:
        """Insert edges; the same edge twice is kept once."""
        head = self._head
        self._driver.many(
            "add_derivation",
            [
                (
                    *head,
                    d.child_kind,
                    d.child,
                    d.source_kind,
                    d.subject,
                    d.conversation,
                    d.start_seq,
                    d.end_seq,
                    d.source,
                )
                for d in rows_
            ],
        )

    def save_prefix(self, variant: str, sha256: str, manifest: str) -> None:
        """Remember the stable part of a context."""
        self._place()
        self._run("save_prefix", variant=variant, sha256=sha256, manifest=manifest)

    def want(self, kind: str, key: str, *, wanted: int, run_at_ms: int, now_ms: int, later: bool = True) -> None:
        """
        Order work for the scope's conversation (or user): one row per (kind, key), made or moved.
        ``wanted`` only rises, ``run_at`` is set as given while the row waits in its first attempt; not to a later time
        with ``later=False``.
        A running job keeps its lease and sees the new mark when it finishes; a dead or cancelled
        one stays as it is, with the new mark.
        """
        lane = {
            "kind": kind,
            "key": key,
            "subject": self.scope.subject or "",
            "conversation": self.scope.conversation or "",
        }
        if later and self._run("move_waiting_job", wanted=wanted, run_at=run_at_ms, **lane):
            return
        found = self._run("job_in_lane", **lane)
        if not found:
            job_id = new_id("job", now_ms)
            self._run("add_job", id=job_id, wanted=wanted, run_at=run_at_ms, created_at=now_ms, **lane)
            self._changes.note("job.queued", self._here, job_id)
            return
        job = rows.job(found[0])
        waits = job.state == "ready" and job.attempt == 0
        run_at_ms = run_at_ms if later else min(run_at_ms, job.run_at_ms)
        self._run("move_job", id=job.id, wanted=max(wanted, job.wanted), run_at=run_at_ms if waits else job.run_at_ms)

    def drop_waiting(self, kind: str) -> None:
        """Delete work of the scope's conversation that waits in its first attempt, as it has been done."""
        lane = {"subject": self.scope.subject or "", "conversation": self.scope.conversation or ""}
        for (job_id,) in self._run("remove_waiting_job", kind=kind, key="", **lane):
            self._changes.note("job.done", self._here, job_id)

    def _held(self, job: Job) -> Job | None:
        """Return the row of *job* while its fence is current, else ``None``."""
        if (job.org, job.user, job.bot) != self._head:
            return None
        found = self._run("job", id=job.id)
        now = rows.job(found[0]) if found else None
        return now if now and now.state == "running" and now.fence == job.fence else None

    def holds(self, job: Job) -> bool:
        """Whether *job*'s fence is still the current one; a worker must ask before it writes."""
        return self._held(job) is not None

    def renew(self, job: Job, lease_until_ms: int) -> bool:
        """Extend the lease; ``False`` when the fence was lost."""
        if not self._held(job):
            return False
        return bool(self._run("renew_job", id=job.id, fence=job.fence, lease_until=lease_until_ms))

    def finish(self, job: Job, now_ms: int) -> bool:
        """
        Delete the job, or make it ready again when more was wanted meanwhile; ``False`` (and nothing
        done) when the fence was lost.
        """
        now = self._held(job)
        if now is None:
            return False
        place = (job.subject, job.conversation)
        if now.wanted <= job.wanted:
            self._changes.note("job.done", place, job.id)
            return bool(self._run("remove_job", id=job.id, fence=job.fence))
        again = {"state": "ready", "attempt": 0, "run_at": now_ms, "reason": ""}
        self._changes.note("job.queued", place, job.id)
        return bool(self._run("put_back_job", id=job.id, fence=job.fence, **again))

    def save_consent(self, row: ConsentRow) -> None:
        """Insert or replace the user's choice; an active state leaves no row."""
        if row.state == "active":
            self._run("remove_consent", about=row.subject)
        else:
            self._run("save_consent", about=row.subject, state=row.state, since=row.since)
        self._changes.note("consent.changed", (row.subject, ""), row.state)

    def set_blocked_topic(self, subject: str, topic: str, *, blocked: bool, now_ms: int) -> None:
        """Add a topic that must not be remembered, or remove it from the list."""
        if blocked:
            self._run("block_topic", about=subject, topic=topic, since=now_ms)
        else:
            self._run("unblock_topic", about=subject, topic=topic)
        self._changes.note("consent.changed", (subject, ""))

    def ledger_key(self) -> str:
        """Return the key that hashes places, 64 hexadecimal digits; created when there is none yet."""
        if not self.known_ledger_key():
            self._run("add_ledger_key", key=secrets.token_hex(32))
        return self.known_ledger_key()

    def add_erasures(self, rows_: Sequence[ErasureRow]) -> None:
        """Add erasures to the ledger; a row whose id is there already is skipped."""
        for row in rows_:
            self._driver.run("add_erasure", rows.erased_columns(row))

    def add_usage(self, row: UsageRow) -> None:
        """Add counters to those of the same day, layer and model."""
        found = self._run("usage_at", day=row.day, layer=row.layer, model=row.model)
        self._run("save_usage", **asdict(row if not found else row + UsageRow(*found[0])))

    def remove_usage(self, before: str) -> None:
        """Delete the counters of the days before *before*."""
        self._run("remove_usage", before=before)

    def add_prompt(self, row: PromptRow) -> None:
        """Insert a version of a prompt."""
        values = asdict(row)
        percent = values.pop("percent")
        self._run("add_prompt", **values | {"draft": 100 + percent if percent < 100 else int(row.draft)})
        self._changes.note("prompt.changed", ("", ""), row.name)

    def remove_prompts(self, name: str, version: int) -> None:
        """Delete the versions of one prompt up to *version*."""
        self._run("remove_prompts", name=name, version=version)

    def add_context_stats(self, row: ContextStatsRow) -> None:
        """Insert the measurements of the context before a reply of the scope's conversation."""
        self._place()
        self._run("add_context_stats", **{name: getattr(row, name) for name in row.__slots__})

    def save_subject(self, row: SubjectRow) -> None:
        """Insert or replace the names of a subject."""
        aliases = rows.compact_json(row.aliases)
        self._run("save_subject", about=row.subject, name=row.name, aliases=aliases, created_at=row.created_at)
        self._changes.note("subject.changed", (row.subject, ""))

    def remove_subject(self, subject: str) -> None:
        """Remove the names of a subject that has no conversation."""
        self._run("remove_subject", about=subject)
        self._changes.blank_subject(subject)

    def move_fact(self, row: FactRow, into: str) -> None:
        """Move a fact without a document, with its quotes, to another subject."""
        key = {"about": row.fact.subject, "id": row.fact.id, "into": into}
        self._run("transfer_fact", **key)
        self._run("transfer_evidence_of", **key)
        self._changes.note_fact("fact.changed", row.fact.id, into, self._here)

    def move_conversations(self, into: str, names: Mapping[str, str]) -> None:
        """Move conversations of the scope's subject to another one; *names* gives each its name there."""
        subject = self.scope.subject or SELF
        for conversation, name in names.items():
            here = self.at(self.scope.subject, conversation)
            self.at(into, name)._run("note_subject", aliases="[]", created_at=0)
            for table in MOVED:
                here._run(f"transfer_{table}", into=into, name=name)
        self._run("transfer_vector", into=into)
        self._run("erase_segment")
        for place in product((subject, into), SEALED):
            self._seal(*place)
        for kind in REVISIONS:
            self._changes.note_reindexed(kind)

    def replaced_by(self, subject: str, fact_id: str) -> list[FactRow]:
        """Return past facts of a subject that *fact_id* replaced, by (valid_from, id)."""
        return self._facts_with_evidence(self._run("replaced_by", about=subject, id=fact_id))

    def rewrite_summary(self, row: SummaryRow) -> None:
        """
        Write an existing summary's ``live``, ``stale``, ``parent`` and document.

        Level 1 that goes live covers its range; one that stops being live leaves it.
        """
        head, summary = (*self._head, *self._place()), row.summary
        state = {"live": int(row.live), "stale": int(summary.stale), "parent": summary.parent, "doc": row.doc}
        self._run("rewrite_summary", id=summary.id, **state)
        kind = "removed" if not row.live else "stale" if summary.stale else "made"
        self._changes.note(f"summary.{kind}", self._here, summary.id)
        if summary.level == 1:
            self._run("remove_coverage", start_seq=summary.start_seq, end_seq=summary.end_seq, id=summary.id)
            covered = range(summary.start_seq, summary.end_seq + 1) if row.live else ()
            self._driver.many("add_coverage", [(*head, seq, summary.id) for seq in covered])

    def add_read_range(self, model: str, start_seq: int, end_seq: int) -> None:
        """Note that a model read a range for facts; what joins an earlier one becomes one with it."""
        self._place()
        before = self._run("read_range_before", model=model, start_seq=start_seq, before=start_seq - 1)
        if before:
            start_seq, end_seq = before[0][0], max(before[0][1], end_seq)
        self._run("add_read_range", model=model, start_seq=start_seq, end_seq=end_seq)

    def add_rebuild(self, row: RebuildRow) -> None:
        """Note that a range of the scope's conversation was rebuilt."""
        self._place()
        self._run("add_rebuild", **rows.rebuilt_columns(row))

    # Removing

    def rewrite_message(self, row: MessageRow) -> None:
        """Write every column of an existing message but its number and times."""
        self._place()
        self._run("rewrite_message", **rows.rewritten(row))
        kind = "message.deleted" if row.message.role == "erased" else "message.edited"
        self._changes.note(kind, self._here, row.message.seq)

    def annotate_message(self, row: MessageRow) -> None:
        """Write what callers add to the ``meta`` of an existing message, whose words stay."""
        self._place()
        self._run("rewrite_message", **rows.rewritten(row))

    def rate_message(self, row: MessageRow, score: float) -> None:
        """Write the columns of a message that got a rating, which its ``meta`` holds."""
        self.annotate_message(row)
        self._changes.note("message.rated", self._here, row.message.seq)
        self._changes.count("rating", "up" if score > 0.5 else "down" if score < 0.5 else "even")

    def remove_fact(self, row: FactRow) -> None:
        """Delete a fact with its evidence and edges; its document is not touched."""
        key = {"about": row.fact.subject, "id": row.fact.id}
        self._run("remove_fact", **key)
        self._run("remove_evidence_of", **key)
        for kind in ("fact", "end"):
            self._run("remove_edges_of", child_kind=kind, child=row.fact.id)
        self._changes.note_fact("fact.forgotten", row.fact.id, row.fact.subject, self._here)

    def remove_evidence(self, subject: str, fact_id: str, evidence: Evidence) -> None:
        """Delete one quote, and the edge to its message when the fact has no other quote of it."""
        place = {"home": evidence.home, "conversation": evidence.conversation, "seq": evidence.seq}
        self._run("remove_evidence", about=subject, fact=fact_id, start=evidence.start, **place)
        self._changes.note_reindexed("fact")
        if not self._run("evidence_at", about=subject, fact=fact_id, **place):
            self._run("remove_edge", child_kind="fact", child=fact_id, **place)

    def remove_ending(self, fact_id: str, conversation: str, seq: int) -> None:
        """Delete the edge that says that a message of the scope's subject ended a fact."""
        place = {"home": self.scope.subject, "conversation": conversation, "seq": seq}
        self._run("remove_edge", child_kind="end", child=fact_id, **place)

    def remove_summaries(self, rows_: Sequence[Summary]) -> list[StoryLine]:
        """
        Delete summaries of the scope's conversation with their coverage and edges, and the lines of the subject's story that rest on
        them, which are returned.
        """
        self._place()
        ids = {row.id for row in rows_}
        cut = self.cut_story(lambda line: any(one.summary in ids for one in line.sources)) if ids else []
        for row in rows_:
            self._run("remove_summary", id=row.id)
            if row.level == 1:
                self._run("remove_coverage", start_seq=row.start_seq, end_seq=row.end_seq, id=row.id)
            self._run("remove_edges_of", child_kind="summary", child=row.id)
            self._run("remove_edges_to_summary", id=row.id)
            self._changes.note("summary.removed", self._here, row.id)
        return cut

    def save_item(self, row: ItemRow) -> None:
        """Insert an item of the scope's conversation, or give an existing one its new value."""
        self._place()
        self._run("save_item", **asdict(row))

    def remove_items(self, space: str, first: str = "", stop: str = END_OF_NAMES) -> int:
        """Delete the items of a space in the scope's conversation, or a range of their names; return how many."""
        self._place()
        return len(self._run("remove_items", space=space, first=first, stop=stop))

    def remove_expired_items(self, space: str, now_ms: int) -> None:
        """Delete the items of a space in the scope's conversation that have expired."""
        self._place()
        self._run("remove_expired_items", space=space, now_ms=now_ms)

    def clear_items(self) -> int:
        """Delete all items of the scope's conversation; return how many."""
        self._place()
        return len(self._run("clear_item"))

    def remove_rejected(self, start_seq: int, end_seq: int) -> int:
        """Delete the rejected candidates of a range of the scope's conversation; return how many."""
        self._place()
        return len(self._run("remove_rejected", start_seq=start_seq, end_seq=end_seq))

    def remove_all_rejected(self) -> int:
        """Delete all rejected candidates in the conversations the scope can see; return how many."""
        return len(self._run("remove_all_rejected"))

    def forget_idempotency_digests(self, start_seq: int, end_seq: int) -> None:
        """Delete the digests under callers' keys of a range; the keys stay used."""
        self._place()
        self._run("forget_idempotency_digests", start_seq=start_seq, end_seq=end_seq)

    def remove_prefixes(self) -> None:
        """Delete the stored prefixes of the contexts of all conversations."""
        self._run("remove_prefixes")

    def release_jobs(self, now_ms: int) -> None:
        """Release the user's running jobs from their workers; they are due again."""
        self._run("release_jobs", run_at=now_ms)

    def remove_jobs(self) -> None:
        """Delete the jobs of the scope: of one conversation, of one subject, or all."""
        self._run("remove_jobs")

    def remove_conversation(self) -> None:
        """Delete every row of the scope's conversation; documents, facts and edges of facts are not touched."""
        self._place()
        for table in OF_CONVERSATION:
            self._run(f"clear_{table}")
        self.remove_jobs()
        self._run("blank_events_in")
        self._changes.forget(self._here)
        self._changes.note(ERASED, ("", ""), "conversation")

    def forget_subject(self) -> None:
        """Blank the scope's subject in the events; their numbers stay."""
        self._run("blank_events_about", about=self.scope.subject)
        self._changes.blank_subject(self.scope.subject or "")
        self._changes.note(ERASED, ("", ""), "subject")

    def remove_user(self) -> None:
        """Delete every row of the user in every table but the choices about memory."""
        for table in OF_USER:
            self._run(f"erase_{table}")
        self._changes.note_user_erased()

    def count_rows(self) -> dict[str, int]:
        """Count the user's rows in each table."""
        return {row[0]: row[1] for row in self._run("count_rows")}
