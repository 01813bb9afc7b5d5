"""
The words that tell what matters in a chat, read from ``lexicons/*.toml``: one file a language.

An entry is a word or a phrase in lower case: ``*`` stands for any letters, ``^`` for the start of
the sentence, ``$`` for its end.  Entries match whole words, except in languages whose words are not
set apart or carry their endings (Chinese, Japanese, Korean), where they match anywhere.  A language
without a file is read with the English one: names, numbers and repetition speak in any language.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

from ..text.languages import ENGLISH_STOP, STOP

LANGUAGES = ("de", "en", "es", "fr", "ja", "ko", "zh")
_UNSPACED = ("ja", "ko", "zh")
KINDS = (
    "self",
    "supposed",
    "decision",
    "promise",
    "recommend",
    "problem",
    "feeling",
    "calm",
    "preference",
    "when",
    "empty",
)
_TOKEN = re.compile(r"[\w']+(?:-[\w']+)*")
_MARKS = " \t.,!?…。，、！？~:;\"'()"
_NOTHING: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Entries:
    """All entries of a lexicon with their kinds, by what a sentence must hold for them to be looked at."""

    words: dict[str, set[str]] = field(default_factory=dict)
    beginnings: dict[str, list[tuple[str, str]]] = field(default_factory=dict)  # by their first two letters
    phrases: dict[str, list[tuple[str, str]]] = field(default_factory=dict)  # by their first word
    openings: dict[str, list[tuple[str, str]]] = field(default_factory=dict)  # by their first word
    wholes: dict[str, set[str]] = field(default_factory=dict)
    anywhere: list[tuple[str, str]] = field(default_factory=list)
    patterns: list[tuple[re.Pattern[str], str]] = field(default_factory=list)

    def add(self, entry: str, kind: str, spaced: bool) -> None:
        core = entry.strip("^$")
        open_end = core.endswith("*")
        core = core.removesuffix("*")
        padded = f" {core}" if open_end or not spaced else f" {core} "
        first = core.split(" ")[0]
        if entry.startswith("^") and entry.endswith("$"):
            self.wholes.setdefault(core, set()).add(kind)
        elif "*" in core:
            pattern = re.escape(core).replace(r"\*", r"\w*") + (r"\w*" if open_end else "")
            self.patterns.append((re.compile(f" {pattern} "), kind))
        elif not spaced:
            self.anywhere.append((padded if entry.startswith("^") else core, kind))
        elif entry.startswith("^"):
            self.openings.setdefault("" if open_end and " " not in core else first, []).append((padded, kind))
        elif " " in core:
            self.phrases.setdefault(first, []).append((padded, kind))
        elif open_end:
            self.beginnings.setdefault(core[:2], []).append((core, kind))
        else:
            self.words.setdefault(core, set()).add(kind)

    def kinds(self, tokens: Sequence[str], sentence: str) -> set[str]:
        """The kinds of the entries in a sentence of lower-case *tokens*; *sentence* is `` word word ``."""
        found: set[str] = set(self.wholes.get(sentence.strip(), ()))
        for token in set(tokens):
            found |= self.words.get(token, _NOTHING)
            found.update(kind for start, kind in self.beginnings.get(token[:2], ()) if token.startswith(start))
            found.update(kind for phrase, kind in self.phrases.get(token, ()) if phrase in sentence)
        for first in ("", *tokens[:1]):
            found.update(kind for opening, kind in self.openings.get(first, ()) if sentence.startswith(opening))
        found.update(kind for part, kind in self.anywhere if part in sentence)
        found.update(kind for pattern, kind in self.patterns if pattern.search(sentence))
        return found


@dataclass(frozen=True, slots=True)
class Lexicon:
    """
    One language's expressions and its word lists.

    ``lead`` matches fillers (before a comma) and joiners that open a sentence, ``tail`` one that closes it.  ``particles`` are
    endings that do not belong to a noun, longest first; ``cuts`` are characters that part words.
    """

    language: str
    entries: _Entries
    lead: re.Pattern[str]
    tail: re.Pattern[str]
    stop: frozenset[str]
    particles: tuple[str, ...]
    cuts: str
    labels: Mapping[str, str]
    spaced: bool

    def signs(self, sentence: str) -> frozenset[str]:
        """The kinds of which *sentence* (with straight apostrophes) holds an entry."""
        lowered = sentence.lower()
        tokens = _TOKEN.findall(lowered)
        return frozenset(
            self.entries.kinds(tokens, f" {' '.join(tokens)} " if self.spaced else " " + lowered.strip(_MARKS))
        )


def lexicon(language: str) -> Lexicon:
    """The lexicon of *language* (ISO 639-1), or the English one with that language's stop words."""
    return _lexicon(language if language in LANGUAGES or language in STOP else "en")


@cache
def _lexicon(language: str) -> Lexicon:
    file = language if language in LANGUAGES else "en"
    data = tomllib.loads((resources.files(__package__) / "lexicons" / f"{file}.toml").read_text(encoding="utf-8"))
    spaced = file not in _UNSPACED
    entries = _Entries()
    for kind in KINDS:
        for entry in data.get(kind, ()):
            entries.add(entry, kind, spaced)
    fillers = sorted(data["filler"], key=lambda word: (-len(word), word))
    joiners = "|".join(re.escape(word) for word in sorted(data.get("joiner", ()), key=lambda word: (-len(word), word)))
    either = "|".join(re.escape(word) for word in fillers)
    return Lexicon(
        language=language,
        entries=entries,
        lead=re.compile(
            rf"(?:(?:{either})\s+){{0,3}}(?:{either})(?:\s*[,，、!！~…]+|\.{{2,}}|\s+-+)\s*"
            + (rf"|(?:{joiners})\s+(?=\w)" if joiners else ""),
            re.IGNORECASE,
        ),
        tail=re.compile(rf"[,，、]\s*(?:{either})(?=[\s.!?。！？~]*$)", re.IGNORECASE),
        stop=frozenset(data["stop"].split()) | (ENGLISH_STOP if language == "en" else STOP.get(language, frozenset())),
        particles=tuple(sorted(data.get("particles", ()), key=lambda end: (-len(end), end))),
        cuts=data.get("cuts", ""),
        labels=data["labels"],
        spaced=spaced,
    )


@cache
def labels_of(*keys: str) -> frozenset[str]:
    """The labels of those names in every language: a line that starts with one was written by us."""
    return frozenset(_lexicon(language).labels[key] for language in LANGUAGES for key in keys)
