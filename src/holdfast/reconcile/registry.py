"""
Kinds of facts, and how each is addressed.

The registry is data (``categories.toml``): for every category how many live facts it may hold and
which questions its keys answer.  An undeclared category still works: its facts join
rather than replace, unless the write itself says "replace".  When in doubt, join, never destroy.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field, replace
from functools import cache, lru_cache
from importlib import resources
from typing import Any

from ..clock import DAY_MS, from_ms
from ..config import did_you_mean
from ..errors import ConfigError
from ..text import dataclass, expression
from ..text.dates import date_words, days_counted, end_said, time_ahead
from ..text.terms import language_of, terms
from ..types import BY_HAND_SOURCE, Candidate, Cardinality

CARDINALITIES: tuple[Cardinality, ...] = ("exclusive", "single", "multi")
TYPES = ("text", "name", "number", "money", "date", "bool", "dose")
TRANSIENT_DAYS = 14
"""For so many days a passing fact holds whose end was not said, where its category declares nothing else."""

DAYS_AFTER = 14
"""For so many days what was to come is believed after its day, where its length was not said."""

# What no "until" of its words ends: it lasts, lies ahead, or has a time of its own.
_ENDLESS = frozenset(
    "plan appointment trip goal life project history identity family allergy pets contact event budget episode".split()
)

# Where an illness is kept, and what says of one that it stays or comes back.
_ILL = frozenset((("health", "has_condition"), ("health", ""), ("context", "")))
_HAS = expression(
    r"^(?:(?:\w+ )?(?:has|have|suffers from|is (?:down|ill|sick) with|is recovering from) )?(?:(?:an?|the|his|her|their|my) )?"
    r"(?:(?:left|right|bad|nasty|awful|terrible|horrible|mild|slight|severe|double|another|annoying|stubborn) )*",
    re.IGNORECASE,
)
_LONG_ILL = expression(
    r"\b(?:chroni\w*|crónic\w*|cronic\w*|recurr\w+|recurrent\w*|récidiv\w*|persistent|permanent\w*|lifelong|long[- ]?(?:term|covid)|for (?:years|months|life)|years?|always|often|regularly|every|each|a lot|seasonal\w*|monthly|(?:comes?|came|coming) back|suffer\w* from|keeps?|kept"
    r"|gets|get|prone|tends?|frequent\w*|constant\w*|never heals?|immer|ständig|oft|wieder|toujours|souvent|siempre|history|predispos\w*|afraid|fear|allerg\w*)\b",
    re.IGNORECASE,
)

MOST_LISTED = 6  # keys of one category that a reader is shown

_NUMBER = expression(r"[-+]?\d[\d.,' ]*")
_RATED = expression(
    r"\s*\d[\d.,']*\s*(?:/ ?|(?:al?|an|per|pro|por|im|par|each|every|for|für|para|pour|de)\s)[^\d]{1,50}", re.IGNORECASE
)  # "900 a month"
_MONEY = expression(r"[^\d\s]{0,4}\s*\d[\d.,' ]*\s*[^\d\s]{0,12}")
_THOUSANDS = expression(r"([^\d\s]{0,4}\s*)(\d{1,4}(?:[.,]\d{1,2})?)\s?(?:k|K)\b(.*)")
_DATE = expression(r"\d{4}(-\d{2}(-\d{2})?)?|\d{2}-\d{2}|\d{1,2}:\d{2}")


# Categories that say nothing of what a fact is about: its key alone tells.
_GENERAL = frozenset("about bio general info other personal personal_info profile user user_info".split())
_AMERICAN = {
    "centre": "center", "cheque": "check", "favourite": "favorite", "grey": "gray", "jewellery": "jewelry", "licence": "license",
    "metre": "meter", "litre": "liter", "mum": "mom", "organisation": "organization", "programme": "program",
    "theatre": "theater", "travelling": "traveling", "tyre": "tire",
}  # fmt: skip
_OUR = expression(r"^((?:behavi|col|flav|hon|hum|harb|lab|neighb|od|rum)o)ur")
_YES_OR_NO = expression(
    r"(?:(?P<no>no|never|not any ?more|nein|nicht mehr|nie|nunca|ya no|non|jamais|n\u00e3o|mai)|yes|ja|s[i\u00ed\u00ec]|oui|sim)(?=$|[,;:(\u2013\u2014-]|\.$| (?:since|seit|desde|depuis|dal?)\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Key:
    """
    One key of a category: the question it answers, how its values join, and their type.

    ``opposite``: the addresses that cannot hold the same thing; ``aliases``: other names that models give it;
    ``covers``: addresses at which the same value says nothing more; ``holds_days``: how long a fact of it can hold.
    """

    name: str
    question: str = ""
    cardinality: Cardinality = "multi"
    type: str = "text"
    opposite: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    covers: tuple[str, ...] = ()
    holds_days: float | None = None


@dataclass(frozen=True, slots=True)
class Category:
    """
    One category; ``exclusive`` means that it holds one live fact, whatever the key.

    ``type`` and ``opposite`` are those of the keys that it does not list; ``listed`` names the keys that a model is shown;
    a key that begins with ``single_prefix`` holds one value; ``passing`` are the values that last so many days.
    """

    name: str
    description: str = ""
    cardinality: Cardinality | None = None
    keys: Mapping[str, Key] = field(default_factory=dict)
    type: str = "text"
    opposite: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    transient_days: float = TRANSIENT_DAYS
    listed: tuple[str, ...] = ()
    single_prefix: str = ""
    passing: tuple[tuple[float, re.Pattern[str]], ...] = ()


@dataclass(frozen=True, slots=True)
class Slot:
    """An address within a category: which live fact a new one would meet."""

    cardinality: Cardinality
    key: str
    value: str


class Registry:
    """The declared categories, with the answer for undeclared ones."""

    def __init__(self, categories: Mapping[str, Category]) -> None:
        self.categories = dict(categories)
        self._names: dict[str, str] = {}
        self._addresses: dict[tuple[str, str], tuple[str, str]] = {}
        self._general: dict[str, tuple[str, str]] = {}
        for category in categories.values():
            for name in category.aliases:
                self._names.setdefault(fold_name(name), category.name)
            for key in category.keys.values():
                for name in (*key.aliases, key.name):
                    there, _, own = name.rpartition("/")
                    self._addresses[there or category.name, fold_name(own)] = category.name, key.name
                    self._general.setdefault(fold_name(own), (category.name, key.name))
        self._names.update((fold_name(name), name) for name in categories)
        self._covering: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for category in categories.values():
            for own in category.keys:
                for address in self.covered(category.name, own):
                    self._covering.setdefault(address, []).append((category.name, own))

    def category_name(self, name: str) -> str:
        """Return the declared name of a category that is spelled otherwise; undeclared ones as they are."""
        return name if name in self.categories else self._names.get(fold_name(name), name)

    def known_address(self, candidate: Candidate) -> Candidate:
        """Return an attribute at its declared address, where its own names are other names of that; else as it is."""
        category, key = self.category_name(candidate.category), candidate.key
        category = "tech" if category == "technical" and key else category  # a broad label, with a key of its own
        folded, by_hand = fold_name(key), candidate.source == BY_HAND_SOURCE
        known = self.categories.get(category)
        if known is None and fold_name(category) in _GENERAL:
            category, key = self._general.get(folded, (category, key))
        elif known is None or key not in known.keys:
            category, key = self._addresses.get((category, folded), (category, key))
        if category == "budget" and folded in _PLAIN_LIMITS:
            key = _limit_named_by_currency(candidate) or key
        kind = self._type(category, key)
        answer = _YES_OR_NO.match(candidate.value.strip()) if kind == "bool" else None
        value = ("false" if answer["no"] else "true") if answer else candidate.value  # "no, not since May"
        value = as_number(as_amount(value)) if kind in ("number", "money") else value
        value = _without_currency(value, key) if kind == "number" and category == "budget" else value
        moved = replace(candidate, category=category, key=key, value=value)
        respelled = fold_name(candidate.category), folded
        if by_hand and (fold_name(category), fold_name(key)) != respelled:
            return candidate  # who writes by hand finds it where it was put
        return candidate if candidate.key and self.refusal(moved) else moved

    def addresses_called(self, words: str) -> frozenset[tuple[str, str]]:
        """Return the addresses that *words* name, with no key for a whole category: "job", "favorite color"."""
        name, found = fold_name(words), set[tuple[str, str]]()
        if name.startswith("favorite_"):
            found.add(("favorite", name.removeprefix("favorite_")))
        elif name in self._general:
            found.add(self._general[name])
        if name in self._names and (name in self.categories or name not in self._general):
            found.add((self._names[name], ""))
        return frozenset(found)

    def _type(self, category: str, key: str) -> str:
        known = self.categories.get(category)
        if known is None:
            return "text"
        return known.keys[key].type if key in known.keys else known.type

    def holds_doses(self, category: str, key: str) -> bool:
        """Whether the values of an address are doses: an amount and a schedule, either of which may change alone."""
        return self._type(category, key) == "dose"

    def end_of(self, candidate: Candidate, quote: str, said_at_ms: int) -> int | None:
        """Return when a claim stops holding: as its words say, else as is usual for its category or key; None for no end."""
        if candidate.op == "assert" and candidate.lifetime != "permanent" and candidate.category not in _ENDLESS:
            prescribed = candidate.category == "medication"
            for words in dict.fromkeys((candidate.value, candidate.text, quote)):
                end = end_said(words, from_ms(said_at_ms), language_of(words), prescribed=prescribed) if words else None
                if end is not None:
                    return end
        days = self._days_ill(candidate, quote) or self._days_held(candidate)
        if days is None:
            return None
        over = None
        if candidate.lifetime == "transient":  # what is to come passes after its day, not after it was told
            over = time_ahead(
                candidate.text, quote, from_ms(said_at_ms), language_of(candidate.text), spare=min(days, DAYS_AFTER)
            )
        return said_at_ms + round(days * DAY_MS) if over is None else over

    def _days_ill(self, candidate: Candidate, quote: str) -> float | None:
        """Return for how many days an acute illness or injury holds; None for what comes back, is long-lasting, or is no illness."""
        health = self.categories.get("health")
        state = candidate.lifetime != "event" and candidate.op == "assert"  # rules call every condition permanent
        if health is None or not state or (candidate.category, candidate.key) not in _ILL:
            return None
        if any(_LONG_ILL.search(words) for words in (candidate.value, candidate.text, quote) if words):
            return None
        named = _HAS.sub("", candidate.value or candidate.text).rstrip(". ").casefold()
        one = named.removesuffix("s")
        named = one if one != named and re.search(rf"\b{re.escape(one)}\b", quote.casefold()) else named
        return next((days for days, names in health.passing if names.fullmatch(named)), None)

    def _days_held(self, candidate: Candidate) -> float | None:
        """Return for how many days a claim holds when its end was not said."""
        known = self.categories.get(candidate.category)
        if candidate.lifetime == "transient":
            return known.transient_days if known else TRANSIENT_DAYS
        own = known.keys.get(candidate.key) if known and candidate.value.casefold() not in ("false", "no") else None
        if own is None or own.holds_days is None:
            return None
        return max(own.holds_days - days_counted(candidate.text), TRANSIENT_DAYS)  # "34 weeks pregnant" ends soon

    def cardinality(self, category: str, key: str, join: str = "") -> Cardinality:
        """Return how a value joins the live ones at its address; *join* counts only where nothing is declared."""
        known = self.categories.get(category)
        if known is not None:
            if known.cardinality == "exclusive":
                return "exclusive"
            if key in known.keys:
                own = known.keys[key].cardinality
                return "multi" if (own, category, join) == ("single", "tech", "add") else own  # one editor at work
            if known.single_prefix and key.startswith(known.single_prefix):
                return "single"
        if join:
            return "single" if join == "replace" else "multi"
        return (known.cardinality if known else None) or "multi"

    def denies_one_of(self, candidate: Candidate) -> bool:
        """Whether a claim says only which of the exclusive facts of its category does not hold: ``vegan = false``."""
        known = self.categories.get(candidate.category)
        exclusive = known is not None and known.cardinality == "exclusive"
        return exclusive and candidate.kind == "attribute" and candidate.value.casefold() in ("false", "no")

    def slot(self, category: str, key: str, value: str, join: str = "") -> Slot:
        """Return the address of a fact: the category alone, the key, or the key with its value."""
        cardinality = self.cardinality(category, key, join)
        if cardinality == "exclusive":
            return Slot(cardinality, "", "")
        if cardinality == "single":
            return Slot(cardinality, key, "")
        return Slot(cardinality, key, normalize_value(value))

    def opposites(self, category: str, key: str) -> list[tuple[str, str]]:
        """Return the addresses that cannot hold the same thing (liked, disliked); an empty key means every key."""
        known = self.categories.get(category)
        if known is None:
            return []
        named = known.keys[key].opposite if key in known.keys else known.opposite
        found = [name.rpartition("/") for name in named]
        return [(there or category, "" if own == "*" else own) for there, _, own in found]

    def covered(self, category: str, key: str) -> list[tuple[str, str]]:
        """Return the addresses at which the value of this one says nothing more: whoever has a daughter has a child."""
        known = self.categories.get(category)
        named = known.keys[key].covers if known and key in known.keys else ()
        named = (*named, "has") if category == "family" and key != "has" else named  # "has a sister" of sister Ana
        return [(there or category, own) for there, _, own in (name.rpartition("/") for name in named)]

    def covering(self, category: str, key: str) -> list[tuple[str, str]]:
        """Return the addresses that say of their values what this one would."""
        return self._covering.get((category, key), [])

    def listing(self) -> str:
        """
        Format the categories with their keys for a reader: ``home: lives_in comes_from …``; ``+`` marks a set of values.

        Of a category without keys the description says how they are named; what a caller declared comes with
        its questions.
        """
        bundled = _bundled()
        lines = []
        for category in self.categories.values():
            own = bundled.get(category.name) != category
            if own:
                keys = [f"{key.name} ({key.question})" if key.question else key.name for key in category.keys.values()]
            else:
                shown = [category.keys[name] for name in category.listed] or [*category.keys.values()][:MOST_LISTED]
                keys = [key.name + ("+" if key.cardinality == "multi" else "") for key in shown]
            described = not keys or (own and category.description)
            head = f"{category.name} ({category.description.rstrip('.')})" if described else category.name
            lines.append(f"{head}: {(', ' if own else ' ').join(keys)}".rstrip(": "))
        return "Categories and keys (+ holds several values):\n" + "\n".join(lines)

    def refusal(self, candidate: Candidate) -> str:
        """Return why the candidate's value does not fit its declared type; empty when it does."""
        if not candidate.category or not (candidate.key or candidate.op == "retract"):
            return "no-address: an attribute needs a category and a key"
        known = self.categories.get(candidate.category)
        key = known.keys.get(candidate.key) if known else None
        if candidate.op == "retract" and not candidate.value:
            return ""
        if not candidate.value.strip():
            return "no-value: an attribute needs a value"
        if key is None:
            amount = candidate.category == "budget" and _LIMIT.fullmatch(candidate.key) is not None
            return (
                ""
                if not amount or _RATED.fullmatch(candidate.value)
                else _type_error("number", candidate.value.strip())
            )
        return _type_error(key.type, candidate.value.strip())


