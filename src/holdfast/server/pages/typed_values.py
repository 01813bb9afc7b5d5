"""
The values of facts as people read and type them: "2 weeks" for 14 days, "$4,800" and "6k" for an amount.

What cannot be understood stays as it was typed, so that the registry refuses it with its reason.
"""

from __future__ import annotations

import re

from ...digest.slots import read_amount
from ...reconcile.registry import Registry, as_number, registry
from ...text import expression
from ...text.dates import date_words
from ...types import Fact

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
