"""
The sentences of ``/me`` and of other pages of users, in the language of the request at hand, and values as people read and type them.

"2 weeks" stands for 14 days, "$4,800" and "6k" for an amount.  What cannot be understood stays as it was typed, so that the
registry refuses it with its reason.
"""

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

from ...digest.slots import read_amount
from ...reconcile.registry import Registry, as_number, registry
from ...reports import ErasureReceipt
from ...text import expression
from ...text.dates import date_words
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


_CURRENCY_KEY = expression(r"max_([a-z]{3})")
_DAYS_KEY = expression(r"(?:.*_)?days")
_WITH_UNIT = expression(r"(\d[\d.,]*)\s?([^\W\d_]+)")
_ABOUT = expression(
    r"(?:about|around|roughly|almost|nearly|up to|at most|max\.?|ca\.?|circa|etwa|unos|~|≈)\s*", re.IGNORECASE
)
_DAYS_OF = {"day": 1, "week": 7, "month": 30, "year": 365}


def editable_value(fact: Fact) -> str:
    """Return the text to edit a fact: its value with the unit that its sentence names, or the sentence if it has none."""
    if fact.kind != "attribute":
        return fact.text
    if fact.value == "true":
        return fact.key.replace("_", " ")
    for found in _WITH_UNIT.finditer(fact.text):
        in_days, currency = _as_days(found[0], fact.key), _CURRENCY_KEY.fullmatch(fact.key)
        if in_days == fact.value or (currency and found[1] == fact.value and found[2].lower() == currency[1]):
            return found[0]
    return fact.value


def value_as_held(fact: Fact, typed: str, known: Registry | None = None) -> str:
    """Return a typed value in the unit and the spelling in which the key of *fact* holds it."""
    if fact.kind != "attribute":
        return typed
    if _CURRENCY_KEY.fullmatch(fact.key):
        return (read_amount(_plain(typed)) or (typed, ""))[0]
    if _type_of(fact, known or registry()) != "number":
        return typed
    unit = _WITH_UNIT.fullmatch(editable_value(fact))
    bare = unit is not None and typed.strip().isdecimal() and _DAYS_KEY.fullmatch(fact.key)
    said = f"{typed.strip()} {unit[2]}" if unit and bare else typed  # "3" in place of "2 weeks"
    return _as_days(said, fact.key) or _figures(_plain(typed))


def another_currency(fact: Fact, typed: str) -> str:
    """Return the currency of a typed amount, as an ISO code, where it is not the one that the key of *fact* names."""
    key = _CURRENCY_KEY.fullmatch(fact.key)
    amount = read_amount(_plain(typed)) if key and fact.kind == "attribute" else None
    return amount[1].upper() if key and amount and amount[1] not in ("", key[1]) else ""


def _type_of(fact: Fact, known: Registry) -> str:
    category = known.categories.get(fact.category)
    key = category.keys.get(fact.key) if category else None
    return key.type if key else ""


def _plain(typed: str) -> str:
    return _ABOUT.sub("", typed.strip(), count=1) if _ABOUT.match(typed.strip()) else typed.strip()


def _figures(typed: str) -> str:
    """Return the figures of a number that people wrote with a unit or in words: 34 of "34 years old" and "thirty-four"."""
    amount = read_amount(typed)
    return amount[0] if amount and not amount[1] else as_number(typed)


def _as_days(typed: str, key: str) -> str:
    """Return a length of time in days where the key holds days: 21 of "3 weeks"; empty where it is none."""
    words = _plain(typed).casefold().replace("-", " ").split() if _DAYS_KEY.fullmatch(key) else []
    if len(words) == 1 and (joined := re.fullmatch(r"(\d+)([^\W\d_]+)", words[0])):
        words = [joined[1], joined[2]]
    if len(words) != 2:
        return ""
    for language in date_words().values():
        unit = next((name for name in _DAYS_OF if words[1] in language.units.get(name, "").split()), "")
        number = float(words[0]) if words[0].isdecimal() else language.numbers.get(words[0], 0)
        days = number * _DAYS_OF.get(unit, 0)
        if days and days == int(days):
            return str(int(days))
    return ""
