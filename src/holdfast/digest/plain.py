"""
Messages as plain sentences: what was said, without markup, code, quoted lines and padding.

Every sentence that leaves here stands in its message word for word; only marks of markup, runs of
white space, fillers at either end and, in a long one, whole clauses (shown as "…") are gone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

from ..text.sentences import split
from .lexicon import Lexicon

# Of a longer message the beginning and the end are read: what people open and close with.
HEAD_CHARS, TAIL_CHARS = 12_000, 4_000
MAX_SENTENCES = 30
MAX_SENTENCE_CHARS = 1_000
QUOTE_REACH_CHARS = 2_000

_FENCE = re.compile(r"(?:```|~~~).*?(?:```|~~~|\Z)", re.DOTALL)
_LINK = re.compile(r"!?\[([^\]\[]{0,300})\]\((?:[^()\s]|\([^()\s]*\)){0,2000}\)")
# Quoted lines, rows of tables, headings and rules.
_DROPPED_LINE = re.compile(r"^[ \t]*(?:>|\||#{1,6}[ \t]|[-=*_]{3,}[ \t]*$).*$", re.MULTILINE)
_BULLET = re.compile(r"^[ \t]*(?:[-*+•‣▪]|\d{1,3}[.)])[ \t]+", re.MULTILINE)
_EMPHASIS = re.compile(r"\*{2,3}|__|`|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)")
_CODE_MARKS = frozenset("{}[]();=<>\\|$#@&+`_")
_CODE_SHARE = 0.08
_ADDRESS = re.compile(r"https?://\S+|www\.\S+")
_WIDE = re.compile(
    r"[\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\u0e01-\u0eff]"
)
_CLAUSE_END = re.compile(r"(?<=[,;:，、；：])\s*|\s+(?=[–—-]+\s)|\s+(?=\()")
_QUOTES = (("“", "”"), ("„", "“"), ("«", "»"), ("「", "」"), ("『", "』"))
_QUOTED = re.compile(r"\"[^\"]*+(?:\"|$)|“[^”]*+(?:”|$)|„[^“]*+(?:“|$)|«[^»]*+(?:»|$)|「[^」]*+(?:」|$)")
_MARKS = frozenset('"“„«「『')
_STRAIGHT = str.maketrans("’‘´`", "''''")
_LONG_WORD_CHARS = 12


def plain(content: str) -> str:
    """*content* without code blocks, tables, headings, quoted lines and marks of markup; lines are kept."""
    if len(content) > HEAD_CHARS + TAIL_CHARS:
        return plain(content[:HEAD_CHARS]) + "\n" + plain(content[-TAIL_CHARS:])
    text = _FENCE.sub("\n", content)
    text = _LINK.sub(r"\1", text)
    text = _DROPPED_LINE.sub("", text)
    text = _BULLET.sub("", text)
    return _EMPHASIS.sub("", text)


def sentences(content: str) -> list[str]:
    """The sentences of *content* in order, each on one line; of very many the first and the last."""
    text = plain(content)
    spans = split(text)
    if len(spans) > MAX_SENTENCES:
        spans = spans[: MAX_SENTENCES * 2 // 3] + spans[-MAX_SENTENCES // 3 :]
    found = (" ".join(span.of(text)[:MAX_SENTENCE_CHARS].split()) for span in spans if not _in_quotes(text, span.start))
    return [sentence for sentence in found if sentence and not is_code(sentence)]


def _in_quotes(text: str, at: int) -> bool:
    """Whether quotation marks that were opened earlier on the line are still open at *at*: others' words."""
    line = text[max(text.rfind("\n", 0, at) + 1, at - QUOTE_REACH_CHARS) : at]
    open_ = False
    for place, ch in enumerate(line):
        if ch == '"' and (open_ or not line[place - 1 : place].isdigit()):  # 27" is no quotation
            open_ = not open_
    return open_ or any(line.count(left) > line.count(right) for left, right in _QUOTES)


def is_code(sentence: str) -> bool:
    """Whether *sentence* reads like code, a log line or a bare address rather than like speech."""
    rest = _ADDRESS.sub("", sentence)
    marks = sum(ch in _CODE_MARKS for ch in rest)
    return not any(ch.isalpha() for ch in rest) or (marks >= 4 and marks > _CODE_SHARE * len(rest))


