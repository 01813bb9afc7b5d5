"""
One user's memory inside one transaction, in terms of named queries.

Nothing is computed in SQL: every value that is written was read and computed here, under the
transaction, so the same statements are legal on SQLite, PostgreSQL and Citus.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Self

from ..clock import new_id, to_ms
from ..errors import Conflict, NotFound
from ..scope import Scope
from ..types import Candidate, Evidence, Job, Summary
from . import rows
from .protocol import ConversationRow, Derivation, DocRow, EpisodesRow, FactRow, MessageRow, UseRow, UserRow
from .readview import Driver, SqlReadView
from .told import Told


class SqlWriteView(SqlReadView):
    """See `holdfast.store.protocol.WriteView`; what it changes it notes in *told*."""

    def __init__(self, driver: Driver, scope: Scope, told: Told) -> None:
        super().__init__(driver, scope)
        self._told = told

    def at(self, subject: str | None, conversation: str | None) -> Self:
        """See the protocol."""
        return type(self)(self._driver, replace(self.scope, subject=subject, conversation=conversation), self._told)

    @property
    def _here(self) -> tuple[str, str]:
        """Where things happen: ``""`` for the user as a whole."""
        return self.scope.subject or "", self.scope.conversation or ""

    def save_user(self, row: UserRow, now_ms: int) -> None:
        """See the protocol."""
        self._run("save_user", next_doc=row.next_doc, version=row.version, epoch=row.epoch, created_at=now_ms)

    def save_conversation(self, row: ConversationRow) -> None:
        """See the protocol."""
        self._place()
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
        )

    def add_messages(self, rows_: Sequence[MessageRow]) -> None:
        """See the protocol."""
        head = (*self._head, *self._place())
        self._driver.many("add_message", [head + rows.message_columns(row) for row in rows_])
        if rows_:
            first, last = rows_[0].message.seq, rows_[-1].message.seq
            self._told.note("message.added", self._here, first if first == last else f"{first}-{last}")
        for row in rows_:
            self._told.count("message", row.message.role)

    def add_idempotency(self, key: str, digest: str, first_seq: int, last_seq: int, now_ms: int) -> None:
        """See the protocol."""
        self._place()
        self._run("add_idempotency", key=key, digest=digest, first_seq=first_seq, last_seq=last_seq, created_at=now_ms)

    def add_docs(self, rows_: Sequence[DocRow]) -> None:
        """See the protocol."""
        head = self._head
        self._driver.many("add_doc", [head + rows.doc_columns(row) for row in rows_])

    def add_postings(self, rows_: Iterable[tuple[str, str, str, int, int]]) -> None:
        """See the protocol."""
        head = self._head
        by_term = sorted(rows_, key=itemgetter(2))  # as the table is ordered: neighbours share a page
        self._driver.many("add_posting", [head + row for row in by_term])

    def add_vectors(self, rows_: Iterable[tuple[DocRow, str, float, bytes]]) -> None:
        """See the protocol."""
        head = self._head
        given = {(d.subject, d.kind, d.doc): (embedder, scale, data) for d, embedder, scale, data in rows_}
        there = self._driver.many("doc_embedded", [head + key for key in given])
        add, mark, remove = [], [], []
        for subject, kind, doc, before in there:
            embedder, scale, data = given[subject, kind, doc]
            add.append((*head, subject, kind, embedder, doc, scale, data))
            mark.append((embedder, rows.signs(data), *head, subject, kind, doc))
            if before not in ("", embedder):
                remove.append((*head, subject, kind, before, doc))
        self._driver.many("add_vector", add)
        self._driver.many("mark_embedded", mark)
        self._driver.many("remove_vector", remove)

    def note_embedder(self, embedder: str) -> None:
        """See the protocol."""
        self._run("note_embedder", embedder=embedder)

    def remove_docs(self, subject: str, kind: str, docs: Sequence[int]) -> None:
        """See the protocol."""
        if not docs:
            return
        head, gone = (*self._head, subject, kind), set(docs)
        there = self._driver.many("doc_embedded", [(*head, doc) for doc in sorted(gone)])
        terms = self._run("terms_of_docs", subject=subject, kind=kind, first=min(gone), last=max(gone))
        self._driver.many("remove_posting", [(*head, term, doc) for term, doc in terms if doc in gone])
        self._driver.many("remove_vector", [(*head, by, doc) for _, _, doc, by in there if by])
        self._driver.many("remove_doc", [(*head, doc) for doc in sorted(gone)])

    def fact_at(self, subject: str, category: str, slot_key: str, slot_value: str) -> FactRow | None:
        """See the protocol."""
        address = {"category": category, "slot_key": slot_key, "slot_value": slot_value}
        found = self._facts_with_evidence(self._run("fact_at", about=subject, **address))
        return found[0] if found else None

    def facts_in(self, subject: str, category: str) -> list[FactRow]:
        """See the protocol."""
        return self._facts_with_evidence(self._run("facts_in", about=subject, category=category))

    def history_in(self, subject: str, category: str) -> list[FactRow]:
        """See the protocol."""
        return self._facts_with_evidence(self._run("history_in", about=subject, category=category))

    def add_fact(self, row: FactRow) -> None:
        """See the protocol."""
        self._run("add_fact", **rows.fact_columns(row))
        recorded_at = to_ms(row.fact.recorded_at)
        for evidence in row.fact.evidence:
            self.add_evidence(row.fact.subject, row.fact.id, evidence.home, evidence, recorded_at)
        self._told.fact("fact.added", row.fact.id, row.fact.subject, self._here)

    def update_fact(self, row: FactRow) -> None:
        """See the protocol."""
        if not self._run("update_fact", **rows.fact_columns(row)):
            raise NotFound(f"there is no fact {row.fact.id} about this subject to update")
        self._told.ended(row.fact.ended_because, row.fact.id, row.fact.subject, self._here)

    def save_uses(self, rows_: Sequence[UseRow]) -> None:
        """See the protocol."""
        head = self._head
        self._driver.many("save_uses", [(r.strength, r.last_used_at, r.uses, *head, r.subject, r.id) for r in rows_])

    def add_evidence(self, subject: str, fact_id: str, home: str, evidence: Evidence, now_ms: int) -> bool:
        """See the protocol."""
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
            self._told.fact("fact.confirmed", fact_id, subject, self._here)
        return bool(added)

    def add_rejected(self, candidate: Candidate, reason: str, now_ms: int) -> None:
        """See the protocol."""
        self._place()
        self._run("add_rejected", reason=reason, recorded_at=now_ms, **rows.claim_columns(candidate))

    def add_summary(self, row: Summary, doc: int, covered: Sequence[int], *, live: bool = True) -> None:
        """See the protocol."""
        subject, name = self._place()
        if covered:
            taken = self.covered(min(covered), max(covered))
            for seq in covered:
                if seq in taken:
                    raise Conflict(f"message {seq} is covered by summary {taken[seq]} already")
        self._run("add_summary", live=int(live), **rows.summary_columns(row, doc))
        if live:
            self._told.note("summary.made", self._here, row.id)
            self._told.count("summary", str(row.level))
        head = (*self._head, subject, name)
        self._driver.many("add_coverage", [(*head, seq, row.id) for seq in covered])
        self.add_derivations(
            Derivation("summary", row.id, "summary", subject, name, source=child) for child in row.children
        )

    def add_episodes(self, row: EpisodesRow, now_ms: int) -> None:
        """See the protocol."""
        self._place()
        place = {"start_seq": row.start_seq, "end_seq": row.end_seq}
        self._run("add_episodes", found=row.found, source=row.source, created_at=now_ms, **place)
        self._told.note("episode.added", self._here, f"{row.start_seq}-{row.end_seq}")

    def remove_episodes(self, row: EpisodesRow) -> None:
        """See the protocol."""
        self._place()
        self._run("remove_episodes", start_seq=row.start_seq, end_seq=row.end_seq)
        self._told.note("episode.removed", self._here, f"{row.start_seq}-{row.end_seq}")

    def set_parent(self, children: Sequence[str], parent: str) -> None:
        """See the protocol."""
        head = (*self._head, *self._place())
        self._driver.many("set_parent", [(parent, *head, child) for child in children])

    def add_derivations(self, rows_: Iterable[Derivation]) -> None:
        """See the protocol."""
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
        """See the protocol."""
        self._place()
        self._run("save_prefix", variant=variant, sha256=sha256, manifest=manifest)

    def want(self, kind: str, key: str, *, wanted: int, run_at_ms: int, now_ms: int) -> None:
        """See the protocol."""
        lane = {
            "kind": kind,
            "key": key,
            "subject": self.scope.subject or "",
            "conversation": self.scope.conversation or "",
        }
        if self._run("move_waiting_job", wanted=wanted, run_at=run_at_ms, **lane):
            return
        found = self._run("job_in_lane", **lane)
        if not found:
            job_id = new_id("job", now_ms)
            self._run("add_job", id=job_id, wanted=wanted, run_at=run_at_ms, created_at=now_ms, **lane)
            self._told.note("job.queued", self._here, job_id)
            return
        job = rows.job(found[0])
        waits = job.state == "ready" and job.attempt == 0
        self._run("move_job", id=job.id, wanted=max(wanted, job.wanted), run_at=run_at_ms if waits else job.run_at_ms)

    def _held(self, job: Job) -> Job | None:
        """The row of *job* while its fence is current, else ``None``."""
        if (job.org, job.user, job.bot) != self._head:
            return None
        found = self._run("job", id=job.id)
        now = rows.job(found[0]) if found else None
        return now if now and now.state == "running" and now.fence == job.fence else None

    def holds(self, job: Job) -> bool:
        """See the protocol."""
        return self._held(job) is not None

    def renew(self, job: Job, lease_until_ms: int) -> bool:
        """See the protocol."""
        if not self._held(job):
            return False
        return bool(self._run("renew_job", id=job.id, fence=job.fence, lease_until=lease_until_ms))

    def finish(self, job: Job, now_ms: int) -> bool:
        """See the protocol."""
        now = self._held(job)
        if now is None:
            return False
        place = (job.subject, job.conversation)
        if now.wanted <= job.wanted:
            self._told.note("job.done", place, job.id)
            return bool(self._run("remove_job", id=job.id, fence=job.fence))
        again = {"state": "ready", "attempt": 0, "run_at": now_ms, "reason": ""}
        self._told.note("job.queued", place, job.id)
        return bool(self._run("put_back_job", id=job.id, fence=job.fence, **again))
