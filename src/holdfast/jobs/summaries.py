"""
Close chunks, summarise them, and roll summaries up, level by level; one transaction a summary.

The rules tell what a range came to, or a model, which notes its episodes as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ..clock import from_ms, new_id, to_ms
from ..config import Config
from ..digest.chunk import LONG_SILENCE, Chunk, find_closed_chunks
from ..digest.summarize import SummaryDraft, summarize_chunk, summarize_level
from ..ingest.redact import mask_message
from ..reports import DigestReport
from ..scope import SELF, Scope
from ..store import ConversationRow, Derivation, DocRow, ReadView, Store, WriteView
from ..text.terms import signals, terms
from ..types import FactChange, Job, Message, Summary
from .bymodel import ByModel, Told
from .guard import scope_of, still_mine
from .queue import FenceLost
from .reading import order_range, report_of

WINDOW_MESSAGES = 200


@dataclass(frozen=True, slots=True)
class _Open:
    """What follows the last chunk, as of one moment; ``missing``: summaries that wait for their parent."""

    epoch: int
    row: ConversationRow | None
    messages: list[Message]
    summaries: list[Summary]


@dataclass(frozen=True, slots=True)
class CloseChunks:
    """The handler of ``chunk`` jobs."""

    store: Store
    config: Config
    now_ms: Callable[[], int]
    embeds: bool
    by_model: ByModel | None = None

    def __call__(self, job: Job) -> DigestReport:
        scope, report = scope_of(job), DigestReport()
        while True:
            seen = self.store.read(scope, self._snapshot)
            children = self._due_rollup(seen.summaries)
            chunks = self._due_chunks(seen) if not children else []
            if children:
                told = self._level(job, scope, children)
                up = partial(self._roll_up, job=job, seen=seen, children=children, told=told)
                self.store.write(scope, up)
                report += told.report
            elif chunks:
                inside = [m for m in seen.messages if m.seq <= chunks[0].end_seq]
                told = self._chunk(job, scope, chunks[0], inside)
                work = partial(self._cover, job=job, seen=seen, chunk=chunks[0], told=told)
                report += told.report + report_of(self.store.write(scope, work))
            elif self.store.write(scope, partial(self._settle, job=job, seen=seen)):
                return report
            else:
                continue
            report += DigestReport(summaries=1)

    def _chunk(self, job: Job, scope: Scope, chunk: Chunk, inside: Sequence[Message]) -> Told:
        return self.by_model.chunk(job, scope, chunk, inside) if self.by_model else Told(summarize_chunk(inside))

    def _level(self, job: Job, scope: Scope, children: Sequence[Summary]) -> Told:
        return self.by_model.level(job, scope, children) if self.by_model else Told(summarize_level(children))

    def _snapshot(self, view: ReadView) -> _Open:
        row = view.conversation()
        if row is None:
            return _Open(view.user().epoch, None, [], [])
        found = view.messages(start_seq=row.chunk_start, limit=WINDOW_MESSAGES)
        messages = [mask_message(message, self.config.detectors) for message in found]
        return _Open(view.user().epoch, row, messages, view.summaries())

    def _due_chunks(self, seen: _Open) -> list[Chunk]:
        if seen.row is None or not seen.messages:
            return []
        whole = len(seen.messages) < WINDOW_MESSAGES
        now_ms = self.now_ms() if whole else None
        found = find_closed_chunks(seen.messages, self.config, ended_seq=seen.row.ended_seq, now_ms=now_ms)
        # erased messages between two chunks belong to the later one
        return [replace(found[0], start_seq=seen.row.chunk_start)] if found else []

    def _due_rollup(self, summaries: Sequence[Summary]) -> list[Summary]:
        """The oldest summaries of the lowest level that has enough of them without a parent."""
        for level in sorted({summary.level for summary in summaries}):
            orphans = [s for s in summaries if s.level == level and s.parent is None]
            if len(orphans) >= self.config.rollup_summaries:
                return orphans[: self.config.rollup_summaries]
        return []

    def _cover(self, view: WriteView, job: Job, seen: _Open, chunk: Chunk, told: Told) -> list[FactChange]:
        still_mine(view, job, seen.epoch)
        row = view.conversation()
        if row is None or row.chunk_start != chunk.start_seq:
            raise FenceLost
        last = next(m for m in seen.messages if m.seq == chunk.end_seq)
        summary = self._summary(told.draft, chunk.start_seq, chunk.end_seq, 1, chunk.exchanges, (), seen)
        doc = self._index(view, summary, row, to_ms(last.at) if last.at else row.last_at)
        view.add_summary(summary, doc, range(chunk.start_seq, chunk.end_seq + 1))
        view.add_derivations(
            [
                Derivation(
                    "summary", summary.id, "message", row.subject, row.conversation, chunk.start_seq, chunk.end_seq
                )
            ]
        )
        changes: list[FactChange] = []
        if self.by_model is not None:
            row, changes = self.by_model.write(view, row, told, (chunk.start_seq, chunk.end_seq), self.now_ms())
        view.save_conversation(replace(row, chunk_start=chunk.end_seq + 1))
        return changes

    def _roll_up(self, view: WriteView, job: Job, seen: _Open, children: Sequence[Summary], told: Told) -> None:
        still_mine(view, job, seen.epoch)
        row = view.conversation()
        orphans = {s.id for s in view.summaries(level=children[0].level) if s.parent is None}
        if row is None or not orphans.issuperset(s.id for s in children):
            raise FenceLost
        ids = tuple(s.id for s in children)
        exchanges = sum(s.exchanges for s in children)
        summary = self._summary(
            told.draft, children[0].start_seq, children[-1].end_seq, children[0].level + 1, exchanges, ids, seen
        )
        last = view.messages(start_seq=summary.end_seq, end_seq=summary.end_seq)
        at = to_ms(last[0].at) if last and last[0].at else row.last_at
        doc = self._index(view, summary, row, at)
        view.add_summary(summary, doc, ())
        view.set_parent(ids, summary.id)
        view.add_derivations(
            Derivation("summary", summary.id, "summary", row.subject, row.conversation, source=child) for child in ids
        )
        for kind in told.left:
            order_range(view, kind, summary.start_seq, summary.end_seq, self.now_ms())

    def _settle(self, view: WriteView, job: Job, seen: _Open) -> bool:
        """Nothing is due now: finish, and come back when the silence will have closed what is open."""
        still_mine(view, job, seen.epoch)
        now_ms, row = self.now_ms(), view.conversation()
        if row is not None and seen.row is not None and row.next_seq != seen.row.next_seq:
            return False
        view.finish(job, now_ms)
        waiting = row.next_seq - row.chunk_start if row is not None else 0
        if row is not None and 2 * waiting >= self.config.chunk_messages:
            times = 1 if waiting >= self.config.chunk_messages else LONG_SILENCE
            silent_at = row.last_at + times * self.config.chunk_gap_minutes * 60_000
            if silent_at > now_ms:
                view.want("chunk", "", wanted=row.next_seq - 1, run_at_ms=silent_at, now_ms=now_ms)
        return True

    def _summary(
        self,
        draft: SummaryDraft,
        start_seq: int,
        end_seq: int,
        level: int,
        exchanges: int,
        children: tuple[str, ...],
        seen: _Open,
    ) -> Summary:
        now_ms = self.now_ms()
        return Summary(
            id=new_id("sum", now_ms),
            level=level,
            start_seq=start_seq,
            end_seq=end_seq,
            exchanges=exchanges,
            text=draft.text,
            themes=draft.themes,
            concerns=draft.concerns,
            actions=draft.actions,
            block=sum(s.level == level for s in seen.summaries),
            version=1,
            children=children,
            created_at=from_ms(now_ms),
            source=draft.source,
            conversation=seen.row.conversation if seen.row else "",
        )

    def _index(self, view: WriteView, summary: Summary, row: ConversationRow, at_ms: int) -> int:
        now_ms = self.now_ms()
        number = into_index(view, summary, row.subject, at_ms, now_ms)
        if self.embeds:
            view.want("embed", "", wanted=row.next_seq - 1, run_at_ms=now_ms, now_ms=now_ms)
        return number


def into_index(view: WriteView, summary: Summary, subject: str, at_ms: int, now_ms: int) -> int:
    """Make a summary searchable; returns the number of its document.  ``at_ms``: when its last message was said."""
    user = view.user()
    counts = Counter(terms(" ".join((summary.text, *summary.themes))))
    doc = DocRow(
        subject=subject,
        kind="summary",
        doc=user.next_doc,
        conversation=summary.conversation,
        seq=summary.end_seq,
        ref=summary.id,
        session=0,
        speaker=SELF,
        role="summary",
        at=at_ms,
        terms=counts.total(),
        chars=len(summary.text),
        signals=signals(summary.text),
    )
    view.save_user(replace(user, next_doc=user.next_doc + 1, version=user.version + 1), now_ms)
    view.add_docs([doc])
    view.add_postings((subject, "summary", term, doc.doc, count) for term, count in counts.items())
    return doc.doc