_AMOUNT = expression(
    r"(?:about |around |almost |nearly |ca\.? |~)?(?P<number>\d[\d.,' ]*|[^\W\d_]+(?:[ -][^\W\d_]+)?)\s*"
    r"(?:years?(?: old| of age)?|yrs?|y/?o|a\u00f1os?|anos?|anni|ans|jahre?(?: alt)?|\u5c81|\u6b72|\u6b73|\u624d|\uc138|\uc0b4|days?|nights?|d\u00edas?|tage?|jours?|giorni|dias?|\u5929|\u65e5|\uc77c"
    r"|people|persons?|kids?|children|\u4eba|\uba85|\u4e2a|\u500b)?",
    re.IGNORECASE,
)
_TENS = {"\u5341": 10, "\u767e": 100}
_ONES = {
    digit: number
    for number, digits in enumerate(
        (
            "\u96f6\u3007",
            "\u4e00",
            "\u4e8c\u4e24\u5169",
            "\u4e09",
            "\u56db",
            "\u4e94",
            "\u516d",
            "\u4e03",
            "\u516b",
            "\u4e5d",
        )
    )
    for digit in digits
}


def as_amount(value: str) -> str:
    """Return an amount of money with its thousands written out: ``4000`` of "4k", ``$2500`` of "$2.5k"; else as it is."""
    found = _THOUSANDS.fullmatch(value.strip())
    if found is None:
        return value
    return f"{found[1]}{float(found[2].replace(',', '.')) * 1000:.2f}".rstrip("0").rstrip(".") + found[3]


