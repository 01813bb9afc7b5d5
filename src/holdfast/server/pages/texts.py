"""
The sentences of the pages in the language of the request at hand, numbers and times in it, and values as people read and type them.

The page of a user, ``/me``, names its sentences (``facts.since``, in ``texts/me.*.toml``), since apps may reword it.  The pages
of operators name a sentence by its English text: ``_("Show")`` in a template, `translate` in Python, and `mark` where it is only
written down.  ``texts/pages.*.toml`` has each in the other languages; one that is missing there stays English.

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
from ...jobs.metrics import DEFINITIONS
from ...reconcile.registry import Registry, as_number, registry
from ...reports import ErasureReceipt
from ...text import expression
from ...text.dates import date_words
from ...types import Fact

TEXT_FOLDER = Path(__file__).parent / "texts"


def mark(text: str) -> str:
    """Return *text* as it is: a sentence of the catalogs, which `translate` is given when it is shown."""
    return text


# What scripts say on the pages of operators, by the names that they know it by, beside the words of /me.
SCRIPT_WORDS = {
    "offline": mark("Not connected. Last update at {time}; trying to reconnect."),
    "section": mark("{title} changed"),
    "refused": mark("Refused ({status})."),
    "copied": mark("Copied."),
    "no_copy": mark("This browser does not let a page copy. Select the text and copy it by hand."),
    "not_reached": mark("The server could not be reached. Try again."),
    "whole": mark("The whole conversation"),
    "range": mark("Messages {first} to {last}"),
    "message": mark("Message {number}"),
    "min": mark("{count} min ago"),
    "h": mark("{count} h ago"),
    "d": mark("{count} d ago"),
    "hour": mark("Hour"),
    "day": mark("Day"),
    "dollars": mark("${amount}"),
}
# Words of the library that pages show: states, roles, kinds, parts of a context, what was counted, reasons, errors, and
# categories that /me calls otherwise ("About you" for identity).
LIBRARY_WORDS = (
    *"""
    dead overdue waiting running ready cancelled done failed interrupted refused checked active paused opted-out
    replaced retracted expired archived merged unmerged rebuilt operator app user subject assistant system tool
    import rebuild backfill consolidate fact message summary facts messages summaries meta chunk episodes vectors
    part query opening character earlier recalled recent conversations quotes edges documents jobs events prompts
    rejected Append Context Search identity communication possession
    """.split(),
    "meta summaries",
    "chunk summaries",
    "no longer true",
    "never true",
    "no room in the budget",
    "no room in the budget for their summary",
    "no summary covers them yet",
    "cut to fit the budget",
    "contexts hold summaries by themselves",
    "no data recorded yet",
    "every message is summarized",
    "no model was asked",
    "no user message falls into this time",
    "no reply was stored by the process that made its context",
    "There is no such path",
    "This path has no such method",
    "A key is needed",
    "This key opens nothing",
    "This page may not ask here",
    "The request cannot be used",
    "Something broke here",
    "the log of the server says more",
    *DEFINITIONS.values(),
)
_DECIMAL_COMMA = ("de", "es")
_SWAPPED = str.maketrans(",.", ".,")


class Texts:
    """The texts of one page in one language; ``direction`` is the one in which it is written."""

    def __init__(self, texts: dict[str, Any], language: str = "en") -> None:
        self._texts, self.language = texts, language
        self.direction = "rtl" if language in RIGHT_TO_LEFT else "ltr"

    def script_words(self) -> str:
        """Return what scripts say, as JSON; empty for English, which they speak themselves."""
        if self.language == "en":
            return ""
        further = {name: translate(words) for name, words in SCRIPT_WORDS.items()}
        return json.dumps({**self._texts["script"], **further}, ensure_ascii=False)

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
        since = self(f"facts.{name}", day=self.day(fact.valid_from, precision))
        return self("facts.ends", since=since, day=self.day(fact.last_day)) if fact.last_day else since

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


def speak(request: Request) -> None:
    """Answer this request in the language that its user chose, or else in the first of the browser's that is there."""
    _spoken.set(wanted_language(request))


def wanted_language(request: Request) -> str:
    """Return the language of the cookie, or else that of ``Accept-Language``; English where neither is there."""
    ranked = []
    for number, part in enumerate(request.headers.get("accept-language", "")[:1000].split(",")):
        name, _, weight = part.partition(";")
        share = re.fullmatch(r"\s*q=([01](?:\.\d{0,3})?)\s*", weight)
        ranked.append((-float(share[1]) if share else -1.0, number, name.strip().lower().partition("-")[0]))
    offered = [request.cookies.get(LANGUAGE_COOKIE, ""), *(name for share, _, name in sorted(ranked) if share)]
    return next((name for name in offered if name in LANGUAGES), "en")


@cache
def _catalog(language: str) -> dict[str, str]:
    """Return the sentences of operators' pages by their English text; empty for English."""
    path = TEXT_FOLDER / f"pages.{language}.toml"
    return {} if language == "en" else tomllib.loads(path.read_text(encoding="utf-8"))


def translate(text: str, /, **values: object) -> str:
    """Return an English sentence of the pages in the language of the request at hand, with its *values*."""
    said = _catalog(_spoken.get()).get(text, text)
    return said.format(**values) if values else said


def category_words(category: str) -> str:
    """Return the name of a category of facts, as operators read it."""
    plain = category.replace("_", " ")
    said = translate(plain)
    return said if said != plain or _spoken.get() == "en" else load_texts("me").topic(category)


def plural(one: str, many: str, count: float, /, **values: object) -> str:
    """Return the form of a sentence that goes with a number, ``{count}``."""
    return plural_of(f"{one} | {many}", count, **values)


def plural_of(both: str, count: float, /, **values: object) -> str:
    """Do the same for a sentence that was marked in both forms, ``{count} fact | {count} facts``."""
    language = _spoken.get()
    forms = _catalog(language).get(both, both).split(" | ")
    said = forms[min(_form_of(language, count), len(forms) - 1)]
    return said.format(count=figures(f"{count:,}"), **values)


def _form_of(language: str, count: float) -> int:
    """Return which form of a plural a number takes: of one and others, in Arabic of none, one, two, few, many and others."""
    if language != "ar":
        return int(count != 1)
    if count in (0, 1, 2):
        return int(count)
    return 3 if 3 <= count % 100 <= 10 else 4 if 11 <= count % 100 <= 99 else 5


def figures(text: str) -> str:
    """Return a number that is written as in English, ``1,204.5``, as the language of the request writes it."""
    return text.translate(_SWAPPED) if _spoken.get() in _DECIMAL_COMMA else text


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
    if currency := _CURRENCY_KEY.fullmatch(fact.key):
        amount, named = read_amount(_plain(typed)) or (typed, "")
        return amount if named in ("", currency[1]) else f"{amount} {named}"
    if _type_of(fact, known or registry()) != "number":
        return typed
    unit = _WITH_UNIT.fullmatch(editable_value(fact))
    bare = unit is not None and typed.strip().isdecimal() and _DAYS_KEY.fullmatch(fact.key)
    said = f"{typed.strip()} {unit[2]}" if unit and bare else typed  # "3" in place of "2 weeks"
    return _as_days(said, fact.key) or _figures(_plain(typed))


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
