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
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from ..errors import ConfigError
from ..types import Candidate, Cardinality

CARDINALITIES: tuple[Cardinality, ...] = ("exclusive", "single", "multi")
TYPES = ("text", "name", "number", "money", "date", "bool")

MOST_LISTED = 6  # keys of one category that a reader is shown

_NUMBER = re.compile(r"[-+]?\d[\d.,' ]*")
_MONEY = re.compile(r"[^\d\s]{0,4}\s*\d[\d.,' ]*\s*[^\d\s]{0,12}")
_DATE = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?|\d{2}-\d{2}|\d{1,2}:\d{2}")


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a category: the question it answers, how its values join, their type, the key that it excludes."""

    name: str
    question: str = ""
    cardinality: Cardinality = "multi"
    type: str = "text"
    opposite: str = ""


@dataclass(frozen=True, slots=True)
class Category:
    """One category; ``exclusive`` means that it holds one live fact, whatever the key."""

    name: str
    description: str = ""
    cardinality: Cardinality | None = None
    keys: Mapping[str, Key] = field(default_factory=dict)


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

    def cardinality(self, category: str, key: str, join: str = "") -> Cardinality:
        """Return how a value joins the live ones at its address; *join* counts only where nothing is declared."""
        known = self.categories.get(category)
        if known is not None:
            if known.cardinality == "exclusive":
                return "exclusive"
            if key in known.keys:
                return known.keys[key].cardinality
        if join:
            return "single" if join == "replace" else "multi"
        return (known.cardinality if known else None) or "multi"

    def slot(self, category: str, key: str, value: str, join: str = "") -> Slot:
        """Return the address of a fact: the category alone, the key, or the key with its value."""
        cardinality = self.cardinality(category, key, join)
        if cardinality == "exclusive":
            return Slot(cardinality, "", "")
        if cardinality == "single":
            return Slot(cardinality, key, "")
        return Slot(cardinality, key, normalize_value(value))

    def opposite(self, category: str, key: str) -> str:
        """Return the key of the same category that excludes the same value (liked, disliked); else ``""``."""
        known = self.categories.get(category)
        return known.keys[key].opposite if known and key in known.keys else ""

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
                keys = [key.name + ("+" if key.cardinality == "multi" else "") for key in category.keys.values()]
            described = not keys or (own and category.description)
            head = f"{category.name} ({category.description.rstrip('.')})" if described else category.name
            lines.append(f"{head}: {(', ' if own else ' ').join(keys if own else keys[:MOST_LISTED])}".rstrip(": "))
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
            return ""
        return _type_error(key.type, candidate.value.strip())


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
        ConfigError: an unknown cardinality or type; names the category and the key.
    """
    found: dict[str, Category] = {}
    for name, entry in data.items():
        default = entry.get("cardinality")
        _expect(default, (None, *CARDINALITIES), f"category {name!r}: cardinality")
        keys: dict[str, Key] = {}
        for key, spec in entry.get("keys", {}).items():
            cardinality = spec.get("cardinality", default if default in ("single", "multi") else "multi")
            _expect(cardinality, CARDINALITIES, f"category {name!r}, key {key!r}: cardinality")
            _expect(spec.get("type", "text"), TYPES, f"category {name!r}, key {key!r}: type")
            opposite = spec.get("opposite", "")
            keys[key] = Key(key, spec.get("question", ""), cardinality, spec.get("type", "text"), opposite)
        found[name] = Category(name, entry.get("description", ""), default, keys)
    return found


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
