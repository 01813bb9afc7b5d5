"""Keep a memory small: put away what is weakest, when there is too much or when somebody asks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..clock import DAY_MS
from ..config import Config
from ..reconcile.archive import put_away
from ..reconcile.decay import faded, surplus
from ..reports import DigestReport, PruneReport
from ..scope import Scope
from ..store import Store, WriteView
from ..types import Job
from .guard import scope_of, still_mine
from .open import open_facts


@dataclass(frozen=True, slots=True)
class Upkeep:
    """The handler of ``upkeep`` jobs, and the same work at once."""

    store: Store
    config: Config
    now_ms: Callable[[], int]

    def __call__(self, job: Job) -> DigestReport:
        scope = scope_of(job).about(None)
        epoch = self.store.read(scope, lambda view: view.user().epoch)

        def work(view: WriteView) -> None:
            still_mine(view, job, epoch)
            self._prune(view)
            view.finish(job, self.now_ms())

        self.store.write(scope, work)
        return DigestReport()

    def prune(self, scope: Scope, *, with_faded: bool) -> PruneReport:
        """Put away what is too much, and what faded when that is wanted, among the facts that the scope sees."""
        return self.store.write(scope, lambda view: self._prune(view, with_faded=with_faded))

    def _prune(self, view: WriteView, *, with_faded: bool = False) -> PruneReport:
        now_ms, half_life_ms = self.now_ms(), self.config.decay_half_life_days * DAY_MS
        rows = open_facts(view)
        gone = faded(rows, now_ms, half_life_ms) if with_faded else []
        ids = {row.fact.id for row in gone}
        left = [row for row in rows if row.fact.id not in ids]
        over = view.count_facts() - len(gone) - self.config.max_memories
        gone += surplus(left, max(0, len(left) - max(0, over)), now_ms, half_life_ms)
        everywhere = view.at(None, None)
        whole = [row for row in map(everywhere.fact, [row.fact.id for row in gone]) if row is not None]
        done = put_away(view, whole, now_ms)
        return PruneReport(tuple(row.fact for row in done), view.count_facts())