_LIMIT = expression(r"max_([a-z]{3})")
_SIGNS = {"usd": "$", "eur": "€", "gbp": "£", "jpy": "¥", "cny": "¥", "krw": "₩", "inr": "₹"}


_PLAIN_LIMITS = frozenset("max maximum limit total amount budget max_budget total_budget max_amount max_spend".split())


def _limit_named_by_currency(candidate: Candidate) -> str:
    """Return the key of a limit in the one currency that its value, or else its quote, names; empty for none or several."""
    for told in (candidate.value.casefold(), candidate.quote.casefold()):
        found = [
            code
            for code, sign in _SIGNS.items()
            if sign in told or re.search(rf"\b{code}\b|\b{_CURRENCIES[code]}s?\b", told)
        ]
        if len(found) == 1:
            return f"max_{found[0]}"
    return ""


def spelled_as(candidate: Candidate, keys: Collection[str]) -> str:
    """Return the one of *keys* that the key of a claim means: spelled otherwise, or the one limit of a budget; else the key itself."""
    folded = fold_name(candidate.key)
    limits = [key for key in keys if _LIMIT.fullmatch(key)]
    if candidate.category == "budget" and folded in _PLAIN_LIMITS and len(limits) == 1:
        return limits[0]
    if candidate.category == "budget" and _LIMIT.fullmatch(candidate.key) and not limits and "max" in keys:
        return "max"  # the budget so far had no currency
    return next((key for key in sorted(keys) if fold_name(key) == folded), candidate.key)


