"""
Index terms, signal bits and token counts of a text, and searches of long texts in steps.

Which words meet which: a text in a language written in Latin letters is indexed under its own stems
and under the English ones, and a question looks for both.  So a Spanish text is found by a Spanish
inflection ("vivimos" and "vivir"), by an English question that shares a word with it ("Madrid"), and
still when the language of a short message was guessed wrong.  Scripts that leave no such doubt
(Cyrillic, Greek, Arabic, …) are indexed under one stem.  Scripts written without spaces, and Korean
with its attached particles, become pairs of neighboring characters.

The English stop list is part of the ranking recipe; the others drop what decides a language here.

Tokens are estimated without a tokenizer.  The estimate errs upwards: across 2,119 English paragraphs
it lay between .98 and 1.5 of what a BPE tokenizer counted (median 1.18), and it counts Chinese,
Japanese and Korean by the character, which a division by four gets wrong by a factor of four.
"""

from __future__ import annotations

import math
import re
import threading
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime
from functools import cache, cached_property, lru_cache
from importlib import import_module, resources
from typing import Any

from ..errors import ConfigError
from . import dataclass, expression
from .languages import ENGLISH_STOP, IRREGULAR, MARKS_OF, SCRIPTS, STEMMERS, STOP, WORDS_OF

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
_HAS_WIDE = expression(f"[{_WIDE}]")
_RUN = expression(f"[{_WIDE}]+|[^{_WIDE}]+")
_ASCII_WORD = expression("[a-z0-9]+")


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
    return [word for piece in pieces(text) for word in _words_of_piece(piece)]


def _words_of_piece(text: str) -> list[str]:
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
    likely = [language for language, points in score.items() if points >= max(1, score["en"])]
    rest = sorted(likely, key=lambda language: (-score[language], language))  # a set of words has no order of its own
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
        words = _words(text)
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
STANDING = 8
NAMES_THING = 16
FIRST_PERSON = 32

_QUESTION_TAIL_CHARS = 60
_QUESTION_MARKS = expression("[?\uff1f\u061f\u037e]")
_TIME = expression(
    r"\b(?:yesterday|today|tonight|tomorrow"
    r"|(?:last|next|this|past) (?:night|week|weekend|month|year|summer|winter|spring|fall|mon|tue|wed|thu|fri|sat|sun)\w*"
    r"|(?:few|couple|two|three|four|five|six|\d+)(?: of)? (?:days|weeks|months|years)(?: ago)?"
    r"|ago|since|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|january|february|march|april|june|july|august|september|october|november|december|\d{4})\b"
)
_NUMBER = expression(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|once|twice|few|couple|dozen|hundred|thousand)\b"
)
# How a reply should be, from now on: only the start of a text says so of all that follows.
_STANDING = expression(
    r"\b(?:always|never|from now on|whenever|every time|each time|when i ask|i(?:'d| would)? prefer|i don't like"
    r"|i like (?:to|my|it when)|please (?:don't|use|keep|avoid|make sure))\b"
)
_STANDING_CHARS = 400
# A capital within a sentence, or a title in quotes; who is greeted by name in the first characters is not told of.
_GREETING_CHARS = 20
_THING = expression(
    "(?<=[a-z\u00df-\u00f6\u00f8-\u00ff,;:'\"] )[A-Z\u00c0-\u00d6\u00d8-\u00de][a-z\u00df-\u00f6\u00f8-\u00ff]"
    '|["\u201c][^"\u201c\u201d]{2,60}["\u201d]'
)
_FIRST_PERSON = expression(r"\b(?:i|my|we|our)\b")


def signals(text: str) -> int:
    """
    Return the signal bits of *text*: ``IS_QUESTION`` (a question mark among its last 60 characters),
    ``NAMES_TIME`` (a date, a weekday, "last week", "two days ago"), ``HAS_NUMBER``, ``STANDING`` (a wish for
    all replies to come), ``NAMES_THING`` (a name or a title) and ``FIRST_PERSON``.
    """
    lowered = text.lower()
    bits = IS_QUESTION if _QUESTION_MARKS.search(text[-_QUESTION_TAIL_CHARS:]) else 0
    if search_in_steps(_TIME, lowered):
        bits |= NAMES_TIME
    if search_in_steps(_NUMBER, lowered):
        bits |= HAS_NUMBER
    if _STANDING.search(fold_quotes(lowered[:_STANDING_CHARS])):
        bits |= STANDING
    if search_in_steps(_THING, text[_GREETING_CHARS:]):
        bits |= NAMES_THING
    if search_in_steps(_FIRST_PERSON, lowered):
        bits |= FIRST_PERSON
    return bits


