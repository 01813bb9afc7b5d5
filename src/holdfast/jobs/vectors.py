"""Give every searchable document of a user its vector, in batches, outside any transaction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from ..embed.protocol import Embedder
from ..embed.quantize import quantize
from ..ingest.redact import mask_secrets
from ..reports import DigestReport
from ..store import DocRow, ReadView, Store, WriteView
from ..types import Detector, Job
from .guard import scope_of, still_mine

BATCH_DOCS = 64


@dataclass(frozen=True, slots=True)
class EmbedDocs:
    """The handler of ``embed`` jobs."""

    store: Store
    embedder: Embedder
    now_ms: Callable[[], int]
    lease_ms: int
    detectors: tuple[Detector, ...] = ()

    def __call__(self, job: Job) -> DigestReport:
        scope = scope_of(job).about(None)
        while True:
            epoch, docs, texts = self.store.read(scope, self._snapshot)
            told = [mask_secrets(texts.get((doc.kind, doc.doc), ""), self.detectors) for doc in docs]
            vectors = self.embedder.embed(told) if docs else None
            pairs = quantize(vectors) if vectors is not None else []
            rows = [(doc, scale, data) for doc, (scale, data) in zip(docs, pairs, strict=True)]
            if self.store.write(scope, partial(self._write, job=job, epoch=epoch, rows=rows)):
                return DigestReport()

    def _snapshot(self, view: ReadView) -> tuple[int, list[DocRow], dict[tuple[str, int], str]]:
        docs = view.unembedded(self.embedder.id, limit=BATCH_DOCS)
        return view.user().epoch, docs, view.texts(docs)

    def _write(self, view: WriteView, job: Job, epoch: int, rows: list[tuple[DocRow, float, bytes]]) -> bool:
        """Store a batch; a document that went away meanwhile is left out.  True when none is left."""
        still_mine(view, job, epoch)
        now_ms = self.now_ms()
        waiting = {(d.kind, d.doc) for d in view.unembedded(self.embedder.id, limit=2 * BATCH_DOCS)}
        live = [row for row in rows if (row[0].kind, row[0].doc) in waiting]
        if live:
            view.add_vectors((doc, self.embedder.id, scale, data) for doc, scale, data in live)
            user = view.user()
            view.save_user(replace(user, version=user.version + 1), now_ms)
            view.renew(job, now_ms + self.lease_ms)
        if len(waiting) > len(live):
            return False
        view.note_embedder(self.embedder.id)
        return view.finish(job, now_ms)