_CURRENCIES = {
    "usd": "dollar",
    "eur": "euro",
    "gbp": "(?:pound|quid)",
    "jpy": "yen",
    "cny": "yuan",
    "krw": "won",
    "inr": "rupee",
}


def _without_currency(value: str, key: str) -> str:
    """Return the figures of an amount in the currency that its key names: ``3000`` of "$3,000" and "3000 USD"."""
    limit = _LIMIT.fullmatch(key)
    if limit is None:
        return value
    signs = rf"(?:{re.escape(_SIGNS.get(limit[1], limit[1]))}|{limit[1]})"
    plain = re.sub(rf"^\s*{signs}\s*|\s*{signs}\s*$", "", value, flags=re.IGNORECASE)
    return re.sub(r"(?<=\d)[,' ](?=\d{3}(?!\d))", "", plain)


def as_number(value: str) -> str:
    """Return the figures of a number that is written in words or with its unit: "34 years old", "twelve", 四岁; else as it is."""
    plain = normalize_value(value)
    found = _AMOUNT.fullmatch(plain)
    wide = re.match(
        r"[\u96f6\u3007\u4e00\u4e8c\u4e24\u5169\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d\u5341\u767e]+", plain
    )
    if wide and len(plain) - wide.end() <= 1:
        return str(_from_wide(wide.group()))
    if found is None:
        return value
    told = found["number"].strip()
    if told[0].isdecimal():
        return told
    words = [date_words()[code].numbers for code in sorted(date_words())]
    number = next((table[told] for table in words if told in table), None)
    return value if number is None or number != int(number) else str(int(number))


