"""
The words a language knows (lexicons) and the ways in which open slots are cut: what a pattern's holes are made of.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_SAME_WIDTH = str.maketrans(
    {"’": "'", "‘": "'", "´": "'", "`": "'", "“": '"', "”": '"', "„": '"', "\u00a0": " ", "＇": "'"}
)


def folded(text: str) -> str:
    """*text* with curly quotes straightened and no-break spaces opened, every character in its place."""
    return text.translate(_SAME_WIDTH)


@dataclass(frozen=True, slots=True)
class OpenSlot:
    """
    How an open slot's words are cut out of what follows (see `holdfast.digest.slots`).

    ``kind`` names the reader; ``words`` bounds the length; the value ends before a word of ``cut``,
    is refused when it starts with one of ``refuse`` or holds one of ``never``, and loses leading
    words of ``drop``.  A value that begins with an activity ("going for walks in the park") reaches
    further: to a word of ``cut_doing``.  ``alone`` says too little by itself; a value that ends with
    one of ``dangling`` was cut in the wrong place and is refused.  ``commas``: it may hold commas.
    Behind a word of ``capitals_after`` a name needs its capital even from somebody who writes without.
    """

    name: str
    kind: str
    words: int
    cut: frozenset[str]
    refuse: frozenset[str]
    never: frozenset[str]
    drop: frozenset[str]
    raw: str
    raw_many: str
    refuse_lexicons: tuple[str, ...] = ()
    cut_doing: frozenset[str] = frozenset()
    alone: frozenset[str] = frozenset()
    dangling: frozenset[str] = frozenset()
    commas: bool = False
    joints: frozenset[str] = frozenset()
    capitals_after: frozenset[str] = frozenset()


class Lexicon:
    """Words of one kind with their canonical spelling, e.g. ``veggie`` → ``vegetarian``."""

    def __init__(self, name: str, entries: str, *, spaced: bool) -> None:
        self.name = name
        self.canonical: dict[str, str] = {}
        for entry in re.split(r"[,\n]", entries):
            words = [word.strip() for word in entry.split("|")]
            for word in words:
                if word:
                    self.canonical.setdefault(_key(word), words[0])
        self._spaced = spaced

    @cached_property
    def alternatives(self) -> str:
        """The regular expression of all its words, longest first."""
        words = sorted(self.canonical, key=lambda word: (-len(word), word))
        if self._spaced:
            return rf"(?<!\w)(?:{'|'.join(map(_loose, words))})(?!\w)"
        latin = "|".join(_loose(word) for word in words if word.isascii())  # these keep their edges
        wide = "|".join(_loose(word) for word in words if not word.isascii())
        return rf"(?:(?<![A-Za-z0-9])(?:{latin or '(?!)'})(?![A-Za-z])|{wide or '(?!)'})"

    @cached_property
    def one(self) -> re.Pattern[str]:
        """Finds one of its words."""
        return re.compile(self.alternatives, re.IGNORECASE)

    @cached_property
    def triggers(self) -> frozenset[str]:
        """One word of every phrase, the last that is not too short to be rare: ``back`` of "a bad back"."""
        if not self._spaced:
            return frozenset(self.canonical)
        found = set()
        for phrase in self.canonical:
            words = WORD.findall(phrase) or [phrase]
            found.add(next((word for word in reversed(words) if len(word) > 3), max(words, key=len)))
        return frozenset(found)

    def lookup(self, words: str) -> str | None:
        """The canonical spelling of *words*, or None."""
        key = _key(words)
        return (
            self.canonical.get(key)
            or self.canonical.get(key.replace("-", " "))
            or self.canonical.get(key.replace(" ", "-"))
        )


def open_slot(name: str, spec: Mapping[str, Any]) -> OpenSlot:
    def words(field_name: str) -> frozenset[str]:
        return frozenset(str(spec.get(field_name, "")).split()) | frozenset(
            str(spec.get(f"{field_name}_too", "")).split()
        )

    return OpenSlot(
        name,
        spec.get("kind", name),
        int(spec.get("words", 5)),
        words("cut"),
        words("refuse"),
        words("never"),
        words("drop"),
        spec.get("raw", r"[^,.;:!?()\"\n]{1,80}"),
        spec.get("raw_many", r"[^.;:!?()\"\n]{1,140}"),
        tuple(spec.get("refuse_lexicons", "").split()),
        words("cut_doing"),
        words("alone"),
        words("dangling"),
        bool(spec.get("commas", False)),
        words("joints"),
        words("capitals_after"),
    )


def _loose(word: str) -> str:
    """The expression of a lexicon's word: hyphens and spaces may stand for each other."""
    return re.escape(word).replace(r"\ ", r"[\s-]+").replace(r"\-", r"[\s-]?")


def _key(words: str) -> str:
    return re.sub(r"\s+", " ", folded(words).lower().strip())
