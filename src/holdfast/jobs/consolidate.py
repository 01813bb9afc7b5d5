"""
Merge sentences that say the same, and, with a model, those about the same thing.

Which belong together is worked out from a snapshot, with no transaction open.  Each memory is then written
in one transaction of its own, which looks whether its sentences are still what they were: a crash leaves
them merged or not merged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ..clock import DAY_MS, new_id
from ..config import Config
from ..digest.answers import parse_merged_statements
from ..embed.protocol import Embedder, Thresholds
from ..embed.quantize import dequantize
from ..llm.prompts import load
from ..llm.protocol import BadAnswer, Request
from ..reconcile.archive import WITH_MODEL
from ..reconcile.compare import unfaithful
from ..reconcile.merging import (
    Cluster,
    Cosines,
    Spot,
    alike,
    kept_apart,
    mergeable,
    put_together,
    related,
    sources_of,
    speaks_for,
)
from ..reports import ConsolidationReport, DigestReport, Merged
from ..scope import Scope
from ..store import FactRow, Partition, ReadView, Store, WriteView
from ..text.render import render_block
from ..types import Job
from .asked import Asked, spent
from .guard import scope_of, still_mine
from .open import open_facts

NEWEST = 80
"""In the background a model is asked about what one of so many newest sentences is in; by hand about all."""
MOST_GROUPS = 10


@dataclass(frozen=True, slots=True)
class Seen:
    """One moment: the sentences that may be merged, those that must not, and the vectors that are there."""

    epoch: int
    rows: list[FactRow]
    apart: list[frozenset[Spot]]
    vectors: dict[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Consolidate:
    """The handler of ``consolidate`` jobs, and the same work at once; ``asked`` is the model, where there is one."""

    store: Store
    config: Config
    now_ms: Callable[[], int]
    embedder: Embedder | None = None
    asked: Asked | None = None

    @property
    def limits(self) -> Thresholds:
        """The embedder's thresholds, with the one of the settings; nothing is near without an embedder."""
        found = self.embedder.thresholds if self.embedder is not None else Thresholds(2.0, 2.0, 2.0, 1.0)
        own = self.config.consolidate_similarity
        return found if own is None else replace(found, merge=own)

    def __call__(self, job: Job) -> DigestReport:
        scope = scope_of(job).about(None)
        report = self.by_rules(scope, job=job)
        if job.key == WITH_MODEL and not self.config.economy:
            report += self.by_model(scope, job=job, everything=False)
        self.store.write(scope, lambda view: view.finish(job, self.now_ms()))
        return DigestReport(tokens=report.tokens)

    def now(self, scope: Scope, *, dry_run: bool) -> ConsolidationReport:
        """Merge what the scope sees, with a model where there is one; *dry_run* tells what rules would merge."""
        report = self.by_rules(scope, dry_run=dry_run)
        return report if dry_run else report + self.by_model(scope)

    def by_rules(self, scope: Scope, *, job: Job | None = None, dry_run: bool = False) -> ConsolidationReport:
        """
        Merge what says the same, in the words of one of the sentences.

        Raises:
            FenceLost: the job is somebody else's now.
        """
        seen = self.store.read(scope, self._snapshot)
        clusters = alike(seen.rows, self._cosines(seen), self.limits.merge, seen.apart)
        report = ConsolidationReport()
        for cluster in clusters:
            first = speaks_for(cluster)
            report += self._write(scope, seen, cluster, first.fact.text, first.fact.source, job, dry_run)
        return report

    def by_model(self, scope: Scope, *, job: Job | None = None, everything: bool = True) -> ConsolidationReport:
        """
        Ask the model to join what is about the same thing; what it may not say is not written.

        Raises:
            FenceLost: the job is somebody else's now.
            ModelError: the model gave no answer; what was merged before stays.
        """
        report = ConsolidationReport()
        if self.asked is None:
            return report
        seen = self.store.read(scope, self._snapshot)
        clusters = self._to_join(seen, everything)
        for start in range(0, len(clusters), MOST_GROUPS):
            groups = clusters[start : start + MOST_GROUPS]
            if job is not None:
                self.asked.hold(job, scope)
            answer = self.asked.asking.ask(scope, self._request(groups))
            report += ConsolidationReport(tokens=spent(answer))
            try:
                texts = parse_merged_statements(answer, len(groups))
            except BadAnswer as error:
                report += ConsolidationReport(refused=(error.message,))
                continue
            for number, text in sorted(texts.items()):
                cluster = groups[number - 1]
                why = unfaithful(text, [row.fact.text for row in cluster])
                report += ConsolidationReport(refused=(why,) if why else ())
                if not why:
                    report += self._write(scope, seen, cluster, text, self.asked.source(load("statements")), job, False)
        return report

    def _to_join(self, seen: Seen, everything: bool) -> list[Cluster]:
        """What a model is asked about: all that is related, or some of it that has something new."""
        gather = (self.limits.related + self.limits.merge) / 2
        clusters = related(seen.rows, self._cosines(seen), gather, seen.apart)
        if everything:
            return clusters
        newest = sorted(seen.rows, key=lambda row: (row.fact.recorded_at, row.fact.id))[-NEWEST:]
        fresh = {row.fact.id for row in newest}
        return [one for one in clusters if not fresh.isdisjoint(row.fact.id for row in one)][-MOST_GROUPS:]

    def _request(self, groups: Sequence[Cluster]) -> Request:
        if self.asked is None:
            raise ValueError("there is no model")
        lines = [f"{number}: {row.fact.text}" for number, group in enumerate(groups, 1) for row in group]
        return self.asked.request("statements", load("statements"), render_block("sentences", lines), "")

    def _snapshot(self, view: ReadView) -> Seen:
        everywhere = view.at(None, None)
        seen = {row.fact.id for row in open_facts(view)}
        ever = everywhere.facts_ever()
        rows = mergeable(row for row in ever if row.fact.id in seen)
        vectors: dict[str, np.ndarray] = {}
        if self.embedder is not None:
            ids = {row.doc: row.fact.id for row in rows}
            for subject in sorted({row.fact.subject for row in rows}):
                stored = everywhere.vectors(Partition(subject, "fact"), self.embedder.id)
                made = dequantize([(scale, data) for _, scale, data in stored], self.embedder.dim)
                vectors |= {ids[doc]: made[n] for n, (doc, _, _) in enumerate(stored) if doc in ids}
        return Seen(view.user().epoch, rows, kept_apart(ever), vectors)

    def _cosines(self, seen: Seen) -> Cosines:
        if self.embedder is None or len(seen.rows) < 2:
            return None
        missing = [row for row in seen.rows if row.fact.id not in seen.vectors]
        if missing:
            made = self.embedder.embed([row.fact.text for row in missing])
            seen.vectors.update((row.fact.id, vector) for row, vector in zip(missing, made, strict=True))
        matrix = np.stack([seen.vectors[row.fact.id] for row in seen.rows])
        return np.asarray(matrix @ matrix.T, np.float32)

    def _write(
        self,
        scope: Scope,
        seen: Seen,
        cluster: Sequence[FactRow],
        text: str,
        source: str,
        job: Job | None,
        dry_run: bool,
    ) -> ConsolidationReport:
        if dry_run:
            facts = tuple(row.fact for row in cluster)
            return ConsolidationReport((Merged(speaks_for(cluster).fact, facts),))
        work = partial(self._merge, seen=seen, cluster=cluster, text=text, source=source, job=job)
        done = self.store.write(scope, work)
        return ConsolidationReport() if done is None else ConsolidationReport((done,))

    def _merge(
        self, view: WriteView, seen: Seen, cluster: Sequence[FactRow], text: str, source: str, job: Job | None
    ) -> Merged | None:
        now_ms = self.now_ms()
        if job is not None:
            still_mine(view, job, seen.epoch)
        open_now = {row.fact.id for row in open_facts(view)}
        if view.user().epoch != seen.epoch or not open_now.issuperset(row.fact.id for row in cluster):
            return None
        whole = put_together(
            view,
            cluster,
            text=text,
            source=source,
            fact_id=new_id("fact", now_ms),
            now_ms=now_ms,
            half_life_ms=self.config.decay_half_life_days * DAY_MS,
        )
        if whole is None:
            return None
        everywhere = view.at(None, None)
        if self.embedder is not None:
            everywhere.want("embed", "", wanted=view.user().version, run_at_ms=now_ms, now_ms=now_ms)
        return Merged(whole.fact, tuple(row.fact for row in sources_of(everywhere, whole)))