def straight(text: str) -> str:
    """*text* with typewriter apostrophes, as the lexicons write them; the same length."""
    return text.translate(_STRAIGHT)


def own(text: str) -> str:
    """*text* in straight apostrophes without what it quotes: only that speaks for the speaker."""
    return straight(_QUOTED.sub(" ", text))


def size(text: str) -> float:
    """How long *text* is in words; a wide character counts .6, a very long word for several."""
    total = 0.6 * len(_WIDE.findall(text))
    for word in _WIDE.sub(" ", text).split():
        total += max(1.0, len(word) / _LONG_WORD_CHARS)
    return total


def trim(sentence: str, words: Lexicon, names: Iterable[str] = ()) -> str:
    """*sentence* without fillers and vocatives ("Well,", "…, haha", "…, Ana!") at its ends."""
    called = "|".join(re.escape(name) for name in sorted(names) if name)
    vocative = re.compile(rf"(?:{called})[,!:]\s+", re.IGNORECASE) if called else None
    closing = re.compile(rf",\s*(?:{called})(?=[.!?\s]*$)", re.IGNORECASE) if called else None
    text = sentence
    for _ in range(4):
        found = words.lead.match(straight(text)) or (vocative.match(text) if vocative else None)
        if found is None or size(text[found.end() :]) < 2:
            break
        text = text[found.end() :]
    for ending in (words.tail, closing):
        if ending is not None:
            text = ending.sub("", text)
    return text.strip()


def shorten(sentence: str, limit: float, words: Lexicon) -> str:
    """
    *sentence* within about *limit* words: its most telling run of clauses, "…" where some are missing.

    A clause tells when it holds numbers, names, first persons, decisions or troubles.
    """
    if size(sentence) <= limit:
        return sentence
    opened, closed = sentence.startswith("…"), sentence.endswith("…")
    sentence = sentence.strip("… ")
    inner = (found.end() for found in _CLAUSE_END.finditer(sentence))
    # Who is quoted, and that somebody is, stays with the quotation: no clause begins at or in one.
    cuts = [
        0,
        *(at for at in inner if sentence[at : at + 1] not in _MARKS and not _in_quotes(sentence, at)),
        len(sentence),
    ]
    bounds = [(a, b) for a, b in pairwise(cuts) if sentence[a:b].strip()]
    best, best_worth = (0, 0), -1.0
    worth = [_worth(sentence[a:b], words) for a, b in bounds]
    length = [size(sentence[a:b]) for a, b in bounds]
    for first in range(len(bounds)):
        total, gain = 0.0, 0.6 if first == 0 else 0.0
        for last in range(first, len(bounds)):
            total, gain = total + length[last], gain + worth[last]
            if total > limit:
                break
            if gain + 0.01 * total > best_worth:
                best, best_worth = (bounds[first][0], bounds[last][1]), gain + 0.01 * total
    start, end = best
    if size(sentence[start:end]) < min(6.0, limit / 3):
        start, end = 0, _cut(sentence, limit)
    text = sentence[start:end].strip(" ,;:，、；：–—-(…")
    if (start or opened) and text:
        text = "… " + text
    return text + " …" if (closed or end < len(sentence)) and text else text


def _worth(clause: str, words: Lexicon) -> float:
    text = straight(clause)
    signs = words.signs(text) - {"empty", "calm", "recommend"}
    inner = clause.split()[1:]
    named = sum(word[:1].isupper() for word in inner) > 0
    return 0.5 * any(ch.isdigit() for ch in text) + 0.3 * named + 0.3 * len(signs)


def _cut(sentence: str, limit: float) -> int:
    """Where *sentence* reaches *limit* words: after a word, or after a character where none is set apart."""
    total, end = 0.0, 0
    for found in re.finditer(r"\S+\s*", sentence):
        step = size(found.group())
        if total + step > limit:
            break
        total, end = total + step, found.end()
    if end:
        return end
    low, high = 1, len(sentence)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if size(sentence[:middle]) <= limit else (low, middle - 1)
    return low
