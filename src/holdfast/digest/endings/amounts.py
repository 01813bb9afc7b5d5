"""New numbers, days and places of a known fact, said without the rest of it: "62k now", "she moved to Boston"."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from ...scope import SELF
from ..grammar import load_language
from .known import KnownValue

Change = tuple[int, int, str]
"""The characters of a message that give a new value, and the value or sentence of the fact with it."""

_AMOUNT = re.compile(r"(?<![\w.])[$£€]?\d+(?:[.,]\d+)*k?(?![\d'])", re.IGNORECASE)
_UNIT = re.compile(r"\s?(%|[a-zµ]+)", re.IGNORECASE)
_DATE = (
    r"(?:(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*\.?(?: \d{1,2}(?:st|nd|rd|th)?)?(?![\w'])"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)days?(?: at \d{1,2}(?::\d\d)? ?(?:[ap]m)?)?|\d{1,2}(?::\d\d)? ?[ap]m\b|\d{1,2}:\d\d)"
)
_DATED = re.compile(_DATE, re.IGNORECASE)
_PLACE = re.compile(r"((?:\blives?|\bliving) in )[A-Z][\w'-]+(?: [A-Z][\w'-]+)*")
_MAY_CHANGE = re.compile(
    rf"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|half|halved|doubled|tripled|moved?|moving|relocated|transferred|resettled|gone)\b|{_DATE}",
    re.IGNORECASE,
)
_ALIKE = 3  # a new amount is at most so many times the old one


def may_change(text: str) -> bool:
    """Whether *text* may give a number, a day or a place: a cheap look, before the facts are looked at one by one."""
    return _MAY_CHANGE.search(text) is not None


def changed(code: str, text: str, one: KnownValue, people: Sequence[str], *, just: bool) -> Change | None:
    """Return a new value of a known fact; *people* are the names of whom it is about, *just* whether it was stated shortly before."""
    words = _words(code)
    if not words:
        return None
    old = one.value if one.kind == "attribute" else one.text
    return (
        _place(words, text, one, old, people)
        or _age(text, one, people, just=just)
        or _dose(words, text, one, just=just)
        or _day(words, text, one, old)
        or _number(words, text, one, old, just=just)
    )


def _words(code: str) -> Mapping[str, str]:
    rules = load_language(code)
    words: Mapping[str, str] = rules.ended.get("amounts", {}) if rules is not None else {}
    return words


@lru_cache(maxsize=512)
def _expression(source: str, names: tuple[str, ...] = ()) -> re.Pattern[str]:
    listed = "|".join(map(re.escape, sorted(names, key=len, reverse=True))) or r"(?!)"
    return re.compile(source.replace("<names>", f"(?:{listed})").replace(" ", r"\s+"), re.IGNORECASE)


def _place(words: Mapping[str, str], text: str, one: KnownValue, old: str, people: Sequence[str]) -> Change | None:
    if not people or ((one.category, one.key) != ("home", "lives_in") and not _PLACE.search(old)):
        return None
    found = _expression(words["moved"], tuple(people)).search(text)
    if found is None:
        return None
    new = found["new"][:1].upper() + found["new"][1:]
    return found.start(), found.end(), new if one.kind == "attribute" else _PLACE.sub(rf"\g<1>{new}", old, count=1)


def _age(text: str, one: KnownValue, people: Sequence[str], *, just: bool) -> Change | None:
    if (one.category, one.key) != ("identity", "age") or not one.value.isdigit():
        return None
    whose = ("my",) if one.subject == SELF else (*(f"{name}'s" for name in people), *(("his", "her") if just else ()))
    found = _expression(r"\b<names> (?P<new>\d{1,3})(?:st|nd|rd|th) (?:birthday|bday)\b", whose).search(text)
    if found is None or not 0 < int(found["new"]) - int(one.value) < 5:
        return None
    return found.start(), found.end(), found["new"]


def _dose(words: Mapping[str, str], text: str, one: KnownValue, *, just: bool) -> Change | None:
    amount = _AMOUNT.match(one.value)
    if one.category != "medication" or amount is None or not (just or one.words.casefold() in text.casefold()):
        return None
    for name, factor in (("halved", 0.5), ("doubled", 2), ("tripled", 3)):
        if found := _expression(words[name], (one.words or "dose",)).search(text):
            new = f"{float(amount[0].replace(',', '.')) * factor:g}"
            return found.start(), found.end(), new + one.value[amount.end() :]
    return None


def _day(words: Mapping[str, str], text: str, one: KnownValue, old: str) -> Change | None:
    dates = list(_DATED.finditer(old))
    named = tuple(name for name in one.names if name.casefold() in text.casefold())
    if len(dates) != 1 or one.kind != "statement" or not named:
        return None
    found = _expression(words["day"].replace("<date>", _DATE), named).search(text)
    if found is None or found["new"].casefold() == dates[0][0].casefold():
        return None
    return found.start(), found.end(), old[: dates[0].start()] + found["new"].strip() + old[dates[0].end() :]


def _number(words: Mapping[str, str], text: str, one: KnownValue, old: str, *, just: bool) -> Change | None:
    amounts = list(_AMOUNT.finditer(old))
    if len(amounts) != 1 or (one.category in ("appointment", "schedule", "medication") and one.kind == "attribute"):
        return None
    amount = amounts[0]
    nouns = tuple(name for name in (*one.names, one.key.replace("_", " ")) if len(name) > 2 and not name.isdigit())
    sources = [words["named"]] if any(name.casefold() in text.casefold() for name in nouns) else []
    sources += [words["now"], words["to"]] if just else []
    unit = _UNIT.match(old, amount.end())
    counted = re.match(r" (?!years?\b|months?\b)([a-z]{4,})", old[amount.end() :]) or re.search(
        r"how_many_([a-z]{4,})", one.key
    )
    if just and counted:
        sources.append(words["count"].replace("<thing>", re.escape(counted[1].rstrip("s"))))
    for source in sources:
        found = _expression(source.replace("<number>", words["number"]), nouns).search(text)
        if found is None:
            continue
        new = _digits(words, found["new"])
        if not _alike(new, amount[0]) or not _same_unit(found.groupdict().get("unit") or "", unit[1] if unit else ""):
            continue
        return found.start(), found.end(), old[: amount.start()] + new + old[amount.end() :]
    return None


def _digits(words: Mapping[str, str], number: str) -> str:
    spelled = words["spelled"].split()
    return str(spelled.index(number.casefold()) + 1) if number.casefold() in spelled else number


def _alike(new: str, old: str) -> bool:
    """Whether a number can be another value of one that is known: of its size, and another."""
    a, b = (
        float(re.sub(r"[^\d.]", "", part.replace(",", "")) or 0) * (1000 if part[-1] in "kK" else 1)
        for part in (new, old)
    )
    if (new[-1] in "kK") != (old[-1] in "kK") and a / _ALIKE > b:
        return False
    return a != b and b > 0 and (1 / _ALIKE <= a / b <= _ALIKE or abs(a - b) <= 2)


def _same_unit(new: str, old: str) -> bool:
    return not new or not old or new[:1].casefold() == old[:1].casefold()
