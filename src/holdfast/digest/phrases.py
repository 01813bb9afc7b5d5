"""
Themes: the short phrases that a stretch of chat keeps coming back to, in the words it used.

A candidate is a run of up to three words between stop words and punctuation (of characters, where
words are not set apart).  It counts for how often and by how many messages its words are used, more
when a user said it and when it is a name.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..text.terms import terms
from .lexicon import Lexicon
from .plain import straight

MAX_THEMES = 5
MAX_PHRASE_WORDS = 3
MAX_PHRASE_CHARS = 48
_PART = re.compile(r"[^\s,.;:!?()\[\]{}\"“”«»/|…。，、！？；：（）「」『』~<>=+*#]+")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
_VERBAL = re.compile(r"(?:ing|ed|ly)$")


@dataclass(slots=True)
class _Candidate:
    surface: str
    stems: tuple[str, ...]
    first: int
    messages: set[int]
    weight: float = 0.0
    named: bool = False


def themes(said: Sequence[tuple[int, str, float]], words: Lexicon, names: Iterable[str] = ()) -> tuple[str, ...]:
    """
    Up to five phrases, the weightiest first; none when nothing stands out.

    Args:
        said: ``(message, sentence, weight)`` in order; the weight says how much its speaker counts.
        words: the lexicon of the language spoken.
        names: of the speakers; they are no themes.
    """
    barred = {part.lower() for name in names for part in name.split()}
    found: dict[tuple[str, ...], _Candidate] = {}
    spread: dict[str, set[int]] = {}
    volume: Counter[str] = Counter()
    order = 0
    for message, sentence, weight in said:
        for run in _runs(sentence, words, barred):
            for surface, stems, named in _phrases(run, words, sentence.startswith(run[0])):
                order += 1
                entry = found.setdefault(stems, _Candidate(surface, stems, order, set()))
                entry.messages.add(message)
                entry.weight += weight
                entry.named = entry.named or named
                if len(stems) == 1:
                    spread.setdefault(stems[0], set()).add(message)
                    volume[stems[0]] += 1
    ranked = sorted(found.values(), key=lambda c: (-_rank(c, spread, volume), c.first))
    return _distinct(ranked, spread, volume)


def _rank(candidate: _Candidate, spread: dict[str, set[int]], volume: Counter[str]) -> float:
    parts = [math.log1p(len(spread.get(stem, ()))) + 0.3 * math.log1p(volume[stem]) for stem in candidate.stems]
    base = sum(parts) / len(parts) * (1 + 0.35 * (len(parts) - 1))
    base *= 0.6 + 0.4 * math.log1p(len(candidate.messages)) + 0.15 * min(3.0, candidate.weight)
    if candidate.named:
        base *= 1.25
    if len(parts) == 1 and not candidate.named and _VERBAL.search(candidate.surface):
        base *= 0.5 if len(candidate.messages) == 1 or not candidate.surface.endswith("ing") else 0.9
    return base


def _distinct(ranked: Sequence[_Candidate], spread: dict[str, set[int]], volume: Counter[str]) -> tuple[str, ...]:
    chosen: list[_Candidate] = []
    top = _rank(ranked[0], spread, volume) if ranked else 0.0
    used: set[str] = set()
    for candidate in ranked:
        if len(chosen) == MAX_THEMES or _rank(candidate, spread, volume) < 0.4 * top:
            break
        lone = len(candidate.stems) == 1 and len(candidate.messages) < 2 and not candidate.named
        if used.isdisjoint(candidate.stems) and not (lone and len(chosen) >= 2):
            chosen.append(candidate)
            used.update(candidate.stems)
    return tuple(candidate.surface for candidate in chosen)


def _runs(sentence: str, words: Lexicon, barred: set[str]) -> list[list[str]]:
    """Runs of neighbouring words that may stand in a theme."""
    runs: list[list[str]] = [[]]
    end = 0
    for found in _PART.finditer(sentence):
        if sentence[end : found.start()].strip():
            runs.append([])
        end = found.end()
        for word in _parts(found.group(), words):
            kept = _kept(word, words, barred)
            if kept:
                runs[-1].append(kept)
            if not kept or kept != word:
                runs.append([])
    return [run for run in runs if run]


def _parts(word: str, words: Lexicon) -> list[str]:
    """*word*, or the pieces between its cutting characters where words are not set apart; "" parts two."""
    if not words.cuts or not _WIDE.search(word):
        return [word]
    pieces = re.split(f"[{re.escape(words.cuts)}]+", word)
    return [part for piece in pieces for part in (piece, "")]


def _kept(word: str, words: Lexicon, barred: set[str]) -> str:
    """The part of *word* that may stand in a theme: without an ending that is no part of the noun, or nothing."""
    text = word.strip("'’‘-–—_&%$€£@")
    plain = straight(text).lower()
    for tail in ("'s", "s'"):
        if plain.endswith(tail) and plain[: -len(tail)] not in words.stop and len(plain) > 4:
            text = text[:-2] if tail == "'s" else text[:-1]
            plain = straight(text).lower()
            break
    for ending in words.particles:
        if plain.endswith(ending) and len(plain) - len(ending) >= 2:
            text = text[: -len(ending)]
            plain = plain[: -len(ending)]
            break
    dull = plain in words.stop or plain in barred or plain.replace("'", "") in words.stop
    wide = bool(_WIDE.search(plain))
    short = len(plain) < (2 if wide or not plain.isascii() else 3) and not (text.isupper() and len(text) == 2)
    if dull or short or not any(ch.isalpha() for ch in plain) or "'" in plain or len(text) > MAX_PHRASE_CHARS:
        return ""
    return text


def _phrases(run: list[str], words: Lexicon, opens: bool) -> list[tuple[str, tuple[str, ...], bool]]:
    """``(surface, stems, is a name)`` of every phrase in *run*; the first word of a sentence tells no name."""
    wide = bool(words.cuts)
    out = []
    stems = [_stem(word, words) for word in run]
    for start in range(len(run)):
        for stop in range(start + 1, min(len(run), start + MAX_PHRASE_WORDS) + 1):
            surface = ("" if wide and all(_WIDE.search(w) for w in run[start:stop]) else " ").join(run[start:stop])
            inside = tuple(stems[start:stop])
            if len(surface) <= MAX_PHRASE_CHARS and len(set(inside)) == len(inside):
                named = all(word[:1].isupper() for word in run[start:stop]) and not (opens and start == 0)
                out.append((surface, inside, named))
    return out


def _stem(word: str, words: Lexicon) -> str:
    if _WIDE.search(word):
        return word
    return " ".join(terms(word, words.language)) or word.lower()
