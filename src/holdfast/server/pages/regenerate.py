"""Making a range of a conversation again from its page: first what it would take, then the work."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ...conversation import Conversation
from ...errors import ConfigError, HoldfastError
from ...reports import RebuildReport
from ..jobs import OnProgress, Owner, ReportData, Task, Tasks, load_report, report_data
from ..schemas import CallerDep
from .shell import Form, here, number, see_other

PATIENCE_S = 0.8
CHOICES = {
    "chunk": ("Chunk summaries, with facts and episodes", ("summaries", "facts", "episodes")),
    "summaries": ("Chunk summaries", ("summaries",)),
    "meta": ("Meta summaries", ("meta",)),
    "facts": ("Facts", ("facts",)),
    "episodes": ("Episodes", ("episodes",)),
    "vectors": ("Embeddings", ("vectors",)),
}


@dataclass(slots=True)
class Estimate:
    """What making a range again would take, at most; ``refused`` says why it cannot be done."""

    what: str
    words: str
    first: int | None
    last: int | None
    ranges: int = 0
    calls: int = 0
    tokens: int = 0
    cost: float | None = 0.0
    refused: str = ""
    hint: str = ""
    skipped: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far such work has come; ``report`` when it is done."""

    task: Task
    report: RebuildReport | None


def asked(request: Request, which: Conversation) -> Estimate | None:
    """The estimate that the address asks for."""
    what = request.query_params.get("make", "")
    if what not in CHOICES:
        return None
    words, layers = CHOICES[what]
    told = Estimate(what, words, number(request, "first"), number(request, "last"))
    for layer in layers:
        try:
            report = which.rebuild(layer, start_seq=told.first, end_seq=told.last, dry_run=True)
        except ConfigError as error:
            if len(layers) == 1:
                told.refused, told.hint = error.message, error.hint
            told.skipped.append(layer)
        except HoldfastError as error:
            told.refused, told.hint = error.message, error.hint
        else:
            _add(told, report)
    return told


def _add(told: Estimate, report: RebuildReport) -> None:
    told.ranges += report.ranges
    told.calls += report.calls
    told.tokens += report.tokens
    told.cost = None if told.cost is None or report.cost is None else told.cost + report.cost


def owner(asked: CallerDep, which: Conversation) -> Owner:
    """Whose work making parts of this conversation again is."""
    grant = asked.grant
    return Owner(grant.org, grant.user, grant.bot, grant.subject, which.id)


def current(asked: CallerDep, which: Conversation, tasks: Tasks) -> Progress | None:
    """The last such work on this conversation that this server was asked for."""
    task = next(iter(tasks.of(owner(asked, which))), None)
    if task is None:
        return None
    report = load_report(asked.memory, task.kind, task.report, task.owner, None) if task.state == "done" else None
    return Progress(task, report if isinstance(report, RebuildReport) else None)


def begin(request: Request, asked: CallerDep, which: Conversation, form: Form, tasks: Tasks) -> Response:
    """Make the range again, layer by layer, in the background; what cannot be made stays as it was."""
    what = form["make"]
    if what not in CHOICES:
        raise HTTPException(422, "There is no such layer")
    span: dict[str, Any] = {"start_seq": _number(form, "first"), "end_seq": _number(form, "last")}
    layers = [layer for layer in CHOICES[what][1] if _makes(which, layer, span, alone=len(CHOICES[what][1]) == 1)]

    def work(step: OnProgress) -> ReportData:
        total = RebuildReport(what)
        for number_of, layer in enumerate(layers):
            report = which.rebuild(layer, **span, progress=partial(_step, step, number_of, len(layers)))
            total = _sum(total, report)
        return report_data(total)

    task = tasks.order("rebuild", owner(asked, which), work)
    task.over.wait(PATIENCE_S)  # without a model it is over before anybody wants to see how far it is
    return see_other(here(request, make=None, first=None, last=None))


def _step(step: OnProgress, layer: int, layers: int, done: int, ranges: int) -> None:
    """Layers are told one after the other: each is an equal part of the whole."""
    step(layer * ranges + done, layers * ranges)


def _makes(which: Conversation, layer: str, span: dict[str, Any], *, alone: bool) -> bool:
    """Whether this memory makes the layer at all; when it is the only one that is wanted, the refusal is told."""
    try:
        which.rebuild(layer, **span, dry_run=True)
    except ConfigError:
        if alone:
            raise
        return False
    return True


def _sum(total: RebuildReport, report: RebuildReport) -> RebuildReport:
    return RebuildReport(
        total.layer,
        calls=total.calls + report.calls,
        tokens=total.tokens + report.tokens,
        cost=None if total.cost is None or report.cost is None else total.cost + report.cost,
        ranges=total.ranges + report.ranges,
        errors=total.errors + report.errors,
    )


def _number(form: Form, name: str) -> int | None:
    value = form.get(name, "").strip()
    return int(value) if value.isdecimal() else None
