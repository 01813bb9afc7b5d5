"""
Upkeep of a memory: archive what has faded and the weakest of too many facts; merge what says the same; embed texts.

Groups to merge are found in a snapshot, with no transaction open.  Each merged memory is then written in a separate
transaction, which checks that its sentences have not changed: a crash leaves them merged or not merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from functools import partial

from ..clock import DAY_MS, new_id
from ..digest.answers import parse_merged_statements
from ..embed.protocol import Embedder, Thresholds, dequantize, quantize
from ..ingest.redact import mask_secrets
from ..llm.prompts import load
from ..llm.protocol import BadAnswer, Request
from ..reconcile.archive import UPKEEP, WITH_MODEL, archive_facts, faded, fading_bounds, over_cap
from ..reconcile.compare import find_unfaithful
from ..reconcile.merging import (
    Cluster,
    Cosines,
    QuotePlace,
    cluster_related,
    cluster_same,
    cluster_tools,
    merge_facts,
    mergeable,
    merged_sources,
    representative,
    split_apart,
)
from ..reports import ConsolidationReport, DigestReport, Merged, PruneReport
from ..scope import Scope
from ..store import DocRow, FactRow, Partition, ReadView, WriteView, effective_consent
from ..text import dataclass, np
from ..text.render import render_block
from ..types import Job
from .model_client import ModelClient, total_tokens
from .queue import Dependencies, check_claim, scope_of


@dataclass(frozen=True, slots=True)
class Upkeep:
    """The handler of ``upkeep`` jobs, and the same work on request."""

    deps: Dependencies
    _looked_at: list[int] = field(default_factory=lambda: [-DAY_MS], compare=False)

    def __call__(self, job: Job) -> DigestReport:
        scope = scope_of(job).about(None)
        epoch = self.deps.store.read(scope, lambda view: view.user().epoch)

        def work(view: WriteView) -> None:
            check_claim(view, job, epoch)
            self._prune(view, with_faded=self.deps.config.archive_faded)
            view.finish(job, self.deps.now_ms())

        self.deps.store.write(scope, work)
        return DigestReport()

    def prune(self, scope: Scope, *, with_faded: bool) -> PruneReport:
        """Archive the facts in the scope beyond the limit, and those that have faded when *with_faded*."""
        return self.deps.store.write(scope, lambda view: self._prune(view, with_faded=with_faded))

    def order(self) -> int:
        """Order an ``upkeep`` job for each user who holds what has faded, once a day at most; return how many there were."""
        now_ms, config = self.deps.now_ms(), self.deps.config
        if not config.archive_faded or now_ms - self._looked_at[0] < DAY_MS:
            return 0
        self._looked_at[0] = now_ms
        users = self.deps.store.users_with_faded(fading_bounds(now_ms, config.decay_half_life_days * DAY_MS))
        for org, user, bot in users:
            self.deps.store.write(Scope(org, bot, user, None), self._order_for)
        return len(users)

    def _order_for(self, view: WriteView) -> None:
        if effective_consent(view.consent(), None) == "active":
            now_ms = self.deps.now_ms()
            view.want(UPKEEP, "", wanted=view.user().version, run_at_ms=now_ms, now_ms=now_ms)

    def _prune(self, view: WriteView, *, with_faded: bool = False) -> PruneReport:
        config, now_ms = self.deps.config, self.deps.now_ms()
        half_life_ms = config.decay_half_life_days * DAY_MS
        rows = unpaused_facts(view)
        gone = faded(rows, now_ms, half_life_ms) if with_faded else []
        ids = {row.fact.id for row in gone}
        left = [row for row in rows if row.fact.id not in ids]
        excess = view.count_facts() - len(gone) - config.max_memories
        gone += over_cap(left, max(0, len(left) - max(0, excess)), now_ms, half_life_ms)
        everywhere = view.at(None, None)
        with_evidence = [row for row in map(everywhere.fact, [row.fact.id for row in gone]) if row is not None]
        archived = archive_facts(view, with_evidence, now_ms)
        return PruneReport(tuple(row.fact for row in archived), view.count_facts())


def unpaused_facts(view: ReadView) -> list[FactRow]:
    """Return the live facts in the scope whose subject is not paused, without their quotes."""
    state = partial(effective_consent, view.at(None, None).consent())
    return [row for row in view.facts(evidence=False) if state(row.fact.subject) == "active"]


NEWEST = 80
"""In the background a model is called for groups that hold one of so many newest sentences; on request for all."""
MAX_GROUPS = 10


@dataclass(frozen=True, slots=True)
class Sentences:
    """The sentences that may be merged, those that must stay apart, and the stored vectors, in one snapshot."""

    epoch: int
    rows: list[FactRow]
    apart: list[frozenset[QuotePlace]]
    vectors: dict[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Consolidate:
    """The handler of ``consolidate`` jobs, and the same work on request; by the rules alone without a ``client``."""

    deps: Dependencies
    client: ModelClient | None = None

    @property
    def limits(self) -> Thresholds:
        """The embedder's thresholds, with that of the settings; without an embedder no sentences are similar."""
        found = self.deps.embedder.thresholds if self.deps.embedder is not None else Thresholds(2.0, 2.0, 2.0, 1.0)
        own = self.deps.config.consolidate_similarity
        return found if own is None else replace(found, merge=own)

    def __call__(self, job: Job) -> DigestReport:
        scope = scope_of(job).about(None)
        report = self.by_rules(scope, job=job)
        if job.key == WITH_MODEL and not self.deps.config.economy:
            report += self.by_model(scope, job=job, everything=False)
        self.deps.store.write(scope, lambda view: view.finish(job, self.deps.now_ms()))
        return DigestReport(tokens=report.tokens)

    def now(self, scope: Scope, *, dry_run: bool) -> ConsolidationReport:
        """Merge the scope's sentences, with a model where there is one; *dry_run* reports what the rules would merge."""
        report = self.by_rules(scope, dry_run=dry_run)
        return report if dry_run else report + self.by_model(scope)

    def by_rules(self, scope: Scope, *, job: Job | None = None, dry_run: bool = False) -> ConsolidationReport:
        """
        Merge sentences that say the same, in the words of one of them, and join those about one tool.

        Raises:
            FenceLost: another worker has claimed the job.
        """
        seen = self.deps.store.read(scope, self._snapshot)
        clusters = cluster_same(seen.rows, self._cosines(seen), self.limits.merge, seen.apart)
        report = ConsolidationReport()
        for cluster in clusters:
            first = representative(cluster)
            report += self._write(scope, seen, cluster, first.fact.text, first.fact.source, job, dry_run)
        return report + self._join_tools(scope, job, dry_run, {row.fact.id for one in clusters for row in one})

    def _join_tools(self, scope: Scope, job: Job | None, dry_run: bool, merged: set[str]) -> ConsolidationReport:
        """Join sentences about one tool into one that says all of them; those that were *merged* wait for the next time."""
        seen, report = self.deps.store.read(scope, self._snapshot), ConsolidationReport()
        left = [row for row in seen.rows if row.fact.id not in merged]
        for cluster, text in cluster_tools(left, seen.apart):
            report += self._write(scope, seen, cluster, text, representative(cluster).fact.source, job, dry_run)
        return report

    def by_model(self, scope: Scope, *, job: Job | None = None, everything: bool = True) -> ConsolidationReport:
        """
        Let the model join sentences about the same thing; a joined sentence that adds anything is not written.

        Raises:
            FenceLost: another worker has claimed the job.
            ModelError: the model gave no answer; earlier merges stay.
        """
        report = ConsolidationReport()
        if self.client is None:
            return report
        seen, source = self.deps.store.read(scope, self._snapshot), self.client.source(load("statements"))
        clusters = self._to_join(seen, everything)
        for start in range(0, len(clusters), MAX_GROUPS):
            groups = clusters[start : start + MAX_GROUPS]
            if job is not None:
                self.client.extend_lease(job, scope)
            answer = self.client.ask(scope, self._request(groups))
            report += ConsolidationReport(tokens=total_tokens(answer))
            try:
                texts = parse_merged_statements(answer, len(groups))
            except BadAnswer as error:
                report += ConsolidationReport(refused=(error.message,))
                continue
            for number, text in sorted(texts.items()):
                cluster = groups[number - 1]
                why = find_unfaithful(text, [row.fact.text for row in cluster])
                report += ConsolidationReport(refused=(why,) if why else ())
                if not why:
                    report += self._write(scope, seen, cluster, text, source, job, False)
        return report

    def _to_join(self, seen: Sentences, everything: bool) -> list[Cluster]:
        """Return the groups to show a model: all related sentences, or some groups with new ones."""
        gather = (self.limits.related + self.limits.merge) / 2
        clusters = cluster_related(seen.rows, self._cosines(seen), gather, seen.apart)
        if everything:
            return clusters
        newest = sorted(seen.rows, key=lambda row: (row.fact.recorded_at, row.fact.id))[-NEWEST:]
        fresh = {row.fact.id for row in newest}
        return [one for one in clusters if not fresh.isdisjoint(row.fact.id for row in one)][-MAX_GROUPS:]

    def _request(self, groups: Sequence[Cluster]) -> Request:
        if self.client is None:
            raise ValueError("there is no model")
        lines = [f"{number}: {row.fact.text}" for number, group in enumerate(groups, 1) for row in group]
        return self.client.request("statements", load("statements"), render_block("sentences", lines), "")

    def _snapshot(self, view: ReadView) -> Sentences:
        everywhere = view.at(None, None)
        seen = {row.fact.id for row in unpaused_facts(view)}
        ever = everywhere.all_facts()
        rows = mergeable(row for row in ever if row.fact.id in seen)
        vectors: dict[str, np.ndarray] = {}
        if self.deps.embedder is not None:
            ids = {row.doc: row.fact.id for row in rows}
            for subject in sorted({row.fact.subject for row in rows}):
                stored = everywhere.vectors(Partition(subject, "fact"), self.deps.embedder.id)
                made = dequantize([(scale, data) for _, scale, data in stored], self.deps.embedder.dim)
                vectors |= {ids[doc]: made[n] for n, (doc, _, _) in enumerate(stored) if doc in ids}
        return Sentences(view.user().epoch, rows, split_apart(ever), vectors)

    def _cosines(self, seen: Sentences) -> Cosines:
        if self.deps.embedder is None or len(seen.rows) < 2:
            return None
        missing = [row for row in seen.rows if row.fact.id not in seen.vectors]
        if missing:
            made = self.deps.embedder.embed([row.fact.text for row in missing])
            seen.vectors.update((row.fact.id, vector) for row, vector in zip(missing, made, strict=True))
        matrix = np.stack([seen.vectors[row.fact.id] for row in seen.rows])
        return np.asarray(matrix @ matrix.T, np.float32)

    def _write(
        self,
        scope: Scope,
        seen: Sentences,
        cluster: Sequence[FactRow],
        text: str,
        source: str,
        job: Job | None,
        dry_run: bool,
    ) -> ConsolidationReport:
        if dry_run:
            facts = tuple(row.fact for row in cluster)
            return ConsolidationReport((Merged(replace(representative(cluster).fact, text=text), facts),))
        work = partial(self._merge, seen=seen, cluster=cluster, text=text, source=source, job=job)
        done = self.deps.store.write(scope, work)
        return ConsolidationReport() if done is None else ConsolidationReport((done,))

    def _merge(
        self, view: WriteView, seen: Sentences, cluster: Sequence[FactRow], text: str, source: str, job: Job | None
    ) -> Merged | None:
        now_ms = self.deps.now_ms()
        if job is not None:
            check_claim(view, job, seen.epoch)
        open_now = {row.fact.id for row in unpaused_facts(view)}
        if view.user().epoch != seen.epoch or not open_now.issuperset(row.fact.id for row in cluster):
            return None
        whole = merge_facts(
            view,
            cluster,
            text=text,
            source=source,
            fact_id=new_id("fact", now_ms),
            now_ms=now_ms,
            half_life_ms=self.deps.config.decay_half_life_days * DAY_MS,
        )
        if whole is None:
            return None
        everywhere = view.at(None, None)
        if self.deps.embedder is not None:
            everywhere.want("embed", "", wanted=view.user().version, run_at_ms=now_ms, now_ms=now_ms)
        return Merged(whole.fact, tuple(row.fact for row in merged_sources(everywhere, whole)))


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
            done = self.deps.store.write(scope, partial(self._write, job=job, epoch=epoch, rows=rows))
            self.deps.observer.report("indexed", "text", len(rows))
            if done:
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
