"""Reports of long work: kept as figures and ids, told as what they name is today."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ..errors import NotFound
from ..memory import Memory
from ..reports import BackfillReport, ConsolidationReport, Merged, RebuildReport
from ..types import Fact, Summary
from ..user import User
from .tasks import Told, Whose

Report = RebuildReport | BackfillReport | ConsolidationReport


def kept(report: Report) -> Told:
    """What stands on record of a report: nothing that anybody said."""
    if isinstance(report, ConsolidationReport):
        merged = [[one.fact.id, [fact.id for fact in one.sources]] for one in report.merged]
        return {"merged": merged, "refused": list(report.refused), "tokens": report.tokens}
    if isinstance(report, RebuildReport):
        figures = {"calls": report.calls, "tokens": report.tokens, "cost": report.cost, "ranges": report.ranges}
        place = {"id": report.id, "start_seq": report.start_seq, "end_seq": report.end_seq}
        made = {"before": [one.id for one in report.before], "after": [one.id for one in report.after]}
        return {"layer": report.layer, "errors": list(report.errors), **figures, **place, **made}
    return asdict(report)


def told(memory: Memory, kind: str, report: Told, whose: Whose, subject: str | None) -> Report | None:
    """The report, with what is still there of what it names, as far as *subject* may see it."""
    if report is None or kind not in ("rebuild", "backfill", "consolidate"):
        return None
    user = None
    if whose.user is not None:
        user = memory.user(whose.user, org=whose.org or "default", bot=whose.bot or "default", subject=subject)
    if kind == "backfill":
        return BackfillReport(**{**report, "reasons": tuple(report["reasons"])})
    if kind == "consolidate":
        return _consolidated(report, user)
    there: dict[str, Summary | Fact] = {}
    if report["before"] or report["after"]:
        there = _there(memory, report, whose, user)
    before, after = (tuple(there[name] for name in report[which] if name in there) for which in ("before", "after"))
    rest = {name: value for name, value in report.items() if name not in ("before", "after", "errors")}
    return RebuildReport(**rest, before=before, after=after, errors=tuple(report["errors"]))


def _there(memory: Memory, report: Mapping[str, Any], whose: Whose, user: User | None) -> dict[str, Summary | Fact]:
    found: dict[str, Summary | Fact] = {}
    named = {*report["before"], *report["after"]}
    if whose.user is not None and report["layer"] != "facts":
        place: Any = {"org": whose.org or "default", "bot": whose.bot or "default", "subject": whose.subject}
        chat = memory.conversation(whose.conversation, user=whose.user, **place)
        found |= {summary.id: summary for summary in chat.summaries(live=False) if summary.id in named}
    return found | {name: fact for name in named - found.keys() if (fact := _fact(user, name)) is not None}


def _fact(user: User | None, fact_id: str) -> Fact | None:
    try:
        return None if user is None else user.fact(fact_id)
    except NotFound:
        return None


def _consolidated(report: Mapping[str, Any], user: User | None) -> ConsolidationReport:
    merged = []
    for fact_id, sources in report["merged"]:
        whole = _fact(user, fact_id)
        if whole is not None:
            parts = (_fact(user, source) for source in sources)
            merged.append(Merged(whole, tuple(fact for fact in parts if fact is not None)))
    return ConsolidationReport(tuple(merged), tuple(report["refused"]), report["tokens"])
