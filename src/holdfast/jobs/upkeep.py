"""Upkeep of a memory: archive what has faded, and the weakest facts when there are too many, or on request."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from ..clock import DAY_MS
from ..reconcile.archive import UPKEEP, archive_facts
from ..reconcile.decay import faded, fading_bounds, over_cap
from ..reports import DigestReport, PruneReport
from ..scope import Scope
from ..store import FactRow, ReadView, WriteView, effective_consent
from ..types import Job
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
