"""What the rules had to tell because a model failed is told by the model, when it can."""

from __future__ import annotations

from dataclasses import dataclass

from ..digest.summarize import SUMMARY_SOURCE
from ..reports import DigestReport
from ..store import ReadView
from ..types import Job
from .asked import Asked
from .guard import scope_of
from .reading import range_of
from .rebuild import Rebuilder, Span


@dataclass(frozen=True, slots=True)
class TellAgain:
    """The handler of ``summary`` jobs: ranges that the rules told because a model failed, told by the model."""

    asked: Asked
    rebuilder: Rebuilder

    def __call__(self, job: Job) -> DigestReport:
        scope, span, report = scope_of(job), range_of(job), DigestReport()

        def look(view: ReadView) -> list[Span]:
            told = [s for s in view.summaries() if (s.start_seq, s.end_seq) == span and s.source == SUMMARY_SOURCE]
            return [Span(s.start_seq, s.end_seq, s.level) for s in told]

        for one in self.asked.store.read(scope, look):
            self.asked.hold(job, scope)
            took = self.rebuilder.one(scope, "summaries" if one.level == 1 else "meta", one)
            report += DigestReport(summaries=1, tokens=took.tokens)
        self.asked.store.write(scope, lambda view: view.finish(job, self.asked.now_ms()))
        return report
