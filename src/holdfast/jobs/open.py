"""Which facts the background may touch."""

from __future__ import annotations

from functools import partial

from ..ingest.consent import effective_consent
from ..store import FactRow, ReadView


def open_facts(view: ReadView) -> list[FactRow]:
    """The live facts in sight of the scope whose subject nobody paused; without their quotes."""
    chosen = [(row.subject, row.state) for row in view.at(None, None).consent()]
    state = partial(effective_consent, chosen)
    return [row for row in view.facts(evidence=False) if state(row.fact.subject) == "active"]