def _from_wide(digits: str) -> int:
    """Return the number of figures as Chinese and Japanese write them: 二十八 is 28."""
    total = ones = 0
    for digit in digits:
        if digit in _TENS:
            total, ones = total + (ones or 1) * _TENS[digit], 0
        else:
            ones = ones * 10 + _ONES[digit]
    return total + ones


@lru_cache(maxsize=4096)
def fold_name(name: str) -> str:
    """Return a category or key without what only spells it: case, hyphens, British endings, the plural."""
    words = re.split(r"[\s_/.\-]+", unicodedata.normalize("NFKC", name).casefold().strip())
    american = [_OUR.sub(r"\1r", _AMERICAN.get(word, word)) for word in words]
    return "_".join(_AMERICAN.get(_singular(word), _singular(word)) for word in american)


def _singular(word: str) -> str:
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    return f"{word[:-3]}y" if word.endswith("ies") and len(word) > 4 else word[:-1]


def normalize_value(value: str) -> str:
    """Return the form in which values are compared: NFKC, case and runs of blanks and end marks folded."""
    folded = unicodedata.normalize("NFKC", value).casefold()
    return re.sub(r"\s+", " ", folded).strip(" \t\n.,;:!?\"'")


def _type_error(kind: str, value: str) -> str:
    if kind == "number" and not _NUMBER.fullmatch(value):
        return "not-a-number: this key holds numbers"
    if kind == "money" and not _MONEY.fullmatch(value):
        return "not-an-amount: this key holds amounts of money"
    if kind == "date" and not _DATE.fullmatch(value):
        return "not-a-date: this key holds dates (2026-03-14) or times (19:30)"
    if kind == "bool" and value not in ("true", "false"):
        return "not-a-bool: this key holds true or false"
    if kind == "name" and len(value) > 80:
        return "not-a-name: longer than 80 characters"
    return ""


