"""
Index terms: words lower-cased and stemmed by their language, and signal bits of a message.

Which words meet which: a text in a language written in Latin letters is indexed under its own stems
and under the English ones, and a question looks for both.  So a Spanish text is found by a Spanish
inflection ("vivimos" and "vivir"), by an English question that shares a word with it ("Madrid"), and
still when the language of a short message was guessed wrong.  Scripts that leave no such doubt
(Cyrillic, Greek, Arabic, …) are indexed under one stem.  Scripts written without spaces, and Korean
with its attached particles, become pairs of neighboring characters.

The English stop list is part of the ranking recipe; the others drop what decides a language here.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import date, datetime
from functools import cache, lru_cache

from .languages import ENGLISH_STOP, IRREGULAR, MARKS_OF, SCRIPTS, STEMMERS, STOP, WORDS_OF
from .steps import search_in_steps

try:
    import Stemmer as _native
except ImportError:  # no wheel for this platform: the same algorithms in Python, same stems
    _native = None
    import snowballstemmer


MAX_TERM_CHARS = 64
_DECIDING_CHARS = 400
_DECIDING_WORDS = 80
_KEPT_STEMS = 50_000

_MONTHS = (
    "January February March April May June July August September October November December"  # the words of the index
).split()
# Kana, Han, Hangul; then Thai, Lao, Myanmar and Khmer, which put no spaces between words either.
_WIDE = (
    "\u3005\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
    "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"
    "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff"
)
_HAS_WIDE = re.compile(f"[{_WIDE}]")
_RUN = re.compile(f"[{_WIDE}]+|[^{_WIDE}]+")
_ASCII_WORD = re.compile("[a-z0-9]+")


class _Stems(dict[str, str]):
    """
    A cache of the stems of one language's words; '' for a stop word.

    A native stemmer must not be used by two threads at a time, hence the lock; a word that is
    known is read without it.
    """

    def __init__(self, language: str) -> None:
        super().__init__()
        self._stop = ENGLISH_STOP if language == "en" else STOP.get(language, frozenset())
        self._stem = stemmer(STEMMERS[language]) if language in STEMMERS else str
        self._lock = threading.Lock()

    def __missing__(self, word: str) -> str:
        if word in self._stop:
            stem = ""
        else:
            with self._lock:
                stem = self._stem(word[:MAX_TERM_CHARS])[:MAX_TERM_CHARS]
        if len(word) <= MAX_TERM_CHARS:
            if len(self) >= _KEPT_STEMS:
                self.clear()
            self[word] = stem
        return stem


def stemmer(algorithm: str) -> Callable[[str], str]:
    """Return a function from word to stem, by a Snowball algorithm; not safe for several threads at once."""
    if _native is not None:
        stem: Callable[[str], str] = _native.Stemmer(algorithm).stemWord
        return stem
    portable: Callable[[str], str] = snowballstemmer.stemmer(algorithm).stemWord
    return portable


@cache
def _stems(language: str) -> _Stems:
    return _Stems(language)


@cache
def _word() -> re.Pattern[str]:
    """Return the expression of a word: letters, digits and the combining marks that belong to them."""
    marks = "".join(chr(code) for code in range(0x300, 0x2000) if unicodedata.category(chr(code)) in ("Mn", "Mc"))
    return re.compile(f"(?:[^\\W_][{marks}]*)+")


def _words(text: str) -> list[str]:
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    words: list[str] = _word().findall(unicodedata.normalize("NFKC", text).lower())
    return words


def _language(text: str, words: Iterable[str]) -> str:
    if not text.isascii():
        for language, letters in SCRIPTS:
            if letters.search(text):
                return language
    score = _scores(text, words)
    if not score:
        return "en"
    best = max(score, key=lambda language: (score[language], language == "en", language))
    return best if score[best] >= 2 and score[best] > score["en"] else "en"


def _scores(text: str, words: Iterable[str]) -> Counter[str]:
    """Score each language by the words and letters of a text in Latin letters."""
    score: Counter[str] = Counter()
    if not text.isascii():
        for language, letters in MARKS_OF:
            if letters.search(text):
                score[language] += 2
    for word in WORDS_OF.keys() & set(words):
        speakers = WORDS_OF[word]
        for language in speakers:
            score[language] += 2 if len(speakers) == 1 else 1
    return score


def language_of(text: str) -> str:
    """
    Detect the language of *text* (ISO 639-1): by its script, or by the commonest Latin words.

    Looks at the first 400 characters, at most 80 words.  ``"en"`` when nothing speaks for another one.
    """
    head = text[:_DECIDING_CHARS]
    return _language(head, _words(head)[:_DECIDING_WORDS])


def likely_languages(text: str) -> list[str]:
    """
    Return the languages that *text* may be in, the likeliest first: that of `language_of`, then those that its words speak
    for at least as much as for English.  A short text ("no como pescado") may be in one of several.
    """
    head = text[:_DECIDING_CHARS]
    words = _words(head)[:_DECIDING_WORDS]
    score = _scores(head, words)
    rest = [language for language, points in score.most_common() if points >= max(1, score["en"])]
    return list(dict.fromkeys([_language(head, words), *rest]))


def _wide_terms(word: str) -> list[list[str]]:
    """Cut *word* into runs: pairs of characters for wide ones, the run itself for others."""
    out = []
    for run in _RUN.findall(word):
        if not _HAS_WIDE.match(run):
            out.append([_stems("en")[run]])
        elif len(run) == 1:
            out.append([run])
        else:
            out.append([run[i : i + 2] for i in range(len(run) - 1)])
    return out


def _spoken(text: str, words: list[str], language: str | None) -> str:
    return language or _language(text[:_DECIDING_CHARS], words[:_DECIDING_WORDS])


def _groups(text: str, language: str | None) -> list[tuple[str, ...]]:
    """Return the terms of each word of *text*, without stop words."""
    words = _words(text)
    spoken = _spoken(text, words, language)
    english = _stems("en")
    if spoken == "en" and text.isascii():
        return [(stem,) for word in words if (stem := english[word])]
    own = _stems(spoken)
    groups: list[tuple[str, ...]] = []
    for word in words:
        if _HAS_WIDE.search(word):
            groups += [(term,) for run in _wide_terms(word) for term in run if term]
            continue
        stem = own[word]
        if spoken == "en" or not stem:
            kept: tuple[str, ...] = (stem,)
        elif spoken in STOP:
            kept = (stem, english[word]) if english[word] not in ("", stem) else (stem,)
        else:
            kept = (english[word] if word.isascii() else stem,)
        if kept[0]:
            groups.append(kept)
    return groups


def terms(text: str, language: str | None = None) -> list[str]:
    """
    Return the index terms of *text*, in reading order, repeated as often as they occur.

    Words are runs of letters and digits, lower-cased, stemmed, at most 64 characters of each.
    *language* is ISO 639-1; ``None`` lets `language_of` decide.  A language without a stemmer
    keeps its words as they are.
    """
    if text.isascii():
        words = _ASCII_WORD.findall(text.lower())
        if (language or _language(text[:_DECIDING_CHARS], words[:_DECIDING_WORDS])) == "en":
            table = _stems("en")
            return [stem for word in words if (stem := table[word])]
    return [term for group in _groups(text, language) for term in group]


def query_terms(text: str, language: str | None = None) -> list[tuple[str, ...]]:
    """
    Return, for each word of a question, the terms under which a text may hold it, the likeliest first.

    The alternatives of one word count as one word: a search takes the larger of their counts.  In
    an English question they include the irregular forms of the word ("go", "went", "gone").
    """
    groups = _groups(text, language)
    if _spoken(text, _words(text[:_DECIDING_CHARS]), language) != "en":
        return groups
    forms = _irregular()
    return [(*group, *forms[group[0]]) if group[0] in forms else group for group in groups]


@cache
def _irregular() -> dict[str, tuple[str, ...]]:
    """Return the stems of the other forms for each stem of an irregular word."""
    table = _stems("en")
    found: dict[str, tuple[str, ...]] = {}
    for entry in IRREGULAR.split(";"):
        stems = list(dict.fromkeys(table[word] for word in entry.split()))
        for stem in stems:
            found[stem] = (*found.get(stem, ()), *(other for other in stems if other != stem))
    return found


@lru_cache(maxsize=4096)
def _date_terms(day: date) -> tuple[str, ...]:
    table = _stems("en")
    words = (str(day.day), _MONTHS[day.month - 1].lower(), str(day.year))
    return tuple(stem for word in words if (stem := table[word]))


def dated_terms(text: str, at: datetime, language: str | None = None) -> Counter[str]:
    """
    Count the terms of *text* and of the day it was said, "7 June 2023".

    The day makes "what did we talk about in June?" a question about words.  Its month is English,
    whatever the language of the text.
    """
    return Counter((*terms(text, language), *_date_terms(at.date())))


IS_QUESTION = 1
NAMES_TIME = 2
HAS_NUMBER = 4

_QUESTION_TAIL_CHARS = 60
_QUESTION_MARKS = re.compile("[?\uff1f\u061f\u037e]")
_TIME = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow"
    r"|(?:last|next|this|past) (?:night|week|weekend|month|year|summer|winter|spring|fall|mon|tue|wed|thu|fri|sat|sun)\w*"
    r"|(?:few|couple|two|three|four|five|six|\d+)(?: of)? (?:days|weeks|months|years)(?: ago)?"
    r"|ago|since|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|january|february|march|april|june|july|august|september|october|november|december|\d{4})\b"
)
_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|once|twice|few|couple|dozen|hundred|thousand)\b"
)


def signals(text: str) -> int:
    """
    Return the signal bits of *text*: ``IS_QUESTION`` (a question mark among its last 60 characters),
    ``NAMES_TIME`` (a date, a weekday, "last week", "two days ago") and ``HAS_NUMBER``.
    """
    lowered = text.lower()
    bits = IS_QUESTION if _QUESTION_MARKS.search(text[-_QUESTION_TAIL_CHARS:]) else 0
    if search_in_steps(_TIME, lowered):
        bits |= NAMES_TIME
    if search_in_steps(_NUMBER, lowered):
        bits |= HAS_NUMBER
    return bits
