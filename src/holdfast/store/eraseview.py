"""
What a transaction can take away: rewritten and erased messages, fallen facts, whole ranges.

Which rows fall when a source falls is decided by `holdfast.reconcile.erase`; here each is one query.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import asdict

from ..types import Evidence, Summary
from . import rows
from .ledger import ErasedRow
from .protocol import ConsentRow, FactRow, MessageRow, RebuiltRow, SummaryRow
from .told import ERASED
from .values import PromptRow, ShownRow, UsageRow
from .writeview import SqlWriteView

OF_CONVERSATION = (
    "message",
    "idempotency",
    "coverage",
    "summary",
    "rejected",
    "episodes",
    "prefix",
    "rebuilt",
    "reading",
    "shown",
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
    "task",
    "never",
    "usage",
    "prompt",
    "provider_key",
    "event",
    "user",
)


class SqlEraseView(SqlWriteView):
    """See `holdfast.store.protocol.WriteView`."""

    def save_consent(self, row: ConsentRow) -> None:
        """See the protocol."""
        if row.state == "active":
            self._run("remove_consent", about=row.subject)
        else:
            self._run("save_consent", about=row.subject, state=row.state, since=row.since)
        self._told.note("consent.changed", (row.subject, ""), row.state)

    def set_topic(self, subject: str, topic: str, *, never: bool, now_ms: int) -> None:
        """See the protocol."""
        if never:
            self._run("add_topic", about=subject, topic=topic, since=now_ms)
        else:
            self._run("remove_topic", about=subject, topic=topic)
        self._told.note("consent.changed", (subject, ""))

    def ledger_key(self) -> str:
        """See the protocol."""
        found = self._run("ledger_key")
        if not found:
            self._run("add_ledger_key", key=secrets.token_hex(32))
            found = self._run("ledger_key")
        return str(found[0][0])

    def add_erased(self, rows_: Sequence[ErasedRow]) -> None:
        """See the protocol."""
        for row in rows_:
            self._driver.run("add_erased", rows.erased_columns(row))

    def add_usage(self, row: UsageRow) -> None:
        """See the protocol."""
        found = self._run("usage_at", day=row.day, layer=row.layer, model=row.model)
        self._run("save_usage", **asdict(row if not found else row + UsageRow(*found[0])))

    def remove_usage(self, before: str) -> None:
        """See the protocol."""
        self._run("remove_usage", before=before)

    def add_prompt(self, row: PromptRow) -> None:
        """See the protocol."""
        self._run("add_prompt", **asdict(row) | {"draft": int(row.draft)})
        self._told.note("prompt.changed", ("", ""), row.name)

    def add_shown(self, row: ShownRow) -> None:
        """See the protocol."""
        self._place()
        self._run("add_shown", **asdict(row))

    def remove_prompts(self, name: str, version: int) -> None:
        """See the protocol."""
        self._run("remove_prompts", name=name, version=version)

    def rewrite_message(self, row: MessageRow) -> None:
        """See the protocol."""
        self._place()
        self._run("rewrite_message", **rows.rewritten(row))
        kind = "message.deleted" if row.message.role == "erased" else "message.edited"
        self._told.note(kind, self._here, row.message.seq)

    def replaced_by(self, subject: str, fact_id: str) -> list[FactRow]:
        """See the protocol."""
        return self._facts_with_evidence(self._run("replaced_by", about=subject, id=fact_id))

    def remove_fact(self, row: FactRow) -> None:
        """See the protocol."""
        key = {"about": row.fact.subject, "id": row.fact.id}
        self._run("remove_fact", **key)
        self._run("remove_evidence_of", **key)
        for kind in ("fact", "end"):
            self._run("remove_edges_of", child_kind=kind, child=row.fact.id)
        self._told.fact("fact.forgotten", row.fact.id, row.fact.subject, self._here)

    def remove_evidence(self, subject: str, fact_id: str, evidence: Evidence) -> None:
        """See the protocol."""
        place = {"home": evidence.home, "conversation": evidence.conversation, "seq": evidence.seq}
        self._run("remove_evidence", about=subject, fact=fact_id, start=evidence.start, **place)
        if not self._run("evidence_at", about=subject, fact=fact_id, **place):
            self._run("remove_edge", child_kind="fact", child=fact_id, **place)

    def remove_ending(self, fact_id: str, conversation: str, seq: int) -> None:
        """See the protocol."""
        place = {"home": self.scope.subject, "conversation": conversation, "seq": seq}
        self._run("remove_edge", child_kind="end", child=fact_id, **place)

    def remove_summaries(self, rows_: Sequence[Summary]) -> None:
        """See the protocol."""
        self._place()
        for row in rows_:
            self._run("remove_summary", id=row.id)
            if row.level == 1:
                self._run("remove_coverage", start_seq=row.start_seq, end_seq=row.end_seq, id=row.id)
            self._run("remove_edges_of", child_kind="summary", child=row.id)
            self._run("remove_edges_to_summary", id=row.id)
            self._told.note("summary.removed", self._here, row.id)

    def rewrite_summary(self, row: SummaryRow) -> None:
        """See the protocol."""
        head, summary = (*self._head, *self._place()), row.summary
        state = {"live": int(row.live), "stale": int(summary.stale), "parent": summary.parent, "doc": row.doc}
        self._run("rewrite_summary", id=summary.id, **state)
        kind = "removed" if not row.live else "stale" if summary.stale else "made"
        self._told.note(f"summary.{kind}", self._here, summary.id)
        if summary.level == 1:
            self._run("remove_coverage", start_seq=summary.start_seq, end_seq=summary.end_seq, id=summary.id)
            covered = range(summary.start_seq, summary.end_seq + 1) if row.live else ()
            self._driver.many("add_coverage", [(*head, seq, summary.id) for seq in covered])

    def add_reading(self, model: str, start_seq: int, end_seq: int) -> None:
        """See the protocol."""
        self._place()
        before = self._run("reading_before", model=model, start_seq=start_seq, before=start_seq - 1)
        if before:
            start_seq, end_seq = before[0][0], max(before[0][1], end_seq)
        self._run("add_reading", model=model, start_seq=start_seq, end_seq=end_seq)

    def add_rebuilt(self, row: RebuiltRow) -> None:
        """See the protocol."""
        self._place()
        self._run("add_rebuilt", **rows.rebuilt_columns(row))

    def remove_rejected(self, start_seq: int, end_seq: int) -> int:
        """See the protocol."""
        self._place()
        return len(self._run("remove_rejected", start_seq=start_seq, end_seq=end_seq))

    def remove_all_rejected(self) -> int:
        """See the protocol."""
        return len(self._run("remove_all_rejected"))

    def forget_bodies(self, start_seq: int, end_seq: int) -> None:
        """See the protocol."""
        self._place()
        self._run("forget_bodies", start_seq=start_seq, end_seq=end_seq)

    def remove_prefixes(self) -> None:
        """See the protocol."""
        self._run("remove_prefixes")

    def release_jobs(self, now_ms: int) -> None:
        """See the protocol."""
        self._run("release_jobs", run_at=now_ms)

    def remove_jobs(self) -> None:
        """See the protocol."""
        self._run("remove_jobs")

    def remove_conversation(self) -> None:
        """See the protocol."""
        self._place()
        for table in OF_CONVERSATION:
            self._run(f"clear_{table}")
        self.remove_jobs()
        self._run("blank_events_in")
        self._told.forget(self._here)
        self._told.note(ERASED, ("", ""), "conversation")

    def forget_subject(self) -> None:
        """See the protocol."""
        self._run("blank_events_about", about=self.scope.subject)
        self._told.note(ERASED, ("", ""), "subject")

    def remove_user(self) -> None:
        """See the protocol."""
        for table in OF_USER:
            self._run(f"erase_{table}")
        self._told.user_gone()

    def count_rows(self) -> dict[str, int]:
        """See the protocol."""
        return {row[0]: row[1] for row in self._run("count_rows")}
