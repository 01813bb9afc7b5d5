"""The doctor's whole examination of a store."""

from __future__ import annotations

from collections import Counter

from ..reports import Finding, Report
from .doctor import RULES
from .protocol import Store
from .queries import newest


def examined(store: Store) -> Report:
    """The whole examination: the database, then every rule that the rows must keep."""
    health = store.health()
    findings = (*health.findings, *store.check())
    dead = Counter(job.kind for job in store.jobs(state="dead"))
    notices = list(health.notices)
    if dead:
        kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(dead.items()))
        notices.append(Finding("dead-jobs", kinds, "`holdfast jobs --state dead` says why; retry or cancel them"))
    return Report(
        ok=not findings,
        findings=findings,
        checked=(*health.checked, "dead-jobs", *RULES),
        notices=tuple(notices),
        database={**health.about, "schema": newest()},
    )
