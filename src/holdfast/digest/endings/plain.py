"""Endings in a few plain words: a clause that says that a known thing is over, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from ...scope import SELF
from ..grammar import PatternLanguage, load_language
from .expressions import value_expression

Span = tuple[int, int]
_TOKEN = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_MOST_OTHER_WORDS = 1  # besides the thing, its end and words that say nothing


def plain_endings(
    rules: PatternLanguage, text: str, names: tuple[str, ...], category: str, people: tuple[str, ...], subject: str
) -> Iterator[Span]:
    """Yield the clauses of *text* that end what *names* name: "library gig ended", "over keto", "sis quit Chase"."""
    words = _words(rules.code)
    if not words:
        return
    for start, end in _clauses(rules.code, text):
        clause = text[start:end]
        thing = _thing(rules.code, names).search(clause)
        if thing is None:
            continue
        before, after = clause[: thing.start()], clause[thing.end() :]
        cue = _cue_before(rules.code, category).search(before)
        first, rest = (before[: cue.start()], after) if cue else (before, "")
        if cue is None and category != "preference" and (cue := _cue_after(rules.code, category).match(after)):
            rest = after[cue.end() :]
        if cue is not None and _says_nothing_else(first, rest, words, people, subject):
            yield start, end


def _says_nothing_else(
    first: str, rest: str, words: Mapping[str, frozenset[str]], people: tuple[str, ...], subject: str
) -> bool:
    """Whether the words around hold neither doubt, denial nor another person: none that says more before, at most one behind."""
    named = {part for name in people for part in name.casefold().split()} if subject != SELF else set()
    before, behind = (
        [found[0].casefold().replace("’", "'") for found in _TOKEN.finditer(part)] for part in (first, rest)
    )
    if any(token in words["stop"] and token not in named for token in (*before, *behind)):
        return False
    if subject != SELF and not named.intersection(before + behind):
        return False
    other = [
        [one for one in part if one not in words["empty"] | named and not one[0].isdigit()] for part in (before, behind)
    ]
    return not other[0] and len(other[1]) <= _MOST_OTHER_WORDS


@lru_cache(maxsize=8)
def _words(code: str) -> Mapping[str, frozenset[str]]:
    table = _table(code)
    return {name: frozenset(table[name].split()) for name in ("stop", "empty")} if table else {}


def _table(code: str) -> Mapping[str, str]:
    rules = load_language(code)
    table: Mapping[str, str] = rules.ended.get("plain", {}) if rules is not None else {}
    return table


@lru_cache(maxsize=256)
def _clauses(code: str, text: str) -> tuple[Span, ...]:
    joints = re.compile(_table(code)["joint"], re.IGNORECASE)
    edges = [0, *(place for found in joints.finditer(text) for place in found.span()), len(text)]
    return tuple((edges[at], edges[at + 1]) for at in range(0, len(edges), 2))


@lru_cache(maxsize=1024)
def _thing(code: str, names: tuple[str, ...]) -> re.Pattern[str]:
    rules = load_language(code)
    assert rules is not None  # the caller found it
    return re.compile(value_expression(names, rules), re.IGNORECASE)


@lru_cache(maxsize=64)
def _cue_before(code: str, category: str) -> re.Pattern[str]:
    """Compile what ends a thing and stands before it, up to its article."""
    return re.compile(rf"(?<!\w)(?:{_of(code, 'before', category)}){_table(code)['article']}$", re.IGNORECASE)


@lru_cache(maxsize=64)
def _cue_after(code: str, category: str) -> re.Pattern[str]:
    """Compile what is said of a thing that has ended, from the end of its name."""
    table = _table(code)
    return re.compile(rf"{table['kind']}{table['is']}(?:{_of(code, 'after', category)})(?!\w)", re.IGNORECASE)


def _of(code: str, side: str, category: str) -> str:
    """Return the expression of all cues for a category."""
    table = _table(code)
    sources = [table[side]]
    sources += [source for name, source in table.items() if name.startswith(f"{side}_") and category in name.split("_")]
    return "|".join(source.replace(" ", r"\s+") for source in sources)
