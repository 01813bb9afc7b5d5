"""The sentences of ``/me`` and of other pages of users, in the language of the request at hand."""

from __future__ import annotations

import json
import re
import tomllib
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import Request

from ...reports import ErasureReceipt
from ...types import Fact

TEXT_FOLDER = Path(__file__).parent / "texts"


class Texts:
    """The texts of one page in one language; ``direction`` is the one in which it is written."""

    def __init__(self, texts: dict[str, Any], language: str = "en") -> None:
        self._texts, self.language = texts, language
        self.direction = "rtl" if language in RIGHT_TO_LEFT else "ltr"

    def script_words(self) -> str:
        """Return what scripts say, as JSON; empty for English, which they speak themselves."""
        return "" if self.language == "en" else json.dumps(self._texts["script"], ensure_ascii=False)

    def __call__(self, name: str, /, **values: object) -> str:
        """Return the text *name* (``facts.since``) with its *values*."""
        found: Any = self._texts
        for part in name.split("."):
            found = found[part]
        return str(found).format(**values)

    def find(self, name: str, other: str) -> str:
        """Return the text *name*, or *other* if there is none."""
        group, _, key = name.partition(".")
        return str(self._texts.get(group, {}).get(key, other))

    def topic(self, category: str) -> str:
        """Return the title of a category of facts."""
        plain = category.replace("_", " ")
        return self.find(f"topics.{category}", plain[:1].upper() + plain[1:])

    def topics(self) -> list[str]:
        """Return the categories that have a title, in the order shown."""
        return list(self._texts["topics"])

    def day(self, at: datetime | None, precision: str = "day") -> str:
        """Format as ``4 March 2026``, ``March 2026``, or ``2026``."""
        utc = at.astimezone(UTC) if at else None
        return self(precision, day=utc.day, month=self._texts["months"][utc.month - 1], year=utc.year) if utc else ""

    def dated(self, fact: Fact) -> str:
        """Say since when a fact holds, or when it was told or happened (`Fact.dated`)."""
        said, day = fact.dated
        precision = ("year", "month", "day")[day.count("-")]
        name = "since_part" if precision != "day" else said.replace(" ", "_")
        return self(f"facts.{name}", day=self.day(fact.valid_from, precision))

    def receipt(self, receipt: ErasureReceipt) -> list[str]:
        """Describe an erasure in sentences."""
        counted = [(name, number) for name, number in receipt.rows.items() if number and name in self._texts["rows"]]
        parts = [f"{number:,} {self.find(f'rows.{name}', name)}" for name, number in counted]
        lines = [self("receipt.rows", rows=", ".join(parts)) if parts else self("receipt.nothing")]
        return [*lines, self(f"receipt.{receipt.level}")]


LANGUAGES = {"en": "English", "de": "Deutsch", "es": "Español", "ko": "한국어", "ar": "العربية"}
RIGHT_TO_LEFT = ("ar",)
LANGUAGE_COOKIE = "holdfast_language"
_spoken: ContextVar[str] = ContextVar("language of the user's page", default="en")


@cache
def _texts(page: str, language: str) -> Texts:
    return Texts(tomllib.loads((TEXT_FOLDER / f"{page}.{language}.toml").read_text(encoding="utf-8")), language)


def load_texts(page: str, language: str | None = None) -> Texts:
    """Load the texts of *page* from ``texts/``, in the language of the request at hand if none is named."""
    return _texts(page, language or _spoken.get())


def speak(request: Request) -> Texts:
    """Answer this request in the language that its user chose, or else in the first of the browser's that is there."""
    _spoken.set(wanted_language(request))
    return load_texts("me")


def wanted_language(request: Request) -> str:
    """Return the language of the cookie, or else that of ``Accept-Language``; English where neither is there."""
    ranked = []
    for number, part in enumerate(request.headers.get("accept-language", "")[:1000].split(",")):
        name, _, weight = part.partition(";")
        share = re.fullmatch(r"\s*q=([01](?:\.\d{0,3})?)\s*", weight)
        ranked.append((-float(share[1]) if share else -1.0, number, name.strip().lower().partition("-")[0]))
    offered = [request.cookies.get(LANGUAGE_COOKIE, ""), *(name for share, _, name in sorted(ranked) if share)]
    return next((name for name in offered if name in LANGUAGES), "en")
