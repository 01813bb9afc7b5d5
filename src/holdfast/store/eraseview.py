"""
Erasing inside a transaction: messages rewritten or erased, facts and summaries removed, whole conversations and users.

Which rows fall when a source falls is decided by `holdfast.reconcile.erase`; here each is one query.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

from ..scope import Scope
from ..types import Evidence, Summary
from . import rows
from .changes import ERASED, ChangeLog
from .port import Driver
from .readview import ReadView
from .values import FactRow, MessageRow

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
    "conversation",
)
OF_USER = (
    *OF_CONVERSATION,
    "fact",
    "evidence",
    "derivation",
    "doc",
    "posting",
    "vector",
    "job",
    "operation",
    "blocked_topic",
    "usage",
    "prompt",
    "provider_key",
    "event",
    "user",
)


class EraseView(ReadView):
    """The part of a write view that removes rows."""

    def __init__(self, driver: Driver, scope: Scope, changes: ChangeLog) -> None:
        super().__init__(driver, scope)
        self._changes = changes

    def at(self, subject: str | None, conversation: str | None) -> Self:
        """Return a view of the same transaction with another subject and conversation of the same user."""
        return type(self)(self._driver, replace(self.scope, subject=subject, conversation=conversation), self._changes)

    @property
    def _here(self) -> tuple[str, str]:
        """The place of an event: ``""`` for the user as a whole."""
        return self.scope.subject or "", self.scope.conversation or ""

    def rewrite_message(self, row: MessageRow) -> None:
        """Write every column of an existing message but its number and times."""
        self._place()
        self._run("rewrite_message", **rows.rewritten(row))
        kind = "message.deleted" if row.message.role == "erased" else "message.edited"
        self._changes.note(kind, self._here, row.message.seq)

    def remove_fact(self, row: FactRow) -> None:
        """Delete a fact with its evidence and edges; its document is not touched."""
        key = {"about": row.fact.subject, "id": row.fact.id}
        self._run("remove_fact", **key)
        self._run("remove_evidence_of", **key)
        for kind in ("fact", "end"):
            self._run("remove_edges_of", child_kind=kind, child=row.fact.id)
        self._changes.note_fact("fact.forgotten", row.fact.id, row.fact.subject, self._here)

    def remove_evidence(self, subject: str, fact_id: str, evidence: Evidence) -> None:
        """Delete one quote, and the edge to its message when no other quote of the fact stands there."""
        place = {"home": evidence.home, "conversation": evidence.conversation, "seq": evidence.seq}
        self._run("remove_evidence", about=subject, fact=fact_id, start=evidence.start, **place)
        if not self._run("evidence_at", about=subject, fact=fact_id, **place):
            self._run("remove_edge", child_kind="fact", child=fact_id, **place)

    def remove_ending(self, fact_id: str, conversation: str, seq: int) -> None:
        """Delete the edge that says that a message of the scope's subject ended a fact."""
        place = {"home": self.scope.subject, "conversation": conversation, "seq": seq}
        self._run("remove_edge", child_kind="end", child=fact_id, **place)

    def remove_summaries(self, rows_: Sequence[Summary]) -> None:
        """Delete summaries of the scope's conversation with their coverage and edges."""
        self._place()
        for row in rows_:
            self._run("remove_summary", id=row.id)
            if row.level == 1:
                self._run("remove_coverage", start_seq=row.start_seq, end_seq=row.end_seq, id=row.id)
            self._run("remove_edges_of", child_kind="summary", child=row.id)
            self._run("remove_edges_to_summary", id=row.id)
            self._changes.note("summary.removed", self._here, row.id)

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
        """Rows of the user per table."""
        return {row[0]: row[1] for row in self._run("count_rows")}
