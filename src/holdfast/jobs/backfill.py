"""
Backfill: bring old conversations up to what the memory makes today.

Missing ranges are made, and those that the rules made are made by the model.  A range that the model made is skipped,
so a run that was stopped or killed continues where it ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ..digest.summarize import SUMMARY_SOURCE
from ..errors import BadInput, Conflict
from ..llm.protocol import ModelError
from ..reports import BackfillReport, DigestReport
from ..scope import Scope
from ..store import ReadView, Store
from ..text import dataclass
from ..types import BY_HAND_CONVERSATION
from .model_client import CallTotals
from .rebuild import MessageRange, Rebuilder, SourcesChanged, check_active, is_hopeless

LAYERS = ("facts", "episodes", "summaries", "meta")
_PAGE = 200

NO_MODEL = "episodes need a model, and this memory has none: the rules make summaries and facts alone (--llm, llm=)"

BackfillProgress = Callable[[BackfillReport], None]
"""Called after each range with the report so far."""


@dataclass(frozen=True, slots=True)
class BackfillOrder:
    """The options of one call; ``user`` is ``None`` for all users, and ``limit`` is the largest number of ranges."""

    user: Scope | None
    layers: Sequence[str]
    limit: int | None
    delay_ms: int
    dry_run: bool
    progress: BackfillProgress | None


class _Stopped(Exception):
    """A run that ends early because no later call could succeed."""

    def __init__(self, report: BackfillReport) -> None:
        super().__init__()
        self.report = report


@dataclass(frozen=True, slots=True)
class Backfiller:
    """The backfill of one store; ``rebuilder`` returns a user's, ``catch_up`` does the work that is due."""

    store: Store
    rebuilder: Callable[[Scope], Rebuilder]
    catch_up: Callable[[Scope], DigestReport]

    def backfill(self, order: BackfillOrder) -> BackfillReport:
        """Backfill conversations; see `Memory.backfill`."""
        if unknown := [layer for layer in order.layers if layer not in LAYERS]:
            raise BadInput(f"there is no layer {unknown[0]!r} to backfill", hint=f"use {', '.join(LAYERS)}")
        if isinstance(order.delay_ms, bool) or not isinstance(order.delay_ms, int) or order.delay_ms < 0:
            raise BadInput(f"delay_ms must be a whole number of at least 0, not {order.delay_ms!r}")
        report = BackfillReport(dry_run=order.dry_run)
        for scope in self._conversations(order.user):
            try:
                report = self._conversation(scope, order, report)
            except Conflict:  # paused or erased meanwhile
                continue
            except _Stopped as stop:
                where = f"stopped at {scope.conversation}: no later call could succeed"
                return replace(stop.report, reasons=(*stop.report.reasons, where))
        return report

    def _conversations(self, user: Scope | None) -> Iterator[Scope]:
        for one in self._users() if user is None else [user]:
            rows = self.store.read(one, lambda view: view.conversations())
            talks = (row for row in rows if row.conversation != BY_HAND_CONVERSATION)
            yield from (one.about(row.subject).within(row.conversation) for row in talks)

    def _users(self) -> Iterator[Scope]:
        after = None
        while page := self.store.users(limit=_PAGE, after=after):
            yield from (Scope(org, bot, user) for org, user, bot in page)
            after = page[-1]

    def _conversation(self, scope: Scope, order: BackfillOrder, report: BackfillReport) -> BackfillReport:
        self.store.read(scope, check_active)
        if not order.dry_run:
            done = self.catch_up(scope)
            made = done.summaries if {"summaries", "meta"} & set(order.layers) else 0
            report = replace(
                report,
                processed=report.processed + made,
                created=report.created + made,
                tokens=report.tokens + done.tokens,
            )
        for layer in order.layers:
            if not self.rebuilder(scope).writer.makes(layer):
                known = report.reasons if NO_MODEL in report.reasons else (*report.reasons, NO_MODEL)
                report = replace(report, reasons=known)
                continue
            for span, missing in self._ranges(scope, layer):
                report = self._range(scope, layer, span, order, report, missing=missing)
        return report

    def _ranges(self, scope: Scope, layer: str) -> list[tuple[MessageRange, bool]]:
        """Return the ranges of a layer, each with whether it is missing."""
        rebuilder = self.rebuilder(scope)
        spans = rebuilder.ranges(scope, layer)
        if rebuilder.writer.reader is None:
            return [(span, False) for span in spans]
        economy = rebuilder.deps.config.economy

        def look(view: ReadView) -> list[tuple[MessageRange, bool]]:
            if layer == "facts":
                read = [(first, last) for _, first, last in view.read_ranges()]
                return [(span, not _is_covered(span, read)) for span in spans]
            if layer == "episodes":
                done = {(one.start_seq, one.end_seq) for one in view.episode_ranges()}
                return [(span, (span.start_seq, span.end_seq) not in done) for span in spans]
            summaries = {(s.level, s.start_seq): s for s in view.summaries()}
            found = [(span, summaries.get((span.level, span.start_seq))) for span in spans]
            by_rules = layer == "summaries" or not economy  # in economy mode the rules make levels in the digest too
            return [
                (span, s is not None and (s.stale or (by_rules and s.source == SUMMARY_SOURCE))) for span, s in found
            ]

        return self.store.read(scope, look)

    def _range(
        self,
        scope: Scope,
        layer: str,
        span: MessageRange,
        order: BackfillOrder,
        report: BackfillReport,
        *,
        missing: bool,
    ) -> BackfillReport:
        if not missing:
            return replace(report, processed=report.processed + 1, skipped=report.skipped + 1)
        if order.limit is not None and report.created + report.errors >= order.limit:
            return replace(report, left=report.left + 1)
        if not order.dry_run and report.calls and order.delay_ms:
            time.sleep(order.delay_ms / 1000)
        rebuilder = self.rebuilder(scope)
        try:
            totals = (rebuilder.estimate if order.dry_run else rebuilder.rebuild_range)(scope, layer, span)
        except (ModelError, SourcesChanged) as error:
            where = f"{scope.conversation} {layer} {span.start_seq}-{span.end_seq}"
            report = _plus(report, rebuilder.writer.take_totals())
            report = replace(
                report,
                processed=report.processed + 1,
                errors=report.errors + 1,
                reasons=(*report.reasons, f"{where}: {error.code}: {error.without_retry()}"),
            )
            if is_hopeless(error):
                raise _Stopped(report) from error
        else:
            report = replace(_plus(report, totals), processed=report.processed + 1, created=report.created + 1)
        if order.progress is not None:
            order.progress(report)
        return report


def _is_covered(span: MessageRange, read: Sequence[tuple[int, int]]) -> bool:
    """Whether ranges that were read hold a whole range."""
    upto = span.start_seq - 1
    for first, last in sorted(read):
        if first > upto + 1:
            break
        upto = max(upto, last)
    return upto >= span.end_seq


def _plus(report: BackfillReport, totals: CallTotals) -> BackfillReport:
    total = CallTotals(report.calls, report.tokens, report.cost) + totals
    return replace(report, calls=total.calls, tokens=total.tokens, cost=total.cost)
