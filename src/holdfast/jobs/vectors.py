"""
Vectors for searchable documents: those of new ones, those of another embedder, and those of a range again.

Texts are embedded in batches, outside any transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from ..embed.protocol import Embedder, quantize
from ..ingest.redact import mask_secrets
from ..reports import DigestReport
from ..scope import Scope
from ..store import DocRow, Partition, ReadView, WriteView
from ..types import Job
from .queue import Dependencies, check_claim, scope_of

BATCH_DOCS = 64
USERS_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class EmbedDocs:
    """The handler of ``embed`` jobs: the vectors of one user that are missing or made by another embedder."""

    deps: Dependencies
    embedder: Embedder

    def __call__(self, job: Job) -> DigestReport:
        scope = scope_of(job).about(None)
        while True:
            epoch, docs, texts = self.deps.store.read(scope, self._snapshot)
            rows = self.embed(docs, [texts.get((doc.kind, doc.doc), "") for doc in docs])
            if self.deps.store.write(scope, partial(self._write, job=job, epoch=epoch, rows=rows)):
                return DigestReport()

    def embed(self, docs: Sequence[DocRow], texts: Sequence[str]) -> list[tuple[DocRow, float, bytes]]:
        """Return the quantized vectors of documents, with secrets mask_secrets in their texts."""
        if not docs:
            return []
        vectors = self.embedder.embed([mask_secrets(text, self.deps.config.detectors) for text in texts])
        return [(doc, scale, data) for doc, (scale, data) in zip(docs, quantize(vectors), strict=True)]

    def _snapshot(self, view: ReadView) -> tuple[int, list[DocRow], dict[tuple[str, int], str]]:
        docs = view.unembedded(self.embedder.id, limit=BATCH_DOCS)
        return view.user().epoch, docs, view.texts(docs)

    def _write(self, view: WriteView, job: Job, epoch: int, rows: list[tuple[DocRow, float, bytes]]) -> bool:
        """Store a batch without documents that were removed meanwhile; return whether none is left."""
        check_claim(view, job, epoch)
        now_ms = self.deps.now_ms()
        waiting = {(d.kind, d.doc) for d in view.unembedded(self.embedder.id, limit=2 * BATCH_DOCS)}
        live = [row for row in rows if (row[0].kind, row[0].doc) in waiting]
        if live:
            add_vectors(view, self.embedder, live, now_ms)
            view.renew(job, now_ms + self.deps.config.job_lease_ms)
        if len(waiting) > len(live):
            return False
        view.note_embedder(self.embedder.id)
        return view.finish(job, now_ms)


def add_vectors(view: WriteView, embedder: Embedder, rows: Sequence[tuple[DocRow, float, bytes]], now_ms: int) -> None:
    """Store vectors, and have caches of the user's index read again."""
    view.add_vectors((doc, embedder.id, scale, data) for doc, scale, data in rows)
    user = view.user()
    view.save_user(replace(user, version=user.version + 1), now_ms)


def docs_in_range(view: ReadView, first: int, last: int) -> list[DocRow]:
    """Return the documents of a range: messages, live summaries that end in it, live facts that rest on it."""
    subject, name = view.scope.subject or "", view.scope.conversation
    kinds = (Partition(subject, "message"), Partition(subject, "summary"))
    here = [doc for kind in kinds for doc in view.docs(kind) if doc.conversation == name]
    found = [doc for doc in here if first <= doc.seq <= last]
    ids = {child for kind, child in view.derived_from(first, last) if kind == "fact"}
    whole = view.at(None, None)
    facts = [doc for part in whole.partitions(["fact"]) for doc in whole.docs(part) if doc.ref in ids]
    return found + facts


@dataclass(frozen=True, slots=True)
class Reembedding:
    """
    The order of new vectors for users whose vectors another embedder made.

    A user's row names their embedder, so that this takes microseconds when no user is left.  The job is the same as
    for new messages.
    """

    deps: Dependencies
    embedder: Embedder

    def order(self) -> int:
        """Order an ``embed`` job for each such user; return how many there were."""
        found = 0
        while users := self.deps.store.users_to_embed(self.embedder.id, limit=USERS_AT_ONCE):
            for org, user, bot in users:
                self.deps.store.write(Scope(org, bot, user, None), self._order_for)
            found += len(users)
        return found

    def _order_for(self, view: WriteView) -> None:
        if view.unembedded(self.embedder.id, limit=1):
            now_ms = self.deps.now_ms()
            view.want("embed", "", wanted=view.user().version, run_at_ms=now_ms, now_ms=now_ms)
        view.note_embedder(self.embedder.id)
