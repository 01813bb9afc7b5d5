"""Making a range of a conversation again from its page: first what it would take, then the work."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ...conversation import Conversation
from ...errors import ConfigError, HoldfastError
from ...reports import RebuildReport
from ..caller import Asked
from .shell import Form, here, number, see_other

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


def begin(request: Request, asked: Asked, which: Conversation, form: Form) -> Response:
    """Make the range again, layer by layer; what cannot be made stays as it was."""
    what = form["make"]
    if what not in CHOICES:
        raise HTTPException(422, "There is no such layer")
    span: dict[str, Any] = {"start_seq": _number(form, "first"), "end_seq": _number(form, "last")}
    layers, errors = CHOICES[what][1], 0
    for layer in layers:
        try:
            errors += len(which.rebuild(layer, **span).errors)
        except ConfigError:
            if len(layers) == 1:
                raise
    address = here(request, make=None, first=None, last=None)
    return see_other(address, said="rebuilt-partly" if errors else "rebuilt")


def _number(form: Form, name: str) -> int | None:
    value = form.get(name, "").strip()
    return int(value) if value.isdecimal() else None