_SAME_WIDTH = str.maketrans(
    {"’": "'", "‘": "'", "´": "'", "`": "'", "“": '"', "”": '"', "„": '"', "\u00a0": " ", "＇": "'"}
)


def fold_quotes(text: str) -> str:
    """Straighten curly quotes and no-break spaces; every character keeps its place."""
    if len(text) <= STEP_CHARS:
        return text.translate(_SAME_WIDTH)
    return "".join(text[start : start + STEP_CHARS].translate(_SAME_WIDTH) for start in range(0, len(text), STEP_CHARS))


# One call of an expression holds the interpreter until it returns, so long texts are processed in steps.
STEP_CHARS = 32_768
OVERLAP_CHARS = 2_048
_EDGE_CHARS = 64  # what an expression looks at behind a match
# Marks that are in no word, do not combine, and do not decide how letters beside them are lower-cased.
_GAP = expression(r'[\s,;!?"()\[\]{}<>=|/&+*#\u2013\u2014\u3001\u3002\uff01\uff0c\uff1b\uff1f](?!\n)')


def pieces(text: str) -> Iterator[str]:
    """Cut a long text into parts of about `STEP_CHARS`, behind marks between words; a text without marks stays whole."""
    start = at = 0
    while len(text) - at > 2 * STEP_CHARS:
        at += STEP_CHARS
        if gap := _GAP.search(text, at, at + STEP_CHARS):
            yield text[start : gap.end()]
            start = at = gap.end()
    yield text[start:]


