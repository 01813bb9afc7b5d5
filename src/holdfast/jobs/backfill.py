"""
Bring old conversations up to what the memory makes today: what is missing, or what the rules made, by the model.

What exists by the model is skipped, so a run that was stopped or killed goes on where it ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ..digest.summarize import SUMMARY_SOURCE
from ..errors import BadInput, Conflict
from ..llm.protocol import ModelError
from ..reports import BackfillReport, DigestReport
from ..scope import Scope
from ..store import ReadView, Store
from .rebuild import Rebuilder, Span, hopeless
from .remake import check_active
from .writers import Effort

LAYERS = ("facts", "episodes", "summaries", "meta")
_PAGE = 200

Progress = Callable[[BackfillReport], None]
"""Called after each range with the report so far."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What one call is to do: for whom, which layers, at most how many ranges, how slowly."""

    user: Scope | None
    layers: Sequence[str]
    limit: int | None
    delay_ms: int
    dry_run: bool
    progress: Progress | None


class _Stop(Exception):
    """Going on is of no use: no later call would succeed."""

    def __init__(self, report: BackfillReport) -> None:
        super().__init__()
        self.report = report


@dataclass(frozen=True, slots=True)
class Backfiller:
    """Backfills one store; ``rebuilder`` tells who makes a user's rows, ``catch_up`` does the work that is due."""

    store: Store
    rebuilder: Callable[[Scope], Rebuilder]
    catch_up: Callable[[Scope], DigestReport]

    def backfill(self, wanted: Wanted) -> BackfillReport:
        """See `Memory.backfill`."""
        if unknown := [layer for layer in wanted.layers if layer not in LAYERS]:
            raise BadInput(f"there is no layer {unknown[0]!r} to backfill", hint=f"use {', '.join(LAYERS)}")
        if isinstance(wanted.delay_ms, bool) or not isinstance(wanted.delay_ms, int) or wanted.delay_ms < 0:
            raise BadInput(f"delay_ms must be a whole number of at least 0, not {wanted.delay_ms!r}")
        report = BackfillReport(dry_run=wanted.dry_run)
        for scope in self._conversations(wanted.user):
            try:
                report = self._conversation(scope, wanted, report)
            except Conflict:  # paused or erased meanwhile
                continue
            except _Stop as stop:
                where = f"stopped at {scope.conversation}: to go on cannot help"
                return replace(stop.report, reasons=(*stop.report.reasons, where))
        return report

    def _conversations(self, user: Scope | None) -> Iterator[Scope]:
        """Every conversation of one user, or of all, whose owner did not pause memory."""
        for one in self._users() if user is None else [user]:
            rows = self.store.read(one, lambda view: view.conversations())
            yield from (one.about(row.subject).within(row.conversation) for row in rows)

    def _users(self) -> Iterator[Scope]:
        after = None
        while page := self.store.users(limit=_PAGE, after=after):
            yield from (Scope(org, bot, user) for org, user, bot in page)
            after = page[-1]

    def _conversation(self, scope: Scope, wanted: Wanted, report: BackfillReport) -> BackfillReport:
        self.store.read(scope, check_active)
        if not wanted.dry_run:
            done = self.catch_up(scope)
            made = done.summaries if {"summaries", "meta"} & set(wanted.layers) else 0
            report = replace(
                report,
                processed=report.processed + made,
                created=report.created + made,
                tokens=report.tokens + done.tokens,
            )
        for layer in wanted.layers:
            if not self.rebuilder(scope).remake.writer.makes(layer):
                continue
            for span, missing in self._due(scope, layer):
                report = self._range(scope, layer, span, wanted, report, missing=missing)
        return report

    def _due(self, scope: Scope, layer: str) -> list[tuple[Span, bool]]:
        """The ranges of a layer, each with whether it is to be made."""
        spans = self.rebuilder(scope).spans(scope, layer)
        if not self.rebuilder(scope).remake.writer.by_model:
            return [(span, False) for span in spans]
        economy = self.rebuilder(scope).remake.config.economy

        def look(view: ReadView) -> list[tuple[Span, bool]]:
            if layer == "facts":
                read = [(first, last) for _, first, last in view.readings()]
                return [(span, not _covered(span, read)) for span in spans]
            if layer == "episodes":
                asked = {(one.start_seq, one.end_seq) for one in view.episode_ranges()}
                return [(span, (span.start_seq, span.end_seq) not in asked) for span in spans]
            told = {(s.level, s.start_seq): s for s in view.summaries()}
            found = [(span, told.get((span.level, span.start_seq))) for span in spans]
            by_rules = layer == "summaries" or not economy  # there the digest tells levels by the rules, too
            return [
                (span, s is not None and (s.stale or (by_rules and s.source == SUMMARY_SOURCE))) for span, s in found
            ]

        return self.store.read(scope, look)

    def _range(
        self, scope: Scope, layer: str, span: Span, wanted: Wanted, report: BackfillReport, *, missing: bool
    ) -> BackfillReport:
        if not missing:
            return replace(report, processed=report.processed + 1, skipped=report.skipped + 1)
        if wanted.limit is not None and report.created + report.errors >= wanted.limit:
            return replace(report, left=report.left + 1)
        if not wanted.dry_run and report.calls and wanted.delay_ms:
            time.sleep(wanted.delay_ms / 1000)
        try:
            if wanted.dry_run:
                took = self.rebuilder(scope).effort(scope, layer, span)
            else:
                took = self.rebuilder(scope).one(scope, layer, span)
        except ModelError as error:
            where = f"{scope.conversation} {layer} {span.start_seq}-{span.end_seq}"
            report = _with(report, self.rebuilder(scope).remake.writer.spent())
            report = replace(
                report,
                processed=report.processed + 1,
                errors=report.errors + 1,
                reasons=(*report.reasons, f"{where}: {error.code}: {error}"),
            )
            if hopeless(error):
                raise _Stop(report) from error
        else:
            report = replace(_with(report, took), processed=report.processed + 1, created=report.created + 1)
        if wanted.progress is not None:
            wanted.progress(report)
        return report


def _covered(span: Span, read: Sequence[tuple[int, int]]) -> bool:
    """Whether stretches hold a whole range."""
    upto = span.start_seq - 1
    for first, last in sorted(read):
        if first > upto + 1:
            break
        upto = max(upto, last)
    return upto >= span.end_seq


def _with(report: BackfillReport, took: Effort) -> BackfillReport:
    total = Effort(report.calls, report.tokens, report.cost) + took
    return replace(report, calls=total.calls, tokens=total.tokens, cost=total.cost)
