"""
What pages for end users say: one catalogue a page and language, in ``texts/``.

A catalogue is a TOML file of sentences; ``{name}`` in one is filled with what the page shows.  Templates escape the whole.
"""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from ...reports import ErasureReceipt

TEXTS = Path(__file__).parent / "texts"


class Wording:
    """The sentences of one page in one language."""

    def __init__(self, texts: dict[str, Any]) -> None:
        self._texts = texts

    def __call__(self, name: str, /, **values: object) -> str:
        """The sentence of that name (``facts.since``), filled."""
        found: Any = self._texts
        for part in name.split("."):
            found = found[part]
        return str(found).format(**values)

    def find(self, name: str, other: str) -> str:
        """The sentence of that name; *other* where the catalogue has none."""
        group, _, key = name.partition(".")
        return str(self._texts.get(group, {}).get(key, other))

    def topic(self, category: str) -> str:
        """What users call a category of facts."""
        plain = category.replace("_", " ")
        return self.find(f"topics.{category}", plain[:1].upper() + plain[1:])

    def topics(self) -> list[str]:
        """The categories that the catalogue has words for, in the order in which they are shown."""
        return list(self._texts["topics"])

    def day(self, at: datetime | None) -> str:
        """``4 March 2026``."""
        if at is None:
            return ""
        told = at.astimezone(UTC)
        return self("day", day=told.day, month=self._texts["months"][told.month - 1], year=told.year)

    def receipt(self, receipt: ErasureReceipt) -> list[str]:
        """What an erasure did, in sentences."""
        counted = [(name, number) for name, number in receipt.rows.items() if number and name in self._texts["rows"]]
        told = [f"{number:,} {self.find(f'rows.{name}', name)}" for name, number in counted]
        lines = [self("receipt.rows", rows=", ".join(told)) if told else self("receipt.nothing")]
        return [*lines, self(f"receipt.{receipt.level}")]


@cache
def wording(page: str, language: str = "en") -> Wording:
    """The catalogue of *page*."""
    return Wording(tomllib.loads((TEXTS / f"{page}.{language}.toml").read_text(encoding="utf-8")))