def find_in_steps(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield what ``pattern.finditer(text)`` does; what it needs to see of a match may be `OVERLAP_CHARS` long."""
    start, step = 0, STEP_CHARS
    while True:
        end = min(len(text), start + step)
        whole = end == len(text)
        again = end - OVERLAP_CHARS
        for found in pattern.finditer(text, start, end):
            if not whole and found.end() > end - _EDGE_CHARS:
                again = min(again, found.start())
                break
            yield found
            again = max(again, found.end())
        if whole:
            return
        start, step = (again, STEP_CHARS) if again > start else (start, 2 * step)  # a match longer than a step


def search_in_steps(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """Return what ``pattern.search(text)`` does, see `find_in_steps`."""
    return next(find_in_steps(pattern, text), None)


# A run of Latin letters costs a token per six characters, CJK and Hangul one each, a run of other
# letters one per 2.5, a run of digits one per three, a run of line feeds one, and every other mark
# a third of its bytes.  White space rides along with the next token.
_UNSPACED = (
    "\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
)
_NOT_ASCII = expression(rf"[^\x00-\x7f](?:(?<=[^\W\d_])(?<![{_UNSPACED}])[^\W\d_]+)?")
_ONE_WIDE = expression(f"[{_UNSPACED}]")
_OTHER_DIGITS = expression(r"[^\x00-\x7f\D]+")

_LETTERS = (b"aaaaaa", b"aaaaa", b"aaaa", b"aaa", b"aa", b"a")
_DIGITS = (b"000", b"00", b"0")

MESSAGE_OVERHEAD_TOKENS = 4


def _class(char: str) -> str:
    if char == "\n":
        return char
    return "a" if char.isalpha() else "0" if char.isdecimal() else " " if char.isspace() else "!"


# In bytes of five classes each run is replaced, longest first, by one mark, and the marks are counted: several
# times as fast as walking over the text piece by piece, and every context counts thousands of tokens.
_CLASS = "".join(_class(chr(byte)) for byte in range(128)).ljust(256).encode("ascii")


# Counts of lines that were counted lately, by hash and length: contexts show the same lines again and again.
# The texts themselves are not kept, since they may be erased.
_counted: dict[tuple[int, int], int] = {}
_COUNTED_MOST = 20_000


def count_tokens(text: str) -> int:
    """Estimate the tokens of *text*, leaning upward; 0 only for an empty one."""
    key = (hash(text), len(text))
    known = _counted.get(key)
    if known is None:
        if len(_counted) >= _COUNTED_MOST:
            _counted.clear()
        known = _counted[key] = _count(text)
    return known


def _count(text: str) -> int:
    return max(1, sum(map(_count_piece, pieces(text)))) if text else 0


def _count_piece(text: str) -> int:
    if text.isascii():
        return _ascii(text)
    text = _OTHER_DIGITS.sub(lambda run: "1" * len(run.group()), text)
    other = sum(map(_price, _NOT_ASCII.findall(text)))
    return other + _ascii(_NOT_ASCII.sub(" ", text))


def _ascii(text: str) -> int:
    classes = text.encode("ascii").translate(_CLASS)
    for run in _LETTERS + _DIGITS if b"0" in classes else _LETTERS:
        classes = classes.replace(run, b"!")
    while b"\n\n" in classes:
        classes = classes.replace(b"\n\n", b"\n")
    return len(classes) - classes.count(b" ")


def _price(piece: str) -> int:
    """Return the tokens of one character, or of a run of letters, that is not ASCII."""
    first = piece[0]
    if len(piece) > 1 or first.isalnum() or _ONE_WIDE.match(first):  # some wide ones are not assigned yet
        return 1 if len(piece) == 1 else -(-2 * len(piece) // 5)
    return 0 if first.isspace() else len(piece.encode("utf-8", "surrogatepass")) // 3 + 1


Count = Callable[[str], int]

# A budget must hold, so the factor follows a rise at once by half and a fall slowly.
RISE, FALL = 0.5, 0.1
LEAST_FACTOR, MOST_FACTOR = 0.5, 3.0


class CalibratedCounter:
    """
    A token estimate that learns from the usage that providers report, per model.

        count = CalibratedCounter()
        context = chat.context(question, count=count)
        count.learn(context.messages, response.usage.prompt_tokens, model=response.model)

    The factor between the two is a moving average of reported / estimated, within 0.5 and 3, so
    that one odd report (a picture in the prompt, tools that the estimate does not see) moves it
    little for long.  Counts for the model that was learned last; `of` counts for a named one.
    Safe to use from several threads.
    """

    def __init__(self, base: Count = count_tokens) -> None:
        """Start from *base*, which is taken as it is until something was learned."""
        self._base = base
        self._lock = threading.Lock()
        self._factors: dict[str, float] = {}
        self._model = ""

    def __call__(self, text: str) -> int:
        """Count the tokens of *text* for the model that was learned last."""
        return self._scaled(text, self._factors.get(self._model, 1.0))

    def of(self, model: str) -> Count:
        """Return a counter for *model* that goes on learning."""
        return lambda text: self._scaled(text, self._factors.get(model, 1.0))

    def factor(self, model: str) -> float:
        """Return the factor on the estimate for *model*; 1 before anything was learned."""
        return self._factors.get(model, 1.0)

    def learn(self, messages: Iterable[Mapping[str, Any]], prompt_tokens: int, *, model: str = "") -> None:
        """
        Learn that a provider counted *prompt_tokens* for *messages*, in OpenAI's shape.

        Messages below 50 tokens, too short to measure, are ignored.
        """
        estimated = sum(self._base(_message_words(message)) + MESSAGE_OVERHEAD_TOKENS for message in messages)
        if prompt_tokens < 1 or estimated < 50:
            return
        seen = min(MOST_FACTOR, max(LEAST_FACTOR, prompt_tokens / estimated))
        with self._lock:
            known = self._factors.get(model)
            weight = RISE if known is not None and seen > known else FALL
            self._factors[model] = seen if known is None else known + weight * (seen - known)
            self._model = model

    def _scaled(self, text: str, factor: float) -> int:
        return math.ceil(self._base(text) * factor)


class TiktokenCounter:
    """
    OpenAI's own tokenizer, from the extra ``tiktoken``.

    *encoding* is the name of an encoding or a model, or an encoding itself.  A named one is
    downloaded by tiktoken on first use.
    """

    def __init__(self, encoding: Any = "o200k_base") -> None:
        """
        Load *encoding*.

        Raises:
            ConfigError: tiktoken is not installed, or knows no such encoding or model.
        """
        self._encoding = _encoding(encoding) if isinstance(encoding, str) else encoding

    def __call__(self, text: str) -> int:
        """Count the tokens of *text*; special tokens count as the text they are."""
        return len(self._encoding.encode(text, disallowed_special=()))


def _encoding(name: str) -> Any:
    try:
        tiktoken = import_module("tiktoken")
    except ImportError:
        raise ConfigError("tiktoken is not installed", hint="pip install 'holdfast[tiktoken]'") from None
    try:
        if name in tiktoken.list_encoding_names():
            return tiktoken.get_encoding(name)
        return tiktoken.encoding_for_model(name)
    except KeyError:
        raise ConfigError(f"tiktoken knows no encoding or model {name!r}", hint="try o200k_base") from None


def _message_words(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    calls = message.get("tool_calls")
    return (content if isinstance(content, str) else "") + (str(calls) if calls else "")


@dataclass(frozen=True, slots=True)
class ToolKind:
    """Tools of one purpose: their names in lower case, and what in a question asks for them."""

    tools: frozenset[str]
    asked: re.Pattern[str]
    moves: bool  # who moves to one has left the one that they used


@cache
def tool_kinds() -> tuple[ToolKind, ...]:
    """Return the kinds of ``tools.toml``."""
    text = (resources.files(__package__) / "tools.toml").read_text(encoding="utf-8")
    return tuple(
        ToolKind(
            frozenset(name.strip() for name in one["tools"].split(",")),
            re.compile(rf"(?<![\w-])(?:{one['asked']}|(?:our|my)(?: own)? (?:{one['ours']}))(?![\w-])", re.IGNORECASE),
            one.get("moves", False),
        )
        for one in tomllib.loads(text)["kind"]
    )


_ASKS_MEANING = expression(
    r"\b(?:mean|means|meaning of|stands? for|spell|pronounce|definition of|history of (?!my|our))\b", re.IGNORECASE
)


def tools_asked_for(question: str) -> frozenset[str]:
    """Return the names of the tools of the kinds that a question asks for: "How do I make the CI faster?"."""
    if _ASKS_MEANING.search(question):
        return frozenset()
    return frozenset[str]().union(*(kind.tools for kind in tool_kinds() if kind.asked.search(question)))


# --- lexicons


LEXICON_WORD = expression(r"[^\W\d_]+(?:['-][^\W\d_]+)*")


class WordList:
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
        """The regular expression of all words, longest first."""
        words = sorted(self.canonical, key=lambda word: (-len(word), word))
        if self._spaced:
            return rf"(?<!\w)(?:{'|'.join(map(_loose, words))})(?!\w)"
        latin = "|".join(_loose(word) for word in words if word.isascii())  # these keep their edges
        wide = "|".join(_loose(word) for word in words if not word.isascii())
        return rf"(?:(?<![A-Za-z0-9])(?:{latin or '(?!)'})(?![A-Za-z])|{wide or '(?!)'})"

    @cached_property
    def one(self) -> re.Pattern[str]:
        """The expression that finds one of the words."""
        return re.compile(self.alternatives, re.IGNORECASE)

    @cached_property
    def triggers(self) -> frozenset[str]:
        """One word of every phrase: the last that is not too short to be rare (``back`` of "a bad back")."""
        if not self._spaced:
            return frozenset(self.canonical)
        found = set()
        for phrase in self.canonical:
            words = LEXICON_WORD.findall(phrase) or [phrase]
            found.add(next((word for word in reversed(words) if len(word) > 3), max(words, key=len)))
        return frozenset(found)

    def lookup(self, words: str) -> str | None:
        """Return the canonical spelling of *words*, or None."""
        key = _key(words)
        return (
            self.canonical.get(key)
            or self.canonical.get(key.replace("-", " "))
            or self.canonical.get(key.replace(" ", "-"))
        )


def _loose(word: str) -> str:
    """Return the expression of a lexicon's word; hyphens and spaces may replace each other."""
    return re.escape(word).replace(r"\ ", r"[\s-]+").replace(r"\-", r"[\s-]?")


def _key(words: str) -> str:
    return re.sub(r"\s+", " ", fold_quotes(words).lower().strip())