def parse(data: Mapping[str, Any]) -> dict[str, Category]:
    """
    Categories from their TOML (or ``Config.categories``) shape.

    Raises:
        ConfigError: an unknown field, cardinality or type, or a listed key that there is not; names the category and the key.
    """
    found: dict[str, Category] = {}
    for name, entry in data.items():
        _expect_fields(entry, _FIELDS, f"category {name!r}")
        default = entry.get("cardinality")
        _expect(default, (None, *CARDINALITIES), f"category {name!r}: cardinality")
        keys: dict[str, Key] = {}
        for key, spec in entry.get("keys", {}).items():
            _expect_fields(spec, _KEY_FIELDS, f"category {name!r}, key {key!r}")
            cardinality = spec.get("cardinality", default if default in ("single", "multi") else "multi")
            _expect(cardinality, CARDINALITIES, f"category {name!r}, key {key!r}: cardinality")
            _expect(spec.get("type", "text"), TYPES, f"category {name!r}, key {key!r}: type")
            keys[key] = Key(
                key,
                spec.get("question", ""),
                cardinality,
                spec.get("type", "text"),
                _names(spec.get("opposite", ())),
                _names(spec.get("aliases", ())),
                _names(spec.get("covers", ())),
                _days(spec.get("holds_days"), f"category {name!r}, key {key!r}: holds_days"),
            )
        _expect(entry.get("type", "text"), TYPES, f"category {name!r}: type")
        days = _days(entry.get("transient_days", TRANSIENT_DAYS), f"category {name!r}: transient_days")
        found[name] = Category(
            name,
            entry.get("description", ""),
            default,
            keys,
            entry.get("type", "text"),
            _names(entry.get("opposite", ())),
            _names(entry.get("aliases", ())),
            days or TRANSIENT_DAYS,
            _listed(entry.get("listed", ""), keys, name),
            entry.get("single_prefix", ""),
            tuple((float(days), expression(names, re.IGNORECASE)) for days, names in entry.get("passing", {}).items()),
        )
    return found


_FIELDS = tuple(
    "description cardinality keys type opposite aliases transient_days listed single_prefix passing".split()
)
_KEY_FIELDS = tuple("question cardinality type opposite aliases covers holds_days".split())


def _expect_fields(entry: object, fields: tuple[str, ...], what: str) -> None:
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{what} is {entry!r}; it must be a table with {', '.join(fields)}")
    for name in entry:
        if name not in fields:
            raise ConfigError(
                f"{what}: there is no {name!r} in it{did_you_mean(name, fields) or '; it may have ' + ', '.join(fields)}"
            )


def _days(given: object, what: str) -> float | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int | float) or given <= 0:
        raise ConfigError(f"{what} is {given!r}; it must be a number of days above 0")
    return given


def _names(given: str | Iterable[str]) -> tuple[str, ...]:
    """Return one name, or several, as a tuple."""
    return ((given,) if given else ()) if isinstance(given, str) else tuple(given)


def _listed(given: object, keys: Mapping[str, Key], category: str) -> tuple[str, ...]:
    """Return the names of the keys that a listing shows."""
    if not isinstance(given, str):
        raise ConfigError(
            f"category {category!r}: listed is {given!r}; it must be keys of the category in one string, with spaces between"
        )
    names = tuple(given.split())
    unknown = [name for name in names if name not in keys]
    if unknown:
        raise ConfigError(
            f"category {category!r}: listed names {', '.join(unknown)}; it must name keys of the category, so add them to keys or remove them"
        )
    return names


def _expect(value: object, allowed: tuple[object, ...], what: str) -> None:
    if value not in allowed:
        raise ConfigError(f"{what} is {value!r}; it must be one of {', '.join(str(a) for a in allowed if a)}")


@cache
def _bundled() -> dict[str, Category]:
    text = (resources.files(__package__) / "categories.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    return parse(data.get("category", data))


def registry(extra: Mapping[str, Mapping[str, Any]] | None = None) -> Registry:
    """Return the bundled registry, with *extra* categories added or put in place of bundled ones."""
    return Registry({**_bundled(), **parse(extra or {})})


def matches_blocked_topic(candidate: Candidate, topics: Iterable[str]) -> bool:
    """Whether a claim is of a blocked topic: its category, or all words of the topic."""
    said: set[str] | None = None
    for topic in topics:
        if topic == candidate.category:
            return True
        if said is None:
            words = (
                candidate.category,
                candidate.key.replace("_", " "),
                candidate.value,
                candidate.text,
                candidate.quote,
            )
            said = set(terms(" ".join(words)))
        wanted = set(terms(topic))
        if wanted and wanted <= said:
            return True
    return False
